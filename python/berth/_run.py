"""A run of a job: where it may go on from, where to save, and how it ends."""
import contextlib
import os
import pickle
import sys

from . import _speak

EXIT_SAVED = 85  # "saved, put me back"


def _number(name):
    try:
        return int(os.environ.get(name, "0"))
    except ValueError:
        return 0


def _sync(path):
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Run:
    """What a job needs to be stopped and to go on.

        with berth.Run() as run:
            state = run.load() or {"step": 0}
            while state["step"] < 1000 and not run.must_stop():
                ...
                if state["step"] % 100 == 0:
                    run.save(state, step=state["step"])
            run.save(state, step=state["step"])

    When the block ends after must_stop() was true, the program exits with status 85, so
    that Berth puts the job back into its queue; if total() steps were reported it is done,
    and ends as any other program.  Inside the block SIGTERM asks to stop, also without
    Berth.

    'ckpt_dir' is used where Berth gives none.
    """

    def __init__(self, ckpt_dir="checkpoints", exit=True):
        self.job_id = os.environ.get("BERTH_JOB_ID")
        self.attempt = _number("BERTH_ATTEMPT")
        self.ckpt_dir = os.environ.get("BERTH_CKPT_DIR") or ckpt_dir
        self._exit = exit

    @property
    def resume(self):
        """Whether there is something to go on from."""
        return _number("BERTH_RESUME") == 1 or os.path.exists(self.path("state.pickle"))

    def path(self, name):
        """A file's place in the checkpoint folder."""
        return os.path.join(self.ckpt_dir, name)

    report = staticmethod(_speak.report)
    total = staticmethod(_speak.total)
    must_stop = staticmethod(_speak.must_stop)
    time_left = staticmethod(_speak.time_left)

    @contextlib.contextmanager
    def saving(self, name, step=None):
        """A path to write to, which becomes ckpt_dir/name when all of it is on disk:

            with run.saving("model.pt", step) as path:
                torch.save(model.state_dict(), path)

        A kill in between leaves the file of before.
        """
        os.makedirs(self.ckpt_dir, exist_ok=True)
        part = self.path(f".{name}.{os.getpid()}.part")
        try:
            yield part
            _sync(part)
            os.replace(part, self.path(name))
            _sync(self.ckpt_dir)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(part)
        if step is not None:
            _speak.saved(step)

    def save(self, state, step=None):
        """Keep any object that can be pickled, for load() of the next attempt."""
        with self.saving("state.pickle", step) as path, open(path, "wb") as file:
            pickle.dump(state, file, protocol=4)

    def load(self, default=None):
        """What save() kept last, or 'default'."""
        try:
            with open(self.path("state.pickle"), "rb") as file:
                return pickle.load(file)
        except FileNotFoundError:
            return default

    def leave(self):
        """Exit now: saved, put me back."""
        _speak.flush()
        sys.exit(EXIT_SAVED)

    def __enter__(self):
        _speak.catch_signal()
        return self

    def __exit__(self, kind, error, trace):
        _speak.flush()
        _speak.release_signal()
        if kind is None and self._exit and _speak.was_answered() and \
                not _speak.is_complete():
            self.leave()
        return False
