"""The cells of a column that do not fit the other columns, and the list of all columns together.

Two kinds of evidence must agree that a number is wrong: the belief, which learns from the table what wrong values look
like, and the tail of the errors of its column, in units of their intervals. Where clean errors have a heavier tail than
the belief assumes, as in columns with many zeros, it doubts too many of them; the tail alone says nothing about errors
that are common. A number that is far out of its column is wrong by itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from redescend.belief import Verdict
from redescend.belief.suspects import HALF, are_suspects, q_values
from redescend.numeric import Array
from redescend.streaming.audit.columns import LONG_RUN, MAX_AUDITED_LABELS
from redescend.streaming.audit.kinds import SENTINELS
from redescend.streaming.audit.rules import RowCheck, comes_in_runs
from redescend.streaming.far_out import fit_tail
from redescend.streaming.model import StreamModel
from redescend.streaming.report.formatting import format_value
from redescend.streaming.rounds import Rounds
from redescend.streaming.summary.records import StuckRun, StuckRuns

MOST_SUSPECTS = 0.05
"""A column of labels, or of few numbers, with a larger share of suspects is not predicted well enough to list them."""

MOST_MISTAKES, NEARLY_ALL = 0.02, 0.9
"""Labels are not predicted well if a larger share of the predictions is wrong, unless this share of the wrong ones are
suspects: a wrong label is told from a rare one only where the others are right."""

TAILS = ((0.9, 0.99), (0.8, 0.95))
"""Quantiles through which tails of errors are fitted: the second is not changed by up to one wrong value in twenty."""

NARROW, FINE, CLOSE = 0.25, 0.05, 0.2
"""An error is measured by the distance from the prediction to the end of its interval, which is at least these parts of
the interval and of the spread of the column; errors up to the last one, in these units, are alike."""

SMALLEST, LARGE = 0.1, 1.0
"""Numbers with a smaller surprise than the first are not listed. One with at least the second is listed if it is right
with the probability that all lists allow, another only with the share of false alarms asked for."""

SAME = 0.02  # predictions that differ less, relative to the spread of the column, are nearly the same

COMMON = 0.25
"""A number is no suspect if, by the tail, at least this many clean values are expected for each that is as far out."""

FREQUENT = 0.01  # the share of records that a code has at least

MOST_RUNS = 3  # the most stuck runs of a column that are reported
CHANCE = 0.01  # the expected number of runs as long as a stuck run, if its value is frequent elsewhere, at most


class Cell(NamedTuple):
    """A value that does not fit the others of its record, what was expected instead, and how sure that is.

    `surprise` is how far the value is from the prediction, in units of the range of eight in ten values of its column;
    for labels, the log-odds of an error, divided by ten. `kind` says what is wrong, if that has a name, see
    `redescend.streaming.audit.kinds`. Typos, wrong signs, dates out of order and records that cannot be read are
    found by a rule, without a probability; the last have an empty column.
    """

    row: int
    column: str
    value: Any
    expected: Any
    low: float | None
    high: float | None
    clean_probability: float | None
    q_value: float | None
    surprise: float | None
    kind: str = ""


class ColumnVerdict(NamedTuple):
    """The suspect cells of a column, with probabilities and surprises; whether they are too many; and stuck runs."""

    suspects: tuple[Rounds, Array, Array]
    unpredictable: bool
    stuck: list[StuckRun]

    def describe_stuck(self, name: str, rows: RowCheck) -> list[str]:
        """Where the column is stuck, a sentence each; not where `rows` are a group, such as all records of a shop."""
        return [
            f"{name!r} is stuck at {format_value(run.target)} from row {run.first:,} to row {run.last:,}."
            for run in self.stuck
            if not rows.is_group(run.first, run.last)
        ]


def judge_column(model: StreamModel, rounds: Rounds) -> ColumnVerdict:
    """Judge the cells of a column."""
    judged = rounds.judged
    assert judged is not None
    verdict = Verdict(judged.clean_log_odds, judged.stuck)
    belief = verdict.clean_probability
    suspects = np.count_nonzero(belief <= HALF)
    unpredictable = suspects > MOST_SUSPECTS * len(rounds)
    if model.schema.classifies:
        mistakes = np.count_nonzero(rounds.predictions != rounds.targets)
        unpredictable |= mistakes > MOST_MISTAKES * len(rounds) and suspects < NEARLY_ALL * mistakes
        surprise = -0.1 * verdict.clean_log_odds
        probability = np.ones(len(rounds)) if unpredictable else belief
    else:
        spread = _measure_spread(rounds)
        errors = _measure_errors(rounds)
        surprise, rare = errors / spread, _count_as_far(rounds, spread)
        if rare is None:
            # There are too few values for a tail.
            probability = np.ones(len(rounds)) if unpredictable else belief
        else:
            unpredictable, probability = np.False_, np.where(rare < COMMON, belief, 1.0)
        probability = _judge_values(rounds, errors, spread, probability)
        ordinary = (surprise < LARGE) | _are_codes(rounds.targets)
        small = (surprise < SMALLEST) | _find_unlearned(rounds, spread, (probability <= HALF) & ordinary)
        probability = np.where(small, 1.0, probability)
    found, runs = np.flatnonzero(probability <= HALF), StuckRuns()
    runs.add(rounds, verdict.stuck)
    stuck = [run for run in runs.longest(MOST_RUNS) if run.records >= LONG_RUN and _beats_chance(run, rounds)]
    return ColumnVerdict((rounds[found], probability[found], surprise[found]), bool(unpredictable), stuck)


def _measure_spread(rounds: Rounds) -> float:
    """The range of eight in ten values of a column; where nearly all are equal, its standard deviation."""
    assert rounds.judged is not None
    deviation = float(np.std(rounds.targets))
    # Not the scale of the errors: it is nearly 0 where a column nearly always has one value.
    spread = max(float(np.ptp(np.quantile(rounds.targets, [0.1, 0.9]))), float(np.median(rounds.judged.margin)))
    return spread if spread > 1e-9 * deviation else deviation or 1.0


def _count_as_far(rounds: Rounds, spread: float) -> Array | None:
    """By the tail of errors, the expected number of clean values for each that is as far out; None without a tail."""
    errors, width = np.abs(rounds.targets - rounds.predictions), rounds.high - rounds.low
    above = rounds.targets > rounds.predictions
    sides = np.where(above, rounds.high - rounds.predictions, rounds.predictions - rounds.low)
    deviations = np.maximum(errors / np.maximum(np.maximum(sides, NARROW * width), FINE * spread), CLOSE)
    tails = [fit_tail(deviations, quantiles=quantiles) for quantiles in TAILS]
    counts = [tail.count_expected(deviations) for tail in tails if tail is not None]
    return np.min(counts, axis=0) if counts else None


def _measure_errors(rounds: Rounds) -> Array:
    """The distances of numbers from their predictions; where these are outside the range of the column, at most those
    from its end, and 0 for values within: the prediction is wrong, not an ordinary value.
    """
    targets, predictions = rounds.targets, rounds.predictions
    low, high = np.quantile(targets, [0.01, 0.99])
    within = np.clip(predictions, low, high)
    errors = np.minimum(np.abs(targets - predictions), np.abs(targets - within))
    ordinary = (targets - predictions) * (targets - within) < 0.0
    ordinary |= (predictions != within) & (targets >= low) & (targets <= high)
    return np.where(ordinary, 0.0, errors)


def _judge_values(rounds: Rounds, errors: Array, spread: float, probability: Array) -> Array:
    """These probabilities, but 1 within half the width of an interval, and less for values far out of their column."""
    probability = np.where(2.0 * errors <= rounds.high - rounds.low, 1.0, probability)
    # A value that was expected is not far.
    distances = np.abs(rounds.targets - np.median(rounds.targets))
    tail = fit_tail(distances, floor=spread)
    return probability if tail is None else np.minimum(probability, tail.count_expected(np.minimum(errors, distances)))


def _find_unlearned(rounds: Rounds, spread: float, suspect: Array) -> Array:
    """Which suspects belong to a group that the model has not learned, such as a region with few records.

    They have the value and nearly the prediction of another suspect, or a value that is a suspect nearly wherever it
    occurs; errors are rarely the same twice.
    """
    pairs = np.column_stack([rounds.targets, np.round(rounds.predictions / (SAME * spread))])[suspect]
    _, codes, counts = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    unlearned = np.zeros(len(rounds), bool)
    unlearned[np.flatnonzero(suspect)] = counts[codes.ravel()] > 1
    _, values = np.unique(rounds.targets, return_inverse=True)
    doubted = np.bincount(values, suspect)
    return unlearned | (suspect & ((doubted > 1) & (2 * doubted >= np.bincount(values)))[values])


def _are_codes(values: Array) -> Array:
    """Which numbers are codes of groups: frequent values of a column that has few, apart from sentinel values.

    >>> _are_codes(np.array([0.0] * 80 + [0.1] * 15 + [1.0] * 4 + [99.0])).tolist() == [True] * 99 + [False]
    True
    """
    found, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    few = len(found) <= MAX_AUDITED_LABELS
    frequent = few & (counts >= FREQUENT * len(values)) & ~np.isin(found, list(SENTINELS))
    return np.asarray(frequent[codes], bool)


def _beats_chance(run: StuckRun, rounds: Rounds) -> bool:
    """Whether a run is longer than independent values with the share of its value elsewhere would make it.

    Where all values come in runs, none is exceptional.
    """
    targets = rounds.targets
    if comes_in_runs(targets[(rounds.rows < run.first) | (rounds.rows > run.last)]):
        return False
    others = max(len(targets) - run.records, 1)
    elsewhere = max(int(np.count_nonzero(targets == run.target)) - run.records, 0)
    return bool(others * (elsewhere / others) ** run.records <= CHANCE)


def select_cells(
    found: list[tuple[Rounds, Array, Array]],
    models: dict[str, StreamModel],
    limits: dict[str, tuple[float, float]],
    fdr: float,
) -> list[Cell]:
    """The most surprising cell of each row, and all that are far out, as many as the share of false alarms allows."""
    names = list(models)
    parts = [(place, index) for place, (rounds, _, _) in enumerate(found) for index in range(len(rounds))]
    surprise = np.concatenate([np.empty(0), *(part[2] for part in found)])
    best: dict[tuple[int, str], int] = {}
    for at in np.argsort(-surprise, kind="stable").tolist():
        place, index = parts[at]
        rounds, (low, high) = found[place][0], limits.get(names[place], (-np.inf, np.inf))
        # A value that is far out predicts no other, so it is judged on its own.
        far_column = "" if low <= rounds.targets[index] <= high else names[place]
        best.setdefault((int(rounds.rows[index]), far_column), at)
    # Without a value that is far out, the others of its row are predicted badly.
    far = {row for row, column in best if column}
    chosen = [at for (row, column), at in best.items() if column or row not in far or surprise[at] >= LARGE]
    probability = np.array([found[parts[at][0]][1][parts[at][1]] for at in chosen])
    numbers = np.array([not models[names[parts[at][0]]].schema.classifies for at in chosen], bool)
    q_value = q_values(probability)
    listed = are_suspects(q_value, probability, fdr, numbers)
    listed &= ~numbers | (surprise[chosen] >= LARGE) | (probability <= fdr)
    cells = []
    for rank in np.flatnonzero(listed).tolist():
        place, index = parts[chosen[rank]]
        name = names[place]
        record = found[place][0].record(index, models[name].schema)
        expected = (record.prediction, record.low, record.high)
        evidence = (float(probability[rank]), float(q_value[rank]), float(surprise[chosen[rank]]))
        cells.append(Cell(record.row, name, record.target, *expected, *evidence))
    return cells
