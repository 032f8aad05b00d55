"""The self-tuning learner on tables, for many outputs at once.

The state of an output is its arrays one behind the other, in the order of `kernels.selftuning.layout.State`. The
settings are followed by the prior of the cells and the rates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from redescend.kernels.compiler import compiled, inlined, uncounted
from redescend.kernels.layout import Outcomes, Rows
from redescend.kernels.selftuning import layout, rounds
from redescend.kernels.selftuning.followers import within
from redescend.kernels.selftuning.likelihood import paid_for
from redescend.kernels.selftuning.noise import judge, masses, size_of
from redescend.kernels.tabular import standardize as scaling
from redescend.kernels.tabular.dense import AVERAGE_FROM, ROW_COUNT, TableOutcomes, TableRows, TableState, rebase
from redescend.numeric import Array

BLOCK, COLUMNS = 64, 6
"""TableRows that are standardized before they are learned from, and numbers per row that are buffered meanwhile."""


class TableConfig(NamedTuple):
    """Settings as of `dense.DescentConfig`, the number of members and of outlier rates, and whether the order is 2."""

    method: int
    settings: Array
    unchecked: bool
    members: int
    rates: int
    second: bool


@inlined
def split_settings(settings: Array, rates: int) -> layout.Config:
    """The settings, the prior of the cells and the rates, which are packed in one row."""
    start, end = layout.SETTINGS, len(settings) - rates
    prior = settings[start:end].reshape((end - start) // rates, rates)
    return layout.Config(settings, prior, settings[end:])


@inlined
def scalars_of(state: Array) -> Array:
    return state[len(state) - layout.SCALARS :]


@inlined
def parts(state: Array, width: int, config: TableConfig, settings: layout.Config) -> layout.State:
    """The arrays of one output."""
    members, (scales, rates) = config.members, settings.prior.shape
    cells = members * (width + 1)
    norms = cells + scales * rates
    squares = norms + layout.NORMS
    news = squares + 2 * width
    P = news + 2 * width
    size = width if config.second else 0
    return layout.State(
        state[: members * width].reshape(members, width),
        state[members * width : cells],
        state[cells:norms].reshape(scales, rates),
        state[norms:squares],
        state[squares : squares + width],
        state[squares + width : news],
        state[news:P].reshape(2, width),
        state[P : P + size * size].reshape(size, size),
        scalars_of(state),
    )


@inlined
def rescaled(square: float, ratio: float) -> float:
    """The mean share of a feature in ‖x‖², once the feature is divided by the ratio; a share is at most 1."""
    return min(square / ratio / ratio, 1.0) if square > 0.0 else 0.0


@compiled
def rebase_information(P: Array, dim: int, ratios: Array, shifts: Array) -> None:
    """P in new scales: A·P·A', with A as in `rebase`; only the lower triangle of P is stored."""
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
def learn(rows: TableRows, state: TableState, config: TableConfig, out: TableOutcomes, work: Array) -> int:
    """Learn from the rows; see `dense.learn`. No row moves a model too far."""
    X, Y, sample_weight = uncounted(rows)
    models, means, progress, sample, stats, _, _ = uncounted(state)
    config, out, work = TableConfig(*uncounted(config)), TableOutcomes(*uncounted(out)), uncounted(work)
    count, dim = X.shape
    outputs, settings = len(models), split_settings(config.settings, config.rates)
    width = dim if settings.settings[layout.PENALISED] != 0.0 else dim + 1
    room = min(BLOCK, count)
    ratios, shifts = work[:dim], work[dim : 2 * dim]
    columns = work[2 * dim : 2 * dim + COLUMNS * BLOCK].reshape(COLUMNS, BLOCK)
    y, weight, loss, gate, said, places = columns[0], columns[1], columns[2], columns[3], columns[4], columns[5]
    Z = work[2 * dim + COLUMNS * BLOCK : 2 * dim + COLUMNS * BLOCK + room * width].reshape(room, width)
    actions = np.empty((room if len(means) else 0, width))
    filled, row = 0, 0
    while row < count or filled:
        changed = ended = row == count
        if not ended and sample_weight[row] > 0.0:
            changed = scaling.observe_row(X, row, config.method, sample, stats, ratios, shifts)
        if filled and (changed or filled == room):
            for k in range(outputs):
                model = parts(models[k], width, config, settings)
                for i in range(filled):
                    y[i], gate[i] = Y[k, int(places[i])], 0.0
                at = 0
                while at < filled:
                    block = Rows(Z[at:filled], y[at:filled], weight[at:filled])
                    news = Outcomes(loss[at:filled], gate[at:filled], said[at:filled], actions[at:filled])
                    at += rounds.run(block, model, settings, news)
                    if at < filled:
                        # A record that cannot be learned from is counted, and moves nothing.
                        gate[at] = 0.0
                        model.scalars[layout.ROUNDS] += 1.0
                        now = rounds.action(model.thetas, model.weights, model.scalars)
                        said[at] = within(rounds.product(Z, at, now.reshape((1, width)), 0), layout.FARTHEST)
                        if len(means):
                            actions[at] = now
                        at += 1
                for i in range(filled):
                    out.weights[k, int(places[i])] = gate[i]
                    if out.predictions.size:
                        out.predictions[k, int(places[i])] = said[i]
                    if len(means):
                        t = progress[ROW_COUNT] + i - progress[AVERAGE_FROM]
                        if t >= 0.0:
                            for j in range(width):
                                means[k, j] += (actions[i, j] - means[k, j]) / (t + 1.0)
            progress[ROW_COUNT] += filled
            filled = 0
        if ended:
            continue
        if sample_weight[row] <= 0.0:
            out.weights[:, row] = 0.0
            row += 1
            continue
        if changed:
            for k in range(outputs):
                model = parts(models[k], width, config, settings)
                for i in range(config.members):
                    rebase(model.thetas[i], dim, ratios, shifts)
                for j in range(dim):
                    model.squares[j] = rescaled(model.squares[j], ratios[j])
                if config.second:
                    rebase_information(model.P, dim, ratios, shifts)
                if len(means):
                    rebase(means[k], dim, ratios, shifts)
        norm2 = scaling.standardize_row(X, row, config.method, stats, Z, filled)
        for k in range(outputs):
            norm2 += 0.0 * Y[k, row]
        if config.unchecked and not norm2 < np.inf:
            return -1
        places[filled], weight[filled] = row, sample_weight[row]
        filled += 1
        row += 1
    return count


