"""What is called from Python for tables: learn from rows, or judge them without learning.

One function learns from one record, from a table with several outputs, and from the records of many keys, so that all
have the same bits.
"""

from __future__ import annotations

from typing import NamedTuple

from redescend.kernels.compiler import kernel, part, rare
from redescend.kernels.layout import Table
from redescend.kernels.selftuning.imputation import impute_row
from redescend.kernels.selftuning.judging import clean_probability
from redescend.kernels.selftuning.layout import (
    LABELS,
    LAST,
    MEMBERS,
    ROUNDS,
    TARGET,
    TYPICAL,
    UNIT,
    Config,
    Loss,
    State,
    Work,
    split_state,
    split_work,
)
from redescend.kernels.selftuning.prior import shrink
from redescend.kernels.selftuning.rounds import (
    combine,
    compute_variance,
    leverage_of,
    measure_length,
    play,
    predict_members,
)
from redescend.kernels.selftuning.units import cut, is_finite, to_units, write_codes
from redescend.kernels.views import view
from redescend.losses import linear
from redescend.numeric import LARGEST, Array


class Models(NamedTuple):
    """A row of memory for each key, with the states of its outputs one behind the other; and runs of records of a key.

    Run i is ``starts[i]`` up to ``starts[i + 1]``, of the row ``places[i]``.
    """

    memory: Array
    starts: Array
    places: Array


class Outcomes(NamedTuple):
    """What is written for every output and record; arrays after that of the predictions may be empty.

    Actions are those before the round. `means` averages the actions of an output from the round in its last column on.
    If `judged` is not empty, records are judged instead, and nothing is learned: two rows for each output get the
    probability that a record is clean, and how usual its features are, the typical length over its own. `counts` tells
    how far each record counts: one over its leverage.
    """

    weights: Array
    predictions: Array
    losses: Array
    actions: Array
    means: Array
    judged: Array
    counts: Array


@rare
def write_action(config: Config, state: State, work: Work, out: Array) -> None:
    """The action, in the units of the caller."""
    for j in range(len(out)):
        for i in range(MEMBERS):
            work.predictions[i] = state.theta[i, j]
        unit = state.feature[UNIT, j]
        out[j] = combine(config.loss, work.predictions, state) / unit if unit > 0.0 else 0.0


@rare
def write_mean(config: Config, state: State, work: Work, mean: Array) -> None:
    """Average the action with those before it."""
    dim, rounds = len(mean) - 1, state.scalar[ROUNDS] - mean[len(mean) - 1]
    if rounds >= 0.0:
        write_action(config, state, work, work.Dx)
        for j in range(dim):
            mean[j] += (work.Dx[j] - mean[j]) / (rounds + 1.0)


@rare
def penalty(config: Config, state: State, work: Work) -> float:
    """l2/2 times the squared length of the action."""
    total = 0.0
    write_action(config, state, work, work.Dx)
    for j in range(len(work.Dx)):
        total += work.Dx[j] * work.Dx[j]
    return 0.5 * config.l2 * total


@part
def is_target(loss: Loss, y: float) -> bool:
    """Whether a number can be a target: labels are -1 and 1."""
    return loss.family != LABELS or y == 1.0 or y == -1.0


@rare
def judge_record(X: Array, row: int, y: float, k: int, config: Config, state: State, work: Work, out: Array) -> None:
    """Judge a record; see `Outcomes`."""
    scalar = state.scalar
    out[2 * k, row] = out[2 * k + 1, row] = 1.0
    if scalar[LAST] > 0.0:
        to_units(X, row, state, work.x)
        impute_row(config.covariance, work.x, state)
        predict_members(work.x, state, work.predictions)
        c, length = compute_variance(config, state, work), measure_length(state, work)
        leverage = leverage_of(length, state)
        out[2 * k, row] = clean_probability(config.loss, cut(y / scalar[TARGET]), leverage, c, state, work)
        out[2 * k + 1, row] = min(1.0, scalar[TYPICAL] / length) if length > 0.0 else 1.0


@kernel
def learn(models: Models, table: Table, config: Config, out: Outcomes, memory: Array) -> int:
    """Predict every row and learn from it; returns the number of rows before the first that cannot be learned from.

    Rows of weight 0 are only predicted. `memory` has `work_size` floats.
    """
    models, (X, Y, sample_weight), out, memory = view((models, table, out, memory))
    dim, outputs, width = config.covariance.dim, len(Y), models.memory.shape[1]
    work = split_work(memory, dim)
    write_codes(work.code)
    for run in range(len(models.places)):
        for k in range(outputs):
            place = models.places[run] * width + config.offset + k * config.length
            state = split_state(models.memory, place, config.covariance)
            for row in range(models.starts[run], models.starts[run + 1]):
                y, w = Y[k, row], sample_weight[row]
                if out.judged.size:
                    judge_record(X, row, y, k, config, state, work, out.judged)
                    continue
                if not (is_finite(X, row, y, config.missing) and is_target(config.loss, y)):
                    return row
                if out.actions.size:
                    write_action(config, state, work, out.actions[k, row])
                if len(out.means) and w > 0.0:
                    write_mean(config, state, work, out.means[k])
                extra = penalty(config, state, work) if config.l2 > 0.0 and out.losses.size else 0.0
                last = state.scalar[LAST]
                p, weight = play(X, row, y, w, config, state, work)
                if config.l2 > 0.0 and state.scalar[LAST] > last:
                    shrink(int(state.scalar[LAST]) % dim, dim, config, state, work)
                p = min(max(p, -LARGEST), LARGEST)
                out.predictions[k, row] = p
                out.weights[k, row] = weight if w > 0.0 else 0.0
                if out.losses.size:
                    out.losses[k, row] = min(linear.value(config.kind, config.c, p, y) + extra, LARGEST)
                if out.counts.size:
                    learned = state.scalar[LAST] > last
                    out.counts[k, row] = 1.0 / leverage_of(measure_length(state, work), state) if learned else 1.0
                if w > 0.0:
                    state.scalar[ROUNDS] += 1.0
    return len(sample_weight)
