"""The self-tuning learner on a table, for many outputs at once.

The state of an output is its arrays one behind the other: actions, weights, cells, lengths of records, squares and
counts of features, what is new of them, P, scalars; that of the settings is followed by the prior of the cells and the
rates.
"""

from __future__ import annotations

import numpy as np

from redescend.kernels.compiler import compiled, inlined, uncounted
from redescend.kernels.layout import Outcomes, Rows
from redescend.kernels.selftuning import layout
from redescend.kernels.selftuning.followers import within
from redescend.kernels.selftuning.layout import Config, State, settings_of
from redescend.kernels.selftuning.likelihood import paid_for
from redescend.kernels.selftuning.noise import judge, masses, size_of
from redescend.kernels.selftuning.rounds import action, product, run
from redescend.kernels.tabular import standardize as unit
from redescend.kernels.tabular.dense import rebase
from redescend.numeric import Array

BLOCK, COLUMNS = 64, 6
"""Rows that are standardised before they are learned from, and numbers that are kept of each meanwhile."""


@inlined
def cells_of(state: Array, width: int, members: int, scales: int, rates: int) -> Array:
    start = members * (width + 1)
    return state[start : start + scales * rates].reshape(scales, rates)


@inlined
def scalars_of(state: Array) -> Array:
    return state[len(state) - layout.SCALARS :]


@inlined
def parts(state: Array, width: int, members: int, scales: int, rates: int, second: bool) -> State:
    """The arrays of one output."""
    thetas = state[: members * width].reshape(members, width)
    weights = state[members * width : members * (width + 1)]
    cells = cells_of(state, width, members, scales, rates)
    at = members * (width + 1) + scales * rates
    norms = state[at : at + layout.NORMS]
    at += layout.NORMS
    squares, counts = state[at : at + width], state[at + width : at + 2 * width]
    at += 2 * width
    news = state[at : at + 2 * width].reshape(2, width)
    at += 2 * width
    size = width if second else 0
    return State(
        thetas,
        weights,
        cells,
        norms,
        squares,
        counts,
        news,
        state[at : at + size * size].reshape(size, size),
        scalars_of(state),
    )


@inlined
def rescaled(square: float, ratio: float) -> float:
    """The mean share of a feature in ‖x‖², once the feature is divided by the ratio; a share is at most 1."""
    return min(square / ratio / ratio, 1.0) if square > 0.0 else 0.0


@compiled
def rebase_information(P: Array, dim: int, ratios: Array, shifts: Array) -> None:
    """P in new units: A·P·A', with A as in `rebase`; of P only the lower triangle is kept."""
    width = len(P)
    if width > dim:
        pulled = np.zeros(dim)
        for j in range(dim):
            for k in range(dim):
                pulled[j] += P[max(j, k), min(j, k)] * shifts[k]
        for j in range(dim):
            P[dim, dim] += shifts[j] * (2.0 * P[dim, j] + pulled[j])
        for j in range(dim):
            P[dim, j] = (P[dim, j] + pulled[j]) * ratios[j]
    for j in range(dim):
        for k in range(j + 1):
            P[j, k] *= ratios[j] * ratios[k]
    for j in range(width):
        for k in range(j + 1):
            P[j, k] = P[j, k] if abs(P[j, k]) < 1e150 else 0.0