@compiled
def actions_of(states: Array, width: int, members: int) -> Array:
    """The action of every output."""
    out = np.empty((len(states), width))
    for k in range(len(states)):
        state = states[k]
        thetas = state[: members * width].reshape(members, width)
        out[k] = rounds.action(thetas, state[members * width : members * (width + 1)], scalars_of(state))
    return out


@compiled
def score(Y: Array, P: Array, norms2: Array, scalars: Array, cells: Array, settings: Array) -> Array:
    """How likely each record is to be clean, from the predictions P of every output; nothing is learned."""
    s, config = layout.settings_of(settings), split_settings(settings, cells.shape[2])
    out = np.ones(Y.shape)
    clean, outlier = np.empty(cells.shape[1]), np.empty(cells.shape[1])
    # As in a round: scales without mass only count for labels.
    least = 0.0 if s.labels else s.share
    for k in range(len(Y)):
        masses(cells[k], config.rates, clean, outlier)
        factor, lowest = scalars[k, layout.TEMPERATURE], scalars[k, layout.LOWEST]
        for row in range(Y.shape[1]):
            p = min(max(P[k, row] / factor, -layout.FARTHEST), layout.FARTHEST)
            f = paid_for(s, p, Y[k, row], factor, norms2[k] / (factor * factor))
            if lowest > 0.0:
                size = size_of(s.kind, s.labels, f, p, Y[k, row])
                _, out[k, row] = judge(s, f, size, lowest, clean, outlier, least)
    return out
