"""berth reproduce forecast: rows for every policy, verdicts by their targets, seeds not chosen on."""
import json
import unittest

from support import Case

POLICIES = ("fifo", "fifo-backfill", "las", "srtf", "xion", "berth")


class ReproduceForecast(Case):
    def test_every_policy_is_compared_with_what_happened(self):
        done = self.berth("reproduce", "forecast", "--quick", "--json", timeout=1200)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout)
        self.assertEqual((said["paper"], said["seeds"]), ("forecast", [301]))
        rows = {row["id"]: row for row in said["rows"]}
        for policy in POLICIES:
            self.assertGreaterEqual(rows[f"mixed_{policy}_end_forecasts"]["measured"], 20)
            for suffix in ("_sizes", "_names", ""):
                coverage = rows[f"mixed_{policy}_end_coverage{suffix}"]["measured"]
                self.assertTrue(0 <= coverage <= 1, (policy, suffix))
            # Of a few dozen jobs: far from what chance can do to right intervals and to a right median.
            self.assertTrue(0.4 <= rows[f"mixed_{policy}_end_coverage"]["measured"] <= 1, policy)
            self.assertLess(rows[f"mixed_{policy}_end_pinball_names"]["measured"], 1, policy)
        self.assertIn("mixed_fifo_start_pinball", rows)
        self.assertEqual(rows["mixed_fifo_start_absent"]["measured"], 0)
        for row in said["rows"]:
            if "target" in row:
                met = row["measured"] <= row["target"]
                self.assertEqual(row["verdict"], "better" if met else "worse", row)
        self.assertEqual(len(said["charts"]), 2)


if __name__ == "__main__":
    unittest.main()
