"""The command line of a live Berth, as people type it, against a real berthd."""
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from live import PATIENCE, until
from support import BERTH, BUILD, Case

DAEMON = os.path.join(BUILD, "berthd")


class Live(Case):
    """One daemon with four accelerators that stand in, for all cases of a class."""

    policy = "fitgpp"

    @classmethod
    def setUpClass(cls):
        cls.folder = None
        if not all(os.access(os.path.join(BUILD, p), os.X_OK) for p in
                   ("berth", "berthd", "berth-run")):
            raise unittest.SkipTest("berthd is not built")
        cls.folder = tempfile.mkdtemp(prefix="berth-cli-")
        cls.env = {"XDG_RUNTIME_DIR": cls.folder, "XDG_STATE_HOME": cls.folder + "/state",
                   "HOME": cls.folder, "BERTH_ADDR": "", "NO_COLOR": "1",
                   "BERTH_NO_START": "1", "PYTHONUNBUFFERED": "1"}
        done = cls.outside("up", "--fake-gpus", "v100:4", "--policy", cls.policy)
        if done.returncode:
            raise AssertionError(done.stderr)

    @classmethod
    def tearDownClass(cls):
        if cls.folder:
            cls.outside("down", "--kill")
            shutil.rmtree(cls.folder, ignore_errors=True)

    @classmethod
    def outside(cls, *words):
        return subprocess.run([BERTH, *words], env={**os.environ, **cls.env}, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE)

    def berth(self, *words, env=None, **more):
        return super().berth(*words, env={**self.env, **(env or {})}, **more)

    def ok(self, *words, **more):
        done = self.berth(*words, **more)
        self.assertEqual(done.returncode, 0, f"{words}: {done.stderr}")
        return done.stdout

    def facts(self, *words):
        return json.loads(self.ok(words[0], "--json", *words[1:]))

    def submit(self, *words):
        return int(self.ok("submit", *words))

    def wait(self, ident, states=("COMPLETED", "FAILED", "CANCELLED", "REJECTED")):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            job = self.facts("show", str(ident))
            if job["state"] in states:
                return job
            time.sleep(0.05)
        self.fail(f"job {ident} is still {job['state']}")

    def occupy(self):
        """All accelerators, until the case is over."""
        ident = self.submit("-G4", "--grace=1s", "--class=te", "sleep", "100")
        self.wait(ident, ("RUNNING",))
        self.addCleanup(self.wait, ident)
        self.addCleanup(self.berth, "cancel", str(ident))
        return ident


