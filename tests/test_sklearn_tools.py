"""The estimators among other tools: frames, pipelines, searches, states; and what they refuse."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import redescend as rd
from redescend.errors import DataError, ParameterError
from redescend.sklearn import MedianScaler, RedescendingClassifier, RedescendingRegressor
from tests.sklearn_records import HUBER, REGRESSORS, labels, nonzeros, regression, same


def test_single_precision_stays() -> None:
    X, y, _ = regression()
    for model in (RedescendingRegressor(), RedescendingRegressor(transform=HUBER)):
        single = clone(model).partial_fit(X.astype(np.float32), y)
        assert single.coef_.dtype == single.intercept_.dtype == single.predict(X.astype(np.float32)).dtype == np.float32
        double = clone(model).partial_fit(X.astype(np.float32).astype(float), y)
        np.testing.assert_allclose(single.coef_, double.coef_, rtol=1e-6)
    X, y, _ = labels(100)
    model = RedescendingClassifier().fit(X.astype(np.float32), y)
    assert model.predict_proba(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("estimator", [*REGRESSORS, RedescendingClassifier(), RedescendingClassifier("hinge", order=2)])
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
    state = RedescendingRegressor().partial_fit(X, y).state()
    with pytest.raises(DataError, match="shape"):
        RedescendingRegressor(order=2).restore(state)
    with pytest.raises(DataError, match="standardize"):
        RedescendingRegressor(standardize=False).restore(state)
    with pytest.raises(DataError, match="must be a dict"):
        RedescendingRegressor().restore({"engine": 1})
    del state["engine"]["units"]
    with pytest.raises(DataError, match="units"):
        RedescendingRegressor().restore(state)
    fresh = RedescendingRegressor()
    fresh.restore(RedescendingRegressor().state())
    assert not hasattr(fresh, "coef_")


def test_a_batch_with_nan_teaches_nothing() -> None:
    X, y, _ = regression(1200)
    broken = X.copy()
    broken[1100, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        RedescendingRegressor().partial_fit(broken, y)
    model, other = (RedescendingRegressor().partial_fit(X[:10], y[:10]) for _ in range(2))
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
        ({"fit_intercept": "no"}, "'fit_intercept' .* True or False"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        RedescendingRegressor(**settings).fit([[0.0], [1.0]], [0.0, 1.0])


def test_bad_targets_are_named() -> None:
    X, y, _ = labels(20)
    with pytest.raises(DataError, match="all classes"):
        RedescendingClassifier().partial_fit(X, y)
    model = RedescendingClassifier().partial_fit(X, y, classes=["down", "up"])
    with pytest.raises(DataError, match=r"no other classes than .*left"):
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
    search = GridSearchCV(make_pipeline(MedianScaler(), RedescendingRegressor()), grid, cv=2).fit(X[clean], y[clean])
    assert search.best_score_ > 0.95
    assert cross_val_score(RedescendingClassifier(), X, np.arange(200) % 3, cv=2).shape == (2,)
    with config_context(enable_metadata_routing=True):
        model = make_pipeline(MedianScaler(), RedescendingRegressor().set_fit_request(sample_weight=True))
        model.fit(X, y, sample_weight=clean.astype(float))
    direct = RedescendingRegressor().fit(MedianScaler().fit_transform(X), y, sample_weight=clean.astype(float))
    np.testing.assert_array_equal(model[-1].coef_, direct.coef_)


def test_frames_and_their_names() -> None:
    X, y, _ = regression(100)
    names = ["a", "b", "c", "d"]
    plain = RedescendingRegressor().partial_fit(X, y)
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        model = RedescendingRegressor().partial_fit(frame, y)
        assert list(model.feature_names_in_) == names
        same(model, plain)
        np.testing.assert_allclose(model.predict(frame), plain.predict(X), rtol=1e-12)
        with pytest.warns(UserWarning, match="feature names"):
            model.partial_fit(X, y)
    scaler = MedianScaler().set_output(transform="polars").fit(pl.DataFrame(X, schema=names))
    assert scaler.transform(pl.DataFrame(X, schema=names)).columns == names == list(scaler.get_feature_names_out())


def test_warm_starts_and_passes() -> None:
    X, y, _ = regression(100)
    cold = RedescendingRegressor(max_iter=3, random_state=1)
    once, twice = clone(cold).fit(X, y), clone(cold).fit(X, y).fit(X, y)
    same(once, twice)
    assert once.t_ == 300
    assert clone(cold).set_params(warm_start=True).fit(X, y).fit(X, y).t_ == 600
    one_pass = RedescendingRegressor(max_iter=1, shuffle=False).fit(X, y)
    same(one_pass, RedescendingRegressor().partial_fit(X, y))
    np.testing.assert_array_equal(one_pass.inlier_weight_, RedescendingRegressor().partial_fit(X, y).inlier_weight_)


def test_without_scikit_learn_the_extra_is_named() -> None:
    code = "import sys; sys.modules['sklearn'] = None; import redescend; import redescend.sklearn"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(
        "redescend.sklearn needs scikit-learn; install it with: pip install 'redescend[sklearn]'"
    )
