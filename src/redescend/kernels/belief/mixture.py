"""Two groups of residuals, clean ones and outliers: the densities of both, fitted to a histogram for each sign.

A family of clean densities has a scale and a mixture of outlier atoms of its own, the likeliest ones, found by EM. The
families are then averaged by their likelihoods, which are tempered: residuals of real data follow no family exactly,
so that even many records leave it open which one it is.

The evidence for a second group is a tail that is heavier beyond some size than before. The tail of natural residuals
may be heavy, but it is not heavier further out. Its weight is described by the hazard on a logarithmic scale: the share
of the residuals beyond a size that end within the next small factor. The hazard of Student's t rises to the degrees of
freedom, that of a power law is constant, that of lighter tails keeps rising. Before a second group, it falls.
"""

from __future__ import annotations

import numpy as np

from redescend.kernels.belief.cells import CELLS, FINE, LOWEST, MIDDLE, TILT, find_threshold
from redescend.kernels.belief.hypotheses import sigmoid
from redescend.kernels.belief.layout import (
    CLEAN_PRIOR,
    FALSE_ALARMS,
    MANY,
    MANY_STEEP,
    MOST_RECORDS,
    NEIGHBOUR,
    TAIL_EVIDENCE,
    TEMPERATURE,
    UNLIKELY,
    Densities,
    Tables,
)
from redescend.kernels.compiler import kernel, part
from redescend.kernels.views import view, window
from redescend.numeric import Array

FIRST = -LOWEST * FINE
"""The cell of the scale, where the tail usually begins."""

COARSE = (MIDDLE - LOWEST) * FINE
"""The first of the wide cells."""

LONE = 0.5
"""Fewer residuals than this beyond a size are none: those of long ago count less and less."""


@part
def log_likelihood(ended: float, exposure: float) -> float:
    """The largest log-likelihood of a constant hazard, up to a constant, if `ended` residuals end."""
    return ended * np.log(ended / exposure) if ended > 0.0 else 0.0


@part
def fit_hazards(blocks: Array, start: int, step: int, count: int, out: Array) -> None:
    """Write the largest log-likelihood of the first cells, for each number of them, with hazards that never fall.

    `blocks` has rows for the cells: how many residuals end in each and their exposure, both replaced by those of blocks
    of cells with the same hazard, and a row for the work. Cells are read from `start` on, with `step` -1 from the last.
    """
    last = -1
    for i in range(count):
        ended, exposure = blocks[0, start + step * i], blocks[1, start + step * i]
        while last >= 0 and step * (blocks[2, last] * exposure - ended * blocks[3, last]) > 0.0:
            ended, exposure = ended + blocks[2, last], exposure + blocks[3, last]
            last -= 1
        last += 1
        before = blocks[4, last - 1] if last > 0 else 0.0
        blocks[2, last], blocks[3, last] = ended, exposure
        blocks[4, last] = before + log_likelihood(ended, exposure)
        out[i] = blocks[4, last]


@part
def begin_tail(counts: Array, others: Array, share: float) -> int:
    """The cell of the scale, or of the median if more than half of the residuals are below the scale."""
    total = below = 0.0
    for c in range(CELLS):
        total += counts[c] + share * others[c]
    for c in range(FIRST):
        below += counts[c] + share * others[c]
        if 2.0 * below > total:
            return c
    return FIRST


@part
def read_tail(counts: Array, others: Array, share: float, more: float, first: int, work: Array) -> int:
    """Write how many residuals end in each cell from `first` on, and their exposure, which includes that of `more`
    residuals beyond the last cell. Returns the number of cells up to the last residual.
    """
    beyond, count = 0.0, 0
    for c in range(CELLS - 1, first - 1, -1):
        ended = counts[c] + share * others[c]
        beyond += ended
        if beyond > 0.0 and count == 0:
            count = c + 1 - first
        work[0, c] = ended
        work[1, c] = (beyond - 0.5 * ended + more) * (1.0 if c >= COARSE else 1.0 / FINE)
    return count


