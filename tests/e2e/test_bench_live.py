"""berth bench live: every figure is there, and nothing is left behind.  Slow: soak only."""
import json
import os
import tempfile
import unittest

from support import Case

ROWS = {"submit_singly": "jobs/s", "submit.p50": "ms", "submit.p99": "ms",
        "submit_8_clients": "jobs/s", "cancel_10000": "s", "waiting_20000_rss": "MB",
        "restart_20000_waiting": "s",
        "submit_batch": "jobs/s", "freed_to_running.p50": "ms", "trial_to_warning.p50": "ms",
        "trivial_jobs": "jobs/s", "trivial_jobs_singly": "jobs/s",
        "trivial_jobs_tmpfs": "jobs/s", "trivial_jobs_tmpfs.berthd_cpu": "us",
        "trivial_jobs_loaded": "jobs/s", "trivial_jobs_singly_loaded": "jobs/s",
        "trivial_jobs_tmpfs_loaded": "jobs/s", "decision_10000.p99": "ms",
        "why_10000.p50": "ms", "can_never_run.p50": "ms", "restart_100000": "s",
        "restart_100000_waiting": "s", "restart_200000_waiting": "s", "idle_rss": "MB", "idle_cpu": "%"}


class BenchLive(Case):
    def test_every_figure_is_there(self):
        if not os.environ.get("BERTH_SOAK"):
            self.skipTest("takes a minute; make soak runs it")
        places = tempfile.mkdtemp(prefix="b", dir="/tmp")
        self.addCleanup(os.rmdir, places)  # fails if something was left in it
        done = self.berth("bench", "live", "--json", env={"TMPDIR": places},
                          timeout=600)
        self.assertEqual(done.returncode, 0, done)
        rows = {row["id"]: row for row in json.loads(done.stdout)["rows"]}
        for name, unit in ROWS.items():
            self.assertEqual(rows[name]["unit"], unit, name)
            self.assertGreaterEqual(rows[name]["value"], 0, name)
            self.assertGreater(rows[name]["n"], 0, name)


if __name__ == "__main__":
    unittest.main()
