"""Progress of a hostile job: what the user writes is read by a process that has the user's rights
and no others, and whoever kills, halts or traces it harms nothing but the job's own reports."""
import ctypes
import os
import signal
import unittest

from hostile import ADA, BOB, BOUND, Case, processes, read, real_uid, until

PATTERN = "step ([0-9]+)"
STEPS = "i=0; while :; do i=$((i+1)); echo step $i; sleep 0.1; done"
PTRACE_SEIZE, PIDFD_OPEN, PIDFD_GETFD = 0x4206, 434, 438


class Reader(Case):
    """The process beside a supervisor that reads what the user writes."""

    gpus = "v100:1"

    def find(self, ident, attempt=0):
        supervisor = self.supervisor(ident, attempt)
        found = [pid for pid, _, state, parent, name in processes()
                 if parent == supervisor and name == "berth-run" and state not in "ZX"]
        return found[0] if found else None

    def begin(self, script=STEPS, **request):
        """A job with a pattern, and the process that reads its output."""
        ident = self.submit(ADA, script, **{"pattern": PATTERN, "grace_s": 0.2, "steps": 10000, **request})
        self.wait(ident, {"RUNNING"})
        until(lambda: self.is_users(self.find(ident)), BOUND)
        return ident, self.find(ident)

    def is_users(self, pid):
        """It has become the user; before, it is a part of its supervisor."""
        try:
            return pid and real_uid(pid) == [ADA.uid] * 3
        except OSError:
            return False

    def step(self, ident):
        return (self.job(ident).get("progress") or {}).get("step", 0)

    def test_it_has_the_users_rights_alone(self):
        ident, pid = self.begin()
        status = dict(line.split(":\t", 1) for line in read(f"/proc/{pid}/status").splitlines()
                      if ":\t" in line)
        self.assertEqual(real_uid(pid), [ADA.uid] * 3)
        self.assertEqual([int(word) for word in status["Gid"].split()], [ADA.gid] * 4)
        self.assertEqual(status["NoNewPrivs"], "1")
        self.assertEqual(status["CapPrm"].strip("0"), "")
        limits = {line[:26].strip(): line[26:].split()[:2]
                  for line in read(f"/proc/{pid}/limits").splitlines()[1:]}
        for name in ("Max processes", "Max file size", "Max core file size"):
            self.assertEqual(limits[name], ["0", "0"], name)
        self.assertLessEqual(int(limits["Max open files"][1]), 128)
        self.end_all(ident)

    def test_it_holds_nothing_that_speaks_for_berthd(self):
        ident, pid = self.begin()
        until(lambda: self.step(ident), BOUND)
        own = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
        strange = [link for link in own if not link.endswith(f"/{ident}.out") and
                   not link.startswith(("/dev/null", "socket:", "anon_inode:inotify"))]
        self.assertEqual(strange, [])
        self.assertEqual(len([link for link in own if link.startswith("socket:")]), 2)
        supervisor = self.supervisor(ident)
        theirs = {os.readlink(f"/proc/{supervisor}/fd/{fd}")
                  for fd in os.listdir(f"/proc/{supervisor}/fd")}
        self.assertEqual([link for link in theirs if link.endswith(".out")], [],
                         "the supervisor reads output")
        self.end_all(ident)

    def test_it_cannot_be_traced_or_looked_into(self):
        ident, pid = self.begin()

        def attack():
            libc, got = ctypes.CDLL(None), []
            got.append(libc.ptrace(PTRACE_SEIZE, pid, 0, 0))
            pidfd = libc.syscall(PIDFD_OPEN, pid, 0)
            got += [libc.syscall(PIDFD_GETFD, pidfd, fd, 0) for fd in range(3, 20)]
            for name in ("mem", "fd/3", "environ", "maps"):
                try:
                    os.close(os.open(f"/proc/{pid}/{name}", os.O_RDONLY))
                    got.append(0)
                except OSError:
                    got.append(-1)
            return got
        self.assertEqual(set(ADA.call(attack)), {-1})
        self.end_all(ident)

    def test_a_user_who_kills_it_loses_reports_and_nothing_else(self):
        ident, pid = self.begin()
        until(lambda: self.step(ident), BOUND)
        for _ in range(3):
            ADA.call(os.kill, pid, signal.SIGKILL)
            until(lambda p=pid: self.find(ident) not in (None, p), BOUND)
            pid = self.find(ident)
        before = self.step(ident)
        until(lambda: self.step(ident) > before, BOUND)  # the next one reads on
        self.assertEqual(self.job(ident)["state"], "RUNNING")
        self.end_all(ident)
        self.assert_unharmed()

    def test_a_user_who_halts_it_loses_reports_and_nothing_else(self):
        """It is asked before a warning and at the end, and not waited for long."""
        ident, pid = self.begin("sleep 3; exit 0")
        ADA.call(os.kill, pid, signal.SIGSTOP)
        self.assertEqual(self.wait(ident)["state"], "COMPLETED")
        until(lambda: not os.path.exists(f"/proc/{pid}"), BOUND)
        ident, pid = self.begin("trap 'echo warned; exit 85' TERM; while :; do sleep 0.1; done",
                                grace_s=6)
        ADA.call(os.kill, pid, signal.SIGSTOP)
        trial = self.submit(BOB, "true", **{"class": "te"})
        self.assertEqual(self.wait(trial)["state"], "COMPLETED")
        self.assertIn("warned", self.output(ident))
        self.end_all(ident)
        self.assert_unharmed()

    def test_it_ends_with_its_supervisor(self):
        ident, pid = self.begin()
        ADA.call(os.kill, pid, signal.SIGSTOP)
        os.kill(self.supervisor(ident), signal.SIGKILL)
        until(lambda: not os.path.exists(f"/proc/{pid}"), BOUND)
        self.cancel(ident)
        self.wait(ident)

    def test_what_is_written_last_is_read(self):
        for _ in range(3):
            ident = self.submit(ADA, "echo step 7; echo step 41", pattern=PATTERN, steps=100)
            self.assertEqual(self.wait(ident)["state"], "COMPLETED")
            self.assertEqual(self.step(ident), 41)

    def test_a_job_without_progress_has_none(self):
        ident = self.submit(ADA, "sleep 0.3")
        self.wait(ident, {"RUNNING"})
        self.assertIsNone(self.find(ident))
        self.wait(ident)


if __name__ == "__main__":
    unittest.main()
