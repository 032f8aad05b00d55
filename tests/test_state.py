"""A state is carried over whole, and never believed when it was altered."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import redescend as rd
from redescend import domains, errors, losses, steps
from tests import reference
from tests.games import ROUNDS, SENTENCES, assert_same, every_form, make, records, whole


@every_form
def test_a_state_is_carried_to_a_fresh_learner(name, dim, dtype):
    X, y = records(dim, dtype)
    expected, state = whole(name, dim, dtype)
    traces, learner = [], make(name, dim)
    for first, last in ((0, 1), (1, 256), (256, 411), (411, ROUNDS)):
        fresh = make(name, dim)
        fresh.restore(learner.state())
        assert reference.same_state(fresh.state(), learner.state())
        assert fresh.theta.dtype == learner.theta.dtype
        learner = fresh
        traces.append(rd.play(learner, rd.Stream(X[first:last], y[first:last]), keep_actions=True))
    assert_same(traces, learner, expected, state)


@pytest.mark.parametrize("name", SENTENCES)
def test_a_state_is_a_copy_both_ways(name):
    X, y = records(3, np.float64)
    learner = make(name, 3)
    rd.play(learner, rd.Stream(X[:50], y[:50]))
    kept, given = learner.state(), learner.state()
    for value in given.values():
        if isinstance(value, np.ndarray):
            value[...] = 0.123
    assert reference.same_state(learner.state(), kept)

    given = learner.state()
    other = make(name, 3)
    other.restore(given)
    learner.update(X[50], y[50])
    for value in given.values():
        if isinstance(value, np.ndarray):
            value[...] = 0.123
    assert reference.same_state(other.state(), kept)


ALTERATIONS = {
    "not a dict": lambda state: [*state.items()],
    "none": lambda state: None,
    "missing": lambda state: {key: value for key, value in state.items() if key != "norm2"},
    "more": lambda state: {**state, "other": 1.0},
    "another learner": lambda state: {**state, "learner": "OGD(3)"},
    "longer": lambda state: {**state, "previous": np.zeros(4), "record": np.zeros(4)},
    "uneven": lambda state: {**state, "previous": np.zeros(4)},
    "two-dimensional": lambda state: {**state, "previous": np.zeros((1, 3)), "record": np.zeros((1, 3))},
    "memory of another size": lambda state: {**state, "memory": state["memory"][1:]},
    "nan in the action": lambda state: {**state, "previous": np.array([0.0, np.nan, 0.0])},
    "inf in the record": lambda state: {**state, "record": np.array([0.0, np.inf, 0.0])},
    "nan in the memory": lambda state: {**state, "memory": state["memory"] * np.nan},
    "nan in a number": lambda state: {**state, "keep": np.nan},
    "text in a number": lambda state: {**state, "keep": "one"},
    "nothing in a number": lambda state: {**state, "total": None},
    "array in a number": lambda state: {**state, "total": np.zeros(2)},
    "text in the action": lambda state: {**state, "previous": np.array(["a", "b", "c"])},
    "nothing in the action": lambda state: {**state, "previous": None},
    "text in the memory": lambda state: {**state, "memory": "heap"},
    "whole numbers in the action": lambda state: {**state, "previous": np.zeros(3, int), "record": np.zeros(3, int)},
    "negative rounds": lambda state: {**state, "rounds": -4.0},
    "half a round": lambda state: {**state, "rounds": 2.5},
    "negative total": lambda state: {**state, "total": -1.0},
    "negative norm": lambda state: {**state, "norm2": -1.0},
}


@pytest.mark.parametrize("alteration", ALTERATIONS)
def test_an_altered_state_is_refused_in_one_sentence_and_changes_nothing(alteration):
    X, y = records(3, np.float64)
    learner, giver = make("top-k", 3), make("top-k", 3)
    rd.play(learner, rd.Stream(X[:30], y[:30]))
    rd.play(giver, rd.Stream(X[:90], y[:90]))
    before = learner.state()
    with pytest.raises(errors.RedescendError) as caught:
        learner.restore(ALTERATIONS[alteration](giver.state()))
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")
    assert reference.same_state(learner.state(), before)


OTHERS = {
    "dim": lambda: rd.TopK(4, loss=losses.Squared(), k=2, step=steps.Constant(0.1)),
    "loss": lambda: rd.TopK(3, loss=losses.Squared(l2=1.0), k=2, step=steps.Constant(0.1)),
    "k": lambda: rd.TopK(3, loss=losses.Squared(), k=3, step=steps.Constant(0.1)),
    "step": lambda: rd.TopK(3, loss=losses.Squared(), k=2, step=steps.Constant(0.2)),
    "domain": lambda: rd.TopK(3, loss=losses.Squared(), k=2, step=steps.Constant(0.1), domain=domains.Ball(1.0)),
    "recipe": lambda: rd.OGD(3, loss=losses.Squared(), step=steps.Constant(0.1)),
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_foreign_state_is_refused(what):
    learner = rd.TopK(3, loss=losses.Squared(), k=2, step=steps.Constant(0.1))
    learner.update([1.0, 2.0, 3.0], 1.0)
    before = learner.state()
    with pytest.raises(errors.DataError, match="belongs to"):
        learner.restore(OTHERS[what]().state())
    assert reference.same_state(learner.state(), before)


def test_the_state_of_an_oracle_that_was_told_otherwise_is_refused():
    common = {"loss": losses.Squared(), "step": steps.Constant(0.1)}
    learner, other = (rd.Oracle(1, clean=clean, **common) for clean in ([True, False], [False, True]))
    with pytest.raises(errors.DataError):
        learner.restore(other.state())


def test_the_state_of_a_custom_loss_can_be_read_in_another_process():
    """A function's address is another one there."""
    custom = losses.Custom(lambda theta, x, y: (y - x @ theta) ** 2, lambda theta, x, y: -2 * (y - x @ theta) * x)
    assert " at 0x" not in rd.OGD(1, loss=custom, step=steps.Constant(0.1)).state()["learner"]


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda learner: pickle.loads(pickle.dumps(learner))])
@every_form
def test_a_copied_learner_goes_on_by_itself(name, dim, dtype, duplicate):
    X, y = records(dim, dtype)
    learner = make(name, dim)
    rd.play(learner, rd.Stream(X[:300], y[:300]))
    twin = duplicate(learner)
    for one in (twin, learner):
        for x, target in zip(X[300:320], y[300:320], strict=True):
            one.update(x, target)
    assert reference.same_state(twin.state(), learner.state())
    assert twin.dtype is learner.dtype
