"""Losses, settings and records with outliers for tests of experts."""

from __future__ import annotations

import numpy as np

from redescend import losses

LOSSES = [
    losses.Squared(l2=1e-4),
    losses.Hinge(l2=0.1),
    losses.Logistic(l2=0.01),
    losses.Absolute(),
    losses.Pinball(0.8),
]
PAPER = {"a": 2.0, "b": 0.5}


def outliers(pattern: str, loss: losses.LinearLoss, rounds: int, dim: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng([seed, rounds, dim])
    X = random.normal(size=(rounds, dim))
    y = X @ random.normal(size=dim) + 0.1 * random.normal(size=rounds)
    bad = {
        "none": slice(0, 0),
        "random": random.random(rounds) < 0.2,
        "burst": slice(rounds // 3, rounds // 2),
        "first": slice(0, rounds // 5),
    }[pattern]
    y[bad] = -30.0 * y[bad]
    if pattern == "random":
        X[:: max(rounds // 6, 1)] *= 100.0
    return X, np.where(y >= 0, 1.0, -1.0) if loss.margin else y
