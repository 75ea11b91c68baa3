"""make demo-slurm: a trial job evicts on a real Slurm, and nothing is left of it."""
import glob
import os
import signal
import subprocess
import time
import unittest

from slurm_lab import missing
from support import BUILD, ROOT, Case

DEMO = os.path.join(ROOT, "tools", "demo-slurm")


def folders():
    return set(glob.glob("/tmp/bd.*"))


class DemoSlurm(Case):
    @unittest.skipIf(missing(), missing())
    def test_it_shows_an_eviction_and_cleans_up(self):
        before = folders()
        done = subprocess.run([DEMO, "--quick", BUILD], text=True, stdin=subprocess.DEVNULL,
                              env={**os.environ, "NO_COLOR": "1", "COLUMNS": "80"},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=250)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"job \d+ runs [0-9.]+ s after it was typed, on n\d")
        self.assertRegex(done.stdout, r"saved at step (\d+)\n  attempt \d on \S+, from step \1\n")
        self.assertRegex(done.stdout, r"VICTIM +FOR +RULE")
        ours = [line for line in done.stdout.split("\n")
                if not line.startswith("[hwloc/")] # slurmd, where there is no /sys
        self.assertLessEqual(max(map(len, ours)), 80)
        self.assertEqual(folders() - before, set())

    @unittest.skipIf(missing(), missing())
    def test_it_cleans_up_when_it_is_interrupted(self):
        before = folders()
        demo = subprocess.Popen([DEMO, "--quick", BUILD], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(demo.stdout.close)
        for line in demo.stdout:
            if "sbatch -J large" in line:
                break
        mine = folders() - before
        demo.send_signal(signal.SIGINT)
        demo.stdout.read()
        self.assertEqual(demo.wait(timeout=60), 130)
        end = time.monotonic() + 20
        while mine & folders():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)

    def test_it_says_what_is_missing(self):
        """Somebody who is not root is told so in one sentence."""
        if os.geteuid() != 0:
            self.skipTest("only root can become somebody else")
        with open(DEMO, encoding="utf-8") as file:
            text = file.read().replace("os.path.abspath(__file__)", repr(DEMO))
        done = subprocess.run(["python3", "-"], input=text, text=True, user=65534,
                              group=65534, extra_groups=[], cwd="/", capture_output=True,
                              check=False, env={"PATH": "/usr/bin:/bin"}, timeout=60)
        self.assertEqual((done.returncode, done.stderr),
                         (1, "demo-slurm: only root can start a Slurm of its own\n"))


if __name__ == "__main__":
    unittest.main()
