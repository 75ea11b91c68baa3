"""verdicts - the verdict on a reproduced figure, made again from what its row says."""
import math

VERDICTS = ("reproduced", "inconclusive", "better", "worse", "differs", "faster")
FIDELITIES = ("released-code", "paper", "reconstructed", "tuned")


def verdict_of(row):
    """As docs/man/berth-reproduce.1.scd has it, from the values by seed where a row has them."""
    values = row.get("values")
    if "published" not in row:
        return "no figure published"
    if "compared_seed" in row:
        compared, low, high = values[row["compared_seed"] - row["first_seed"]], math.inf, -math.inf
    elif values:
        compared, low, high = sum(values) / len(values), min(values), max(values)
    else:
        compared, (low, high) = row["measured"], row["spread"]
    off = compared - row["published"]
    if abs(off) <= row["tolerance"]:
        return "reproduced"
    if low <= row["published"] <= high:
        return "inconclusive"
    if row.get("running_time") and off < 0:
        return "faster"
    if row["direction"] == "neither":
        return "differs"
    return "better" if (off < 0) == (row["direction"] == "lower") else "worse"


def check_rows(case, rows, has_values=True):
    """Every row of a record holds together, and its verdict is the one it should have."""
    by_id = {row["id"]: row for row in rows}
    case.assertEqual(len(by_id), len(rows), "ids are unique")
    for row in rows:
        with case.subTest(row=row["id"]):
            case.assertEqual(row["verdict"], verdict_of(row))
            case.assertIn(row["fidelity"], FIDELITIES)
            if has_values:
                values = row["values"]
                case.assertEqual(len(values), row["seeds"])
                case.assertAlmostEqual(sum(values) / len(values), row["measured"],
                                       delta=1e-9 * max(1, *map(abs, values)))
                case.assertEqual([min(values), max(values)], row["spread"])
            if "published" in row:
                case.assertIn(row["verdict"], VERDICTS)
                case.assertIn(row["direction"], ("lower", "higher", "neither"))
            for key in ("price", "beside"):
                if key in row:
                    other = by_id[row[key]["row"]]
                    case.assertEqual([other[k] for k in ("what", "unit", "measured")],
                                     [row[key][k] for k in ("what", "unit", "measured")])
