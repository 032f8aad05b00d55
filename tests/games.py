"""Games that several tests play: learners of every kind, records with and without holes."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

import redescend as rd
from redescend import domains, gates, losses, steps, transforms
from tests import reference

REPRODUCIBLE = settings(deadline=None, derandomize=True, max_examples=6)
ROUNDS = 700
DIMS = [1, 3, 100, 600]
DTYPES = [np.float32, np.float64]

LEARN = gates.Robust(transforms.Learn(a=0.5, b=0.1))
SENTENCES = {
    "learn": {"gate": LEARN, "step": steps.Anytime()},
    "ball": {"gate": LEARN, "step": steps.Constant(0.3), "domain": domains.Ball(0.5)},
    "box": {"gate": LEARN, "step": steps.Constant(0.3), "domain": domains.Box(-0.1, 0.2)},
    "simplex": {"gate": gates.Always(), "step": steps.Anytime(), "domain": domains.Simplex()},
    "top-k": {"gate": gates.TopK(40), "step": steps.AdaptiveNorm()},
    "clip": {"gate": gates.Clip(), "step": steps.Normalised(steps.Anytime(0.1)), "domain": domains.Ball(1.0)},
    "cauchy": {"gate": gates.Robust(transforms.Cauchy(0.1)), "step": steps.StronglyConvex(2.0)},
    "oracle": {"gate": gates.Oracle(np.arange(ROUNDS) % 4 > 0), "step": steps.Horizon(100)},
}


def sample(*factors: Any, every: int) -> list[Any]:
    """All combinations of the factors: every so many-th is tested always, the others by `make soak`.

    A number without a common factor with the lengths lets every value of every factor be tested always.
    """
    combinations = itertools.product(*factors)
    return [pytest.param(*row, marks=[pytest.mark.soak] * (i % every > 0)) for i, row in enumerate(combinations)]


def make(name: str, dim: int, dtype: Any = None) -> rd.Descent:
    return rd.Descent(dim, loss=losses.Squared(l2=0.2), dtype=dtype, **SENTENCES[name])


@functools.cache
def records(dim: int, dtype: type, holes: bool = False) -> tuple[np.ndarray, np.ndarray]:
    X, y = reference.records(ROUNDS, dim, seed=dim)
    if holes:
        for place in (0, 10, 11, 255, 256, 600, ROUNDS - 1):
            X[place, place % dim] = np.nan
        y[300] = np.inf
    return X.astype(dtype), y


@functools.cache
def whole(name: str, dim: int, dtype: type, holes: bool = False) -> tuple[rd.Trace, dict[str, Any]]:
    learner = make(name, dim)
    trace = rd.play(learner, rd.Stream(*records(dim, dtype, holes)), keep_actions=True, bad_rows="skip")
    return trace, learner.state()


def assert_same(traces: list[rd.Trace], learner: rd.Learner, expected: rd.Trace, state: dict[str, Any]) -> None:
    for part in ("losses", "weights", "actions"):
        np.testing.assert_array_equal(
            np.concatenate([getattr(trace, part) for trace in traces]), getattr(expected, part)
        )
    np.testing.assert_array_equal(learner.theta, expected.theta)
    assert reference.same_state(learner.state(), state)


every_form = pytest.mark.parametrize(("name", "dim", "dtype"), sample(SENTENCES, DIMS, DTYPES, every=3))
