"""A function as a job: submit(fn, ...).result().

The call is pickled into a folder of its own; a job runs _work.py there, which writes what
came of it beside.  The folder is removed when the result was taken.
"""
import importlib
import inspect
import os
import pickle
import shutil
import sys
import tempfile
import textwrap
import time

from . import _call

CALL, RESULT = "call.pickle", "result.pickle"
MAIN = "__berth_main__"  # what the caller's __main__ is called in the job
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "REJECTED")


class JobFailed(Exception):
    """The job ended without a result; 'job' is what berthd says of it, 'log' its last words."""

    def __init__(self, text, job, log=""):
        super().__init__(text)
        self.job, self.log = job, log


class RemoteTraceback(Exception):
    """The cause of an exception that a job raised: where it was raised."""


# --- the function: by its name where the job can find it, else by its text

def _by_name(fn):
    """(how, where, name) for a function that another process can import."""
    module, name = fn.__module__, fn.__qualname__
    if "<" in name:
        return None
    if module != "__main__":
        found = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part, None)
        return ("module", module, name) if found is fn else None
    main = getattr(sys.modules["__main__"], "__file__", None)
    if main and os.path.isfile(main):
        return "file", os.path.abspath(main), name
    return None


def _by_text(fn):
    """The text of a function that needs nothing around it, as from a notebook."""
    if getattr(fn, "__closure__", None):
        raise ValueError(f"{fn.__name__} uses variables of the function around it; "
                         "pass them as arguments")
    try:
        text = textwrap.dedent(inspect.getsource(fn))
    except (OSError, TypeError) as wrong:
        raise ValueError(f"{fn!r}: neither importable nor with a text to send; "
                         "put it into a module") from wrong
    if not text.lstrip().startswith(("def ", "async def ", "@")):
        raise ValueError("a lambda cannot be sent; give it a name with def")
    return "text", text, fn.__name__


def describe(fn):
    if not callable(fn) or not hasattr(fn, "__qualname__"):
        raise TypeError(f"{fn!r} is not a function")
    return _by_name(fn) or _by_text(fn)


# --- the job

class _Unpickler(pickle.Unpickler):
    """In the job the caller's script had another name."""

    def find_class(self, module, name):
        return super().find_class("__main__" if module == MAIN else module, name)


class Job:
    """A function that was submitted."""

    def __init__(self, id, folder, address=None):
        self.id, self._folder, self._address = id, folder, address
        self._outcome = None

    def __repr__(self):
        return f"<berth.Job {self.id}>"

    def show(self):
        """What berthd says of it: state, progress, exit code …"""
        return _call.call("GET", f"/v1/jobs/{self.id}", address=self._address)

    def state(self):
        return self.show().get("state")

    def done(self):
        return self._outcome is not None or self.state() in ENDED

    def cancel(self):
        _call.call("DELETE", f"/v1/jobs/{self.id}", address=self._address)

    def log(self, last=None):
        """Its output so far, or so many bytes of its end."""
        part = "" if last is None else f"?offset=-{last}"
        data = _call.raw("GET", f"/v1/jobs/{self.id}/log{part}", address=self._address)
        return data.decode("utf-8", "replace")

    def wait(self, timeout=None):
        """What berthd says of it when it has ended.  A daemon that is away for a while,
        as in an upgrade, is waited for."""
        end = None if timeout is None else time.monotonic() + timeout
        pause = 0.02
        while True:
            try:
                shown = self.show()
            except (ConnectionError, FileNotFoundError):
                shown = {}
            if shown.get("state") in ENDED:
                return shown
            left = pause if end is None else min(pause, end - time.monotonic())
            if left <= 0:
                raise TimeoutError(f"job {self.id} has not ended within {timeout} s")
            time.sleep(left)
            pause = min(1.0, pause * 1.3)

    def _collect(self, timeout):
        shown = self.wait(timeout)
        try:
            with open(os.path.join(self._folder, RESULT), "rb") as file:
                outcome = _Unpickler(file).load()
        except FileNotFoundError:
            try:
                log = self.log(last=4000)
            except (_call.Refused, OSError):
                log = ""
            code = shown.get("exit_code")
            outcome = ("failed", JobFailed(
                f"job {self.id} is {shown['state']}"
                + (f", exit code {code}" if code is not None else "")
                + (f": {shown['reason']}" if shown.get("reason") else "")
                + (f"; it said last:\n{log.rstrip()}" if log else ""), shown, log))
        shutil.rmtree(self._folder, ignore_errors=True)
        return outcome

    def result(self, timeout=None):
        """What the function returned; what it raised is raised here."""
        if self._outcome is None:
            self._outcome = self._collect(timeout)
        kind, value, *more = self._outcome
        if kind == "returned":
            return value
        if kind == "raised":
            raise value from RemoteTraceback("\n" + more[0])
        raise value


def _new_folder():
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    parent = os.path.join(state, "berth", "calls")
    os.makedirs(parent, mode=0o700, exist_ok=True)
    return tempfile.mkdtemp(dir=parent)


def _environment(env):
    """The caller's, without what is said to the caller itself if it is a job."""
    ours = {name: value for name, value in os.environ.items()
            if not name.startswith("BERTH_") or name == "BERTH_ADDR"}
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    ours.update(env or {})
    before = ours.get("PYTHONPATH")
    ours["PYTHONPATH"] = package + (os.pathsep + before if before else "")
    return ours


def submit(fn, *args, gpus=1, name=None, job_class="te", cwd=None, env=None, more=None,
           address=None, **kwargs):
    """Run fn(*args, **kwargs) as a job; the answer's result() waits for what it returns.

    gpus, name, job_class ("te": a trial that starts soon, "be": best effort), cwd, env
    (added to the caller's) and more (other fields of a job, as POST /v1/jobs takes them)
    are Berth's; all other names are the function's.

    The function must be one that another process can find: of a module, or of the script
    that is running, whose own work then stands under if __name__ == "__main__".  A
    function of a notebook is sent as its text and must import what it uses.  Arguments and
    result are pickled.  A job that is preempted calls the function again.
    """
    inspect.signature(fn).bind(*args, **kwargs)
    where = describe(fn)
    folder = _new_folder()
    try:
        with open(os.path.join(folder, CALL), "wb") as file:
            pickle.dump({"function": where, "path": sys.path,
                         "call": pickle.dumps((args, kwargs))}, file)
        answer = _call.call("POST", "/v1/jobs", {
            "name": (name or fn.__name__)[:200],
            "command": [sys.executable, "-m", "berth._work", folder],
            "cwd": os.path.abspath(cwd or os.getcwd()),
            "env": _environment(env), "gpus": gpus, "class": job_class,
            **(more or {})}, address=address)
        return Job(answer["id"], folder, address)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
