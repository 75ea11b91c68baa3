"""berth check-ckpt: which jobs honour the contract, and which do not."""
import json
import os
import tempfile
import unittest

from support import ROOT, Case

EXAMPLES = os.path.join(ROOT, "examples")

# A job in the shell; what it does at the warning and how it begins is filled in.
SHELL = r"""
step=0
%s
trap '%s' TERM
while [ $step -lt 1000 ]; do step=$((step + 1)); echo step $step; sleep 0.02; done
"""
FILE = '"$BERTH_CKPT_DIR/step"'
LOAD = f"[ -e {FILE} ] && step=$(cat {FILE})"


class CheckCkpt(Case):
    def setUp(self):
        super().setUp()
        self.places = tempfile.mkdtemp(prefix="b", dir="/tmp")
        self.addCleanup(os.rmdir, self.places)  # fails if something was left in it

    def check(self, *words, after="300ms", within="40s", grace="20s", flags=()):
        done = self.berth("check-ckpt", "--json", "--after", after, "--within", within,
                          "--grace", grace, *flags, "--", *words,
                          env={"TMPDIR": self.places})
        self.assertIn(done.returncode, (0, 1), done)
        self.assertEqual(done.stderr, "")
        answer = json.loads(done.stdout)
        self.assertEqual(answer["honours"], done.returncode == 0, answer)
        self.assertTrue(answer["evidence"])
        return answer

    def shell(self, begin, at_warning, **more):
        return self.check("sh", "-c", SHELL % (begin, at_warning), **more)

    def test_a_job_with_the_package_honours_it(self):
        answer = self.check("python3", os.path.join(EXAMPLES, "train.py"))
        self.assertTrue(answer["honours"], answer)
        self.assertEqual(answer["exit_code"], 85)
        self.assertTrue(answer["saved_after_warning"])
        self.assertGreaterEqual(answer["step_resumed"], answer["step_reached"])

    def test_a_job_with_files_and_a_signal_honours_it(self):
        answer = self.check("python3", os.path.join(EXAMPLES, "train_plain.py"))
        self.assertTrue(answer["honours"], answer)

    def test_a_job_known_by_a_pattern_honours_it(self):
        answer = self.check("python3", os.path.join(EXAMPLES, "train_plain.py"),
                            flags=("--pattern", "step ([0-9]+) loss ([0-9.]+)"))
        self.assertTrue(answer["honours"], answer)

    def test_a_job_that_says_nothing_but_uses_its_checkpoint_honours_it(self):
        answer = self.check("sh", "-c", f"cat {FILE} 2>/dev/null; trap 'exit 85' TERM; "
                            f"while :; do echo x > {FILE}; sleep 0.1; done")
        self.assertTrue(answer["honours"], answer)
        self.assertNotIn("step_resumed", answer)

    def test_a_job_that_dies_of_the_signal_but_saved_before_honours_it(self):
        answer = self.check("sh", "-c", f"step=0; {LOAD}; while :; do step=$((step + 1)); "
                            f"echo $step > {FILE}.new; mv {FILE}.new {FILE}; "
                            "echo step $step; sleep 0.02; done")
        self.assertTrue(answer["honours"], answer)
        self.assertEqual(answer["exit_code"], 143)

    def test_a_job_that_ignores_the_warning_does_not(self):
        answer = self.shell("", "", grace="1s")
        self.assertFalse(answer["stops_in_time"], answer)
        self.assertEqual(answer["exit_code"], 137)
        self.assertIn("killed", answer["wrong"])

    def test_a_job_that_begins_again_does_not(self):
        answer = self.shell("", "exit 85")
        self.assertTrue(answer["stops_in_time"], answer)
        self.assertFalse(answer["resumes"], answer)
        self.assertLess(answer["step_resumed"], answer["step_reached"])

    def test_a_job_that_saves_and_does_not_load_does_not(self):
        answer = self.shell("", f"echo $step > {FILE}; exit 85")
        self.assertFalse(answer["resumes"], answer)

    def test_a_job_that_calls_the_warning_an_end_does_not(self):
        answer = self.shell(LOAD, f"echo $step > {FILE}; exit 0")
        self.assertFalse(answer["resumes"], answer)
        self.assertIn("status 0", answer["wrong"])

    def test_a_job_that_fails_when_started_again_does_not(self):
        answer = self.shell('[ "$BERTH_RESUME" = 0 ] || exit 7', "exit 85")
        self.assertFalse(answer["resumes"], answer)
        self.assertIn("failed", answer["wrong"])

    def test_a_job_that_is_over_at_once_does_not(self):
        answer = self.check("true")
        self.assertFalse(answer["stops_in_time"] or answer["resumes"], answer)
        self.assertIn("done before", answer["wrong"])

    def test_a_job_that_cannot_start_does_not(self):
        answer = self.check("/nowhere/at/all")
        self.assertIn("failed before", answer["wrong"])

    def test_people_get_lines_and_a_verdict(self):
        done = self.berth("check-ckpt", "--after", "200ms", "--", "sh", "-c",
                          SHELL % (LOAD, f"echo $step > {FILE}; exit 85"),
                          env={"TMPDIR": self.places})
        self.assertEqual(done.returncode, 0, done)
        self.assertRegex(done.stdout, r"left after [0-9.]+ s with status 85")
        self.assertRegex(done.stdout, r"Honours the contract[^\n]*\n\Z")

    def test_wrong_usage(self):
        self.assert_refused("check-ckpt", says="want a command")
        self.assert_refused("check-ckpt", "--after", "soon", "true", says="--after")
        self.assert_refused("check-ckpt", "--pattern", "(", "true", says="pattern")
        self.assert_refused("check-ckpt", "--grace", "x", "true", says="grace")


if __name__ == "__main__":
    unittest.main()
