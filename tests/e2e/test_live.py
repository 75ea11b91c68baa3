"""berthd with real processes: what a job is given, how it ends, what holds it back, who
yields, and what a restart finds."""
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest

from live import BUILD, PATIENCE, Daemon, until

TRAP = "trap 'exit 85' TERM; i=0; while [ $i -lt {n} ]; do sleep 0.05; i=$((i+1)); done"


def busy(seconds):
    """A job that saves at once when it is told to stop."""
    return TRAP.format(n=int(seconds * 20))


class Gate:
    """What a job can be kept waiting for until the test has seen what it wants to see."""

    def __init__(self, daemon):
        self.path = os.path.join(daemon.dir, "gate")
        self.wait = f"while [ ! -e {self.path} ]; do sleep 0.02; done"

    def open(self):
        with open(self.path, "w", encoding="utf-8"):
            pass


def reader_of(supervisor):
    """The process that reads what a job says: not among the children that /proc lists."""
    shown = subprocess.run(["ps", "-eo", "pid=,ppid=,comm="], stdout=subprocess.PIPE, check=True,
                           text=True).stdout
    rows = [line.split(None, 2) for line in shown.splitlines()]
    return next((int(pid) for pid, parent, name in rows
                 if parent == supervisor and name == "berth-run"), None)


class Live(unittest.TestCase):
    def start(self, *flags, gpus="v100:2"):
        daemon = Daemon(*flags, gpus=gpus)
        self.addCleanup(daemon.wipe)
        return daemon.start()

    def output(self, daemon, ident):
        with open(f"{daemon.state}/log/{ident}.out", encoding="utf-8") as file:
            return file.read()

    def said(self, daemon, ident, text):
        """Wait until the job has written this."""
        path = f"{daemon.state}/log/{ident}.out"
        until(lambda: os.path.exists(path) and text in self.output(daemon, ident))

    def kinds(self, daemon, ident):
        return [event["kind"] for event in daemon.events(ident)]