class Submit(Live):
    def test_the_id_comes_first_and_the_job_runs(self):
        ident = self.submit("-J", "a name", "sh", "-c", "echo out; exit 4")
        job = self.wait(ident)
        self.assertEqual((job["state"], job["exit_code"], job["name"], job["class"]),
                         ("FAILED", 4, "a name", "be"))
        self.assertEqual(self.ok("logs", str(ident)), "out\n")

    def test_the_commands_own_flags_are_its_own(self):
        ident = self.submit("-G1", "echo", "--lr", "3", "-G7", "--", "x y")
        self.assertEqual(self.wait(ident)["gpus"], 1)
        self.assertEqual(self.ok("logs", str(ident)), "--lr 3 -G7 -- x y\n")

    def test_json_and_parsable(self):
        self.assertEqual(list(self.facts("submit", "true")), ["id"])
        self.assertRegex(self.ok("submit", "--parsable", "-a", "0-1", "true"),
                         r"\A\d+\n\d+\n\Z")

    def test_a_script_with_sbatch_lines(self):
        self.write("job.sh", "#!/bin/bash\n#SBATCH --job-name=inside --gpus=2\n"
                   "#SBATCH -p gpu --mail-type=ALL\n#BERTH --class te\n"
                   "echo $1 $SLURM_JOB_ID $BERTH_JOB_ID\n")
        done = self.berth("submit", "-J", "outside", "job.sh", "word")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"\A[^\n]*-p, --mail-type\n\Z")
        ident = int(done.stdout)
        job = self.wait(ident)
        self.assertEqual((job["name"], job["gpus"], job["class"]), ("outside", 2, "te"))
        self.assertEqual(self.ok("logs", str(ident)), f"word {ident} {ident}\n")

    def test_a_script_on_standard_input(self):
        done = subprocess.run([BERTH, "submit", "-"], input="#!/bin/sh\necho in\n", text=True,
                              env={**os.environ, **self.env}, capture_output=True, timeout=PATIENCE)
        self.wait(int(done.stdout))
        self.assertEqual(self.ok("logs", done.stdout.strip()), "in\n")

    def test_a_job_file(self):
        self.write("job.yaml", "command: [sh, -c, 'echo $A $BERTH_PARAM_LR']\n"
                   "env: {A: b}\nparam: {lr: [0.1, 0.2]}\n")
        ids = self.facts("submit", "job.yaml")["ids"]
        self.assertEqual(len(ids), 2)
        self.wait(ids[1])
        self.assertEqual(self.ok("logs", str(ids[1])), "b 0.2\n")

    def test_arrays_and_grids(self):
        first, last = self.ok("submit", "-a", "3-4", "--param", "x=a,b", "sh", "-c",
                              "echo {index} $BERTH_ARRAY_TASK_ID {x}").strip().split("-")
        self.assertEqual(int(last) - int(first), 3)
        self.wait(int(last))
        self.assertEqual(self.ok("logs", last), "4 4 b\n")

    def test_dependencies_hold_and_begin(self):
        first = self.submit("-H", "true")
        second = self.submit("-d", f"afterok:{first}", "true")
        later = self.submit("--begin", "now+1hour", "true")
        time.sleep(0.2)
        states = {j["id"]: j["state"] for j in self.facts("queue")["jobs"]}
        self.assertEqual(states[first], "HELD")
        self.assertIn(states[second], ("PENDING", "HELD"))
        self.assertIn(states[later], ("PENDING", "HELD"))
        self.ok("release", str(first))
        self.assertEqual(self.wait(second)["state"], "COMPLETED")
        self.ok("cancel", str(later))

    def test_one_that_can_never_run_is_said(self):
        done = self.berth("submit", "-G", "99", "true")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"\Aberth submit: it can never run: [^\n]*\n\Z")
        self.assertEqual(self.facts("history")["jobs"][0]["state"], "REJECTED")
        done = self.berth("run", "-G", "99", "true")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        done = self.berth("submit", "--json", "-a", "0-1", "-G", "99", "true")
        self.assertEqual((done.returncode, done.stdout), (2, ""))

    def test_a_type_that_is_not_there_is_named(self):
        for words in (("-C", "h100"), ("-G1", "-C", "h100")):
            done = self.berth("submit", *words, "true")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("no accelerator of type h100", done.stderr)

    def test_jobs_ahead_are_counted_beyond_a_hundred(self):
        self.occupy()
        first, last = self.ok("submit", "-a", "0-149", "-G4", "true").strip().split("-")
        self.addCleanup(self.berth, "cancel", f"{first}-{last}")
        why = self.facts("why", last)
        ahead = len(why["ahead"]) + why["ahead_more"]
        self.assertGreaterEqual(ahead, 149)
        self.assertIn(f" and {ahead - 12} more\n", self.ok("why", last))

    def test_history_has_ended_jobs_and_release_its_own_words(self):
        running = self.occupy()
        waiting = self.submit("-G4", "true")
        self.addCleanup(self.berth, "cancel", str(waiting))
        states = {job["state"] for job in self.facts("history")["jobs"]}
        self.assertLessEqual(states, {"COMPLETED", "FAILED", "CANCELLED", "REJECTED"})
        live = self.facts("history", "--state", "PENDING")["jobs"]
        self.assertIn(waiting, [job["id"] for job in live])
        for verb, word in (("hold", "held"), ("release", "released")):
            done = self.berth(verb, str(running))
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"only a waiting job can be {word}", done.stderr)

    def test_resource_flags_that_are_not_understood_are_refused(self):
        for flag in ("--gpus-per-task=1", "--cpus-per-gpu 4", "--gpus-per-socket=1", "-w n1",
                     "--ntasks-per-gpu=1", "--exclusive", "--tres-per-task=gres/gpu:1",
                     "--gres=fpga:1", "--mem-per-gpux=1"):
            self.write("job.sh", f"#!/bin/bash\n#SBATCH --gpus=1\n#SBATCH {flag}\ntrue\n")
            done = self.berth("submit", "job.sh")
            self.assertEqual((done.returncode, done.stdout), (2, ""), flag)
            self.assertRegex(done.stderr, r"\Aberth submit: job\.sh:3: [^\n]+\n\Z")

    def test_output_goes_where_it_is_told(self):
        ident = self.submit("-o", "out-%j.txt", "-e", "err.txt", "sh", "-c",
                            "echo o; echo e >&2")
        self.wait(ident)
        with open(self.path(f"out-{ident}.txt"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "o\n")
        self.assertEqual(self.ok("logs", "-e", str(ident)), "e\n")

    def test_mistakes_are_refused_before_anybody_is_asked(self):
        self.write("bad.sh", "#!/bin/sh\n\n#BERTH --no-such\n")
        self.write("bad.yaml", "command: [x]\ngpus: -3\n")
        self.assert_refused("submit", says="want a command")
        self.assert_refused("submit", "-G", "many", "true", says="--gpus")
        self.assert_refused("submit", "bad.sh", says="bad.sh:3: no flag '--no-such'")
        self.assert_refused("submit", "bad.yaml", says="bad.yaml:2: gpus")
        self.assert_refused("submit", "absent.yaml", says="absent.yaml: No such file")
        self.assert_refused("submit", "--gpsu", "1", "true", says="did you mean 'gpus'")
        self.assert_refused("submit", "-a", "0-99999", "true", says="--array")
        self.assert_refused("submit", "-t", "soon", "true", says="--time")
        self.write("dos.sh", "#!/bin/sh\ntrue\r\n")
        self.write("plain.sh", "echo no first line\n")
        self.write("tool", "#!/usr/bin/env python3\n")
        os.chmod(self.path("tool"), 0o755)
        self.assert_refused("submit", "dos.sh", says="dos.sh:2: ends in CR LF")
        self.assert_refused("submit", "plain.sh", says='plain.sh:1: want a first line "#!')
        self.assert_refused("submit", "tool", says="tool: is not on the PATH; ./tool is here")
        self.assert_refused("submit", "/etc", says="/etc: is a folder")


class Run(Live):
    def start(self, *words):
        return subprocess.Popen([BERTH, "run", *words], env={**os.environ, **self.env},
                                cwd=self.scratch, stdin=subprocess.DEVNULL, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def test_output_and_exit_code_are_the_jobs(self):
        done = self.berth("run", "-G1", "sh", "-c", "echo one; echo two >&2; exit 7")
        self.assertEqual((done.returncode, done.stderr), (7, ""))
        self.assertEqual(sorted(done.stdout.split()), ["one", "two"])

    def test_a_signal_is_128_and_its_number(self):
        self.assertEqual(self.berth("run", "sh", "-c", "kill -9 $$").returncode, 137)

    def test_it_is_a_trial_job(self):
        done = self.berth("run", "sh", "-c", "echo $BERTH_CLASS")
        self.assertEqual(done.stdout, "te\n")

    def test_large_output_arrives_whole(self):
        done = self.berth("run", "sh", "-c", "seq 200000")
        self.assertEqual(done.stdout.split()[-1], "200000")
        self.assertEqual(done.stdout.count("\n"), 200000)

    def test_one_interrupt_cancels_and_waits(self):
        run = self.start("sh", "-c", "trap 'echo bye; exit 0' TERM; echo hi; sleep 60 & wait")
        self.assertEqual(run.stdout.readline(), "hi\n")
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=PATIENCE)
        self.assertEqual(out, "bye\n")
        self.assertIn("cancelling", err)
        self.assertNotEqual(run.returncode, 1)

    def test_a_second_interrupt_leaves(self):
        run = self.start("--grace=20s", "sh", "-c", "trap '' TERM; echo hi; sleep 60")
        self.assertEqual(run.stdout.readline(), "hi\n")
        run.send_signal(signal.SIGINT)
        self.assertIn("cancelling", run.stderr.readline())
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=PATIENCE)
        self.assertEqual(run.returncode, 130, err)
        self.assertIn("left job", err)

    def test_it_says_why_it_waits(self):
        busy = self.occupy()
        run = self.start("-G1", "echo", "done")
        line = run.stderr.readline()
        self.assertRegex(line, r"job \d+ waits: .+")
        self.ok("cancel", str(busy))
        out, _ = run.communicate(timeout=PATIENCE)
        self.assertEqual((run.returncode, out), (0, "done\n"))

    def test_a_reader_that_leaves_ends_it(self):
        run = self.start("yes")
        run.stdout.readline()
        run.stdout.close()
        self.assertEqual(run.wait(PATIENCE), 128 + signal.SIGPIPE)
        run.stderr.close()

    def test_many_at_once_are_refused(self):
        self.assert_refused("run", "-a", "0-1", "true", says="one job at a time")
        self.assert_refused("run", says="want a command")


