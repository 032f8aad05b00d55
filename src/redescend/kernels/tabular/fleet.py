"""Many models of one shape, each in a row of one array: records go to the row of their model.

The rows are learned from by the same compiled functions as single models, so that the bits are the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from redescend.kernels.compiler import compiled, inlined, uncounted
from redescend.kernels.tabular import dense
from redescend.kernels.tabular.standardize import STATISTICS
from redescend.numeric import Array

_learn: Any = dense.learn

(SAMPLE, STATS, PROGRESS, MODELS, TARGET_SAMPLE, TARGET_STATS, ONES) = range(7)
"""The parts of a row, in order; the last counts how often each indicator was 1."""


class Runs(NamedTuple):
    """Runs of records, each of one model: run i is ``starts[i]`` up to ``starts[i + 1]``, of the row ``places[i]``."""

    X: Array
    Y: Array
    starts: Array
    places: Array


class PackedModels(NamedTuple):
    """The rows of all models, where the parts of a row end, and the features that are counted."""

    rows: Array
    ends: Array
    indicators: Array


@inlined
def view_part(row: Array, ends: Array, which: int) -> Array:
    return row[ends[which] : ends[which + 1]]


@inlined
def view_table(row: Array, ends: Array, which: int, height: int) -> Array:
    flat = view_part(row, ends, which)
    return flat.reshape(height, len(flat) // height)


@inlined
def find_longest_run(starts: Array) -> int:
    longest = 0
    for run in range(len(starts) - 1):
        longest = max(longest, starts[run + 1] - starts[run])
    return longest


@inlined
def begin_run(buffer: Array, Y: Array, first: int, last: int) -> tuple[Array, tuple[Array, Array]]:
    """The targets of a run, and arrays for its weights and predictions, filled with NaN."""
    outputs, count = len(Y), last - first
    y = buffer[0, : outputs * count].reshape(outputs, count)
    weights = buffer[1, : outputs * count].reshape(outputs, count)
    predictions = buffer[2, : outputs * count].reshape(outputs, count)
    for k in range(outputs):
        for i in range(count):
            y[k, i] = Y[k, first + i]
            weights[k, i] = predictions[k, i] = np.nan
    return y, (weights, predictions)


@inlined
def end_run(
    X: Array, first: int, fleet: PackedModels, row: Array, own: tuple[Array, Array], out: dense.TableOutcomes
) -> None:
    """Copy the weights and predictions of a run, and count its ones."""
    weights, predictions = own
    for k in range(len(weights)):
        for i in range(weights.shape[1]):
            out.weights[k, first + i], out.predictions[k, first + i] = weights[k, i], predictions[k, i]
    ones = view_part(row, fleet.ends, ONES)
    for i in range(first, first + weights.shape[1]):
        for j in range(len(fleet.indicators)):
            ones[j] += X[i, fleet.indicators[j]]


@inlined
def view_state(row: Array, ends: Array, outputs: int, dim: int, means: Array) -> tuple[Array, ...]:
    """The fields of `dense.TableState`; the statistics of targets are empty where there are none.

    Plain tuples, as engines pass them: `learn` is then compiled only once for both.
    """
    return (
        view_table(row, ends, MODELS, outputs),
        means,
        view_part(row, ends, PROGRESS),
        view_table(row, ends, SAMPLE, dim),
        view_table(row, ends, STATS, STATISTICS),
        view_table(row, ends, TARGET_SAMPLE, outputs + 1),
        view_table(row, ends, TARGET_STATS, STATISTICS),
    )


@compiled
def learn(fleet: PackedModels, runs: Runs, config: dense.DescentConfig, out: dense.TableOutcomes, size: int) -> None:
    """Learn from runs of records; where a model would move too far, the rest of its run has weights of NaN."""
    fleet, runs, out = PackedModels(*uncounted(fleet)), Runs(*uncounted(runs)), dense.TableOutcomes(*uncounted(out))
    outputs, dim, longest = len(runs.Y), runs.X.shape[1], find_longest_run(runs.starts)
    buffer, ones = np.empty((3, outputs * longest)), np.ones(longest)
    work, means = np.empty(size), np.empty((0, dim + 1))
    for run in range(len(runs.places)):
        first, last, row = runs.starts[run], runs.starts[run + 1], fleet.rows[runs.places[run]]
        y, own = begin_run(buffer, runs.Y, first, last)
        rows = (runs.X[first:last], y, ones[: last - first])
        learned = _learn(rows, view_state(row, fleet.ends, outputs, dim, means), config, own, work)
        own[0][:, learned:] = np.nan
        end_run(runs.X, first, fleet, row, own, out)