class Jobs(Live):
    def test_a_job_runs_and_its_end_is_known(self):
        daemon = self.start()
        good = daemon.sh("echo hello; echo sorry >&2")
        bad = daemon.sh("exit 7")
        hurt = daemon.sh("kill -9 $$")
        absent = daemon.submit("/no/such/program")
        self.assertEqual(daemon.wait(good)["state"], "COMPLETED")
        self.assertEqual(self.output(daemon, good), "hello\nsorry\n")
        self.assertEqual(daemon.wait(bad)["exit_code"], 7)
        self.assertEqual(daemon.wait(bad)["state"], "FAILED")
        self.assertEqual(daemon.wait(hurt)["exit_code"], 128 + 9)
        self.assertEqual(daemon.wait(absent)["exit_code"], 127)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one processor")
    def test_a_fake_gpu_can_be_a_processor(self):
        daemon = self.start(gpus="v100:2@cpu")
        gate = Gate(daemon)
        where = "grep Cpus_allowed_list /proc/self/status"
        jobs = [daemon.sh(f"{where}; {gate.wait}") for _ in range(2)]
        for job in jobs:
            self.said(daemon, job, "\n")
        gate.open()
        both = daemon.sh(where, gpus=2)
        daemon.wait(both)
        cores = sorted(os.sched_getaffinity(0))[:2]
        self.assertEqual([int(self.output(daemon, job).split()[1]) for job in jobs], cores)
        listed = self.output(daemon, both).split()[1]
        self.assertIn(listed, [f"{cores[0]},{cores[1]}", f"{cores[0]}-{cores[1]}"])

    def test_what_a_job_is_given(self):
        daemon = self.start()
        ident = daemon.sh("env | grep -E 'BERTH|CUDA|MINE|HOME'", gpus=2,
                          env={"PATH": os.environ["PATH"], "MINE": "a b"})
        daemon.wait(ident)
        given = dict(line.split("=", 1) for line in self.output(daemon, ident).splitlines())
        self.assertEqual(given["BERTH_JOB_ID"], str(ident))
        self.assertEqual(given["BERTH_ATTEMPT"], "0")
        self.assertEqual(given["BERTH_RESUME"], "0")
        self.assertEqual(given["BERTH_CLASS"], "be")
        self.assertEqual(given["CUDA_VISIBLE_DEVICES"], "0,1")
        self.assertEqual(given["CUDA_DEVICE_ORDER"], "PCI_BUS_ID")
        self.assertEqual(given["MINE"], "a b")
        self.assertNotIn("HOME", given)
        for name in ("BERTH_CKPT_DIR", "BERTH_PREEMPT_FILE", "BERTH_SOCKET"):
            self.assertTrue(given[name].startswith("/"), name)

    def test_one_that_can_never_run_is_rejected_at_once(self):
        daemon = self.start()
        status, answer = daemon.ask("POST", "/v1/jobs", {
            "command": ["true"], "cwd": "/", "gpus": 64})
        self.assertEqual(status, 201)
        self.assertIn("64", answer["rejected"])
        self.assertEqual(daemon.job(answer["id"])["state"], "REJECTED")

    def test_nothing_of_a_job_survives_it(self):
        daemon = self.start()
        mark = os.path.join(daemon.dir, "alive")
        ident = daemon.sh(f"(setsid sh -c 'while :; do date >{mark}; sleep 0.05; done' &) ; "
                          f"while [ ! -e {mark} ]; do sleep 0.02; done")
        self.assertEqual(daemon.wait(ident)["state"], "COMPLETED")
        time.sleep(0.3)
        before = os.stat(mark).st_mtime_ns
        time.sleep(0.4)
        self.assertEqual(os.stat(mark).st_mtime_ns, before)

    def test_cancelling(self):
        daemon = self.start(gpus="v100:1")
        running = daemon.sh(busy(60))
        waiting = daemon.sh(busy(60))
        daemon.wait(running, {"RUNNING"})
        for ident in (waiting, running):
            self.assertEqual(daemon.ask("DELETE", f"/v1/jobs/{ident}")[0], 200)
            self.assertEqual(daemon.wait(ident)["state"], "CANCELLED")
        self.assertEqual(daemon.ask("DELETE", "/v1/jobs/999")[0], 404)
        after = daemon.sh("true")
        self.assertEqual(daemon.wait(after)["state"], "COMPLETED")

    def test_a_time_limit(self):
        daemon = self.start()
        ident = daemon.sh("sleep 60", time_limit_s=0.5, grace_s=1)
        job = daemon.wait(ident)
        self.assertEqual(job["state"], "FAILED")
        self.assertIn("limit", job["reason"])

    def test_failures_are_tried_again_where_asked(self):
        daemon = self.start()
        count = os.path.join(daemon.dir, "count")
        ident = daemon.sh(f"echo x >>{count}; [ $(wc -l <{count}) -ge 3 ]", retries=5)
        self.assertEqual(daemon.wait(ident)["state"], "COMPLETED")
        with open(count, encoding="utf-8") as file:
            self.assertEqual(len(file.readlines()), 3)
        once = daemon.sh("exit 3", retries=1)
        job = daemon.wait(once)
        self.assertEqual((job["state"], job["attempt"]), ("FAILED", 1))


