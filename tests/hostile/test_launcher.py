"""berth-launch, the only program that is root: no user reaches it, and a berthd that has been
taken over gets from it what berthd may have and no more."""
import ctypes
import fcntl
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

from hostile import (ADA, BOB, BOUND, Case, PATH, SERVICE, User, end, listing, marked, many,
                     processes, read, real_uid, send, start_launcher, until, write)
from live import BUILD, can_mask

HELLO, START, KILL, KILL_JOB, REMOVE, BRIDGE = range(1, 7)
REQUEST, REPLY = struct.Struct("=IIQ"), struct.Struct("=iIIi320s400sIII")
OPENING, OPENED = struct.Struct("=QI4096s4x"), struct.Struct("=Qi4x")
SEALS = 1 | 2 | 4 | 8  # seal, shrink, grow, write
EINVAL, EPERM, ENOENT, EACCES, EEXIST, ENOSYS, EPROTO, EAGAIN = 22, 1, 2, 13, 17, 38, 71, 11


def order(seals=SEALS, **fields):
    """An order in sealed memory."""
    known = {"id": 1, "attempt": 0, "cwd": "/", "gpus": "", "uid": ADA.uid, "gid": ADA.gid,
             **fields}
    words = known.pop("command", ["/bin/sh", "-c", "id -u"])
    text = b"".join(b"%s=%s\0" % (key.encode(), str(value).encode())
                    for key, value in known.items() if value is not None)
    text += b"".join(b"arg=%s\0" % word.encode() for word in words)
    text += f"env=PATH={PATH}".encode() + b"\0end=\0"
    fd = os.memfd_create("order", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(fd, text)
    if seals:
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


def end_halted(pid):
    try:
        if state_of(pid) == "T":
            os.kill(pid, signal.SIGKILL)
    except (FileNotFoundError, ProcessLookupError):
        pass


def hide_cgroups():
    """In the process that becomes berth-launch: a machine without cgroups."""
    libc = ctypes.CDLL(None)
    if libc.unshare(0x20000) or libc.mount(None, b"/", None, 0x44000, None) or \
            libc.mount(b"none", b"/sys/fs/cgroup", b"tmpfs", 0, None):
        os._exit(9)


def read_uid(pid):
    """The real, effective and saved identity of a process that may have ended."""
    try:
        return real_uid(pid)
    except OSError:
        return None


def state_of(pid):
    """R, S, T, Z ... as ps shows it."""
    return read(f"/proc/{pid}/stat").rpartition(")")[2].split()[0]


def pends(pid, number):
    """Whether a signal waits until a stopped process goes on."""
    return any(int(line.split()[1], 16) >> (number - 1) & 1
               for line in read(f"/proc/{pid}/status").splitlines()
               if line.startswith(("SigPnd:", "ShdPnd:")))


@unittest.skipUnless(os.geteuid() == 0, "needs root, to start berth-launch")
class Protocol(unittest.TestCase):
    """We are a berthd that was taken over."""

    flags = ("--min-uid", "1")
    supervisor = os.path.join(BUILD, "berth-run")
    hides_cgroups = False

    def setUp(self):
        self.service = User(SERVICE)
        self.dir = tempfile.mkdtemp(prefix="berth-launch-")
        self.addCleanup(shutil.rmtree, self.dir, True)
        os.chmod(self.dir, 0o711)
        self.run, self.state = os.path.join(self.dir, "run"), os.path.join(self.dir, "s")
        for path in (self.run, self.state):
            os.mkdir(path)
            os.chown(path, self.service.uid, self.service.gid)
            os.chmod(path, 0o711)
        self.canary = os.path.join(self.dir, "canary")
        write(self.canary, "of root\n", 0o600)
        self.start_launcher()

    def start_launcher(self, prepare=None, env=None):
        self.process, self.orders, self.openings = start_launcher(
            "--run", self.run, "--state", self.state, "--supervisor", self.supervisor,
            *self.flags, env=env,
            prepare=hide_cgroups if self.hides_cgroups else prepare)
        self.addCleanup(self.stop_launcher)

    def stop_launcher(self):
        if self.process.poll() is None:
            for name in listing(os.path.join(self.run, "jobs")):
                ident, attempt = map(int, name.split("."))
                self.ask(REMOVE, ident, attempt)
                until(lambda n=name: n not in listing(os.path.join(self.run, "jobs")), BOUND)
        self.orders.close()
        self.openings.close()
        self.process.wait(BOUND)

    def ask(self, kind, ident=0, attempt=0, fds=()):
        """The reply: errno, processes left."""
        socket.send_fds(self.orders, [REQUEST.pack(kind, attempt, ident)], list(fds))
        for fd in fds:
            os.close(fd)
        answer = self.orders.recv(4096)
        self.assertEqual(len(answer), REPLY.size)
        return REPLY.unpack(answer)[:2]

    def begin(self, fd, ident=1, attempt=0):
        """What the supervisor says first."""
        mine, theirs = socket.socketpair()
        mine.settimeout(BOUND)
        self.addCleanup(mine.close)
        error, _ = self.ask(START, ident, attempt, [fd, theirs.detach()])
        if error:
            return error
        return mine.recv(4096).decode("utf-8", "replace")

    def open_file(self, uid, path):
        """The errno, or what is in the file; again while its user has too many open at once."""
        while (found := self.open_once(uid, path)) == EAGAIN:
            pass
        return found

    def open_once(self, uid, path):
        self.openings.send(OPENING.pack(7, uid, path.encode()))
        data, fds, _, _ = socket.recv_fds(self.openings, 100, 4)
        tag, error = OPENED.unpack(data)
        self.assertEqual(tag, 7)
        if not fds:
            self.assertNotEqual(error, 0)
            return error
        with os.fdopen(fds[0]) as file:
            return file.read(100)

    def assert_lives(self):
        self.assertIsNone(self.process.poll())
        self.assertEqual(self.ask(HELLO)[0], 0)
        self.assertEqual(read(self.canary), "of root\n")

    def assert_refused(self, fd, says, ident=1, attempt=0):
        answer = self.begin(fd, ident, attempt)
        self.assertTrue(str(answer).startswith(("refused", "ended failed 126")), answer)
        self.assertIn(says, answer)
        self.assertFalse(os.path.exists(os.path.join(self.run, "jobs", f"{ident}.{attempt}")))
        self.assert_lives()

    def test_an_order_that_is_sound_is_carried_out(self):
        self.assertIn("started", self.begin(order()))
        out = os.path.join(self.state, "log", "1.out")
        until(lambda: os.path.exists(out) and read(out) == f"{ADA.uid}\n", BOUND)

    def test_a_supervisor_is_of_the_launchers_own_version(self):
        """A package's files are replaced some time before its services are restarted."""
        self.stop_launcher()
        self.supervisor = os.path.join(self.dir, "berth-run")
        shutil.copy(Protocol.supervisor, self.supervisor)
        self.start_launcher()
        self.assertEqual(self.ask(HELLO)[0], 0)
        shutil.copy(shutil.which("false"), self.supervisor + ".new")
        os.rename(self.supervisor + ".new", self.supervisor)
        self.assertIn("started", self.begin(order(command=["/bin/sleep", "900"])))
        claim = os.path.join(self.run, "jobs", "1.0", "claim")
        pid = read(claim).split()[0]
        until(lambda: read(f"/proc/{pid}/comm") == "berth-run\n", BOUND)
        os.unlink(self.supervisor)
        self.assertIn("started", self.begin(order(id=2), 2))

    def test_an_order_that_could_still_be_changed_is_refused(self):
        for seals in (0, SEALS & ~1, SEALS & ~8, SEALS & ~2):
            self.assert_refused(order(seals), "not sealed")
        reader, writer = os.pipe()
        os.close(writer)
        self.assert_refused(reader, "not sealed")
        self.assert_refused(os.open(self.canary, os.O_RDONLY), "not sealed")
        self.assert_refused(os.open("/dev/zero", os.O_RDONLY), "not sealed")

    def test_an_order_for_another_attempt_is_refused(self):
        self.assert_refused(order(id=2), "another attempt")
        self.assert_refused(order(attempt=3), "another attempt")

    def test_an_order_for_root_or_for_berthds_own_user_is_refused(self):
        self.assert_refused(order(uid=0, gid=0), "root")
        self.assert_refused(order(uid=self.service.uid), "own user")

    def test_an_order_for_a_user_of_the_system_is_refused_unless_admitted(self):
        self.stop_launcher()
        self.flags = ()  # BOB is one of them
        self.start_launcher()
        self.assert_refused(order(uid=BOB.uid), "one of the system's")
        self.assertEqual(self.open_file(BOB.uid, "/etc/passwd"), EPERM)
        self.assertIn("started", self.begin(order()))
        self.assertIn("root", self.open_file(ADA.uid, "/etc/passwd"))

    def test_an_order_for_nobody_that_is_known_is_refused(self):
        for uid in (4000000000, 2147483646, 123456):
            self.assert_refused(order(uid=uid), "no user")
        self.assertIn("refused", self.begin(order(uid=-1)))
        self.assert_lives()

    def test_a_group_cannot_be_chosen(self):
        self.begin(order(gid=0, command=["/bin/sh", "-c", "id -g; id -G"]))
        out = os.path.join(self.state, "log", "1.out")
        until(lambda: os.path.exists(out) and len(read(out).split()) > 1, BOUND)
        self.assertNotIn("0", read(out).split())

    def test_a_job_has_its_users_groups_and_ignores_no_signal(self):
        """Whatever the launcher was given by who started it."""
        def prepare():
            os.setgroups([0, 4, 6])
            with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
                file.write("500")  # a service is given less, which not every root may
            for number in (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
                signal.signal(number, signal.SIG_IGN)
        self.stop_launcher()
        self.start_launcher(prepare)
        self.begin(order(command=["/bin/sh", "-c", "grep -E '^(Groups|SigIgn)' /proc/$$/status;"
                                  "echo oom: $(cat /proc/$$/oom_score_adj); echo done"]))
        out = os.path.join(self.state, "log", "1.out")
        until(lambda: os.path.exists(out) and "done" in read(out), BOUND)
        found = dict(line.split(":") for line in read(out).splitlines()[:3])
        self.assertEqual(set(map(int, found["Groups"].split())),
                         set(os.getgrouplist(ADA.name, ADA.gid)))
        own = 1 << 31 | 1 << 32 # 32 and 33 are the C library's: its posix_spawn() ignores them
        self.assertEqual(int(found["SigIgn"], 16) & ~own, 0)
        self.assertEqual(int(found["oom"]), 0)

    def test_it_keeps_eleven_capabilities(self):
        self.assert_lives()
        kept = sum(1 << number for number in (
            0, 1, 3, 5, 6, 7,  # CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID, SETUID
            19, 21, 24, 29, 39))  # SYS_PTRACE, SYS_ADMIN, SYS_RESOURCE, AUDIT_WRITE, BPF
        for line in read(f"/proc/{self.process.pid}/status").splitlines():
            if line.startswith(("CapPrm:", "CapEff:", "CapInh:", "CapAmb:")):
                self.assertEqual(int(line.split()[1], 16) & ~kept, 0, line)

    def test_a_supervisor_has_no_environment(self):
        self.stop_launcher()
        self.start_launcher(env={"SECRET": "of root"})
        self.assertIn("started", self.begin(order(command=["/bin/sleep", "900"])))
        pid = read(os.path.join(self.run, "jobs", "1.0", "claim")).split()[0]
        self.assertEqual(read(f"/proc/{pid}/environ"), "")

    def test_a_folder_of_an_attempt_that_is_not_roots_is_not_used(self):
        folder = os.path.join(self.run, "jobs", "5.0")
        self.assert_lives()  # it has made the folder above
        os.mkdir(folder)
        os.chown(folder, ADA.uid, ADA.gid)
        self.assertIn("refused", self.begin(order(id=5), 5))
        self.assertEqual(os.listdir(folder), [])
        self.assert_lives()

    def test_an_order_without_sense_is_refused(self):
        for ident, wrong in enumerate(({"cwd": None}, {"command": []}, {"dscp": 99},
                                       {"uid": "x"}, {"denied": "1"}, {"gpus": None}), 1):
            self.assert_refused(order(id=ident, **wrong), "order: ", ident)

    def test_an_order_of_random_bytes_is_refused(self):
        import random
        chance = random.Random(17)
        for _ in range(many(30, 3000)):
            fd = os.memfd_create("order", os.MFD_ALLOW_SEALING)
            os.write(fd, chance.randbytes(chance.randrange(2000)) +
                     (b"end=\0" if chance.random() < 0.5 else b""))
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SEALS)
            self.assertIn("refused", self.begin(fd))
        self.assert_lives()

    def test_an_attempt_is_started_once(self):
        self.assertIn("started", self.begin(order(command=["/bin/sleep", "900"])))
        claim = read(os.path.join(self.run, "jobs", "1.0", "claim"))
        for _ in range(3):
            self.assertEqual(self.begin(order()), EEXIST)
        self.assertEqual(read(os.path.join(self.run, "jobs", "1.0", "claim")), claim)
        self.assert_lives()

    def test_two_starts_at_once_make_one_attempt(self):
        out = os.path.join(self.state, "log", "1.out")
        for _ in range(many(3, 30)):
            requests = []
            for _ in range(8):
                mine, theirs = socket.socketpair()
                fd = order(command=["/bin/sh", "-c", "echo once; sleep 900"])
                socket.send_fds(self.orders, [REQUEST.pack(START, 0, 1)],
                                [fd, theirs.fileno()])
                requests.append((mine, theirs, fd))
            for mine, theirs, fd in requests:
                self.orders.recv(4096)
                theirs.close()
                os.close(fd)
            until(lambda: os.path.exists(out) and read(out), BOUND)
            for mine, _, _ in requests:
                mine.close()
            self.assertEqual(read(out), "once\n")
            self.ask(REMOVE, 1)
            until(lambda: not listing(os.path.join(self.run, "jobs")), BOUND)
            os.remove(out)

    def test_the_order_of_an_attempt_cannot_lead_out_of_its_folder(self):
        for ident, key in enumerate(("id", "attempt", "name", "cgroup", "cgroup_memory"), 1):
            answer = self.begin(order(**{"id": ident, key: "../../etc"}), ident)
            self.assertTrue(str(answer).startswith(("refused", "started")), answer)
        self.assertEqual([name for name in os.listdir(self.dir)
                          if name not in ("run", "s", "canary")], [])
        self.assert_lives()

    def test_garbage_is_answered_or_passed_over(self):
        for data in (b"x", b"\0" * 15, b"\0" * 17, b"\xff" * 16, b"\xff" * 5000,
                     REQUEST.pack(0, 0, 0), REQUEST.pack(99, 1, 1), REQUEST.pack(BRIDGE, 0, 0)):
            self.orders.send(data)
            error = REPLY.unpack(self.orders.recv(4096))[0]
            self.assertIn(error, (EPROTO, ENOSYS))
        for data in (b"x", b"\xff" * 4112, b"\0" * 9000):
            self.openings.send(data)
            if len(data) <= OPENING.size:
                answer = self.openings.recv(100)
                self.assertEqual(OPENED.unpack(answer)[1], EINVAL)
                if len(data) < 8:
                    self.assertEqual(answer[len(data):8], bytes(8 - len(data)), "its memory")
        self.assert_lives()

    def test_too_many_descriptors_are_refused_and_closed(self):
        self.assert_lives()  # it has opened all that it needs
        before = len(os.listdir(f"/proc/{self.process.pid}/fd"))
        for count in (1, 3, 4, 5, 50, 250):
            fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(count)]
            self.assertIn(self.ask(START, 1, 0, fds)[0], (EINVAL, EPROTO))
            self.openings.settimeout(0.1)
            fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(count)]
            socket.send_fds(self.openings, [OPENING.pack(1, ADA.uid, b"/etc/passwd")], fds)
            for fd in fds:
                os.close(fd)
            try:
                self.openings.recv(100)
            except TimeoutError:
                pass
        self.openings.settimeout(BOUND)
        self.assert_lives()
        self.assertEqual(len(os.listdir(f"/proc/{self.process.pid}/fd")), before)

    def test_what_does_not_exist_can_be_killed_and_removed_without_harm(self):
        for ident in (0, 5, (1 << 64) - 1):
            for kind in (KILL, KILL_JOB, REMOVE):
                # Where there are no cgroups, a search tells only later that nothing is left.
                until(lambda k=kind, i=ident: self.ask(k, i, 4294967295) == (0, 0), BOUND)
        self.assert_lives()

    def test_files_are_opened_with_the_users_rights_alone(self):
        self.assertEqual(self.open_file(ADA.uid, "/etc/shadow"), EACCES)
        self.assertEqual(self.open_file(ADA.uid, self.canary), EACCES)
        self.assertIn("root", self.open_file(ADA.uid, "/etc/passwd"))
        mine = os.path.join(self.dir, "mine")
        write(mine, "of ada\n", 0o600)
        os.chown(mine, ADA.uid, ADA.gid)
        self.assertEqual(self.open_file(ADA.uid, mine), "of ada\n")
        self.assertEqual(self.open_file(BOB.uid, mine), EACCES)
        self.assert_lives()

    def test_nothing_is_opened_for_root_and_for_those_who_are_not_known(self):
        for uid in (0, self.service.uid):
            self.assertEqual(self.open_file(uid, "/etc/passwd"), EPERM)
        self.assertEqual(self.open_file(4000000000, "/etc/passwd"), ENOENT)

    def test_only_plain_files_with_whole_paths_are_opened(self):
        link, pipe = os.path.join(self.dir, "link"), os.path.join(self.dir, "pipe")
        os.symlink("/etc/passwd", link)
        os.mkfifo(pipe, 0o666)
        os.chmod(pipe, 0o666)
        for path in ("etc/passwd", "", "../etc/passwd", "/etc", "/dev/null", "/dev/zero", link,
                     pipe, "/proc/self/mem", "/proc/self/environ", "/proc/1/cmdline",
                     "/proc/self/fd/3", "/proc/self/exe", "/proc/version"):
            self.assertIsInstance(self.open_file(ADA.uid, path), int, path)
        self.openings.send(struct.pack("=QI4096s4x", 7, ADA.uid, b"/" * 4096))
        self.assertEqual(OPENED.unpack(self.openings.recv(100))[1], EINVAL)
        self.assert_lives()

    def children(self):
        pid = self.process.pid
        return [int(word) for word in read(f"/proc/{pid}/task/{pid}/children").split()]

    def halts(self, pid):
        """Stop a process, as many large environments do for long; False: it has ended before."""
        try:
            os.kill(pid, signal.SIGSTOP)
            until(lambda: state_of(pid) in "TZX", BOUND)
            return state_of(pid) == "T"
        except (ProcessLookupError, FileNotFoundError):
            return False

    def halt_search(self, ident):
        """The process that searches for that job, stopped before it has answered."""
        for _ in range(500):
            self.ask(KILL, ident)
            for pid in self.children():
                if not self.halts(pid):
                    continue
                self.addCleanup(end_halted, pid)  # else it outlives a case that fails
                if self.ask(KILL, ident) == (0, 1):
                    return pid
                os.kill(pid, signal.SIGKILL) # it had answered already
        self.fail("no child searches")

    def test_a_search_that_takes_long_does_not_hold_it_up(self):
        """Where there are no cgroups, processes are found by their environment."""
        self.without_cgroups()
        found = self.halt_search(5)
        for _ in range(3):
            start = time.monotonic()
            self.assertEqual(self.ask(KILL, 5), (0, 1))  # not known yet
            self.ask(KILL_JOB, 5)
            self.assert_lives()
            self.assertLess(time.monotonic() - start, 5, "it waits for a child")
        self.assertIn("started", self.begin(order(command=["/bin/sleep", "900"])))
        until(lambda: self.ask(KILL, 1)[1] == 0, BOUND)
        os.kill(found, signal.SIGKILL)
        until(lambda: self.ask(KILL, 5)[1] == 0, BOUND)

    def halt_in_proc(self, pid):
        """Let it go on until it goes through /proc; False: it has ended before."""
        try:
            while not any(os.readlink(f"/proc/{pid}/fd/{fd}").startswith("/proc")
                          for fd in os.listdir(f"/proc/{pid}/fd")):
                os.kill(pid, signal.SIGCONT)
                if not self.halts(pid):
                    return False
            return True
        except (FileNotFoundError, ProcessLookupError):
            return False

    def test_a_search_is_given_up_after_ten_seconds(self):
        self.without_cgroups()
        while not self.halt_in_proc(found := self.halt_search(5)):
            until(lambda: self.ask(KILL, 5)[1] == 0, BOUND)
        until(lambda: pends(found, signal.SIGALRM), BOUND)
        os.kill(found, signal.SIGCONT)
        until(lambda: self.ask(KILL, 5)[1] == 0, BOUND)

    def without_cgroups(self):
        if not can_mask():
            self.skipTest("cannot hide the machine's cgroups here")
        self.stop_launcher()
        self.hides_cgroups = True
        self.start_launcher()
        self.assert_lives()

    def marked_process(self, user):
        """A process outside of job 1 that pretends to belong to it."""
        mark = os.path.join(self.run, "jobs", "1.0", "job", "preempt")
        process = subprocess.Popen(["/bin/sleep", "900"], preexec_fn=user.become, cwd="/",
                                   env={"BERTH_PREEMPT_FILE": mark})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_a_search_is_for_processes_of_the_jobs_user(self):
        self.without_cgroups()
        others, own = self.marked_process(BOB), self.marked_process(ADA)
        self.assertIn("started", self.begin(order(command=["/bin/sleep", "900"])))
        until(lambda: self.ask(KILL, 1)[1] == 0, BOUND)
        self.assertEqual(own.wait(BOUND), -signal.SIGKILL)
        self.assertIsNone(others.poll())

    def test_its_end_is_noticed_while_it_removes_something(self):
        """With the user's rights; it lasts as long as something is there that these cannot remove."""
        self.assertIn("started", self.begin(order(command=["/bin/true"])))
        folder = os.path.join(self.run, "jobs", "1.0", "job")
        theirs = os.path.join(folder, "theirs")
        os.mkdir(theirs)
        write(os.path.join(theirs, "file"), "")
        os.chown(theirs, BOB.uid, BOB.gid)

        def fill():
            for _ in range(100000):
                try:
                    os.mkdir(os.path.join(folder, str(time.monotonic_ns())))
                except OSError:
                    pass
        pids = [ADA.spawn(fill) for _ in range(2)]
        for pid in pids:
            self.addCleanup(end, pid)
        until(lambda: len(listing(folder)) > 20, BOUND)
        self.ask(REMOVE, 1)
        until(self.children, BOUND)
        children = self.children()
        own = [self.service.uid, ADA.uid, self.service.uid]
        until(lambda: [pid for pid, _, _, parent, _ in processes()
                       if parent in children and read_uid(pid) == own], BOUND)
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.assertEqual((self.orders.recv(100), self.openings.recv(100)), (b"", b""))
        self.assertTrue(any(os.path.exists(f"/proc/{pid}") for pid in children),
                        "it removes nothing any more")

    def test_it_ends_when_berthd_does(self):
        self.orders.close()
        self.process.wait(BOUND)

    def test_folders_that_were_exchanged_are_refused_at_the_next_start(self):
        self.stop_launcher()
        jobs, aside = os.path.join(self.run, "jobs"), os.path.join(self.run, "aside")

        def exchange(how):
            os.rename(jobs, aside)
            how()
        for how in (lambda: os.symlink("/etc", jobs), lambda: os.mkdir(jobs),
                    lambda: write(jobs, "")):
            self.service.call(exchange, how)
            before = os.stat("/etc")
            self.start_launcher()
            self.assertNotEqual(self.ask(HELLO)[0], 0) # and a sentence
            self.assertEqual(self.process.wait(BOUND), 1)
            after = os.stat("/etc")
            self.assertEqual((before.st_uid, before.st_gid, before.st_mode),
                             (after.st_uid, after.st_gid, after.st_mode))
            self.service.call(lambda: (os.rmdir(jobs) if os.path.isdir(jobs) and
                                       not os.path.islink(jobs) else os.unlink(jobs),
                                       os.rename(aside, jobs)))


