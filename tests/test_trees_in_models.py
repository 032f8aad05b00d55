"""Models with trees as users have them: streams, estimators, saved files, and what cannot be had with trees."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

import redescend as rd
from redescend import losses, transforms
from redescend.engines import ModelConfig, NonlinearEngine
from redescend.errors import ParameterError
from redescend.sklearn import RedescendingClassifier, RedescendingRegressor
from redescend.streaming.importance import rank_features
from redescend.streaming.report.describe import describe
from tests.test_nonlinear import friedman


def test_the_columns_that_matter_are_found_and_described():
    X, y = friedman(3000, 18, dim=8)
    names = [f"x{j}" for j in range(8)]
    text = np.where(X[:, 7] > 0.5, "b", "a")
    data = pa.table(dict(zip(names, X.T, strict=True)) | {"kind": text, "y": y})
    model, run = rd.fit_stream(data, "y", linear=False)
    run.run()
    ranked = rank_features(model)
    assert {one.column for one in ranked[:5]} == {"x0", "x1", "x2", "x3", "x4"}
    assert {one.column: one.direction for one in ranked}["x3"] == "more: higher"
    assert sum(one.share for one in ranked) == pytest.approx(1.0)
    facts = describe(model)
    assert "with trees" in facts["Method"]
    assert "stack" in facts["Weights of members"]
    with pytest.raises(AttributeError, match="features='linear'"):
        model.coefficients()


# --- what users see ---


def test_stream_models_with_trees_can_be_saved_and_continue(tmp_path):
    X, y = friedman(900, 19)
    data = pa.table({f"x{j}": X[:, j] for j in range(5)} | {"y": y})
    whole, run = rd.fit_stream(data, "y", linear=False)
    run.run()
    rd.save(whole, tmp_path / "model")
    loaded = rd.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(data), whole.predict(data))
    assert loaded.config.features == "auto"
    low, high = loaded.predict_interval(data)
    assert 0.8 < np.mean((low < y) & (y < high)) <= 1.0
    linear, run = rd.fit_stream(data, "y", linear=True)
    run.run()
    assert np.mean((loaded.predict(data) - y) ** 2) < 0.5 * np.mean((linear.predict(data) - y) ** 2)


def test_a_run_resumes_only_with_the_same_features(tmp_path):
    X, y = friedman(300, 20)
    data = pa.table({"x": X[:, 0], "z": X[:, 1], "y": y})
    _, run = rd.fit_stream(data, "y", linear=False, checkpoint=tmp_path / "run")
    run.run()
    with pytest.raises(ParameterError, match="linear = False"):
        rd.fit_stream(data, "y", linear=True, checkpoint=tmp_path / "run", resume=True)


@pytest.mark.parametrize(
    ("settings", "obstacle"),
    [
        ({"by": "key"}, "one model per key"),
        ({"loss": losses.Absolute()}, "the loss Absolute"),
        ({"loss": losses.Squared(l2=0.1)}, "an l2 penalty"),
        ({"transform": transforms.Huber(1.0)}, "a transform"),
    ],
)
def test_streams_refuse_trees_that_they_cannot_have(settings, obstacle):
    X, y = friedman(100, 21)
    data = pa.table({"key": np.where(X[:, 4] > 0.5, "a", "b"), "x": X[:, 0], "y": y})
    with pytest.raises(ParameterError, match=f"Trees .* cannot be combined with {obstacle}"):
        rd.fit_stream(data, "y", linear=False, **settings)
    store, run = rd.fit_stream(data, "y", linear=True, **settings)
    run.run()
    assert store.records == 100


def test_streams_refuse_trees_on_too_many_features():
    X, y = np.random.default_rng(0).normal(size=(2, 50))
    data = pa.table({f"x{j}": X for j in range(501)} | {"y": y})  # and one for missing values
    with pytest.raises(ParameterError, match="502 encoded features, more than 500"):
        rd.fit_stream(data, "y", linear=False)


@pytest.mark.parametrize("settings", [{"alpha": 0.1}, {"average": True}, {"fit_intercept": False}])
@pytest.mark.parametrize("kind", [np.array, csr_array])
def test_estimators_are_linear_where_there_can_be_no_trees(settings, kind):
    X, y = friedman(50, 30)
    auto, linear = (RedescendingRegressor(**settings, **told).fit(kind(X), y) for told in ({}, {"features": "linear"}))
    np.testing.assert_array_equal(auto.coef_, linear.coef_)
    assert RedescendingRegressor().fit(csr_array(X), y).coef_.shape == (5,)


@pytest.mark.parametrize("settings", [{}, {"by": "shop"}, {"transform": rd.transforms.Huber(1.0)}])
def test_streams_have_trees_where_they_can(settings):
    X, y = friedman(60, 31)
    data = pa.table({"x": X[:, 0], "shop": np.arange(60) % 2, "y": y})
    assert rd.fit_stream(data, "y", **settings)[0].get_params()["features"] == ("linear" if settings else "auto")
    assert rd.fit_stream(data, "y", linear=True, **settings)[0].get_params()["features"] == "linear"
    if settings:
        with pytest.raises(ParameterError, match="cannot be combined"):
            rd.fit_stream(data, "y", linear=False, **settings)


def test_estimators():
    X, y = friedman(1500, 22)
    model = RedescendingRegressor(features="auto").fit(X[:1000], y[:1000])
    linear = RedescendingRegressor(features="linear").fit(X[:1000], y[:1000])
    assert model.n_iter_ == 2
    assert model.score(X[1000:], y[1000:]) > 0.88 > linear.score(X[1000:], y[1000:]) + 0.05
    assert not hasattr(model, "coef_")
    with pytest.raises(AttributeError, match="features='linear'"):
        _ = model.coef_
    labels = np.digitize(y, [10.0, 18.0])
    classifier = RedescendingClassifier(features="auto").fit(X[:1000], labels[:1000])
    assert classifier.score(X[1000:], labels[1000:]) > 0.75
    assert classifier.predict_proba(X).sum(axis=1) == pytest.approx(1.0)
    other = RedescendingRegressor(features="auto")
    other.restore(model.state())
    np.testing.assert_array_equal(other.predict(X), model.predict(X))


@pytest.mark.parametrize(
    "settings",
    [
        {"alpha": 0.1},
        {"average": True},
        {"fit_intercept": False},
        {"loss": "absolute"},
        {"transform": transforms.Huber(1.0)},
    ],
)
def test_settings_that_trees_do_not_have_make_it_linear(settings):
    config = ModelConfig.from_parameters("Model", "regression", features="auto", **settings)
    assert not isinstance(config.make_engine(3, 1), NonlinearEngine)


def test_many_features_and_sparse_rows_are_linear():
    config = ModelConfig.from_parameters("Model", "regression", features="auto")
    assert isinstance(config.make_engine(500, 1), NonlinearEngine)
    assert not isinstance(config.make_engine(501, 1), NonlinearEngine)
    assert not isinstance(config.make_engine(3, 1, sparse=True), NonlinearEngine)


def test_bad_features_are_refused():
    with pytest.raises(ParameterError, match="The 'features' parameter of Model must be 'auto' or 'linear'"):
        ModelConfig.from_parameters("Model", "regression", features="all")
