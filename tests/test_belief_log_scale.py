"""Beliefs about tables whose targets are judged on a logarithmic scale as well."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest

from redescend.belief import ResidualBelief
from redescend.errors import DataError
from redescend.kernels.belief import layout
from redescend.sklearn import RedescendingRegressor


def prices(rows, seed):
    """Features, predictions and targets with noise in proportion to them; every 50th target has lost a digit."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, 2))
    predictions = 1e5 * np.exp(0.7 * X[:, 0])
    targets = predictions * np.exp(0.2 * random.normal(size=rows))
    bad = np.arange(rows) % 50 == 7
    targets[bad] /= 10.0
    return X, predictions, targets, bad


def learn(X, predictions, targets, sizes=None):
    belief = ResidualBelief(X.shape[1])
    belief.learn_table(predictions, targets, X, sizes)
    return belief


def judge_on_one_scale(X, predictions, targets):
    belief = learn(X, predictions, targets)
    belief._logarithmic = None
    return belief.judge(predictions, targets, X)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_record_below_its_prediction_is_odd_if_it_is_on_either_scale(sign):
    X, predictions, targets, bad = prices(2000, seed=0)
    unit = np.median(targets) / 16
    plain = judge_on_one_scale(X, sign * predictions, sign * targets)
    logarithmic = judge_on_one_scale(X, np.arcsinh(predictions / unit), np.arcsinh(targets / unit))
    found = learn(X, sign * predictions, sign * targets).judge(sign * predictions, sign * targets, X)
    expected = np.where(targets < predictions, np.minimum(plain, logarithmic), plain)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert (found[bad] < plain[bad]).all()


def test_lost_digits_of_prices_are_found():
    found = {"plain": 0, "both": 0, "false": 0}
    for seed in range(5):
        X, predictions, targets, bad = prices(2000, seed)
        belief = ResidualBelief(2)
        said = belief.learn_table(predictions, targets, X)
        for name, features in (("plain", None), ("both", X)):  # without the features, on one scale
            suspects = belief.judge_log(predictions, targets, said, X=features).suspects(0.1)
            found[name] += np.count_nonzero(bad[suspects])
        found["false"] += np.count_nonzero(~bad[suspects])
    assert found["both"] > 180 > 100 > found["plain"]  # of 200
    assert found["false"] <= 0.1 * found["both"]


def test_a_digit_that_an_estimator_lists():
    X, _, targets, bad = prices(1500, seed=3)
    model = RedescendingRegressor().fit(X, targets)
    assert np.mean(bad[model.suspects_]) > 0.85
    assert np.count_nonzero(bad[model.suspects_]) >= 25  # of 30
    assert not len(RedescendingRegressor().fit(X, np.where(bad, 10.0 * targets, targets)).suspects_)


def test_noise_that_does_not_grow_with_the_target_is_judged_on_one_scale():
    random = np.random.default_rng(0)
    predictions = 1e5 * np.exp(0.7 * random.normal(size=2000))
    targets = predictions + 2e4 * random.normal(size=2000)
    belief = learn(np.zeros((2000, 0)), predictions, targets)
    assert "logarithmic" not in belief.state()


@pytest.mark.parametrize("factor", [1e-50, 3.0, 1e50])
def test_the_unit_of_targets_does_not_matter(factor):
    X, predictions, targets, _ = prices(1000, seed=1)
    one = learn(X, predictions, targets).judge(predictions, targets, X)
    other = learn(X, factor * predictions, factor * targets).judge(factor * predictions, factor * targets, X)
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_sizes_around_records_are_units_on_both_scales():
    X, predictions, targets, bad = prices(2000, seed=2)
    random = np.random.default_rng(0)
    sizes = 2.0 * random.random(2000)
    noisy = predictions * np.exp(np.exp(sizes) * np.log(targets / predictions) * ~bad + np.log(0.1) * bad)
    local = np.log(predictions) + sizes
    belief = learn(X, predictions, noisy, local)
    found = belief.judge(predictions, noisy, X, sizes=local)
    quiet = bad & (sizes < 0.5)
    assert np.median(found[quiet]) < 0.0 < np.median(found[~bad])
    assert np.median(found[quiet]) < np.median(found[bad & (sizes > 1.5)])


