"""Sparse rows at order 1: the features of a row are gathered, learned from as a dense row, and scattered back.

The arrays of features, theta, `feature` and P, are stored feature by feature, so that a row touches few cache lines.
What costs all features, a copy of a model or a restart, is allowed only so often that it costs no more than the rows.
"""

from __future__ import annotations

from typing import NamedTuple

from redescend.kernels.compiler import kernel, part
from redescend.kernels.layout import SparseTable
from redescend.kernels.selftuning.layout import (
    AGE,
    CONSTANT,
    FEW,
    LAST,
    LIGHTEST,
    MEMBERS,
    NOTES,
    OPENED,
    POSTERIOR,
    PRIOR,
    RESCALED,
    RESET,
    RESIZED,
    ROUNDS,
    SLOW,
    SMALLEST,
    SQUARE,
    STORED,
    TARGET,
    UNIT,
    WIDEST,
    Config,
    State,
    Work,
    split_state,
    split_work,
    work_size,
)
from redescend.kernels.selftuning.prior import shrink
from redescend.kernels.selftuning.rounds import play
from redescend.kernels.selftuning.units import LEAST, code_of
from redescend.kernels.views import view, window
from redescend.numeric import LARGEST, Array

FEATURE = MEMBERS
COVARIANCE = MEMBERS + 6
STORED_COVARIANCE = MEMBERS + 7
COLUMNS = MEMBERS + 8
"""Numbers of a feature: its coefficient of every member, its statistics, its variance, and the stored one."""


class Buffers(NamedTuple):
    """Features of a row and their values; where a feature is in the row, from 1; a small state, and its work."""

    places: Array
    values: Array
    mark: Array
    state: Array
    work: Array


def buffer_sizes(capacity: int, width: int) -> tuple[int, ...]:
    """Sizes of the buffers, for rows with at most this number of features."""
    return capacity, capacity, width, (COLUMNS + FEW) * capacity + 2 * FEW, work_size(capacity)


@part
def add_place(j: int, value: float, count: int, buffers: Buffers) -> int:
    """Add a feature to the row unless it is there; returns how many there are."""
    if buffers.mark[j] > 0:
        return count
    buffers.places[count], buffers.values[count] = j, value
    buffers.mark[j] = count + 1
    return count + 1


@part
def list_features(
    table: SparseTable, row: int, block: Array, scalar: Array, intercept: int, config: Config, buffers: Buffers
) -> int:
    """List the features of a row: those that are not 0, the intercept, the constant, and the next that l2 shrinks.

    While everything begins again, all features that were seen.
    """
    width, count = len(block), 0
    for a in range(table.starts[row], table.starts[row + 1]):
        if table.values[a] != 0.0:
            count = add_place(table.indices[a], table.values[a], count, buffers)
    if scalar[LAST] < FEW:
        for j in range(width - 1 if intercept else width):
            if block[j, FEATURE + UNIT] > 0.0:
                count = add_place(j, 0.0, count, buffers)
    if intercept:
        count = add_place(width - 1, 1.0, count, buffers)
    if scalar[CONSTANT] >= 0.0:
        count = add_place(int(scalar[CONSTANT]), 0.0, count, buffers)
    if config.l2 > 0.0:
        count = add_place(int(scalar[LAST] + 1.0) % width, 0.0, count, buffers)
    return count


@part
def gather(count: int, block: Array, full: State, state: State, work: Work, buffers: Buffers) -> None:
    """Copy the numbers of the listed features into the small state."""
    starting = full.scalar[LAST] < FEW
    for a in range(count):
        j = buffers.places[a]
        for i in range(MEMBERS):
            state.theta[i, a] = block[j, i]
        for i in range(6):
            state.feature[i, a] = block[j, FEATURE + i]
        state.P[a], state.stored[a] = block[j, COVARIANCE], block[j, STORED_COVARIANCE]
        work.code[a] = code_of(j)
        if starting:
            for i in range(FEW):
                state.ring[i, 2 + a] = full.ring[i, 2 + j]
    if starting:
        for i in range(FEW):
            state.ring[i, 0], state.ring[i, 1] = full.ring[i, 0], full.ring[i, 1]
    constant = int(full.scalar[CONSTANT])
    full.scalar[CONSTANT] = buffers.mark[constant] - 1.0 if constant >= 0 else -1.0


