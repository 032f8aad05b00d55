"""One round of the self-tuning learner: play the mean, judge the record, weigh the members, let them follow."""

from __future__ import annotations

from typing import Any

import numpy as np

from redescend.kernels.compiler import compiled, inlined, summing, uncounted
from redescend.kernels.layout import Outcomes, Rows
from redescend.kernels.selftuning import layout
from redescend.kernels.selftuning.followers import follow, measure
from redescend.kernels.selftuning.layout import Config, Lengths, Record, State, scratch_of, settings_of
from redescend.kernels.selftuning.likelihood import begin, paid_for, playable, weigh
from redescend.kernels.selftuning.mixture import take_snapshot
from redescend.kernels.selftuning.noise import size_of
from redescend.kernels.selftuning.novelty import SLOWLY, age, anything, grow_old, look
from redescend.kernels.selftuning.second_order import advance, restart
from redescend.numeric import Array


@summing
def product(X: Array, row: int, thetas: Array, i: int) -> float:
    out = 0.0
    for j in range(X.shape[1]):
        out += X[row, j] * thetas[i, j]
    return out


@summing
def length2(vectors: Array, i: int, spared: int = 0) -> float:
    """‖·‖² without the last `spared` features."""
    out = 0.0
    for j in range(vectors.shape[1] - spared):
        out += vectors[i, j] * vectors[i, j]
    return out


@inlined
def average(thetas: Array, weights: Array, mean: Array) -> None:
    for j in range(mean.shape[1]):
        mean[0, j] = 0.0
    for i in range(len(weights)):
        if weights[i] > 0.0:
            for j in range(mean.shape[1]):
                mean[0, j] += weights[i] * thetas[i, j]


@compiled
def action(thetas: Array, weights: Array, scalars: Array) -> Array:
    """What is played: the mean of the members, made longer where labels are less certain than it says."""
    mean = np.empty((1, thetas.shape[1]))
    average(thetas, weights, mean)
    return scalars[layout.TEMPERATURE] * mean[0]


@compiled
def run(rows: Rows, state: State, config: Config, out: Outcomes) -> int:
    """Play rows until one cannot be played; returns how many were.

    Sample weights are more than 0 and at most `HEAVIEST`.
    """
    rows, state, config, out = uncounted(rows), uncounted(state), uncounted(config), uncounted(out)
    X, y, times = rows.X, rows.y, rows.sample_weight
    thetas, weights, cells, norms, squares, counts, news, P, scalars = state
    losses, believed, predictions, actions = out
    count, dim = X.shape
    s, members, scales = settings_of(config.settings), len(weights), len(cells)
    memory = np.zeros(3 * dim + 2 * scales + 5 * members)
    spared = 0 if config.settings[layout.PENALISED] != 0.0 else 1
    second = len(P) > 0
    moving = 2 * layout.FOLLOWERS + (1 if second else 0)
    now = scratch_of(memory[3 * dim :], members, scales)
    metric, Px, mean = memory[:dim], memory[dim : 2 * dim], memory[2 * dim : 3 * dim].reshape(1, dim)
    for row in range(count):
        target, factor = y[row], scalars[layout.TEMPERATURE]
        norm2, p, active = length2(X, row), 0.0, 0.0
        for i in range(members):
            now.predictions[i] = now.sizes2[i] = 0.0
            if weights[i] > 0.0:
                active += 1.0
                now.predictions[i] = min(max(product(X, row, thetas, i), -layout.FARTHEST), layout.FARTHEST)
                now.sizes2[i] = length2(thetas, i, spared) if s.l2 > 0.0 else 0.0
                p += weights[i] * now.predictions[i]
        if not playable(s, norm2, target):
            return row

        due = scalars[layout.SEEN] + 1.0 >= scalars[layout.DUE]
        size2 = 0.0
        if s.l2 > 0.0 or due or len(actions):
            average(thetas, weights, mean)
            size2 = length2(mean, 0, spared)
        f = paid_for(s, p, target, factor, size2)
        losses[row], believed[row] = f, 1.0
        if len(predictions):
            predictions[row] = factor * p
        if len(actions):
            for j in range(dim):
                actions[row, j] = factor * mean[0, j]
        scalars[layout.ROUNDS] += 1.0
        size = size_of(s.kind, s.labels, f, p, target)
        if not begin(s, norm2, f, size, len(cells), scalars):
            continue

        typical, scaled, ready = measure(X, row, norm2, norms, squares, counts, scalars, metric)
        power = min(1.0, typical / norm2) if s.tempered else 1.0
        curious = s.curious and not s.labels and anything(X, row, news)
        new, wide, longer = 0.0, 0.0, scaled
        if curious:
            new, wide, longer = look(X, row, norm2, typical, scaled, news, scalars, metric)
        record = Record(f, size, target, factor, power, times[row])
        verdict = weigh(s, now, state, config, record, active, (new, wide))
        believed[row], leader = verdict.believed, verdict.leader
        if curious:
            grow_old(X, row, verdict.fits, verdict.size, metric, news)
        scalars[layout.NEW] = age(scalars[layout.NEW], verdict.fits, SLOWLY)
        lengths = Lengths(norm2, typical, scaled, longer, ready)
        follow(s, now, rows, row, lengths, metric, state, spared)
        if second:
            advance(s, now, rows, row, typical, state, Px, moving - 1)
        if s.copying:
            for i in range(moving):
                if weights[i] < 2.0 * layout.SHARE / active and (
                    i < 2 * layout.FOLLOWERS or scalars[layout.AGE] >= max(31.0, 4.0 * dim)
                ):
                    if i == 2 * layout.FOLLOWERS:
                        restart(P, squares, counts, typical, scalars)
                    for j in range(dim):
                        thetas[i, j] = thetas[leader, j]
        if due:
            take_snapshot(thetas, weights, active, mean[0], scalars)
        if s.labels and s.warmed:
            scalars[layout.TEMPERATURE] = 1.0 / min(1.0, scalars[layout.SPREAD])
    return count


@compiled
def run_tuples(rows: Any, state: Any, config: Any, out: Any) -> int:
    """`run` on plain tuples, which Python passes three times as fast as NamedTuples."""
    return run(Rows(*rows), State(*state), Config(*config), Outcomes(*out))