class Gates(Live):
    def test_held_until_released(self):
        daemon = self.start()
        ident = daemon.sh("true", hold=True)
        self.assertEqual(daemon.job(ident)["state"], "HELD")
        self.assertEqual(daemon.ask("PATCH", f"/v1/jobs/{ident}", {"hold": False})[0], 200)
        self.assertEqual(daemon.wait(ident)["state"], "COMPLETED")

    def test_a_waiting_one_can_be_held_and_changed(self):
        daemon = self.start(gpus="v100:1")
        gate = Gate(daemon)
        first = daemon.sh(gate.wait)
        held, other = daemon.sh("true"), daemon.sh("true")
        daemon.wait(first, {"RUNNING"})
        self.assertEqual(daemon.ask("PATCH", f"/v1/jobs/{held}", {"hold": True})[0], 200)
        self.assertEqual(daemon.ask("PATCH", f"/v1/jobs/{first}", {"hold": True})[0], 409)
        gate.open()
        daemon.wait(other)
        self.assertEqual(daemon.job(held)["state"], "HELD")
        self.assertEqual(daemon.ask("PATCH", f"/v1/jobs/{held}", {"class": "te"})[0], 200)
        daemon.ask("PATCH", f"/v1/jobs/{held}", {"hold": False})
        job = daemon.wait(held)
        self.assertEqual((job["state"], job["class"]), ("COMPLETED", "te"))

    def test_one_after_another(self):
        daemon = self.start()
        gate = Gate(daemon)
        good, bad = daemon.sh(gate.wait), daemon.sh(gate.wait + "; exit 1")
        after = daemon.sh("true", dependency=[{"kind": "afterok", "id": good}])
        any_end = daemon.sh("true", dependency=[{"kind": "afterany", "id": bad}])
        failed = daemon.sh("true", dependency=[{"kind": "afternotok", "id": bad}])
        never = daemon.sh("true", dependency=[{"kind": "afterok", "id": bad}])
        self.assertEqual(daemon.job(after)["state"], "HELD")
        gate.open()
        for ident in (after, any_end, failed):
            self.assertEqual(daemon.wait(ident)["state"], "COMPLETED")
        self.assertEqual(daemon.wait(never)["state"], "CANCELLED")
        order = [e["job"] for e in daemon.events() if e["kind"] in ("finished", "started")]
        self.assertLess(order.index(good), order.index(after))

    def test_nobody_waits_for_a_job_that_never_was(self):
        daemon = self.start()
        status, answer = daemon.ask("POST", "/v1/jobs", {
            "command": ["true"], "cwd": "/", "dependency": [{"kind": "afterok", "id": 99}]})
        self.assertEqual((status, answer["field"]), (400, "dependency"))
        self.assertIn("99", answer["error"])

    def test_not_before_its_time(self):
        daemon = self.start()
        begin = time.time() + 1
        ident = daemon.sh("true", begin=begin)
        job = daemon.wait(ident)
        self.assertGreaterEqual(job["start"], begin - 0.01)

    def test_an_array_with_a_limit(self):
        daemon = self.start(gpus="v100:8")
        jobs = [{"command": ["sh", "-c", "sleep 0.3; echo $BERTH_ARRAY_TASK_ID"], "cwd": daemon.dir,
                 "env": {"PATH": os.environ["PATH"]}, "gpus": 1, "array_index": i,
                 "array_limit": 2} for i in range(6)]
        status, answer = daemon.ask("POST", "/v1/jobs", {"jobs": jobs})
        self.assertEqual(status, 201)
        for index, ident in enumerate(answer["ids"]):
            self.assertEqual(daemon.wait(ident)["state"], "COMPLETED")
            self.assertEqual(self.output(daemon, ident).strip(), str(index))
        running, most = 0, 0
        for event in daemon.events():
            running += {"placed": 1, "finished": -1}.get(event["kind"], 0)
            most = max(most, running)
        self.assertEqual(most, 2)


