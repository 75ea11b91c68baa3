"""A loop that reports and stops by itself."""
from . import _speak


def steps(batches, start=0, total=None, save=None, every=0):
    """Go through 'batches' (or so many numbers), reporting, until told to stop.

        steps = berth.steps(loader, start=step, save=save, every=1000)
        for batch in steps:
            steps.loss = train(batch)

    start   steps that earlier attempts did; an integer 'batches' counts from there
    total   steps there will be in all; by itself where 'batches' has a length
    save    called with the number of steps done: after each 'every' steps, and when told
            to stop; when it returns, the checkpoint is taken to be on disk
    """
    return Steps(batches, start, total, save, every)


class Steps:
    """The loop: 'step' is how many are done, 'loss' is for the body to set, 'stopped' says
    that it ended before its end."""

    def __init__(self, batches, start=0, total=None, save=None, every=0):
        if isinstance(batches, int):
            total = batches if total is None else total
            batches = range(start, batches)
        elif total is None and hasattr(batches, "__len__"):
            total = start + len(batches)
        self.step, self.total, self.loss = start, total, None
        self.stopped = False
        self._batches, self._save, self._every = batches, save, every
        if total is not None:
            _speak.total(total)

    def __len__(self):
        return len(self._batches)

    def _saved(self):
        if self._save is not None:
            self._save(self.step)
            _speak.saved(self.step)

    def __iter__(self):
        if _speak.must_stop():  # before anything was done there is nothing to save
            self.stopped = self.total is None or self.step < self.total
            return
        for batch in self._batches:
            yield batch
            self.step += 1
            _speak.report(self.step, self.loss)
            if _speak.must_stop():
                self.stopped = self.total is None or self.step < self.total
                self._saved()
                return
            if self._every and self.step % self._every == 0:
                self._saved()
