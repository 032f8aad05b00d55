"""The estimators for scikit-learn beyond its own checks."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.utils import shuffle

import redescend as rd
from redescend.errors import DivergenceError
from redescend.sklearn import RedescendingClassifier, RedescendingRegressor
from tests.sklearn_records import HUBER, REGRESSORS, labels, nonzeros, regression, same


def test_outliers_do_not_move_it_and_are_named() -> None:
    X, y, clean = regression(2000)
    for model in (RedescendingRegressor(features="linear"), RedescendingRegressor(features="linear", order=2)):
        model.partial_fit(X, y)
        np.testing.assert_allclose(model.coef_, [1.0, 0.02, 100.0, 0.0], atol=0.05, rtol=0.05)
        scores = model.score_samples(X, y)
        assert scores[clean].min() > scores[~clean].max()
        assert model.inlier_weight_.shape == (2000,)
        assert np.median(model.inlier_weight_[clean]) > 0.5 > 0.01 > np.median(model.inlier_weight_[~clean])


@pytest.mark.parametrize("estimator", REGRESSORS, ids=repr)
def test_a_batch_is_its_rows(estimator: Any) -> None:
    X, y, _ = regression(150)
    weight = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], 150)
    weight[0] = 1.0
    whole, parts, rows = (clone(estimator) for _ in range(3))
    whole.partial_fit(X, y, sample_weight=weight)
    for part in (slice(0, 70), slice(70, 71), slice(71, 150)):
        parts.partial_fit(X[part], y[part], sample_weight=weight[part])
    for i in range(150):
        rows.partial_fit(X[i : i + 1], y[i : i + 1], sample_weight=weight[i : i + 1])
    same(whole, parts)
    same(whole, rows)
    assert whole.t_ == np.count_nonzero(weight)


@pytest.mark.parametrize("estimator", REGRESSORS, ids=repr)
def test_weights_of_one_are_none_and_of_nought_a_no_op(estimator: Any) -> None:
    X, y, _ = regression(120)
    plain = clone(estimator).partial_fit(X, y)
    same(plain, clone(estimator).partial_fit(X, y, sample_weight=np.ones(120)))
    before = pickle.dumps(plain.state()["engine"])
    plain.partial_fit(1e9 * X, y, sample_weight=np.zeros(120))
    assert pickle.dumps(plain.state()["engine"]) == before
    heavy = clone(estimator).partial_fit(X, y, sample_weight=np.full(120, 1e300))
    assert np.isfinite(heavy.coef_).all()


@pytest.mark.parametrize(
    "estimator",
    [
        RedescendingRegressor(features="linear", order=1),
        RedescendingRegressor(features="linear", order=1, alpha=0.01),
        RedescendingRegressor("epsilon_insensitive", order=1, alpha=0.1, fit_intercept=False),
        RedescendingRegressor(transform=HUBER),
        RedescendingRegressor(transform=HUBER, alpha=0.01, step=rd.steps.AdaptiveNorm(0.1), fit_intercept=False),
        RedescendingRegressor(features="linear", order=2),
        RedescendingRegressor(features="linear", order=1, average=10),
    ],
    ids=repr,
)
def test_sparse_is_dense(estimator: Any) -> None:
    """Sums in another order; rounding one feature otherwise changes dense coefficients of the third model by 1e-9."""
    X, y = nonzeros()
    if estimator.standardize is True:
        estimator = clone(estimator).set_params(standardize="scale")
    thin, full, mixed = (clone(estimator) for _ in range(3))
    weights = 0.5 + np.random.default_rng(0).random(len(y))
    thin.partial_fit(X, y, sample_weight=weights)
    full.partial_fit(X.toarray(), y, sample_weight=weights)
    mixed.partial_fit(X[:100], y[:100], sample_weight=weights[:100])
    mixed.partial_fit(X[100:250].toarray(), y[100:250], sample_weight=weights[100:250])
    mixed.partial_fit(X[250:], y[250:], sample_weight=weights[250:])
    scale, error = np.abs(full.coef_).max(), 3e-9 if estimator.loss == "epsilon_insensitive" else 1e-10
    for other in (thin, mixed):
        np.testing.assert_allclose(other.coef_, full.coef_, rtol=0, atol=error * scale)
        np.testing.assert_allclose(other.predict(X), full.predict(X.toarray()), rtol=0, atol=error * np.abs(y).max())
    np.testing.assert_allclose(thin.inlier_weight_, full.inlier_weight_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(thin.score_samples(X, y), full.score_samples(X.toarray(), y), rtol=0, atol=1e-9)
    np.testing.assert_allclose(thin.score_samples(X), full.score_samples(X.toarray()), rtol=1e-10)


def test_sparse_is_what_it_was_when_centred_before() -> None:
    X, y = nonzeros()
    thin = RedescendingRegressor(features="linear").partial_fit(X[:50].toarray(), y[:50]).partial_fit(X[50:], y[50:])
    full = RedescendingRegressor(features="linear").partial_fit(X.toarray(), y)
    same(thin, full)


def test_sparse_labels_of_three_classes() -> None:
    X, y = nonzeros()
    y = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    thin, full = (RedescendingClassifier(alpha=1e-3, order=1) for _ in range(2))
    thin.partial_fit(X, y, classes=[0, 1, 2])
    full.partial_fit(X.toarray(), y, classes=[0, 1, 2])
    np.testing.assert_allclose(thin.predict_proba(X), full.predict_proba(X.toarray()), rtol=0, atol=1e-10)


def test_units_do_not_matter() -> None:
    """Features and targets in other units give the same model in those units, to the rounding of the units."""
    X, y, _ = regression(400)
    for model in (RedescendingRegressor(features="linear"), RedescendingRegressor(transform=rd.transforms.Identity())):
        one = clone(model).partial_fit(X, y)
        other = clone(model).partial_fit(X * 1024.0 - 3e4, y * 4.0)
        np.testing.assert_allclose(other.coef_ * 256.0, one.coef_, rtol=1e-6, atol=1e-6 * np.abs(one.coef_).max())


def test_l2_spares_the_intercept() -> None:
    """With all coefficients pulled to 0 what is left is the level of the targets."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(3000, 2)), 50.0 + random.normal(size=3000)
    for model in (RedescendingRegressor(alpha=100.0), RedescendingRegressor(alpha=100.0, transform=HUBER)):
        model.partial_fit(X, y)
        assert np.abs(model.coef_).max() < 0.1
        assert abs(model.intercept_[0] - 50.0) < 1.0


