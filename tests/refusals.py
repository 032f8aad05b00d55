"""How a refusal is checked: one sentence, and nothing has changed."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest

import redescend as rd
from redescend import domains, gates, losses, steps, transforms
from tests import reference

COMMON = {"loss": losses.Squared(), "step": steps.Constant(0.1)}
RECIPES = {
    rd.OGD: {},
    rd.Learn: {"a": 1.0, "b": 0.1},
    rd.Robust: {"transform": transforms.Huber(1.0)},
    rd.TopK: {"k": 3},
    rd.Oracle: {"clean": [True] * 100},
    rd.NormalisedOGD: {},
    rd.ClippedOGD: {},
    rd.Descent: {"gate": gates.Always()},
}
DIMS = [1, 3, 100, 600]


def learners(dim: int, **changed: Any) -> list[rd.Descent]:
    """One of every recipe and kind of loop, some rounds into its game."""
    out = [
        recipe(dim, **own, **{**COMMON, "domain": domain, **changed})
        for recipe, own in RECIPES.items()
        for domain in (domains.Reals(), domains.Ball(0.5), domains.Box(-0.3, 0.3))
    ]
    for learner in out:
        X, y = reference.records_for(learner.loss, 5, dim, seed=1)
        rd.play(learner, rd.Stream(X, y))
    return out


def refusal(kind: type[Exception], action: Any, *arguments: Any, **named: Any) -> str:
    """The one sentence with which this is refused."""
    with pytest.raises(kind) as caught:
        action(*arguments, **named)
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    return message


def refused_unchanged(kind: type[Exception], learner: rd.Learner, action: Any, *arguments: Any, **named: Any) -> str:
    before, theta = learner.state(), learner.theta
    message = refusal(kind, action, *arguments, **named)
    np.testing.assert_array_equal(learner.theta, theta)
    assert learner.theta.dtype == theta.dtype
    assert reference.same_state(learner.state(), before)
    return message


def played(learner: rd.Learner, X: Any, y: Any, **named: Any) -> rd.Trace:
    return rd.play(learner, rd.Stream(X, y), **named)


def alter(state: Any, *path: Any, value: Any) -> Any:
    """A copy of a state with another value at this path, or without it if the value is None."""
    copied = inner = deepcopy(state)
    for key in path[:-1]:
        inner = inner[key]
    if value is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return copied
