"""Beliefs about whole tables: the scale by the features is the likeliest, and what follows from it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from redescend.belief import ResidualBelief
from redescend.belief.table import RIDGE, fit_effects
from tests import reference_belief


def likeliest_effects(standard, logs):
    """The level and the effects of features by a general optimiser."""

    def cost(effects):
        scale = effects[0] + standard @ effects[1:]
        return np.sum(scale + np.log1p(np.exp(2 * (logs - scale)))) + RIDGE / 2 * np.sum(effects[1:] ** 2)

    found = minimize(cost, np.append(np.median(logs), np.zeros(standard.shape[1])), method="BFGS", tol=1e-9).x
    return found[0], found[1:]


def heteroscedastic(rows, seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, 3))
    scale = np.exp(0.8 * X[:, 0])
    predictions = 2.0 * X[:, 1]
    return X, predictions, predictions + scale * random.normal(size=rows), scale


@pytest.mark.parametrize("seed", [0, 1])
def test_effects_on_the_scale_are_the_likeliest(seed):
    random = np.random.default_rng(seed)
    standard = random.normal(size=(400, 4))
    logs = np.log(np.abs(random.standard_t(2, size=400))) + standard @ [0.5, -0.3, 0.0, 0.1]
    logs[::20] += 5.0
    level, effects = fit_effects(standard, logs)
    expected = likeliest_effects(standard, logs)
    np.testing.assert_allclose(level, expected[0], atol=1e-4)
    np.testing.assert_allclose(effects, expected[1], atol=1e-4)


def test_a_table_is_judged_as_by_the_slow_reference():
    X, predictions, targets, _ = heteroscedastic(700, seed=3)
    targets[::35] += 9.0
    belief = ResidualBelief(3)
    belief.learn_table(predictions, targets, X)
    features = np.column_stack([X, predictions])
    standard = np.clip((features - features.mean(axis=0)) / features.std(axis=0), -3, 3)
    level, effects = likeliest_effects(standard, np.log(np.abs(targets - predictions)))
    ratios = (targets - predictions) / np.exp(level + 0.75 * standard @ effects)
    cells = np.searchsorted(reference_belief.EDGES, np.abs(ratios), side="right") - 1
    counts = np.zeros((2, 56))
    np.add.at(counts, ((ratios > 0).astype(int), cells), 1.0)
    fit = reference_belief.Densities()
    fit.fit(counts, 300)
    expected = [fit.look_up(ratio) for ratio in ratios]
    np.testing.assert_allclose(belief.judge(predictions, targets, X), expected, atol=0.07)


def test_intervals_of_a_table_are_as_wide_as_its_noise():
    X, predictions, targets, scale = heteroscedastic(4000, seed=0)
    belief = ResidualBelief(3)
    belief.learn_table(predictions, targets, X)
    low, high = belief.predict_interval(predictions, X)
    inside = (low <= targets) & (targets <= high)
    assert abs(inside.mean() - 0.9) < 0.005
    for quiet in (scale < 0.7, scale > 1.4):
        assert abs(inside[quiet].mean() - 0.9) < 0.03  # without the effects of features 0.99 and 0.75


def test_gross_errors_are_found_in_wide_tables():
    """With many features that do not matter, their effects stay small."""
    random = np.random.default_rng(1)
    X, targets = random.normal(size=(2000, 60)), random.normal(size=2000)
    wrong = np.arange(0, 2000, 50)
    targets[wrong] += 8.0
    belief = ResidualBelief(60)
    judgements = belief.learn_table(np.zeros(2000), targets, X)
    suspects = belief.judge_log(np.zeros(2000), targets, judgements).suspects(0.1)
    assert np.isin(wrong, suspects).mean() > 0.9
    assert np.isin(suspects, wrong).mean() > 0.9


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
@pytest.mark.parametrize("rows", [1, 2, 40])
def test_odd_tables_leave_beliefs_finite(rows, size):
    random = np.random.default_rng(0)
    X = np.column_stack([np.zeros(rows), random.normal(size=rows) * size])
    wild = random.normal(size=rows)
    wild[rows // 2] = 1e300
    for targets in (np.zeros(rows), np.ones(rows) * size, random.normal(size=rows) * size, wild):
        belief = ResidualBelief(2)
        belief.learn_table(np.zeros(rows), targets, X)
        assert np.isfinite(belief.judge(np.zeros(rows), targets, X)).all()
        assert np.isfinite(belief.predict_interval(np.zeros(rows), X)).all()
        copy = ResidualBelief(2)
        copy.restore(belief.state())


def test_records_in_order_are_judged_again_by_the_noise_of_their_groups():
    """Of 40 groups, each has its own noise: too many for effects that are learned along 1,200 records."""
    random = np.random.default_rng(2)
    groups = random.integers(0, 40, 1200)
    scale = np.exp(random.normal(size=40))[groups]
    X = (groups[:, None] == np.arange(40)).astype(float)
    predictions = np.cumsum(random.normal(size=1200))
    targets = predictions + scale * random.normal(size=1200)
    belief = ResidualBelief(40)
    first = belief.update(predictions, targets, X)
    again = belief.learn_again(predictions, targets, X)
    assert belief.rounds == 1200
    errors = [np.std(np.log(said.scale / scale)[100:]) for said in (first, again)]
    assert errors[1] < 0.8 * errors[0]
    inside = (again.low <= targets) & (targets <= again.high)
    assert abs(inside[100:].mean() - 0.9) < 0.02
    assert not len(belief.judge_log(predictions, targets, again).suspects(0.1))


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_exact_predictions_have_narrow_intervals_in_any_unit_and_other_targets_are_doubted(unit):
    targets = unit * np.random.default_rng(0).normal(size=300)
    belief = ResidualBelief()
    said = belief.learn_table(targets, targets)
    low, high = belief.predict_interval(targets)
    assert ((low <= targets) & (targets <= high) & (high - low < 0.001 * unit)).all()
    assert belief.judge_log(targets, targets, said).clean_probability.min() > 0.9
    assert (belief.judge(targets, targets + unit) < -5.0).all()


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_intervals_contain_the_tails_of_clean_targets(level):
    """Heavy tails look like outliers, but as long as none is listed, all of them count."""
    random = np.random.default_rng(5)
    X, predictions = random.normal(size=(4000, 2)), random.normal(size=4000)
    targets = predictions + np.exp(0.5 * X[:, 0]) * random.normal(size=4000) * np.exp(2.0 * random.normal(size=4000))
    belief = ResidualBelief(2)
    belief.learn_table(predictions[:2000], targets[:2000], X[:2000])
    low, high = belief.predict_interval(predictions[2000:], X[2000:], level)
    assert abs(np.mean((low <= targets[2000:]) & (targets[2000:] <= high)) - level) < 0.03


def test_ends_of_intervals_are_quantiles_of_records_that_are_no_suspects():
    """The slow reference: sorted residuals, in units of the widths at their features."""
    X, predictions, targets, _ = heteroscedastic(1500, seed=4)
    targets[::50] += 60.0
    belief = ResidualBelief(3)
    belief.learn_table(predictions, targets, X)
    suspects = np.arange(0, 1500, 50)
    belief.fit_intervals(predictions, targets, X, suspects)
    copy = ResidualBelief(3)
    copy.restore(belief.state())
    for level in (0.3, 0.5, 0.8, 0.9, 0.98):
        low, high = belief.predict_interval(predictions, X, level)
        np.testing.assert_array_equal(copy.predict_interval(predictions, X, level), (low, high))
        below, above = (np.delete(targets < low, suspects), np.delete(targets > high, suspects))
        assert abs(below.mean() - 0.5 * (1.0 - level)) < 0.015
        assert abs(above.mean() - 0.5 * (1.0 - level)) < 0.015


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_intervals_of_exact_predictions_contain_what_is_not_told_apart_from_them(side):
    targets = np.random.default_rng(0).integers(1, 30, 500) / 7.0
    belief = ResidualBelief()
    belief.learn_table(targets, targets)
    rounded = targets * (1.0 + side * 1e-13)
    low, high = belief.predict_interval(rounded)
    assert ((low <= targets) & (targets <= high)).all()


def test_a_stream_after_a_table_has_the_intervals_of_a_stream():
    X, predictions, targets, _ = heteroscedastic(600, seed=6)
    belief = ResidualBelief(3)
    belief.learn_table(predictions[:400], targets[:400], X[:400])
    assert "ends" in belief.state()
    belief.update(predictions[400:], targets[400:], X[400:])
    assert "ends" not in belief.state()
    assert np.isfinite(belief.predict_interval(predictions, X)).all()
