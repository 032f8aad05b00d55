"""The covariance of the self-tuning learner stays positive, whatever the records."""

from __future__ import annotations

import numpy as np
import pytest

import redescend as rd
from redescend import losses
from tests.catalogue import name_of
from tests.selftuning_games import every_loss, played, records, sound


def smallest_eigenvalue(learner: rd.SelfTuning) -> float:
    """Of P with ones on its diagonal."""
    P = np.zeros((learner.dim, learner.dim))
    P[np.tril_indices(learner.dim)] = learner.state()["P"]
    size = np.sqrt(np.diag(P))
    return float(np.linalg.eigvalsh((P + np.tril(P, -1).T) / np.outer(size, size)).min())


@pytest.mark.parametrize("rounds", [10**5, pytest.param(10**6, marks=pytest.mark.soak)])
@pytest.mark.parametrize("loss", [losses.Squared(), losses.Logistic()], ids=name_of)
def test_many_rounds_leave_the_curvature_positive(loss, rounds):
    X, y = records(loss, "outliers", rounds, 3, seed=10)
    learner = rd.SelfTuning(3, loss=loss, order=2)
    assert sound(learner, played(learner, X, y))
    assert smallest_eigenvalue(learner) > 1e-6


@pytest.mark.parametrize("trouble", ["collinear", "silent", "back", "leverage", "scales"])
@every_loss
def test_nothing_in_the_records_makes_the_curvature_singular(loss, trouble):
    X, y = records(loss, "scales" if trouble == "scales" else "outliers", 8_000, 3, seed=11)
    match trouble:
        case "collinear":
            X[:, 2] = X[:, 0] + X[:, 1]
        case "silent":
            X[3_000:, 1] = 0.0
        case "back":
            X[1_000:6_000, 1] = 0.0
        case "leverage":
            X[::20] *= 1e3
    learner = rd.SelfTuning(3, loss=loss, order=2)
    for part in np.split(np.arange(8_000), [10, 100, 2_000, 4_000, 6_001, 6_010]):
        assert sound(learner, played(learner, X[part], y[part]))
        assert smallest_eigenvalue(learner) > 1e-12


def test_rounding_errors_leave_variances_positive():
    random = np.random.default_rng(46)  # the only one of 60 seeds with which a variance fell below 0
    counts = (random.random((1500, 11)) < 0.05) * random.integers(1, 3, (1500, 11))
    X = np.column_stack([counts, np.ones(1500)]).astype(float)
    X[:, 5] = X[:, 3] + X[:, 4]
    y = np.round(X @ random.standard_normal(12))
    learner = rd.SelfTuning(12, loss=rd.losses.Squared(), order=2)
    rd.play(learner, rd.Stream(X[:450], y[:450]))
    rows = np.arange(12)
    assert (learner.state()["P"][rows * (rows + 3) // 2] >= 0.0).all()


def test_a_state_with_targets_far_from_the_first_one_is_restored():
    X = np.column_stack([np.tile([0.0, 1.0], 4), np.ones(8)])
    y = np.array([2.4e-35, 1.0, 1.0, 1.0, 1.0, -1.0, -1.0, 1.0])
    learner = rd.SelfTuning(2, loss=rd.losses.Squared())
    rd.play(learner, rd.Stream(X, y))
    again = rd.SelfTuning(2, loss=rd.losses.Squared())
    again.restore(learner.state())
    assert again.predict(X[1]) == learner.predict(X[1])


@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Squared()], ids=name_of)
def test_rare_levels_may_be_standardized(loss):
    """A level that the first records do not have is 0 there, or a small number if its column was standardized."""
    random = np.random.default_rng(0)
    X = np.column_stack([random.normal(size=(2000, 3)), random.random((2000, 10)) < 0.02, np.ones(2000)])
    X[:60, 3:-1] = 0.0
    signal = X @ np.r_[1.0, -1.0, 0.5, 2.0 * random.normal(size=10), -1.0]
    y = signal + 0.5 * random.normal(size=2000)
    if loss.margin:
        y = np.where(random.random(2000) < 1.0 / (1.0 + np.exp(-signal)), 1.0, -1.0)
    standardized = X.copy()
    standardized[:, :-1] = (X[:, :-1] - X[:, :-1].mean(axis=0)) / X[:, :-1].std(axis=0)
    plain, other = (rd.play(rd.SelfTuning(14, loss=loss, order=2), rd.Stream(rows, y)) for rows in (X, standardized))
    assert np.mean(np.abs(plain.predictions - other.predictions)[300:]) < 0.02
