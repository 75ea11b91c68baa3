"""berthd, supervisors and berth-launch killed at random moments under a stream of submissions,
cancellations and preemptions: every job that was acknowledged ends exactly once, none runs beside
itself, no GPU has two jobs, and nothing is left behind.

Each job is a marked_job (marked_job.c): what really ran can be compared with what berthd says.
A client in a process of its own submits jobs; with --system it is another user.
"""
import http.client
import json
import os
import pwd
import random
import shutil
import signal
import sqlite3
import subprocess
import time
import unittest

from injected import survived
from live import BUILD, PATIENCE, Daemon, until

SOAK = os.environ.get("BERTH_SOAK")
KILLS = int(os.environ.get("BERTH_KILLS") or (1000 if SOAK else 6 if "asan" in BUILD else 12))
SEED = int(os.environ.get("BERTH_SEED") or 1)
JOB = os.environ.get("BERTH_MARKED_JOB") or os.path.join(BUILD, "tests", "marked_job")
WAITING_MAX = 16 # jobs that wait: a client that is far ahead makes the end of a test long
LULL_S = 1       # that no job runs, at most, before the next kill
USER = "nobody"
HELD = ("every acknowledged job ends exactly once, with its own exit status unless it was "
        "cancelled, no two attempts of a job run at a time, no GPU has two jobs, and no process, "
        "cgroup or folder is left behind")


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def children_of(pid):
    return [int(word) for word in read(f"/proc/{pid}/task/{pid}/children").split()]


def name_of(pid):
    return read(f"/proc/{pid}/comm").strip()


def leads_session(pid):
    """As a supervisor does; a child of berth-launch that removes something does not."""
    words = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return len(words) > 3 and int(words[3]) == pid


def kill(pid):
    """True: there was such a process."""
    try:
        os.kill(pid, signal.SIGKILL)
        return True
    except ProcessLookupError:
        return False


def cgroup_name(run_dir):
    """As attempt_cgroup_name() makes it of the runtime folder."""
    number = 0xcbf29ce484222325
    for byte in run_dir.encode():
        number = (number ^ byte) * 0x100000001b3 % 2 ** 64
    return f"berth-{number % 2 ** 32:08x}"


