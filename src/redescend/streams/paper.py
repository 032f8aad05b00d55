"""The paper's two problems."""

from __future__ import annotations

from typing import Any

import numpy as np

from redescend.game import Stream
from redescend.streams.sizes import sizes


def ridge(rounds: int, seed: Any, dim: int = 100) -> Stream:
    r"""Online ridge regression as in the paper: y = ⟨θ*, x⟩ + e.

    θ* is uniform on [−1, 1]^dim and scaled to unit length, x is standard normal, and e has variance 10⁻⁶.

    Examples
    --------
    >>> ridge(5, seed=0, dim=3)
    Stream(5 rounds, 3 features, 0 corrupted)
    """
    rounds, dim = sizes("ridge", rounds, dim)
    random = np.random.default_rng(seed)
    truth = random.uniform(-1.0, 1.0, dim)
    truth /= np.linalg.norm(truth)
    X = random.standard_normal((rounds, dim))
    return Stream(X, X @ truth + 1e-3 * random.standard_normal(rounds), truth=truth)


def svm(rounds: int, seed: Any, dim: int = 2) -> Stream:
    r"""Online classification as in the paper: y = sign⟨θ*, x⟩, mislabelled with probability 0.05 where |⟨θ*, x⟩| ≤ 0.1.

    θ* is uniform on [1, 11]^dim, and the entries of x have variance 100.

    Examples
    --------
    >>> np.unique(svm(50, seed=0).y)
    array([-1.,  1.])
    """
    rounds, dim = sizes("svm", rounds, dim)
    random = np.random.default_rng(seed)
    truth = random.uniform(1.0, 11.0, dim)
    X = 10.0 * random.standard_normal((rounds, dim))
    margin = X @ truth
    y = np.where(margin >= 0.0, 1.0, -1.0)
    mislabelled = (np.abs(margin) <= 0.1) & (random.random(rounds) < 0.05)
    return Stream(X, np.where(mislabelled, -y, y), truth=truth)
