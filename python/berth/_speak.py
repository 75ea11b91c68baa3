"""The functions of the module: one client per process, and the signal of the warning."""
import atexit
import os
import signal
import threading

from ._client import Client
from ._remote import Remote

_client = Client.from_environment()
if _client.alone:
    _client = Remote.from_environment() or _client
_stopping = False  # a signal said so
_answered = False  # must_stop() has said yes
_owner = None  # the process that caught it
_spared = False  # a worker has outlived the warning
_progress = {"step": None, "total": None}


def count(steps):
    """A wrong number of steps is a mistake in the program, under Berth or not."""
    number = int(steps)
    if not 0 <= number < 1 << 64:
        raise ValueError(f"steps are counted from 0, not {number}")
    return number


def report(step, loss=None):
    """Say how far the job is.  May be called at every step; the newest is sent, once a second or,
    at first, sooner."""
    _progress["step"] = count(step)
    _client.report(_progress["step"], loss)


def total(steps):
    """Say how many steps there will be in all."""
    _progress["total"] = count(steps)
    _client.total(_progress["total"])


def saved(step):
    """Say that a checkpoint of everything before this step is on disk."""
    _client.saved(count(step))


def time_left():
    """Seconds until the job would be killed, once it was told to stop; None before."""
    return _client.time_left()


def must_stop():
    """True once the scheduler wants the GPUs back: save, and leave with status 85.

    The same moment brings SIGTERM.  Under Berth the first call catches it, if the program
    does not, so ask once before the long work begins.
    """
    global _answered
    if not _client.alone:
        catch_signal()
    answer = _client.must_stop() or _stopping  # it may know how much time is left
    if answer and not _answered:
        _answered = True
        _client.flush()
    return answer


def was_answered():
    """Whether the program has been told to stop; what it does then is its answer."""
    return _answered


def answer_yes():
    """Another rank was told, and this one has agreed to stop with it."""
    global _answered
    _answered = True


def is_complete():
    step, steps = _progress["step"], _progress["total"]
    return step is not None and steps is not None and step >= steps


def flush():
    _client.flush()


def _end(number):
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _is_warning():
    return bool(_client.file) and os.path.exists(_client.file)


def _on_signal(number, frame):
    """The warning goes to all processes of the job, also to workers that were forked after
    we caught the signal.  They are not asked: the one who is will need them until it has
    saved (a data loader's death would be its own), and they end with it.  Any other such
    signal to them, as from a parent that is done with them, ends them as ever."""
    global _stopping, _spared
    if os.getpid() != _owner:
        if _spared or not _is_warning():
            _end(number)
        _spared = True
        return
    if _stopping and _client.alone:  # a second time, by hand: no more patience
        _end(number)
    _stopping = True


def catch_signal():
    """Take SIGTERM for a request, unless the program has plans for it."""
    global _owner, _spared
    if _owner == os.getpid() or threading.current_thread() is not threading.main_thread():
        return
    _owner, _spared = os.getpid(), False
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _on_signal)


def release_signal():
    global _owner
    if _owner == os.getpid() and signal.getsignal(signal.SIGTERM) is _on_signal:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _owner = None


def _after_fork():
    """A worker says nothing for its parent."""
    _client.after_fork()
    _progress.update(step=None, total=None)


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_client.close)
