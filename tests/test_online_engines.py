"""Engines as streams use them, beyond what the estimators do: the outcome of every round, and missing values."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from redescend import losses, transforms
from redescend.engines import DescentEngine, SelfTuningEngine, Shape
from redescend.kernels.tabular import standardize as scaling

DIM = 4


def engine_of(kind, loss, outputs=1):
    shape = Shape(DIM, outputs, loss)
    if kind == "descent":
        return DescentEngine(shape, scaling.WITH_MISSING, transforms.Huber(1.0))
    return SelfTuningEngine(shape, kind, missing=True)


def table(rows, seed, missing=0.1):
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, DIM)) * [0.01, 1.0, 100.0, 3.0] + [0.0, 5.0, -20.0, 1000.0]
    Y = np.stack([X @ [100.0, 1.0, 0.01, 0.0], X @ [0.0, -1.0, 0.0, 1.0]]) + 0.1 * random.normal(size=(2, rows))
    Y[:, ::9] = 1e4
    X[random.random(X.shape) < missing] = np.nan
    return X, Y


@pytest.mark.parametrize(
    ("kind", "loss"),
    [("descent", losses.Squared()), ("descent", losses.Logistic()), (1, losses.Squared()), (2, losses.Logistic())],
)
def test_the_outcome_of_a_row_is_that_before_it_was_learned_from(kind, loss):
    X, Y = table(80, seed=0)
    Y = np.sign(Y - np.median(Y)) if loss.margin else Y
    X[50, 1], Y[0, 60] = 1e120, Y[0, 60] if loss.margin else 1e160  # counted, and nothing moves
    whole = engine_of(kind, loss, outputs=2)
    rounds = whole.learn_rounds(X, Y)
    assert all(np.isfinite(part).all() for part in rounds)
    single = engine_of(kind, loss, outputs=2)
    for t in range(80):
        # Descent updates its scales first: the median that replaces missing values may just have changed.
        before, centres = single.predict(X[t : t + 1])[:, 0], single._centres()
        one = single.learn_rounds(X[t : t + 1].copy(), np.ascontiguousarray(Y[:, t : t + 1]))
        assert (one.predictions[:, 0] == rounds.predictions[:, t]).all()
        assert (one.weights[:, 0] == rounds.weights[:, t]).all()
        if (kind != "descent" or (centres == single._centres()).all()) and t != 50:
            np.testing.assert_allclose(rounds.predictions[:, t], before, rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(single.models, whole.models)
    # At order 1 the coefficient may be so uncertain after 50 rows that a huge x explains any target.
    assert loss.margin or kind == 1 or rounds.weights[0, 50] < 1e-3
    assert loss.margin or rounds.weights[0, 60] < 1e-3


@pytest.mark.parametrize("kind", ["descent", 1, 2])
def test_missing_values_are_imputed(kind):
    X, Y = table(400, seed=1, missing=0.0)
    engine = engine_of(kind, losses.Squared())
    engine.learn_rounds(X[:300].copy(), np.ascontiguousarray(Y[:1, :300]))
    other = engine_of(kind, losses.Squared())
    other.restore(engine.state())
    holed, filled = X[300:310].copy(), X[300:310].copy()
    holed[:, 2], filled[:, 2] = np.nan, engine._centres()[2]
    assert filled[0, 2] == pytest.approx(np.median(X[:300, 2]), abs=20.0)
    Y = np.ascontiguousarray(Y[:1, 300:310])
    np.testing.assert_allclose(engine.predict(holed), engine.predict(filled), rtol=1e-12)
    np.testing.assert_allclose(engine.score(holed, Y), engine.score(filled, Y), rtol=1e-9)
    one, two = engine.learn_rounds(holed, Y), other.learn_rounds(filled, Y)
    np.testing.assert_allclose(one.predictions[:, 0], two.predictions[:, 0], rtol=1e-12)
    np.testing.assert_allclose(one.weights[:, 0], two.weights[:, 0], rtol=1e-9)


def test_a_feature_that_is_always_missing_changes_nothing():
    X, Y = table(500, seed=2, missing=0.0)
    X[:, 3] = np.nan
    engine = engine_of(1, losses.Squared())
    engine.learn_rounds(X, np.ascontiguousarray(Y[:1]))
    coefficients, _ = engine.coefficients()
    assert coefficients[0, 3] == 0.0
    assert np.isinf(engine.scales()[3])
    np.testing.assert_allclose(coefficients[0, :3], [100.0, 1.0, 0.01], rtol=0.2)


def test_excluded_features_are_not_scaled():
    X, Y = table(200, seed=3, missing=0.0)
    X[:, 1] = X[:, 1] > 5.0
    engine = engine_of("descent", losses.Squared())
    engine.exclude_from_scaling([1])
    engine.learn_rounds(X, np.ascontiguousarray(Y[:1]))
    assert engine.stats[scaling.INVERSE, 1] == 1.0
    assert engine.stats[scaling.CENTRE, 1] == 0.0
    assert engine.scales()[0] < 0.1
    again = engine_of("descent", losses.Squared())
    again.restore(engine.state())
    assert (again.stats == engine.stats).all()


def test_sparse_labels_are_dense_labels_where_the_posterior_is_resized():
    """The snapshot is a copy of the leader as it was before."""
    for seed in (10_969, *range(20)):
        random = np.random.default_rng(seed)
        X = random.normal(size=(400, 6)) * (random.random((400, 6)) < 0.3)
        Y = np.where(X @ random.normal(size=6) > 0.0, 1.0, -1.0)[None]
        Y[0, 150:] *= np.where(random.random(250) < 0.05, -1.0, 1.0)
        weights = random.choice([0.1, 1.0, 5.0], size=400)
        dense, sparse = (SelfTuningEngine(Shape(6, 1, losses.Logistic()), 1) for _ in range(2))
        np.testing.assert_allclose(dense.learn(X, Y, weights), sparse.learn(csr_array(X), Y, weights), atol=1e-7)
        one, other = dense.coefficients()[0], sparse.coefficients()[0]
        np.testing.assert_allclose(one, other, atol=1e-7 * np.abs(one).max())


@pytest.mark.parametrize("change", ["grown", "negated", "jump", "burst", "absurd"])
@pytest.mark.parametrize("loss", [losses.Squared(l2=1e-3), losses.Pinball(0.7), losses.Logistic()], ids=repr)
def test_sparse_rows_are_dense_rows_through_every_restart(loss, change):
    """What costs all features, copies, restarts, new scales and new signs, reaches those that a row does not have."""
    random, rows, dim = np.random.default_rng(4), 900, 12
    X = random.normal(size=(rows, dim)) * (random.random((rows, dim)) < 0.4)
    truth, late = random.normal(size=dim), slice(rows // 2, rows)
    X[late] *= 1e3 if change == "grown" else 1.0
    Y = (X @ truth + 0.1 * random.normal(size=rows))[None]
    Y[0, late] = {"negated": -Y[0, late], "jump": X[late] @ random.normal(size=dim)}.get(change, Y[0, late])
    Y[0, slice(600, 650)] += 40.0 * (change == "burst")
    X[:2, :3] = 1e30 if change == "absurd" else X[:2, :3]
    Y = np.where(Y > 0.0, 1.0, -1.0) if loss.margin else Y
    dense, sparse = (SelfTuningEngine(Shape(dim, 1, loss), 1) for _ in range(2))
    weights = dense.learn(X, Y, np.ones(rows)), sparse.learn(csr_array(X), Y, np.ones(rows))
    np.testing.assert_allclose(*weights, atol=1e-7)
    coefficients = dense.coefficients()[0], sparse.coefficients()[0]
    np.testing.assert_allclose(*coefficients, atol=1e-7 * np.abs(coefficients[0]).max())


def test_a_row_is_learned_alike_wherever_it_is_in_memory():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 20))
    Y, found = (X @ random.normal(size=20))[None], []
    for gap in (0, 1, 2, 5, 8, 15):  # numbers between a row and the buffer for the standardized row
        engine = DescentEngine(Shape(20, 1, losses.Squared()), scaling.UNSCALED, transforms.GemanMcClure(1.0))
        memory = np.zeros(20 + gap + len(engine.work))
        row, engine.work = memory[:20].reshape(1, 20), memory[20 + gap :]
        for t in range(200):
            row[:] = X[t]
            engine.learn_rounds(row, Y[:, t : t + 1].copy())
        found.append(engine.models.copy())
    assert all((models == found[0]).all() for models in found)


def test_rows_are_predicted_as_if_their_targets_were_not_known():
    """With few rows for each feature, a model is nearer to the targets it has learned from than to others."""
    ratios = []
    for seed in range(4):
        random = np.random.default_rng(seed)
        X, slopes = random.normal(size=(1200, 50)), random.normal(size=50)
        X[random.random(X.shape) < 0.02] = np.nan
        Y = (np.nan_to_num(X) @ slopes + 3.0 * random.normal(size=1200))[None]
        engine = SelfTuningEngine(Shape(50, 1, losses.Squared()), 2, missing=True)
        for _ in range(2):
            engine.learn_rounds(X[:200].copy(), Y[:, :200].copy())
        told = (engine.predict(X[:200]), engine.predict_unseen(X[:200], Y[:, :200], np.ones(200)))
        new = np.std(engine.predict(X[200:]) - Y[:, 200:])
        ratios.append([np.std(one - Y[:, :200]) / new for one in told])
    seen, unseen = np.mean(ratios, axis=0)
    assert seen < 0.8
    assert 0.9 < unseen < 1.05
