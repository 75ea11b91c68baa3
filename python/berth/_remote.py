"""A job on a compute node of a Slurm cluster: no supervisor of Berth's is beside it.

What it says goes into a file that berthd follows (BERTH_PROGRESS_FILE), or over TCP to
berthd (BERTH_REPORT_TO), which knows by munge whose job it is.  A thread does that, with the
newest report and at most one per second; no call blocks, raises or prints.
"""
import json
import os
import subprocess
import threading
import time

from . import _tls
from ._client import REPORT_EVERY_S, number

AGAIN_S = 10.0  # after something went wrong; longer each time
AGAIN_MAX_S = 300.0
TIMEOUT_S = 10.0
LAST_S = 2.0  # the longest that the end of the program waits for its last report


class Refused(Exception):
    """berthd does not want to hear it; the status says why."""


def credential(job):
    """What munge says of us, for this purpose alone."""
    at = os.environ.get("BERTH_MUNGE_SOCKET")
    done = subprocess.run(["munge", f"--string=berth progress {job}",
                           *(["--socket", at] if at else [])],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, timeout=TIMEOUT_S, check=True)
    return done.stdout.decode("ascii").strip()


class Remote:
    """May be used by several threads.  Only the first of srun's tasks speaks."""

    file = None  # no warning is announced by a file: the signal is all there is

    def __init__(self, job, to=None, path=None, clock=time.monotonic):
        self.job, self.to, self.path, self._clock = job, to, path, clock
        self.speaks = os.environ.get("SLURM_PROCID", "0") == "0"
        self._token = None
        self._reset()

    @classmethod
    def from_environment(cls):
        """None without a scheduler to report to."""
        job = os.environ.get("SLURM_JOB_ID", "")
        to, path = os.environ.get("BERTH_REPORT_TO"), os.environ.get("BERTH_PROGRESS_FILE")
        return cls(int(job), to, path) if job.isdigit() and (to or path) else None

    @property
    def alone(self):
        return False

    def _reset(self):
        self._changed = threading.Condition()
        self._facts, self._loss = {}, None
        self._busy, self._thread = False, None
        self._hurry = self._closing = False

    def after_fork(self):
        """In the child: what its parent says is not for it to repeat."""
        self._reset()
        self.speaks = False

    # --- the thread

    def _body(self, facts, loss):
        body = dict(facts)
        text = number(loss)
        if "step" in body and text != "-":
            body["loss"] = float(text)
        return body

    def _write(self, body):
        if "step" not in body:
            return
        words = [str(body["step"]), number(body.get("loss"))]
        if "total" in body:
            words.append(str(body["total"]))
        with open(self.path, "a", encoding="ascii") as file:
            file.write(" ".join(words) + "\n")

    def _post(self, what, body):
        line = _tls.connect(self.to, TIMEOUT_S)
        headers = {"Content-Type": "application/json", "Connection": "close"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            line.request("POST", f"/v1/jobs/{self.job}/{what}", json.dumps(body), headers)
            answer = line.getresponse()
            text = answer.read(65536)
        finally:
            line.close()
        if answer.status >= 300:
            raise Refused(answer.status)
        return json.loads(text)

    def _send(self, body):
        if self.path:
            self._write(body)
            return
        for last in (False, True):
            if not self._token:
                self._token = self._post("token", {"munge": credential(self.job)})["token"]
            try:
                self._post("progress", body)
                return
            except Refused as refused:
                self._token = None  # berthd was started anew: it gives another one
                if last or refused.args[0] != 401:
                    raise

    def _run(self):
        pause = AGAIN_S
        while True:
            with self._changed:
                while not self._facts:
                    self._changed.wait()
                facts, loss = self._facts, self._loss
                self._facts, self._hurry, self._busy = {}, False, True
            failed = False
            try:
                self._send(self._body(facts, loss))
                pause = AGAIN_S
            except Exception:  # whatever it is, it is not worth the job
                failed = True
            with self._changed:
                self._busy = False
                if failed:  # what was not said is to be said again, unless there is newer
                    self._facts = {**facts, **self._facts}
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: self._closing, pause)
                    pause = min(2 * pause, AGAIN_MAX_S)
                else:
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: self._hurry, REPORT_EVERY_S)
                if failed and self._closing:
                    self._facts = {}

    def _say(self, hurry=False, **facts):
        if not self.speaks:
            return
        with self._changed:
            self._facts.update(facts)
            self._hurry = self._hurry or hurry
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="berth", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    # --- what is called

    def report(self, step, loss=None):
        detach = getattr(loss, "detach", None)
        self._loss = detach() if callable(detach) else loss
        self._say(step=step)

    def total(self, steps):
        if steps:
            self._say(total=steps)

    def saved(self, step):
        self._say(hurry=True, saved=step)

    def flush(self):
        with self._changed:
            self._hurry = True
            self._changed.notify_all()

    def must_stop(self):
        return False  # Slurm says it with a signal

    def time_left(self):
        return None

    def close(self):
        """The last report has a moment to get out."""
        if self._thread is None:
            return
        end = self._clock() + LAST_S
        with self._changed:
            self._closing = True
            while (self._facts or self._busy) and self._clock() < end:
                self._hurry = True
                self._changed.notify_all()
                self._changed.wait(0.05)
