"""Predict every record by the forests of all outputs, and learn from it.

Features are put in bins at quantiles of the last records, so that trees depend on the order of values alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from redescend.kernels.compiler import kernel, part, shared
from redescend.kernels.forest.growing import CUT, HALF, SHRINKAGE, TINY, find_bin, grow, is_right, sigmoid
from redescend.kernels.forest.layout import (
    BEGIN,
    BINS,
    BUILT,
    CREDIT,
    DUE,
    FORESTS,
    HAVE,
    HIGH,
    LEAST_SPLIT,
    LOW,
    MEDIAN,
    NEXT,
    ON_REST,
    ON_TARGET,
    ORDERED,
    RATE,
    SEEN,
    START,
    STREAK,
    TREES,
    State,
    Work,
)
from redescend.kernels.selftuning.layout import widen_range
from redescend.kernels.views import view
from redescend.numeric import Array


@part
def sift_down(values: Array, first: int, count: int) -> None:
    at, value = first, values[first]
    while 2 * at + 1 < count:
        child = 2 * at + 1
        if child + 1 < count and values[child + 1] > values[child]:
            child += 1
        if values[child] <= value:
            break
        values[at] = values[child]
        at = child
    values[at] = value


@shared
def sort_values(values: Array, count: int) -> None:
    """Sort the first values in place: a heap sort, because nothing may be allocated in a round."""
    for first in range(count // 2 - 1, -1, -1):
        sift_down(values, first, count)
    for last in range(count - 1, 0, -1):
        values[0], values[last] = values[last], values[0]
        sift_down(values, 0, last)


@part
def place_edges(edges: Array, ordered: Array, count: int, missing: bool) -> None:
    """Edges at quantiles of sorted values, each but once and below the largest; behind them infinity.

    If values are missing, the first edge separates them from all others.
    """
    used = 0
    if missing:
        edges[0] = -np.inf
        used = 1
    for k in range(1, BINS):
        value = ordered[min(k * count // BINS, count - 1)] if count > 0 else np.inf
        if used < BINS - 1 and count > 0 and value < ordered[count - 1] and (used == 0 or value > edges[used - 1]):
            edges[used] = value
            used += 1
    for k in range(used, BINS - 1):
        edges[k] = np.inf


@shared
def renew_bins(state: State, ordered: Array) -> None:
    """Take new edges from the stored records, and code all of them anew."""
    clock, have = state.clock, state.clock[HAVE]
    clock[DUE] += min(clock[DUE], 2 * len(state.X))
    step = (have + ORDERED - 1) // ORDERED
    for j in range(state.X.shape[1]):
        count, missing = 0, False
        for i in range(0, have, step):
            if state.X[i, j] == state.X[i, j]:
                ordered[count] = state.X[i, j]
                count += 1
            else:
                missing = True
        sort_values(ordered, count)
        place_edges(state.edges[j], ordered, count, missing)
        for i in range(have):
            state.code[i, j] = find_bin(state.edges[j], state.X[i, j])


WORK, EARLY, EARLY_RECORDS = 1100.0, 6.0, 8192.0
"""Updates of histograms that a forest saves up with every record; one tree after the other is grown of them. Early on
it saves up to EARLY times as much, until EARLY_RECORDS: trees that were grown on few records are soon replaced."""

ONLINE = 0.02
"""The share of its gated residual by which a record moves the values of its leaves."""

LARGEST = 1e290
"""The largest median of residuals."""

LEAST_RATE, MOST_RATE, FAST_RATE = 0.001, 0.3, 0.001
"""The range of the share of flipped labels, and how fast it follows."""


REACH = 8.0
"""The range of believed targets grows to a target that the linear member believes, if it is at most this many times
the range away, and its predictions may be as far away: targets with a long tail need it."""

STACKED = 3
"""Predictions that are written for a record: those that the stack learns from."""


class Rows(NamedTuple):
    """Records: features, targets, their weights, and for every output what the linear member predicts and believes."""

    X: Array
    Y: Array
    sample_weight: Array
    linear: Array
    believed: Array


@part
def find_leaves(x: Array, state: State, g: int, at: Array) -> float:
    """Write the leaves of a record in all trees of a forest; returns what these add."""
    feature, threshold, value, total = state.feature[g], state.threshold[g], state.value[g], 0.0
    nodes = feature.shape[1]
    for m in range(int(state.scalar[BUILT, g])):
        k = 0
        while k < nodes:
            k = 2 * k + 1 + (1 if x[feature[m, k]] > threshold[m, k] else 0)
        at[m] = k - nodes
        total += value[m, k - nodes]
    return SHRINKAGE * total


@part
def combine(linear: float, k: int, labels: bool, fits: Array, state: State, out: Array) -> None:
    """Write the predictions of the linear member and with the forests.

    Those with forests are cut off at the range of believed targets, widened; that of the linear
    member, which may be right further away, where believed targets may be. Logits, and what is predicted before the
    first tree, are not cut off.
    """
    g = FORESTS * k
    out[0], out[1 + ON_REST] = linear, linear + fits[g + ON_REST]
    out[1 + ON_TARGET] = state.output[START, k] + fits[g + ON_TARGET]
    if state.scalar[BUILT, g + ON_TARGET] == 0.0:
        out[1 + ON_TARGET] = linear
    elif not labels:
        bottom, top = state.output[LOW, k], state.output[HIGH, k]
        reach = REACH * (top - bottom) if top > bottom else np.inf
        out[0] = min(max(out[0], bottom - reach), top + reach)
        low, high = widen_range(bottom, top)
        for i in range(1, STACKED):
            out[i] = min(max(out[i], low), high)


@part
def repeats(x: Array, Y: Array, row: int, state: State) -> bool:
    """Whether a record is equal to the one before it, which then tells nothing new."""
    if state.clock[HAVE] == 0:
        return False
    last = (state.clock[NEXT] - 1) % len(state.X)
    for j in range(len(x)):
        if x[j] != state.X[last, j] and (x[j] == x[j] or state.X[last, j] == state.X[last, j]):
            return False
    same = True
    for k in range(len(Y)):
        same &= Y[k, row] == state.target[last, k]
    return same


@part
def store(rows: Rows, row: int, state: State) -> int:
    """Store a record in place of the oldest; returns its place."""
    clock, x = state.clock, rows.X[row]
    i = clock[NEXT]
    for j in range(len(x)):
        state.X[i, j] = x[j]
        state.code[i, j] = find_bin(state.edges[j], x[j])
    for k in range(len(rows.Y)):
        state.target[i, k] = rows.Y[k, row]
    state.sample_weight[i] = rows.sample_weight[row]
    clock[NEXT], clock[HAVE] = (i + 1) % len(state.X), min(clock[HAVE] + 1, len(state.X))
    clock[SEEN] += 1
    return i


@part
def follow_median(size: float, seen: int, state: State, g: int) -> None:
    """A multiplicative median, which hurries after many residuals in a row on the same side of it."""
    scalar, larger = state.scalar, size > state.scalar[MEDIAN, g]
    streak = scalar[STREAK, g]
    scalar[STREAK, g] = streak = max(streak, 0.0) + 1.0 if larger else min(streak, 0.0) - 1.0
    up = 1.0 + max(0.02, 1.0 / (2.0 + 0.2 * seen)) * 2.0 ** min(max(abs(streak) - 8.0, 0.0), 5.0)
    if scalar[MEDIAN, g] == 0.0:
        scalar[MEDIAN, g] = min(size, LARGEST)
    else:
        scalar[MEDIAN, g] = min(scalar[MEDIAN, g] * up if larger else scalar[MEDIAN, g] / up, LARGEST)


@part
def learn_leaves(i: int, y: float, base: float, g: int, labels: bool, state: State, work: Work) -> bool:
    """Move the leaves of the record at place i by its gated residual; returns whether it was believed."""
    fit, w, at = work.fits[g], min(state.sample_weight[i], 1.0), work.at[g]
    if labels:
        q, rate = sigmoid(base + fit), state.output[RATE, g // FORESTS]
        move, believed = 4.0 * (0.5 + 0.5 * y - q) * is_right(q if y > 0.0 else 1.0 - q, rate), True
    else:
        r, median = y - base - fit, state.scalar[MEDIAN, g]
        z = r / (median + TINY)
        move, believed = min(max(z, -CUT), CUT) * median / (1.0 + (z / HALF) ** 2), abs(z) < HALF
        follow_median(abs(r), state.clock[SEEN], state, g)
    for m in range(int(state.scalar[BUILT, g])):
        state.value[g, m, at[m]] += ONLINE * w * move
        state.leaf[g, i, m] = at[m]
    state.base[g, i], state.fit[g, i] = base, fit
    return believed and state.scalar[BUILT, g] > 0.0


@part
def work_of_tree(state: State, columns: int) -> float:
    """What a tree costs, in updates of histograms."""
    return state.clock[HAVE] * (3.0 * columns + 40.0)


@part
def save_up(state: State, g: int, labels: bool, work: Work) -> None:
    """Grow the next tree of a forest if enough work is saved up."""
    cost, scalar = work_of_tree(state, len(work.column)), state.scalar
    scalar[CREDIT, g] += WORK * min(max(EARLY_RECORDS / state.clock[SEEN], 1.0), EARLY)
    if state.clock[HAVE] >= LEAST_SPLIT and scalar[CREDIT, g] >= cost:
        scalar[CREDIT, g] = min(scalar[CREDIT, g] - cost, cost)
        grow(state, g, labels, work)


@part
def middle_of(count: int, ordered: Array) -> float:
    sort_values(ordered, count)
    return ordered[count // 2]


@shared
def begin(state: State, k: int, ordered: Array) -> None:
    """Start at the median of the first targets, with the range of those that are near, and medians of residuals."""
    count, target, output = state.clock[HAVE], state.target, state.output
    for i in range(count):
        ordered[i] = target[i, k]
    start = middle_of(count, ordered)
    for i in range(count):
        ordered[i] = min(abs(target[i, k] - start), LARGEST)
    spread = middle_of(count, ordered)
    output[START, k] = output[LOW, k] = output[HIGH, k] = start
    for i in range(count):
        if abs(target[i, k] - start) <= CUT * spread:
            output[LOW, k], output[HIGH, k] = min(output[LOW, k], target[i, k]), max(output[HIGH, k], target[i, k])
        state.base[FORESTS * k + ON_TARGET, i] = start
        ordered[i] = min(abs(target[i, k] - state.base[FORESTS * k + ON_REST, i]), LARGEST)
    state.scalar[MEDIAN, FORESTS * k + ON_TARGET] = spread
    state.scalar[MEDIAN, FORESTS * k + ON_REST] = middle_of(count, ordered)


@part
def is_near(y: float, low: float, high: float) -> bool:
    """Whether a target is at most REACH ranges away; the linear member may believe another if its features are wild."""
    slack = REACH * (high - low)
    return slack == 0.0 or (low - slack <= y and y <= high + slack)


@part
def learn_output(i: int, row: int, k: int, rows: Rows, labels: bool, state: State, work: Work) -> None:
    """Everything that a record teaches the forests of an output."""
    y, linear, output, g = rows.Y[k, row], rows.linear[k, row], state.output, FORESTS * k
    start = output[START, k]
    if labels:
        chance = sigmoid(y * (linear + work.fits[g + ON_REST]))
        near = max(FAST_RATE, 1.0 / (100.0 + state.clock[SEEN]))
        rate = output[RATE, k] + (1.0 - is_right(chance, output[RATE, k]) - output[RATE, k]) * near
        output[RATE, k] = min(max(rate, LEAST_RATE), MOST_RATE)
    by_target = learn_leaves(i, y, start, g + ON_TARGET, labels, state, work)
    by_rest = learn_leaves(i, y, linear, g + ON_REST, labels, state, work)
    if state.clock[SEEN] == BEGIN and not labels:
        begin(state, k, work.ordered)
    elif by_target or by_rest or (rows.believed[k, row] > 0.5 and is_near(y, output[LOW, k], output[HIGH, k])):
        output[LOW, k], output[HIGH, k] = min(output[LOW, k], y), max(output[HIGH, k], y)
    for f in range(FORESTS):
        save_up(state, g + f, labels, work)


@kernel
def learn(state: State, rows: Rows, first: int, most: int, labels: bool, out: Array, work: Work) -> int:
    """Predict every row from the first on, and learn from it if its weight is not 0.

    Returns the number of rows, or the row at which more room is needed, if there is less than for `most` records.
    `out` gets, for every output and row, the predictions of the linear member, of the forest on the target, and of the
    linear member with the forest on what it leaves.
    """
    state, rows, out, work = view((state, rows, out, work))
    for row in range(first, len(rows.X)):
        x = rows.X[row]
        if state.clock[HAVE] == len(state.X) and len(state.X) < most:
            return row
        for k in range(len(rows.Y)):
            for g in range(FORESTS * k, FORESTS * (k + 1)):
                work.fits[g] = find_leaves(x, state, g, work.at[g])
            combine(rows.linear[k, row], k, labels, work.fits, state, out[k, row])
        if rows.sample_weight[row] > 0.0 and (labels or not repeats(x, rows.Y, row, state)):
            i = store(rows, row, state)
            if state.clock[SEEN] == state.clock[DUE]:
                renew_bins(state, work.ordered)
            for k in range(len(rows.Y)):
                learn_output(i, row, k, rows, labels, state, work)
    return len(rows.X)


def new_leaves(state: State) -> tuple[Array, Array]:
    """Buffers of `predict`."""
    return np.empty(TREES, np.int64), np.empty(state.scalar.shape[1])


@kernel
def predict(state: State, X: Array, linear: Array, labels: bool, out: Array, buffers: tuple[Array, Array]) -> None:
    """The same without learning; several threads may predict at once, each with its own buffers."""
    state, X, linear, out, (leaves, fits) = view((state, X, linear, out, buffers))
    for row in range(len(X)):
        for k in range(len(linear)):
            for g in range(FORESTS * k, FORESTS * (k + 1)):
                fits[g] = find_leaves(X[row], state, g, leaves)
            combine(linear[k, row], k, labels, fits, state, out[k, row])
