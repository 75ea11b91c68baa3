"""berth reproduce one: rows as spelled, regrets that follow from the cells, seeds not chosen on."""
import json
import unittest

from support import Case

STUDIES = ("fitgpp", "xion", "gavel", "slaq", "jpas", "mixed@0.7", "mixed@0.9", "mixed@1.1",
           "mixed@1.3", "lab", "industry", "sweeps", "box")
MIXED = ("te_p95", "mean", "p95", "t90", "makespan")
OBJECTIVES = {"makespan": "makespan", "fairness": "fairness", "cost": "cost"}


class ReproduceOne(Case):
    def test_it_has_its_rows_and_cells(self):
        done = self.berth("reproduce", "one", "--quick", "--seeds", "1", "--json", timeout=1200)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout)
        self.assertEqual((said["paper"], said["seeds"]), ("one", [4]))
        rows = {row["id"]: row for row in said["rows"]}
        for study in STUDIES:
            self.assertIn(study + "_worst", rows)
            self.assertIn(study + "_mean_regret", rows)
        for load in (0.7, 0.9, 1.1, 1.3):
            for metric in MIXED:
                self.assertIn(f"mixed@{load}_{metric}_regret", rows)
        for objective, metric in OBJECTIVES.items():
            for figure in (metric, "te_p95", "te_p95_gavel", "waste"):
                self.assertIn(f"mixed_{objective}_{figure}_regret", rows)
            self.assertIn(f"gavel_{objective}_{metric}_regret", rows)
        for row in said["rows"]:
            met = row["measured"] <= row["target"]
            self.assertEqual(row["verdict"], "better" if met else "worse", row)
        [chart] = [chart for chart in said["charts"] if chart["kind"] == "regret"]
        self.check_cells(chart["cells"], rows)
        self.check_picture(chart)

    def check_cells(self, cells, rows):
        for cell in cells:
            for metric in cell["metrics"]:
                seeds = {one["policy"]: one["seeds"][0] for one in metric["policies"]}
                subject = metric["policies"][0]
                self.assertTrue(subject["policy"].startswith("berth"))
                others = [seeds[one["policy"]] for one in metric["policies"][1:]]
                self.assertAlmostEqual(subject["regret"], subject["mean"] / min(others) - 1, 6)
                regret = subject["mean"] / seeds[metric["against"]] - 1
                self.assertAlmostEqual(metric["regret"], regret, 6)
                if cell["study"].startswith("mixed@"):
                    row = rows[f"{cell['study']}_{metric['metric']}_regret"]
                    self.assertAlmostEqual(row["measured"], regret, 6)

    def check_picture(self, chart):
        self.assertEqual(chart["series"][0]["name"], "berth")
        self.assertEqual(len(chart["series"][0]["y"]), len(chart["groups"]))
        for series in chart["series"]:
            self.assertEqual(len(series["x"]), len(series["y"]))
            self.assertTrue(all(0 <= at < len(chart["groups"]) for at in series["x"]))


if __name__ == "__main__":
    unittest.main()