@unittest.skipUnless(os.geteuid() == 0, "needs root, to start berth-launch")
class Listener(unittest.TestCase):
    """A service manager has started it, and berthds come and go."""

    def setUp(self):
        self.service = User(SERVICE)
        self.dir = tempfile.mkdtemp(prefix="berth-launch-")
        self.addCleanup(shutil.rmtree, self.dir, True)
        os.chmod(self.dir, 0o711)
        self.path = os.path.join(self.dir, "orders")
        words = ["--uid", str(self.service.uid), "--gid", str(self.service.gid),
                 "--listen", self.path, "--supervisor", os.path.join(BUILD, "berth-run")]
        for name in ("run", "state"):
            os.mkdir(os.path.join(self.dir, name))
            words += [f"--{name}", os.path.join(self.dir, name)]
        self.process = subprocess.Popen([os.path.join(BUILD, "berth-launch"), *words], env={})
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        until(self.listens, BOUND)

    def listens(self):
        """As the kernel says; a connection would be one of a berthd."""
        return any(words[3] == "00010000" and words[-1] == self.path for words in
                   map(str.split, read("/proc/net/unix").splitlines()))

    def connect(self):
        wire = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        wire.settimeout(BOUND)
        wire.connect(self.path)
        self.addCleanup(wire.close)
        return wire

    def greet(self, orders):
        """Its answer to a berthd; empty if it hangs up."""
        try:
            orders.send(REQUEST.pack(HELLO, 0, 0))
            return orders.recv(4096)
        except (BrokenPipeError, ConnectionResetError):
            return b""

    def hold(self, count):
        """Another process with so many connections, which it keeps."""
        reader, writer = os.pipe()

        def connect():
            wires = [self.connect() for _ in range(count)]
            if count == 2:
                self.greet(wires[0])
            os.write(writer, b"x")
            time.sleep(900)
        self.addCleanup(end, self.service.spawn(connect))
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            self.assertEqual(pipe.read(1), b"x")

    def test_the_newest_berthd_is_served(self):
        """One that was taken over may leave connections, or one of two, to other processes."""
        for left in ((2,), (1,), (1, 1, 1), (2, 1)):
            for count in left:
                self.hold(count)
            orders, _ = self.connect(), self.connect()
            self.assertEqual(len(self.greet(orders)), REPLY.size, left)
        self.assertIsNone(self.process.poll())

    def test_members_of_the_services_group_are_not_served(self):
        member = User(ADA.name)
        member.gid = self.service.gid
        self.assertEqual(member.call(lambda: self.greet(self.connect())), b"")
        orders, _ = self.connect(), self.connect()
        self.assertEqual(len(self.greet(orders)), REPLY.size)
        self.assertEqual(member.call(lambda: self.greet(self.connect())), b"")
        self.assertEqual(len(self.greet(orders)), REPLY.size)


