"""A Slurm for the tests on this machine, and berth-slurm connected to it."""
import json
import os
import queue
import shutil
import subprocess
import tempfile
import threading
import time

from support import BUILD, ROOT

LAB = os.path.join(ROOT, "tests", "slurm", "lab")
BERTH_SLURM = os.path.join(BUILD, "berth-slurm")
NOBODY = 65534
PATIENCE = 90  # seconds, as in live.py


def missing():
    """Why there can be no lab here, or None."""
    if os.geteuid() != 0:
        return "only root can start a Slurm of our own"
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    for program in ("slurmctld", "slurmd", "munged", "sbatch"):
        if not shutil.which(program, path=path):
            return f"{program} is not installed"
    return None


class Lab:
    """Up until down() is called; jobs are submitted by a user who is not root."""

    def __init__(self, nodes=4, env=None):
        self.dir = tempfile.mkdtemp(prefix="bl.", dir="/tmp")
        os.chmod(self.dir, 0o755)
        subprocess.run([LAB, "up", self.dir, str(nodes)], check=True,
                       stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})
        self.work = os.path.join(self.dir, "work")
        os.mkdir(self.work)
        os.chmod(self.work, 0o777)
        self.bell = os.path.join(self.dir, "bells", "bell")
        self.env = {**os.environ, "SLURM_CONF": os.path.join(self.dir, "slurm.conf"),
                    "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"}

    def down(self):
        subprocess.run([LAB, "down", self.dir], check=True, stdin=subprocess.DEVNULL)

    def run(self, *words, user=None, text=None):
        who = {"user": user, "group": user, "extra_groups": []} if user else {}
        return subprocess.run(words, env=self.env, cwd=self.work, text=True, input=text or "",
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, **who)

    def submit(self, *flags, script="sleep 1000", user=NOBODY):
        """Submit a job as a user, nobody unless another is named; returns its id."""
        done = self.run("sbatch", "--parsable", "--output", "%j.out", *flags, user=user,
                        text="#!/bin/bash\n" + script + "\n")
        assert done.returncode == 0, done.stderr
        return int(done.stdout.split(";")[0])

    def pid(self, daemon):
        with open(os.path.join(self.dir, "run", daemon + ".pid"), encoding="ascii") as file:
            return int(file.read())

    def start(self, *words):
        """Start a daemon again that was killed."""
        done = self.run(*words)
        assert done.returncode == 0, done.stderr

    def output(self, name):
        try:
            with open(os.path.join(self.work, name), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""


class Driver:
    """berth-slurm, with requests as berthd sends them; keeps its messages."""

    def __init__(self, lab, *flags):
        self.process = subprocess.Popen(
            [BERTH_SLURM, *flags], env=lab.env, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines = queue.Queue()
        self.said, self.jobs, self.nodes, self.done, self.gone = [], {}, {}, {}, set()
        self.seq = 0
        threading.Thread(target=self.listen, daemon=True).start()
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            self.lines.put((time.monotonic(), line))
        self.lines.put((time.monotonic(), None))

    def hear(self, timeout):
        """Read one line; False: there is none."""
        try:
            when, line = self.lines.get(timeout=max(timeout, 0))
        except queue.Empty:
            return False
        if line is None:
            self.said.append((when, {"end": True}))
            return True
        word = json.loads(line)
        self.said.append((when, word))
        if "job" in word:
            self.jobs[word["job"]["id"]] = word["job"]
        elif "node" in word:
            self.nodes[word["node"]["name"]] = word["node"]
        elif "done" in word:
            self.done[word["done"]["seq"]] = word["done"]
        elif "gone" in word:
            self.jobs.pop(word["gone"], None)
            self.gone.add(word["gone"])
        return True

    def until(self, what, timeout=PATIENCE):
        """Read lines until the condition holds; returns its value."""
        end = time.monotonic() + timeout
        while not (result := what()):
            if not self.hear(end - time.monotonic()):
                raise AssertionError("waited in vain; last heard: " + "\n".join(
                    json.dumps(word) for _, word in self.said[-12:]))
        return result

    def heard(self, key, since=0):
        return [word[key] for _, word in self.said[since:] if key in word]

    def write(self, text):
        self.process.stdin.write(text if isinstance(text, bytes) else text.encode())
        self.process.stdin.flush()

    def send(self, verb, job=None, **more):
        """Send a request; returns its seq, without waiting."""
        self.seq += 1
        words = {"seq": self.seq, "verb": verb, **({"job": job} if job else {}), **more}
        self.write(json.dumps(words) + "\n")
        return self.seq

    def order(self, verb, job=None, **more):
        """Wait for the result of a request."""
        seq = self.send(verb, job, **more)
        return self.until(lambda: self.done.get(seq))

    def look(self):
        """All current jobs and nodes, after a poll."""
        assert self.order("poll")["ok"]
        return self.jobs

    def state(self, job, state, timeout=PATIENCE, **more):
        """Wait until the job is in this state, and all these fields match."""
        return self.until(lambda: (now := self.jobs.get(job)) and now["state"] == state
                          and all(now.get(k) == v for k, v in more.items()) and now, timeout)

    def runs(self, job, *nodes):
        return self.state(job, "RUNNING", nodes=list(nodes), completing=False)

    def close(self):
        if self.process.stdin and not self.process.stdin.closed:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass
        try:
            return self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
