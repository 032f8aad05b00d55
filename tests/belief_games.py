"""Residuals and labels of every kind that a belief meets."""

from __future__ import annotations

from typing import Any

import numpy as np


def stream(rounds: int, seed: int = 0, share: float = 0.05) -> tuple[Any, Any, Any, Any]:
    """Heteroscedastic noise, outliers, a louder second half, a stuck sensor, copies, and a prediction that is exact."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rounds, 2))
    predictions = X @ [2.0, 1.0]
    targets = predictions + np.exp(0.5 * X[:, 0]) * random.standard_t(4, size=rounds) * 0.3
    targets[rounds // 2 :] += 2.0 * (targets - predictions)[rounds // 2 :]
    clean = random.random(rounds) >= share
    targets[~clean] += 30.0 * random.normal(size=np.count_nonzero(~clean))
    at = rounds // 4
    targets[at : at + 12] = targets[at]
    X[at + 40 : at + 50], predictions[at + 40 : at + 50] = X[at + 40], predictions[at + 40]
    targets[at + 40 : at + 50] = targets[at + 40]
    targets[at + 60] = predictions[at + 60]
    X[at + 70 : at + 75, 1] = np.nan
    clean[at : at + 12] = True
    return X, predictions, targets, clean


def labelled(rounds: int, classes: int, flips: float = 0.15) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(3)
    scores = 3.0 * random.normal(size=(rounds, classes))
    if classes == 2:
        scores[:, 0] = 0.0
    labels = (scores + random.gumbel(size=scores.shape)).argmax(axis=1)
    flipped = random.random(rounds) < flips
    labels[flipped] = (labels[flipped] + random.integers(1, classes, size=np.count_nonzero(flipped))) % classes
    return (scores[:, 1] if classes == 2 else scores), labels, flipped