class Yielding(Live):
    def test_a_trial_job_starts_at_once_and_the_victim_goes_on_later(self):
        daemon = self.start(gpus="v100:1")
        victim = daemon.sh("trap 'exit 85' TERM; "
                           "echo attempt $BERTH_ATTEMPT resume $BERTH_RESUME; "
                           "[ $BERTH_ATTEMPT = 1 ] || { " + busy(60) + "; }")
        self.said(daemon, victim, "attempt 0")
        trial = daemon.sh("echo now", **{"class": "te"})
        self.assertEqual(daemon.wait(trial)["state"], "COMPLETED")
        job = daemon.wait(victim)
        self.assertEqual((job["state"], job["preemptions"], job["attempt"]), ("COMPLETED", 1, 1))
        attempts = [line for line in self.output(daemon, victim).splitlines() if "attempt" in line]
        self.assertEqual(attempts, ["attempt 0 resume 0", "attempt 1 resume 1"])
        self.assertEqual(job["preempted_by"][0]["job"], trial)
        self.assertEqual(job["preempted_by"][0]["rule"], "trial")
        self.assertGreater(job["preempted_by"][0]["actual_cost_gpu_s"], 0)

    def test_one_that_will_not_go_is_killed_after_its_grace(self):
        daemon = self.start(gpus="v100:1")
        stubborn = daemon.sh("trap '' TERM; echo ready; while :; do sleep 0.1; done",
                             grace_s=0.5)
        self.said(daemon, stubborn, "ready")
        begin = time.monotonic()
        trial = daemon.sh("true", **{"class": "te"})
        self.assertEqual(daemon.wait(trial)["state"], "COMPLETED")
        self.assertGreater(time.monotonic() - begin, 0.4)
        stopped = [e for e in daemon.events(stubborn) if e["kind"] == "stopped"]
        self.assertEqual((stopped[0]["clean"], stopped[0]["exit_code"]), (False, 128 + 9))

    def test_one_that_fails_before_it_is_warned_has_failed(self):
        """What it has said is read before the warning: here that takes until it has ended."""
        daemon = self.start(gpus="v100:1")
        go = os.path.join(daemon.dir, "go")
        job = daemon.sh(f"echo child of $PPID; while [ ! -e {go} ]; do sleep 0.02; done; exit 3",
                        pattern=r"(?<step>\d+)", grace_s=20)
        self.said(daemon, job, "child of")
        parent = self.output(daemon, job).split()[-1]
        reader = until(lambda: reader_of(parent))
        os.kill(reader, signal.SIGSTOP)
        trial = daemon.sh("true", **{"class": "te"})
        until(lambda: any(event["kind"] == "recalled" for event in daemon.events(job)))
        with open(go, "w", encoding="ascii"):
            pass
        ended = daemon.wait(job)
        self.assertEqual((ended["state"], ended["exit_code"], ended["attempt"]), ("FAILED", 3, 0))
        self.assertEqual(daemon.wait(trial)["state"], "COMPLETED")

    def test_the_warning_comes_three_ways(self):
        daemon = self.start(gpus="v100:1")
        job = ("import os,signal,socket,time\n"
               "s=socket.socket(socket.AF_UNIX); s.connect(os.environ['BERTH_SOCKET'])\n"
               "s.sendall(b'hello 1\\nreport 5 0.5\\n')\n"
               "got=[]; signal.signal(signal.SIGUSR2, lambda *_: got.append('signal'))\n"
               "print('ready', flush=True)\n"
               "line=b''\n"
               "while not line.startswith(b'stop'): line=s.recv(64)\n"
               "while not got: time.sleep(0.01)\n"
               "print(got, line.split()[0], os.path.exists(os.environ['BERTH_PREEMPT_FILE']))\n"
               "raise SystemExit(0)\n")
        victim = daemon.submit("python3", "-S", "-c", job, signal="USR2")
        self.said(daemon, victim, "ready")
        daemon.wait(daemon.sh("true", **{"class": "te"}))
        daemon.wait(victim)
        self.assertIn("['signal'] b'stop' True", self.output(daemon, victim))

    def test_another_policy_at_run_time(self):
        daemon = self.start(gpus="v100:1")
        gate = Gate(daemon)
        first = daemon.sh(gate.wait, **{"class": "te"})  # none of the others preempts it
        long, short = daemon.sh("sleep 0.5", steps=100), daemon.sh("true", steps=1)
        daemon.wait(first, {"RUNNING"})
        status, _ = daemon.ask("PATCH", "/v1/server", {"policy": "sjf"})
        self.assertEqual(status, 200)
        self.assertEqual(daemon.ask("PATCH", "/v1/server", {"policy": "nonsense"})[0], 400)
        gate.open()
        for ident in (first, long, short):
            self.assertEqual(daemon.wait(ident)["state"], "COMPLETED")
        order = [e["job"] for e in daemon.events() if e["kind"] == "started"]
        self.assertEqual(order, [first, short, long])
        daemon.kill()
        daemon.start()
        self.assertEqual(daemon.ask("GET", "/v1/server")[1]["policy"], "sjf")


