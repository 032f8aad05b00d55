"""Many models of one shape, each in a row of one array: records go to the row of their model, and nothing else changes.

The rows are learned from by the same compiled functions as models that are alone, so that a model among many is to the
last bit what it would be alone.
"""

from __future__ import annotations

import numpy as np

from redescend.kernels.compiler import compiled, inlined, uncounted
from redescend.kernels.tabular import dense, selftuning
from redescend.numeric import Array

(SAMPLE, UNITS, CLOCK, STATES, SEEN, STANDING, ONES) = range(7)
"""The parts of a row, in order; the last counts how often each indicator was 1."""


@inlined
def part(row: Array, ends: Array, which: int) -> Array:
    return row[ends[which] : ends[which + 1]]


@inlined
def table(row: Array, ends: Array, which: int, height: int) -> Array:
    flat = part(row, ends, which)
    return flat.reshape(height, len(flat) // height)


@inlined
def longest_run(starts: Array) -> int:
    longest = 0
    for run in range(len(starts) - 1):
        longest = max(longest, starts[run + 1] - starts[run])
    return longest


@inlined
def begun(room: Array, Y: Array, first: int, last: int) -> tuple[Array, Array, Array]:
    """The targets of a run, and room for how far it is believed and for what is said; NaN where nothing is."""
    outputs, count = len(Y), last - first
    y = room[0, : outputs * count].reshape(outputs, count)
    gate = room[1, : outputs * count].reshape(outputs, count)
    said = room[2, : outputs * count].reshape(outputs, count)
    for k in range(outputs):
        for i in range(count):
            y[k, i] = Y[k, first + i]
            gate[k, i] = said[k, i] = np.nan
    return y, gate, said


@inlined
def ended(
    X: Array, first: int, indicators: Array, ones: Array, gate: Array, said: Array, believed: Array, predicted: Array
) -> None:
    """Pass on what happened in a run, and count its ones."""
    for k in range(len(gate)):
        for i in range(gate.shape[1]):
            believed[k, first + i], predicted[k, first + i] = gate[k, i], said[k, i]
    for i in range(first, first + gate.shape[1]):
        for j in range(len(indicators)):
            ones[j] += X[i, indicators[j]]


@compiled
def by_descent(
    rows: Array,
    ends: Array,
    X: Array,
    Y: Array,
    starts: Array,
    places: Array,
    standard: int,
    indicators: Array,
    room: int,
    numbers: Array,
    believed: Array,
    predicted: Array,
) -> None:
    """Learn from runs of records, each of one model: run i is the records from ``starts[i]`` up to ``starts[i + 1]``
    and belongs to the row ``places[i]``. Where a model would move too far, the rest of its run is believed by NaN.
    """
    rows, X = uncounted(rows), uncounted(X)
    outputs, dim = len(Y), X.shape[1]
    longest = longest_run(starts)
    runs = np.empty((3, outputs * longest))
    once, work, means = np.ones(longest), np.empty(room), np.empty((0, dim + 1))
    for run in range(len(places)):
        first, last, row = starts[run], starts[run + 1], rows[places[run]]
        y, gate, said = begun(runs, Y, first, last)
        learned = dense.learn(
            X[first:last],
            y,
            once[: last - first],
            standard,
            table(row, ends, SAMPLE, dim),
            table(row, ends, UNITS, 6),
            table(row, ends, SEEN, outputs + 1),
            table(row, ends, STANDING, 6),
            table(row, ends, STATES, outputs),
            numbers,
            means,
            part(row, ends, CLOCK),
            gate,
            said,
            work,
            False,
        )
        gate[:, learned:] = np.nan
        ended(X, first, indicators, part(row, ends, ONES), gate, said, believed, predicted)


@compiled
def by_selftuning(
    rows: Array,
    ends: Array,
    X: Array,
    Y: Array,
    starts: Array,
    places: Array,
    standard: int,
    indicators: Array,
    room: int,
    members: int,
    rates: int,
    second: bool,
    numbers: Array,
    believed: Array,
    predicted: Array,
) -> None:
    """Learn from runs of records as `by_descent` does; no row moves a model too far."""
    rows, X = uncounted(rows), uncounted(X)
    outputs, dim = len(Y), X.shape[1]
    longest = longest_run(starts)
    runs = np.empty((3, outputs * longest))
    once, work, means = np.ones(longest), np.empty(room), np.empty((0, dim + 1))
    for run in range(len(places)):
        first, last, row = starts[run], starts[run + 1], rows[places[run]]
        y, gate, said = begun(runs, Y, first, last)
        selftuning.learn(
            X[first:last],
            y,
            once[: last - first],
            standard,
            table(row, ends, SAMPLE, dim),
            table(row, ends, UNITS, 6),
            table(row, ends, STATES, outputs),
            members,
            rates,
            second,
            numbers,
            means,
            part(row, ends, CLOCK),
            gate,
            said,
            work,
            False,
        )
        ended(X, first, indicators, part(row, ends, ONES), gate, said, believed, predicted)