class Ask(Live):
    def test_show_has_the_keys_that_are_promised(self):
        ident = self.submit("-G2", "sleep", "30")
        job = self.wait(ident, ("RUNNING",))
        for key in ("id", "name", "user", "class", "state", "gpus", "placement", "attempt",
                    "preemptions", "submit", "start"):
            self.assertIn(key, job)
        self.assertIn(str(ident), self.ok("show", str(ident)))
        self.ok("cancel", str(ident))

    def test_the_queue_and_why(self):
        self.occupy()
        ident = self.submit("-G1", "-J", "patient", "true")
        rows = {j["id"]: j for j in self.facts("queue")["jobs"]}
        self.assertEqual(rows[ident]["state"], "PENDING")
        self.assertTrue(rows[ident]["reason"])
        self.assertRegex(self.ok("q"), rf"(?m)^ *{ident}  patient .*PENDING")
        why = self.facts("why", str(ident))
        self.assertTrue({"id", "state", "can_ever_run", "reasons", "ahead"} <= set(why))
        self.assertTrue(why["reasons"][0]["text"])
        self.assertIn("PENDING", self.ok("why", str(ident)))
        self.ok("cancel", str(ident))

    def test_several_jobs_at_once(self):
        ids = [self.submit("-H", "true") for _ in range(3)]
        self.assertEqual(self.ok("release", f"{ids[0]}-{ids[1]}", str(ids[2])).count("\n"), 3)
        ids = [self.submit("-H", "true") for _ in range(2)]
        done = self.berth("cancel", str(ids[0]), "999999", str(ids[1]))
        self.assertEqual(done.returncode, 1)
        self.assertIn("999999", done.stderr)
        self.assertEqual(self.wait(ids[1])["state"], "CANCELLED")
        # The last goes first, so that none starts only to be cancelled.
        ids = [self.submit("-G4", "sleep", "60") for _ in range(4)]
        self.wait(ids[0], {"RUNNING"})
        self.ok("cancel", f"{ids[0]}-{ids[3]}")
        self.assertEqual(self.wait(ids[0])["state"], "CANCELLED")
        self.assertEqual(["start" in self.facts("show", str(i)) for i in ids],
                         [True, False, False, False])
        self.assert_refused("cancel", says="want the number")
        self.assert_refused("cancel", "9-5", says="is no job")
        self.assert_refused("cancel", "../1", says="is no job")

    def test_a_job_that_is_not_there(self):
        for verb in ("show", "why", "logs", "hold"):
            done = self.berth(verb, "999999")
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertRegex(done.stderr, r"\Aberth \w+: [^\n]+\n\Z")

    def test_set_changes_a_waiting_job_and_the_policy(self):
        ident = self.submit("-H", "true")
        self.ok("set", str(ident), "--class", "te")
        self.assertEqual(self.facts("show", str(ident))["class"], "te")
        self.ok("set", "--policy", "srtf")
        self.assertEqual(self.facts("up")["policy"], "srtf")
        self.ok("set", "--policy", self.policy)
        self.assert_refused("set", str(ident), says="nothing to set")
        self.assert_refused("set", str(ident), "--class", "gold", says="want te or be")
        self.assertEqual(self.berth("set", "--policy", "no-such").returncode, 2)
        self.ok("cancel", str(ident))

    def test_nodes_ledger_and_flows(self):
        node = self.facts("nodes")["nodes"][0]
        self.assertEqual((node["type"], node["gpus"]), ("v100", 4))
        self.assertIn("v100", self.ok("nodes"))
        self.assertIsInstance(self.facts("ledger")["entries"], list)
        self.ok("ledger")
        self.assertIsInstance(self.facts("flows"), dict)
        self.ok("flows")

    def test_history_filters_and_formats(self):
        ident = self.submit("-J", "odd,\"name\"", "false")
        self.wait(ident)
        rows = self.facts("history", "--state", "FAILED", "--since", "1h")["jobs"]
        self.assertIn(ident, [j["id"] for j in rows])
        self.assertEqual({j["state"] for j in rows}, {"FAILED"})
        self.assertEqual(len(self.facts("history", "--limit", "1")["jobs"]), 1)
        csv = self.ok("history", "--csv", "--name", "odd,\"name\"").splitlines()
        self.assertTrue(csv[0].startswith("id,name,user,class,state"))
        self.assertTrue(csv[1].startswith(f'{ident},"odd,""name""",'))
        self.assertEqual(self.facts("history", "--until", "2001-01-01")["jobs"], [])
        self.assert_refused("history", "--since", "whenever", says="--since")

    def test_logs_follow_and_tail(self):
        ident = self.submit("sh", "-c", "seq 5; sleep 0.5; echo end")
        self.assertEqual(self.ok("logs", "-f", str(ident)), "1\n2\n3\n4\n5\nend\n")
        self.assertEqual(self.ok("logs", "-n", "2", str(ident)), "5\nend\n")
        self.assertEqual(self.ok("logs", "-n", "99", str(ident)), "1\n2\n3\n4\n5\nend\n")

    def test_the_doctor_has_a_line_for_each(self):
        checks = {c["what"]: c for c in self.facts("doctor")["checks"]}
        self.assertEqual(checks["daemon"]["verdict"], "ok")
        for what in ("accelerators", "NVML", "cgroups", "rights", "state"):
            self.assertIn(what, checks)
            self.assertTrue(checks[what]["verdict"] == "ok" or checks[what]["hint"])