class Refused(Case):
    """Users who may not have jobs."""

    flags = ("--min-uid", "1000")

    def submit_by_berth(self, user=None):
        """As users type it: exit status, standard output and standard error."""
        done = subprocess.run(
            [os.path.join(BUILD, "berth"), "submit", "-G1", "true"], cwd="/", text=True,
            capture_output=True, timeout=BOUND, preexec_fn=user.become if user else None,
            env={"PATH": PATH, "BERTH_ADDR": self.daemon.socket, "BERTH_NO_START": "1"})
        return done.returncode, done.stdout, done.stderr

    def test_a_job_of_root_or_of_a_user_of_the_system_is_refused_and_told_why(self):
        for user, why in ((None, "jobs of root are not run here"),
                          (BOB, f"user {BOB.uid} is one of the system's")):
            status, out, said = self.submit_by_berth(user)
            self.assertEqual((status, out), (2, ""), said)
            self.assertEqual(said.count("\n"), 1, said)
            self.assertTrue(said.startswith(f"berth submit: {why}"), said)
        self.assertEqual(send(self.daemon.socket, "GET", "/v1/jobs")[1]["jobs"], [])
        self.assertEqual(self.wait(self.submit(ADA, "true"))["state"], "COMPLETED")


class Reach(Case):
    """What a user sees of berth-launch."""

    @classmethod
    def prepare(cls):
        cls.daemon.prefix = ["setpriv", "--groups", "0,4"]

    def test_it_has_no_socket_in_the_file_system_or_in_the_abstract_space(self):
        inodes = set()
        for fd in os.listdir(f"/proc/{self.launcher}/fd"):
            link = os.readlink(f"/proc/{self.launcher}/fd/{fd}")
            if link.startswith("socket:"):
                inodes.add(link[8:-1])
        named = [line for line in read("/proc/net/unix").splitlines()
                 if len(line.split()) > 7 and line.split()[6] in inodes]
        self.assertTrue(inodes)
        self.assertEqual(named, [])

    def test_its_descriptors_and_memory_are_hidden(self):
        for pid in (self.launcher, self.daemon.process.pid):
            for name in ("fd", "fdinfo", "mem", "environ", "maps"):
                with self.assertRaises(OSError, msg=name):
                    ADA.call(lambda n=name, p=pid: os.listdir(f"/proc/{p}/{n}")
                             if n.startswith("fd") else open(f"/proc/{p}/{n}", "rb").read(1))
            with self.assertRaises(PermissionError):
                ADA.call(os.kill, pid, 9)

    def test_berthd_itself_has_no_right_but_its_users(self):
        status = read(f"/proc/{self.daemon.process.pid}/status")
        service = User(SERVICE)
        self.assertRegex(status, rf"Uid:\s+{service.uid}\s+{service.uid}\s+{service.uid}")
        for name in ("CapPrm", "CapEff", "CapInh", "CapAmb"):
            self.assertRegex(status, rf"{name}:\s+0000000000000000")
        self.assertRegex(status, r"NoNewPrivs:\s+1")
        groups = re.search(r"Groups:(.*)", status)[1].split()
        self.assertEqual(set(map(int, groups)), set(os.getgrouplist(SERVICE, service.gid)))

    def test_berths_own_user_cannot_be_a_user_of_it(self):
        service = User(SERVICE)
        for pid in (self.launcher,):
            with self.assertRaises(PermissionError):
                service.call(os.kill, pid, 9)
            with self.assertRaises(OSError):
                service.call(os.listdir, f"/proc/{pid}/fd")


