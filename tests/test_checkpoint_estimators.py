"""Estimators of other libraries' kind are saved like learners, and go on bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from redescend import river
from redescend import sklearn as estimators
from redescend.checkpoint import load, save
from redescend.losses import Hinge, Pinball
from redescend.steps import Anytime
from redescend.transforms import Huber

RIVER = {
    "regressor": (lambda: river.RedescendingRegressor(), "predict_one"),
    "regressor of order 2": (lambda: river.RedescendingRegressor(order=2), "predict_one"),
    "classifier": (lambda: river.RedescendingClassifier(), "predict_proba_one"),
    "classifier with a loss": (lambda: river.RedescendingClassifier(loss=Hinge(l2=0.01)), "predict_one"),
    "filter": (lambda: river.RedescendingFilter(), "score_one"),
}


def records(labels):
    """Records whose third feature has one of two names."""
    random = np.random.default_rng(0)
    for row in range(60):
        first, second, third = random.normal(size=3).tolist()
        x = {"a": first, "b": second, "c" if row % 3 else "d": third}
        yield x, bool(first > 0) if labels else 2 * first + 0.1 * float(random.normal())


@pytest.mark.parametrize("seen", [0, 30])
@pytest.mark.parametrize("name", RIVER)
def test_an_estimator_for_river_goes_on_bit_for_bit(name, seen, tmp_path):
    make, asked = RIVER[name]
    model, rows = make(), list(records("classifier" in name))
    for x, y in rows[:seen]:
        model.learn_one(x, y)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert type(again) is type(model)
    for x, y in rows[seen:]:
        answers = [
            getattr(one, asked)(x, y) if asked == "score_one" else getattr(one, asked)(x) for one in (model, again)
        ]
        assert answers[0] == answers[1]
        for one in (model, again):
            one.learn_one(x, y)
    assert repr(again) == repr(model)


SKLEARN = {
    "regressor": lambda: estimators.RedescendingRegressor(),
    "regressor of order 2": lambda: estimators.RedescendingRegressor(order=2, loss=Pinball(0.8)),
    "regressor with a transform": lambda: estimators.RedescendingRegressor(transform=Huber(1.0), step=Anytime(0.1)),
    "classifier": lambda: estimators.RedescendingClassifier(average=True),
    "scaler": lambda: estimators.MedianScaler(),
}


@pytest.mark.parametrize("seen", [0, 30])
@pytest.mark.parametrize("name", SKLEARN)
def test_an_estimator_for_scikit_learn_goes_on_bit_for_bit(name, seen, tmp_path):
    random, model = np.random.default_rng(1), SKLEARN[name]()
    X = random.normal(size=(60, 3))
    y = np.array(["low", "high", "middle"])[random.integers(3, size=60)] if name == "classifier" else X[:, 0]
    more = {"classes": ["low", "high", "middle"]} if name == "classifier" else {}
    if seen:
        model.partial_fit(X[:seen], y[:seen], **more)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert type(again) is type(model)
    assert repr(again) == repr(model)
    for one in (model, again):
        one.partial_fit(X[seen:], y[seen:], **more)
    for asked in ("predict", "score_samples", "transform"):
        if hasattr(model, asked):
            given = (X, y) if asked == "score_samples" else (X,)
            np.testing.assert_array_equal(getattr(model, asked)(*given), getattr(again, asked)(*given))