def test_the_mean_of_the_models() -> None:
    """average= against the mean of models taken after every row."""
    X, y, _ = regression(60)
    for settings in ({}, {"transform": HUBER}, {"order": 2}):
        settings = {"standardize": False, **settings}
        plain, averaged = (
            RedescendingRegressor(features="linear", **settings),
            RedescendingRegressor(features="linear", average=20, **settings),
        )
        played = []
        for i in range(60):
            played.append(np.append(plain.coef_, plain.intercept_) if i else np.zeros(5))
            plain.partial_fit(X[i : i + 1], y[i : i + 1])
        averaged.partial_fit(X, y)
        found = np.append(averaged.coef_, averaged.intercept_)
        np.testing.assert_allclose(found, np.mean(played[20:], axis=0), rtol=1e-9, atol=1e-9)


def test_several_outputs_and_classes_are_as_many_models() -> None:
    X, y, _ = regression()
    Y = np.column_stack([y, -2.0 * y, X[:, 0]])
    together = RedescendingRegressor(features="linear").partial_fit(X, Y)
    assert together.predict(X).shape == Y.shape
    singles = [RedescendingRegressor(features="linear").partial_fit(X, column) for column in Y.T]
    for k, single in enumerate(singles):
        np.testing.assert_array_equal(together.coef_[k], single.coef_)
    np.testing.assert_array_equal(
        together.inlier_weight_, np.min([single.inlier_weight_ for single in singles], axis=0)
    )
    X, y = load_iris(return_X_y=True)
    flowers = RedescendingClassifier(features="linear", loss="hinge").partial_fit(X, y, classes=[0, 1, 2])
    for k in range(3):
        one = RedescendingClassifier(features="linear", loss="hinge").partial_fit(X, y == k, classes=[False, True])
        np.testing.assert_array_equal(flowers.coef_[k], one.coef_[0])
        np.testing.assert_allclose(flowers.decision_function(X)[:, k], one.decision_function(X), rtol=1e-12)


def test_probabilities_of_classes_sum_to_one_and_rank_like_scores() -> None:
    X, y = shuffle(*load_iris(return_X_y=True), random_state=0)
    flowers = RedescendingClassifier().partial_fit(X, y, classes=[0, 1, 2])
    shares = flowers.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(shares.argmax(axis=1), flowers.decision_function(X).argmax(axis=1))
    assert flowers.score(X, y) > 0.9


@pytest.mark.parametrize(
    "model",
    [
        RedescendingRegressor(features="linear"),
        RedescendingRegressor(features="linear", order=2),
        RedescendingClassifier(features="linear"),
    ],
)
def test_no_record_makes_a_model_infinite(model: Any) -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 5)) * 10.0 ** random.integers(-300, 308, (400, 5))
    X[:, 3] = 7.0
    X[::3] = random.normal(size=(134, 5))
    y = random.normal(size=400) * 10.0 ** random.integers(-300, 308, 400)
    if isinstance(model, RedescendingClassifier):
        y = y > 0.0
        model.partial_fit(X, y, classes=[False, True])
    else:
        model.partial_fit(X, y)
    for part in (model.coef_, model.intercept_, model.inlier_weight_, model.score_samples(X, y)):
        assert np.isfinite(part).all()
    assert np.isfinite(model.predict(X)).all()
    clone(model).restore(model.state())


