"""The command line as people meet it: help, mistakes, pipes, terminals."""
import json
import os
import pty
import re
import subprocess
import time
import unittest

from support import BERTH, ROOT, Case

COMMANDS = ["sim", "compare", "gen", "import", "fit", "policies", "reproduce", "bench",
            "run", "submit", "queue", "show", "why", "logs", "cancel", "hold", "release", "set",
            "top", "nodes", "history", "ledger", "flows", "ui", "up", "down", "doctor"]
SMALL = ("--cluster", "4xv100:8", "--workload", "synthetic:jobs=50,load=0.8")


class Help(Case):
    def test_version_is_the_one_of_the_build(self):
        done = self.berth("--version")
        with open(os.path.join(ROOT, "meson.build"), encoding="utf-8") as file:
            version = re.search(r"version: '([\d.]+)'", file.read()).group(1)
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (0, f"berth {version}\n", ""))

    def test_help_lists_the_commands(self):
        for word in ("--help", "-h", "help"):
            done = self.berth(word)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            for command in COMMANDS:
                self.assertRegex(done.stdout, rf"(?m)^  {command} +\S")

    def test_every_command_has_help(self):
        for command in COMMANDS:
            done = self.berth(command, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertTrue(done.stdout.startswith(f"Usage: berth {command} "))
            self.assertIn("--help", done.stdout)

    def test_help_fits_a_terminal(self):
        for words in [[], *([c] for c in COMMANDS)]:
            for line in self.berth(*words, "--help").stdout.splitlines():
                self.assertLessEqual(len(line), 120, line)


class Mistakes(Case):
    def test_no_command_shows_the_commands_on_stderr(self):
        done = self.berth()
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("Usage: berth COMMAND", done.stderr)

    def test_a_wrong_command_suggests_the_nearest(self):
        self.assert_refused("smi", says="did you mean 'sim'")
        self.assert_refused("polices", says="did you mean 'policies'")
        self.assert_refused("sumbit", says="did you mean 'submit'")
        self.assert_refused("frobnicate", says="no command 'frobnicate'")
        self.assert_refused("", says="no command")

    def test_a_wrong_flag_suggests_the_nearest(self):
        self.assert_refused("sim", "--polcy", "fifo", says="did you mean 'policy'")
        self.assert_refused("import", "FILE", "--fromat", "swf", says="'--fromat'")
        self.assert_refused("sim", "-q", says="no flag '-q'")

    def test_a_flag_without_its_value(self):
        self.assert_refused("sim", "--cluster", says="--cluster needs a value")

    def test_a_value_for_a_flag_that_takes_none(self):
        self.assert_refused("policies", "--json=yes", says="--json takes no value")

    def test_what_is_required_is_asked_for(self):
        self.assert_refused("sim", says="--")
        self.assert_refused("sim", "--cluster", "4xv100:8", "--policy", "fifo",
                            says="--workload")
        self.assert_refused("compare", *SMALL, says="--policy")
        self.assert_refused("gen", says="--preset")
        self.assert_refused("import", says="file")

    def test_a_policy_that_is_not_given_is_berth(self):
        done = self.berth("sim", *SMALL, "--json")
        self.assertEqual(json.loads(done.stdout)["policy"], "berth", done)
        self.assertTrue(self.berth("policies").stdout.startswith("berth "))

    def test_an_unknown_policy_suggests_the_nearest(self):
        said = self.assert_refused("sim", *SMALL, "--policy", "stfr")
        self.assertIn("'srtf'", said)
        said = self.assert_refused("policies", "backfill")
        self.assertIn("'fifo-backfill'", said)

    def test_an_unknown_setting_is_refused(self):
        self.assert_refused("sim", *SMALL, "--policy", "las,nonsense=3", says="nonsense")
        self.assert_refused("sim", *SMALL, "--policy", "fifo,x=1", says="x")

    def test_a_wrong_cluster_is_refused(self):
        for cluster in ("", "v100", "v100:0", "0xv100:8", "v100:-1", "v100:8,", ":8",
                        "4xv100:99999999999", "no-such-file.yaml"):
            with self.subTest(cluster=cluster):
                self.assert_refused("sim", "--cluster", cluster, "--workload",
                                    "synthetic:jobs=5", "--policy", "fifo")

    def test_a_wrong_workload_is_refused(self):
        for workload in ("", "no-such-preset", "no-such-file.csv", "synthetic:jobs=x",
                         "synthetic:jobs", "synthetic:nonsense=1", "."):
            with self.subTest(workload=workload):
                self.assert_refused("sim", "--cluster", "4xv100:8", "--workload", workload,
                                    "--policy", "fifo")

    def test_a_wrong_number_is_refused(self):
        for flags in (("--seed", "-1"), ("--seed", "x"), ("--seed", ""), ("--window", "5"),
                      ("--window", "9:3"), ("--cost-error", "nan"),
                      ("--estimate-error", "-1"), ("--faults", "mtbf=never")):
            with self.subTest(flags=flags):
                self.assert_refused("sim", *SMALL, "--policy", "fifo", *flags)

    def test_a_place_that_cannot_be_written_is_told(self):
        for flag in ("--jobs-out", "--trace-out", "--ledger", "--report"):
            with self.subTest(flag=flag):
                done = self.berth("sim", *SMALL, "--policy", "fifo", flag, "no/such/folder/f")
                self.assertIn(done.returncode, (1, 2))
                self.assertRegex(done.stderr, r"\Aberth sim: [^\n]*no/such/folder/f[^\n]*\n\Z")


    def test_settings_in_the_wrong_place_are_recognised(self):
        run = ("sim", "--cluster", "4xv100:8")
        self.assert_refused(*run, "--workload", "synthetic:jobs=5", "--policy", "las:quantum=5s",
                            says="las,setting=value")
        self.assert_refused(*run, "--workload", "synthetic,jobs=5", "--policy", "las",
                            says="synthetic:setting=value")
        self.assert_refused(*run, "--workload", "synthetic", "--format", "swf", "--policy", "las",
                            says="is a preset, want a file")
        self.assert_refused("import", "FILE", "--format", "SWF", says="no such file")
        self.assert_refused("import", BERTH, "--format", "SWF", says="did you mean 'swf'")

    def test_a_window_without_jobs_is_refused(self):
        self.assert_refused("sim", *SMALL, "--policy", "fifo", "--window", "100:200",
                            says="there are only 50")
        self.assert_refused("sim", *SMALL, "--policy", "fifo", "--window", ":5", says="A:B")

    def test_a_run_without_end_ends(self):
        done = self.berth("sim", "--cluster", "v100:2", "--workload", "synthetic:jobs=2",
                          "--policy", "fifo", "--faults", "mtbf=1s,mttr=1s")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"\Aberth sim: no end in sight under fifo: none of "
                                      r"[^\n]*--faults[^\n]*\n\Z")

    def test_one_policy_is_simulated_several_are_compared(self):
        self.assert_refused("sim", *SMALL, "--policy", "fifo", "--policy", "las",
                            says="'berth compare' takes several")

    def test_no_output_takes_the_place_of_another_or_of_what_is_read(self):
        run = ("sim", "--cluster", "4xv100:8", "--policy", "fifo", "--workload")
        self.berth("gen", "--preset", "synthetic:jobs=5", "-o", "jobs.csv")
        self.assert_refused(*run, "jobs.csv", "--jobs-out", "./jobs.csv",
                            says="which is read by --workload")
        self.assert_refused(*run, "jobs.csv", "--jobs-out", "a", "--ledger", "a",
                            says="--jobs-out and --ledger both name a")
        self.assert_refused(*run, "jobs.csv", "--jobs-out", "-", "--json",
                            says="both want standard output")


