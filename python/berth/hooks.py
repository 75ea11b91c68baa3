"""Callbacks for Hugging Face's Trainer and for Lightning.

Neither is imported.  A callback is a subclass of theirs where the program has imported
them, and an object of the same shape where it has not (as in a test).
"""
import math
import os
import sys

from . import _speak


def _bases(*places):
    """Base classes out of modules that the program has already imported."""
    for module, name in places:
        found = getattr(sys.modules.get(module), name, None)
        if isinstance(found, type):
            return found, _Shape
    return _Shape,


def _quiet(*args, **kwargs):
    """An event that we have nothing to say about."""


class _Shape:
    """What the frameworks' own base classes have; theirs come first where they are."""

    setup = teardown = load_state_dict = _quiet
    state_key = "berth"

    def state_dict(self):
        return {}

    def __getattr__(self, name):
        if name.startswith("on_"):
            return _quiet
        raise AttributeError(name)


def must_stop_together(stop=None):
    """must_stop(), the same for all ranks of torch.distributed.

    The warning reaches ranks at different steps.  Those that went on would wait for ever
    for those that left, so one rank's yes counts for all.  It is a collective call: all
    ranks must make it at the same step.
    """
    stop = _speak.must_stop() if stop is None else stop
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is None or not distributed.is_available() or \
            not distributed.is_initialized() or distributed.get_world_size() == 1:
        return stop
    torch = sys.modules["torch"]
    device = "cuda" if distributed.get_backend() == "nccl" else "cpu"
    votes = torch.tensor([int(stop)], device=device)
    distributed.all_reduce(votes, op=distributed.ReduceOp.MAX)
    if not votes.item():
        return False
    _speak.answer_yes()
    return True


def _asks(step, every):
    """Whether this is a step at which the ranks ask each other: it costs a round trip."""
    return step % every == 0


def huggingface_callback(every=1):
    """For Trainer(callbacks=[...]): reports, and on demand saves and stops.

    Ask only at each 'every' steps where many ranks make a step very short.
    """
    bases = _bases(("transformers", "TrainerCallback"),
                   ("transformers.trainer_callback", "TrainerCallback"))

    class BerthCallback(*bases):
        def __init__(self):
            super().__init__()
            self._loss = None

        def on_train_begin(self, args, state, control, **kwargs):
            if state.max_steps and state.max_steps > 0:
                _speak.total(state.max_steps)
            _speak.must_stop()

        def on_log(self, args, state, control, logs=None, **kwargs):
            self._loss = (logs or {}).get("loss", self._loss)

        def on_step_end(self, args, state, control, **kwargs):
            _speak.report(state.global_step, self._loss)
            if _asks(state.global_step, every) and must_stop_together():
                control.should_save = True
                control.should_training_stop = True
            return control

        def on_save(self, args, state, control, **kwargs):
            _speak.saved(state.global_step)

    return BerthCallback()


def _loss_of(outputs):
    if isinstance(outputs, dict):
        return outputs.get("loss")
    return outputs


def lightning_callback(every=1, name="berth.ckpt"):
    """For Trainer(callbacks=[...]): reports, and on demand saves 'name' into the
    checkpoint folder and stops.  Go on from there with
    trainer.fit(model, ckpt_path=callback.resume_from)."""
    bases = _bases(("lightning.pytorch.callbacks", "Callback"),
                   ("lightning.pytorch", "Callback"),
                   ("pytorch_lightning.callbacks", "Callback"),
                   ("pytorch_lightning", "Callback"))

    class BerthCallback(*bases):
        def __init__(self):
            super().__init__()
            folder = os.environ.get("BERTH_CKPT_DIR") or "checkpoints"
            self.path = os.path.join(folder, name)

        @property
        def resume_from(self):
            return self.path if os.path.exists(self.path) else None

        def on_train_start(self, trainer, pl_module):
            steps = getattr(trainer, "estimated_stepping_batches", None)
            if steps is not None and math.isfinite(steps) and steps > 0:
                _speak.total(int(steps))
            _speak.must_stop()

        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx,
                               *more):
            step = trainer.global_step
            _speak.report(step, _loss_of(outputs))
            if _asks(batch_idx, every) and must_stop_together():
                trainer.save_checkpoint(self.path)
                _speak.saved(step)
                trainer.should_stop = True

    return BerthCallback()