class Client:
    """A process that submits jobs and cancels some; what berthd said to it is in a file."""

    def __init__(self, daemon, seed, user=None):
        self.daemon = daemon
        self.rng = random.Random(seed)
        self.log = os.path.join(daemon.dir, "client.log")
        self.over = os.path.join(daemon.dir, "client.over")
        self.marks = os.path.join(daemon.dir, "marks")
        os.mkdir(self.marks)
        os.chmod(self.marks, 0o777)
        with open(self.log, "w", encoding="utf-8") as file:
            os.chmod(file.name, 0o666)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                if user:
                    entry = pwd.getpwnam(user)
                    os.setgroups([])
                    os.setgid(entry.pw_gid)
                    os.setuid(entry.pw_uid)
                self.run()
                os._exit(0)
            except BaseException as error:  # pylint: disable=broad-except
                self.note(error=repr(error))
                os._exit(1)

    def note(self, **line):
        with open(self.log, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def run(self):
        number = 0
        while not os.path.exists(self.over):
            number += 1
            try:
                self.submit(os.path.join(self.marks, str(number)))
                self.wait_for_room()
            except (OSError, http.client.HTTPException):
                time.sleep(0.01)
            time.sleep(self.rng.random() * 0.03)

    def submit(self, mark):
        rng = self.rng
        code = 3 if rng.random() < 0.1 else 0
        trial = rng.random() < 0.3
        steps = rng.randrange(5, 80 if trial else 400)
        self.note(mark=mark, code=code)
        status, answer = self.daemon.ask("POST", "/v1/jobs", {
            "command": [os.path.join(self.daemon.dir, "job"), mark, self.marks, str(steps), str(code)], "cwd": "/", "env": {},
            "gpus": rng.choice([1, 1, 2, 4]), "grace_s": 5, "class": "te" if trial else "be"})
        if status != 201:
            self.note(refused=mark, status=status, answer=answer)
            return
        ident = answer["id"]
        self.note(accepted=ident, mark=mark, code=code)
        if rng.random() < 0.1:
            self.note(cancelling=ident)
            self.daemon.ask("DELETE", f"/v1/jobs/{ident}")

    def wait_for_room(self):
        while not os.path.exists(self.over):
            status, answer = self.daemon.ask("GET", "/v1/jobs")
            if status != 200 or len(answer["jobs"]) < WAITING_MAX:
                return
            time.sleep(0.01)

    def finish(self):
        """End it; returns the accepted jobs, the marks of all, and the jobs that it cancelled."""
        with open(self.over, "w", encoding="utf-8"):
            pass
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        lines = [json.loads(line) for line in read(self.log).splitlines()]
        self.pid = None
        if status:
            raise AssertionError(f"the client ended with {status}: {lines[-3:]}")
        accepted = {line["accepted"]: (line["mark"], line["code"]) for line in lines
                    if "accepted" in line}
        marks = [line["mark"] for line in lines if "mark" in line and "accepted" not in line]
        return accepted, marks, {line["cancelling"] for line in lines if "cancelling" in line}

    def end(self):
        if self.pid:
            kill(self.pid)
            os.waitpid(self.pid, 0)


class Crash(unittest.TestCase):
    """A berthd for one user."""

    flags, user = (), None

    def setUp(self):
        if not os.access(JOB, os.X_OK):
            self.skipTest(f"{JOB} is not built")
        self.rng = random.Random(SEED)
        print(f"# BERTH_SEED={SEED} BERTH_KILLS={KILLS}", flush=True)
        self.daemon = Daemon(*self.flags, gpus="v100:8")
        os.chmod(self.daemon.dir, 0o755)
        self.addCleanup(self.daemon.wipe)
        shutil.copy(JOB, os.path.join(self.daemon.dir, "job")) # where every user may run it
        self.jobs_dir = os.path.join(self.daemon.state, "run", "jobs")
        self.killed = {"berthd": 0, "berth-run": 0, "berth-launch": 0}
        self.supervised = True # no supervisor is killed
        self.lines = 0
        self.ends = False # berthd does, after what was killed

    # --- what is there to kill

    def supervisors(self):
        """Those that have claimed an attempt, and those that are being started."""
        found = []
        for name in os.listdir(self.jobs_dir) if os.path.isdir(self.jobs_dir) else []:
            words = read(os.path.join(self.jobs_dir, name, "claim")).split()
            if words and name_of(words[0]) == "berth-run":
                found.append(int(words[0]))
        starters = self.launchers() or [self.daemon.process.pid, *self.starters()]
        for pid in (child for starter in starters for child in children_of(starter)):
            if pid not in found and name_of(pid) in ("berth-run", "berth-launch") \
                    and leads_session(pid):
                found.append(pid)
        return found

    def starters(self):
        """The berth-run that forks supervisors; it may be killed like one of them."""
        return [pid for pid in children_of(self.daemon.process.pid)
                if name_of(pid) == "berth-run"]

    def launchers(self):
        return [pid for pid in children_of(self.daemon.process.pid)
                if name_of(pid) == "berth-launch"]

    # --- killing

    def kill_berthd(self):
        self.daemon.process.send_signal(signal.SIGKILL)
        self.killed["berthd"] += 1
        self.ends = True

    def choose_supervisors(self, count):
        """Some of those that there are, as soon as there are any."""
        found = self.supervisors()
        end = time.monotonic() + LULL_S
        while not found and time.monotonic() < end:
            self.pause(0.1) # it is not always a new one that is killed
            found = self.supervisors()
        return self.rng.sample(found, min(count, len(found)))

    def kill_supervisors(self, pids):
        self.killed["berth-run"] += sum(kill(pid) for pid in pids)

    def kill_launcher(self):
        for pid in self.launchers():
            self.killed["berth-launch"] += kill(pid)
            self.ends = True # berthd does not go on without it

    def start_again(self):
        """At times berthd is killed before it is ready."""
        daemon = self.daemon
        daemon.process.wait(PATIENCE)
        daemon.process.stdout.close()
        while self.rng.random() < 0.2:
            command = [daemon.program, "--state", daemon.state, *daemon.flags]
            with open(daemon.log, "ab") as log, subprocess.Popen(
                    command, stdout=subprocess.DEVNULL, stderr=log) as early:
                time.sleep(self.rng.random() * 0.04)
                early.kill()
            self.killed["berthd"] += 1
        daemon.start()

    def pause(self, seconds):
        time.sleep(self.rng.random() * seconds)

    def run_killing(self, turn, enough):
        """Call turn() under a stream of jobs until enough() holds, then compare everything."""
        self.daemon.start()
        client = Client(self.daemon, SEED * 7, self.user)
        self.addCleanup(client.end)
        begun = time.monotonic()
        while not enough():
            self.pause(0.1)
            self.ends = False
            turn()
            if self.ends:
                self.start_again()
            self.assertIsNone(self.daemon.process.poll(), self.daemon.words()[-2000:])
        self.check_all(*client.finish())
        print(f"# killed {self.killed} in {time.monotonic() - begun:.0f} s, "
              f"{self.lines} lines of marks", flush=True)

    # --- comparing

    def rows(self):
        base = sqlite3.connect(f"file:{self.daemon.state}/berth.db?mode=ro", uri=True)
        base.row_factory = sqlite3.Row
        rows = {row["id"]: dict(row) for row in base.execute(
            "SELECT id, state, reason, exit_code, attempt FROM job")}
        base.close()
        return rows

    def check_all(self, accepted, marks, cancelled):
        until(lambda: not self.daemon.ask("GET", "/v1/jobs")[1]["jobs"], 2 * PATIENCE)
        rows = self.rows()
        self.accepted = accepted
        for ident, (mark, code) in sorted(accepted.items()):
            self.assertIn(ident, rows, "a job that was acknowledged is not known")
            self.check_one(rows[ident], mark, code, ident in cancelled)
        known = {mark for mark, _ in accepted.values()}
        for mark in marks:
            if mark not in known: # not answered: it may have run, as any other
                self.check_marks(mark, f"{mark}\n{read(mark)}")
        ends = {}
        for event in self.daemon.events():
            if event["kind"] in ("finished", "failed"):
                ends[event["job"]] = ends.get(event["job"], 0) + 1
        self.assertLessEqual(max(ends.values(), default=0), 1)
        for ident in accepted:
            self.assertIn(ident, set(ends) | cancelled)
        self.check_nothing_left()

    def check_marks(self, mark, message):
        """No attempt began twice, and none found another one; returns the words of the lines."""
        lines = [line.split() for line in read(mark).splitlines()]
        self.lines += len(lines)
        words = [line[0] for line in lines]
        begun = [line[1] for line in lines if line[0] == "begin"]
        self.assertNotIn("twice", words, message)
        self.assertEqual(len(begun), len(set(begun)), message)
        return words

    def check_one(self, job, mark, code, cancelled):
        message = (f"{job}\n{read(mark)}\n{self.daemon.events(job['id'])}\n"
                   f"{self.daemon.words()[-2000:]}")
        words = self.check_marks(mark, message)
        if cancelled and job["state"] == "CANCELLED":
            return
        if not self.supervised and job["reason"] == "its supervisor was killed":
            self.assertGreaterEqual(job["attempt"], 10, message) # again and again
            return
        self.assertEqual(job["state"], "FAILED" if code else "COMPLETED", message)
        self.assertEqual(job["exit_code"], code, message)
        if self.supervised:
            self.assertEqual(words.count("end"), 1, message)
        else:
            self.assertGreaterEqual(words.count("end"), 1, message)

    def processes_left(self):
        """Processes that belong to this berthd, but itself, its launcher and its starter."""
        own = {self.daemon.process.pid, *self.launchers(), *self.starters()[:1]}
        left = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            text = read(f"/proc/{pid}/cmdline") + read(f"/proc/{pid}/environ")
            if self.daemon.dir in text and int(pid) not in own:
                left.append((pid, name_of(pid), read(f"/proc/{pid}/cmdline")[:200]))
        left += [(pid, name_of(pid), "not reaped") for owner in own for pid in children_of(owner)
                 if pid not in own]
        return left

    def cgroups_left(self):
        name = cgroup_name(os.path.join(self.daemon.state, "run"))
        return [os.path.join(path, name) for path, folders, _ in os.walk("/sys/fs/cgroup")
                if name in folders]

    def settle(self, find, what):
        try:
            until(lambda: not find(), PATIENCE)
        except AssertionError:
            self.fail(f"{what} left behind: {find()}\n{self.daemon.words()[-2000:]}")

    def check_nothing_left(self):
        daemon = self.daemon
        self.settle(lambda: os.listdir(self.jobs_dir), "folders")
        self.settle(self.processes_left, "processes")
        daemon.stop()
        ckpt = os.path.join(daemon.state, "ckpt")
        self.assertEqual(os.listdir(ckpt), [], "checkpoint folders left behind")
        self.settle(self.cgroups_left, "cgroups")

    # --- the cases

    def survived(self, fault, what):
        survived(fault, self.killed[what], HELD, seed=SEED, jobs=len(self.accepted))

    def test_berthd_is_killed(self):
        self.run_killing(self.kill_berthd, lambda: self.killed["berthd"] >= KILLS)
        self.survived("berthd killed with signal 9, at a random moment", "berthd")

    def test_supervisors_are_killed(self):
        """A job whose supervisor was killed starts again, and never beside itself."""
        self.supervised = False
        self.run_killing(lambda: self.kill_supervisors(self.choose_supervisors(1)),
                         lambda: self.killed["berth-run"] >= KILLS)
        self.survived("a job's supervisor killed with signal 9, at a random moment", "berth-run")

    def test_both_are_killed_at_once(self):
        self.supervised = False

        def turn():
            pids = self.choose_supervisors(self.rng.randrange(1, 5))
            kills = [self.kill_berthd, lambda: self.kill_supervisors(pids)]
            self.rng.shuffle(kills)
            for one in kills:
                one()
        self.run_killing(turn, lambda: min(self.killed["berthd"],
                                           self.killed["berth-run"]) >= KILLS)
        self.survived("berthd and some of its supervisors killed at once with signal 9", "berthd")


@unittest.skipUnless(os.geteuid() == 0, "needs root, for jobs of another user")
class CrashSystem(Crash):
    """A berthd for several users, with a berth-launch."""

    flags, user = ("--system",), USER

    def test_the_launcher_is_killed(self):
        """berthd ends with it and is started again; jobs go on."""
        self.run_killing(self.kill_launcher, lambda: self.killed["berth-launch"] >= KILLS)
        self.survived("berth-launch killed with signal 9, at a random moment", "berth-launch")

    def test_anything_is_killed(self):
        self.supervised = False

        def turn():
            pids = self.choose_supervisors(self.rng.randrange(1, 3))
            kills = [self.kill_berthd, self.kill_launcher, lambda: self.kill_supervisors(pids)]
            for one in self.rng.sample(kills, self.rng.randrange(1, 4)):
                one()
        self.run_killing(turn, lambda: sum(self.killed.values()) >= KILLS)
        survived("berthd, berth-launch and supervisors killed with signal 9, in any combination",
                 sum(self.killed.values()), HELD, seed=SEED, jobs=len(self.accepted))


if __name__ == "__main__":
    unittest.main()
