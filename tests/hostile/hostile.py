"""hostile - a berthd for several users, and users who mean it harm.

berthd runs as root starts it, with --system; users are those that every Debian has.  What they do
is done in a process of their own that has become the user, so that the kernel judges it.
"""
import fcntl
import os
import pickle
import pwd
import signal
import socket
import subprocess
import sys
import time
import traceback
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                                "e2e"))
import encodings.idna  # noqa: E402,F401  needed by http.client after the user is changed
from live import BUILD, Daemon, ENDED, FACTOR, PATIENCE, SERVICE, Wire, until  # noqa: E402,F401

import json  # noqa: E402

SOAK = bool(os.environ.get("BERTH_SOAK"))
PYTHON = "/usr/bin/python3"  # one that all users may run
PATH = "/usr/bin:/bin"
SUDDEN = 20 * FACTOR  # seconds: what is asked of berthd is answered, whatever users do
BOUND = 60 * FACTOR   # seconds: an end that is enforced is enforced by then, also on a busy machine


def many(short, long):
    """How often something is tried: a few times in a check, often in a soak."""
    return long if SOAK else short


class User:
    """A user of the machine who is not root."""

    def __init__(self, name):
        self.name = name
        self.uid, self.gid = pwd.getpwnam(name)[2:4]

    def become(self):
        os.setgroups([])
        os.setgid(self.gid)
        os.setuid(self.uid)

    def call(self, function, *args):
        """What function(*args) returns when the user calls it; its exceptions are raised here."""
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            try:
                self.become()
                answer = (True, function(*args))
            except BaseException as error:  # pylint: disable=broad-except
                answer = (False, error if isinstance(error, OSError) else
                          AssertionError(traceback.format_exc()))
            with os.fdopen(writer, "wb") as pipe:
                pickle.dump(answer, pipe)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            data = pipe.read()
        os.waitpid(pid, 0)
        good, answer = pickle.loads(data)
        if not good:
            raise answer
        return answer

    def spawn(self, function, *args):
        """Call function(*args) as the user, beside us; returns the process."""
        pid = os.fork()
        if pid == 0:
            try:
                os.setsid()
                self.become()
                function(*args)
            finally:
                os._exit(0)
        return pid


ADA, BOB = User("nobody"), User("games")


def start_launcher(*flags, env=None, prepare=None):
    """A berth-launch, and what berthd has of it: sockets for orders and for openings."""
    kind = socket.SOCK_SEQPACKET
    orders, theirs = socket.socketpair(socket.AF_UNIX, kind)
    openings, files = socket.socketpair(socket.AF_UNIX, kind)
    for one in (orders, openings):
        one.settimeout(BOUND)

    def place():
        a, b = fcntl.fcntl(theirs, fcntl.F_DUPFD, 20), fcntl.fcntl(files, fcntl.F_DUPFD, 20)
        if prepare:
            prepare()
        os.dup2(a, 3)
        os.dup2(b, 4)
        os.closerange(5, 100)
    service = User(SERVICE)
    process = subprocess.Popen(
        [os.path.join(BUILD, "berth-launch"), "--uid", str(service.uid), "--gid",
         str(service.gid), *flags], env=env or {}, preexec_fn=place, close_fds=False,
        stdin=subprocess.DEVNULL)
    theirs.close()
    files.close()
    return process, orders, openings


def end(pid):
    """End a process that spawn() started."""
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):
        pass


def send(socket, method, path, body=None, timeout=SUDDEN):
    """A request with the rights of this process: status and reply."""
    wire = Wire(socket, timeout)
    try:
        wire.request(method, path, body=json.dumps(body) if body is not None else None)
        reply = wire.getresponse()
        text = reply.read().decode("utf-8", "replace")
        if "json" in (reply.getheader("Content-Type") or ""):
            return reply.status, json.loads(text)
        return reply.status, text
    finally:
        wire.close()


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def write(path, text, mode=0o644):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


def processes():
    """All processes: (pid, uid, state, parent, name)."""
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            line = read(f"/proc/{name}/stat")
            uid = os.stat(f"/proc/{name}").st_uid
        except OSError:
            continue
        words = line.rsplit(")", 1)[1].split()
        yield (int(name), uid, words[0], int(words[1]), line.split("(", 1)[1].rsplit(")", 1)[0])


def real_uid(pid):
    for line in read(f"/proc/{pid}/status").splitlines():
        if line.startswith("Uid:"):
            return [int(word) for word in line.split()[1:4]]
    return None