class Output(Case):
    def test_policies_are_a_list_one_has_its_settings(self):
        listed = self.berth("policies").stdout.splitlines()
        named = [p["name"] for p in json.loads(self.berth("policies", "--json").stdout)["policies"]]
        self.assertEqual([line.split()[0] for line in listed[:len(named)]], named)
        self.assertIn("quantum=300s", self.berth("policies", "las").stdout)

    def test_presets_are_listed_where_they_are_used(self):
        listed = self.berth("sim", "--workload", "list")
        self.assertEqual((listed.returncode, listed.stderr), (0, ""))
        self.assertEqual(listed.stdout, self.berth("gen", "--preset", "list").stdout)

    def test_what_the_figures_do_not_say_is_said_beside_them(self):
        self.write("jobs.csv", "#berth-jobs 1\nid,submit_s,gpus,work_s\n7,0,64,9\n8,1,1,9\n")
        done = self.berth("sim", "--cluster", "4xv100:8", "--workload", "jobs.csv", "--policy",
                          "fifo", "--flow", "jpas")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("can never run here: job 7", done.stderr)
        self.assertIn("--flow changes nothing", done.stderr)

    def test_json_is_one_object(self):
        done = self.berth("sim", *SMALL, "--policy", "fifo", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["policy"], "fifo")
        self.assertIsInstance(json.loads(self.berth("policies", "--json").stdout), dict)

    def test_equal_input_gives_equal_output(self):
        def once():
            done = self.berth("sim", *SMALL, "--policy", "las", "--seed", "5", "--json",
                              "--jobs-out", "jobs.csv")
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(self.path("jobs.csv"), encoding="utf-8") as file:
                answer = json.loads(done.stdout)
                del answer["sim"] # timings
                return json.dumps(answer), file.read()
        self.assertEqual(once(), once())

    def test_a_reader_that_leaves_is_no_trouble(self):
        for words in (("--help",), ("policies",), ("sim", *SMALL, "--policy", "fifo", "--json")):
            with self.subTest(words=words):
                read, write = os.pipe()
                os.close(read)
                done = subprocess.run([BERTH, *words], stdin=subprocess.DEVNULL, stdout=write,
                                      stderr=subprocess.PIPE, cwd=self.scratch, timeout=60)
                os.close(write)
                self.assertEqual(done.stderr, b"") # quiet, whatever the status

    def test_a_killed_run_leaves_nothing(self):
        run = subprocess.Popen(
            [BERTH, "sim", "--cluster", "1250xv100:8", "--workload",
             "synthetic:jobs=5000000,load=1.2", "--policy", "fifo", "--jobs-out", "jobs.csv"],
            cwd=self.scratch, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        self.assertIsNone(run.poll())
        run.kill()
        run.wait()
        self.assertEqual(self.files(), [])

    def test_a_full_disk_is_a_failure(self):
        for words in (("--help",), ("--version",), ("policies",)):
            with self.subTest(words=words), open("/dev/full", "w") as full:
                done = subprocess.run([BERTH, *words], stdin=subprocess.DEVNULL, stdout=full,
                                      stderr=subprocess.PIPE, text=True, timeout=60)
                self.assertEqual(done.returncode, 1)
                self.assertIn("cannot write", done.stderr)

    def test_devices_and_pipes_are_written_through(self):
        # By a link: a failure of this test must not cost the machine its device.
        os.symlink("/dev/full", self.path("full"))
        for words in (("gen", "--preset", "synthetic:jobs=5", "-o", "full"),
                      ("sim", *SMALL, "--policy", "fifo", "--jobs-out", "full"),
                      ("compare", *SMALL, "--policy", "fifo", "--report", "full")):
            with self.subTest(words=words):
                done = self.berth(*words)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                if "built without its report page" not in done.stderr:
                    self.assertIn("cannot write full: No space left", done.stderr)
                self.assertTrue(os.path.islink(self.path("full")))
        os.symlink("/proc/self/fd/1", self.path("out"))
        done = self.berth("sim", *SMALL, "--policy", "fifo", "--jobs-out", "out")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("\n"), 51, "the jobs alone")
        self.assertIn("makespan", done.stderr)

    def on_a_terminal(self, *words, env):
        """What a run prints when stdout and stderr are a terminal."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen([BERTH, *words], stdin=subprocess.DEVNULL, stdout=theirs,
                                   stderr=theirs, cwd=self.scratch,
                                   env={**os.environ, "TERM": "xterm-256color", **env})
        os.close(theirs)
        said = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError: # the other end was closed
                break
            if not piece:
                break
            said += piece
        os.close(ours)
        self.assertEqual(process.wait(timeout=60), 0)
        return said.decode("utf-8", "replace")

    def test_no_color_means_no_color(self):
        for words in (("policies",), ("compare", *SMALL, "--policy", "fifo", "--policy", "las")):
            with self.subTest(words=words):
                said = self.on_a_terminal(*words, env={"NO_COLOR": "1"})
                self.assertNotRegex(said, r"\x1b\[[0-9;]*m")

    def test_a_narrow_terminal_is_not_overflown(self):
        for columns in (40, 60, 80):
            for words in (("policies",), ("policies", "slaq"),
                          ("sim", *SMALL, "--policy", "fifo"),
                          ("compare", *SMALL, "--policy", "fifo", "--policy", "las")):
                with self.subTest(words=words, columns=columns):
                    said = self.on_a_terminal(*words, env={"COLUMNS": str(columns),
                                                           "NO_COLOR": "1"})
                    lines = [line.split("\r")[-1].replace("\x1b[K", "").rstrip()
                             for line in said.split("\r\n")]
                    self.assertLessEqual(max(map(len, lines)), columns, said)

    def test_a_pipe_gets_no_colour_and_no_progress(self):
        done = self.berth("compare", *SMALL, "--policy", "fifo", "--policy", "las")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("\x1b", done.stdout + done.stderr)
        self.assertNotIn("\r", done.stdout + done.stderr)

    def test_jobs_are_read_once_for_all_policies_and_seeds(self):
        done = self.berth("gen", "--preset", "synthetic:jobs=200,gpus=32")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.write("jobs.csv", done.stdout)
        words = ("--cluster", "4xv100:8", "--policy", "fifo", "--policy", "srtf", "--seeds", "3",
                 "--json")
        from_file = self.berth("compare", *words, "--workload", "jobs.csv")
        self.assertEqual(from_file.returncode, 0, from_file.stderr)
        piped = subprocess.run([BERTH, "compare", *words, "--workload", "-"], input=done.stdout,
                               capture_output=True, text=True, timeout=60)
        self.assertEqual(piped.returncode, 0, piped.stderr) # a pipe cannot be read again
        self.assertEqual(json.loads(piped.stdout)["policies"],
                         json.loads(from_file.stdout)["policies"])

    def test_it_works_without_stdin(self):
        done = subprocess.run(["sh", "-c", 'exec "$0" policies <&-', BERTH],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
