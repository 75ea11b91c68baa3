"""papers - the pages on the five papers: published beside measured."""
import collections
import glob
import os
import re

import plot
import words
from records import ROOT

VERDICT = """\
**Reproduced** means: the mean over seeds is within the row's tolerance of the published figure; where
the authors published one seed, that seed is. **Inconclusive**: it is not, and only the spread over seeds
reaches the published figure. **Better** and **worse**: neither, and the row has a direction.
**Differs**: neither, and it has none: a figure of a baseline, a ratio to a baseline that has published
figures of its own, or a maximum over settings that were not published. **Faster**: a shorter running time of a program,
on another machine. The tolerances stand in `src/study`; each row of a record in [data](data) has what its
verdict is made from.

**Fidelity** says what a measured figure rests on, the weakest part of it. **Released code**: the rules and
the jobs of the authors' program. **Paper's text**: what the paper says. **Reconstructed**: parts of the
rule or of the jobs are not published. **Tuned to match**: a part was chosen so that figures come near the
published ones.
"""

FIDELITY = {"released-code": "released code", "paper": "paper's text",
            "reconstructed": "reconstructed", "tuned": "tuned to match"}
DIFFERS = re.compile(r"<!-- differs ([^>]*?) -->\n(.*?)(?=\n\n|\n- |\n<!-- )", re.S)
ORDER = ["differs", "worse", "better", "inconclusive", "faster", "reproduced"]
OFF = ("differs", "worse", "better", "inconclusive")


def known_reasons():
    """Why figures differ, where a policy's page knows: the text after '<!-- differs ID... -->'.

    An ID may end in '*'.  The text is the paragraph or the list item that follows.
    """
    reasons = []
    for path in sorted(glob.glob(os.path.join(ROOT, "docs", "policies", "*.md"))
                       + glob.glob(os.path.join(ROOT, "docs", "flows", "*.md"))):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for ids, said in DIFFERS.findall(text + "\n\n"):
            page = os.path.relpath(path, os.path.join(ROOT, "docs", "evidence"))
            reasons.append((ids.split(), " ".join(said.removeprefix("- ").split()), page))
    return reasons


def reason_for(row, reasons):
    for ids, said, page in reasons:
        for ident in ids:
            if row["id"] == ident or (ident.endswith("*") and row["id"].startswith(ident[:-1])):
                name = os.path.splitext(os.path.basename(page))[0]
                return f"{said} ([{name}]({page}))"
    return ""


def fidelity(row):
    return FIDELITY.get(row.get("fidelity"), words.BLANK)


def weakest_fidelity(rows):
    """'released code and reconstructed', in the order of trust."""
    there = [name for key, name in FIDELITY.items() if any(row.get("fidelity") == key
                                                           for row in rows)]
    return " and ".join(filter(None, [", ".join(there[:-1]), *there[-1:]])) or words.BLANK


def related(row, key):
    """A row's price, or a simpler policy's figure: '+363.4 %, time to the end: …'."""
    other = row.get(key)
    return f"{words.figure(other['unit'], other['measured'])}, {other['what']}" if other else ""


def price(row):
    """What a figure costs elsewhere, and what a simpler policy gets."""
    said = [f"{name}: {text}" for name, key in (("price", "price"), ("beside", "beside"))
            if (text := related(row, key))]
    return "; ".join(said) or words.BLANK


def compared(row):
    """What the verdict is about."""
    if "compared_seed" in row:
        return f"seed {row['compared_seed']}: {words.figure(row['unit'], row['compared'])}"
    return "mean"


def published(record):
    return [row for row in record["output"]["rows"] if "published" in row]


def tally(rows):
    """'12 reproduced, 1 differs'."""
    counts = collections.Counter(row["verdict"] for row in rows)
    many = {"differs": "differ"}
    return ", ".join(f"{n} {many.get(verdict, verdict) if n > 1 else verdict}"
                     for verdict in reversed(ORDER) if (n := counts[verdict]))


def row_cells(row):
    return (f"`{row['id']}`", row["what"], words.figure(row["unit"], row["published"]),
            words.figure(row["unit"], row["measured"]), words.span(row["unit"], *row["spread"]),
            row["seeds"], "± " + tolerance(row), compared(row), row["verdict"], fidelity(row),
            price(row))


def tolerance(row):
    if row["unit"] in ("change", "share"):
        return f"{row['tolerance'] * 100:.3g} points"
    return words.figure(row["unit"], row["tolerance"])


HEAD = ("row", "what", "published", "measured", "spread", "seeds", "tolerance", "compared",
        "verdict", "fidelity", "price, and a simpler policy beside it")
NUMBERS = (2, 3, 4, 5, 6)


def table_of(rows):
    return words.table(HEAD, [row_cells(row) for row in rows], NUMBERS)


UNKNOWN = dict.fromkeys(OFF, "not known.") | {
    "inconclusive": "seeds differ by more than the tolerance; more of them would tell."}