@compiled
def learn(
    X: Array,
    Y: Array,
    times: Array,
    standard: int,
    sample: Array,
    units: Array,
    states: Array,
    members: int,
    rate_count: int,
    second: bool,
    numbers: Array,
    means: Array,
    clock: Array,
    believed: Array,
    predicted: Array,
    work: Array,
    unseen: bool,
) -> int:
    """Learn from the rows of X for every row of Y; see `descent.learn`. No row moves a model too far."""
    X = uncounted(X)
    Y = uncounted(Y)
    times = uncounted(times)
    sample = uncounted(sample)
    units = uncounted(units)
    states = uncounted(states)
    numbers = uncounted(numbers)
    means = uncounted(means)
    clock = uncounted(clock)
    believed = uncounted(believed)
    predicted = uncounted(predicted)
    work = uncounted(work)
    rows, dim = X.shape
    outputs = len(states)
    scales = (len(numbers) - layout.SETTINGS - rate_count) // rate_count
    prior = numbers[layout.SETTINGS : layout.SETTINGS + scales * rate_count].reshape(scales, rate_count)
    config = Config(numbers, prior, numbers[layout.SETTINGS + scales * rate_count :])
    width = dim if numbers[layout.PENALISED] != 0.0 else dim + 1
    room = min(BLOCK, rows)
    ratios, shifts, columns = (
        work[:dim],
        work[dim : 2 * dim],
        work[2 * dim : 2 * dim + COLUMNS * BLOCK].reshape(COLUMNS, BLOCK),
    )
    y, weight, loss, gate, said, places = columns[0], columns[1], columns[2], columns[3], columns[4], columns[5]
    Z = work[2 * dim + COLUMNS * BLOCK : 2 * dim + COLUMNS * BLOCK + room * width].reshape(room, width)
    actions = np.empty((room if len(means) else 0, width))
    filled, row = 0, 0
    while row < rows or filled:
        changed = ended = row == rows
        if not ended and times[row] > 0.0:
            changed = unit.observe_row(X, row, standard, sample, units, ratios, shifts)
        if filled and (changed or filled == room):
            for k in range(outputs):
                state = parts(states[k], width, members, scales, rate_count, second)
                for i in range(filled):
                    y[i], gate[i] = Y[k, int(places[i])], 0.0
                at = 0
                while at < filled:
                    rest = slice(at, filled)
                    now_rows = Rows(Z[rest], y[rest], weight[rest])
                    at += run(now_rows, state, config, Outcomes(loss[rest], gate[rest], said[rest], actions[rest]))
                    if at < filled:
                        # A record beyond all belief: it is counted, and moves nothing.
                        gate[at] = 0.0
                        state.scalars[layout.ROUNDS] += 1.0
                        now = action(state.thetas, state.weights, state.scalars)
                        said[at] = within(product(Z, at, now.reshape((1, width)), 0), layout.FARTHEST)
                        if len(means):
                            actions[at] = now
                        at += 1
                for i in range(filled):
                    believed[k, int(places[i])] = gate[i]
                    if predicted.size:
                        predicted[k, int(places[i])] = said[i]
                    if len(means):
                        t = clock[0] + i - clock[1]
                        if t >= 0.0:
                            for j in range(width):
                                means[k, j] += (actions[i, j] - means[k, j]) / (t + 1.0)
            clock[0] += filled
            filled = 0
        if ended:
            continue
        if times[row] <= 0.0:
            believed[:, row] = 0.0
            row += 1
            continue
        if changed:
            for k in range(outputs):
                state = parts(states[k], width, members, scales, rate_count, second)
                for i in range(members):
                    rebase(state.thetas[i], dim, ratios, shifts)
                for j in range(dim):
                    state.squares[j] = rescaled(state.squares[j], ratios[j])
                if second:
                    rebase_information(state.P, dim, ratios, shifts)
                if len(means):
                    rebase(means[k], dim, ratios, shifts)
        norm2 = unit.standardise(X, row, standard, units, Z, filled)
        for k in range(outputs):
            norm2 += 0.0 * Y[k, row]
        if unseen and not norm2 < np.inf:
            return -1
        places[filled], weight[filled] = row, times[row]
        filled += 1
        row += 1
    return rows


@compiled
def play_now(states: Array, width: int, members: int) -> Array:
    """The action of every output."""
    out = np.empty((len(states), width))
    for k in range(len(states)):
        state = states[k]
        thetas = state[: members * width].reshape(members, width)
        out[k] = action(thetas, state[members * width : members * (width + 1)], scalars_of(state))
    return out


@compiled
def score(Y: Array, P: Array, sizes2: Array, scalars: Array, cells: Array, numbers: Array) -> Array:
    """How likely each record is to be clean, from the predictions P of every output; nothing is learned."""
    outputs, rows = Y.shape
    s = settings_of(numbers)
    out = np.ones((outputs, rows))
    scales, rate_count = cells.shape[1:]
    rates = numbers[layout.SETTINGS + scales * rate_count :]
    clean, outlier = np.empty(scales), np.empty(scales)
    for k in range(outputs):
        masses(cells[k], rates, clean, outlier)
        factor = scalars[k, layout.TEMPERATURE]
        for row in range(rows):
            p = min(max(P[k, row] / factor, -layout.FARTHEST), layout.FARTHEST)
            f = paid_for(s, p, Y[k, row], factor, sizes2[k] / (factor * factor))
            if scalars[k, layout.LOWEST] > 0.0:
                size = size_of(s.kind, s.labels, f, p, Y[k, row])
                # As in a round: scales without mass are asked about labels alone.
                least = 0.0 if s.labels else s.share
                _, out[k, row] = judge(s, f, size, scalars[k, layout.LOWEST], clean, outlier, least)
    return out