class Screen(Live):
    def play(self, *words, keys=(b"q",), after=b"ACCELERATOR"):
        """Status and all that was written; the first of 'keys' is pressed once 'after' is on
        the screen, each next one when the program waits for the terminal."""
        child, screen = pty.fork()
        if child == 0:
            os.environ.update(self.env, TERM="xterm")
            os.execv(BERTH, [BERTH, *words])
        said, pressed, end = b"", 0, time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if not select.select([screen], [], [], 0.2)[0]:
                if 0 < pressed < len(keys) and self.is_writing(child):
                    os.write(screen, keys[pressed])
                    pressed += 1
                continue
            try:
                said += os.read(screen, 65536)
            except OSError:
                break
            if not pressed and after in said:
                os.write(screen, keys[0])
                pressed = 1
        os.close(screen)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return status, said.decode("utf-8", "replace")

    @staticmethod
    def is_writing(pid):
        with open(f"/proc/{pid}/syscall", encoding="ascii") as file:
            return file.read().split()[0] == "1" # write()

    def test_top_shows_quits_and_restores(self):
        ident = self.submit("-G1", "-J", "on screen", "sleep", "30")
        self.wait(ident, ("RUNNING",))
        status, said = self.play("top", after=b"on screen")
        self.ok("cancel", str(ident))
        self.assertEqual(status, 0)
        self.assertIn("v100 0", said)
        self.assertIn("\x1b[?1049h", said)
        self.assertTrue(said.endswith("\x1b[?1049l"), said[-40:])

    def test_top_ends_well_on_interrupt(self):
        status, said = self.play("top", keys=(b"\x03",))
        self.assertEqual(status, 0)
        self.assertTrue(said.endswith("\x1b[?1049l"), said[-40:])

    def test_top_ends_well_on_interrupt_while_it_writes(self):
        if os.uname().machine != "x86_64":
            self.skipTest("the number of write() is that of x86-64")
        status, said = self.play("top", keys=(b"\x13", b"\x03")) # control-S stops the output
        self.assertEqual(status, 0)
        self.assertTrue(said.endswith("\x1b[?1049l"), said[-40:])

    def test_top_wants_a_terminal(self):
        self.assert_refused("top", says="wants a terminal")
        self.assert_refused("queue", "--watch", says="wants a terminal")


