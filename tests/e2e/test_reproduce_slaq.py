"""berth reproduce slaq: rows as spelled, and what our floor is to do."""
import json
import unittest

from support import DATA, Case
from verdicts import check_rows


class ReproduceSlaq(Case):
    def test_slaq_has_its_rows(self):
        done = self.berth("reproduce", "slaq", "--quick", "--seeds", "1", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {row["id"]: row for row in json.loads(done.stdout)["rows"]}
        check_rows(self, list(rows.values()))
        self.assertEqual({row["fidelity"] for row in rows.values()}, {"tuned"})
        for name in ("mean_loss_change", "t90_change", "t95_change",
                     "loss_seconds_change", "converged_change"):
            for suffix in ("", "_berth", "_oracle"):
                self.assertIn(name + suffix, rows)
        measured = {name: row["measured"] for name, row in rows.items()}
        self.assertEqual(rows["mean_loss_change"]["published"], -0.73)
        self.assertEqual(rows["t90_change"]["published"], -0.44)
        self.assertEqual([rows["t90_change"][key] for key in ("setting", "direction")],
                         ["slaq,floor=0,horizon=0", "lower"])
        self.assertEqual(rows["t90_change_berth"]["price"]["row"], "converged_change_berth")
        self.assertLess(measured["mean_loss_change"], -0.6)
        self.assertLess(measured["t90_change"], -0.35)
        self.assertLess(measured["t90_change_berth"], -0.3)
        self.assertLess(measured["loss_seconds_change_berth"], measured["loss_seconds_change"])
        self.assertLess(measured["converged_change_berth"], measured["converged_change"] / 10)
        # A forecast that is right helps, and not by much: ours is good.
        self.assertLess(measured["t90_change_oracle"], measured["t90_change"])
        self.assertLess(measured["t90_change"], measured["t90_change_oracle"] + 0.1)

    def test_units_go_to_those_with_much_to_learn(self):
        done = self.berth("reproduce", "slaq", "--quick", "--seeds", "1", "--json")
        rows = {row["id"]: row for row in json.loads(done.stdout)["rows"]}
        groups = ("high", "medium", "low")
        self.assertEqual([rows[f"unit_share_{g}"]["published"] for g in groups],
                         [0.60, 0.22, 0.18])
        for suffix in ("", "_berth", "_fair"):
            shares = [rows[f"unit_share_{g}{suffix}"]["measured"] for g in groups]
            self.assertAlmostEqual(sum(shares), 1, places=9)
        self.assertAlmostEqual(rows["unit_share_high_fair"]["measured"], 0.25, places=1)
        self.assertGreater(rows["unit_share_high"]["measured"], 0.6)
        self.assertGreater(rows["unit_share_high_berth"]["measured"], 0.35)

    def test_curves_of_real_training_are_in_it_where_there_are_some(self):
        for data in filter(None, ("/nowhere", DATA)):
            with self.subTest(data=data):
                done = self.berth("reproduce", "slaq", "--quick", "--seeds", "1", "--json",
                                  env={"BERTH_DATA": data})
                self.assertEqual(done.returncode, 0, done.stderr)
                rows = {row["id"]: row["measured"] for row in json.loads(done.stdout)["rows"]}
                self.assertEqual("t90_change_real" in rows, data == DATA)
                if data == DATA:
                    self.assertLess(rows["loss_seconds_change_berth_real"], -0.05)
                    self.assertLess(rows["t90_change_berth_real"], -0.05)
                    self.assertLess(rows["converged_change_berth_real"], 0.05)
        if not DATA:
            self.skipTest("BERTH_DATA not set")

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
