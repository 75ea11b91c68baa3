"""berth reproduce: rows as spelled, a page, and wrong words refused."""
import json
import unittest

from support import Case
from verdicts import check_rows


class Reproduce(Case):
    def rows(self, paper):
        done = self.berth("reproduce", paper, "--quick", "--seeds", "1", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual(found["paper"], paper)
        self.assertTrue(found["quick"])
        self.assertEqual(found["seeds"], [1])
        self.assertTrue(found["title"] and found["citation"] and found["setup"])
        self.assertTrue(all(chart["series"] for chart in found["charts"]))
        check_rows(self, found["rows"])
        return {row["id"]: row for row in found["rows"]}

    def test_fitgpp_has_its_rows(self):
        rows = self.rows("fitgpp")
        for name in ("te_p95_change", "be_p50_change", "be_p95_change", "preempted_share"):
            for suffix in ("", "_lrtp", "_rand"):
                self.assertIn(name + suffix, rows)
        trial = rows["te_p95_change"]
        self.assertEqual((trial["published"], trial["tolerance"], trial["unit"]),
                         (-0.966, 0.015, "change"))
        self.assertNotIn("tolerance", rows["preempted_share"]) # nothing was published
        self.assertEqual(rows["preempted_share"]["verdict"], "no figure published")
        self.assertEqual((trial["direction"], trial["fidelity"], trial["price"]["row"],
                          trial["beside"]["row"]),
                         ("lower", "reconstructed", "be_p50_change", "te_p95_change_rand"))
        self.assertLess(trial["measured"], -0.9)
        self.assertLessEqual(trial["spread"][0], trial["measured"])
        self.assertGreaterEqual(trial["spread"][1], trial["measured"])

    def test_xion_has_its_rows(self):
        rows = self.rows("xion")
        for name in ("jct_change_vs_srtf", "wait_ratio_vs_srtf", "worst_regret_vs_best",
                     "gain_over_sjf"):
            self.assertIn(name, rows)
        self.assertLess(rows["jct_change_vs_srtf"]["measured"], 0)
        self.assertLess(rows["worst_regret_vs_best"]["measured"], 0.05)

    def test_the_table_says_what_a_figure_rests_on_and_costs(self):
        done = self.berth("reproduce", "fitgpp", "--quick", "--seeds", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = {line.split()[0]: line for line in done.stdout.splitlines() if line.strip()}
        self.assertRegex(lines["figure"], "verdict +fidelity +price")
        self.assertRegex(lines["te_p95_change"], "reproduced +reconstructed +.* be_p50_change$")
        self.assertRegex(lines["preempted_share"], "% +1 +reconstructed *$")

    def test_the_same_twice_is_the_same(self):
        self.assertEqual(self.rows("fitgpp"), self.rows("fitgpp"))

    def test_wrong_words_are_refused(self):
        for words in (("reproduce",), ("reproduce", "fitgp"), ("reproduce", "fitgpp", "xion"),
                      ("reproduce", "fitgpp", "--seeds", "0"),
                      ("reproduce", "all", "--report", "f.html")):
            with self.subTest(words=words):
                done = self.berth(*words)
                self.assertEqual(done.returncode, 2)
                self.assertEqual(done.stdout, "")
                self.assertEqual(done.stderr.count("\n"), 1)

    def test_the_ledger_has_a_line_per_preemption(self):
        done = self.berth("sim", "--cluster", "2xv100:8", "--workload",
                          "xion:gpus=16,load=0.8,cost=2,jobs=500", "--policy", "srtf",
                          "--ledger", "ledger.csv", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        with open(self.path("ledger.csv"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.assertGreater(found["preemptions"], 0)
        self.assertEqual(found["ledger"]["preemptions"], found["preemptions"])
        self.assertEqual(len(lines), found["preemptions"] + 1)
        column = lines[0].split(",").index("actual_cost_gpu_s")
        self.assertAlmostEqual(sum(float(line.split(",")[column]) for line in lines[1:]),
                               found["ledger"]["actual_cost_gpu_s"], delta=1)


if __name__ == "__main__":
    unittest.main()
