"""Units for systemd: they are read without a complaint, and expose little."""
import glob
import os
import re
import shutil
import subprocess
import unittest

from support import BUILD

EXPOSURE_MAX = 3.0 # of 10, as 'systemd-analyze security' counts

# Units that start no job: what they are denied is denied to nobody else.
SEALED = ["berth-flowd.service", "system-berthd-slurm.service", "system-berth-launch-slurm.service"]
# Jobs are children of these, and inherit what is set.
PARENTS = ["user-berthd.service"]


def unit(name):
    return os.path.join(BUILD, name)


class Commands(unittest.TestCase):
    def test_programs_have_the_flags_that_units_use(self):
        used = 0
        for path in glob.glob(unit("*.service")):
            with open(path, encoding="utf-8") as file:
                line = re.search(r"(?m)^ExecStart=(\S+)(.*)$", file.read())
            if not os.path.basename(line.group(1)).startswith("berth"):
                continue # not one of ours
            program = unit(os.path.basename(line.group(1)))
            done = subprocess.run([program, "--help"], capture_output=True, text=True, check=True)
            for flag in re.findall(r"--[a-z-]+", line.group(2)):
                self.assertIn(flag + " ", done.stdout, path)
                used += 1
        self.assertGreater(used, 10)


class Units(unittest.TestCase):
    def setUp(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("systemd-analyze is not installed")

    def analyze(self, name):
        done = subprocess.run(
            ["systemd-analyze", "security", "--offline=true", "--no-pager", unit(name)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            env={**os.environ, "LC_ALL": "C.UTF-8"})
        if "unrecognized option" in done.stderr:
            self.skipTest("systemd-analyze is older than 250: it cannot look at files")
        return done

    def test_what_starts_no_job_is_sealed(self):
        for name in SEALED:
            with self.subTest(unit=name):
                done = self.analyze(name)
                found = re.search(r"Overall exposure level for \S+: (\d+\.\d+)", done.stdout)
                self.assertTrue(found, done)
                self.assertLess(float(found.group(1)), EXPOSURE_MAX, done.stdout)

    def test_every_line_is_understood(self):
        names = [os.path.basename(path) for path in glob.glob(unit("*.service"))]
        self.assertTrue({*SEALED, *PARENTS} <= set(names), names)
        for name in names:
            with self.subTest(unit=name):
                self.assertNotRegex(self.analyze(name).stderr, "Unknown|Invalid|Failed to parse")

    def test_jobs_inherit_no_restriction(self):
        for name in PARENTS:
            with open(unit(name), encoding="utf-8") as file:
                self.assertNotRegex(file.read(), r"(?m)^(OOMScoreAdjust|NoNewPrivileges|"
                                    r"Protect\w+|Private\w+|Restrict\w+|SystemCall\w+)=")
