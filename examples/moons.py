"""Something to learn for the examples: two half moons, and a small network in plain Python.

Every step draws its batch from its own number, so that a run which was stopped and went on
ends with the very weights of one that was not.
"""
import math
import random

HIDDEN = 16
BATCH = 32


def moon(rng):
    """A point of one of two interlocked half moons, and which."""
    side = rng.random() < 0.5
    angle = math.pi * rng.random()
    x, y = math.cos(angle), math.sin(angle)
    if side:
        x, y = 1 - x, 0.5 - y
    return x + rng.gauss(0, 0.1), y + rng.gauss(0, 0.1), 1.0 if side else 0.0


def fresh(seed=0):
    """What a run begins with: no steps done, and random weights."""
    rng = random.Random(seed)
    weights = [[rng.gauss(0, 1), rng.gauss(0, 1), rng.gauss(0, 1), rng.gauss(0, 0.3)]
               for _ in range(HIDDEN)]
    return {"seed": seed, "step": 0, "weights": weights, "bias": 0.0}


def predict(model, x, y):
    hidden = [math.tanh(a * x + b * y + c) for a, b, c, _ in model["weights"]]
    score = model["bias"] + sum(h * w[3] for h, w in zip(hidden, model["weights"]))
    score = max(-30.0, min(30.0, score))
    return hidden, 1 / (1 + math.exp(-score))


def train(model, rate=0.3):
    """One step of gradient descent on one batch; the batch's loss."""
    rng = random.Random(model["seed"] * 1000003 + model["step"])
    weights, loss, bias = model["weights"], 0.0, 0.0
    slopes = [[0.0] * 4 for _ in weights]
    for _ in range(BATCH):
        x, y, label = moon(rng)
        hidden, guess = predict(model, x, y)
        loss -= math.log(guess if label else 1 - guess)
        error = (guess - label) / BATCH
        bias += error
        for slope, weight, h in zip(slopes, weights, hidden):
            back = error * weight[3] * (1 - h * h)
            slope[0] += back * x
            slope[1] += back * y
            slope[2] += back
            slope[3] += error * h
    for weight, slope in zip(weights, slopes):
        for i in range(4):
            weight[i] -= rate * slope[i]
    model["bias"] -= rate * bias
    model["step"] += 1
    return loss / BATCH


def accuracy(model, count=500):
    rng = random.Random(-1 - model["seed"])
    points = [moon(rng) for _ in range(count)]
    return sum((predict(model, x, y)[1] > 0.5) == (label > 0.5)
               for x, y, label in points) / count
