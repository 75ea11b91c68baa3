"""The system's berthd is stopped, or restarts: no command starts another one meanwhile."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from live import PATIENCE
from support import BERTH, ROOT, Case

# In a mount namespace of its own, where /run is a folder of this test.
COVER = ["unshare", "--mount", "--propagation", "private", "sh", "-c",
         'mount --bind "$0" /run && exec "$@"']


@unittest.skipUnless(os.geteuid() == 0, "needs root for a mount namespace")
class Away(Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="berth-away-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.run_folder = os.path.join(self.folder, "run")
        os.makedirs(os.path.join(self.run_folder, "berth"))
        self.env = {**os.environ, "XDG_RUNTIME_DIR": self.folder, "HOME": self.folder,
                    "XDG_STATE_HOME": self.folder + "/state", "BERTH_ADDR": "",
                    "BERTH_NO_START": ""}

    def start(self, *words):
        return subprocess.Popen([*COVER, self.run_folder, *words], env=self.env, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def end(self, process):
        out, err = process.communicate(timeout=PATIENCE)
        return process.returncode, out, err

    def put_system_back(self):
        """A berthd that answers where the system's does."""
        state = os.path.join(self.folder, "systems")
        self.addCleanup(subprocess.run, [BERTH, "down", "--kill", "--socket",
                                         f"{state}/run/api.sock"], stdout=subprocess.DEVNULL)
        subprocess.run([BERTH, "up", "--state", state, "--fake-gpus", "v100:3"], env=self.env,
                       stdout=subprocess.DEVNULL, check=True)
        os.symlink(f"{state}/run/api.sock", os.path.join(self.run_folder, "berth/api.sock"))

    def assert_nothing_was_started(self):
        for path in ("berth", "state/berth/berth.db", "state/berth/berthd.log"):
            self.assertFalse(os.path.exists(os.path.join(self.folder, path)), path)

    def test_a_command_says_so_and_starts_none(self):
        code = ("import sys\nsys.path.insert(0, sys.argv[1])\nimport berth\n"
                "berth.submit(print, 1)\n")
        commands = [self.start(BERTH, *words) for words in
                    (["queue"], ["submit", "true"], ["run", "true"])]
        program = self.start(sys.executable, "-c", code, os.path.join(ROOT, "python"))
        for command in commands:
            status, out, err = self.end(command)
            self.assertEqual((status, out), (1, ""), err)
            self.assertRegex(err, r"berth \w+: this machine's berthd does not answer at "
                                  r"/run/berth/api\.sock; 'berth up' starts one of your own\n\Z")
        status, _, err = self.end(program)
        self.assertEqual(status, 1)
        self.assertIn("this machine's berthd does not answer at /run/berth/api.sock", err)
        self.assert_nothing_was_started()

    def test_a_command_waits_until_it_answers(self):
        command = self.start(BERTH, "submit", "--parsable", "true")
        self.assertEqual(command.stderr.readline(),
                         "berth submit: this machine's berthd does not answer; waiting\n")
        self.put_system_back()
        self.assertEqual(self.end(command), (0, "1\n", ""))
        self.assert_nothing_was_started()

    def test_a_program_in_python_waits_until_it_answers(self):
        code = ("import sys\nsys.path.insert(0, sys.argv[1])\nfrom berth import _call\n"
                "print('in', flush=True)\n"
                "print(_call.call('GET', '/v1/server')['gpus']['total'])\n")
        program = self.start(sys.executable, "-c", code, os.path.join(ROOT, "python"))
        self.assertEqual(program.stdout.readline(), "in\n")
        self.put_system_back()
        self.assertEqual(self.end(program), (0, "3\n", ""))
        self.assert_nothing_was_started()

    def test_who_wants_one_of_his_own_gets_it(self):
        self.addCleanup(lambda: self.end(self.start(BERTH, "down", "--kill")))
        status, out, err = self.end(self.start(BERTH, "up"))
        self.assertEqual(status, 0, err)
        self.assertIn(f"berthd is up at {self.folder}/berth/api.sock", out)
        self.assertEqual(self.end(self.start(BERTH, "run", "echo", "mine")), (0, "mine\n", ""))

    def test_doctor_says_whose_it_is(self):
        _, out, _ = self.end(self.start(BERTH, "doctor"))
        self.assertIn("no berthd answers at /run/berth/api.sock", out)
        self.assertIn("systemctl start berthd", " ".join(out.split()))
        self.assert_nothing_was_started()


if __name__ == "__main__":
    unittest.main()
