#!/usr/bin/env python3
"""The job of train.py for those who want no package: files, a signal and a status.

    berth submit -G1 --pattern 'step ([0-9]+) loss ([0-9.]+)' \\
        python3 examples/train_plain.py

Berth learns the progress from lines that match the pattern, sees checkpoints as files in
BERTH_CKPT_DIR, asks to stop by SIGTERM, and takes status 85 for "saved, put me back".
"""
import argparse
import json
import os
import signal
import sys
import time

import moons


def arguments():
    parser = argparse.ArgumentParser(description="learn two half moons")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--sleep", type=float, default=0.003, help="seconds more per step")
    parser.add_argument("--save-every", type=int, default=200, help="steps")
    parser.add_argument("--log-every", type=int, default=50, help="steps")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ckpt-dir", default="checkpoints", help="where Berth gives none")
    return parser.parse_args()


def load(path, seed):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return moons.fresh(seed)


def save(path, model):
    """Whole or not at all: a kill while writing must not cost the checkpoint of before."""
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(model, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".part", path)


def main():
    args = arguments()
    asked = []
    signal.signal(signal.SIGTERM, lambda number, frame: asked.append(number))
    folder = os.environ.get("BERTH_CKPT_DIR") or args.ckpt_dir
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "model.json")

    model = load(path, args.seed)
    print(f"from step {model['step']}", flush=True)
    while model["step"] < args.steps and not asked:
        loss = moons.train(model)
        if model["step"] % args.log_every == 0:
            print(f"step {model['step']} loss {loss:.4f}", flush=True)
        if args.save_every and model["step"] % args.save_every == 0:
            save(path, model)
        time.sleep(args.sleep)
    save(path, model)
    if model["step"] < args.steps:
        print(f"stopped at step {model['step']}", flush=True)
        return 85
    print(f"done step {model['step']} accuracy {moons.accuracy(model):.3f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
