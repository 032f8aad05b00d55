"""LEARN as a loss in River's own models."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from river import linear_model, optim

import redescend as rd
from redescend.errors import ParameterError
from redescend.river import LearnLoss
from tests import river_streams as streams
from tests.refusals import refusal

LOSSES = ["squared", "absolute", rd.losses.EpsilonInsensitive(0.3), rd.losses.Pinball(0.8), "logistic", "hinge"]
POINTS = np.array([-7.3, -2.1, -0.45, 0.37, 0.61, 1.9, 5.2])
"""None is at a kink for any target below."""


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_gradient_is_the_derivative_of_the_value(loss):
    learn = LearnLoss(loss, a=1.7, b=0.2)
    targets = (True, False) if loss in ("logistic", "hinge") else (-0.2, 1.3)
    step = 1e-6
    for y in targets:
        for p in POINTS.tolist():
            numeric = (learn(y, p + step) - learn(y, p - step)) / (2 * step)
            # Central differences err by step² and by rounding/step: 1e-9.
            assert learn.gradient(y, p) == pytest.approx(numeric, abs=1e-8)
            assert isinstance(learn.gradient(y, p), float)
        many = np.full(len(POINTS), y)
        np.testing.assert_allclose(learn(many, POINTS), [learn(y, p) for p in POINTS.tolist()], rtol=1e-12)
        np.testing.assert_allclose(
            learn.gradient(many, POINTS), [learn.gradient(y, p) for p in POINTS.tolist()], rtol=1e-12
        )
        np.testing.assert_allclose(learn.mean_func(POINTS), [learn.mean_func(p) for p in POINTS.tolist()], rtol=1e-12)
        for far in (1e160, -1e308):
            assert np.isfinite([learn(y, far), learn.gradient(y, far), learn.mean_func(far)]).all()


def test_value_and_mean_by_hand():
    learn = LearnLoss("squared", a=2.0, b=0.5)
    assert learn(1.0, 4.0) == pytest.approx(-2.0 * np.log(np.exp(-9.0 / 2.0) + 0.5))
    assert learn.gradient(1.0, 4.0) == pytest.approx(6.0 / (1.0 + 0.5 * np.exp(9.0 / 2.0)))
    assert learn.mean_func(4.0) == 4.0
    assert LearnLoss("logistic").mean_func(2.0) == pytest.approx(1.0 / (1.0 + np.exp(-2.0)))
    assert LearnLoss("hinge", 1.0, 1.0).gradient(0, 0.5) == pytest.approx(1.0 / (1.0 + np.exp(1.5)))


def test_a_linear_regression_of_river_lets_outliers_go():
    """Targets of clean records are below 5 in size, and so wrong ones cost more than a clean record can."""
    records = streams.stream(800, seed=0, bad=0.1)
    X, y = pd.DataFrame([x for x, _ in records]), pd.Series([y for _, y in records])
    clean = [(x, target) for x, target in records if abs(target) < 5.0][-300:]
    for loss, few in ((LearnLoss("squared", a=3.0, b=0.001), True), (None, False)):
        one = linear_model.LinearRegression(loss=loss)
        many = linear_model.LinearRegression(optim.SGD(0.1), loss, intercept_lr=0.1)
        for x, target in records:
            one.learn_one(x, target)
        for start in range(0, len(X), 5):
            many.learn_many(X[start : start + 5], y[start : start + 5])
        for model in (one, many):
            error = np.mean([abs(model.predict_one(x) - target) for x, target in clean])
            assert (error < 0.2) == few


def test_a_logistic_regression_of_river_learns_with_it():
    records = streams.stream(800, seed=1, labels=True, bad=0.2, noise=0.0)
    X, y = pd.DataFrame([x for x, _ in records]), pd.Series([y for _, y in records])
    loss = LearnLoss("logistic", a=0.5, b=0.05)
    one = linear_model.LogisticRegression(optim.SGD(0.1), loss, intercept_lr=0.1)
    many = one.clone()
    for x, label in records:
        one.learn_one(x, label)
    for start in range(0, len(X), 5):
        many.learn_many(X[start : start + 5], y[start : start + 5])
    for model in (one, many):
        right = [model.predict_one(x) == label for x, label in records]
        assert np.mean(right) > 0.75  # four in five labels are right
    assert repr(many.loss) == repr(one.loss)


def test_settings_are_checked_when_it_is_made():
    assert "without l2" in refusal(ParameterError, LearnLoss, rd.losses.Squared(l2=0.1), 1.0, 1.0)
    refusal(ParameterError, LearnLoss, "cubic", 1.0, 1.0)
    refusal(ParameterError, LearnLoss, "squared", -1.0, 1.0)
    refusal(ParameterError, LearnLoss, "squared", 1.0, 0.0)
