"""A disk that is full at the n-th call that needs space, for every n: while a job is submitted,
started or ends, and while berthd stops, starts and starts for the first time.

A preloaded library (tests/support/full_disk.c) makes the call fail, in a real berthd and in a
berth-run of the same sources that is linked with shared libraries.  Each job leaves a line in a
file elsewhere when it begins and when it ends.
"""
import mmap
import os
import re
import shutil
import struct
import subprocess
import tempfile
import time
import unittest

from injected import survived
from live import BUILD, ENDED, PATIENCE, Daemon, until

SOAK = os.environ.get("BERTH_SOAK")
LIBRARY = os.environ.get("BERTH_FULL_DISK_LIBRARY") or os.path.join(
    BUILD, "tests", "libfull_disk.so")
SUPERVISOR = os.environ.get("BERTH_RUN_SHARED") or os.path.join(BUILD, "tests", "berth-run-shared")
PRELOADED = os.environ.get("BERTH_PRELOADED") or os.path.join(BUILD, "tests", "preloaded")
BERTH = os.environ.get("BERTH") or os.path.join(BUILD, "berth")
FAULTS = {"once": 1, "full": 2, "short": 3, "sync": 4} # enum disk_fault
NEVER = 2 ** 31
FULL_S = 0.1 # how long a disk stays full
TRIES = {"once": 3, "full": 3, "short": 2, "sync": 2} # values of n in a short run
HELD = ("no acknowledged job is lost, none runs twice, each end is recorded as it was, and berthd "
        "refuses with a reason, or ends and the next one goes on")


class Disk:
    """What the library counts and does: struct disk_control in memory that is shared with it."""

    def __init__(self, path, folder):
        with open(path, "wb") as file:
            file.write(bytes(512))
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 512)
        self.set_folder(folder)

    def set_folder(self, folder):
        name = folder.encode() + b"\0"
        self.memory[20:20 + len(name)] = name

    def number(self, index):
        return struct.unpack_from("<I", self.memory, 4 * index)[0]

    def set(self, fault, at):
        struct.pack_into("<III", self.memory, 4, at, 0, 0)
        struct.pack_into("<I", self.memory, 0, FAULTS[fault])

    def clear(self):
        """There is space again."""
        struct.pack_into("<I", self.memory, 0, 0)

    count = property(lambda self: self.number(2))
    hits = property(lambda self: self.number(3))
    processes = property(lambda self: self.number(4))


