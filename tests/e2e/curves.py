"""Learning curves to replay: of real training where BERTH_DATA is set, else of two families."""
import csv
import gzip
import math
import os

from support import DATA

POINTS = 400 # of every curve that is handed out


def families(count):
    """Curves of the two families that are fitted, each with its own pace."""
    found = []
    for i in range(count):
        pace = 0.6 + 0.25 * i
        if i % 2:
            found.append([0.2 + 2 / (1 + 8 * pace * k / POINTS) for k in range(POINTS)])
        else:
            found.append([0.1 + 2 * math.exp(-6 * pace * k / POINTS) for k in range(POINTS)])
    return found


def is_plain(losses):
    """It falls, for the most part, and most of it early."""
    way = losses[0] - min(losses)
    ups = sum(1 for a, b in zip(losses, losses[1:]) if b > a + 0.02 * way)
    middle = losses[len(losses) // 2]
    return (way > 0 and ups < 0.02 * len(losses) and losses[-1] < min(losses) + 0.05 * way
            and middle < losses[0] - 0.6 * way)


def stretch(losses):
    """POINTS of them, evenly, between those there are."""
    out = []
    for i in range(POINTS):
        at = i * (len(losses) - 1) / (POINTS - 1)
        low = min(int(at), len(losses) - 2)
        out.append(losses[low] + (at - low) * (losses[low + 1] - losses[low]))
    return out


def real(count):
    """Losses of different kinds of training, as they were logged."""
    by_kind = {}
    rows = {}
    with gzip.open(os.path.join(DATA, "curves", "curves.csv.gz"), "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if "loss" in row["metric"]:
                rows.setdefault((row["algo"], row["run_id"], row["metric"]), []).append(
                    float(row["value"]))
    for (kind, _, _), losses in sorted(rows.items()):
        if len(losses) >= 40 and kind not in by_kind and is_plain(losses):
            by_kind[kind] = stretch(losses)
    return [by_kind[kind] for kind in sorted(by_kind)][:count]


def curves(count):
    """So many, and where they are from."""
    found = real(count) if DATA else []
    where = "real" if len(found) == count else "families"
    return (found if where == "real" else families(count)), where
