#!/usr/bin/env python3
"""The same in PyTorch: checkpoints, resuming, progress and preemption in a usual loop.

    berth run -G1 python3 examples/train_torch.py

Runs on a GPU where there is one.  Needs PyTorch (Debian: python3-torch).
"""
import argparse
import os
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))

try:
    import torch
except ImportError:
    sys.exit("train_torch.py: PyTorch is not installed")

import berth


def arguments():
    parser = argparse.ArgumentParser(description="learn two half moons with PyTorch")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--sleep", type=float, default=0.0, help="seconds more per step")
    parser.add_argument("--save-every", type=int, default=500, help="steps; 0: only at the end")
    parser.add_argument("--log-every", type=int, default=50, help="steps")
    parser.add_argument("--ckpt-dir", default="checkpoints", help="where Berth gives none")
    return parser.parse_args()


def batch(step, device, count=128):
    """Two half moons, drawn from the number of the step."""
    rng = torch.Generator().manual_seed(step)
    side = torch.randint(0, 2, (count,), generator=rng)
    angle = 3.14159265 * torch.rand(count, generator=rng)
    x, y = torch.cos(angle), torch.sin(angle)
    x, y = torch.where(side == 1, 1 - x, x), torch.where(side == 1, 0.5 - y, y)
    points = torch.stack([x, y], 1) + 0.1 * torch.randn(count, 2, generator=rng)
    return points.to(device), side.float().to(device)


def main():
    args = arguments()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 64), torch.nn.Tanh(),
                                torch.nn.Linear(64, 1)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    start = 0

    with berth.Run(ckpt_dir=args.ckpt_dir) as run:
        if os.path.exists(run.path("model.pt")):
            kept = torch.load(run.path("model.pt"), map_location=device)
            model.load_state_dict(kept["model"])
            optimizer.load_state_dict(kept["optimizer"])
            start = kept["step"]
        print(f"attempt {run.attempt} from step {start} on {device}", flush=True)

        def save(step):
            with run.saving("model.pt") as path:
                torch.save({"model": model.state_dict(), "step": step,
                            "optimizer": optimizer.state_dict()}, path)

        steps = berth.steps(args.steps, start=start, save=save, every=args.save_every)
        for step in steps:
            points, side = batch(step, device)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                model(points).squeeze(1), side)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps.loss = loss  # read from the GPU once per second, not at every step
            if (step + 1) % args.log_every == 0:
                print(f"step {step + 1} loss {loss.item():.4f}", flush=True)
            if args.sleep:
                time.sleep(args.sleep)

        if steps.stopped:
            print(f"stopped at step {steps.step}", flush=True)
            return
        save(steps.step)
        berth.saved(steps.step)
        with torch.no_grad():
            points, side = batch(-1 & 0xffff, device, 1000)
            right = ((model(points).squeeze(1) > 0).float() == side).float().mean().item()
        print(f"done step {steps.step} accuracy {right:.3f}", flush=True)


if __name__ == "__main__":
    main()
