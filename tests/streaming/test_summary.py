"""The summary: the same bits in whatever batches the rounds come, against slow references, in a fixed size."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import redescend as rd
from redescend.errors import DataError
from redescend.sources.batch import Bad
from redescend.sources.kinds import Kind
from redescend.streaming.encoding.features import Feature
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.rounds import Judged, Rounds
from redescend.streaming.summary import Summary, histograms, records
from redescend.streaming.summary.records import Reservoir, StuckRuns

PROPERTY = settings(deadline=None, derandomize=True, max_examples=60)
NUMBERS = Schema("y", Kind.NUMBER, "regression", [], [Feature("x", Kind.NUMBER, "number")])
LABELS = Schema("y", Kind.TEXT, "classification", ["no", "so", "yes"], [Feature("x", Kind.TEXT, "hashed")])


def stream(count, seed, schema=NUMBERS, gaps=True):
    """Rounds with ties in weight and loss, losses of 0 and beyond all, and rows of bad records between them."""
    random = np.random.default_rng(seed)
    steps = random.integers(1, 4, count) if gaps else np.ones(count, dtype=np.int64)
    weights = random.choice([0.0, 1e-300, 0.01, 0.1, 0.5, 1.0], count) * random.choice([1.0, 0.999], count)
    losses = random.choice([0.0, 1e-90, 0.5, 1.0, 3.0, 1e200], count)
    if schema is NUMBERS:
        numbers = (random.normal(size=count), random.normal(size=count), np.full(count, np.nan))
    else:
        numbers = (*random.integers(0, 3, (2, count)).astype(float), random.choice([0.0, 0.5, 0.96, 1.0], count))
    judged = None
    if schema is NUMBERS and seed % 2:
        log_odds = np.log(np.maximum(weights, 1e-300)) - np.log1p(-np.minimum(weights, 0.999))
        ends = np.sort(random.normal(size=(2, count)), axis=0)
        ends[0, random.random(count) < 0.1] = np.nan
        judged = Judged(log_odds, *ends, *np.zeros((2, count)), weights < 0.1)
    return Rounds(np.cumsum(steps), *numbers, losses, weights, judged=judged)


def batch_of(rounds):
    """A batch whose value of x says which row it is; every second record of it was kept."""
    values = np.repeat(rounds.rows.astype(float), 2)
    table = pa.record_batch({"x": values if len(rounds) else pa.array([], pa.float64())})
    return SimpleNamespace(table=table, files="a.csv"), 2 * np.arange(len(rounds)) + 1


def between(rounds, low, high):
    """The rows from low up to high that are of no round: bad records."""
    return [
        Bad(row, "a.csv", f"column 'x': 'v{row}' is not a number", b"\xff raw")
        for row in sorted(set(range(low, high)) - set(rounds.rows.tolist()))
    ]


def summarized(rounds, cuts, schema=NUMBERS, transform=None):
    found = Summary(schema, transform)
    ends = [0, *sorted(cuts), len(rounds)]
    seen = 1
    for low, high in itertools.pairwise(ends):
        part = rounds[low:high]
        found.add(part, *batch_of(part))
        if len(part):
            found.add_rejected(between(rounds, seen, int(part.rows[-1])))
            seen = int(part.rows[-1])
    return found


def same(one, other):
    """Whether two states are equal in every bit."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    return repr(one) == repr(other)


@given(st.integers(0, 3000), st.integers(0, 99), st.lists(st.integers(0, 3000), max_size=12), st.booleans())
@PROPERTY
def test_any_split_into_batches_leaves_the_same_bits(count, seed, cuts, labels):
    schema = LABELS if labels else NUMBERS
    rounds = stream(count, seed, schema)
    whole = summarized(rounds, [], schema).state()
    assert same(summarized(rounds, [min(cut, count) for cut in cuts], schema).state(), whole)


@given(st.integers(1, 2000), st.integers(0, 99), st.integers(0, 2000))
@PROPERTY
def test_a_restored_summary_goes_on_as_if_it_had_never_stopped(count, seed, cut):
    rounds = stream(count, seed)
    before = summarized(rounds[:cut], [])
    again = Summary(NUMBERS)
    again.restore(before.state())
    assert same(again.state(), before.state())
    rest = rounds[cut:]
    for found in (before, again):
        found.add(rest, *batch_of(rest))
    assert same(again.state(), before.state())


def test_a_state_can_be_saved(tmp_path):
    state = summarized(stream(700, 1, LABELS), [300], LABELS).state()
    rd.save(state, tmp_path / "summary.safetensors")
    assert same(rd.load(tmp_path / "summary.safetensors"), state)


