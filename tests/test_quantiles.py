"""Self-tuning quantiles: as good as the best line in hindsight, with and without outliers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

import redescend as rd

ROUNDS, DIM = 6000, 5


def pinball(quantile, residuals):
    return np.maximum(quantile * residuals, (quantile - 1) * residuals).mean()


@pytest.mark.parametrize("outliers", [0.0, 0.1])
@pytest.mark.parametrize("quantile", [0.05, 0.2, 0.8, 0.95])
def test_quantiles_are_not_biased_towards_the_median(quantile, outliers):
    paid, best, below = [], [], []
    for seed in range(3):
        random = np.random.default_rng(seed)
        X = np.column_stack([random.normal(size=(ROUNDS, DIM - 1)), np.ones(ROUNDS)])
        truth = X @ random.normal(size=DIM)
        y = truth + random.normal(size=ROUNDS)
        wrong = random.random(ROUNDS) < outliers
        given = np.where(wrong, 20 * random.normal(size=ROUNDS), y)
        trace = rd.play(rd.SelfTuning(DIM, loss=rd.losses.Pinball(quantile), order=2), rd.Stream(X, given))
        late = ~wrong & (np.arange(ROUNDS) >= 1500)
        paid.append(pinball(quantile, (y - trace.predictions)[late]))
        best.append(pinball(quantile, (y - truth - norm.ppf(quantile))[late]))
        below.append(np.mean((y < trace.predictions)[late]))
    assert np.mean(paid) < 1.05 * np.mean(best)
    assert np.mean(below) == pytest.approx(quantile, abs=0.015)


def test_an_outlier_moves_an_extreme_quantile_as_little_as_the_median():
    random = np.random.default_rng(5)
    X = np.column_stack([random.normal(size=(500, 2)), np.ones(500)])
    y = X @ [1.0, -1.0, 2.0] + random.normal(size=500)
    for quantile in (0.5, 0.95):
        learner = rd.SelfTuning(3, loss=rd.losses.Pinball(quantile))
        rd.play(learner, rd.Stream(X, y))
        before = learner.theta.copy()
        learner.update(X[0], 1e6)
        assert np.abs(learner.theta - before).max() < 0.01


def test_the_median_recovers_from_a_start_among_outliers():
    random = np.random.default_rng(103)
    X = np.column_stack([random.normal(size=(3000, 4)), np.ones(3000)])
    y = X @ random.normal(size=5) + 0.3 * random.normal(size=3000)
    wrong = random.random(3000) < 0.4
    wrong[:10] = True
    trace = rd.play(rd.SelfTuning(5, loss=rd.losses.Absolute(), order=2), rd.Stream(X, np.where(wrong, 1000.0, y)))
    assert np.median(np.abs(y - trace.predictions)[1000:]) < 0.6