def test_a_fixed_step_that_is_too_long_says_so() -> None:
    X, y, _ = regression(500)
    model = RedescendingRegressor(transform=rd.transforms.Identity(), step=rd.steps.Constant(10.0))
    with pytest.raises(DivergenceError, match=r"Row .* smaller step"):
        model.partial_fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.state()["fitted"]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_where_one_output_would_diverge_none_moves(kind: Any) -> None:
    X, y, _ = regression(50)
    settings = {"transform": rd.transforms.Identity(), "step": rd.steps.Constant(1e-8), "standardize": False}
    model = RedescendingRegressor(**settings).partial_fit(kind(X), np.column_stack([y, y]))
    before = model.coef_
    with pytest.raises(DivergenceError, match="Row 0"):
        model.partial_fit(kind(X[:1]), [[1.0, 9e99]], sample_weight=1e6)
    np.testing.assert_array_equal(model.coef_, before)


@pytest.mark.parametrize("loss", ["squared", "absolute", "pinball"])
@pytest.mark.parametrize("weight", [100.0, 1e300])
def test_a_heavy_row_is_not_passed(loss: str, weight: float) -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 3))
    y = X @ [1.0, 2.0, 3.0] + 4.0 + 0.1 * random.normal(size=500)
    for rows in (X, sparse.csr_array(X)):
        model = RedescendingRegressor(loss, transform=HUBER).fit(rows, y, sample_weight=np.full(500, weight))
        assert model.score(rows, y) > 0.98
    if loss == "squared":
        last = RedescendingRegressor(transform=rd.transforms.Identity()).partial_fit(X, y, sample_weight=weight)
        np.testing.assert_allclose(last.predict(X[-1:]), y[-1:], rtol=1e-9)


def test_wrong_labels_do_not_move_it() -> None:
    X, y, right = labels(4000)
    for model in (RedescendingClassifier(), RedescendingClassifier("hinge")):
        model.partial_fit(X, y, classes=["down", "up"])
        assert model.score(X, right) > 0.98
        scores = model.score_samples(X, y)
        assert np.median(scores[y == right]) > 0.9 > 0.5 > np.median(scores[y != right])
    fitted = RedescendingClassifier().fit(X[:500], y[:500])
    assert (
        fitted.score(X[500:], right[500:])
        > LogisticRegression().fit(X[:500], y[:500]).score(X[500:], right[500:]) - 0.03
    )


def test_without_units_it_is_the_learner_itself() -> None:
    X, y, _ = regression(500)
    plain = {"standardize": False, "fit_intercept": False}
    stream = rd.Stream(X, y)
    for order in (1, 2):
        model = RedescendingRegressor(order=order, alpha=0.01, **plain).partial_fit(X, y)
        learner = rd.SelfTuning(4, loss=rd.losses.Squared(l2=0.01), order=order)
        trace = rd.play(learner, stream)
        np.testing.assert_array_equal(model.coef_, learner.theta)
        np.testing.assert_array_equal(model.inlier_weight_, trace.weights)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    for step in (rd.steps.Constant(0.01), rd.steps.AdaptiveNorm(0.1), rd.steps.Normalised(rd.steps.Anytime(0.1))):
        learner = rd.Robust(4, loss=rd.losses.Squared(l2=0.01), transform=HUBER, step=step)
        rd.play(learner, rd.Stream(Z, y))
        model = RedescendingRegressor(transform=HUBER, step=step, alpha=0.01, **plain).partial_fit(Z, y)
        np.testing.assert_allclose(model.coef_, learner.theta, rtol=1e-10)


def test_units_are_the_median_and_the_quartiles() -> None:
    """At the 22nd row, as at a few before it, units are taken from all rows so far."""
    X, y, _ = regression(22)
    found = RedescendingRegressor(transform=HUBER).partial_fit(X, y).state()["engine"]["units"]
    centre, inverse = found[-2:]
    np.testing.assert_allclose(centre, np.median(X, axis=0), rtol=1e-12)
    low, high = np.quantile(X, [0.25, 0.75], axis=0)
    np.testing.assert_allclose(1.0 / inverse, (high - low) / 1.3489795003921634, rtol=1e-12)


def test_a_heavy_row_is_a_longer_step() -> None:
    X, y, _ = regression(400)
    fixed = RedescendingRegressor(transform=HUBER, step=rd.steps.Constant(0.01))
    double = clone(fixed).partial_fit(X, y, sample_weight=np.full(400, 2.0))
    same(double, clone(fixed).set_params(step=rd.steps.Constant(0.02)).partial_fit(X, y))
    # Of two opinions that are held equally often, the self-tuning learner follows the one of more weight.
    y, opinions = X[:, 0], np.random.default_rng(0).choice([-1.0, 1.0], 400)
    for heavier in (-1.0, 1.0):
        weights = np.where(opinions == heavier, 1.0, 0.1)
        for model in (RedescendingRegressor(order=1), RedescendingRegressor(order=2)):
            model.partial_fit(X, y * opinions, sample_weight=weights)
            assert np.corrcoef(model.predict(X), heavier * y)[0, 1] > 0.9
