"""Processes of a hostile job: its supervisor is out of its reach, and nothing of it survives its
end, whatever it does with sessions, parents, signals and its environment."""
import ctypes
import errno
import os
import resource
import select
import shutil
import signal
import socket
import time
import unittest

from hostile import (ADA, BOB, BOUND, Case, PYTHON, SERVICE, PATH, marked, many, processes, read,
                     real_uid, send, until, User)

PTRACE_ATTACH, PTRACE_SEIZE = 16, 0x4206

# Each leaves processes behind; $0 is a mark by which they are found.
ESCAPES = {
    "a background process": "sleep 7{0} & ",
    "a session of its own": "setsid sleep 7{0} & ",
    "an empty environment": "env -i /usr/bin/setsid /bin/sleep 7{0} & ",
    "a double fork": "(setsid sh -c 'setsid sleep 7{0} & ' & ); ",
    "ignored signals": "setsid sh -c 'trap \"\" TERM HUP INT; sleep 7{0}; sleep 7{0}' & ",
    "a stopped process": "setsid sh -c 'kill -STOP $$; sleep 7{0}' x7{0} & ",
    "a stopped supervisor": "kill -STOP $PPID; kill -KILL $PPID; kill -TERM $PPID; sleep 7{0} & ",
}

TRACER = """
import ctypes, os, signal, sys, time
libc = ctypes.CDLL(None, use_errno=True)
child = os.fork()
if child == 0:
    os.setsid()
    while True: time.sleep(1)
grand = os.fork()
if grand == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    assert libc.ptrace(0x4206, child, 0, 0) == 0
    os.kill(child, signal.SIGSTOP)
    print("traced", flush=True)
    while True: time.sleep(1)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True: time.sleep(1)
"""

STORM = """
import os, resource, signal, sys, time
resource.setrlimit(resource.RLIMIT_NPROC, (60, 60))  # the machine is others' as well
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("storm", flush=True)
end = time.monotonic() + 60
def breed(level):
    while time.monotonic() < end:
        try:
            if os.fork() == 0:
                os.setsid()
                if level: breed(level - 1)
                time.sleep(0.05)
                os._exit(0)
        except OSError:
            pass
        time.sleep(0.05)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]: pass
        except ChildProcessError:
            pass
breed(2)
"""


