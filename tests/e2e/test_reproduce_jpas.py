"""berth reproduce jpas: rows as spelled, and what our variant is to do."""
import json
import unittest

from support import Case
from verdicts import check_rows


class ReproduceJpas(Case):
    def test_jpas_has_its_rows(self):
        done = self.berth("reproduce", "jpas", "--quick", "--seeds", "1", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {row["id"]: row for row in json.loads(done.stdout)["rows"]}
        check_rows(self, list(rows.values()))
        self.assertEqual({row["fidelity"] for row in rows.values()}, {"reconstructed"})
        for name in ("t90_change_best", "t95_change_best", "t90_change", "t95_change",
                     "jct_change"):
            for suffix in ("", "_berth"):
                self.assertIn(name + suffix, rows)
        self.assertEqual(rows["t90_change_best"]["published"], -0.38)
        for name in ("t90_change_best", "t95_change_best", "t90_change_best_berth"):
            price = rows[name]["price"]
            self.assertEqual(price["row"], f"jct_change_at_{name}")
            self.assertIn("a job every", rows[name]["setting"])
            self.assertEqual(rows[name]["setting"], rows[price["row"]]["setting"])
        self.assertLess(rows["t90_change"]["measured"], -0.1)
        self.assertLess(rows["t90_change_berth"]["measured"], -0.2)
        self.assertLess(rows["jct_change_berth"]["measured"], 0.15)


if __name__ == "__main__":
    unittest.main()
