"""berth bench slurm: every figure is there, and nothing is left behind.  Slow: soak only."""
import json
import os
import shutil
import subprocess
import unittest

from slurm_lab import missing
from support import BUILD, Case

ROWS = {"swap.p50": "s", "swap.p95": "s", "swap_saved_early.p50": "s",
        "trivial_jobs.slurm": "jobs/s", "trivial_jobs": "jobs/s",
        "trivial_jobs_without_bell": "jobs/s", "makespan.slurm": "s",
        "makespan.gavel-makespan": "s", "makespan.gavel-las": "s", "makespan.allox": "s",
        "taken_in_5000": "jobs/s", "poll_5000.berthd": "ms CPU",
        "poll_5000.berth-slurm": "ms CPU", "decision_5000.fitgpp.p99": "ms",
        "decision_5000.las.p99": "ms", "decision_5000.srtf.p99": "ms"}


class BenchSlurm(Case):
    @unittest.skipIf(missing(), missing())
    def test_every_figure_is_there(self):
        if not os.environ.get("BERTH_SOAK"):
            self.skipTest("takes minutes; make soak runs it")
        done = self.berth("bench", "slurm", "--json", timeout=1800)
        self.assertEqual(done.returncode, 0, done)
        rows = {row["id"]: row for row in json.loads(done.stdout)["rows"]}
        for name, unit in ROWS.items():
            self.assertEqual(rows[name]["unit"], unit, name)
            self.assertGreaterEqual(rows[name]["value"], 0, name)
            self.assertGreater(rows[name]["n"], 0, name)

    def test_without_the_sources_it_says_so(self):
        lonely = self.path("berth")
        shutil.copy(os.path.join(BUILD, "berth"), lonely)
        for words in ([], ["--json"]):
            done = subprocess.run([lonely, "bench", "slurm", *words], cwd="/", text=True,
                                  capture_output=True, check=False, timeout=60)
            self.assertEqual((done.returncode, done.stdout), (1, ""), done)
            self.assertIn("tests/slurm/lab, is not here", done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
