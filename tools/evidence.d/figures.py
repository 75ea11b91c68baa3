"""figures - tables of measured figures in the pages of docs, filled from the records.

    <!-- figures slaq | to 90 % | to the end
    drawn curves: t90_change converged_change
    -->
    | | to 90 % | to the end |
    ...
    <!-- end of figures -->

The first line names the record of a paper and the columns; each line after it a label and a row of
the record per column.  An ID with '!' at its end is shown as published; with '?', its verdict.
"""
import glob
import os
import re

import papers
import records
import words
from records import ROOT

BLOCK = re.compile(r"(<!-- figures (\w+) \| ([^\n]*)\n(.*?)\n-->\n)(.*?)(<!-- end of figures -->)", re.S)


def pages():
    return sorted(glob.glob(os.path.join(ROOT, "docs", "policies", "*.md"))
                  + glob.glob(os.path.join(ROOT, "docs", "flows", "*.md")))


def cell(rows, ident):
    row = rows.get(ident.rstrip("!?"))
    if not row:
        return words.BLANK
    if ident.endswith("!"):
        return words.figure(row["unit"], row.get("published"))
    if ident.endswith("?"):
        return f"{row['verdict']} ({papers.fidelity(row)})"
    spread = f" ({words.span(row['unit'], *row['spread'])})" if row["seeds"] > 1 else ""
    return words.figure(row["unit"], row["measured"]) + spread


def fill(text, data=records.DATA):
    """A page with its tables made from the records."""
    def table(match):
        record = records.load("reproduce", match[2], data)
        if not record:
            return match[0]
        rows = {row["id"]: row for row in record["output"]["rows"]}
        head = ["", *(part.strip() for part in match[3].split("|"))]
        lines = []
        for line in match[4].splitlines():
            label, _, idents = line.rpartition(": ")
            lines.append((label, *(cell(rows, ident) for ident in idents.split())))
        return match[1] + words.table(head, lines, range(1, len(head))) + match[6]
    return BLOCK.sub(table, text)


def write():
    """Fill the tables of all pages; how many changed."""
    changed = 0
    for path in pages():
        with open(path, encoding="utf-8") as file:
            before = file.read()
        after = fill(before)
        if after != before:
            with open(path, "w", encoding="utf-8") as file:
                file.write(after)
            changed += 1
    return changed
