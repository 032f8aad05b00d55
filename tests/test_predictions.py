"""Predictions of learners: those of a trace, of one record and of a table; refusals, sizes and precisions."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import redescend as rd
from redescend import errors, losses, steps
from tests import reference
from tests.catalogue import DIM, LEARNERS


def test_every_public_learner_is_in_the_catalogue():
    names = [name for name in rd.__all__ if name != "to_onnx"]  # which needs an extra
    public = {name for name in names if inspect.isclass(kind := getattr(rd, name)) and issubclass(kind, rd.Learner)}
    assert public - {"Learner"} == {name.partition(" ")[0] for name in LEARNERS}


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_predicts_before_it_learns(name):
    """By itself and in a trace, of one record and of a table, also where a record overflows or is skipped."""
    linear_only = name.startswith(("SelfTuning", "Jacobsen"))
    custom = losses.Custom(lambda t, x, y: abs(y - x @ t), lambda t, x, y: -np.sign(y - x @ t) * x)
    for loss in [losses.Squared(l2=0.1), losses.Hinge(), *([] if linear_only else [custom])]:
        margin = isinstance(loss, losses.Hinge)
        X, y = reference.records_for(losses.Hinge() if margin else losses.Squared(), 60, DIM, seed=8)
        X[20], X[41] = np.nan, X[41] * (1e200 if name.startswith(("SelfTuning", "Learn", "TopK")) else 1.0)
        learner, other = LEARNERS[name](loss), LEARNERS[name](loss)
        trace = rd.play(learner, rd.Stream(X, y), keep_actions=True, bad_rows="skip")
        assert trace.predictions.shape == (60,)
        assert trace.predictions[20] == 0.0
        there = np.flatnonzero(np.isfinite(X).all(axis=1))
        expected = np.einsum("ij,ij->i", X[there], trace.actions[there])
        if name.startswith("SelfTuning"):  # which cuts absurd values off
            expected = np.where(np.abs(expected) < 1e100, expected, trace.predictions[there])
            longest = np.log(np.arange(len(there)) + 2.0) if margin else np.inf  # the shortest limit of logits
            limited = (np.abs(expected) > longest) & (np.abs(trace.predictions[there]) >= longest - 1e-9)
            expected = np.where(limited, trace.predictions[there], expected)
        np.testing.assert_allclose(trace.predictions[there], expected, rtol=1e-9, atol=1e-12)
        assert np.any(trace.predictions != 0.0)
        for row in there[:20]:  # a skipped row counts as a round
            assert other.predict(X[row]) == pytest.approx(trace.predictions[row], rel=1e-9, abs=1e-12)
            other.update(X[row], y[row])
        before = learner.state()
        table = learner.predict(X[there])
        assert table.shape == (59,)
        assert [learner.predict(x) for x in X[there]] == table.tolist()
        assert type(learner.predict(X[0].tolist())) is float
        products = np.array([x @ learner.theta for x in X[there]])
        if name.startswith("SelfTuning"):
            longest = np.log(len(table) + 2.0) if margin else np.inf
            limited = (np.abs(products) > longest) & (np.abs(table) >= longest - 1e-9)
            products = np.where((np.abs(products) < 1e100) & ~limited, products, table)
        np.testing.assert_allclose(table, products, rtol=1e-9, atol=1e-12)
        assert reference.same_state(learner.state(), before)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([1.0, 2.0], "x must have 3 features. Got 2 instead."),
        (np.zeros((4, 5)), "x must have 3 features. Got 5 instead."),
        (np.zeros((1, 1, 3)), "x must have shape (features,) or (rows, features). Got (1, 1, 3) instead."),
        (1.0, "x must have shape (features,) or (rows, features). Got () instead."),
        (["a", "b", "c"], "x must be an array of floats"),
        (np.zeros(3, int), "x must be an array of floats"),
        ([0.0, np.nan, 0.0], "x must be finite. Got nan in feature 1 instead."),
        ([[0.0, 1.0, 0.0], [0.0, 0.0, np.inf]], "x must be finite. Got inf in row 1, feature 2 instead."),
    ],
)
def test_a_bad_record_is_not_predicted(x, message):
    with pytest.raises(errors.DataError) as caught:
        rd.OGD(3, loss=losses.Squared(), step=steps.Anytime()).predict(x)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_predictions_of_any_size_and_precision():
    learner = rd.OGD(2, loss=losses.Squared(), step=steps.Anytime(), start=[1e150, -1e150], dtype=np.float64)
    assert learner.predict([1e200, 0.0]) == np.finfo(float).max
    assert learner.predict([[0.0, 1e200], [1.0, 1.0]]).tolist() == [-np.finfo(float).max, 0.0]
    assert learner.predict(np.zeros((0, 2))).shape == (0,)
    small = rd.OGD(2, loss=losses.Squared(), step=steps.Anytime(), start=[0.5, 0.25], dtype=np.float32)
    assert small.predict(np.ones((3, 2), np.float32)).dtype == np.float64
    X = np.random.default_rng(0).normal(size=(40, 2))
    assert small.predict(X).tolist() == small.predict(np.asfortranarray(X)).tolist()