@part
def find_drops(counts: Array, others: Array, share: float, work: Array, out: Array) -> None:
    """Raise `out` to how much likelier the tail is if its hazard may fall once, in this cell or before it.

    That is a difference of log-likelihoods, for every cell. The histogram is `counts` and this share of `others`.
    `work` has seven rows of cells.
    """
    first = begin_tail(counts, others, share)
    count = read_tail(counts, others, share, 0.0, first, work)
    for back in range(2):
        fit_hazards(work, first + back * (count - 1), 1 - 2 * back, count, work[5 + back])
    largest = 0.0
    for cells in range(1, CELLS - first):
        if cells < count:
            largest = max(largest, work[5, cells - 1] + work[6, count - cells - 1] - work[5, count - 1])
        out[first + cells] = max(out[first + cells], largest)


@part
def find_gaps(counts: Array, others: Array, work: Array, out: Array) -> None:
    """Raise `out` beyond the last residual to the evidence that one more, in this cell, would be.

    It would have passed all cells before it without ending there: that is how much less likely hazards that never fall
    are with the empty cells than without them. `work` has six rows of cells.
    """
    first = begin_tail(counts, others, 1.0)
    read_tail(counts, others, 1.0, 1.0, first, work)
    beyond, gap = 0.0, CELLS
    for c in range(CELLS - 1, first, -1):
        beyond += work[0, c]
        if beyond < LONE:
            work[0, c], gap = 0.0, c
    fit_hazards(work, first, 1, CELLS - first, work[5])
    for c in range(gap + 1, CELLS):
        out[c] = max(out[c], work[5, gap - 1 - first] - work[5, c - 1 - first])


REACH = 6
"""A scale moves at most this many steps in one iteration."""

SMALLEST = 1e-300


@part
def dot_cells(a: Array, b: Array, first: int, last: int) -> float:
    total = 0.0
    for c in range(first, last):
        total += a[c] * b[c]
    return total


@part
def mix_outliers(shares: Array, tables: Tables, out: Array) -> float:
    """Write the cells of a mixture of atoms to `out`; returns its share of all records."""
    total = 0.0
    for c in range(CELLS):
        out[c] = 0.0
    for k in range(len(shares)):
        total += shares[k]
        for c in range(tables.spans[k, 0], tables.spans[k, 1]):
            out[c] += shares[k] * tables.outliers[k, c]
    return total


@part
def fit_family(
    family: int,
    scale: int,
    shares: Array,
    histogram: Array,
    tables: Tables,
    iterations: int,
    buffers: Array,
) -> tuple[int, float]:
    """Improve the scale and the outliers of a family by EM; returns the scale and the log-likelihood."""
    clean, log_clean = tables.clean[family], tables.log_clean[family]
    outlying, ratio, credit = buffers[0], buffers[1], buffers[2]
    for _ in range(iterations):
        share = 1.0 - mix_outliers(shares, tables, outlying)
        total = CLEAN_PRIOR
        for c in range(CELLS):
            ratio[c] = histogram[c] / (share * clean[scale, c] + outlying[c])
            credit[c] = ratio[c] * share * clean[scale, c]
            total += credit[c]
        best, top = scale, -np.inf
        for i in range(max(0, scale - REACH), min(len(clean), scale + REACH + 1)):
            value = dot_cells(credit, log_clean[i], 0, CELLS)
            if value > top:
                best, top = i, value
        scale = best
        for k in range(len(shares)):
            found = dot_cells(tables.outliers[k], ratio, tables.spans[k, 0], tables.spans[k, 1])
            shares[k] = shares[k] * found + tables.prior[family, k]
            total += shares[k]
        for k in range(len(shares)):
            shares[k] /= total
    share, value = 1.0 - mix_outliers(shares, tables, outlying), 0.0
    for c in range(CELLS):
        if histogram[c] > 0.0:
            value += histogram[c] * np.log(share * clean[scale, c] + outlying[c])
    return scale, value


@part
def share_weights(values: Array) -> None:
    """Replace logarithms of weights by the weights, which sum to 1."""
    top, total = -np.inf, 0.0
    for i in range(len(values)):
        top = max(top, values[i])
    for i in range(len(values)):
        values[i] = np.exp(values[i] - top)
        total += values[i]
    for i in range(len(values)):
        values[i] /= total