class Supervisor(Case):
    """What a user does to the supervisor of the user's own job."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        one = cls()
        cls.ident = one.submit(ADA, "sleep 900")
        one.wait(cls.ident, {"RUNNING"})
        cls.pid = one.supervisor(cls.ident)

    def runTest(self):
        """Only so that setUpClass() has a case to submit with."""

    def test_its_identity_is_the_services_but_for_rights_to_files(self):
        service = User(SERVICE)
        self.assertEqual(real_uid(self.pid), [service.uid, ADA.uid, service.uid])

    def test_it_cannot_be_signalled(self):
        for number in (signal.SIGSTOP, signal.SIGKILL, signal.SIGTERM, signal.SIGHUP,
                       signal.SIGCONT, 0):
            for user in (ADA, BOB):
                with self.assertRaises(PermissionError):
                    user.call(os.kill, self.pid, number)
                with self.assertRaises(PermissionError):
                    user.call(os.killpg, self.pid, number)
        with self.assertRaises(PermissionError):
            ADA.call(lambda: signal.pidfd_send_signal(os.pidfd_open(self.pid), signal.SIGSTOP))
        self.assertIn("State:\tS", read(f"/proc/{self.pid}/status"))

    def test_it_is_not_signalled_by_what_the_kernel_sends_for_files(self):
        import fcntl

        def ask_for_signals():
            one, other = socket.socketpair()
            fcntl.fcntl(one, fcntl.F_SETOWN, self.pid)
            fcntl.fcntl(one, 10, int(signal.SIGKILL))  # F_SETSIG
            fcntl.fcntl(one, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
            for _ in range(20):
                other.send(b"x")
        try:
            ADA.call(ask_for_signals)
        except PermissionError:
            pass
        self.assertEqual(self.job(self.ident)["state"], "RUNNING")
        os.kill(self.pid, 0)

    def test_it_cannot_be_traced(self):
        def trace(request):
            libc = ctypes.CDLL(None, use_errno=True)
            return libc.ptrace(request, self.pid, 0, 0), ctypes.get_errno()
        for request in (PTRACE_ATTACH, PTRACE_SEIZE):
            self.assertEqual(ADA.call(trace, request), (-1, 1))

    def test_what_it_has_open_and_in_memory_is_hidden(self):
        for name in ("mem", "environ", "fd", "maps", "cwd", "root", "exe", "stack", "syscall"):
            with self.assertRaises(OSError, msg=name):
                ADA.call(lambda name=name: os.listdir(f"/proc/{self.pid}/{name}")
                         if name == "fd" else os.readlink(f"/proc/{self.pid}/{name}")
                         if name in ("cwd", "root", "exe")
                         else open(f"/proc/{self.pid}/{name}", "rb").read(1))

    def test_its_descriptors_cannot_be_taken(self):
        def take():
            libc = ctypes.CDLL(None, use_errno=True)
            pidfd = os.pidfd_open(self.pid)
            return [libc.syscall(438, pidfd, fd, 0) for fd in range(16)]
        self.assertEqual(set(ADA.call(take)), {-1})

    def test_its_resources_cannot_be_limited(self):
        for limit in (resource.RLIMIT_CPU, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE):
            with self.assertRaises(PermissionError):
                ADA.call(resource.prlimit, self.pid, limit, (0, 0))

    def test_its_oom_score_and_memory_cannot_be_changed(self):
        for name, text in (("oom_score_adj", "1000"), ("clear_refs", "1"),
                           ("coredump_filter", "ff"), ("comm", "other")):
            with self.assertRaises(PermissionError, msg=name):
                ADA.call(lambda n=name, t=text: open(f"/proc/{self.pid}/{n}", "w").write(t))

    def test_its_socket_for_berthd_is_not_the_users(self):
        path = os.path.join(self.folder(self.ident), "run.sock")

        def connect():
            with socket.socket(socket.AF_UNIX) as wire:
                wire.connect(path)
        for user in (ADA, BOB):
            with self.assertRaises(PermissionError):
                user.call(connect)

    def test_it_does_not_listen_to_other_members_of_the_services_group(self):
        path, service = os.path.join(self.folder(self.ident), "run.sock"), User(SERVICE)

        def command():
            with socket.socket(socket.AF_UNIX) as wire:
                wire.settimeout(BOUND)
                wire.connect(path)
                wire.sendall(b"kill\n")
                while wire.recv(100):
                    pass
        member = User(BOB.name)
        member.gid = service.gid
        try:
            member.call(command)
        except OSError:
            pass
        os.kill(self.pid, 0)
        self.assertEqual(self.job(self.ident)["state"], "RUNNING")

    def test_what_it_keeps_cannot_be_changed(self):
        folder = self.folder(self.ident)
        for name in ("claim", "status", "run.sock", "job"):
            path = os.path.join(folder, name)
            for attack in (os.unlink, os.rmdir, lambda p: os.rename(p, p + "2"),
                           lambda p: os.chmod(p, 0o777), lambda p: os.link(p, p + "2"),
                           lambda p: os.symlink("/etc/shadow", p + "2"),
                           lambda p: os.rename(p, os.path.join(folder, "job", "x"))):
                if name == "job" and attack == os.chmod:
                    continue
                try:
                    ADA.call(attack, path)
                    self.assertEqual(name, "job", "changed")  # its mode is the user's to set
                except OSError:
                    pass
            self.assertTrue(os.path.lexists(path), name)
        for name in ("claim", "status"):
            with self.assertRaises(PermissionError):
                ADA.call(read, os.path.join(folder, name))
        self.assertEqual(sorted(os.listdir(folder)), ["claim", "job", "run.sock", "status"])
        ADA.call(os.chmod, os.path.join(folder, "job"), 0o700)
        self.assert_unharmed()

    def test_nonsense_and_many_connections_are_borne(self):
        path = os.path.join(self.folder(self.ident), "job", "sock")

        def flood():
            words = (b"", b"\0" * 100, b"x" * 5000, b"report nan nan\n", b"report 1e999 0\n",
                     b"total -1\n", b"saved \xff\xfe\n", b"ended finished 0 0 0 0 1\n",
                     b"collected\n", b"kill\n", b"report 1 \n", b"\n" * 4000,
                     b"saved 1\n" * 400, b"total 5\n" * 400)
            kept = []
            for i in range(many(1500, 20000)):
                wire = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
                try:
                    wire.connect(path)
                    wire.send(words[i % len(words)])
                except OSError:
                    pass
                kept.append(wire)
                if len(kept) > 300:
                    kept.pop(0).close()
        ADA.call(flood)
        with self.assertRaises(PermissionError):
            BOB.call(lambda: socket.socket(socket.AF_UNIX).connect(path))
        self.assertEqual(self.job(self.ident)["state"], "RUNNING")
        self.assert_unharmed()


class Ends(Case):
    """Nothing of a job survives its end, and its GPU is free only then."""

    gpus = "v100:1"

    def free_gpus(self):
        status, answer = send(self.daemon.socket, "GET", "/v1/nodes")
        self.assertEqual(status, 200)
        return str(answer)

    def assert_ended(self, ident, mark, group):
        """The moment that the job has ended, nothing of it may be left."""
        self.wait(ident)
        self.assertEqual(marked(mark), [])
        try:
            if group:
                self.assertIn("populated 0", read(os.path.join(group, "cgroup.events")))
        except OSError as gone: # removed before it was opened, or while it was read
            self.assertIn(gone.errno, (errno.ENOENT, errno.ENODEV))
        until(lambda: not (group and os.path.exists(group)), BOUND)
        until(lambda: not os.path.exists(self.folder(ident)), BOUND)

    def test_nothing_survives_a_normal_end(self):
        for number, (name, script) in enumerate(ESCAPES.items()):
            mark = f"{os.getpid()}{number}1"
            with self.subTest(name):
                ident = self.submit(ADA, script.format(mark) + " sleep 0.2")
                self.assert_ended(ident, "7" + mark, None)

    def test_nothing_survives_a_cancellation(self):
        for number, (name, script) in enumerate(ESCAPES.items()):
            mark = f"{os.getpid()}{number}2"
            with self.subTest(name):
                ident = self.submit(ADA, "trap '' TERM; " + script.format(mark) +
                                    f" echo up; while :; do sleep 7{mark}; done", grace_s=0.2)
                self.wait(ident, {"RUNNING"})
                until(lambda i=ident: "up" in self.output(i))
                group = self.job_group(ident)
                self.cancel(ident)
                self.assert_ended(ident, "7" + mark, group)

    def test_nothing_survives_a_time_limit(self):
        mark = f"{os.getpid()}3"
        ident = self.submit(ADA, "trap '' TERM; " + "".join(
            script.format(mark) for script in ESCAPES.values()) +
            f" while :; do sleep 7{mark}; done", grace_s=0.2, time_limit_s=1)
        self.wait(ident, {"RUNNING"})
        self.assert_ended(ident, "7" + mark, self.job_group(ident))
        self.assertEqual(self.job(ident)["state"], "FAILED")

    def test_nothing_survives_a_preemption(self):
        mark = f"{os.getpid()}4"
        ident = self.submit(ADA, "trap '' TERM; " + "".join(
            script.format(mark) for script in ESCAPES.values()) +
            f" echo up; while :; do sleep 7{mark}; done", grace_s=0.2)
        self.wait(ident, {"RUNNING"})
        until(lambda: "up" in self.output(ident))
        send(self.daemon.socket, "PATCH", f"/v1/jobs/{ident}", {"hold": True})
        trial = self.submit(BOB, f"pgrep -f 'sleep 7{mark[:-1]}[{mark[-1]}]' | wc -l", **{"class": "te"})
        self.wait(trial)
        self.assertEqual(self.output(trial).split()[-1:], ["0"],
                         "the next job found processes of the last one on its GPU")
        self.end_all(ident)
        self.assert_gone("7" + mark)

    def test_nothing_survives_that_became_root(self):
        """The supervisor may not signal what a program with rights of its own has started."""
        self.need_enforced("processes")
        program, mark = os.path.join(self.open, "python"), f"{os.getpid()}5"
        shutil.copy(os.path.realpath(PYTHON), program)
        os.chmod(program, 0o4755)
        ident = self.submit(ADA, f"cd $BERTH_CKPT_DIR; mkfifo pipe; {program} -ISc "
                            "'import os, time; os.setresuid(0, 0, 0); print(\"uid\", os.getuid(), flush=True);"
                            f"time.sleep(900)' 7{mark} > pipe & read line < pipe; echo $line")
        self.wait(ident, seconds=BOUND)
        self.assertIn(self.output(ident), ("uid 0\n", ""))
        if not self.output(ident):
            self.skipTest("programs have no rights of their own here")
        self.assert_ended(ident, "7" + mark, None)

    def test_nothing_survives_that_is_traced(self):
        ident = self.python(ADA, TRACER, grace_s=0.2)
        self.wait(ident, {"RUNNING"})
        until(lambda: "traced" in self.output(ident))
        group = self.job_group(ident)
        self.cancel(ident)
        self.assert_ended(ident, "PTRACE7", group)

    def test_a_process_traced_from_outside_does_not_keep_its_gpu(self):
        self.need_enforced("processes")
        ident = self.submit(ADA, "trap '' TERM; while :; do sleep 900; done", grace_s=0.2)
        self.wait(ident, {"RUNNING"})
        group = self.job_group(ident)
        child = int(read(os.path.join(group, "cgroup.procs")).split()[0])
        reader, writer = os.pipe()

        def hold():
            libc = ctypes.CDLL(None)
            os.write(writer, b"%d" % libc.ptrace(PTRACE_SEIZE, child, 0, 0))
            time.sleep(900)  # its end is never collected
        from hostile import end
        tracer = ADA.spawn(hold)
        self.addCleanup(end, tracer)
        self.assertEqual(os.read(reader, 10), b"0")
        self.cancel(ident)
        self.wait(ident)
        until(lambda: not os.path.exists(self.folder(ident)), BOUND)

    def test_nothing_survives_of_a_fork_storm(self):
        ident = self.python(ADA, STORM, "storm7", grace_s=0.2)
        self.wait(ident, {"RUNNING"})
        until(lambda: "storm" in self.output(ident))
        time.sleep(many(0.5, 5))  # the storm has to grow
        group = self.job_group(ident)
        self.cancel(ident)
        self.assert_ended(ident, "storm7", group)

    def test_a_supervisor_made_slow_by_its_user_does_not_keep_its_gpu(self):
        """The effective identity is the user's, and that is enough to change priorities."""
        from hostile import end
        ident = self.submit(ADA, "trap '' TERM; while :; do sleep 900; done", grace_s=0.2)
        self.wait(ident, {"RUNNING"})
        pid = self.supervisor(ident)

        def slow_down():
            os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))})
            os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
            os.setpriority(os.PRIO_PROCESS, pid, 19)

        def hog():
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
            while True:
                pass
        try:
            ADA.call(slow_down)
        except PermissionError:
            pass  # so much the better
        hogs = [ADA.spawn(hog) for _ in range(2)]
        try:
            self.cancel(ident)
            self.wait(ident)
            until(lambda: not os.path.exists(self.folder(ident)), BOUND)
        finally:
            for one in hogs:
                end(one)

    def test_a_supervisor_that_gets_no_time_does_not_keep_its_gpu(self):
        ident = self.submit(ADA, "trap '' TERM; while :; do sleep 900; done", grace_s=0.2)
        self.wait(ident, {"RUNNING"})
        pid = self.supervisor(ident)
        os.kill(pid, signal.SIGSTOP)  # the user cannot; the machine might
        self.cancel(ident)
        self.wait(ident)
        until(lambda: not os.path.exists(self.folder(ident)), BOUND)

    def test_a_start_that_is_halted_is_under_the_time_limit_too(self):
        """The user stops all own processes, so also the job's before it has its command."""
        self.need_enforced("processes")
        from hostile import end
        reader, writer = os.pipe()
        state = self.daemon.state.encode()

        def halt():
            os.write(writer, b"x")
            while True:
                for pid, _, state_of, _, name in processes():
                    if name != "berth-launch" or state_of == "T":
                        continue
                    try:
                        with open(f"/proc/{pid}/cmdline", "rb") as file:
                            if state in file.read():
                                os.kill(pid, signal.SIGSTOP)
                                os.write(writer, b"h")
                    except OSError:
                        pass
        pid = ADA.spawn(halt)
        self.addCleanup(end, pid)
        os.read(reader, 1)
        long = ":".join(["/a"] * 40000)  # the search takes a while

        def submit_and_wait():
            idents = [self.submit(ADA, ["sleep", "0.1"], time_limit_s=1, grace_s=0.2,
                                  env={"PATH": long + ":" + PATH}) for _ in range(many(2, 60))]
            for ident in idents:
                self.wait(ident, seconds=3 * BOUND)
            return select.select([reader], [], [], 0)[0]  # was one halted in time?
        until(submit_and_wait)
        end(pid)
        self.assert_unharmed()


