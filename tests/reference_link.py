"""The link of a classifier, slowly, as its docstring states it."""

from __future__ import annotations

from typing import Any

import numpy as np

SHARES = np.array([0.001, 0.01, 0.03, 0.1, 0.2, 0.3])
PRIOR = np.array([0.9, 0.06, 0.02, 0.01, 0.005, 0.005])


def play_link(scores: Any, labels: Any, weights: Any) -> tuple[Any, Any, Any, Any]:
    """Logits of all records, each before it was learned from, and A, P and the belief in shares of wrong labels."""
    classes = scores.shape[1]
    A, P = np.column_stack([np.eye(classes), np.zeros(classes)]), 0.5 / classes * np.eye(classes + 1)
    flips, logits = PRIOR.copy(), []
    for z, y, count in zip(scores, labels, weights, strict=True):
        v = np.append(z - z.mean(), 1.0)
        logits.append(A @ v)
        v = v * min(1.0, 30.0 / np.abs(v).max())
        if count == 0.0:
            continue
        c = v @ P @ v
        length = 1.0 / np.sqrt(1.0 + np.pi / 8.0 * c)
        shares = np.exp(length * (A @ v) - np.max(length * (A @ v)))
        shares /= shares.sum()
        q = max(shares[y], 1e-12)
        densities = SHARES * (1.0 - q) / (classes - 1) + (1.0 - SHARES) * q
        w = count * q * (flips @ (1.0 - SHARES - SHARES / (classes - 1))) / (flips @ densities)
        flips = 0.9999 * flips * densities / (flips @ densities) + 0.0001 * PRIOR
        h = w * length**2 * np.max(shares * (1.0 - shares))
        A = A + w * length / (1.0 + h * c) * np.outer(np.eye(classes)[y] - shares, P @ v)
        P = P - h / (1.0 + h * c) * np.outer(P @ v, P @ v)
        P += np.diag(3e-4 * (0.5 / classes - np.diag(P)))
    return np.array(logits), A, P, flips
