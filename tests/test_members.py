"""The verdict of all members of a model with trees on the numbers of a table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from redescend.belief import ResidualBelief
from redescend.engines.members import EXCUSED, judge_by_members
from redescend.sklearn import RedescendingRegressor
from redescend.streaming import fit_stream


def judge(X, targets, predictions):
    belief = ResidualBelief(X.shape[1])
    belief.learn_table(predictions, targets, X)
    return belief.judge(predictions, targets, X)


def test_a_residual_is_odd_only_if_it_is_large_for_those_around_it():
    random = np.random.default_rng(0)
    X, tail = random.normal(size=(2000, 1)), random.random(2000) < 0.05
    predictions, sizes = random.normal(size=2000), np.where(tail, np.log(30.0), 0.0)
    targets = predictions + np.exp(sizes) * 0.01 * random.normal(size=2000)
    bad = np.arange(2000) % 100 == 0
    targets[bad] += 10.0
    linear = targets + random.normal(size=2000) + 20.0 * bad
    own = judge(X, targets, predictions)
    found = judge_by_members(own, X, targets, predictions, linear, sizes)
    assert np.mean(own[tail & ~bad] < 0.0) > 0.3
    assert (found[tail & ~bad] > 0.0).all()
    assert (found[bad] < -2.0).all()
    # What is known of the sizes around records never makes one more suspicious.
    np.testing.assert_array_less(np.minimum(own, judge(X, targets, linear) + EXCUSED), found + 1e-9)


def test_trees_excuse_what_the_linear_member_doubts_only_a_little():
    random = np.random.default_rng(1)
    X, predictions = random.normal(size=(1000, 2)), random.normal(size=1000)
    targets = predictions + 0.1 * random.normal(size=1000)
    linear = predictions + np.where(np.arange(1000) % 50 == 0, 9.0, 0.0)
    found = judge_by_members(judge(X, targets, predictions), X, targets, predictions, linear, np.zeros(1000))
    np.testing.assert_allclose(found[::50], judge(X, targets, linear)[::50] + EXCUSED)
    assert (found[::50] < 0.0).all()


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
def test_no_residual_makes_a_verdict_infinite(size):
    X, targets = np.zeros((100, 1)), np.linspace(-1.0, 1.0, 100) * size
    targets[[3, 50]] = 1e308, -1e308
    sizes = np.linspace(-1000.0, 1000.0, 100)
    found = judge_by_members(np.zeros(100), X, targets, np.full(100, np.nan), -targets, sizes)
    assert np.isfinite(found).all()


def test_an_estimator_lists_errors_in_a_function_of_a_column_and_not_its_tail():
    listed = right = 0
    for seed in range(10):
        random = np.random.default_rng(seed)
        x = np.round(np.exp(random.normal(9.0, 0.8, 900)) / 500.0) * 500.0 + 500.0
        y = np.log(x)
        y[::60] += 3.0
        model = RedescendingRegressor(features="auto").fit(np.column_stack([x, random.normal(size=(900, 2))]), y)
        listed, right = listed + len(model.suspects_), right + np.count_nonzero(model.suspects_ % 60 == 0)
    assert right == 150
    assert listed - right <= 0.1 * listed  # the share of false alarms that is asked for


@pytest.mark.parametrize("noise", [0.0, 1e-6, 1e-3])
@pytest.mark.parametrize("rows", [60, 500])
def test_no_record_of_a_linear_or_constant_target_is_listed(rows, noise):
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, 3))
    for y in (X @ [1.0, 2.0, 3.0] + 0.5 + noise * random.normal(size=rows), np.full(rows, 1.0 + noise)):
        assert not len(RedescendingRegressor(features="auto").fit(X, y).suspects_)
        _, run = fit_stream(pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y}), "y", final_look=True)
        assert run.run().final.listed == 0
