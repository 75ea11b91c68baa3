"""learned - the page on what real jobs gain from speeds and pairs that were learned from reports."""
import statistics

import words

WAYS = {"told": "told", "learned": "learned", "blind": "not looked at"}

RATES = """\
## Speeds of GPU types

24 jobs of three kinds on seven fake GPUs of three types: 12 at once, and 12 more when those have ended. The types are
as fast as 1 : 0.5 : 0.2 for jobs of one kind, 1 : 0.9 : 0.6 and 1 : 0.3 : 0.1 for those of the others; a job makes as many steps a second as
the type that it got lets it, and reports them. Each draw of jobs runs three times under a real `berthd`: the rates are **told**
by a table, they are **learned** from reports with nothing known before, and the policy does **not look** at types (`aware=false`).
The same is then simulated, learning included (`--learn-rates`).

"""

SHARING = """\
## Jobs that share a GPU

Four jobs on two fake GPUs, each of which is a processor (`--fake-gpus v100:2@cpu`), so that jobs that share one slow each other
down. **Light** jobs keep theirs busy for 30 % of the time, **heavy** ones all the time. They run with `--shared` and without; nothing is
known before, so each runs alone first, then pairs are tried. Light jobs are to make more steps together; heavy ones are to be
parted again, and to lose little by the trial.

"""


def verdict(met):
    return "yes" if met else "**no**"


def percent(value):
    return words.sign(f"{100 * value:.0f} %")


def rates_targets(output):
    """Figures of the means over draws, beside what they are to be."""
    live, simulated = output["live"], output["simulated"]
    rows = []
    for what, key, target, is_met, show in (
            ("makespan, learned over not looked at", "ratio", "≤ 0.80", lambda v: v <= .8,
             lambda v: f"{v:.2f}"),
            ("part of the gain of told rates, all jobs", "part_of_gain", "≥ 70 %",
             lambda v: v >= .7, percent),
            ("part of the gain of told rates, last 12 jobs", "part_of_gain_last", "≥ 85 %",
             lambda v: v >= .85, percent)):
        rows.append((what, show(live[key]), show(simulated[key]), target,
                     verdict(is_met(live[key]))))
    for way, name in WAYS.items():
        off = output["simulated_by_live"][way] - 1
        rows.append((f"simulated against live makespan, {name}", words.BLANK,
                     words.sign(f"{100 * off:+.1f} %"), "within 10 %", verdict(abs(off) <= .1)))
    return words.table(("", "live", "simulated", "target", "met"), rows, (1, 2, 3))


def rates_draws(output):
    rows = []
    for at, draw in enumerate(output["draws"]):
        cells = [f"{sum(draw['live'][way]):.1f} s ({sum(draw['simulated'][way]):.1f} s)"
                 for way in WAYS]
        rows.append((at, f"{draw['load']:.1f}", *cells))
    return words.table(("draw", "load", *WAYS.values()), rows, (0, 1, 2, 3, 4))


def rates_section(record):
    output = record["output"]
    return (RATES + words.made(record) + f"\nPolicy `{output['policy']}`, means over "
            f"{words.plural(len(output['draws']), 'draw')}:\n\n" + rates_targets(output)
            + "\nMakespan of both batches, live and (simulated):\n\n" + rates_draws(output))


def sharing_section(record):
    output = record["output"]
    text = SHARING + words.made(record) + "\n"
    rows, draws = [], []
    for run in output["runs"]:
        gains = [draw["alone_s"] / draw["shared_s"] for draw in run["draws"]]
        least = 1.6 if run["kind"] == "light" else 0.95
        mean = statistics.mean(gains)
        rows.append((f"`{run['policy']}`", run["kind"], f"{mean:.2f}",
                     f"{min(gains):.2f} … {max(gains):.2f}", f"≥ {least:.2f}",
                     verdict(mean >= least)))
        for draw, gain in zip(run["draws"], gains):
            kept = draw["kept"]
            draws.append((f"`{run['policy']}`", run["kind"], f"{draw['alone_s']:.1f} s",
                          f"{draw['shared_s']:.1f} s", f"{gain:.2f}",
                          percent(statistics.mean(kept)) if kept else words.BLANK))
    return (text + words.table(("policy", "jobs", "throughput, shared over not", "over draws",
                                "target", "met"), rows, (2, 3, 4))
            + "\n" + words.table(("policy", "jobs", "not shared", "shared", "throughput",
                                  "of its speed each keeps"), draws, (2, 3, 4, 5)))


def page(records):
    """From the records there are, by name."""
    parts = ["# Learned speeds and shared GPUs\n\nWhat real jobs gain when `berthd` learns from their "
             "reports how fast they run on each type of GPU and beside each other.\n"]
    if "rates" in records:
        parts.append(rates_section(records["rates"]))
    if "sharing" in records:
        parts.append(sharing_section(records["sharing"]))
    return "\n".join(parts)
