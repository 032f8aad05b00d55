"""Many engines in one array: each is, to the last bit, what it would be alone."""

import pickle

import numpy as np
import pytest

from redescend import losses, steps, transforms
from redescend.engines import DescentEngine, SelfTuningEngine, Shape
from redescend.engines.fleet import Fleet
from redescend.errors import DataError
from redescend.kernels.tabular.standardize import WITH_MISSING
from redescend.state import CORRUPT

DIM, KEYS = 3, 7
FORGED = [np.nan, -1.0, 0.5, 2.0, 1e4, 1e200, 1e305, -1e305]
LOSSES = [
    losses.Squared(),
    losses.Squared(l2=0.01),
    losses.Absolute(),
    losses.EpsilonInsensitive(0.1),
    losses.Pinball(0.3),
    losses.Logistic(),
    losses.Hinge(l2=0.1),
]
KINDS = {
    "order 1": lambda shape: SelfTuningEngine(shape, 1, missing=True),
    "order 2": lambda shape: SelfTuningEngine(shape, 2, missing=True),
    "own step": lambda shape: DescentEngine(shape, WITH_MISSING, transforms.Huber(1.0)),
    "given step": lambda shape: DescentEngine(shape, WITH_MISSING, transforms.Learn(1.0, 0.1), steps.AdaptiveNorm(0.1)),
}


def engine_of(kind, loss, outputs):
    engine = KINDS[kind](Shape(DIM, outputs, loss))
    engine.exclude_from_scaling([DIM - 1])
    return engine


def records(loss, outputs, rows, seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, DIM)) * [0.01, 100.0, 1.0] + [0.0, 5.0, 0.0]
    Y = random.normal(size=(outputs, DIM)) / [0.01, 100.0, 1.0] @ X.T + 0.1 * random.normal(size=(outputs, rows))
    Y[:, ::9] = 1e4
    X[random.random(X.shape) < 0.1] = np.nan
    X[:, -1] = random.random(rows) < 0.3
    return X, np.where(Y > 0.0, 1.0, -1.0) if loss.margin else Y, random.integers(KEYS, size=rows) ** 2 % KEYS


def travelled(fleet):
    """As over a network, from which arrays come read-only."""
    buffers = []
    content = pickle.dumps(fleet, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(content, buffers=[buffer.raw().tobytes() for buffer in buffers])


@pytest.mark.parametrize(("loss", "outputs"), [(losses.Squared(), 1), *((loss, 3) for loss in LOSSES)], ids=repr)
@pytest.mark.parametrize("kind", KINDS)
def test_each_engine_learns_what_it_would_alone(kind, loss, outputs):
    X, Y, keys = records(loss, outputs, 240, seed=3)
    fleet = Fleet(engine_of(kind, loss, outputs), [DIM - 1])
    predictions, weights = np.empty(Y.shape), np.empty(Y.shape)
    for part in np.split(np.arange(240), [1, 40, 41, 200]):
        order = part[np.argsort(keys[part], kind="stable")]
        starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
        fleet.grow(1 + max(keys[order]))
        runs = (np.append(starts, len(order)), keys[order[starts]])
        predictions[:, order], weights[:, order] = fleet.learn(X[order], Y[:, order], *runs)
        fleet = travelled(fleet)
    for key in np.unique(keys):
        alone, own = engine_of(kind, loss, outputs), keys == key
        rounds = alone.learn_rounds(X[own], np.ascontiguousarray(Y[:, own]))
        for name, array in alone.arrays().items():
            np.testing.assert_array_equal(fleet.engine(key).arrays()[name], array)
        np.testing.assert_array_equal(rounds.predictions, predictions[:, own])
        np.testing.assert_array_equal(rounds.weights, weights[:, own])
        assert fleet.count_ones(key).tolist() == [X[own, -1].sum()]
        np.testing.assert_array_equal(fleet.engine(key).predict(X), alone.predict(X))
    assert fleet.row_counts().tolist() == [(keys == key).sum() for key in range(len(fleet))]


@pytest.mark.parametrize(("kind", "loss"), list(zip(KINDS, [LOSSES[0], LOSSES[5], LOSSES[5], LOSSES[0]], strict=True)))
def test_rows_are_refused_just_where_an_engine_refuses_its_state(kind, loss):
    X, Y, _ = records(loss, 1, 200, seed=5)
    fleet = Fleet(engine_of(kind, loss, 1), [])
    fleet.grow(3)
    fleet.learn(X, Y, np.array([0, 40, 90, 200]), np.array([0, 1, 2]))
    sound = fleet.rows.copy()
    random, refused = np.random.default_rng(6), 0
    alone, forged, other = engine_of(kind, loss, 1), *(Fleet(engine_of(kind, loss, 1), []) for _ in range(2))
    # Numbers from all parts of a model are forged: some values are impossible for some of them.
    size = sound.shape[1]
    places = sorted({*range(0, size, max(1, size // 200)), *range(size - 20, size)})
    for place, value in zip(places, random.choice(FORGED, len(places)), strict=True):
        rows = sound.copy()
        rows[1, place] = value
        forged._rows, forged._count = rows, 3
        try:
            alone.restore(forged.engine(1).state())
        except DataError:
            refused += 1
            with pytest.raises(DataError, match=CORRUPT):
                fleet.restore(rows)
            np.testing.assert_array_equal(fleet.rows, sound)
        else:
            other.restore(rows)
    assert refused > 20
    with pytest.raises(DataError, match=r"rows of \d+ numbers, not"):
        fleet.restore(sound[:, 1:])


def test_counts_of_indicators_are_at_most_the_records():
    fleet = Fleet(engine_of("order 1", losses.Squared(), 1), [DIM - 1])
    fleet.grow(2)
    rows = fleet.rows.copy()
    rows[1, -1] = 1.0
    with pytest.raises(DataError, match="more ones than records"):
        fleet.restore(rows)


def test_an_engine_that_would_move_too_far_stops_and_the_others_go_on():
    X, Y, _ = records(losses.Squared(), 1, 400, seed=7)
    fleet = Fleet(
        DescentEngine(Shape(DIM, 1, losses.Squared()), WITH_MISSING, transforms.Identity(), steps.Constant(100.0)), []
    )
    fleet.grow(2)
    _, weights = fleet.learn(X, Y, np.array([0, 395, 400]), np.array([1, 0]))
    learned = int(fleet.row_counts()[1])
    assert 5 < learned < 395
    assert np.isnan(weights[0]).nonzero()[0].tolist() == list(range(learned, 395))
    assert fleet.row_counts()[0] == 5
