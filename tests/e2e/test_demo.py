"""make demo, its live half: what it shows is what happened, and nothing is left of it."""
import os
import subprocess
import unittest

from support import BUILD, ROOT, Case


class Demo(Case):
    def test_it_shows_a_preemption_and_cleans_up(self):
        places = self.path("t")
        os.mkdir(places)
        # A socket's path is short, and the scratch folder's is not.
        link = f"/tmp/berth-t{os.getpid()}"
        os.symlink(places, link)
        self.addCleanup(os.unlink, link)
        done = subprocess.run([os.path.join(ROOT, "tools", "demo"), "--quick", BUILD],
                              env={**os.environ, "TMPDIR": link, "NO_COLOR": "1"}, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=280)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"runs \d+ ms after it was typed")
        self.assertRegex(done.stdout, r"in the slot of '(large|slow|nimble)'")
        self.assertRegex(done.stdout, r"stopped at step (\d+)\n  attempt 1 from step \1\n")
        self.assertRegex(done.stdout, r"\$ berth ledger\n.*VICTIM.*\n(.*\n)* +\d\d:\d\d:\d\d +\d +5 +trial")
        self.assertNotIn("FAILED", done.stdout)
        self.assertEqual(os.listdir(places), [])

    def test_it_is_what_make_demo_runs(self):
        with open(os.path.join(ROOT, "Makefile"), encoding="utf-8") as file:
            self.assertIn("tools/demo", file.read())


if __name__ == "__main__":
    unittest.main()
