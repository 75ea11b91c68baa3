"""berth reproduce slaq: rows as spelled, and what our floor is to do."""
import json
import unittest

from support import Case


class ReproduceSlaq(Case):
    def test_slaq_has_its_rows(self):
        done = self.berth("reproduce", "slaq", "--quick", "--seeds", "1", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {row["id"]: row for row in json.loads(done.stdout)["rows"]}
        for name in ("mean_loss_change", "t90_change", "t95_change",
                     "loss_seconds_change", "converged_change"):
            for suffix in ("", "_berth"):
                self.assertIn(name + suffix, rows)
        measured = {name: row["measured"] for name, row in rows.items()}
        self.assertEqual(rows["mean_loss_change"]["published"], -0.73)
        self.assertEqual(rows["t90_change"]["published"], -0.44)
        self.assertLess(measured["mean_loss_change"], -0.6)
        self.assertLess(measured["t90_change"], -0.35)
        self.assertLess(measured["t90_change_berth"], -0.2)
        self.assertLess(measured["loss_seconds_change_berth"], measured["loss_seconds_change"])
        self.assertLess(measured["converged_change_berth"], measured["converged_change"] / 3)

    def test_curves_are_known_only_where_they_are_declared(self):
        def figures(policy, *flags):
            done = self.berth("sim", "--workload", "slaq:jobs=20,gap=5", "--policy", policy,
                              "--json", *flags)
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout)["quality"]

        told = figures("slaq,forecast=declared", "--declare-curves")
        self.assertNotEqual(told, figures("slaq,forecast=declared"))
        self.assertEqual(figures("slaq"), figures("slaq,forecast=declared"))
        self.assertEqual(figures("slaq"), figures("slaq", "--declare-curves"))


if __name__ == "__main__":
    unittest.main()
