"""What scikit-learn estimators say of their rows: probabilities, lists of suspects, intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import redescend as rd
from redescend.belief import ResidualBelief, q_values
from redescend.engines.uncertainty import leave_out_labels, leave_out_numbers
from redescend.errors import DataError
from redescend.sklearn import RedescendingClassifier, RedescendingRegressor
from redescend.state import CORRUPT


def rows(count: int = 1500, share: float = 0.05, seed: int = 0) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(count, 3))
    y = X @ [1.0, 2.0, 3.0] + 4.0 + random.standard_t(5, size=count)
    clean = random.random(count) >= share
    y[~clean] += 40.0 * random.normal(size=np.count_nonzero(~clean))
    return X, y, clean


def test_suspects_are_mostly_wrong_and_intervals_cover_clean_targets() -> None:
    X, y, clean = rows()
    fresh, targets, right = rows(seed=1)
    for model in (RedescendingRegressor().fit(X, y), RedescendingRegressor().partial_fit(X, y)):
        suspects = model.suspects_
        assert np.mean(clean[suspects]) < 0.15
        assert np.count_nonzero(~clean[suspects]) > 0.6 * np.count_nonzero(~clean)
        np.testing.assert_array_equal(model.suspects(fdr=0.1), suspects)
        assert len(model.suspects(fdr=0.3)) >= len(suspects)
        np.testing.assert_array_equal(model.q_value_, q_values(model.clean_probability_))
        assert (model.q_value_[suspects] <= 0.1).all()
        low, high = model.predict_interval(fresh, level=0.9)
        assert abs(np.mean((low <= targets) & (targets <= high), where=right) - 0.9) < 0.03
        wide = model.predict_interval(fresh, level=0.99)
        assert ((wide[0] < low) & (high < wide[1])).all()


@pytest.mark.parametrize("features", ["linear", "auto"])
def test_a_stuck_sensor_is_found(features: str) -> None:
    X, y, _ = rows(800, share=0.0)
    y[400:450] = y[399]
    assert set(range(400, 450)) <= set(RedescendingRegressor(features=features).fit(X, y).suspects_)


def test_a_run_of_equal_targets_that_is_predicted_is_no_stuck_sensor() -> None:
    X, _, _ = rows(800)
    X[400:450, 0] = X[399, 0]
    assert len(RedescendingRegressor().fit(X, 2.0 * X[:, 0]).suspects_) == 0


def test_passes_and_standardization_do_not_change_what_a_probability_means() -> None:
    X, y, clean = rows(600)
    found = []
    for settings in ({"max_iter": 2}, {"max_iter": 20}, {"max_iter": 20, "standardize": False}):
        model = RedescendingRegressor(features="linear", **settings).fit(X, y)
        assert model._beliefs.state()["beliefs"][0]["shared"][0] == 600
        found.append(model.clean_probability_)
        assert abs(found[-1].mean() - clean.mean()) < 0.03
    assert np.quantile(np.abs(found[0] - found[1]), 0.995) < 0.05
    np.testing.assert_allclose(found[0], found[1], atol=0.1)
    np.testing.assert_array_equal(found[1], found[2])


def test_rows_one_by_one_are_judged_as_by_a_belief_of_their_predictions() -> None:
    X, y, _ = rows(400)
    # An estimator knows its intercept from the first record on, a learner does not.
    settings: Any = {"features": "linear", "fit_intercept": False}
    batch, single = RedescendingRegressor(**settings).partial_fit(X, y), RedescendingRegressor(**settings)
    learner, belief = rd.SelfTuning(3, loss=rd.losses.Squared()), ResidualBelief(3)
    trace = rd.play(learner, rd.Stream(X, y))
    for row in range(400):
        single.partial_fit(X[row : row + 1], y[row : row + 1])
    np.testing.assert_array_equal(batch.score_samples(X, y), single.score_samples(X, y))
    judgements = belief.update(trace.predictions, y, X)
    expected = belief.judge_log(trace.predictions, y, judgements).clean_probability
    np.testing.assert_allclose(batch.clean_probability_, expected, rtol=1e-9)
    assert single.clean_probability_.shape == (1,)
    assert ((batch.score_samples(X, y) > 0.0) & (batch.score_samples(X, y) < 1.0)).all()


def test_a_row_that_is_left_out_is_predicted_as_by_a_fit_without_it() -> None:
    X, y, _ = rows(40, share=0.0)
    table = np.column_stack([X, np.ones(40)])
    predictions = table @ np.linalg.lstsq(table, y, rcond=None)[0]
    found = leave_out_numbers(X, y[None], predictions[None], np.ones((1, 40)))[0]
    for row in range(40):
        others = np.arange(40) != row
        assert found[row] == pytest.approx(table[row] @ np.linalg.lstsq(table[others], y[others], rcond=None)[0])


def test_logits_are_those_of_a_model_without_the_row_and_shorter_where_it_is_uncertain() -> None:
    X, y, _ = rows(60, share=0.0)
    y = np.where(y > 4.0, 1.0, -1.0)
    mean, spread = X.mean(axis=0), X.std(axis=0)
    table = np.column_stack([(X - mean) / spread, np.ones(60)])

    def curvature(theta: Any, used: Any) -> Any:
        p = 1.0 / (1.0 + np.exp(-table @ theta))
        return (table * (used * p * (1.0 - p))[:, None]).T @ table + np.eye(4)

    def newton(used: Any, theta: Any) -> Any:
        gradient = table.T @ (used * (0.5 * (y + 1.0) - 1.0 / (1.0 + np.exp(-table @ theta)))) - theta
        return theta + np.linalg.solve(curvature(theta, used), gradient)

    theta, everything = np.zeros(4), np.ones(60)
    for _ in range(30):
        theta = newton(everything, theta)
    found, uncertainty = leave_out_labels(X, y[None], (table @ theta)[None], everything[None])
    assert uncertainty is not None
    squares = (table[:, :3] ** 2).mean(axis=1)
    long = np.maximum(squares / (4.0 * np.median(squares)), 1.0)
    for row in range(60):
        others = (np.arange(60) != row).astype(float)
        inverse = np.linalg.inv(curvature(theta, others))
        length = 1.0 / np.sqrt((1.0 + np.pi / 8.0 * table[row] @ inverse @ table[row]) * long[row])
        assert found[0, row] == pytest.approx(table[row] @ newton(others, theta) * length, rel=1e-6, abs=1e-6)
    full = np.linalg.inv(curvature(theta, everything))
    lengths = 1.0 / np.sqrt((1.0 + np.pi / 8.0 * np.einsum("ij,jk,ik->i", table, full, table)) * long)
    np.testing.assert_allclose(uncertainty.shrink(X, np.ones((1, 60)))[0], lengths)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_several_outputs_and_rows_of_no_weight(kind: Any) -> None:
    X, y, _ = rows(300)
    weights = np.ones(300)
    weights[:10] = 0.0
    model = RedescendingRegressor(order=1).fit(kind(X), np.column_stack([y, -y]), sample_weight=weights)
    low, high = model.predict_interval(kind(X))
    assert low.shape == high.shape == (300, 2)
    assert np.isnan(model.clean_probability_[:10]).all()
    assert not np.isnan(model.q_value_[10:]).any()
    assert not np.isin(model.suspects(fdr=0.5), np.arange(10)).any()


def test_probabilities_of_classes_are_calibrated_under_flips_and_flipped_labels_are_found() -> None:
    random = np.random.default_rng(2)
    X = random.normal(size=(3000, 2))
    truth = random.random(3000) < 1.0 / (1.0 + np.exp(-6.0 * X @ [1.0, 1.0]))
    flipped = random.random(3000) < 0.15
    model = RedescendingClassifier().fit(X, truth ^ flipped)
    share = model.predict_proba(X)[:, 1]
    for low, high in ((0.02, 0.3), (0.3, 0.7), (0.7, 0.98)):
        here = (share > low) & (share < high)
        assert abs(share[here].mean() - truth[here].mean()) < 0.08
    suspects = model.suspects_
    assert np.mean(~flipped[suspects]) < 0.15
    assert len(suspects) > 0.5 * np.count_nonzero(flipped)
    np.testing.assert_array_equal(model.classes_[model.predict_proba(X).argmax(axis=1)], model.predict(X))


@pytest.mark.parametrize("model", [RedescendingRegressor(features="linear"), RedescendingClassifier(features="linear")])
def test_a_state_keeps_the_verdict_and_the_belief(model: Any) -> None:
    X, y, _ = rows(300)
    y = y if isinstance(model, RedescendingRegressor) else y > 4.0
    model.fit(X, y)
    other = type(model)()
    other.restore(model.state())
    np.testing.assert_array_equal(other.clean_probability_, model.clean_probability_)
    np.testing.assert_array_equal(other.score_samples(X, y), model.score_samples(X, y))
    for one in (model, other):
        one.partial_fit(X[:50], y[:50])
    np.testing.assert_array_equal(other.clean_probability_, model.clean_probability_)
    state = model.state()
    state["beliefs"]["clean_log_odds"][0] = np.inf
    with pytest.raises(DataError, match=CORRUPT):
        other.restore(state)
    if isinstance(model, RedescendingClassifier):
        state = model.state()
        state["beliefs"]["uncertainty"]["covariance"][0, 1] += 1.0
        with pytest.raises(DataError, match=CORRUPT):
            other.restore(state)
    del state["beliefs"]
    with pytest.raises(DataError, match=CORRUPT):
        other.restore(state)


def test_a_fixed_transform_has_weights_only() -> None:
    X, y, _ = rows(200)
    model = RedescendingRegressor(transform=rd.transforms.Huber(1.0)).fit(X, y)
    assert model.score_samples(X, y).min() >= 0.0
    assert not hasattr(model, "clean_probability_")
    with pytest.raises(AttributeError, match="see inlier_weight_"):
        model.suspects()
    with pytest.raises(DataError, match="without a fixed transform"):
        model.predict_interval(X)
    with pytest.raises(AttributeError, match="not fitted"):
        RedescendingRegressor().suspects()


@pytest.mark.parametrize("features", ["linear", "auto"])
@pytest.mark.parametrize("place", ["a group", "a range"])
def test_errors_confined_to_some_records_are_found(features: str, place: str) -> None:
    """A broken sensor is one of several: that features tell where errors are does not make them right."""
    random = np.random.default_rng(1)
    group, x = random.integers(0, 10, 2000), random.normal(size=(2000, 4))
    truth = 20.0 + x @ [3.0, -2.0, 1.0, 0.5] + 0.5 * group + random.normal(size=2000)
    there = group == 3 if place == "a group" else x[:, 0] > 1.3
    wrong = there & (random.random(2000) < 40 / there.sum())
    model = RedescendingRegressor(features=features)
    model.fit(np.column_stack([x, np.eye(10)[group]]), np.where(wrong, 10.0 * truth, truth))
    assert set(model.suspects_) == set(np.flatnonzero(wrong))


@pytest.mark.parametrize("features", ["linear", "auto"])
def test_intervals_cover_new_targets_with_heavy_tails(features: str) -> None:
    covered = []
    for seed in (8, 9, 10):
        random = np.random.default_rng(seed)
        X = random.normal(size=(3000, 3))
        y = X @ [1.0, 2.0, 0.0] + random.normal(size=3000) * np.exp(2.0 * random.normal(size=3000))
        model, new, targets = RedescendingRegressor(features=features).fit(X[:1200], y[:1200]), X[1200:], y[1200:]
        ends = [model.predict_interval(new, level) for level in (0.5, 0.9)]
        covered.append([np.mean((low <= targets) & (targets <= high)) for low, high in ends])
    np.testing.assert_allclose(np.mean(covered, axis=0), [0.5, 0.9], atol=0.02)
