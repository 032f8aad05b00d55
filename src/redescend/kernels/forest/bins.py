"""Features in bins at quantiles of the last records, so that trees depend on the order of values alone."""

from __future__ import annotations

import numpy as np

from redescend.kernels.compiler import part, shared
from redescend.kernels.forest.layout import BINS, DUE, HAVE, ORDERED, State
from redescend.numeric import Array


@part
def find_bin(edges: Array, value: float) -> int:
    """The number of edges below a value; a missing value is below all."""
    below, half = 0, BINS // 2
    while half > 0:
        below += half if edges[below + half - 1] < value else 0
        half //= 2
    return below


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
