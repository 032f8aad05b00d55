"""Residuals of every kind that a belief meets."""

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