@part
def excuse(log_odds: float, another: float) -> float:
    """The log-odds of a clean record, if outliers are another population, and clean, with the log-odds `another`."""
    odds = np.exp(another)
    return np.log(np.exp(min(log_odds, 700.0)) + odds / (1.0 + odds)) + np.log1p(odds)


@part
def work_rows(work: Array, first: int, count: int) -> Array:
    return window(work, first * CELLS, (count, CELLS))


def make_work(tables: Tables) -> Array:
    """Buffers of `fit_densities`."""
    return np.empty((7 + 2 * len(tables.clean), CELLS))


@kernel
def fit_densities(
    counts: Array, tables: Tables, iterations: int, fitted: Densities, work: Array
) -> tuple[float, float]:
    """Fit all families to the histograms of both signs, and write their average.

    Returns the share of outliers and the largest probability of a suspect.
    """
    counts, tables, work = view((counts, tables, work))
    scales, shares, clean, log_odds = view(fitted)
    families = len(tables.clean)
    histogram, likelihoods, buffers, mass = work[0], work[1], work_rows(work, 2, 3), work_rows(work, 5, 2)
    kept, outlying = work_rows(work, 7, families), work_rows(work, 7 + families, families)
    outliers = records = unlikely = 0.0
    for sign in range(2):
        total, here = 0.0, 1.0
        for c in range(CELLS):
            here += counts[sign, c]
            histogram[c] = counts[sign, c] + NEIGHBOUR * counts[1 - sign, c]
            total += histogram[c]
        weighed = max(total, 1.0)
        tempered = min(1.0, min(TEMPERATURE * np.sqrt(weighed), MOST_RECORDS) / weighed)
        for i in range(families):
            scale, value = fit_family(i, int(scales[sign, i]), shares[sign, i], histogram, tables, iterations, buffers)
            scales[sign, i] = scale
            likelihoods[i] = tables.log_prior[i] + tempered * value
            share = 1.0
            for k in range(shares.shape[2]):
                share -= shares[sign, i, k]
            for c in range(CELLS):
                kept[i, c], outlying[i, c] = share * tables.clean[i, scale, c], buffers[0, c]
        share_weights(window(likelihoods, 0, families))
        records += here
        for c in range(CELLS):
            good = bad = 0.0
            for i in range(families):
                good += likelihoods[i] * kept[i, c]
                bad += likelihoods[i] * outlying[i, c]
            outliers += here * bad
            clean[sign, c] = good
            mass[sign, c] = here * (good + bad)
            log_odds[sign, c] = np.log(max(good, SMALLEST)) - np.log(max(bad, SMALLEST))
            unlikely += counts[sign, c] if log_odds[sign, c] < UNLIKELY else 0.0
    spare, group = work_rows(work, 7, 7), 0.0
    for c in range(CELLS):
        histogram[c] = 0.0
    for i in range(3):  # those of both signs, and of all records
        share = NEIGHBOUR if i < 2 else 1.0
        find_drops(counts[i % 2], counts[1 - i % 2], share, spare, histogram)
    find_gaps(counts[0], counts[1], spare, histogram)
    # The more outliers there are, the more evidence for a second group they need.
    needed = TAIL_EVIDENCE * (np.log(max(unlikely, 1.0)) - 1.0)
    # Outliers without this evidence may be the tail of the noise, and do not count for another population.
    for sign in range(2):
        for c in range(CELLS):
            group += mass[sign, c] * sigmoid(-log_odds[sign, c]) if histogram[c] > needed else 0.0
    many = MANY_STEEP * (group / records - MANY)
    for sign in range(2):
        for c in range(CELLS):
            another = max(many, min(needed - histogram[c], UNLIKELY))
            odds = excuse(log_odds[sign, c], another)
            # A larger residual is never more likely clean, although the densities of few records may say so.
            log_odds[sign, c] = odds if c == 0 else min(odds, log_odds[sign, c - 1] - TILT)
    return outliers / records, find_threshold(log_odds, mass, FALSE_ALARMS)