def test_the_curve_counts_every_round_where_it_is():
    rounds = stream(5000, 2)
    found = summarized(rounds, [10, 11, 4000]).histograms
    each = 2**found.shift
    assert rounds.rows[-1] / histograms.BINS <= each < 2 * rounds.rows[-1] / histograms.BINS
    counts = np.zeros((histograms.BINS, 9), dtype=int)
    bad = np.zeros(histograms.BINS, dtype=int)
    for row, weight in zip(rounds.rows, rounds.weights, strict=True):
        counts[(row - 1) // each, np.searchsorted(histograms.LEVELS, weight, side="right")] += 1
    for one in between(rounds, 1, int(rounds.rows[-1])):
        bad[(one.row - 1) // each] += 1
    assert (found.weights == counts).all()
    assert (found.rejected == bad).all()
    edges, merged = found.edges(100), found.merge(found.weights, 100)
    assert len(edges) == len(merged) + 1 <= 101
    for low, high, weighed in zip(edges, edges[1:], merged, strict=False):
        here = rounds.weights[(rounds.rows >= low) & (rounds.rows < high)]
        assert weighed[found.limits.cells[1] :].sum() == (here >= 0.5).sum()


def test_records_within_their_intervals_are_counted_where_they_are():
    rounds = stream(5000, 7)
    found = summarized(rounds, [10, 11, 4000]).histograms
    counts = np.zeros((histograms.BINS, 4), dtype=int)
    parts = (rounds.rows, rounds.targets, rounds.low, rounds.high, rounds.clean_probability)
    for row, target, low, high, probability in zip(*parts, strict=True):
        if low == low:
            place, inside = (row - 1) // 2**found.shift, int(low <= target <= high)
            counts[place, inside] += 1
            counts[place, 2 + inside] += round(probability * histograms.FINE)
    assert counts[:, :2].sum(axis=0).min() > 1000
    assert (found.coverage == counts).all()


@given(st.integers(0, 99), st.sampled_from([1e-60, 1e-9, 1.0, 1e40]))
@PROPERTY
def test_the_median_loss_is_close_in_any_unit(seed, unit):
    losses = unit * np.random.default_rng(seed).exponential(size=501) ** 3
    found = histograms.StreamHistograms()
    found.add(np.arange(1, 502), np.ones(501), losses)
    assert histograms.compute_quantile(found.all_losses, 0.5) == pytest.approx(np.median(losses), rel=0.02)
    assert found.loss_quantiles(0.9, 1)[0] == pytest.approx(np.quantile(losses, 0.9), rel=0.35)


def test_losses_of_nothing_and_beyond_all_numbers_have_a_place():
    found = histograms.StreamHistograms()
    assert np.isnan(histograms.compute_quantile(found.all_losses, 0.5))
    found.add(np.arange(1, 4), np.array([1.0, np.nan, 2.0]), np.array([0.0, 0.0, np.inf]))
    assert histograms.compute_quantile(found.all_losses, 0.5) == 0.0
    assert found.weight_counts.tolist() == [1, *[0] * 7, 2]


def test_the_least_believed_are_those_of_a_sort_and_have_their_values():
    rounds = stream(3000, 8)
    found = summarized(rounds, range(7, 3000, 131)).least
    order = sorted(range(3000), key=lambda i: (rounds.weights[i], -rounds.losses[i], rounds.rows[i]))[
        : records.MAX_SUSPECTS
    ]
    assert [one.round.row for one in found] == [rounds.rows[i] for i in order]
    for one, i in zip(found, order, strict=True):
        assert one.values == {"x": float(rounds.rows[i])}
        assert (one.round.target, one.round.prediction) == (rounds.targets[i], rounds.predictions[i])
        assert (one.round.weight, one.round.loss, one.file) == (rounds.weights[i], rounds.losses[i], "a.csv")


def test_values_of_the_least_believed_are_short_and_labels_are_words():
    part = stream(1, 4, LABELS)
    table = pa.record_batch({"x": ["é" * 5000]})
    found = Summary(LABELS)
    found.add(part, SimpleNamespace(table=table, files="b"), np.array([0]))
    assert found.least[0].values["x"] == "é" * records.MAX_TEXT + "…"
    assert found.least[0].round.target == LABELS.labels[int(part.targets[0])]


def test_every_record_has_the_same_chance_to_be_drawn():
    drawn = np.zeros(4000)
    for start in range(60):
        sample = Reservoir(400)
        rounds = stream(4000, start, gaps=False)
        sample.add(Rounds(rounds.rows + 4000 * start, *list(rounds.arrays())[1:]))
        rows = sample.rounds.rows - 4000 * start
        assert len(set(rows.tolist())) == 400
        assert (sample.rounds.targets == rounds.targets[rows - 1]).all()
        drawn[rows - 1] += 1
    # Each count is binomial with mean 6 and standard deviation 2.32; neither a tenth nor the odd rows are preferred.
    assert drawn.max() < 18
    assert np.abs(drawn.reshape(10, -1).sum(axis=1) - 2400).max() < 200
    assert abs(drawn[::2].sum() - 12000) < 500


def test_doubt_is_relative_to_what_a_gate_can_believe():
    """LEARN at b = 10 believes at most 1/11 of any record: a tenth of that is the limit."""
    rounds = Rounds(np.arange(1, 4), *np.zeros((4, 3)), np.array([1 / 11, 1 / 109, 1 / 111]))
    found = summarized(rounds, [], transform=rd.transforms.Learn(1.0, 10.0))
    assert (found.learned, found.suspect_count) == (3, 1)
    assert found.suspect_sample.rounds.rows.tolist() == [3]
    assert sorted(found.clean_sample().rows.tolist()) == [1, 2]
    assert found.clean_share == pytest.approx(2 / 3)


def test_labels_are_counted():
    rounds = stream(2000, 5, LABELS)
    found = summarized(rounds, [900], LABELS)
    for label in range(3):
        for predicted in range(3):
            here = (rounds.targets == label) & (rounds.predictions == predicted)
            doubted = here & (rounds.weights < 0.5)
            assert found.confusion[label, predicted].tolist() == [(here & ~doubted).sum(), doubted.sum()]
    for cell, probability in {0: 0.0, 10: 0.5, 19: (0.96, 1.0)}.items():
        here = np.isin(rounds.probabilities, probability)
        right = here & (rounds.targets == rounds.predictions)
        assert found.calibration[cell, :2].tolist() == [(here & ~right).sum(), right.sum()]
        assert found.calibration[cell, 2] / histograms.FINE == pytest.approx(rounds.probabilities[here].sum(), rel=1e-6)
    assert found.calibration[:, :2].sum() == 2000


def find_runs(rounds, stuck):
    """Record by record: [first row, last row, records, target, key]."""
    runs, last = [], {}
    for row, key, target, held in zip(rounds.rows, rounds.keys, rounds.targets, stuck > 0.5, strict=True):
        name = rounds.names[key]
        if not held:
            last[key] = None
        elif last.get(key) is not None and last[key][3] == target:
            last[key][1], last[key][2] = row, last[key][2] + 1
        else:
            last[key] = [row, row, 1, target, name]
            runs.append(last[key])
    return runs


@given(st.integers(0, 99), st.lists(st.integers(0, 200), max_size=4))
@PROPERTY
def test_stuck_runs_are_those_of_every_key_wherever_the_stream_is_cut(seed, cuts):
    random = np.random.default_rng(seed)
    rows, keys = np.cumsum(random.integers(1, 3, 200)), random.integers(0, 3, 200)
    targets, stuck = random.integers(0, 2, 200).astype(float), random.choice([0.1, 0.9], 200, p=[0.3, 0.7])
    rounds = Rounds(rows, targets, *np.zeros((4, 200)), keys=keys, names=["a", "b", "c"])
    found = StuckRuns()
    for low, high in itertools.pairwise([0, *sorted(cuts), 200]):
        found.add(rounds[low:high], stuck[low:high])
    runs = find_runs(rounds, stuck)
    assert [list(run) for run in found.longest(len(runs))] == sorted(runs)
    assert [list(run) for run in found.longest(5)] == sorted(sorted(runs, key=lambda run: (-run[2], run[0]))[:5])


def test_reasons_that_differ_only_in_a_value_are_one_and_too_many_are_the_rest():
    found = records.Rejections()
    for row in range(1, 101):
        found.add([Bad(row, "f", f"column 'x{row % 50}': '{row}' is not a number", b"a" * 9000)])
        found.add([Bad(row, "f", f"{row} values where the header has 20", b"\xff")])
    assert sum(found.counts.values()) == 200
    assert found.most_frequent()[0] == "… values where the header has …"
    assert len(found.counts) == records.MAX_KINDS + 1
    assert found.counts[records.OTHER] == 100 - 2 * (records.MAX_KINDS - 1)
    assert max(map(len, found.examples.values())) == records.MAX_EXAMPLES
    examples = [one for shown in found.examples.values() for one in shown]
    assert all(len(one.record) <= records.MAX_TEXT + 1 for one in examples)
    assert found.examples["… values where the header has …"][0][:3] == (1, "f", "1 values where the header has 20")


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("histograms", {"shift": 60}),
        ("histograms", {"rows": 10**9}),
        ("histograms", {"losses": np.array([[10**9], [1]])}),
        ("histograms", {"weights": np.array([[3], [-1]])}),
        ("sample", {"rows": np.arange(3)}),
        ("suspects", [1, 2]),
        ("rejections", [["a", 1]]),
        ("final", [3, 4.0, []]),
        ("metrics", {"recent": np.array([0.0, np.nan, 0.0])}),
        ("metrics", {"cells": np.array([[10**9], [1]])}),
        ("metrics", {"quantiles": {}}),
        ("final", [3, 1.0, [1]]),
        ("confusion", np.zeros((9, 9, 2), dtype=np.int64)),
        ("nothing", 1),
    ],
)
def test_altered_states_are_refused(part, change):
    state = summarized(stream(50, 6), []).state()
    state[part] = state[part] | change if isinstance(change, dict) else change
    with pytest.raises(DataError, match="the file is corrupt or was written by an incompatible version"):
        Summary(NUMBERS).restore(state)
