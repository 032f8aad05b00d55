"""The estimators among other tools: frames, pipelines, searches, states; and what they refuse."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import redescend as rd
from redescend.errors import DataError, ParameterError
from redescend.sklearn import MedianScaler, RedescendingClassifier, RedescendingRegressor
from tests.refusals import alter
from tests.sklearn_records import HUBER, REGRESSORS, labels, nonzeros, regression, same


def test_single_precision_stays() -> None:
    X, y, _ = regression()
    for model in (RedescendingRegressor(features="linear"), RedescendingRegressor(transform=HUBER)):
        single = clone(model).partial_fit(X.astype(np.float32), y)
        assert single.coef_.dtype == single.intercept_.dtype == single.predict(X.astype(np.float32)).dtype == np.float32
        double = clone(model).partial_fit(X.astype(np.float32).astype(float), y)
        np.testing.assert_allclose(single.coef_, double.coef_, rtol=1e-6)
    X, y, _ = labels(100)
    model = RedescendingClassifier(features="linear").fit(X.astype(np.float32), y)
    assert model.predict_proba(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize(
    "estimator", [*REGRESSORS, RedescendingClassifier(features="linear"), RedescendingClassifier("hinge", order=2)]
)
def test_a_state_goes_on_to_the_last_bit(estimator: Any) -> None:
    X, y, _ = regression(200)
    names = ["a", "b", "c", "d"]
    if isinstance(estimator, RedescendingClassifier):
        y = np.where(y > 5.0, "high", "low")
    first = {"classes": ["high", "low"]} if isinstance(estimator, RedescendingClassifier) else {}
    table = pd.DataFrame(X, columns=names)
    model = clone(estimator).partial_fit(table[:120], y[:120], **first)
    other = clone(estimator)
    other.restore(model.state())
    np.testing.assert_array_equal(other.inlier_weight_, model.inlier_weight_)
    assert list(other.feature_names_in_) == names
    same(model.partial_fit(table[120:], y[120:]), other.partial_fit(table[120:], y[120:]))
    np.testing.assert_array_equal(model.predict(table), other.predict(table))


def test_a_sparse_state_goes_on_to_the_last_bit() -> None:
    X, y = nonzeros()
    for model in (RedescendingRegressor(alpha=0.01), RedescendingRegressor(alpha=0.01, transform=HUBER)):
        model.partial_fit(X[:200], y[:200])
        other = clone(model)
        other.restore(model.state())
        same(model.partial_fit(X[200:], y[200:]), other.partial_fit(X[200:], y[200:]))


def test_states_that_do_not_fit_are_refused() -> None:
    X, y, _ = regression(50)
    model = RedescendingRegressor(features="linear").partial_fit(pd.DataFrame(X, columns=list("abcd")), y)
    fixed = RedescendingRegressor(transform=rd.transforms.Huber(1.0)).partial_fit(X, y)
    texts = RedescendingClassifier(features="linear").partial_fit(X, y > 13.0, classes=[False, True])
    scaler = MedianScaler().fit(X)
    bad = [
        (model, ["engine"], None, "cannot be read"),
        (model, ["engine", "order"], None, "the order None"),
        (model, ["engine", "order"], 1, "states of shape"),
        (model, ["engine", "sparse"], 1, "sparse"),
        (model, ["engine", "dim"], 60_000, "states of shape|the order"),
        (model, ["engine", "dim"], True, "True features"),
        (model, ["engine", "states"], None, "states"),
        (model, ["made_with", "order"], 1, "the order 2"),
        (model, ["made_with", "average"], 3, "means"),
        (fixed, ["engine", "units"], None, "units"),
        (fixed, ["engine", "standard"], 0, "standardize"),
        (fixed, ["engine", "dim"], 60_000, "too small for 60000 features"),
        (fixed, ["engine", "clock"], [np.nan, 0.0], "clock"),
        (fixed, ["engine", "clock"], [50.0, 3.0], "another 'average'"),
        (
            model,
            ["made_with", "loss"],
            {"class": "redescend.OGD", "settings": {"dim": 10**12}},
            "too short|should not have",
        ),
        (model, ["made_with", "loss"], "hinge", "'loss'"),
        (model, ["columns"], None, "dimensions"),
        (model, ["columns"], 7, "dimensions"),
        (model, ["precision"], "float16", "precision"),
        (model, ["inlier_weight"], [2.0], "inlier_weight"),
        (model, ["passes"], "many", "passes"),
        (model, ["feature_names"], ["a"], "4 strings"),
        (texts, ["classes"], [0, 1, 2], "3 classes"),
        (texts, ["classes"], [1, 0], "sorted"),
        (texts, ["class_type"], "<V999999999", "classes of type"),
        (texts, ["class_type"], None, "cannot be read"),
        (scaler, ["dim"], None, "dim"),
        (scaler, ["dim"], 10**12, "shape"),
        (scaler, ["quantiles"], 3, "cannot be read"),
        (scaler, ["scale"], [0.0] * 4, "a scale that is zero"),
        (scaler, ["center"], [np.inf] * 4, "a center that is"),
    ]
    for one, path, value, says in bad:
        before = one.state()
        with pytest.raises(DataError, match=says):
            one.restore(alter(before, *path, value=value))
        assert pickle.dumps(one.state()) == pickle.dumps(before)
        with pytest.raises(DataError, match="must be a dict"):
            one.restore({"engine": 1})


def test_a_state_takes_the_place_of_all_that_was_there() -> None:
    X, y, _ = regression(50)
    named = pd.DataFrame(X, columns=list("abcd"))
    regressor, other = RedescendingRegressor().fit(named, y), RedescendingRegressor().partial_fit(X, y)
    regressor.restore(other.state())
    assert regressor.__dict__.keys() == other.__dict__.keys()
    classifier = RedescendingClassifier().fit(named, y > 13.0)
    for model in (regressor, classifier, MedianScaler().fit(named)):
        model.restore(clone(model).state())
        assert model.__dict__.keys() == clone(model).__dict__.keys()


def test_settings_changed_after_fitting_hold_from_the_next_model_on() -> None:
    X, y, _ = regression(100)
    for changed in ({"order": 2}, {"alpha": 0.5}, {"loss": "absolute"}, {"transform": HUBER}, {"max_iter": 0}):
        model, other = (
            RedescendingRegressor(alpha=np.float64(0.1), average=np.True_).fit(X[:50], y[:50]) for _ in range(2)
        )
        model.set_params(**changed)
        again = clone(model)
        again.restore(model.state())
        for one in (again, other):
            one.partial_fit(X[50:], y[50:])
        same(again, other)
    scaler = MedianScaler().fit(X).set_params(size=16)
    again = clone(scaler)
    again.restore(scaler.state())
    np.testing.assert_array_equal(again.partial_fit(X).center_, scaler.partial_fit(X).center_)


def test_a_batch_of_no_weight_teaches_nothing() -> None:
    X, y, _ = regression(20)
    for weight in (np.zeros(20), [0.0] * 20, 0.0):
        model = RedescendingRegressor(features="linear").partial_fit(X, y, sample_weight=weight)
        with pytest.raises(AttributeError, match="is not fitted yet"):
            _ = model.coef_
        same(model.partial_fit(X, y), RedescendingRegressor(features="linear").partial_fit(X, y))
        before = pickle.dumps(model.state())
        assert pickle.dumps(model.partial_fit(X, y, sample_weight=weight).state()) == before
        with pytest.raises(DataError, match="zero"):
            model.fit(X, y, sample_weight=weight)
        first = {"classes": [False, True], "sample_weight": weight}
        assert not hasattr(RedescendingClassifier(features="linear").partial_fit(X, y > 5.0, **first), "coef_")
    for wrong in (np.ones(3), np.ones((20, 1)), -1.0, [np.nan] * 20, "heavy"):
        with pytest.raises(DataError, match="sample_weight must be"):
            RedescendingRegressor(features="linear").partial_fit(X, y, sample_weight=wrong)


def test_single_precision_is_judged_in_double_and_never_overflows() -> None:
    X, y, _ = regression(200)
    single = X.astype(np.float32)
    y = y + 1e6
    for rows in (single, sparse.csr_array(single)):
        model = RedescendingRegressor(features="linear").partial_fit(rows, y)
        double = RedescendingRegressor(features="linear").partial_fit(rows.astype(np.float64), y)
        np.testing.assert_array_equal(model.score_samples(rows, y), double.score_samples(rows.astype(float), y))
        np.testing.assert_array_equal(model.score_samples(rows), double.score_samples(rows.astype(float)))
    huge = RedescendingRegressor(features="linear").partial_fit(single, y * 1e60)
    assert np.isfinite(huge.coef_).all()
    assert np.isfinite(huge.predict(single)).all()


def test_odd_rows_have_scores() -> None:
    X, y = nonzeros()
    plain = RedescendingRegressor(fit_intercept=False).partial_fit(X, y)
    rows = sparse.csr_array(np.stack([np.zeros(30), np.full(30, 1e200), np.full(30, -1.7e308)]))
    np.testing.assert_allclose(plain.score_samples(rows), [1.0, 0.0, 0.0], atol=1e-40)
    centred = RedescendingRegressor().partial_fit(X.toarray(), y)
    np.testing.assert_allclose(centred.score_samples(rows)[1:], [0.0, 0.0], atol=1e-40)
    np.testing.assert_allclose(centred.score_samples(rows.toarray())[1:], [0.0, 0.0], atol=1e-40)


def test_a_batch_with_nan_teaches_nothing() -> None:
    X, y, _ = regression(1200)
    broken = X.copy()
    broken[1100, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        RedescendingRegressor(features="linear").partial_fit(broken, y)
    model, other = (RedescendingRegressor(features="linear").partial_fit(X[:10], y[:10]) for _ in range(2))
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(broken, y)
    same(model.partial_fit(X, y), other.partial_fit(X, y))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"loss": "hinge"}, "'loss' parameter of RedescendingRegressor must be one of 'squared'"),
        ({"loss": rd.losses.Logistic()}, "'loss'"),
        ({"order": 3}, "'order' .* 1 or 2. Got 3"),
        ({"order": 2, "transform": HUBER}, "'order'"),
        ({"alpha": -1.0}, "'alpha' .* Got -1.0"),
        ({"transform": "huber"}, "'transform' .* such as Huber"),
        ({"step": rd.steps.Anytime()}, "'step' .* unless a transform is given"),
        ({"step": 0.1, "transform": HUBER}, "'step' .* such as Constant"),
        ({"standardize": "yes"}, "'standardize' .* True, False or 'scale'"),
        ({"average": -1}, "'average'"),
        ({"max_iter": 0}, "'max_iter'"),
        ({"shuffle": 1}, "'shuffle'"),
        ({"fit_intercept": "no"}, "'fit_intercept' .* True or False"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        RedescendingRegressor(**settings).fit([[0.0], [1.0]], [0.0, 1.0])


def test_a_warm_start_checks_its_passes() -> None:
    X, y, _ = regression(20)
    model = RedescendingRegressor(warm_start=True).fit(X, y).set_params(max_iter=0)
    with pytest.raises(ParameterError, match="'max_iter'"):
        model.fit(X, y)


def test_bad_targets_are_named() -> None:
    X, y, _ = labels(20)
    with pytest.raises(DataError, match="all classes"):
        RedescendingClassifier().partial_fit(X, y)
    model = RedescendingClassifier().partial_fit(X, y, classes=["down", "up"])
    with pytest.raises(DataError, match=r"must be one of .*left"):
        model.partial_fit(X, np.full(20, "left"))
    with pytest.raises(DataError, match="as in the first call"):
        model.partial_fit(X, y, classes=["a", "b"])
    assert hasattr(RedescendingClassifier(), "predict_proba")
    assert not hasattr(RedescendingClassifier("hinge"), "predict_proba")
    two = RedescendingRegressor().partial_fit(X, X[:, :2])
    with pytest.raises(DataError, match="2 columns"):
        two.partial_fit(X, X[:, 0])


def test_it_works_with_the_tools() -> None:
    X, y, clean = regression(200)
    grid = {"redescendingregressor__transform": [None, HUBER], "redescendingregressor__alpha": [0.0, 0.1]}
    search = GridSearchCV(make_pipeline(MedianScaler(), RedescendingRegressor(features="linear")), grid, cv=2).fit(
        X[clean], y[clean]
    )
    assert search.best_score_ > 0.95
    assert cross_val_score(RedescendingClassifier(features="linear"), X, np.arange(200) % 3, cv=2).shape == (2,)
    with config_context(enable_metadata_routing=True):
        model = make_pipeline(
            MedianScaler(), RedescendingRegressor(features="linear").set_fit_request(sample_weight=True)
        )
        model.fit(X, y, sample_weight=clean.astype(float))
    direct = RedescendingRegressor(features="linear").fit(
        MedianScaler().fit_transform(X), y, sample_weight=clean.astype(float)
    )
    np.testing.assert_array_equal(model[-1].coef_, direct.coef_)


def test_frames_and_their_names() -> None:
    X, y, _ = regression(100)
    names = ["a", "b", "c", "d"]
    plain = RedescendingRegressor(features="linear").partial_fit(X, y)
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        model = RedescendingRegressor(features="linear").partial_fit(frame, y)
        assert list(model.feature_names_in_) == names
        same(model, plain)
        np.testing.assert_allclose(model.predict(frame), plain.predict(X), rtol=1e-12)
        with pytest.warns(UserWarning, match="feature names"):
            model.partial_fit(X, y)
    scaler = MedianScaler().set_output(transform="polars").fit(pl.DataFrame(X, schema=names))
    assert scaler.transform(pl.DataFrame(X, schema=names)).columns == names == list(scaler.get_feature_names_out())


def test_warm_starts_and_passes() -> None:
    X, y, _ = regression(100)
    cold = RedescendingRegressor(features="linear", max_iter=3, random_state=1)
    once, twice = clone(cold).fit(X, y), clone(cold).fit(X, y).fit(X, y)
    same(once, twice)
    assert once.t_ == 300
    assert clone(cold).set_params(warm_start=True).fit(X, y).fit(X, y).t_ == 600
    one_pass = RedescendingRegressor(features="linear", max_iter=1, shuffle=False).fit(X, y)
    same(one_pass, RedescendingRegressor(features="linear").partial_fit(X, y))
    np.testing.assert_array_equal(
        one_pass.inlier_weight_, RedescendingRegressor(features="linear").partial_fit(X, y).inlier_weight_
    )