def test_the_logarithmic_scale_is_saved_and_forgotten_with_the_next_record():
    X, predictions, targets, _ = prices(1000, seed=4)
    belief = learn(X, predictions, targets)
    found, state = belief.judge(predictions, targets, X), belief.state()
    other = ResidualBelief(2)
    other.restore(state)
    np.testing.assert_array_equal(other.judge(predictions, targets, X), found)
    belief.update(predictions[:1], targets[:1], X[:1])
    assert "logarithmic" not in belief.state()
    nested = {**state, "logarithmic": {**state["logarithmic"], "logarithmic": state["logarithmic"]}}
    without = {**state, "shared": np.where(np.arange(layout.SHARED) == layout.LOG_UNIT, 0.0, state["shared"])}
    for forged in (nested, without, {**state, "logarithmic": 3}, {**state, "logarithmic": None}):
        with pytest.raises(DataError, match="corrupt"):
            other.restore(forged)
    np.testing.assert_array_equal(other.judge(predictions, targets, X), found)


def test_copies_share_nothing():
    X, predictions, targets, _ = prices(1000, seed=5)
    belief = learn(X, predictions, targets)
    found, other = belief.judge(predictions, targets, X), deepcopy(belief)
    other._logarithmic.update(targets, predictions, X)
    assert (other.judge(predictions, targets, X) != found).any()
    np.testing.assert_array_equal(belief.judge(predictions, targets, X), found)


@pytest.mark.parametrize("bias", [-1.0, -0.8])
def test_predictions_near_0_or_below_are_no_reason_to_doubt_a_target(bias):
    X, predictions, targets, bad = prices(2000, seed=6)
    targets[bad] *= 10.0
    low = predictions < np.quantile(predictions, 0.1)
    predictions = np.where(low, (1.0 + bias) * predictions - (bias == -1.0) * 1e4, predictions)
    found = learn(X, predictions, targets).judge(predictions, targets, X)
    assert (found[low] > 0.0).all()


@pytest.mark.parametrize("share", [0.02, 0.1, 0.2])
def test_targets_of_0_are_judged_as_they_are(share):
    for seed in range(3):
        random = np.random.default_rng(seed)
        X = random.normal(size=(1500, 2))
        y = np.exp(X[:, 0] + 0.3 * random.normal(size=1500))
        y[random.random(1500) < share] = 0.0
        assert not len(RedescendingRegressor().fit(X, y).suspects_)


def test_targets_of_both_signs_have_no_logarithmic_scale():
    random = np.random.default_rng(0)
    predictions = np.where(random.random(2000) < 0.6, 1.0, -1.0) * np.exp(random.normal(size=2000))
    targets = predictions * np.exp(0.2 * random.normal(size=2000))
    assert "logarithmic" not in learn(np.zeros((2000, 0)), predictions, targets).state()


def test_one_scale_serves_all_keys_and_huge_targets_are_saved():
    X, predictions, targets, _ = prices(1000, seed=7)
    belief, keys = ResidualBelief(2), np.arange(1000) % 50
    belief.update(predictions, targets, X, keys)
    belief.learn_table(predictions, targets, X)
    found = belief.judge(predictions, targets, X, keys)
    assert np.isfinite(found).all()
    huge = ResidualBelief()
    huge.learn_table(np.full(100, 1.5e308), np.linspace(1.5e308, 1.7e308, 100))
    ResidualBelief().restore(huge.state())


@pytest.mark.parametrize("sizes", [np.zeros(3), np.zeros((10, 1)), np.full(10, np.nan)])
def test_bad_sizes_are_refused_in_one_sentence(sizes):
    with pytest.raises(DataError, match="sizes must be 10 finite numbers, one for each record"):
        ResidualBelief().learn_table(np.zeros(10), np.ones(10), sizes=sizes)