class Daemon(Case):
    """Starting and stopping it, in places of its own."""

    def setUp(self):
        super().setUp()
        if not os.access(DAEMON, os.X_OK):
            self.skipTest("berthd is not built")
        self.folder = tempfile.mkdtemp(prefix="berth-cli-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.env = {"XDG_RUNTIME_DIR": self.folder, "XDG_STATE_HOME": self.folder + "/state",
                    "HOME": self.folder, "BERTH_ADDR": "", "BERTH_NO_START": ""}
        self.addCleanup(self.berth, "down", "--kill")

    def berth(self, *words, env=None, **more):
        return super().berth(*words, env={**self.env, **(env or {})}, **more)

    def test_the_first_verb_starts_it(self):
        done = self.berth("run", "echo", "started")
        self.assertEqual((done.returncode, done.stdout), (0, "started\n"), done.stderr)
        self.assertIn("was up", self.berth("up").stdout)
        self.assertEqual(self.berth("down").returncode, 0)
        self.assertIn("No berthd runs", self.berth("down").stdout)
        self.assertEqual(len(json.loads(self.berth("history", "--json").stdout)["jobs"]), 1)

    def test_jobs_that_were_left_alone_can_be_ended(self):
        self.assertEqual(self.berth("submit", "sleep", "600").stdout, "1\n")
        until(lambda: json.loads(self.berth("show", "1", "--json").stdout)["state"] == "RUNNING")
        os.kill(json.loads(self.berth("up", "--json").stdout)["pid"], signal.SIGKILL)
        done = self.berth("down", "--kill")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(os.listdir(os.path.join(self.folder, "berth/jobs")), [])
        self.assertEqual(json.loads(self.berth("show", "1", "--json").stdout)["state"], "CANCELLED")

    def test_numbers_in_a_row_are_a_range(self):
        self.assertEqual(self.berth("submit", "-a", "0-2", "true").stdout, "1-3\n")
        self.assertEqual(self.berth("submit", "true").stdout, "4\n")

    def test_nobody_starts_it_where_that_is_not_wanted(self):
        done = self.berth("queue", env={"BERTH_NO_START": "1"})
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"\Aberth queue: no berthd answers at [^\n]+\n\Z")
        done = self.berth("queue", "--socket", self.path("no.sock"))
        self.assertEqual(done.returncode, 1)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "state")))
        self.assertEqual(self.berth("queue", "--socket", "x" * 200).returncode, 2)

    def test_wrong_input_starts_nothing(self):
        self.assertEqual(self.berth("submit", "-G", "x", "true").returncode, 2)
        self.assertEqual(self.berth("show", "x").returncode, 2)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "state")))

    def test_what_keeps_it_from_starting_is_said(self):
        done = self.berth("up", "--policy", "no-such")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"berthd did not start: .*no-such.*; see ")

    def test_it_finds_a_home_without_being_told(self):
        daemon = subprocess.run([DAEMON, "--policy", "no-such"], text=True, check=False,
                                stderr=subprocess.PIPE,
                                env={"XDG_RUNTIME_DIR": self.folder, "PATH": os.environ["PATH"],
                                     "XDG_STATE_HOME": self.folder + "/state"})
        self.assertIn("no-such", daemon.stderr)
        # A name too long for sockets below it: both sides look in the same other place.
        deep = os.path.join(self.folder, "d" * 80)
        os.mkdir(deep, 0o700)
        done = self.berth("up", "--json", env={"XDG_RUNTIME_DIR": deep})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(self.berth, "down", "--kill", env={"XDG_RUNTIME_DIR": deep})
        self.assertEqual(self.berth("run", "echo", "found", env={"XDG_RUNTIME_DIR": deep}).stdout,
                         "found\n")

    def test_a_folder_of_sockets_that_is_not_ours_is_not_trusted(self):
        place = os.path.join(self.folder, "berth")
        elsewhere = os.path.join(self.folder, "elsewhere")
        os.mkdir(elsewhere)
        os.symlink(elsewhere, place)
        refused = subprocess.run([DAEMON], env={**os.environ, **self.env}, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual((refused.returncode, refused.stdout), (1, ""))
        self.assertIn("is a link and not a folder", refused.stderr)
        for words in (["submit", "true"], ["up"], ["queue"], ["down"]):
            done = self.berth(*words)
            self.assertEqual((done.returncode, done.stdout), (1, ""), done)
            self.assertRegex(done.stderr, r"\Aberth \w+: \S+/berth is a link and not a folder: "
                                          r"have it removed, or set XDG_RUNTIME_DIR [^\n]+\n\Z")
        os.remove(place)
        if os.geteuid() == 0:
            os.mkdir(place)
            os.chown(place, 65534, 65534)
            done = self.berth("submit", "true")
            self.assertEqual(done.returncode, 1)
            self.assertIn("belongs to user 65534 and is not trusted", done.stderr)
            os.rmdir(place)

    def test_a_berthd_that_is_not_installed_is_named_with_its_package(self):
        alone = shutil.copy(BERTH, self.scratch)
        done = subprocess.run([alone, "up"], env={**os.environ, **self.env, "PATH": self.scratch},
                              text=True, capture_output=True, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"\Aberth up: berthd did not start: berthd: not installed; "
                         r"on Debian: apt install berthd; see [^\n]+\n\Z")

    def test_many_at_once_start_one(self):
        runs = [subprocess.Popen([BERTH, "submit", "true"], env={**os.environ, **self.env},
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True) for _ in range(6)]
        said = [run.communicate(timeout=PATIENCE) for run in runs]
        self.assertEqual([run.returncode for run in runs], [0] * 6, said)
        self.assertEqual(sorted(int(out) for out, _ in said), [1, 2, 3, 4, 5, 6])

    def test_run_goes_on_while_it_is_restarted(self):
        run = subprocess.Popen(
            [BERTH, "run", "sh", "-c", "echo 1; sleep 2; echo 2; exit 9"],
            env={**os.environ, **self.env}, stdin=subprocess.DEVNULL, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(run.stdout.readline(), "1\n")
        self.assertEqual(self.berth("down").returncode, 0)
        up = self.berth("up")
        self.assertEqual(up.returncode, 0, up.stderr)
        out, err = run.communicate(timeout=PATIENCE)
        self.assertEqual((run.returncode, out), (9, "2\n"), err)

    def test_a_state_folder_of_its_own(self):
        done = self.berth("up", "--state", os.path.join(self.folder, "own"), "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        where = json.loads(done.stdout)["socket"]
        self.addCleanup(self.berth, "down", "--kill", "--socket", where)
        self.assertTrue(where.startswith(self.folder))
        told = self.berth("up", "--state", os.path.join(self.folder, "own")).stdout
        self.assertIn(f"export BERTH_ADDR={where}\n", told)
        self.assertNotIn("export", self.berth("up", env={"BERTH_ADDR": where}).stdout)
        done = self.berth("run", "echo", "there", env={"BERTH_ADDR": where})
        self.assertEqual(done.stdout, "there\n")

    def test_the_page_has_an_address(self):
        done = self.berth("ui", "--print-url")
        if "without its page" in done.stderr:
            self.skipTest("built without web/: no node_modules")
        self.assertRegex(done.stdout, r"^http://127\.0\.0\.1:\d+/#token=[0-9a-f]{64}\n$")
        self.assertEqual(self.berth("ui", "now").returncode, 2)
        # Where there is no browser it says so; where there is one, the secret is not among its words.
        words = os.path.join(self.folder, "words")
        browser = os.path.join(self.folder, "browser")
        with open(browser, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\necho \"$@\" > {words}.new; mv {words}.new {words}\n")
        os.chmod(browser, 0o755)
        env = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "BROWSER": browser}
        self.assertEqual(self.berth("ui", env=env).stdout, "opened in your browser\n")
        end = time.monotonic() + 10
        while not os.path.exists(words) and time.monotonic() < end:
            time.sleep(0.02)
        with open(words, encoding="utf-8") as file:
            door = file.read().strip()
        self.assertNotIn("token", door)
        self.assertEqual(os.stat(door).st_mode & 0o777, 0o600)
        with open(door, encoding="utf-8") as file:
            self.assertIn("#token=", file.read())
        os.unlink(door)


if __name__ == "__main__":
    unittest.main()
