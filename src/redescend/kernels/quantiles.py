"""A running summary of one feature, from which any quantile can be read: Greenwald and Khanna's, in a fixed size.

A summary keeps some of the values it was given, in order. Beside each is its `gap`, by how much at least its rank is
above that of the value before it, and its `slack`, by how much its rank may be larger still. As long as all values fit,
every quantile is exact; then, for every value that comes, one goes whose loss leaves a small gap. Between two
neighbours lie at most gap + slack − 1 values: the largest of these is the error in rank, so that it is known.

Greenwald and Khanna, Space-efficient online computation of quantile summaries, SIGMOD 2001.
"""

from __future__ import annotations

import numpy as np

from redescend.kernels.compiler import compiled, inlined, uncounted
from redescend.numeric import Array

VALUE, GAP, SLACK = range(3)


@inlined
def place_of(summary: Array, kept: int, value: float) -> int:
    """How many of the kept values are no larger."""
    low, high = 0, kept
    while low < high:
        middle = (low + high) // 2
        if value < summary[VALUE, middle]:
            high = middle
        else:
            low = middle + 1
    return low


@inlined
def spare(summary: Array, kept: int) -> int:
    """Which value can go, neither the first nor the last: the next whose loss leaves no gap beyond the limit.

    Where all would, the limit is raised to the smallest gap. So a search rarely goes far.
    """
    at, limit = int(summary[VALUE, -1]), summary[GAP, -1]
    while True:
        least = np.inf
        for _ in range(1, kept - 1):
            at = at + 1 if at + 2 < kept else 1
            gap = summary[GAP, at] + summary[GAP, at + 1] + summary[SLACK, at + 1]
            if gap <= limit:
                summary[VALUE, -1], summary[GAP, -1] = at, limit
                return at
            least = min(least, gap)
        limit = least


@compiled
def insert(summary: Array, kept: int, value: float) -> int:
    """Put a value among those kept; returns how many are kept. A summary of n + 2 places keeps n, and its search."""
    at = place_of(summary, kept, value)
    slack = summary[GAP, at] + summary[SLACK, at] - 1.0 if 0 < at < kept else 0.0
    gone = kept
    if kept + 2 == summary.shape[1]:
        gone = spare(summary, kept)
        if at == gone + 1:
            slack += summary[GAP, gone]
        summary[GAP, gone + 1] += summary[GAP, gone]
        kept -= 1
    if gone < at:
        at -= 1
        for part in range(3):
            for i in range(gone, at):
                summary[part, i] = summary[part, i + 1]
    else:
        for part in range(3):
            for i in range(gone, at, -1):
                summary[part, i] = summary[part, i - 1]
    summary[VALUE, at], summary[GAP, at], summary[SLACK, at] = value, 1.0, slack
    return kept + 1


@compiled
def quantile(summary: Array, kept: int, share: float) -> float:
    """The value below which this share of all values lies, between two kept ones where it falls between their ranks."""
    if kept == 0:
        return np.nan
    count = 0.0
    for i in range(kept):
        count += summary[GAP, i]
    wanted, rank, before = share * (count - 1.0), -1.0, 0.0
    for i in range(kept):
        rank += summary[GAP, i]
        here = rank + 0.5 * summary[SLACK, i]
        if here >= wanted:
            if i == 0 or here == wanted:
                return summary[VALUE, i]
            part = (wanted - before) / (here - before)
            return (1.0 - part) * summary[VALUE, i - 1] + part * summary[VALUE, i]
        before = here
    return summary[VALUE, kept - 1]


@inlined
def rank_error(summary: Array, kept: int) -> float:
    """By how much the rank of any quantile may be wrong, as a share of all values; 0 while they are all kept."""
    count, widest = 0.0, 1.0
    for i in range(kept):
        count += summary[GAP, i]
        widest = max(widest, summary[GAP, i] + summary[SLACK, i])
    return (widest - 1.0) / max(count, 1.0)


@compiled
def insert_rows(X: Array, summaries: Array, kept: Array, counts: Array) -> None:
    """Give every row to the summaries of its features; NaN is no value."""
    X = uncounted(X)
    summaries = uncounted(summaries)
    kept = uncounted(kept)
    counts = uncounted(counts)
    rows, features = X.shape
    for row in range(rows):
        for j in range(features):
            if X[row, j] == X[row, j]:
                kept[j] = insert(summaries[j], int(kept[j]), X[row, j])
                counts[j] += 1.0


@compiled
def quantiles(summaries: Array, kept: Array, share: float) -> Array:
    out = np.empty(len(kept))
    for j in range(len(kept)):
        out[j] = quantile(summaries[j], int(kept[j]), share)
    return out


@compiled
def rank_errors(summaries: Array, kept: Array) -> Array:
    out = np.empty(len(kept))
    for j in range(len(kept)):
        out[j] = rank_error(summaries[j], int(kept[j]))
    return out