class FullDisk(unittest.TestCase):
    """A berthd for one user."""

    flags, whose = (), ""

    def setUp(self):
        for path in (LIBRARY, SUPERVISOR, PRELOADED):
            if not os.path.exists(path):
                self.skipTest(f"{path} is not built")
        self.dir = os.path.realpath(tempfile.mkdtemp(prefix="berth-full-"))
        self.addCleanup(shutil.rmtree, self.dir, True)
        self.make_programs()
        self.daemon = Daemon(*self.flags, gpus="v100:2", folder=self.dir)
        self.daemon.program = os.path.join(self.dir, "bin", "berthd")
        self.addCleanup(self.daemon.wipe)
        self.disk = Disk(self.control, self.daemon.state)
        self.addCleanup(self.disk.clear)
        self.env = {**os.environ, "LD_PRELOAD": self.library, "BERTH_FULL_DISK": self.control}
        self.jobs = {}      # id: (mark, exit status)
        self.refused = []   # marks of submissions that were not acknowledged
        self.injected = 0
        self.marks = 0

    def make_programs(self):
        """berthd starts the programs beside it, with an empty environment."""
        self.control = os.path.join(self.dir, "control")
        folder = os.path.join(self.dir, "bin")
        os.mkdir(folder)
        shutil.copy(os.path.join(BUILD, "berthd"), folder)
        self.library = shutil.copy(LIBRARY, self.dir) # no blank may stand in LD_PRELOAD
        for name, program in (("berth-run", SUPERVISOR),
                              ("berth-launch", os.path.join(BUILD, "berth-launch"))):
            path = os.path.join(folder, name)
            shutil.copy(PRELOADED, path)
            with open(path + ".env", "w", encoding="utf-8") as file:
                file.write(f"{program}\nLD_PRELOAD={self.library}\nBERTH_FULL_DISK={self.control}\n")

    # --- berthd and berth

    def start(self):
        self.daemon.start(env=self.env)

    def start_or_refuse(self):
        """False: it ended, cleanly and with one sentence."""
        before = len(self.daemon.words()) if os.path.exists(self.daemon.log) else 0
        try:
            self.start()
            return True
        except AssertionError:
            self.assertEqual(self.daemon.process.returncode, 1, self.daemon.words())
            self.assert_sentence(self.daemon.words()[before:], "berthd")
            return False

    def assert_sentence(self, text, program="berth"):
        self.assertTrue(re.fullmatch(rf"{program}[^\n]*: [^\n]+\n", text), repr(text))

    def assert_alive(self):
        """It goes on; or it has ended cleanly, and the next one is started."""
        code = self.daemon.process.poll()
        if code is None:
            return
        self.assertIn(code, (0, 1), self.daemon.words())
        self.disk.clear()
        self.start()

    def berth(self, *words):
        """A command as users type it: it works, or says in one sentence why not."""
        done = subprocess.run([BERTH, *words], cwd=self.dir, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=PATIENCE, check=False,
                              env={"PATH": os.environ["PATH"], "HOME": self.dir,
                                   "BERTH_ADDR": self.daemon.socket, "BERTH_NO_START": "1"})
        if done.returncode:
            self.assert_sentence(done.stderr)
            self.assertEqual(done.stdout, "")
        return done

    # --- jobs

    def path_of(self, mark, suffix=""):
        return os.path.join(self.dir, f"mark-{mark}{suffix}")

    def submit_held(self):
        """Its id; None: refused.  It is a script, which has to be written where it starts."""
        self.marks += 1
        mark, code = self.marks, self.marks % 3
        os.mkfifo(self.path_of(mark, ".gate"))
        script = self.path_of(mark, ".sh")
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\necho begin $BERTH_ATTEMPT >>{self.path_of(mark)}\n"
                       f"read line <{self.path_of(mark, '.gate')}\n"
                       f"echo end $BERTH_ATTEMPT >>{self.path_of(mark)}\nexit {code}\n")
        done = self.berth("submit", "-G1", "--hold", script)
        if done.returncode:
            self.refused.append(mark)
            return None
        ident = int(done.stdout)
        self.jobs[ident] = (mark, code)
        return ident

    def submit_again(self):
        """Until it is accepted: the disk was full a moment ago."""
        return until(self.submit_held)

    def request(self, method, path, body=None):
        """Repeated until it is accepted: what one failed write refused works the next time."""
        def accepted():
            status, answer = self.daemon.ask(method, path, body)
            if status < 300:
                return True
            self.assertEqual(status, 503, answer)
            self.assertIn("error", answer)
            return False
        until(accepted)

    def release(self, ident):
        self.request("PATCH", f"/v1/jobs/{ident}", {"hold": False})

    def open_gate(self, ident):
        """Let the job end; it opens the other side when it has begun."""
        mark, _ = self.jobs[ident]
        with open(self.path_of(mark, ".gate"), "w", encoding="utf-8") as file:
            file.write("\n")

    def begun(self, ident):
        return self.lines(self.jobs[ident][0]).count("begin")

    def lines(self, mark):
        try:
            with open(self.path_of(mark), encoding="utf-8") as file:
                return [line.split()[0] for line in file]
        except FileNotFoundError:
            return []

    def run_job(self):
        """One that runs."""
        ident = self.submit_again()
        self.release(ident)
        until(lambda: self.begun(ident))
        self.daemon.wait(ident, {"RUNNING"})
        return ident

    def check_end(self, ident):
        """It has run once, and its end is recorded as it was."""
        mark, code = self.jobs[ident]
        job = self.daemon.wait(ident, ENDED)
        message = f"{job} {self.daemon.events(ident)}\n{self.daemon.words()[-3000:]}"
        self.assertEqual(self.lines(mark), ["begin", "end"], message)
        self.assertEqual((job["state"], job["exit_code"]),
                         ("FAILED" if code else "COMPLETED", code), message)

    # --- one fault

    def wait_for_fault(self, holds, fault):
        """Until holds(), or for a while after the disk is full; then there is space again."""
        until(lambda: holds() or (self.disk.hits and fault in ("full", "short")))
        if not holds():
            end = time.monotonic() + FULL_S
            while time.monotonic() < end and not holds():
                time.sleep(0.01)
        self.assert_alive()
        self.disk.clear()

    def ended(self, ident):
        def holds():
            status, job = self.daemon.ask("GET", f"/v1/jobs/{ident}") \
                if self.daemon.process.poll() is None else (503, None)
            return self.daemon.process.poll() is not None or \
                (status == 200 and job["state"] in ENDED)
        return holds

    def during_submission(self, fault, at):
        self.disk.set(fault, at)
        ident = self.submit_held()
        self.assert_alive()
        self.disk.clear()
        if ident is None:
            self.submit_again()
            return
        self.assertEqual(self.daemon.job(ident)["state"], "HELD")

    def during_start(self, fault, at):
        ident = self.submit_again()
        self.disk.set(fault, at)
        status, _ = self.daemon.ask("PATCH", f"/v1/jobs/{ident}", {"hold": False})
        self.assertIn(status, (200, 503))
        self.wait_for_fault(lambda: self.begun(ident) or status == 503 or
                            self.daemon.job(ident)["state"] in ENDED, fault)
        if status == 503:
            self.release(ident)
        until(lambda: self.begun(ident) or self.daemon.job(ident)["state"] in ENDED)
        if self.begun(ident):
            self.open_gate(ident)
        self.check_end(ident)

    def during_end(self, fault, at):
        ident = self.run_job()
        self.disk.set(fault, at)
        self.open_gate(ident)
        self.wait_for_fault(self.ended(ident), fault)
        self.check_end(ident)

    def during_stop(self, fault, at):
        ident, held = self.run_job(), self.submit_again()
        self.disk.set(fault, at)
        self.daemon.stop()
        self.assertIn(self.daemon.process.returncode, (0, 1), self.daemon.words())
        self.disk.clear()
        self.start()
        self.assertEqual(self.daemon.job(held)["state"], "HELD")
        self.open_gate(ident)
        self.check_end(ident)

    def during_restart(self, fault, at):
        """One job runs, one has ended meanwhile, one is held."""
        running, ending, held = self.run_job(), self.run_job(), self.submit_again()
        self.daemon.stop()
        self.open_gate(ending)
        until(lambda: len(self.lines(self.jobs[ending][0])) == 2)
        self.disk.set(fault, at)
        if self.start_or_refuse():
            self.wait_for_fault(self.ended(ending), fault)
        else:
            self.disk.clear()
            self.start()
        self.assertEqual(self.daemon.job(held)["state"], "HELD")
        self.check_end(ending)
        self.open_gate(running)
        self.check_end(running)

    def during_first_start(self, fault, at):
        self.daemon.stop()
        shutil.rmtree(self.daemon.state)
        self.jobs.clear()
        self.disk.set(fault, at)
        started = self.start_or_refuse()
        if not started:
            self.disk.clear()
            self.start()
        self.wait_for_fault(lambda: True, fault)
        ident = self.run_job()
        self.open_gate(ident)
        self.check_end(ident)

    # --- all of them

    def inject(self, during, fault, at):
        """True: the fault was reached."""
        with self.subTest(during=during.__name__, fault=fault, at=at):
            try:
                during(fault, at)
            finally:
                self.disk.clear()
        reached = self.disk.hits > 0
        self.injected += reached
        return reached

    def try_all(self, during, fault):
        if SOAK:
            at = 1
            while self.inject(during, fault, at):
                at += 1
            return
        self.inject(during, fault, NEVER)
        count = self.disk.count
        self.assertGreater(count, 0)
        for number in range(TRIES[fault]):
            self.inject(during, fault, 1 + number * (count - 1) // (TRIES[fault] - 1))

    def run_to_end(self, during, what):
        self.start()
        for fault in FAULTS:
            self.try_all(during, fault)
        self.finish()
        print(f"# {what}: {self.injected} faults, {len(self.jobs)} jobs, "
              f"{self.disk.processes} processes", flush=True)
        if not SOAK:
            self.assertGreaterEqual(self.injected, len(FAULTS)) # the first call of each, always
        survived(f"the disk is full at the n-th write, {what}{self.whose}", self.injected, HELD,
                 jobs=len(self.jobs))

    def finish(self):
        """Whatever was held runs, once; nothing else is there."""
        jobs = self.daemon.ask("GET", "/v1/jobs")[1]["jobs"]
        for job in jobs:
            if job["id"] in self.jobs:
                self.release(job["id"])
                self.open_gate(job["id"])
                self.check_end(job["id"])
            else: # of a submission that was refused, and is there nevertheless
                self.request("DELETE", f"/v1/jobs/{job['id']}")
        for mark in self.refused:
            self.assertLessEqual(self.lines(mark).count("begin"), 1)
        for ident in self.jobs:
            self.check_end(ident)
        until(lambda: not os.listdir(os.path.join(self.daemon.state, "run", "jobs")))
        until(lambda: len(self.starters()) <= 1)
        until(lambda: not any(self.children(pid) for pid in self.starters()))

    def starters(self):
        """The one child that a berthd has: berth-launch, or the berth-run that forks others."""
        return self.children(self.daemon.process.pid)

    @staticmethod
    def children(pid):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
            return file.read().split()

    def losses(self, ident):
        return [event for event in self.daemon.events(ident) if event["kind"] == "lost"]

    def test_a_disk_that_stays_full_fails_no_job(self):
        """The runtime folder is often a file system of its own: ends and losses are recorded."""
        self.disk.set_folder(os.path.join(self.daemon.state, "run"))
        self.start()
        ident = self.submit_held()
        self.disk.set("full", 1)
        self.release(ident)
        losses = 12 # more than a job that runs may have in a row
        until(lambda: len(self.losses(ident)) >= losses)
        first, *_, last = self.losses(ident)
        self.assertGreater(last["at"] - first["at"], 0.9 * (losses - 1), "one every second")
        self.assertEqual(self.daemon.words().count("was not started"), 1, self.daemon.words())
        self.assertEqual(self.lines(self.jobs[ident][0]), [])
        for words in (("why", str(ident)), ("queue",), ("show", str(ident)), ("doctor",)):
            self.assert_says(words, "No space left on device")
        self.disk.clear()
        until(lambda: self.begun(ident))
        self.open_gate(ident)
        self.check_end(ident)
        survived("the disk stays full while a job should start", losses, HELD, jobs=1)

    def assert_says(self, words, text):
        """One of the next times: between two attempts a job waits for an instant."""
        until(lambda: text in subprocess.run(
            [BERTH, *words], cwd=self.dir, text=True, stdout=subprocess.PIPE, check=False,
            env={"PATH": os.environ["PATH"], "HOME": self.dir, "BERTH_NO_START": "1",
                 "BERTH_ADDR": self.daemon.socket}).stdout)

    def test_submitting(self):
        self.run_to_end(self.during_submission, "while a job is submitted")

    def test_starting(self):
        self.run_to_end(self.during_start, "while a job starts")

    def test_ending(self):
        self.run_to_end(self.during_end, "while a job ends")

    def test_stopping_berthd(self):
        self.run_to_end(self.during_stop, "while berthd stops")

    def test_restarting_berthd(self):
        self.run_to_end(self.during_restart, "while berthd starts again")

    def test_starting_berthd_the_first_time(self):
        self.run_to_end(self.during_first_start, "while berthd starts for the first time")


@unittest.skipUnless(os.geteuid() == 0, "needs root, for a berthd with --system")
class FullDiskSystem(FullDisk):
    """A berthd for several users: berth-launch starts the jobs, and makes their folders."""

    flags, whose = ("--system", "--root-jobs"), ", with --system"

    def setUp(self):
        if not SOAK and self._testMethodName != "test_starting":
            self.skipTest("only with BERTH_SOAK=1")
        super().setUp()


if __name__ == "__main__":
    unittest.main()