class Machine(Live):
    """GPUs that NVML names: a library that looks like NVIDIA's stands in for it."""

    def setUp(self):
        library = os.path.join(BUILD, "tests", "libfake_nvml.so")
        if not os.path.exists(library):
            self.skipTest("the library that looks like NVIDIA's is not built")
        self.folder = tempfile.mkdtemp(prefix="berth-nvml-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        shutil.copy(library, os.path.join(self.folder, "libnvidia-ml.so.1"))
        self.daemon = Daemon(gpus=None)
        self.addCleanup(self.daemon.wipe)

    def up(self, **env):
        self.daemon.start(env={**os.environ, "LD_LIBRARY_PATH": self.folder, **env})
        return self.daemon.ask("GET", "/v1/nodes")[1]["nodes"]

    def test_types_and_numbers_are_the_machines(self):
        nodes = self.up()
        self.assertEqual(sorted((n["type"], n["gpus"]) for n in nodes),
                         [("rtx2080ti", 1), ("v100", 2)])
        self.assertEqual({n["type"]: n["busy"] for n in nodes},
                         {"rtx2080ti": [0.2], "v100": [0.1, 0.3]})
        ident = self.daemon.sh("echo $CUDA_VISIBLE_DEVICES", gpus=2, types="v100")
        self.daemon.wait(ident)
        self.assertEqual(self.output(self.daemon, ident).strip(), "0,2")

    def test_what_others_use_is_left_alone(self):
        stranger = subprocess.Popen(["sleep", "60"])
        self.addCleanup(stranger.wait)
        self.addCleanup(stranger.kill)
        self.up(FAKE_NVML_PID=str(stranger.pid))
        other = self.daemon.sh("true", types="v100")
        ident = self.daemon.sh("true", types="rtx2080ti")
        self.assertEqual(self.daemon.wait(other)["state"], "COMPLETED")
        self.assertEqual(self.daemon.job(ident)["state"], "PENDING")
        why = self.daemon.ask("GET", f"/v1/jobs/{ident}/why")[1]
        self.assertIn("foreign", [reason["token"] for reason in why["reasons"]])
        stranger.kill()
        stranger.wait()
        self.assertEqual(self.daemon.wait(ident)["state"], "COMPLETED")


class EveryPolicy(Live):
    def test_each_runs_jobs_and_hands_over_to_the_next(self):
        daemon = Daemon(gpus="v100:2,k80:2")
        self.addCleanup(daemon.wipe)
        prices = os.path.join(daemon.dir, "berthd.yaml")
        with open(prices, "w", encoding="utf-8") as file:
            file.write("prices: {v100: 2.48, k80: 0.45}\nspeeds: {k80: 0.2}\n")
        daemon.flags += ["--config", prices]
        daemon.start()
        listed = subprocess.run([os.path.join(BUILD, "berth"), "policies", "--json"],
                                stdout=subprocess.PIPE, check=True, text=True)
        names = [policy["name"] for policy in json.loads(listed.stdout)["policies"]]
        self.assertGreater(len(names), 20)
        for name in names:
            running = daemon.sh(busy(0.4), name=f"before {name}")
            status, answer = daemon.ask("PATCH", "/v1/server", {"policy": name})
            self.assertEqual(status, 200, f"{name}: {answer}")
            jobs = [daemon.sh("true", steps=1), daemon.sh("true", gpus=2, steps=2),
                    daemon.sh("true", **{"class": "te"}), daemon.sh("true", gpus=0)]
            for ident in [running, *jobs]:
                job = daemon.wait(ident)
                self.assertEqual(job["state"], "COMPLETED", f"{name}: {job}")


class Config(Live):
    def refused(self, text, sentence):
        daemon = Daemon(gpus=None)
        self.addCleanup(daemon.wipe)
        path = os.path.join(daemon.dir, "berthd.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        daemon.flags += ["--config", path]
        with self.assertRaisesRegex(AssertionError, sentence):
            daemon.start()
        daemon.process.stdout.close()
        self.assertEqual(daemon.process.returncode, 2)

    def test_a_file_says_what_the_command_line_does_not(self):
        daemon = Daemon("--policy", "las", gpus=None)
        self.addCleanup(daemon.wipe)
        path = os.path.join(daemon.dir, "berthd.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("policy: fifo\nfake_gpus: a100:3,k80:1\nmax_jobs: 2\n")
        daemon.flags += ["--config", path]
        daemon.start()
        self.assertEqual(daemon.ask("GET", "/v1/server")[1]["policy"], "las")
        nodes = daemon.ask("GET", "/v1/nodes")[1]["nodes"]
        self.assertEqual([(n["type"], n["gpus"]) for n in nodes], [("a100", 3), ("k80", 1)])
        daemon.sh("true", hold=True)
        daemon.sh("true", hold=True)
        status, answer = daemon.ask("POST", "/v1/jobs", {"command": ["true"], "cwd": "/"})
        self.assertEqual((status, "no more fit" in answer["error"]), (503, True))

    def test_a_file_that_says_nothing_changes_nothing(self):
        for text in ("", "# only this\n\n  # and that"):
            daemon = Daemon()
            self.addCleanup(daemon.wipe)
            path = os.path.join(daemon.dir, "berthd.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            daemon.flags += ["--config", path]
            daemon.start()

    def test_what_is_wrong_is_said_with_its_line(self):
        self.refused("policy: fifo\nmax_job: 3\n", r"berthd.yaml:2: max_job: there is no such key")
        self.refused("\nmax_jobs: many\n", r"berthd.yaml:2: max_jobs is \"many\", want a whole number")
        self.refused("policy: nonsense\n", r"no policy")
        self.refused("fail_open_s: 3\n", r"berthd.yaml:1: fail_open_s is \"3\", want seconds from 5")
        self.refused("fail_open_s: long\n", r"berthd.yaml:1: fail_open_s is \"long\"")
        self.refused("slurm_heartbeat: here\n", r"berthd.yaml:1: slurm_heartbeat is \"here\", want")
        self.refused("prices: {v100: cheap}\n", r"berthd.yaml:1: prices: want a number above 0")
        self.refused("speeds: {h900: 2}\n", r"no accelerator of type h900")
        self.refused("- a\n", r"berthd.yaml:1: want lines of KEY: VALUE")


class Restart(Live):
    def test_jobs_go_on_without_berthd(self):
        daemon = self.start()
        ident = daemon.sh("sleep 0.5; echo through; exit 4")
        waiting = [daemon.sh("true", gpus=2) for _ in range(3)]
        daemon.wait(ident, {"RUNNING"})
        daemon.kill(signal.SIGTERM)
        time.sleep(1)
        daemon.start()
        job = daemon.wait(ident)
        self.assertEqual((job["state"], job["exit_code"]), ("FAILED", 4))
        self.assertEqual(self.output(daemon, ident), "through\n")
        for other in waiting:
            self.assertEqual(daemon.wait(other)["state"], "COMPLETED")

    def test_after_a_reboot_they_start_again_with_their_checkpoints(self):
        daemon = self.start()
        ident = daemon.sh("ls $BERTH_CKPT_DIR; echo $BERTH_RESUME; touch $BERTH_CKPT_DIR/kept; "
                          "[ $BERTH_ATTEMPT = 1 ] || sleep 60")
        daemon.wait(ident, {"RUNNING"})
        until(lambda: os.path.exists(f"{daemon.state}/ckpt/{ident}/kept"))
        daemon.kill()
        # What a reboot does: every process and the runtime folder are gone.
        for name in os.listdir("/proc"):
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    if daemon.state.encode() in file.read():
                        os.kill(int(name), signal.SIGKILL)
            except (OSError, ValueError):
                pass
        shutil.rmtree(os.path.join(daemon.state, "run"), True)
        daemon.start()
        job = daemon.wait(ident)
        self.assertEqual((job["state"], job["attempt"]), ("COMPLETED", 1))
        self.assertEqual(self.output(daemon, ident), "0\nkept\n1\n")

    def test_a_supervisor_that_is_killed(self):
        daemon = self.start()
        ident = daemon.sh("[ $BERTH_ATTEMPT = 1 ] || sleep 60")
        daemon.wait(ident, {"RUNNING"})
        found = daemon.supervisors()
        os.kill(found[0], signal.SIGKILL)
        job = daemon.wait(ident)
        self.assertEqual((job["state"], job["attempt"]), ("COMPLETED", 1))
        self.assertIn("lost", self.kinds(daemon, ident))
        once = daemon.sh("sleep 60", requeue=False)
        daemon.wait(once, {"RUNNING"})
        found = daemon.supervisors()
        os.kill(found[0], signal.SIGKILL)
        self.assertEqual(daemon.wait(once)["state"], "FAILED")

    def test_a_signal_ends_it_whatever_it_waits_for(self):
        daemon = self.start()
        ident = daemon.sh("sleep 60")
        daemon.wait(ident, {"RUNNING"})
        found = daemon.supervisors()
        os.kill(found[0], signal.SIGSTOP) # so that the job does not end
        try:
            self.assertEqual(daemon.ask("DELETE", "/v1/server?kill=true")[0], 202)
            daemon.wait(ident, {"STOPPING"})
            daemon.process.send_signal(signal.SIGTERM)
            self.assertEqual(daemon.process.wait(PATIENCE), 0)
            daemon.process.stdout.close()
        finally:
            os.kill(found[0], signal.SIGCONT)
        daemon.start()
        self.assertEqual(daemon.wait(ident)["state"], "CANCELLED")

    def test_what_stood_in_for_accelerators_stands_in_again(self):
        daemon = self.start(gpus="a100:3")
        for flags, gpus in (([], ["a100"]), (["--fake-gpus", "none"], ["cpu"]), ([], ["cpu"])):
            daemon.kill(signal.SIGTERM)
            daemon.flags = flags
            daemon.start()
            nodes = daemon.ask("GET", "/v1/nodes")[1]["nodes"]
            if shutil.which("nvidia-smi") is None:
                self.assertEqual([node["type"] for node in nodes], gpus)

    def test_one_berthd_per_folder(self):
        daemon = self.start()
        second = Daemon(folder=daemon.dir)
        with self.assertRaisesRegex(AssertionError, "another berthd"):
            second.start()
        self.assertEqual(second.process.returncode, 1)
        second.process.stdout.close()

    def test_the_books_after_many_jobs(self):
        daemon = self.start(gpus="v100:4")
        jobs = [{"command": ["true"], "cwd": "/", "gpus": 1} for _ in range(100)]
        ids = daemon.ask("POST", "/v1/jobs", {"jobs": jobs})[1]["ids"]
        for ident in ids:
            self.assertEqual(daemon.wait(ident)["state"], "COMPLETED")
        base = sqlite3.connect(f"{daemon.state}/berth.db")
        self.assertEqual(base.execute("SELECT count(*) FROM live").fetchone()[0], 0)
        self.assertEqual(base.execute("PRAGMA integrity_check").fetchone()[0], "ok")
        base.close()
        until(lambda: os.listdir(f"{daemon.state}/run/jobs") == []) # supervisors remove their own


if __name__ == "__main__":
    unittest.main()
