#!/usr/bin/env python3
"""The published rates as a C table: rates.py IN.csv OUT.c

Kinds keep the order of the file; model/published.h declares what comes out.
"""
import csv
import sys

TYPES = ["v100", "p100", "k80"]
SIZES = ["1", "2", "4", "8"]


def read(path):
    kinds = {}
    with open(path, encoding="ascii") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        for row in rows:
            rates = (row["rate"], row["rate_spread"] or "-1")
            kinds.setdefault(row["kind"], {})[row["type"], row["gpus"]] = rates
    return kinds


def kind_text(name, rates):
    distributes = any(gpus != "1" for _, gpus in rates)
    text = f'    {{ "{name}", {str(distributes).lower()}, {{\n'
    for gpu_type in TYPES:
        sizes = (rates.get((gpu_type, gpus), ("-1", "-1")) for gpus in SIZES)
        cells = ", ".join(f"{{ {alone}, {spread} }}" for alone, spread in sizes)
        text += f"        {{ {cells} }},\n"
    return text + "    } },\n"


def main():
    source, target = sys.argv[1:]
    kinds = read(source)
    with open(target, "w", encoding="ascii") as file:
        file.write(
            '#include "model/published.h"\n\n'
            "const struct published_kind published_kinds[PUBLISHED_KINDS] = {\n"
            + "".join(kind_text(name, rates) for name, rates in kinds.items())
            + "};\n\n"
            f'_Static_assert(PUBLISHED_KINDS == {len(kinds)}, "kinds in the file");\n'
        )


if __name__ == "__main__":
    main()
