"""Records of several patterns, and games on them, for tests of the self-tuning learner."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import redescend as rd
from redescend import losses
from tests.catalogue import name_of

REGRESSION = [losses.Squared(), losses.Absolute(), losses.EpsilonInsensitive(0.3), losses.Pinball(0.8)]
LABELS = [losses.Hinge(), losses.Logistic()]
PLAIN = [*REGRESSION, *LABELS]

every_order = pytest.mark.parametrize("order", [1, 2])
every_loss = pytest.mark.parametrize("loss", PLAIN, ids=name_of)


def records(loss: losses.LinearLoss, pattern: str, rounds: int, dim: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng([seed, rounds, dim])
    X, truth = random.normal(size=(rounds, dim)), random.normal(size=dim)
    some, late = random.random(rounds) < 0.1, slice(rounds // 2, None)
    match pattern:
        case "zeros":
            X[random.random(X.shape) < 0.4] = 0.0
            X[[0, rounds // 2]] = 0.0
        case "late features":
            X[: rounds // 3, -1] = 0.0
        case "levels":
            # One column of many, of which the last ones are rare, and each matters much.
            X = (np.arange(dim) == (dim * random.random(rounds) ** 3).astype(int)[:, None]).astype(float)
            X[:, 0], truth = 1.0, 20.0 * truth
        case "scales":
            X *= np.logspace(-3, 3, dim)
            truth /= np.logspace(-3, 3, dim)
        case "grown":
            X[late] *= 1e3
    y = X @ truth + 0.1 * random.normal(size=rounds)
    match pattern:
        case "negated":
            y[late] *= -1.0
        case "outliers":
            y[some] *= -30.0
        case "leverage":
            X[some] *= 1e3
        case "jump":
            y[late] = X[late] @ random.normal(size=dim)
        case "burst":
            y[rounds // 2 : 5 * rounds // 8] += 50.0
    return X, np.where(y >= 0.0, 1.0, -1.0) if loss.margin else y


def played(learner: rd.Learner, X: np.ndarray, y: np.ndarray, **named: Any) -> rd.Trace:
    return rd.play(learner, rd.Stream(X, y), **named)


def sound(learner: rd.SelfTuning, trace: rd.Trace) -> bool:
    numbers = [trace.losses, trace.weights, learner.theta]
    numbers += [array for name, array in learner.state().items() if name != "learner"]
    finite = all(np.isfinite(array).all() for array in numbers)
    return finite and bool(np.all((trace.weights >= 0.0) & (trace.weights <= 1.0)))
