"""The prior of the self-tuning learner: as wide as the targets at first, and then withdrawn."""

from __future__ import annotations

import numpy as np
import pytest

import redescend as rd
from redescend import losses
from tests import reference_selftuning
from tests.catalogue import name_of
from tests.selftuning_games import played


def test_withdrawing_half_of_the_prior_is_as_if_it_had_always_been_twice_as_wide():
    """The reference, which the learner equals: the prior mean of the last feature, a constant, is the origin."""
    random, origin = np.random.default_rng(3), 5.0
    X, prior, centre = random.normal(size=(40, 4)), random.uniform(0.1, 2.0, 4), np.array([0.5, 0.0, -1.0, 0.0])
    X[:, 3], y = 1.0, random.normal(origin, 1.0, 40)

    def fit(prior):
        """The posterior of centred features, and its mean for features as they are."""
        precision = np.diag(1 / prior) + (X - centre).T @ (X - centre)
        theta = np.linalg.solve(precision, (X - centre).T @ y + np.array([0, 0, 0, origin / prior[3]]))
        theta[3] -= centre @ theta
        return np.linalg.inv(precision), theta

    learner = reference_selftuning.Reference(4, losses.Squared())
    learner.P, learner.theta[0] = fit(prior)
    learner.theta[reference_selftuning.ORIGIN, 3] = origin
    learner.prior, learner.square, learner.unit, learner.size = prior.copy(), np.ones(4), np.ones(4), 1.0
    learner.x, learner.xc, learner.constant = X[7], X[7] - centre, 3
    learner.seen = learner.age = 40
    learner.count[:] = 40
    for j in range(4):
        learner.withdraw(j)
    P, theta = fit(2 * prior)
    np.testing.assert_array_equal(learner.prior, 2 * prior)
    np.testing.assert_allclose(learner.P, P, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(learner.theta[0], theta, rtol=1e-12)


def test_first_predictions_with_many_outliers_are_not_wild():
    """A quarter of the targets is wrong, the noise .3 times the signal: against a filter that knows the clean ones."""
    errors = np.zeros(2)
    for seed in range(12):
        random = np.random.default_rng(seed)
        X, truth = random.normal(size=(80, 10)), random.normal(size=10)
        signal, clean = X @ truth / np.linalg.norm(truth), random.random(80) > 0.25
        y = np.where(clean, signal + 0.3 * random.normal(size=80), signal + 10.0)
        predictions = played(rd.SelfTuning(10, loss=losses.Squared(), order=2), X, y).predictions
        errors[0] += np.sum((predictions - signal)[20:] ** 2)
        theta, P = np.zeros(10), np.eye(10) / 10
        for t in range(80):
            errors[1] += (X[t] @ theta - signal[t]) ** 2 if t >= 20 else 0.0
            if clean[t]:
                gain = P @ X[t] / (X[t] @ P @ X[t] + 0.3**2)
                theta, P = theta + gain * (y[t] - X[t] @ theta), P - np.outer(gain, P @ X[t])
    assert errors[0] < 3.0 * errors[1]


@pytest.mark.parametrize("loss", [losses.Squared(), losses.Absolute()], ids=["squared", "absolute"])
def test_features_that_are_nearly_collinear_are_learned(loss):
    """The difference of two features is the signal, and a hundredth of their size."""
    random = np.random.default_rng(0)
    common, signal = random.normal(size=(2, 300))
    X, y = np.column_stack([common, common + 0.01 * signal]), signal + 0.02 * random.normal(size=300)
    predictions = played(rd.SelfTuning(2, loss=loss, order=2), X, y).predictions
    assert np.median(np.abs(predictions - signal)[100:]) < 0.03


def test_a_coefficient_that_nothing_supports_does_not_grow_as_the_prior_is_withdrawn():
    """Records that were not believed in the end moved it, and left its variance as it was."""
    learner = reference_selftuning.Reference(2, losses.Squared())
    learner.prior, learner.square, learner.unit, learner.size = np.ones(2), np.ones(2), np.ones(2), 1.0
    learner.P, learner.theta[0], learner.seen, learner.age = np.diag([0.9999, 1.1]), [100.0, 100.0], 4_000, 4_000
    learner.x = learner.xc = np.ones(2)
    learner.count[:] = 4_000
    for _ in range(20):
        for j in range(2):
            learner.withdraw(j)
    assert np.all(np.abs(learner.theta[0]) < 200.0)
    assert learner.prior.min() >= 2_048


@pytest.mark.parametrize("first", [5, 25])
def test_a_rare_feature_with_a_large_effect_is_learned_at_its_first_occurrences(first):
    """Among the first 16 records and after them, then in every 50th: its effect is 20 times that of all others."""
    errors = []
    for seed in range(5):
        random = np.random.default_rng(seed)
        X, truth = random.normal(size=(800, 10)), random.normal(size=10)
        X[:, 0], X[:, 1] = 1.0, 0.0
        X[first::50, 1], truth[1] = 1.0, 20.0 * np.linalg.norm(truth[2:])
        y = X @ truth + 0.1 * random.normal(size=800)
        predictions = played(rd.SelfTuning(10, loss=losses.Squared(), order=2), X, y).predictions
        errors.append(np.abs(predictions - y)[first::50][5:].max() / truth[1])
    assert np.median(errors) < 0.05


@pytest.mark.parametrize("loss", [losses.Squared(), losses.Pinball(0.8)], ids=name_of)
def test_a_start_with_absurd_targets_leaves_the_noise_finite(loss):
    """At record 32 the unit of the target falls by a factor of 1e320."""
    random = np.random.default_rng(5)
    X = random.normal(size=(200, 3))
    y = 1e-20 * (X @ [1.0, -2.0, 0.5] + 0.1 * random.normal(size=200))
    y[:12] = 1e300
    learner = rd.SelfTuning(3, loss=loss, order=2)
    assert np.isfinite(played(learner, X, y).predictions).all()
    rd.SelfTuning(3, loss=loss, order=2).restore(learner.state())


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("loss", [losses.Squared(), losses.Logistic()], ids=name_of)
def test_values_that_are_equal_up_to_rounding_errors_have_no_scale(loss, order):
    """Cosines of days that mirror each other in their week differ in the last digit."""
    random = np.random.default_rng(0)
    days = np.concatenate([np.tile([15711, 15712], 8), random.integers(15700, 16400, 184)])
    cosines = np.cos(2.0 * np.pi / 7.0 * (days % 7))
    assert 0.0 < np.ptp(cosines[:16]) < 1e-14
    x = random.normal(size=200)
    y = x + 0.1 * random.normal(size=200)
    y = np.where(y > 0.0, 1.0, -1.0) if loss == losses.Logistic() else y
    learner, largest = rd.SelfTuning(3, loss=loss, order=order), 0.0
    for record, target in zip(np.column_stack([x, cosines, np.ones(200)]), y, strict=True):
        learner.update(record, target)
        largest = max(largest, np.abs(learner.theta).max())
    assert 0.5 < largest < 100.0
