"""The game: the same bits however a stream is cut or stored."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import redescend as rd
from redescend import domains, errors, game, gates, losses, steps
from tests import reference
from tests.catalogue import GATES, STEPS, name_of
from tests.games import DIMS, DTYPES, REPRODUCIBLE, ROUNDS, SENTENCES, assert_same, every_form, make, records, whole

# --- cuts ---


@every_form
def test_row_by_row_is_the_same_bits(name, dim, dtype):
    expected, state = whole(name, dim, dtype)
    learner = make(name, dim, dtype)
    actions, rounds = [], []
    for x, target in zip(*records(dim, dtype), strict=True):
        actions.append(learner.theta)
        rounds.append(learner.update(x, target))
    np.testing.assert_array_equal(actions, expected.actions)
    np.testing.assert_array_equal(rounds, np.column_stack([expected.losses, expected.weights]))
    np.testing.assert_array_equal(learner.theta, expected.theta)
    assert reference.same_state(learner.state(), state)


@pytest.mark.parametrize("loss", [losses.Squared(l2=0.2), losses.Logistic()], ids=name_of)
@pytest.mark.parametrize("gate", GATES, ids=name_of)
def test_row_by_row_is_the_same_bits_for_every_gate(gate, loss):
    """What a compiler may take out of a loop of many rounds, it cannot take out of a single one."""
    X, y = reference.records_for(loss, 150, 3, seed=12)
    for step in STEPS:
        for domain in (domains.Ball(0.6), domains.Box(-0.5, 0.5)):
            learner, other = (rd.Descent(3, loss=loss, gate=gate, step=step, domain=domain) for _ in range(2))
            trace = rd.play(learner, rd.Stream(X, y))
            rounds = [other.update(x, target) for x, target in zip(X, y, strict=True)]
            np.testing.assert_array_equal(rounds, np.column_stack([trace.losses, trace.weights]))
            assert reference.same_state(other.state(), learner.state())


@pytest.mark.parametrize("holes", [False, True], ids=["whole", "holes"])
@every_form
def test_any_cut_is_the_same_bits(name, dim, dtype, holes):
    X, y = records(dim, dtype, holes)
    expected, state = whole(name, dim, dtype, holes)

    @settings(REPRODUCIBLE)
    @given(st.sets(st.integers(1, ROUNDS - 1), min_size=1, max_size=8))
    def check(cuts: set[int]) -> None:
        learner, traces = make(name, dim), []
        for first, last in zip([0, *sorted(cuts)], [*sorted(cuts), ROUNDS], strict=True):
            piece = rd.Stream(X[first:last], y[first:last])
            traces.append(rd.play(learner, piece, keep_actions=True, bad_rows="skip"))
        assert_same(traces, learner, expected, state)

    check()


@every_form
def test_chunks_are_the_same_bits(name, dim, dtype, monkeypatch):
    expected, state = whole(name, dim, dtype, holes=True)
    monkeypatch.setattr(game, "FIRST_ROWS", 37)
    monkeypatch.setattr(game, "CHUNK_SECONDS", 0.0)
    learner = make(name, dim)
    trace = rd.play(learner, rd.Stream(*records(dim, dtype, True)), keep_actions=True, bad_rows="skip")
    assert_same([trace], learner, expected, state)
    np.testing.assert_array_equal(trace.skipped, expected.skipped)


@every_form
def test_keeping_actions_changes_nothing(name, dim, dtype):
    expected, state = whole(name, dim, dtype)
    learner = make(name, dim)
    trace = rd.play(learner, rd.Stream(*records(dim, dtype)))
    assert trace.actions is None
    np.testing.assert_array_equal(trace.losses, expected.losses)
    np.testing.assert_array_equal(trace.weights, expected.weights)
    assert reference.same_state(learner.state(), state)


@every_form
def test_two_games_of_the_same_stream_are_the_same_bits(name, dim, dtype):
    expected, state = whole(name, dim, dtype)
    learner = make(name, dim)
    trace = rd.play(learner, rd.Stream(*records(dim, dtype)), keep_actions=True)
    assert_same([trace], learner, expected, state)


# --- rows that are skipped ---


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("gate", [gate for gate in GATES if not isinstance(gate, gates.Oracle)], ids=name_of)
def test_skipped_rows_leave_no_mark(gate, dim):
    """With a step that does not count rounds, and before the first refresh of the norm: as if they were not there."""
    X, y = (array[:200] for array in reference.records(ROUNDS, dim, seed=4))
    holes = np.array([0, 17, 18, 199])
    X[holes[:3], -1] = np.nan
    y[holes[3]] = -np.inf
    there = np.setdiff1d(np.arange(200), holes)
    common = {"loss": losses.Squared(l2=0.1), "gate": gate, "step": steps.Constant(0.1), "domain": domains.Ball(0.8)}
    learner, other = rd.Descent(dim, **common), rd.Descent(dim, **common)
    trace = rd.play(learner, rd.Stream(X, y), keep_actions=True, bad_rows="skip")
    expected = rd.play(other, rd.Stream(X[there], y[there]), keep_actions=True)
    np.testing.assert_array_equal(trace.skipped, holes)
    np.testing.assert_array_equal(trace.losses[holes], 0.0)
    np.testing.assert_array_equal(trace.weights[holes], 0.0)
    for part in ("losses", "weights", "actions"):
        np.testing.assert_array_equal(getattr(trace, part)[there], getattr(expected, part))
    np.testing.assert_array_equal(trace.theta, expected.theta)
    np.testing.assert_array_equal(trace.actions[holes[:3]], trace.actions[holes[:3] + 1])
    assert learner.rounds == 200


def test_a_skipped_row_is_a_round_for_the_oracle():
    X, y = np.ones((3, 1)), np.array([1.0, np.nan, 1.0])
    oracle = rd.Oracle(1, loss=losses.Squared(), clean=[True, True, False], step=steps.Constant(0.25))
    trace = rd.play(oracle, rd.Stream(X, y), bad_rows="skip")
    np.testing.assert_array_equal(trace.weights, [1.0, 0.0, 0.0])


# --- forms of arrays ---


def strided(X: np.ndarray) -> np.ndarray:
    out = np.full((2 * len(X), 3 * X.shape[1]), np.nan, X.dtype)
    out[::2, ::3] = X
    return out[::2, ::3]


def read_only(X: np.ndarray) -> np.ndarray:
    out = X.copy()
    out.flags.writeable = False
    return out


def misaligned(X: np.ndarray) -> np.ndarray:
    out = np.zeros(X.nbytes + 1, np.uint8)[1:].view(X.dtype).reshape(X.shape)
    out[:] = X
    return out


FORMS = {
    "Fortran order": np.asfortranarray,
    "strided": strided,
    "backwards": lambda X: np.ascontiguousarray(X[::-1])[::-1],
    "columns backwards": lambda X: np.ascontiguousarray(X[:, ::-1])[:, ::-1],
    "read-only": read_only,
    "sliced": lambda X: np.vstack([X, X])[: len(X)],
    "misaligned": misaligned,
    "other byte order": lambda X: X.astype(X.dtype.newbyteorder()),
    "subclass": lambda X: X.view(np.recarray),
    "broadcast of itself": lambda X: np.lib.stride_tricks.as_strided(X, writeable=False),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [3, 600])
@pytest.mark.parametrize("name", ["ball", "simplex"])
def test_every_form_of_array_gives_the_same_bits(form, name, dim, dtype):
    X, y = (array[:60] for array in records(dim, dtype))
    formed = FORMS[form](X)
    kept = formed.copy()
    plain, other, by_row = make(name, dim), make(name, dim), make(name, dim)
    expected = rd.play(plain, rd.Stream(X, y), keep_actions=True)
    targets = FORMS[form](y[:, np.newaxis].copy())[:, 0]
    assert_same([rd.play(other, rd.Stream(formed, targets), keep_actions=True)], other, expected, plain.state())
    for x, target in zip(formed, targets, strict=True):
        by_row.update(x, target)
    assert reference.same_state(by_row.state(), plain.state())
    np.testing.assert_array_equal(formed, kept)


def test_memory_mapped_records_are_played_as_they_are(tmp_path):
    X, y = records(100, np.float64)
    np.save(tmp_path / "X.npy", X)
    expected, state = whole("learn", 100, np.float64)
    for mode in ("r", "r+", "c"):
        learner = make("learn", 100)
        trace = rd.play(learner, rd.Stream(np.load(tmp_path / "X.npy", mmap_mode=mode), y), keep_actions=True)
        assert_same([trace], learner, expected, state)


def test_lists_are_read_as_floats():
    X, y = (array[:20] for array in records(3, np.float64))
    plain, listed, by_row = make("learn", 3), make("learn", 3), make("learn", 3)
    expected = rd.play(plain, rd.Stream(X, y), keep_actions=True)
    trace = rd.play(listed, rd.Stream(X.tolist(), y.tolist()), keep_actions=True)
    assert_same([trace], listed, expected, plain.state())
    for x, target in zip(X.tolist(), y.tolist(), strict=True):
        by_row.update(x, target)
    assert reference.same_state(by_row.state(), plain.state())
    whole_numbers = rd.Stream([[1, 2], [3, 4]], [1, 0])
    assert whole_numbers.X.dtype == whole_numbers.y.dtype == np.float64


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("name", SENTENCES)
def test_records_are_not_touched_and_may_be_reused(name, dim):
    X, y = (array[:50].copy() for array in records(dim, np.float64))
    kept_X, kept_y = X.copy(), y.copy()
    learner, other = make(name, dim), make(name, dim)
    rd.play(learner, rd.Stream(X, y))
    np.testing.assert_array_equal(X, kept_X)
    np.testing.assert_array_equal(y, kept_y)
    state, theta = learner.state(), learner.theta
    X[:] = np.nan
    assert reference.same_state(learner.state(), state)
    np.testing.assert_array_equal(learner.theta, theta)
    buffer = np.empty(dim)
    for x, target in zip(kept_X, kept_y, strict=True):
        buffer[:] = x
        other.update(buffer, target)
        buffer[:] = np.nan
    assert reference.same_state(other.state(), state)


# --- streams and traces ---


def test_a_trace_says_how_it_went():
    learner = rd.OGD(1, loss=losses.Squared(), step=steps.Constant(0.25))
    trace = rd.play(learner, rd.Stream([[1.0], [1.0], [1.0]], [2.0, np.nan, 2.0]), bad_rows="skip", progress=True)
    assert repr(trace) == "Trace(3 rounds, median loss 1, mean weight 0.667, 1 skipped)"
    assert len(trace) == learner.rounds == 3
    np.testing.assert_array_equal(trace.losses, [4.0, 0.0, 1.0])


def test_a_learner_goes_on_from_where_it_is():
    learner = rd.OGD(1, loss=losses.Squared(), step=steps.StronglyConvex(2.0))
    stream = rd.Stream([[1.0]], [2.0])
    np.testing.assert_array_equal([rd.play(learner, stream).theta.item() for _ in range(2)], [2.0, 2.0])
    assert learner.rounds == 2


def test_a_stream_gives_back_what_nature_made():
    X, y = records(3, np.float64)
    corrupted, clean = y.copy(), np.ones(ROUNDS, dtype=bool)
    places = np.array([3, 50, 699])
    corrupted[places], clean[places] = 100.0, False
    stream = rd.Stream(X, corrupted, clean=clean, originals=rd.Originals(places, X[places], y[places]))
    assert stream.corrupted == 3
    np.testing.assert_array_equal(stream.uncorrupted().y, y)
    np.testing.assert_array_equal(stream.y, corrupted)
    with pytest.raises(errors.DataError, match="originals"):
        rd.Stream(X, corrupted, clean=clean).uncorrupted()
    assert rd.Stream(X, y).uncorrupted().y is not None
