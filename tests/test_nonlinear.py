"""The engine with trees beside the linear model: gains, costs, units, cuts, states and contributions."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest

from redescend import losses
from redescend.engines import NonlinearEngine, SelfTuningEngine, Shape
from redescend.sklearn import RedescendingClassifier, RedescendingRegressor


def friedman(count, seed, dim=5):
    random = np.random.default_rng(seed)
    X = random.random((count, dim))
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, f + random.normal(size=count)


def make(dim=5, outputs=1, loss=None, missing=False):
    return NonlinearEngine(dim, outputs, loss or losses.Squared(), 2, missing)


def make_linear(dim=5, loss=None):
    return SelfTuningEngine(Shape(dim, 1, loss or losses.Squared()), 2)


def mean_errors(X, y, clean=None, start=50):
    """The mean error of the engine with trees, and of the linear one, on clean records."""
    clean = np.ones(len(y), bool) if clean is None else clean
    predicted = [
        engine.learn_rounds(X, y[None]).predictions[0] for engine in (make(X.shape[1]), make_linear(X.shape[1]))
    ]
    return tuple(np.abs(p - y)[start:][clean[start:]].mean() for p in predicted)


# --- what it gains, and what it costs ---


def test_it_gains_where_the_truth_is_not_linear_even_with_outliers():
    X, y = friedman(4000, 0)
    ours, linear = mean_errors(X, y)
    assert ours < 0.6 * linear
    clean = np.random.default_rng(1).random(len(y)) > 0.2
    ours, linear = mean_errors(X, np.where(clean, y, 300.0), clean)
    assert ours < 0.65 * linear


def test_it_costs_next_to_nothing_where_the_truth_is_linear():
    random = np.random.default_rng(2)
    X = random.normal(size=(5000, 5))
    y = X @ [1.0, -2.0, 3.0, 0.0, 0.5] + 4.0 + random.normal(size=5000)
    ours, linear = mean_errors(X, y)
    assert ours < 1.03 * linear


def test_wide_tables_are_learned_with_their_correlations():
    random = np.random.default_rng(3)
    X = random.normal(size=(800, 10)) @ random.normal(size=(10, 200)) + 0.5 * random.normal(size=(800, 200))
    y = X[:, 0] + X[:, 1]
    model = RedescendingRegressor().fit(X[:600], y[:600])
    assert np.abs(model.predict(X[600:]) - y[600:]).mean() < 1e-3 * y.std()  # at order 1 more than 0.1


def test_trees_are_not_used_on_little_evidence():
    ratios = []
    for seed in range(30):
        random = np.random.default_rng(seed)
        X, clean = random.normal(size=(200, 6)), np.arange(200) % 7 > 0
        y = 0.5 * X @ random.normal(size=6) + random.normal(size=200)
        ours, linear = mean_errors(X, np.where(clean, y, 10.0 * y), clean)
        ratios.append(ours / linear)
    assert np.count_nonzero(np.array(ratios) > 1.015) <= 1
    assert max(ratios) < 1.03
    assert np.mean(ratios) < 1.0025


def test_targets_with_long_tails_are_predicted_as_by_the_linear_model_where_it_is_exact():
    ratios = []
    for seed in range(20):
        X = np.random.default_rng(seed).standard_t(1.0, size=(600, 3))
        ours, linear = mean_errors(X, X @ [1.0, -2.0, 0.5])
        ratios.append(ours / linear)
    assert np.count_nonzero(np.array(ratios) > 1.03) <= 1
    assert max(ratios) < 1.2


@pytest.mark.parametrize("length", [3.0, 10.0, 30.0])
def test_a_linear_model_that_is_exact_stays_where_some_features_are_wrong(length):
    """There, the forest errs less, because it is cut off, but only there."""
    random = np.random.default_rng(1)
    X = random.normal(size=(3_000, 5))
    y = X @ np.arange(1.0, 6.0)
    wrong = random.random(3_000) < 0.05
    X[wrong] = length * random.normal(size=(wrong.sum(), 5))
    ours, linear = mean_errors(X, y, ~wrong, start=1_000)
    assert ours <= 10.0 * linear


@pytest.mark.parametrize(("one_hot", "seed"), [(False, 3), (False, 4), (True, 3), (True, 4)])
def test_an_exactly_linear_truth_is_found_as_soon_as_the_linear_model_finds_it(one_hot, seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(2000, 6))
    if one_hot:
        X[:, 3:] = np.eye(3)[random.integers(0, 3, 2000)]
    X *= np.exp(2.0 * random.normal(size=6))
    y = X @ random.normal(size=6) + 4.0
    ours, linear = mean_errors(X, y)
    assert ours <= 1.03 * linear
    assert linear < 1e-4


def test_labels_that_no_line_separates():
    random = np.random.default_rng(4)
    X = random.normal(size=(4000, 3))
    y = np.sign(X[:, 0] * X[:, 1])
    told = np.where(random.random(4000) < 0.1, -y, y)
    right = [
        np.mean(e.learn_rounds(X, told[None]).predictions[0][1000:] * y[1000:] > 0)
        for e in (make(3, 1, losses.Logistic()), make_linear(3, losses.Logistic()))
    ]
    assert right[0] > 0.93 > right[1] + 0.2


# --- exact per record, free of units, safe ---


def table(count, seed, outputs, labels):
    X, y = friedman(count, seed)
    X[np.random.default_rng(seed).random(X.shape) < 0.05] = np.nan
    if labels:
        return X, np.where(np.arange(outputs)[:, None] == np.digitize(y, np.linspace(8, 20, outputs - 1)), 1.0, -1.0)
    return X, np.stack([y * (k + 1) for k in range(outputs)])


@pytest.mark.parametrize(("outputs", "loss"), [(1, losses.Squared()), (2, losses.Squared()), (3, losses.Logistic())])
def test_equal_bits_under_cuts_and_resume(outputs, loss):
    X, Y = table(1100, 5, outputs, loss.margin)
    whole = make(5, outputs, loss, True)
    at_once = whole.learn_rounds(X, Y)
    parts, engine = [], make(5, outputs, loss, True)
    for first, last in itertools.pairwise([0, 1, 2, 17, 40, 256, 257, 431, 1100]):
        parts.append(engine.learn_rounds(X[first:last], np.ascontiguousarray(Y[:, first:last])))
        resumed = make(5, outputs, loss, True)
        resumed.restore(copy.deepcopy(engine.state()))
        engine = resumed
    for k in range(2):
        np.testing.assert_array_equal(np.concatenate([part[k] for part in parts], axis=1), at_once[k])
    np.testing.assert_array_equal(engine.predict(X), whole.predict(X))
    np.testing.assert_array_equal(engine.score(X, Y), whole.score(X, Y))


def test_a_record_is_predicted_as_it_was_before_it_was_learned():
    X, y = friedman(400, 6)
    engine, other = make(), make()
    told = engine.learn_rounds(X, y[None])
    for t in (0, 5, 33, 64, 150, 399):
        other = make()
        other.learn(X[:t], y[None, :t].copy(), np.ones(t))
        assert other.predict(X[t : t + 1])[0, 0] == pytest.approx(told.predictions[0, t], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("unit", [2.0**-100, 1e-30, 1e30])
def test_units_do_not_matter(unit):
    X, y = friedman(500, 7)
    before = make().learn_rounds(X, y[None]).predictions
    np.testing.assert_allclose(make().learn_rounds(X, y[None] * unit).predictions / unit, before, rtol=1e-4, atol=1e-4)
    scales = np.array([unit, 1.0, 1.0 / unit, 1.0, 3.0])
    np.testing.assert_allclose(make().learn_rounds(X * scales, y[None]).predictions, before, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("seed", [8, 10])
def test_wild_records_neither_move_nor_break_it(seed):
    X, y = friedman(3000, seed)
    random, wild_X, wild_y = np.random.default_rng(seed + 1), X.copy(), y.copy()
    wild = random.random(len(y)) < 0.05
    wild_X[wild] *= random.choice([1e300, -1e300, 1e-300, 0.0], (wild.sum(), 5))
    wild_y[wild] = random.choice([1e300, -1e300, 1e5, 1e20], wild.sum())
    engine = make()
    told = engine.learn_rounds(wild_X, wild_y[None])
    assert np.isfinite(told.predictions).all()
    later, slack = np.arange(len(y)) >= 300, np.ptp(y)
    for rows, ranges in ((later & ~wild, 1.0), (later & wild, 9.0)):
        assert (told.predictions[0, rows] > y.min() - ranges * slack).all()
        assert (told.predictions[0, rows] < y.max() + ranges * slack).all()
    plain, _ = mean_errors(X, y, start=1000)
    assert np.abs(told.predictions[0] - y)[1000:][~wild[1000:]].mean() < 1.1 * plain
    assert np.isfinite(engine.predict(np.full((1, 5), 1e308))).all()


def test_a_wild_first_target_is_forgotten():
    X, y = friedman(1500, 10)
    y[0] = 1e12
    predictions = make().learn_rounds(X, y[None]).predictions[0]
    assert np.abs(predictions - y)[1000:].mean() < 1.5


def test_rows_of_weight_0_are_only_predicted():
    X, y = friedman(300, 11)
    Y, weights = y[None], np.ones(300)
    weights[::3] = 0.0
    one, other = make(), make()
    one.learn(X, Y, weights)
    other.learn(X[weights > 0], Y[:, weights > 0].copy(), np.ones(200))
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


def test_copies_learn_apart():
    X, y = friedman(200, 12)
    engine = make()
    engine.learn_rounds(X, y[None])
    twin = copy.deepcopy(engine)
    twin.learn_rounds(X[::-1].copy(), y[None, ::-1].copy())
    assert engine.row_count == 200
    assert twin.row_count == 400


# --- rows that are learned from again ---


def test_trees_start_anew_in_every_pass():
    X, _ = friedman(300, 24, dim=8)
    noise, Xt = np.random.default_rng(25).normal(size=300), X[:150].copy()
    engine, linear = make(8), make_linear(8)
    for _ in range(5):
        engine.begin_pass()
        engine.learn_rounds(Xt, noise[None, :150].copy())
        linear.learn_rounds(Xt, noise[None, :150].copy())
    # There is nothing to learn but noise: trees that see it again and again would be believed.
    error, without = (np.abs(one.predict(X[150:].copy())[0] - noise[150:]).mean() for one in (engine, linear))
    assert error < 1.03 * without
    restored = make(8)
    restored.restore(engine.state())
    np.testing.assert_array_equal(restored.predict(X), engine.predict(X))


def test_rows_are_predicted_by_trees_that_were_grown_without_them():
    ratios = []
    for seed in range(26, 76, 10):
        X, y = friedman(400, seed)
        noise = y + 3.0 * np.random.default_rng(seed + 1).normal(size=400)
        engine = make()
        engine.learn_rounds(X, noise[None])
        new, new_y = friedman(2000, seed + 2)
        new_y += 3.0 * np.random.default_rng(seed + 3).normal(size=2000)
        told = (engine.predict(X), engine.predict_unseen(X, noise[None], np.ones(400)))
        true = np.median(np.abs(engine.predict(new)[0] - new_y))
        ratios.append([np.median(np.abs(one[0] - noise)) / true for one in told])
        np.testing.assert_array_equal(engine.conclude(X, noise[None], np.ones(400)), told[1])
    seen, unseen = np.mean(ratios, axis=0)
    assert seen < 0.7
    assert 0.93 < unseen < 1.08


def test_the_linear_member_is_judged_by_rows_that_it_does_not_know():
    """With 300 rows of 60 features, it is much nearer to the targets that it has learned from than to others."""
    covered, losses_of_labels = [], []
    for seed in range(6):
        random = np.random.default_rng(seed)
        X = random.normal(size=(2300, 60))
        y = 4.0 * np.abs(X[:, 0]) + X[:, 1:6].sum(axis=1) + random.normal(size=2300)
        low, high = RedescendingRegressor().fit(X[:300], y[:300]).predict_interval(X[300:])
        covered.append(np.mean((low <= y[300:]) & (y[300:] <= high)))
        label = y > np.median(y)
        told = label ^ (random.random(2300) < 0.1)
        shares = RedescendingClassifier().fit(X[:300], told[:300]).predict_proba(X[300:])[:, 1]
        losses_of_labels.append(-np.log(np.where(label[300:], shares, 1.0 - shares)).mean())
    assert np.mean(covered) > 0.865  # if it knows them: 0.849
    assert np.mean(losses_of_labels) < 0.58  # if it knows them: 0.638


def test_sizes_of_residuals_around_rows_are_found():
    random = np.random.default_rng(3)
    X = random.random((2000, 3))
    sizes = np.where(X[:, 1] > 0.7, 2.0, -1.0)
    residuals = np.exp(sizes) * random.normal(size=2000)
    residuals[::20] *= 1000.0
    found = make(3).fit_sizes(X, residuals, np.ones(2000))[1]
    apart = np.abs(X[:, 1] - 0.7) > 0.05
    shift = np.median(found - sizes)
    assert np.mean(np.abs(found - shift - sizes)[apart] < 0.7) > 0.9
    assert (make(3).fit_sizes(X, np.zeros(2000), np.ones(2000))[1] == 0.0).all()
    assert np.isfinite(make(3).fit_sizes(X, np.full(2000, np.inf), np.ones(2000))[1]).all()


# --- explanations ---


@pytest.mark.parametrize(("outputs", "loss"), [(1, losses.Squared()), (3, losses.Logistic())])
def test_contributions_add_up_to_the_prediction(outputs, loss, monkeypatch):
    X, Y = table(500, 16, outputs, loss.margin)
    engine = make(5, outputs, loss, True)
    engine.learn_rounds(X, Y)
    parts, far = engine.contributions(X), engine.contributions(X[:3] * 1e6)
    assert parts.shape == (outputs, 500, 6)
    np.testing.assert_allclose(parts.sum(axis=2), engine.predict(X), rtol=1e-6, atol=1e-8)
    # A prediction that is clipped does not change the typical record.
    typical = np.median(parts[:, :, -1], axis=1, keepdims=True)
    np.testing.assert_allclose(far[:, :, -1], np.repeat(typical, 3, axis=1), rtol=0.1)
    # Dozens of classes are predicted once, not once for each of them.
    calls, predict = [], engine.predict_members
    monkeypatch.setattr(engine, "predict_members", lambda X: calls.append(1) or predict(X))
    engine.contributions(X)
    assert calls == [1]


def test_contributions_of_a_linear_engine_add_up():
    X, y = friedman(300, 17)
    engine = make_linear()
    engine.learn_rounds(X, y[None])
    np.testing.assert_allclose(engine.contributions(X).sum(axis=2), engine.predict(X))