@part
def scatter(count: int, starting: bool, block: Array, full: State, state: State, buffers: Buffers) -> None:
    """Copy the small state back, and forget the list."""
    constant = int(full.scalar[CONSTANT])
    full.scalar[CONSTANT] = buffers.places[constant] if constant >= 0 else -1.0
    for a in range(count):
        j = buffers.places[a]
        for i in range(MEMBERS):
            block[j, i] = state.theta[i, a]
        for i in range(6):
            block[j, FEATURE + i] = state.feature[i, a]
        block[j, COVARIANCE], block[j, STORED_COVARIANCE] = state.P[a], state.stored[a]
        if starting:
            for i in range(FEW):
                full.ring[i, 2 + j] = state.ring[i, 2 + a]
        buffers.mark[j] = 0
    if starting:
        for i in range(FEW):
            full.ring[i, 0], full.ring[i, 1] = state.ring[i, 0], state.ring[i, 1]


@part
def copy_noted(i: int, block: Array, work: Work) -> bool:
    """Repeat the copy of another member to this one, if there was one; returns whether there was."""
    source = int(work.notes[i]) - 1
    if source >= 0:
        for j in range(len(block)):
            block[j, i] = block[j, source]
    return source >= 0


@part
def repeat_notes(block: Array, state: State, work: Work) -> None:
    """Repeat on all features what the round did to those of the row: another scale or length, copies, a restart."""
    if work.notes[RESCALED] > 0.0:
        for j in range(len(block)):
            square = block[j, FEATURE + SQUARE]
            rescaled = min(max(square * work.notes[RESCALED], SMALLEST), WIDEST)
            block[j, FEATURE + SQUARE] = rescaled if square > 0.0 else 0.0
            block[j, FEATURE + PRIOR] = min(block[j, FEATURE + PRIOR] / work.notes[RESCALED], WIDEST)
    for i in range(SLOW, STORED):  # copies of the leader, before the posterior is resized, restarts or returns
        copy_noted(i, block, work)
    if work.notes[RESIZED] > 0.0:
        for j in range(len(block)):
            block[j, POSTERIOR] = min(max(work.notes[RESIZED] * block[j, POSTERIOR], -WIDEST), WIDEST)
    if work.notes[OPENED] > 0.0:
        for j in range(len(block)):
            block[j, COVARIANCE] = min(work.notes[OPENED] * block[j, COVARIANCE], WIDEST)
    if copy_noted(STORED, block, work):  # the posterior last: it is stored before it restarts
        for j in range(len(block)):
            block[j, STORED_COVARIANCE] = block[j, COVARIANCE]
    if copy_noted(POSTERIOR, block, work):
        returned = state.scalar[AGE] > 0.0
        for j in range(len(block)):
            restarted = work.notes[RESET] * block[j, FEATURE + PRIOR]
            block[j, COVARIANCE] = block[j, STORED_COVARIANCE] if returned else restarted


@part
def small_state(count: int, full: State, memory: Array) -> State:
    """A state of few features in a buffer, that shares everything else with the full one."""
    return State(
        window(memory, 0, (MEMBERS, count)),
        window(memory, MEMBERS * count, (6, count)),
        window(memory, COVARIANCE * count, count),
        window(memory, STORED_COVARIANCE * count, count),
        full.weight,
        full.played,
        full.scale,
        full.cells,
        window(memory, COLUMNS * count, (FEW, 2 + count)),
        full.scalar,
    )


@kernel
def learn(memory: Array, table: SparseTable, config: Config, out: tuple[Array, Array], buffers: Buffers) -> None:
    """Learn from sparse rows in turn, for every output; a row of weight 0 is skipped.

    `out` gets the weight and the prediction of every row.
    """
    memory, table, (weights, predictions), buffers = view((memory, table, out, buffers))
    width = config.covariance.dim
    intercept = config.intercept
    for k in range(len(table.Y)):
        start = config.offset + k * config.length
        full, block = split_state(memory, start, config.covariance), window(memory, start, (width, COLUMNS))
        for row in range(len(table.sample_weight)):
            y, w = table.Y[k, row], table.sample_weight[row]
            weights[k, row] = predictions[k, row] = 0.0
            if w < LIGHTEST:
                continue
            full.scalar[ROUNDS] += 1.0
            weights[k, row] = 1.0
            if abs(y) < LEAST and full.scalar[TARGET] == 0.0:
                continue
            count = list_features(table, row, block, full.scalar, intercept, config, buffers)
            state, work = small_state(count, full, buffers.state), split_work(buffers.work, count)
            gather(count, block, full, state, work, buffers)
            last = full.scalar[LAST]
            for i in range(NOTES):
                work.notes[i] = 0.0
            values = window(buffers.values, 0, (1, count))
            said, weights[k, row] = play(values, 0, y, w, config, state, work)
            predictions[k, row] = min(max(said, -LARGEST), LARGEST)
            if full.scalar[LAST] > last:
                if last >= FEW:
                    repeat_notes(block, state, work)
                if config.l2 > 0.0:
                    turn = buffers.mark[int(full.scalar[LAST]) % width] - 1
                    shrink(turn, width, config, state, work)
            scatter(count, last < FEW, block, full, state, buffers)
