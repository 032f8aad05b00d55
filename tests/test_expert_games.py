"""Learners with experts as learners: any cut of a game, bad records, bad settings and altered states."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import redescend as rd
from redescend import domains, errors, losses
from tests import reference
from tests.catalogue import quartic_gradient, quartic_value
from tests.expert_games import LOSSES, PAPER, outliers
from tests.refusals import refusal, refused_unchanged

MADE = {
    "robust": lambda dim: rd.LearnWithExperts(dim, loss=LOSSES[0], meta="robust", **PAPER),
    "robust within": lambda dim: rd.LearnWithExperts(
        dim, loss=LOSSES[0], meta="robust", domain=domains.Box(-0.1, 0.2), **PAPER
    ),
    "robust custom": lambda dim: rd.LearnWithExperts(
        dim, loss=losses.Custom(quartic_value, quartic_gradient), meta="robust", **PAPER
    ),
    "paper": lambda dim: rd.LearnWithExperts(dim, loss=LOSSES[0], rounds=40, **PAPER),
    "within": lambda dim: rd.LearnWithExperts(dim, loss=LOSSES[0], rounds=40, domain=domains.Ball(0.5), **PAPER),
    "custom": lambda dim: rd.LearnWithExperts(
        dim, loss=losses.Custom(quartic_value, quartic_gradient), rounds=40, a_max=2.0, **PAPER
    ),
    "Ader": lambda dim: rd.Ader(dim, loss=LOSSES[0], domain=domains.Ball(1.0), rounds=40, gradient=9.0, span=9.0),
    "JC": lambda dim: rd.JacobsenCutkosky(dim, loss=LOSSES[0], rounds=40, gradient=9.0, smoothness=9.0),
}
made = pytest.mark.parametrize("name", MADE)


@made
def test_play_update_and_any_cut_give_the_same_bits(name):
    X, y = outliers("random", LOSSES[0], 40, 3, seed=10)
    one, two, three = (MADE[name](3) for _ in range(3))
    trace = rd.play(one, rd.Stream(X, y), keep_actions=True)
    for row, (x, target) in enumerate(zip(X, y, strict=True)):
        np.testing.assert_array_equal(two.theta, trace.actions[row])
        assert two.update(x, target) == (trace.losses[row], trace.weights[row])
    for cut in (slice(0, 1), slice(1, 17), slice(17, 40)):
        rd.play(three, rd.Stream(X[cut], y[cut]))
        three = pickle.loads(pickle.dumps(three)) if cut.stop == 1 else copy.deepcopy(three)
        fresh = MADE[name](3)
        fresh.restore(three.state())
        three = fresh
    assert reference.same_state(one.state(), two.state())
    np.testing.assert_array_equal(one.theta, three.theta)


@pytest.mark.parametrize("name", ["paper", "within", "custom", "Ader", "JC"])
def test_a_game_longer_than_the_horizon_is_refused_before_it_begins(name):
    learner = MADE[name](2)
    message = refused_unchanged(errors.DataError, learner, rd.play, learner, rd.Stream(np.ones((41, 2)), np.ones(41)))
    assert "40 rounds" in message
    rd.play(learner, rd.Stream(0.1 * np.ones((40, 2)), np.ones(40)))
    refused_unchanged(errors.DataError, learner, learner.update, [1.0, 2.0], 1.0)
    refused_unchanged(errors.DataError, learner, learner.skip)


@made
@pytest.mark.parametrize("bad", [[np.nan, 1.0], [np.inf, 1.0], [1.0], [[1.0, 2.0]], "text", None])
def test_a_bad_record_changes_nothing(name, bad):
    learner = MADE[name](2)
    learner.update([0.5, 0.1], 1.0)
    refused_unchanged(errors.DataError, learner, learner.update, bad, 1.0)


@made
def test_bad_rows_are_skipped_and_listed(name):
    X, y = outliers("none", LOSSES[0], 30, 2, seed=11)
    X[3, 1], y[9] = np.nan, np.inf
    trace = rd.play(MADE[name](2), rd.Stream(X, y), bad_rows="skip")
    assert trace.skipped.tolist() == [3, 9]
    assert np.isfinite(trace.theta).all()


@pytest.mark.parametrize("size", [1e100, 1e160, 1e250, 1e307])
@pytest.mark.parametrize("name", ["paper", "within"])
def test_records_of_any_size_leave_it_finite(name, size):
    learner = MADE[name](2)
    for x, y in (([1.0, 0.5], 1.0), ([size, 1.0], 1.0), ([1.0, -size], 2.0), ([0.3, 1.0], size), ([1.0, 0.1], 1.0)):
        round_ = learner.update(x, y)
        assert np.isfinite(round_).all()
        assert np.isfinite(learner.theta).all()


def test_an_expert_that_would_leave_the_floats_stops_the_game_where_it_is():
    """A gate that never closes, and steps that are far too long."""
    learner = rd.LearnWithExperts(1, loss=losses.Squared(), a=1e100, b=1e-100, rounds=1100, a_max=1e100)
    with pytest.raises(errors.DivergenceError, match="overflowed; the model is unchanged"):
        rd.play(learner, rd.Stream(np.full((1100, 1), 50.0), np.ones(1100)))
    assert np.isfinite(learner.theta).all()
    refused_unchanged(errors.DivergenceError, learner, learner.update, [50.0], 1.0)


@pytest.mark.parametrize(
    "changed",
    [
        {"epsilon": 0.0},
        {"epsilon": -1.0},
        {"epsilon": np.inf},
        {"a_max": 1.9},
        {"a_max": np.nan},
        {"rounds": 0},
        {"rounds": 2.5},
        {"rounds": None},
        {"rounds": 10**400},
        {"a": 0.0},
        {"b": -1.0},
        {"loss": "squared"},
        {"domain": domains.Simplex()},
        {"domain": 3.0},
        {"meta": "best"},
    ],
    ids=str,
)
def test_bad_settings_get_one_sentence(changed):
    (name,) = changed
    message = refusal(
        errors.ParameterError, rd.LearnWithExperts, 2, **{"loss": LOSSES[0], "rounds": 10, **PAPER, **changed}
    )
    assert f"'{name}' parameter" in message


ALTERATIONS = {
    "nan": lambda state: {**state, "thetas": state["thetas"] * np.nan},
    "shape": lambda state: {**state, "thetas": state["thetas"][:, :1]},
    "fewer": lambda state: {**state, "groups": state["groups"][:1]},
    "lost experts": lambda state: {**state, "groups": state["groups"] - [0, 0, 0, 1, 0]},
    "clock": lambda state: {**state, "clock": state["clock"] - np.eye(7)[0] * 9},
    "late": lambda state: {**state, "clock": state["clock"] + np.eye(7)[0] * 99},
    "many": lambda state: {**state, "clock": state["clock"] + np.eye(7)[1] * 99},
    "text": lambda state: {**state, "groups": "all"},
    "other": lambda state: {**state, "learner": "OGD"},
    "missing": lambda state: {"learner": state["learner"]},
    "weights": lambda state: {**state, "groups": state["groups"] + [0, 0, 0, 0, 1e3]},
    "none": lambda state: None,
    "another step": lambda state: {**state, "groups": state["groups"] * [-1, 1, 1, 1, 1]},
    "another place": lambda state: {**state, "groups": state["groups"] + [0, 5e7, 0, 0, 0]},
    "other radii": lambda state: {**state, "groups": state["groups"] - [0, 0, 5e6, 5e6, 0]},
    "no weight": lambda state: {**state, "groups": state["groups"] - [0, 0, 0, 0, 1e290]},
    "far away": lambda state: {**state, "thetas": state["thetas"] + 1e200},
}


ALTERED = [(name, what) for name in MADE for what in ALTERATIONS if what != "late" or not name.startswith("robust")]
"""Robust experts have no horizon: they cannot be late."""


@pytest.mark.parametrize(("name", "alteration"), ALTERED)
def test_an_altered_state_is_refused(name, alteration):
    learner = MADE[name](2)
    learner.update([1.0, 0.5], 1.0)
    refused_unchanged(errors.DataError, learner, learner.restore, ALTERATIONS[alteration](learner.state()))
