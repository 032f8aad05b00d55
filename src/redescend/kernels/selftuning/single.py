"""One record of the self-tuning learner, with everything it needs in one row of floats: one argument is a cheap call.

The row is the shape, what happened (loss and weight), the record (its weight, y and x), the state, and the settings.
The loop takes nineteen arrays; from Python each costs as much as two features.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from redescend.kernels.compiler import compiled, inlined, pointer
from redescend.kernels.selftuning import layout
from redescend.kernels.selftuning.followers import within
from redescend.kernels.selftuning.likelihood import LONGEST2, WORST
from redescend.kernels.selftuning.mixture import leader_of
from redescend.kernels.selftuning.noise import judge, masses, size_of
from redescend.kernels.selftuning.rounds import action, length2, product, run
from redescend.losses import linear
from redescend.numeric import Array

# the shape: features, members, scales, rates of outliers, features of a second-order follower
(DIM, MEMBERS, SCALES, RATES, SECOND) = range(5)
# what happened, how often the record counts, and the record
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
def places(row: Array) -> tuple[int, int, int, int, int, int, int, int, int, int, int]:
    """Where the nine arrays of the state begin, in the order of the loop, and then the settings and the prior."""
    dim, members, cells = int(row[DIM]), int(row[MEMBERS]), int(row[SCALES] * row[RATES])
    thetas = RECORD + dim
    weights = thetas + members * dim
    noise = weights + members
    norms = noise + cells
    squares = norms + layout.NORMS
    news = squares + 2 * dim
    P = news + 2 * dim
    scalars = P + int(row[SECOND]) ** 2
    numbers = scalars + layout.SCALARS
    return thetas, weights, noise, norms, squares, squares + dim, news, P, scalars, numbers, numbers + layout.SETTINGS


@compiled
def run_one(row: Array) -> float:
    """Play the record in the row, and write down its loss and weight; a weight of `UNPLAYED` changed nothing."""
    dim, members = int(row[DIM]), int(row[MEMBERS])
    scales, count, second = int(row[SCALES]), int(row[RATES]), int(row[SECOND])
    thetas, weights, cells, norms, squares, counts, news, P, scalars, numbers, prior = places(row)
    played = run(
        matrix(row, RECORD, 1, dim),
        vector(row, TARGET, 1),
        vector(row, TIMES, 1),
        matrix(row, thetas, members, dim),
        vector(row, weights, members),
        matrix(row, cells, scales, count),
        vector(row, norms, layout.NORMS),
        vector(row, squares, dim),
        vector(row, counts, dim),
        matrix(row, news, 2, dim),
        matrix(row, P, second, second),
        vector(row, scalars, layout.SCALARS),
        vector(row, numbers, layout.SETTINGS),
        matrix(row, prior, scales, count),
        vector(row, prior + scales * count, count),
        vector(row, LOSS, 1),
        vector(row, WEIGHT, 1),
        vector(row, RECORD, 0),
        matrix(row, RECORD, 0, dim),
    )
    return row[WEIGHT] if played else UNPLAYED


@compiled
def predict_one(row: Array) -> float:
    """What the action that is played now predicts for the record in the row."""
    dim, members = int(row[DIM]), int(row[MEMBERS])
    thetas, weights, _, _, _, _, _, _, scalars, _, _ = places(row)
    state = vector(row, scalars, layout.SCALARS)
    theta = action(matrix(row, thetas, members, dim), vector(row, weights, members), state)
    return product(matrix(row, RECORD, 1, dim), 0, theta.reshape((1, dim)), 0)


@compiled
def judge_one(row: Array) -> float:
    """The probability that the record in the row is clean, at the leader's prediction (labels: the mean's).

    Not at the mean's, because the noise is the leader's: where there is hardly any, the mean of all members is never as
    near as its leader, and no record would be believed. 1 while nothing is known of the noise; nothing is learned.
    """
    dim, members, scales, count = int(row[DIM]), int(row[MEMBERS]), int(row[SCALES]), int(row[RATES])
    thetas, weights, cells, _, _, _, _, _, scalars, numbers, prior = places(row)
    kind, c = int(row[numbers + layout.LOSS]), row[numbers + layout.LOSS_C]
    labels, lowest, target = row[numbers + layout.LABELS] != 0.0, row[scalars + layout.LOWEST], row[TARGET]
    x, iterates, shares = matrix(row, RECORD, 1, dim), matrix(row, thetas, members, dim), vector(row, weights, members)
    if not (length2(x, 0) < LONGEST2 and abs(target) < layout.FARTHEST):
        return 0.0
    if lowest == 0.0 or row[scalars + layout.SEEN] == 0.0:
        return 1.0
    leader, p = leader_of(shares), 0.0
    for i in range(members):
        share = shares[i] if labels else 1.0 * (i == leader)
        if share > 0.0:
            p += share * within(product(x, 0, iterates, i), layout.FARTHEST)
    f = linear.value(kind, c, p, target) + 0.5 * row[numbers + layout.L2] * length2(iterates, leader)
    f = min(f, WORST)
    clean, outlier = np.empty(scales), np.empty(scales)
    masses(matrix(row, cells, scales, count), vector(row, prior + scales * count, count), clean, outlier)
    least = 0.0 if labels else row[numbers + layout.SHARE_CELLS]
    return judge(kind, c, f, size_of(kind, labels, f, p, target), lowest, clean, outlier, least, labels)[1]
