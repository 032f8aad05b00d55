"""One record of the self-tuning learner, with everything it needs in one row of floats: one argument is a cheap call.

The row is the shape, the outcome (loss and weight), the record (its sample weight, y and x), the state, and the
settings. From Python, every array that the loop takes costs as much as two features.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from redescend.kernels.compiler import compiled, inlined, pointer
from redescend.kernels.layout import Outcomes, Rows
from redescend.kernels.selftuning import layout
from redescend.kernels.selftuning.followers import within
from redescend.kernels.selftuning.layout import Config, State, settings_of
from redescend.kernels.selftuning.likelihood import LONGEST2, WORST
from redescend.kernels.selftuning.mixture import leader_of
from redescend.kernels.selftuning.noise import judge, masses, size_of
from redescend.kernels.selftuning.rounds import action, length2, product, run
from redescend.losses import linear
from redescend.numeric import Array

# the shape: features, members, scales, rates of outliers, features of a second-order follower
(DIM, MEMBERS, SCALES, RATES, SECOND) = range(5)
# the outcome, the sample weight, and the record
LOSS, WEIGHT, TIMES, TARGET, RECORD = range(5, 10)
UNPLAYED = -1.0


def in_one_row(arrays: dict[str, Any], numbers: Array, prior: Array, rates: Array) -> tuple[Array, dict[str, Array]]:
    """The row of a learner with this state and these settings, and the arrays of its state as views of the row."""
    members, dim = arrays["thetas"].shape
    shape = [dim, members, *prior.shape, len(arrays["P"])]
    record = np.zeros(RECORD - LOSS + dim)
    record[TIMES - LOSS] = 1.0
    row = np.concatenate([shape, record, *(array.ravel() for array in arrays.values()), numbers, prior.ravel(), rates])
    at, views = RECORD + dim, {}
    for name, array in arrays.items():
        views[name] = row[at : at + array.size].reshape(array.shape)
        at += array.size
    return row, views


@inlined
def vector(row: Array, at: int, size: int) -> Array:
    """Numbers of the row as an array that is not counted."""
    return carray(pointer(row.ctypes.data + 8 * at), size, np.float64)


@inlined
def matrix(row: Array, at: int, rows: int, columns: int) -> Array:
    return carray(pointer(row.ctypes.data + 8 * at), (rows, columns), np.float64)


@inlined
def state_of(row: Array) -> tuple[State, int]:
    """The arrays of the state as views of the row, and where the settings begin."""
    dim, members, scales, rates = int(row[DIM]), int(row[MEMBERS]), int(row[SCALES]), int(row[RATES])
    second = int(row[SECOND])
    weights = RECORD + dim + members * dim
    cells = weights + members
    norms = cells + scales * rates
    squares = norms + layout.NORMS
    P = squares + 4 * dim
    scalars = P + second**2
    state = State(
        matrix(row, RECORD + dim, members, dim),
        vector(row, weights, members),
        matrix(row, cells, scales, rates),
        vector(row, norms, layout.NORMS),
        vector(row, squares, dim),
        vector(row, squares + dim, dim),
        matrix(row, squares + 2 * dim, 2, dim),
        matrix(row, P, second, second),
        vector(row, scalars, layout.SCALARS),
    )
    return state, scalars + layout.SCALARS


@inlined
def config_of(row: Array, at: int) -> Config:
    """The settings, prior and rates as views of the row."""
    scales, rates = int(row[SCALES]), int(row[RATES])
    prior = at + layout.SETTINGS
    return Config(
        vector(row, at, layout.SETTINGS),
        matrix(row, prior, scales, rates),
        vector(row, prior + scales * rates, rates),
    )


@compiled
def run_one(row: Array) -> float:
    """Play the record in the row, and write its loss and weight; a weight of `UNPLAYED` changed nothing."""
    dim = int(row[DIM])
    state, at = state_of(row)
    rows = Rows(matrix(row, RECORD, 1, dim), vector(row, TARGET, 1), vector(row, TIMES, 1))
    out = Outcomes(vector(row, LOSS, 1), vector(row, WEIGHT, 1), vector(row, RECORD, 0), matrix(row, RECORD, 0, dim))
    return row[WEIGHT] if run(rows, state, config_of(row, at), out) else UNPLAYED


@compiled
def predict_one(row: Array) -> float:
    """Predict the target of the record in the row."""
    dim = int(row[DIM])
    state, _ = state_of(row)
    theta = action(state.thetas, state.weights, state.scalars)
    return product(matrix(row, RECORD, 1, dim), 0, theta.reshape((1, dim)), 0)


@compiled
def judge_one(row: Array) -> float:
    """The probability that the record in the row is clean, at the leader's prediction (labels: the mean's).

    Not at the mean's, because the noise is the leader's: where there is hardly any, the mean of all members is never as
    near as its leader, and no record would get any weight. 1 while nothing is known of the noise; nothing is learned.
    """
    dim, target = int(row[DIM]), row[TARGET]
    state, at = state_of(row)
    config = config_of(row, at)
    s, x, lowest = settings_of(config.settings), matrix(row, RECORD, 1, dim), state.scalars[layout.LOWEST]
    if not (length2(x, 0) < LONGEST2 and abs(target) < layout.FARTHEST):
        return 0.0
    if lowest == 0.0 or state.scalars[layout.SEEN] == 0.0:
        return 1.0
    leader, p = leader_of(state.weights), 0.0
    for i in range(len(state.weights)):
        share = state.weights[i] if s.labels else 1.0 * (i == leader)
        if share > 0.0:
            p += share * within(product(x, 0, state.thetas, i), layout.FARTHEST)
    f = min(linear.value(s.kind, s.c, p, target) + 0.5 * s.l2 * length2(state.thetas, leader), WORST)
    clean, outlier = np.empty(len(state.cells)), np.empty(len(state.cells))
    masses(state.cells, config.rates, clean, outlier)
    least = 0.0 if s.labels else s.share
    return judge(s, f, size_of(s.kind, s.labels, f, p, target), lowest, clean, outlier, least)[1]
