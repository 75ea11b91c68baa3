"""What a training job in Python tells Berth about itself, and how to ask for one.

    import berth

    with berth.Run() as run:                     # leaves with status 85 if told to stop
        model = run.load() or fresh()
        steps = berth.steps(loader, start=model.step, total=10000)
        for batch in steps:                      # reports, and ends when it must
            steps.loss = train(model, batch)
        run.save(model, step=steps.step)

    berth.report(step, loss=0.3)                 # or in your own loop
    if berth.must_stop(): ...

    berth.submit(train, 0.1, gpus=1).result()    # a function as a job

All of it may stay in a program that also runs without Berth: then nothing is sent, and
no scheduler asks to stop.  Only the standard library is used.
"""
from ._client import Client
from ._loop import Steps, steps
from ._run import EXIT_SAVED, Run
from ._speak import must_stop, report, saved, time_left, total
from ._submit import Job, JobFailed, RemoteTraceback, submit
from .hooks import huggingface_callback, lightning_callback, must_stop_together

__all__ = ["Client", "EXIT_SAVED", "Job", "JobFailed", "RemoteTraceback", "Run", "Steps",
           "huggingface_callback", "lightning_callback", "must_stop",
           "must_stop_together", "report", "saved", "steps", "submit", "time_left", "total"]
__version__ = "0.1.0"
