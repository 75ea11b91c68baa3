"""live - a real berthd in a scratch folder, for tests: start it, send requests, kill it."""
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

BUILD = os.environ.get("BERTH_BUILD") or os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "build")
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "REJECTED"}
FACTOR = float(os.environ.get("BERTH_PATIENCE_FACTOR", 1))  # more where processors are emulated
PATIENCE = 90 * FACTOR  # seconds: a wait that takes longer has failed, also on a busy machine


def until(holds, seconds=PATIENCE):
    """Wait until holds() is true and return its value; AssertionError: it never is."""
    end = time.monotonic() + seconds
    while not (answer := holds()):
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s in vain")
        time.sleep(0.02)
    return answer


# Before a command: a mount name space of its own, where an empty folder hides the kernel's cgroups.
MASK = ["unshare", "--mount", "--propagation", "private", "sh", "-c",
        'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', "sh"]


def can_mask():
    done = subprocess.run([*MASK, "true"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False)
    return done.returncode == 0


class Wire(http.client.HTTPConnection):
    """HTTP over a UNIX socket."""

    def __init__(self, path, timeout=PATIENCE):
        super().__init__("berth", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


SERVICE = "proxy" # a user that every Debian has: what berthd --system runs as in tests


class Daemon:
    """A berthd of its own; all its files are below 'dir'."""

    def __init__(self, *flags, gpus="v100:4", folder=None):
        self.dir = folder or tempfile.mkdtemp(prefix="berth-live-")
        self.state = os.path.join(self.dir, "s")
        self.flags = ["--fake-gpus", gpus, *flags] if gpus else list(flags)
        if "--system" in flags and "--user" not in flags:
            os.chmod(self.dir, 0o755) # for the service and for users
            if "--launcher" not in flags: # else those are options of berth-launch
                self.flags += ["--user", SERVICE]
                if "--min-uid" not in flags:
                    self.flags += ["--min-uid", "1"] # games is one of the system's
        self.log = os.path.join(self.dir, "berthd.log")
        self.program = os.path.join(BUILD, "berthd")
        self.prefix = () # of its command line
        self.process = None
        self.socket = None

    def start(self, prefix=(), **kwargs):
        command = [*(prefix or self.prefix), self.program, "--state", self.state, *self.flags]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, **kwargs)
        line = self.process.stdout.readline().decode()
        if " ready on " not in line:
            self.process.wait()
            raise AssertionError(f"berthd did not start: {line}{self.words()}")
        self.socket = line.split(" ready on ")[1].strip()
        return self

    def words(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        self.process.wait()
        self.process.stdout.close()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.kill(signal.SIGTERM)

    def wipe(self):
        """End every job and berthd, and remove the folder."""
        if self.process and self.process.poll() is None:
            try:
                self.ask("DELETE", "/v1/server?kill=true")
                self.process.wait(PATIENCE)
            except (OSError, http.client.HTTPException, subprocess.TimeoutExpired):
                pass
        self.stop()
        words = self.words() if os.path.exists(self.log) else ""
        shutil.rmtree(self.dir, True)
        if self.process and self.process.returncode not in (0, 1, 2, -signal.SIGKILL):
            raise AssertionError(f"berthd ended with {self.process.returncode}: {words}")

    def ask(self, method, path, body=None, timeout=PATIENCE):
        """Send a request; returns the status and the reply."""
        wire = Wire(self.socket, timeout)
        try:
            text = json.dumps(body) if isinstance(body, (dict, list)) else body
            wire.request(method, path, body=text)
            reply = wire.getresponse()
            data = reply.read()
        finally:
            wire.close()
        # By its content type: the output of a job may be valid JSON as well.
        if "json" in (reply.getheader("Content-Type") or ""):
            return reply.status, json.loads(data)
        return reply.status, data.decode("utf-8", "replace")

    def supervisors(self):
        """The berth-run of each job.  Its child has the same arguments until it becomes the job,
        and is left out; so is the one that starts supervisors."""
        done = subprocess.run(["pgrep", "-f", f"berth-run.*{self.state}.* --(order|adopt) "],
                              stdout=subprocess.PIPE, check=False, text=True)
        found = {}
        for pid in map(int, done.stdout.split()):
            try:
                with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                    found[pid] = int(file.read().rsplit(")", 1)[1].split()[1])
            except OSError:
                pass
        return [pid for pid, parent in found.items() if parent not in found]

    def submit(self, *command, **request):
        request.setdefault("cwd", self.dir)
        request.setdefault("env", {"PATH": os.environ["PATH"]})
        request.setdefault("gpus", 1)
        status, answer = self.ask("POST", "/v1/jobs", {"command": list(command), **request})
        if status != 201:
            raise AssertionError(f"{status} {answer}")
        return answer["id"]

    def sh(self, script, **request):
        return self.submit("sh", "-c", script, **request)

    def job(self, ident):
        status, answer = self.ask("GET", f"/v1/jobs/{ident}")
        if status != 200:
            raise AssertionError(f"{status} {answer}")
        return answer

    def wait(self, ident, states=ENDED, seconds=PATIENCE):
        """Wait until the job is in one of these states, and return it."""
        end = time.monotonic() + seconds
        while True:
            job = self.job(ident)
            if job["state"] in states:
                return job
            if time.monotonic() > end:
                raise AssertionError(f"job {ident} is {job}\n{self.words()}")
            time.sleep(0.02)

    def events(self, ident=None):
        """The events in order, from the log."""
        import sqlite3
        base = sqlite3.connect(f"file:{self.state}/berth.db?mode=ro", uri=True)
        rows = base.execute("SELECT text FROM event ORDER BY seq").fetchall()
        base.close()
        events = [json.loads(text) for (text,) in rows]
        return [e for e in events if ident is None or e.get("job") == ident]
