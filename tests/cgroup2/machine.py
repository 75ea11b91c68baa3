"""machine - what the tests of a machine with systemd and cgroups of version 2 share.

They change the machine: services are started, stopped and restarted, device files are made.
tools/check-cgroup2 makes a guest for them.
"""
import json
import os
import pwd
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                                "e2e"))
from live import ENDED, PATIENCE, until  # noqa: E402,F401

TOP = "/sys/fs/cgroup"
MIB = 1 << 20

# Leaves its session and its parents, drops its environment, and stays: MARK is in its arguments.
ESCAPE = ("import os, time\n"
          "if os.fork() == 0:\n"
          "    os.setsid()\n"
          "    if os.fork() == 0:\n"
          "        os.execve('/bin/sleep', ['sleep', 'MARK'], {})\n"
          "    os._exit(0)\n"
          "os.wait()\n"
          "print('escaped', flush=True)\n"
          "time.sleep(3600)\n")

# Takes 200 MiB and touches every page of it.
GLUTTON = "held = bytearray(b'x') * (200 << 20)\nprint(len(held))\n"


def run(*words, **more):
    return subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
                          timeout=PATIENCE, **more)


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def processes_with(text):
    """Living processes with this argument."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = read(f"/proc/{name}/cmdline").split("\0")
            state = read(f"/proc/{name}/stat").rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if text in words and state not in "ZX":
            found.append(int(name))
    return found


def group_of(pid):
    """The folder of a process's cgroup."""
    return TOP + re.search(r"(?m)^0::(.*)$", read(f"/proc/{pid}/cgroup"))[1]


class User:
    """A user with a home, who types commands."""

    def __init__(self, name, address=None):
        self.name = name
        entry = pwd.getpwnam(name)
        self.uid, self.home = entry.pw_uid, entry.pw_dir
        self.env = {"HOME": self.home, "PATH": os.environ["PATH"], "LANG": "C.UTF-8",
                    "XDG_RUNTIME_DIR": f"/run/user/{self.uid}"}
        if address:
            self.env["BERTH_ADDR"] = address

    def run(self, *words):
        return run("runuser", "-u", self.name, "--", "env", "-i", "-C", self.home,
                   *(f"{key}={value}" for key, value in self.env.items()), *words)

    def berth(self, *words):
        done = self.run("berth", *words)
        if done.returncode != 0:
            raise AssertionError(f"berth {' '.join(words)}: {done.stdout}")
        return done.stdout

    def submit(self, *words):
        return self.berth("submit", "--parsable", *words).strip()

    def job(self, ident):
        return json.loads(self.berth("show", ident, "--json"))

    def wait(self, ident, states=ENDED):
        """The job once it is in one of these states."""
        job = {}

        def reached():
            job.update(self.job(ident))
            return job["state"] in states
        try:
            until(reached)
        except AssertionError:
            raise AssertionError(f"job {ident} is {job}") from None
        return job

    def server(self):
        """What berthd says of itself."""
        return json.loads(self.run("python3", "-c", (
            "import os, sys; sys.path.insert(0, '/berth/tests/e2e'); from live import Wire\n"
            "wire = Wire(sys.argv[1]); wire.request('GET', '/v1/server')\n"
            "print(wire.getresponse().read().decode())"), self.address()).stdout)

    def address(self):
        return self.env.get("BERTH_ADDR", f"{self.env['XDG_RUNTIME_DIR']}/berth/api.sock")

    def cancel_all(self):
        left = [job["id"] for job in json.loads(self.berth("queue", "--json"))["jobs"]]
        self.berth("cancel", "--all")
        for ident in left:
            self.wait(str(ident))


class Case(unittest.TestCase):
    """Claims that hold for jobs of a user, whoever started berthd."""

    def start_escape(self, user, *flags):
        """A job with a process that leaves all it can leave: its number and that process."""
        mark = str(70000000 + os.getpid() * 100 + Case.marks)
        Case.marks += 1
        ident = user.submit("-G1", *flags, "--", "/usr/bin/python3", "-ISc",
                            ESCAPE.replace("MARK", mark))
        user.wait(ident, {"RUNNING"})
        return ident, until(lambda: processes_with(mark))[0], mark

    marks = 0

    def assert_removed(self, group):
        """The cgroup of a job that has ended goes."""
        until(lambda: not os.path.exists(group))

    def assert_dies_of_memory(self, user):
        ident = user.submit("-G1", "--mem", "64M", "--", "/usr/bin/python3", "-ISc", GLUTTON)
        job = user.wait(ident)
        self.assertEqual(job["state"], "FAILED", job)
        self.assertIn("out of memory: the kernel killed it at its limit of 64 MiB",
                      json.dumps(job))
        roomy = user.submit("-G1", "--mem", "400M", "--", "/usr/bin/python3", "-ISc", GLUTTON)
        self.assertEqual(user.wait(roomy)["state"], "COMPLETED")
