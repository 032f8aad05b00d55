"""Rolling forests against their slow statement."""

from __future__ import annotations

import numpy as np
import pytest

from redescend.kernels.forest import layout, rounds
from redescend.kernels.forest.layout import (
    BEGIN,
    BUILT,
    DUE,
    FORESTS,
    HAVE,
    HIGH,
    LOW,
    MEDIAN,
    ON_REST,
    ON_TARGET,
    RATE,
    START,
)
from tests.reference_forest import SlowForest, quantile_edges

MOST = layout.MOST_RECORDS


@pytest.mark.parametrize(
    ("dim", "count", "labels", "missing"), [(3, 200, False, True), (14, 80, False, False), (4, 100, True, False)]
)
def test_a_forest_is_what_trying_all_thresholds_grows(dim, count, labels, missing):
    random = np.random.default_rng(dim)
    X = random.normal(size=(count, dim))
    X[:, 1:] = X[:, 1:].round(1)  # the first column has all edges, the others fewer
    truth = X[:, 0] * X[:, 1] + (X[:, 2] > 0.3)
    if missing:
        X[random.random(X.shape) < 0.1] = np.nan
    y = np.where(truth > 0.2, 1.0, -1.0) if labels else truth + 0.1 * random.normal(size=count)
    if not labels:
        y[::9] = 50.0
    linear = 0.3 * np.nan_to_num(X[:, 0])
    state = layout.new_state(dim, 1, labels)
    work = layout.new_work(state)
    slow = [SlowForest(dim, int(state.scalar[layout.DRAWS, g]), labels) for g in range(FORESTS)]
    grown = [0, 0]
    for t in range(count):
        before = state.scalar[MEDIAN].copy()
        expected = [forest.predict(X[t]) for forest in slow]
        bases = {ON_TARGET: float(state.output[START, 0]), ON_REST: linear[t]}
        due = state.clock[DUE] == t + 1
        out, one = np.empty((1, 1, rounds.STACKED)), slice(t, t + 1)
        rows = rounds.Rows(X[one], y[None, one], np.ones(1), linear[None, one], np.ones((1, 1)))
        rounds.learn(state, rows, 0, MOST, labels, out, work)
        assert work.fits == pytest.approx(expected, rel=1e-4, abs=1e-5)
        if due:
            for j in range(dim):
                edges = quantile_edges(X[: t + 1, j])
                np.testing.assert_array_equal(state.edges[j, : len(edges)], edges)
                assert (state.edges[j, len(edges) :] == np.inf).all()
        edges = [state.edges[j][state.edges[j] < np.inf] for j in range(dim)]
        median, rate = state.scalar[MEDIAN], float(state.output[RATE, 0])
        span = float(state.output[HIGH, 0] - state.output[LOW, 0])
        for g, forest in enumerate(slow):
            if forest.learn(X[t], y[t], bases[g], before[g], rate):
                m = forest.oldest
                tree = forest.grown(state.feature[g, m], state.threshold[g, m], edges, median[g], rate, span)
                grown[g] += 1
                np.testing.assert_allclose(state.value[g, m], tree["value"], rtol=1e-4, atol=1e-5)
                np.testing.assert_array_equal(state.leaf[g, : t + 1, m], tree["leaf"])
                np.testing.assert_allclose(state.gain[g], forest.gains, rtol=1e-4)
                # Single precision would add up over trees that ask for what the others leave.
                tree["value"][:] = state.value[g, m]
                forest.fit = state.fit[g, : t + 1].copy()
            if t + 1 == BEGIN and not labels and g == ON_TARGET:
                forest.base[:] = state.output[START, 0]
                assert state.output[START, 0] == np.sort(y[:BEGIN])[BEGIN // 2]
        assert state.clock[HAVE] == t + 1
    assert min(grown) > (layout.TREES if dim == 3 else 10)
    assert (state.scalar[BUILT] == np.minimum(grown, layout.TREES)).all()


def test_edges_of_few_values_separate_all_of_them():
    random = np.random.default_rng(0)
    X = np.column_stack([random.integers(0, 3, 64), np.full(64, 7.0), np.where(random.random(64) < 0.5, np.nan, 1.0)])
    state = layout.new_state(3, 1)
    y = random.normal(size=(1, 64))
    rows = rounds.Rows(X, y, np.ones(64), np.zeros((1, 64)), np.ones((1, 64)))
    rounds.learn(state, rows, 0, MOST, False, np.empty((1, 64, rounds.STACKED)), layout.new_work(state))
    finite = [edges[edges < np.inf].tolist() for edges in state.edges]
    assert finite == [[0.0, 1.0], [], [-np.inf]]
    assert set(state.code[:64, 0]) == {0, 1, 2}
    assert set(state.code[:64, 1]) == {0}
    assert (state.code[:64, 2] == ~np.isnan(X[:, 2])).all()


def test_the_oldest_record_is_replaced_and_nothing_grows():
    dim = 500
    state = layout.new_state(dim, 1)
    records, random = len(state.X), np.random.default_rng(1)
    count = records + 100
    X, y = random.normal(size=(count, dim)), random.normal(size=(1, count))
    rows = rounds.Rows(X, y, np.ones(count), np.zeros((1, count)), np.ones((1, count)))
    rounds.learn(state, rows, 0, records, False, np.empty((1, count, rounds.STACKED)), layout.new_work(state))
    np.testing.assert_array_equal(state.X[:100], X[records:])
    np.testing.assert_array_equal(state.X[100:], X[100:records])
    assert state.clock[HAVE] == records
    for g in range(FORESTS):
        for m in range(int(state.scalar[BUILT, g])):
            leaves = state.leaf[g, :, m]
            node = np.zeros(records, int)
            while node[0] < layout.LEAVES - 1:
                right = state.X[np.arange(records), state.feature[g, m, node]] > state.threshold[g, m, node]
                node = 2 * node + 1 + right
            np.testing.assert_array_equal(leaves, node - (layout.LEAVES - 1))


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize(("dim", "outputs"), [(1, 1), (20, 1), (100, 1), (500, 1), (16, 10)])
def test_a_model_takes_less_than_two_megabytes(dim, outputs, labels):
    state = layout.new_state(dim, outputs, labels)
    for size in layout.sizes(dim, outputs, layout.count_leaves(labels, outputs))[1:]:
        state = layout.grow_state(state)
        assert len(state.X) == size
    assert sum(array.nbytes for array in state) < 2_000_000


def test_room_for_more_records_changes_nothing():
    random = np.random.default_rng(3)
    count = 700
    X, y = random.normal(size=(count, 2)), random.normal(size=(1, count))
    rows = rounds.Rows(X, y, np.ones(count), np.zeros((1, count)), np.ones((1, count)))
    states, written = [], []
    for early in (False, True):
        state, row, out = layout.new_state(2, 1), 0, np.empty((1, count, rounds.STACKED))
        for _ in range(3 if early else 0):
            state = layout.grow_state(state)
        while (row := rounds.learn(state, rows, row, MOST, False, out, layout.new_work(state))) < count:
            assert row == len(state.X)
            state = layout.grow_state(state)
        states.append(state)
        written.append(out)
    np.testing.assert_array_equal(*written)
    for name in ("value", "threshold", "gain", "scalar", "output"):
        np.testing.assert_array_equal(getattr(states[0], name), getattr(states[1], name))


def test_a_repeated_record_tells_nothing_new():
    random = np.random.default_rng(2)
    X, y = random.normal(size=(40, 2)), random.normal(size=(1, 40))
    states = []
    for times in (1, 3):
        state, rows = layout.new_state(2, 1), np.repeat(np.arange(40), times)
        ones = np.ones((1, len(rows)))
        told = rounds.Rows(X[rows], y[:, rows].copy(), ones[0], 0.0 * ones, ones)
        rounds.learn(state, told, 0, MOST, False, np.empty((1, len(rows), rounds.STACKED)), layout.new_work(state))
        states.append(state)
    for one, other in zip(*states, strict=True):
        np.testing.assert_array_equal(one, other)
