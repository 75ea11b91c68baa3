#!/usr/bin/env python3
"""A training job that can be stopped at any step and goes on where it was.

    python3 examples/train.py                      alone: about ten seconds
    berth run -G1 python3 examples/train.py        under Berth

Only the standard library and Berth's own package are needed.  Stop it with SIGTERM (or let
Berth preempt it) and start it again: it ends with the same weights.
"""
import argparse
import os
import sys
import time

# In a clone the package stands beside; one that is installed comes first.
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))

import berth
import moons


def arguments():
    parser = argparse.ArgumentParser(description="learn two half moons")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--sleep", type=float, default=0.003, help="seconds more per step")
    parser.add_argument("--save-every", type=int, default=200, help="steps; 0: only at the end")
    parser.add_argument("--log-every", type=int, default=50, help="steps")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ckpt-dir", default="checkpoints", help="where Berth gives none")
    return parser.parse_args()


def main():
    args = arguments()
    with berth.Run(ckpt_dir=args.ckpt_dir) as run:
        model = run.load() or moons.fresh(args.seed)
        print(f"attempt {run.attempt} from step {model['step']}", flush=True)
        steps = berth.steps(args.steps, start=model["step"], every=args.save_every,
                            save=lambda step: run.save(model))
        for step in steps:
            steps.loss = moons.train(model)
            if model["step"] % args.log_every == 0:
                print(f"step {model['step']} loss {steps.loss:.4f}", flush=True)
            time.sleep(args.sleep)
        if steps.stopped:
            print(f"stopped at step {steps.step}", flush=True)
        else:
            run.save(model, step=steps.step)
            print(f"done step {steps.step} accuracy {moons.accuracy(model):.3f}", flush=True)


if __name__ == "__main__":
    main()