class Openings(Case):
    """Children that open a file as a user."""

    def test_a_user_can_neither_halt_nor_exhaust_them(self):
        path = os.path.join(self.open, "out")
        ident = self.submit(ADA, "echo hello; sleep 900", output=path)
        self.wait(ident, {"RUNNING"})
        until(lambda: os.path.exists(path) and read(path), BOUND)
        state = self.daemon.state.encode()

        def halt():
            import signal
            while True:
                for pid, _, _, _, name in processes():
                    if name == "berth-launch":
                        try:
                            with open(f"/proc/{pid}/cmdline", "rb") as file:
                                if state in file.read():
                                    os.kill(pid, signal.SIGSTOP)
                        except OSError:
                            pass
        pids = [ADA.spawn(halt) for _ in range(2)]
        try:
            for _ in range(many(60, 2000)):
                status, text = self.ask(ADA, "GET", f"/v1/jobs/{ident}/log")
                self.assertEqual((status, text), (200, "hello\n"))
        finally:
            for pid in pids:
                end(pid)
        halted = [pid for pid, _, state_of, _, name in processes()
                  if name == "berth-launch" and state_of == "T" and pid in
                  marked(self.daemon.state)]
        self.assertEqual(halted, [])


if __name__ == "__main__":
    unittest.main()
