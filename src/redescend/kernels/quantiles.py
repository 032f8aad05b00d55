"""Running quantiles: Greenwald and Khanna's summary of a feature, in a fixed size.

A summary stores some of the values so far, sorted. With each goes its `gap`, the least by which its rank is above that
of the value before it, and its `slack`, by how much its rank may be larger still. While all values fit, every quantile
is exact. From then on, every new value replaces one whose removal leaves a small gap. Between two stored values lie at
most gap + slack − 1 others: the largest of these numbers is the error in rank.

Greenwald and Khanna, Space-efficient online computation of quantile summaries, SIGMOD 2001.
"""

from __future__ import annotations

import numpy as np

from redescend.kernels.compiler import inlined, kernel
from redescend.kernels.views import view
from redescend.numeric import Array

VALUE, GAP, SLACK = range(3)


@inlined
def find_place(summary: Array, size: int, value: float) -> int:
    """How many of the stored values are no larger."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        if value < summary[VALUE, middle]:
            high = middle
        else:
            low = middle + 1
    return low


@inlined
def find_removable(summary: Array, size: int) -> int:
    """The next value, neither the first nor the last, whose removal leaves no gap above the limit.

    If there is none, the limit is raised to the smallest gap. So searches are usually short.
    """
    search = summary.shape[1] - 1
    at, limit = int(summary[VALUE, search]), summary[GAP, search]
    while True:
        least = np.inf
        for _ in range(1, size - 1):
            at = at + 1 if at + 2 < size else 1
            gap = summary[GAP, at] + summary[GAP, at + 1] + summary[SLACK, at + 1]
            if gap <= limit:
                summary[VALUE, search], summary[GAP, search] = at, limit
                return at
            least = min(least, gap)
        limit = least


@inlined
def insert(summary: Array, size: int, value: float) -> int:
    """Insert a value; returns the new size. Of n + 2 columns, the first n store values, and the last is the search."""
    at = find_place(summary, size, value)
    slack = summary[GAP, at] + summary[SLACK, at] - 1.0 if 0 < at < size else 0.0
    removed = size
    if size + 2 == summary.shape[1]:
        removed = find_removable(summary, size)
        if at == removed + 1:
            slack += summary[GAP, removed]
        summary[GAP, removed + 1] += summary[GAP, removed]
        size -= 1
    if removed < at:
        at -= 1
        for part in range(3):
            for i in range(removed, at):
                summary[part, i] = summary[part, i + 1]
    else:
        for part in range(3):
            for i in range(removed, at, -1):
                summary[part, i] = summary[part, i - 1]
    summary[VALUE, at], summary[GAP, at], summary[SLACK, at] = value, 1.0, slack
    return size + 1


@inlined
def quantile(summary: Array, size: int, share: float) -> float:
    """The value below which this share of all values lies, interpolated between stored ones."""
    if size == 0:
        return np.nan
    count = 0.0
    for i in range(size):
        count += summary[GAP, i]
    wanted, rank, before = share * (count - 1.0), -1.0, 0.0
    for i in range(size):
        rank += summary[GAP, i]
        here = rank + 0.5 * summary[SLACK, i]
        if here >= wanted:
            if i == 0 or here == wanted:
                return summary[VALUE, i]
            part = (wanted - before) / (here - before)
            return (1.0 - part) * summary[VALUE, i - 1] + part * summary[VALUE, i]
        before = here
    return summary[VALUE, size - 1]


@kernel
def insert_rows(X: Array, summaries: Array, sizes: Array, counts: Array) -> None:
    """Insert every row into the summaries of its features; NaN is ignored."""
    X, summaries, sizes, counts = view((X, summaries, sizes, counts))
    for row in range(len(X)):
        for j in range(len(sizes)):
            if X[row, j] == X[row, j]:
                sizes[j] = insert(summaries[j], int(sizes[j]), X[row, j])
                counts[j] += 1.0


@kernel
def write_quantiles(summaries: Array, sizes: Array, share: float, out: Array) -> None:
    """Write the quantile of every feature."""
    summaries, sizes, out = view((summaries, sizes, out))
    for j in range(len(sizes)):
        out[j] = quantile(summaries[j], int(sizes[j]), share)


def rank_errors(summaries: Array, sizes: Array) -> Array:
    """Bounds on the error in rank of any quantile, as a share of all values; 0 while all are stored."""
    stored = np.arange(summaries.shape[2]) < sizes[:, None]
    gaps, slacks = np.where(stored, summaries[:, GAP], 0.0), np.where(stored, summaries[:, SLACK], 0.0)
    widest = np.maximum((gaps + slacks).max(axis=1, initial=0.0), 1.0)
    return (widest - 1.0) / np.maximum(gaps.sum(axis=1), 1.0)