class Limits(Case):
    """What a job may use."""

    def test_memory_beyond_what_was_asked_for_is_not_had(self):
        self.need_enforced("memory")
        eat = "b = bytearray(200 << 20); print('fits', len(b))"
        ident = self.python(ADA, eat, mem_bytes=64 << 20)
        self.assertEqual(self.wait(ident)["state"], "FAILED")
        self.assertNotIn("fits", self.output(ident))
        ident = self.python(ADA, eat, mem_bytes=400 << 20)
        self.assertEqual(self.wait(ident)["state"], "COMPLETED")

    def test_processes_are_limited_below_what_the_machine_has(self):
        ident = self.submit(ADA, "cat /proc/self/cgroup; sleep 900")
        self.wait(ident, {"RUNNING"})
        limits = [int(read(os.path.join(root, "pids.max")))
                  for root in self.every_group(ident)
                  if os.path.exists(os.path.join(root, "pids.max"))]
        self.end_all(ident)
        if "pids" not in send(self.daemon.socket, "GET", "/v1/server")[1]["enforced"]:
            self.skipTest("no controller of process numbers here")
        self.assertNotEqual(limits, [])
        self.assertLess(limits[0], int(read("/proc/sys/kernel/pid_max")) * 3 // 4)

    def every_group(self, ident):
        from hostile import groups_named
        self.note_group(ident)
        return [os.path.join(path, f"{ident}.0") for path in groups_named(self.group)]

    def test_a_job_is_not_spared_by_the_oom_killer(self):
        state, text = self.run_to_end(ADA, "cat /proc/self/oom_score_adj")
        self.assertEqual((state, text), ("COMPLETED", "0\n"))

    def test_a_job_has_its_umask_for_its_output_too(self):
        path = os.path.join(self.open, "masked")
        ident = self.submit(ADA, f"umask; touch {path}2", output=path, umask=0o077) \
            if self.takes_umask() else None
        if ident is None:
            self.skipTest("the API takes no umask yet")
        self.wait(ident)
        self.assertEqual(read(path), "0077\n")
        for name in (path, path + "2"):
            self.assertEqual(os.stat(name).st_mode & 0o777, 0o600, name)

    def takes_umask(self):
        status, answer = self.ask(ADA, "POST", "/v1/jobs", {
            "command": ["true"], "cwd": "/", "gpus": 1, "umask": 0o077})
        if status == 201:
            self.wait(answer["id"])
        return status == 201


class Inherited(Case):
    """What a job is given, and what it is not."""

    LOOK = """
import ctypes, os
for fd in sorted(map(int, os.listdir('/proc/self/fd'))):
    try: print('fd', fd, os.readlink('/proc/self/fd/%d' % fd))
    except OSError: pass
for name in sorted(os.environ): print('env', name)
print('groups', os.getgroups(), os.getresuid(), os.getresgid())
for line in open('/proc/self/status'):
    if line.startswith(('Cap', 'SigBlk', 'SigIgn', 'Shd')): print(*line.split())
print('session', os.getsid(0) == os.getpid())
libc = ctypes.CDLL(None)
print('keyring', libc.syscall(250, 0, -3, 0))
"""

    def look(self, user):
        ident = self.python(user, self.LOOK)
        self.assertEqual(self.wait(ident)["state"], "COMPLETED", self.output(ident))
        return self.output(ident)

    def test_a_job_inherits_three_descriptors_and_no_more(self):
        lines = [line.split() for line in self.look(ADA).splitlines() if line.startswith("fd")]
        self.assertEqual([words[1] for words in lines], ["0", "1", "2"], lines)
        self.assertEqual(lines[0][2], "/dev/null")

    def test_a_jobs_environment_is_its_own_and_ours(self):
        names = [line.split()[1] for line in self.look(ADA).splitlines()
                 if line.startswith("env")]
        strange = [name for name in names if name not in ("PATH", "LC_CTYPE") and
                   not name.startswith(("BERTH_", "CUDA_", "HIP_"))]
        self.assertEqual(strange, [])

    def test_a_job_has_no_right_but_its_users(self):
        text = self.look(BOB)
        self.assertIn(f"({BOB.uid}, {BOB.uid}, {BOB.uid}) ({BOB.gid}, {BOB.gid}, {BOB.gid})",
                      text)
        self.assertNotIn(" 0,", text.split("groups", 1)[1].split("]")[0])
        for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            self.assertIn(f"{name}: 0000000000000000", text)
        self.assertIn("SigBlk: 0000000000000000", text)
        self.assertIn("session True", text)

    def test_a_job_does_not_see_keys_of_root(self):
        from live import Daemon
        libc = ctypes.CDLL(None)

        def join():
            libc.syscall(250, 1, b"hostile")  # KEYCTL_JOIN_SESSION_KEYRING
        daemon = Daemon("--system")
        self.addCleanup(daemon.wipe)
        os.chmod(daemon.dir, 0o711)
        daemon.start(preexec_fn=join)
        from hostile import send
        status, answer = ADA.call(send, daemon.socket, "POST", "/v1/jobs", {
            "command": ["cat", "/proc/keys"], "cwd": "/", "gpus": 1, "env": {"PATH": PATH}})
        self.assertEqual(status, 201, answer)
        daemon.wait(answer["id"])
        text = read(os.path.join(daemon.state, "log", f"{answer['id']}.out"))
        self.assertNotIn("hostile", text)


if __name__ == "__main__":
    unittest.main()
