#!/usr/bin/env python3
"""A job that keeps its processor busy for a part of the time, to see what sharing does.

    berth up --fake-gpus v100:2@cpu
    berth submit --shared --kind light -- python3 examples/busy.py --busy 0.3
    berth rates

Two jobs on such a GPU slow each other down by as much as both want the processor: light ones
hardly, heavy ones to a half.  With --work compute a step counts, with --work memory it copies.
It reports every step, saves when it is told to stop, and goes on from there.
"""
import argparse
import os
import sys
import time

# In a clone the package stands beside; one that is installed comes first.
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))

import berth

STEP_S = 0.02  # of the processor


def arguments():
    parser = argparse.ArgumentParser(description="keep a processor busy")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--busy", type=float, default=1, help="part of the time, from 0.01 to 1")
    parser.add_argument("--work", choices=("compute", "memory"), default="compute")
    parser.add_argument("--ckpt-dir", default="checkpoints", help="where Berth gives none")
    args = parser.parse_args()
    if not 0.01 <= args.busy <= 1:
        parser.error("--busy: want a number from 0.01 to 1")
    return args


def compute():
    total = 0
    for number in range(2000):
        total += number * number


def copy(block=memoryview(bytearray(32 << 20))):
    """From one half to the other: hardly any arithmetic."""
    half = len(block) // 2
    block[:half // 16] = block[half:half + half // 16]


def make_step(work, busy):
    end = time.thread_time() + STEP_S
    while time.thread_time() < end:
        work()
    time.sleep(STEP_S / busy - STEP_S)


def main():
    args = arguments()
    work = copy if args.work == "memory" else compute
    with berth.Run(ckpt_dir=args.ckpt_dir) as run:
        made = run.load() or {"step": 0}
        print(f"from step {made['step']}", flush=True)
        steps = berth.steps(args.steps, start=made["step"], save=lambda step: run.save(made))
        for step in steps:
            make_step(work, args.busy)
            made["step"] = step + 1
            if made["step"] % 10 == 0:
                print(f"step {made['step']}", flush=True)
        print("stopped at" if steps.stopped else "done", f"step {made['step']}", flush=True)


if __name__ == "__main__":
    main()
