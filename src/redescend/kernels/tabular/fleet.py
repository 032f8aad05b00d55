"""Many models of one shape, each in a row of one array: records go to the row of their model.

The rows are learned from by the same compiled functions as single models, so that the bits are the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from redescend.kernels.compiler import compiled, inlined, uncounted
from redescend.kernels.tabular import dense, selftuning
from redescend.kernels.tabular.standardize import STATISTICS
from redescend.numeric import Array

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
def begin_run(buffer: Array, Y: Array, first: int, last: int) -> tuple[Array, dense.TableOutcomes]:
    """The targets of a run, and arrays for its weights and predictions, filled with NaN."""
    outputs, count = len(Y), last - first
    y = buffer[0, : outputs * count].reshape(outputs, count)
    weights = buffer[1, : outputs * count].reshape(outputs, count)
    predictions = buffer[2, : outputs * count].reshape(outputs, count)
    for k in range(outputs):
        for i in range(count):
            y[k, i] = Y[k, first + i]
            weights[k, i] = predictions[k, i] = np.nan
    return y, dense.TableOutcomes(weights, predictions)


@inlined
def end_run(
    X: Array, first: int, fleet: PackedModels, row: Array, run: dense.TableOutcomes, out: dense.TableOutcomes
) -> None:
    """Copy the weights and predictions of a run, and count its ones."""
    outputs, count = run.weights.shape
    for k in range(outputs):
        for i in range(count):
            out.weights[k, first + i], out.predictions[k, first + i] = run.weights[k, i], run.predictions[k, i]
    ones = part(row, fleet.ends, ONES)
    for i in range(first, first + count):
        for j in range(len(fleet.indicators)):
            ones[j] += X[i, fleet.indicators[j]]


@compiled
def learn_by_descent(
    fleet: PackedModels, runs: Runs, config: dense.DescentConfig, out: dense.TableOutcomes, work_size: int
) -> None:
    """Learn from runs of records. Where a model would move too far, the rest of its run has weights of NaN."""
    fleet, out = PackedModels(uncounted(fleet[0]), fleet[1], fleet[2]), dense.TableOutcomes(*out)
    X, Y, starts, places = uncounted(runs[0]), runs[1], runs[2], runs[3]
    outputs, dim, ends, longest = len(Y), X.shape[1], fleet.ends, longest_run(starts)
    buffer = np.empty((3, outputs * longest))
    once, work, means = np.ones(longest), np.empty(work_size), np.empty((0, dim + 1))
    for run in range(len(places)):
        first, last, row = starts[run], starts[run + 1], fleet.rows[places[run]]
        y, own = begin_run(buffer, Y, first, last)
        state = dense.DescentState(
            table(row, ends, MODELS, outputs),
            means,
            part(row, ends, PROGRESS),
            table(row, ends, SAMPLE, dim),
            table(row, ends, STATS, STATISTICS),
            table(row, ends, TARGET_SAMPLE, outputs + 1),
            table(row, ends, TARGET_STATS, STATISTICS),
        )
        learned = dense.learn(dense.TableRows(X[first:last], y, once[: last - first]), state, config, own, work)
        own.weights[:, learned:] = np.nan
        end_run(X, first, fleet, row, own, out)


@compiled
def learn_by_selftuning(
    fleet: PackedModels, runs: Runs, config: selftuning.TableConfig, out: dense.TableOutcomes, work_size: int
) -> None:
    """Learn from runs of records; no row moves a model too far."""
    fleet, out = PackedModels(uncounted(fleet[0]), fleet[1], fleet[2]), dense.TableOutcomes(*out)
    X, Y, starts, places = uncounted(runs[0]), runs[1], runs[2], runs[3]
    outputs, dim, ends, longest = len(Y), X.shape[1], fleet.ends, longest_run(starts)
    buffer = np.empty((3, outputs * longest))
    once, work, means = np.ones(longest), np.empty(work_size), np.empty((0, dim + 1))
    for run in range(len(places)):
        first, last, row = starts[run], starts[run + 1], fleet.rows[places[run]]
        y, own = begin_run(buffer, Y, first, last)
        state = selftuning.TableState(
            table(row, ends, MODELS, outputs),
            means,
            part(row, ends, PROGRESS),
            table(row, ends, SAMPLE, dim),
            table(row, ends, STATS, STATISTICS),
        )
        selftuning.learn(dense.TableRows(X[first:last], y, once[: last - first]), state, config, own, work)
        end_run(X, first, fleet, row, own, out)
