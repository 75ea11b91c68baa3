"""The job's end of BERTH_SOCKET; the words are those of src/client/protocol.h.

As in the C library, what is to be said is kept as facts and not as a queue: a scheduler
that is slow or gone costs the job nothing, and one that comes back is told where things
stand.  No call blocks, raises or prints.
"""
import math
import os
import socket
import threading
import time

LINE_MAX = 256
REPORT_EVERY_S = 1.0
REPORT_PART = 20  # of the time since the first report, if that is less: short jobs count too
REPORT_LEAST_S = 0.1
CONNECT_EVERY_S = 1.0
LOOK_EVERY_S = 0.1


def number(loss):
    """As text, or '-' for what is not there or not finite.  Tensors are fine."""
    try:
        value = float(loss)
    except Exception:  # a loss may be of any type; it is never worth a failed job
        return "-"
    return f"{value:.9g}" if math.isfinite(value) else "-"


class Client:
    """One connection to berth-run.  May be used by several threads."""

    def __init__(self, path=None, file=None, clock=time.monotonic):
        self.path, self.file, self._clock = path, file, clock
        self._stop_at = None  # when the grace ends, where it is known
        self._stopping = False
        self._reset()

    @classmethod
    def from_environment(cls):
        return cls(os.environ.get("BERTH_SOCKET"), os.environ.get("BERTH_PREEMPT_FILE"))

    @property
    def alone(self):
        return not self.path and not self.file

    def _reset(self):
        """As new, with nothing to say: also what a forked child begins with."""
        self._lock = threading.RLock()
        self._socket = None
        self._facts = {}  # what is known: word to text, in the order of speaking
        self._told = {}
        self._loss = None
        self._connect_at = self._report_at = self._look_at = 0.0
        self._first_at = 0.0
        self._hang_up()

    def after_fork(self):
        """In the child: the connection is its parent's; the copy is let go unused."""
        connection, self._socket = self._socket, None
        if connection is not None:
            connection.close()
        self._reset()

    # --- the connection

    def _hang_up(self):
        if self._socket is not None:
            self._socket.close()
        self._socket, self._in, self._out = None, b"", b""
        self._told = {}

    def _reach(self, now):
        if not self.path or now < self._connect_at:
            return
        self._connect_at = now + CONNECT_EVERY_S
        try:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.setblocking(False)
            self._socket.connect(self.path)
        except (OSError, ValueError):
            self._hang_up()
            return
        self._told, self._out = {}, b"hello 1\n"

    # --- out

    def _lines(self, now, hurry):
        for word in ("total", "report", "saved"):
            fact = self._facts.get(word)
            if fact is None or self._told.get(word) == fact:
                continue
            if word == "report":
                if not hurry and now < self._report_at:
                    continue
                self._first_at = self._first_at or now
                part = (now - self._first_at) / REPORT_PART
                self._report_at = now + min(max(part, REPORT_LEAST_S), REPORT_EVERY_S)
                text = f"{fact[1]} {number(self._loss)}"
            else:
                text = str(fact)
            self._told[word] = fact
            yield f"{word} {text}\n"

    def _speak(self, hurry=False):
        now = self._clock()
        if self._socket is None:
            self._reach(now)
        if self._socket is None:
            return
        if not self._out or self._out == b"hello 1\n":
            self._out += "".join(self._lines(now, hurry)).encode("ascii")
        if not self._out:
            return
        try:
            sent = self._socket.send(self._out, socket.MSG_NOSIGNAL)
            self._out = self._out[sent:]
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self._hang_up()

    # --- in

    def _obey(self, line):
        words = line.split()
        if not words or words[0] != b"stop":
            return
        self._stopping = True
        try:
            grace = float(words[1])
        except (IndexError, ValueError):
            return
        if math.isfinite(grace) and grace >= 0:
            self._stop_at = self._clock() + grace

    def _listen(self):
        try:
            more = self._socket.recv(4096)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            more = b""
        if not more:
            self._hang_up()
            return
        *lines, self._in = (self._in + more).split(b"\n")
        for line in lines:
            self._obey(line)
        if len(self._in) >= LINE_MAX:
            self._hang_up()

    def _look(self):
        """Without a connection the file tells; it holds the seconds of grace."""
        now = self._clock()
        if not self.file or now < self._look_at:
            return
        self._look_at = now + LOOK_EVERY_S
        try:
            with open(self.file, "rb") as file:
                self._obey(b"stop " + file.read(64))
        except (OSError, ValueError):
            pass

    # --- what is called

    def report(self, step, loss=None):
        """The newest report is sent, once a second or sooner at first; the loss becomes a number only then, so
        that one on a GPU is not waited for at every step."""
        if self.alone:
            return
        detach = getattr(loss, "detach", None)
        with self._lock:
            # Two reports of one step differ: a fact is what was said, and when.
            count = self._facts.get("report", (0, 0))[0] + 1
            self._facts["report"] = (count, step)
            self._loss = detach() if callable(detach) else loss
            self._speak()

    def total(self, steps):
        if self.alone or steps == 0:
            return
        with self._lock:
            self._facts["total"] = steps
            self._speak()

    def saved(self, step):
        if self.alone:
            return
        with self._lock:
            self._facts["saved"] = step
            self._told.pop("saved", None)  # the same step saved again is news
            self._speak(hurry=True)

    def flush(self):
        """Say the newest report now, if it was held back."""
        if self.alone or not self._facts:
            return
        with self._lock:
            self._speak(hurry=True)

    def must_stop(self):
        if self.alone or self._stopping:
            return self._stopping
        with self._lock:
            self._speak()
            if self._socket is not None:
                self._listen()
            if self._socket is None and not self._stopping:
                self._look()
            if self._stopping:
                self._speak(hurry=True)
        return self._stopping

    def time_left(self):
        """Seconds of grace, once that is known; None before."""
        if self._stop_at is None:
            return None
        return max(0.0, self._stop_at - self._clock())

    def close(self):
        self.flush()
        with self._lock:
            self._hang_up()
