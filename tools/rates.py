#!/usr/bin/env python3
"""The published rates as a C table: rates.py RATES.csv SHARING.csv OUT.c

Kinds keep the order of the file; model/published.h declares what comes out.
"""
import csv
import sys

TYPES = ["v100", "p100", "k80"]
SIZES = ["1", "2", "4", "8"]


def lines(path):
    with open(path, encoding="ascii") as file:
        yield from csv.DictReader(line for line in file if not line.startswith("#"))


def read_rates(path):
    kinds = {}
    for row in lines(path):
        rates = (row["rate"], row["rate_spread"] or "-1")
        kinds.setdefault(row["kind"], {})[row["type"], row["gpus"]] = rates
    return kinds


def read_sharing(path):
    figures = ("pressure", "sensitivity", "memory_percent")
    return {(row["kind"], row["type"]): [row[f] for f in figures] for row in lines(path)}


def kind_text(name, rates, sharing):
    distributes = any(gpus != "1" for _, gpus in rates)
    text = f'    {{ "{name}", {str(distributes).lower()}, {{\n'
    for gpu_type in TYPES:
        sizes = (rates.get((gpu_type, gpus), ("-1", "-1")) for gpus in SIZES)
        cells = ", ".join(f"{{ {alone}, {spread} }}" for alone, spread in sizes)
        text += f"        {{ {cells} }},\n"
    cells = ", ".join(f"{{ {', '.join(sharing[name, t])} }}" for t in TYPES)
    return text + f"    }}, {{ {cells} }} }},\n"


def main():
    rates_csv, sharing_csv, target = sys.argv[1:]
    kinds = read_rates(rates_csv)
    sharing = read_sharing(sharing_csv)
    with open(target, "w", encoding="ascii") as file:
        file.write(
            '#include "model/published.h"\n\n'
            "const struct published_kind published_kinds[PUBLISHED_KINDS] = {\n"
            + "".join(kind_text(name, rates, sharing) for name, rates in kinds.items())
            + "};\n\n"
            f'_Static_assert(PUBLISHED_KINDS == {len(kinds)}, "kinds in the file");\n'
        )


if __name__ == "__main__":
    main()
