"""Shared by the end-to-end tests: paths of the programs, a scratch folder, runs of berth."""
import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BERTH_BUILD", os.path.join(ROOT, "build"))
BERTH = os.environ.get("BERTH", os.path.join(BUILD, "berth"))
DATA = os.environ.get("BERTH_DATA")


class Case(unittest.TestCase):
    """A test that can run berth, with an empty folder that is removed afterwards."""

    def setUp(self):
        if not os.access(BERTH, os.X_OK):
            self.skipTest(f"{os.path.relpath(BERTH, ROOT)} is not built")
        self.scratch = tempfile.mkdtemp(prefix="berth e2e ")
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)

    def berth(self, *words, env=None, **more):
        """Run berth in the scratch folder; returns status, stdout and stderr."""
        more.setdefault("timeout", 300)
        return subprocess.run(
            [BERTH, *words], cwd=self.scratch, env={**os.environ, **(env or {})}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)

    def path(self, name):
        return os.path.join(self.scratch, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return name

    def files(self):
        return sorted(os.listdir(self.scratch))

    def assert_refused(self, *words, says=""):
        """Wrong usage or input: status 2, one sentence on stderr, and no other output."""
        before = self.files()
        done = self.berth(*words)
        self.assertEqual(done.returncode, 2, done)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"\Aberth[^\n]*: [^\n]+\n\Z")
        self.assertIn(says, done.stderr)
        self.assertEqual(self.files(), before)
        return done.stderr
