"""Sample weights of the self-tuning learner: as the slow reference states, and tiny ones count next to nothing."""

from __future__ import annotations

import numpy as np
import pytest

from redescend import losses
from redescend.engines import SelfTuningEngine, Shape
from tests import reference_selftuning
from tests.catalogue import name_of
from tests.selftuning_games import PLAIN, every_order, records


@every_order
@pytest.mark.parametrize("loss", PLAIN, ids=name_of)
def test_weighted_records_are_learned_as_stated(loss, order):
    X, y = records(loss, "jump", 150, 3, seed=2)
    weights = np.random.default_rng(2).choice([0.01, 0.3, 1.0, 4.0], size=150)
    engine = SelfTuningEngine(Shape(3, 1, loss, intercept=False), order)
    slow = reference_selftuning.Reference(3, loss, order)
    engine.learn(X, y[None], weights)
    for x, target, w in zip(X, y, weights, strict=True):
        slow.play(x, target, w)
    np.testing.assert_allclose(engine.coefficients()[0][0], slow.action, rtol=1e-6)


@every_order
@pytest.mark.parametrize("loss", [losses.Squared(), losses.Logistic()], ids=name_of)
@pytest.mark.parametrize(("weight", "most"), [(1e-310, 1e-12), (1e-9, 1e-12), (1e-5, 0.1)])
def test_records_of_little_weight_count_little(weight, most, loss, order):
    """As many records of another truth as of the first, but of almost no weight."""
    random = np.random.default_rng(7)
    X = random.normal(size=(1_000, 3))
    y = X @ [1.0, 2.0, 3.0] * np.where(np.arange(1_000) < 500, 1.0, -1.0) + random.normal(size=1_000)
    Y, weights = (np.where(y > 0.0, 1.0, -1.0) if loss.margin else y)[None], np.repeat([1.0, weight], 500)
    engine, without = (SelfTuningEngine(Shape(3, 1, loss), order) for _ in range(2))
    engine.learn(X, Y, weights)
    without.learn(X[:500], Y[:, :500].copy(), weights[:500])
    one, other = engine.coefficients()[0], without.coefficients()[0]
    np.testing.assert_allclose(one, other, atol=most * np.abs(other).max())