def marked(text):
    """Living processes with this in their command line or environment."""
    found = []
    for pid, _, state, _, _ in processes():
        if state in "ZX" or pid == os.getpid():
            continue
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                line = file.read()
        except OSError:
            continue
        if text.encode() in line:
            found.append(pid)
    return found


def own_groups():
    """The folders of this process's cgroups, by hierarchy, and their tops."""
    places = []
    for line in read("/proc/self/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        for mount in ("unified", "") if names == "" else (names.split(",")[0],):
            top = os.path.join("/sys/fs/cgroup", mount)
            places += [top, top + path.rstrip("/")]
    return {place for place in places if os.path.isdir(place)}


def groups_named(name):
    """Cgroups of a berthd that are there."""
    return sorted(path for place in own_groups()
                  for path in [os.path.join(place, name)] if os.path.isdir(path))


@unittest.skipUnless(os.geteuid() == 0, "needs root, to be several users")
class Case(unittest.TestCase):
    """A berthd for all cases of a class; nothing of it is left behind afterwards."""

    gpus = "v100:4"
    flags = ()

    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon("--system", *cls.flags, gpus=cls.gpus)
        cls.addClassCleanup(cls.wipe)
        os.chmod(cls.daemon.dir, 0o711)
        cls.secret = os.path.join(cls.daemon.dir, "secret")
        write(cls.secret, "of root\n", 0o600)
        cls.canary = os.stat(cls.secret)
        cls.open = os.path.join(cls.daemon.dir, "open")
        os.mkdir(cls.open)
        os.chmod(cls.open, 0o1777)
        cls.group = None
        cls.prepare()
        cls.daemon.start()
        cls.launcher = cls.find_launcher()

    @classmethod
    def prepare(cls):
        """What a class does before its berthd starts."""

    @classmethod
    def wipe(cls):
        """Everything has to go: processes, cgroups and folders."""
        cls.daemon.wipe()
        left = [pid for pid in marked(cls.daemon.state)
                if "berth-" in read(f"/proc/{pid}/comm")]
        if not left and not (cls.group and groups_named(cls.group)):
            return
        try:
            until(lambda: not marked(cls.daemon.state) and
                  not (cls.group and groups_named(cls.group)), 10)
        except AssertionError:
            raise AssertionError(
                f"left behind: {left}, "
                f"{[(g, os.listdir(g)[:3]) for g in groups_named(cls.group)]}") from None

    @classmethod
    def find_launcher(cls):
        """The berth-launch of this berthd."""
        found = [pid for pid, _, _, parent, name in processes()
                 if parent == cls.daemon.process.pid and name == "berth-launch"]
        return found[0] if found else None

    def tearDown(self):
        """The next case finds all GPUs free."""
        keep = getattr(self, "ident", None)
        status, answer = send(self.daemon.socket, "GET", "/v1/jobs")
        left = [job["id"] for job in answer["jobs"] if job["id"] != keep] \
            if status == 200 else []
        for ident in left:
            send(self.daemon.socket, "DELETE", f"/v1/jobs/{ident}")
        for ident in left:
            self.wait(ident)

    # --- requests

    def ask(self, user, method, path, body=None):
        return user.call(send, self.daemon.socket, method, path, body)

    def submit(self, user, what, **request):
        command = what if isinstance(what, list) else ["/bin/sh", "-c", what]
        request = {"command": command, "cwd": "/", "gpus": 1, "env": {"PATH": PATH}, **request}
        status, answer = self.ask(user, "POST", "/v1/jobs", {
            key: value for key, value in request.items() if value is not None})
        self.assertEqual(status, 201, answer)
        return answer["id"]

    def python(self, user, text, *words, **request):
        """A job that is a program in Python."""
        if not os.access(PYTHON, os.X_OK):
            self.skipTest(f"needs {PYTHON}, for jobs of other users")
        return self.submit(user, [PYTHON, "-ISc", text, *map(str, words)], **request)

    def need_enforced(self, what):
        """Only where the kernel enforces it for jobs."""
        server = send(self.daemon.socket, "GET", "/v1/server")[1]
        if what not in server["enforced"]:
            self.skipTest(f"no cgroups that enforce {what} here")

    def job(self, ident):
        status, answer = send(self.daemon.socket, "GET", f"/v1/jobs/{ident}")
        self.assertEqual(status, 200, answer)
        return answer

    def wait(self, ident, states=ENDED, seconds=PATIENCE):
        end_at = time.monotonic() + seconds
        while (job := self.job(ident))["state"] not in states:
            if time.monotonic() > end_at:
                self.fail(f"job {ident} is {job}; {self.daemon.words()}; {self.story(ident)}")
            time.sleep(0.02)
        if not self.group and job["state"] == "RUNNING":
            self.note_group(ident)
        return job

    def story(self, ident):
        """What is known of a job that does not do what it should."""
        folder = os.path.dirname(self.folder(ident))
        return (listing(folder), [(pid, name, state) for pid, _, state, _, name in processes()
                                  if pid in marked(self.daemon.state)],
                [event for event in self.daemon.events() if event.get("job") == ident][-8:])

    def run_to_end(self, user, script, **request):
        """The state and the output of a job that ends by itself."""
        ident = self.submit(user, script, **request)
        state = self.wait(ident)["state"]
        return state, self.output(ident)

    def output(self, ident):
        return read(os.path.join(self.daemon.state, "log", f"{ident}.out"))

    def cancel(self, ident):
        status, answer = send(self.daemon.socket, "DELETE", f"/v1/jobs/{ident}")
        self.assertEqual(status, 200, answer)

    def end_all(self, *idents):
        for ident in idents:
            self.cancel(ident)
        for ident in idents:
            self.wait(ident)

    # --- what a job is

    def folder(self, ident, attempt=0):
        return os.path.join(self.daemon.state, "run", "jobs", f"{ident}.{attempt}")

    def supervisor(self, ident, attempt=0):
        return int(read(os.path.join(self.folder(ident, attempt), "claim")).split()[0])

    def note_group(self, ident):
        """The name of this berthd's cgroups, from a running job."""
        try:
            for line in read(f"/proc/{self.supervisor(ident)}/cgroup").splitlines():
                for part in line.split("/"):
                    if part.startswith("berth-"):
                        type(self).group = part
        except (OSError, ValueError, IndexError):
            pass

    def job_group(self, ident, attempt=0):
        """The folder of the job's cgroup of version 2, or None."""
        self.note_group(ident)
        for path in groups_named(self.group or "-"):
            one = os.path.join(path, f"{ident}.{attempt}")
            if os.path.exists(os.path.join(one, "cgroup.kill")):
                return one
        return None

    # --- what must hold at any time

    def assert_answers(self):
        start = time.monotonic()
        status, _ = send(self.daemon.socket, "GET", "/v1/jobs", timeout=SUDDEN)
        self.assertEqual(status, 200)
        self.assertLess(time.monotonic() - start, SUDDEN)

    def assert_unharmed(self):
        """Nothing of root's was changed, and users got nothing of root's."""
        now = os.stat(self.secret)
        self.assertEqual((now.st_uid, now.st_gid, now.st_mode, now.st_size, now.st_mtime_ns),
                         (self.canary.st_uid, self.canary.st_gid, self.canary.st_mode,
                          self.canary.st_size, self.canary.st_mtime_ns))
        self.assertEqual(read(self.secret), "of root\n")
        self.assertEqual(self.strange_owners(), [])
        self.assertIsNone(self.daemon.process.poll(), self.daemon.words())
        self.assert_answers()

    def strange_owners(self):
        """Files of root in folders of users, and files of users in folders of root's."""
        jobs = os.path.join(self.daemon.state, "run", "jobs")
        ckpt = os.path.join(self.daemon.state, "ckpt")
        found = []
        for place in (jobs, *(os.path.join(jobs, one) for one in listing(jobs))):
            found += [path for path, uid in owners(place)
                      if uid != 0 and os.path.basename(path) != "job"]
        for place in (self.open, *(os.path.join(jobs, one, "job") for one in listing(jobs)),
                      *(os.path.join(ckpt, one) for one in listing(ckpt))):
            found += [path for path, uid in owners(place) if uid == 0]
        return found

    def assert_gone(self, mark, seconds=BOUND):
        """No process with this mark is left."""
        until(lambda: not marked(mark), seconds)


def listing(path):
    try:
        return os.listdir(path)
    except OSError:
        return []


def owners(folder):
    """What is in a folder, and whose it is."""
    for name in listing(folder):
        path = os.path.join(folder, name)
        try:
            yield path, os.lstat(path).st_uid
        except OSError:
            pass
