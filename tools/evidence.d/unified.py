"""unified - the page on the policy berth in every study: what it loses against each specialist."""
import math
import statistics

import plot
import words

# Studies whose names say too little in a picture.
STUDIES = {"xion_overload": "xion, overload", "gavel_makespan": "gavel, makespan",
           "gavel_fairness": "gavel, fairness", "gavel_cost": "gavel, cost",
           "mixed_makespan": "mixed, makespan", "mixed_fairness": "mixed, fairness",
           "mixed_cost": "mixed, cost", "slaq_real": "slaq, real curves",
           "mixed_error": "mixed, estimates err"}
TITLE = "How much worse than the best other policy, in the worst figure of each study"

TEXT = """\
One policy with one set of defaults on the workloads of all five papers, on a mixed workload at several
loads, and on four families of other workloads, beside the policies that are best
there. **Regret** is how much worse a figure is than that of the policy that is best in that very figure,
or that the target names; below zero `berth` is better than all others. Settings were chosen on seeds 1 to 3 of
the papers' workloads and of mixed; while sizes were chosen, lab, sweeps and industry were in view on those seeds, and the
correction by shares of users was chosen on seeds 11 to 22 of all families and looked at on 4 and 5 once. The price of a wasted
GPU-second in a swap and the share of jobs that waited too long were chosen on seeds 1 to 3 of the papers' workloads and of mixed.
Three settings were chosen anew, on seeds 1 to 3 of all workloads, after the full study had been seen: what a good model counts, how
long an elastic job is taken to stay smaller, and the order of gangs.
After ± stands the standard error of the mean over seeds.
"""


def study_name(name):
    return STUDIES.get(name, name.replace("@", " "))


def chart_of(record):
    return next(chart for chart in record["output"]["charts"] if chart["kind"] == "regret")


def in_words(regret):
    """+3 %, −12 %, and ×4.5 from where percentages are hard to read."""
    if regret >= 1:
        return f"×{regret + 1:.0f}" if regret >= 9 else f"×{regret + 1:.1f}"
    return words.sign(f"{100 * regret:+.0f} %") if abs(regret) >= 0.005 else "0 %"


def policies_of(chart):
    """The policy in question first, then those that are bad in the fewest studies."""
    rows = [(one["name"], dict(zip(one["x"], one["y"]))) for one in chart["series"]]
    most = max(len(regrets) for _, regrets in rows[1:])

    def rank(row):
        known = list(row[1].values())
        return (2 * len(known) < most,
                sum(math.log1p(max(0, regret)) for regret in known) / len(known))

    return rows[:1] + sorted((row for row in rows[1:] if row[1]), key=rank)


def draw(record):
    chart = chart_of(record)
    svg = plot.shades(TITLE, [study_name(name) for name in chart["groups"]],
                      policies_of(chart), in_words)
    return {"one.svg": (TITLE, svg)}


def over_seeds(metric):
    """Its regret by seed."""
    seeds = {one["policy"]: one["seeds"] for one in metric["policies"]}
    return [a / b - 1 for a, b in zip(metric["policies"][0]["seeds"], seeds[metric["against"]])]


def error_of(found):
    """The standard error of the mean over seeds, where cells of a study count alike."""
    means = [statistics.fmean(one) for one in zip(*(over_seeds(metric) for _, metric in found))]
    if len(means) < 2:
        return ""
    error = statistics.stdev(means) / math.sqrt(len(means))
    return f" ± {error:.1f}" if statistics.fmean(means) >= 1 else f" ± {100 * error:.0f}"


def figures_of(chart):
    """A row for each figure of each study: mean over its cells, and the worst of them."""
    groups = {}
    for cell in chart["cells"]:
        for metric in cell["metrics"]:
            if metric["regret"] is not None:
                groups.setdefault((cell["study"], metric["metric"]), []).append((cell, metric))
    rows = []
    for (study, _), found in groups.items():
        regrets = [metric["regret"] for _, metric in found]
        cell, worst = max(found, key=lambda one: one[1]["regret"])
        target = worst["target"]
        named = {metric["against"] for _, metric in found}
        rows.append((study_name(study), worst["what"],
                     in_words(sum(regrets) / len(regrets)) + error_of(found),
                     str(len(over_seeds(worst))),
                     f"{in_words(max(regrets))}" + (f" (`{cell['cell']}`)" if len(found) > 1 else ""),
                     " ".join(f"`{name}`" for name in sorted(named)), in_words(target),
                     "yes" if max(regrets) <= target + 1e-9 else
                     "in the mean" if sum(regrets) / len(regrets) <= target + 1e-9 else "**no**"))
    return rows


def cells_of(chart):
    """Every cell with every policy, folded away."""
    text = ""
    for cell in chart["cells"]:
        text += (f"<details><summary>{study_name(cell['study'])}: {cell['cell']}</summary>\n\n"
                 f"Jobs `{cell['workload']}` on `{cell['cluster']}`.\n\n")
        for metric in cell["metrics"]:
            ranked = sorted((one for one in metric["policies"] if one["mean"] is not None),
                            key=lambda one: one["mean"])
            text += words.table((metric["what"], "mean", "against the best other"),
                                [(f"`{one['policy']}`", words.digits(one["mean"]),
                                  in_words(one["regret"])) for one in ranked], (1, 2)) + "\n"
        text += "</details>\n\n"
    return text


def page(record, pictures):
    output, chart = record["output"], chart_of(record)
    rows = figures_of(chart)
    met = sum(row[-1] == "yes" for row in rows)
    text = f"# One policy in every study\n\n{TEXT}\n"
    text += f"{met} of {words.plural(len(rows), 'target')} are met in every cell."
    if output["quick"]:
        text += (" This was the quick study, a part of the whole one. In it a single job can decide a figure "
                 "of\nmixed, lab, industry, sweeps and box, so these ran on more seeds, from 4 on.")
    text += "".join(f"\n\n![{name}](plots/{file})" for file, (name, _) in pictures.items())
    text += "\n\n" + words.made(record) + "\n## Targets\n\n" + words.table(
        ("study", "figure", "regret", "seeds", "worst cell", "against", "target", "met"), rows,
        (2, 3, 4, 6))
    text += "".join(f"\n{note}\n" for note in output["notes"])
    return text + "\n## Every cell\n\n" + cells_of(chart)