def what_differs(rows, reasons):
    """Rows that are not reproduced, those with one reason together."""
    off = [row for row in rows if row["verdict"] in OFF]
    faster = [row for row in rows if row["verdict"] == "faster"]
    if not off and not faster:
        return "Every published figure was reproduced.\n"
    told = collections.OrderedDict()
    for row in sorted(off, key=lambda row: ORDER.index(row["verdict"])):
        told.setdefault((row["verdict"], reason_for(row, reasons)), []).append(row)
    lines = []
    for (verdict, reason), group in told.items():
        for row in group:
            lines.append(f"- **{verdict}**: `{row['id']}`, {row['what']}: "
                         f"{words.figure(row['unit'], row['published'])} published, "
                         f"{words.figure(row['unit'], row['measured'])} measured"
                         + (f" ({words.span(row['unit'], *row['spread'])})"
                            if row["seeds"] > 1 else "")
                         + (f", {compared(row)}" if "compared_seed" in row else ""))
        lines.append(f"  - Why: {reason or UNKNOWN[verdict]}")
    if faster:
        lines.append("- **faster**: " + ", ".join(f"`{row['id']}`" for row in faster))
    return "\n".join(lines) + "\n"


def capital(text):
    return text[:1].upper() + text[1:]


def draw(record):
    """Plots of one paper: {file name: (title, svg)}."""
    paper, drawn = record["name"], {}
    main = [row for row in published(record) if "@" not in row["id"]]
    if main:
        panels = collections.OrderedDict()
        for row in main:
            panels.setdefault(row["unit"], []).append(
                {"label": row["id"], "published": row["published"], "measured": row["measured"],
                 "low": row["spread"][0], "high": row["spread"][1], "tolerance": row["tolerance"]})
        title = "Published and measured"
        drawn[f"{paper}-figures.svg"] = (title, plot.forest(title, list(panels.items()),
                                                            words.tick))
    for number, chart in enumerate(record["output"]["charts"], 1):
        title, label = capital(chart["title"]), chart["y_label"]
        unit = next((unit for unit in ("change", "share") if label.startswith(unit)), None)
        show = (lambda value, unit=unit: words.tick(unit, value)) if unit else plot.plain
        if chart["kind"] == "bars":
            svg = plot.bars(title, label, chart["groups"], chart["series"], show)
        else:
            svg = plot.lines(title, chart.get("x_label", ""), label, chart["series"], show)
        drawn[f"{paper}-{number}.svg"] = (title, svg)
    return drawn


def curves(rows):
    """Rows 'name@x' by name, folded away: there are many."""
    text = ""
    for name in dict.fromkeys(row["id"].split("@")[0] for row in rows):
        own = [row for row in rows if row["id"].split("@")[0] == name]
        text += (f"<details><summary><code>{name}</code>: {words.plural(len(own), 'point')}, "
                 f"{tally(own)}</summary>\n\n" + table_of(own) + "\n</details>\n\n")
    return text


def page(record, pictures, reasons):
    output = record["output"]
    rows = published(record)
    silent = [row for row in output["rows"] if "published" not in row]
    main = [row for row in rows if "@" not in row["id"]]
    points = [row for row in rows if "@" in row["id"]]
    title, _, rest = output["title"].partition(": ")
    text = (f"# {title}, measured again\n\n"
            f"{capital(rest)}. {output['citation']}.\n\n"
            f"{words.plural(len(rows), 'published figure')}: {tally(rows)}."
            + (" This was the quick study, a part of the whole one." if output["quick"] else "")
            + "\n\n" + words.made(record) + "\n## Published and measured\n\n" + VERDICT + "\n")
    first = f"{record['name']}-figures.svg"
    if first in pictures:
        text += f"![{pictures[first][0]}](plots/{first})\n\n"
    text += table_of(main) + "\n" if main else ""
    text += curves(points)
    text += "## What differs\n\n" + what_differs(rows, reasons)
    text += "\n## Set-up\n\n" + words.table(
        ("what", "origin"), [(part["what"], part["origin"]) for part in output["setup"]])
    text += "".join(f"\n{note}\n" for note in output["notes"])
    text += "\n## Plots\n\nBands show the spread over seeds; what was published is dashed.\n\n"
    text += "".join(f"![{name}](plots/{file})\n\n" for file, (name, _) in pictures.items()
                    if file != first)
    if silent:
        text += ("## Measured, nothing published\n\n<details><summary>"
                 f"{words.plural(len(silent), 'row')}</summary>\n\n" + words.table(
                     ("row", "what", "measured", "spread", "seeds", "fidelity"),
                     [(f"`{row['id']}`", row["what"], words.figure(row["unit"], row["measured"]),
                       words.span(row["unit"], *row["spread"]), row["seeds"], fidelity(row))
                      for row in silent], (2, 3, 4)) + "\n</details>\n")
    return text
