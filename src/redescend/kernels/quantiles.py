"""Running quantiles: Greenwald and Khanna's summary of a feature, in a fixed size.

A summary stores some of the values so far, sorted. With each goes its `gap`, the least by which its rank is above that
of the value before it, and its `slack`, by how much its rank may be larger still. While all values fit, every quantile
is exact. From then on, every new value replaces one whose removal leaves a small gap. Between two stored values lie at
most gap + slack − 1 others: the largest of these numbers is the error in rank.

Greenwald and Khanna, Space-efficient online computation of quantile summaries, SIGMOD 2001.
"""

from __future__ import annotations

import numpy as np

from redescend.kernels.compiler import kernel, part
from redescend.kernels.views import view
from redescend.numeric import Array

VALUE, GAP, SLACK = range(3)


@part
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


@part
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


@part
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


@kernel
def insert_rows(X: Array, summaries: Array, sizes: Array, counts: Array) -> None:
    """Insert every row into the summaries of its features; NaN is ignored."""
    X, summaries, sizes, counts = view((X, summaries, sizes, counts))
    for row in range(len(X)):
        for j in range(len(sizes)):
            if X[row, j] == X[row, j]:
                sizes[j] = insert(summaries[j], int(sizes[j]), X[row, j])
                counts[j] += 1.0


def _stored(summaries: Array, sizes: Array) -> tuple[Array, Array, Array]:
    """Which columns store values, and their gaps and slacks, 0 in the others."""
    stored = np.arange(summaries.shape[2]) < sizes[:, None]
    return stored, np.where(stored, summaries[:, GAP], 0.0), np.where(stored, summaries[:, SLACK], 0.0)


def quantiles(summaries: Array, sizes: Array, share: float) -> Array:
    """The value of every feature below which this share of its values lies, interpolated between stored ones."""
    stored, gaps, slacks = _stored(summaries, sizes)
    counts, features = gaps.cumsum(axis=1), np.arange(len(sizes))
    ranks, wanted = counts - 1.0 + 0.5 * slacks, share * (counts[:, -1] - 1.0)
    at = np.argmax(stored & (ranks >= wanted[:, None]), axis=1)
    before = np.maximum(at - 1, 0)
    here, there = ranks[features, at], ranks[features, before]
    between = (at > 0) & (here > wanted)
    part = np.divide(wanted - there, here - there, out=np.ones(len(sizes)), where=between)
    values = (1.0 - part) * summaries[features, VALUE, before] + part * summaries[features, VALUE, at]
    return np.where(sizes > 0.0, values, np.nan)


def rank_errors(summaries: Array, sizes: Array) -> Array:
    """Bounds on the error in rank of any quantile, as a share of all values; 0 while all are stored."""
    _, gaps, slacks = _stored(summaries, sizes)
    widest = np.maximum((gaps + slacks).max(axis=1, initial=0.0), 1.0)
    return (widest - 1.0) / np.maximum(gaps.sum(axis=1), 1.0)
