"""Two groups of residuals, clean ones and outliers: the densities of both, fitted to a histogram for each sign.

A family of clean densities has a scale and a mixture of outlier atoms of its own, the likeliest ones, found by EM. The
families are then averaged by their likelihoods, which are tempered: residuals of real data follow no family exactly,
so many records must not make one of them certain.
"""

from __future__ import annotations

import numpy as np

from redescend.kernels.belief.cells import CELLS
from redescend.kernels.belief.layout import (
    CLEAN_PRIOR,
    NEIGHBOUR,
    TEMPERATURE,
    WIDTH_PRIOR,
    Tables,
)
from redescend.kernels.compiler import compiled, summing
from redescend.numeric import Array

REACH = 6
"""A scale moves at most this many steps in one iteration."""

STEP = 0.1733
"""A step between two scales, as a natural logarithm."""

SMALLEST = 1e-300


@summing
def dot_cells(a: Array, b: Array, first: int, last: int) -> float:
    total = 0.0
    for c in range(first, last):
        total += a[c] * b[c]
    return total


@compiled
def mix_outliers(shares: Array, tables: Tables, out: Array) -> float:
    """Write the cells of a mixture of atoms to `out`; returns its share of all records."""
    total = 0.0
    out[:] = 0.0
    for k in range(len(shares)):
        total += shares[k]
        for c in range(tables.spans[k, 0], tables.spans[k, 1]):
            out[c] += shares[k] * tables.outliers[k, c]
    return total


@compiled
def fit_family(
    family: int, scale: int, shares: Array, histogram: Array, tables: Tables, iterations: int, buffers: Array
) -> tuple[int, float]:
    """Improve the scale and the outliers of a family by EM; returns the scale and the log-likelihood.

    The first buffer gets the cells of outliers.
    """
    clean, log_clean, middle = tables.clean[family], tables.log_clean[family], tables.clean.shape[1] // 2
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
            value = dot_cells(credit, log_clean[i], 0, CELLS) - WIDTH_PRIOR * (STEP * (i - middle)) ** 2
            if value > top:
                best, top = i, value
        scale = best
        for k in range(len(shares)):
            first, last = tables.spans[k]
            shares[k] = shares[k] * dot_cells(tables.outliers[k], ratio, first, last) + tables.prior[k]
            total += shares[k]
        for k in range(len(shares)):
            shares[k] /= total
    share, value = 1.0 - mix_outliers(shares, tables, outlying), 0.0
    for c in range(CELLS):
        if histogram[c] > 0.0:
            value += histogram[c] * np.log(share * clean[scale, c] + outlying[c])
    return scale, value


@compiled
def fit_densities(
    counts: Array, tables: Tables, iterations: int, scales: Array, shares: Array, clean: Array, log_odds: Array
) -> float:
    """Fit all families to the histograms of both signs and write their average; returns the share of outliers."""
    families = len(tables.clean)
    histogram, buffers = np.empty(CELLS), np.empty((3, CELLS))
    likelihoods, outlying = np.empty(families), np.empty((families, CELLS))
    outliers = records = 0.0
    for sign in range(2):
        total = 0.0
        for c in range(CELLS):
            histogram[c] = counts[sign, c] + NEIGHBOUR * counts[1 - sign, c]
            total += histogram[c]
        tempered = min(1.0, TEMPERATURE / max(total, 1.0))
        for i in range(families):
            scales[sign, i], value = fit_family(
                i, int(scales[sign, i]), shares[sign, i], histogram, tables, iterations, buffers
            )
            likelihoods[i] = tables.log_prior[i] + tempered * value
            outlying[i] = buffers[0]
        likelihoods -= likelihoods.max()
        weights = np.exp(likelihoods)
        weights /= weights.sum()
        here = counts[sign].sum() + 1.0
        records += here
        for c in range(CELLS):
            good = bad = 0.0
            for i in range(families):
                good += weights[i] * (1.0 - shares[sign, i].sum()) * tables.clean[i, int(scales[sign, i]), c]
                bad += weights[i] * outlying[i, c]
            outliers += here * bad
            clean[sign, c] = good
            log_odds[sign, c] = np.log(max(good, SMALLEST)) - np.log(max(bad, SMALLEST))
    return outliers / records


@compiled
def find_threshold(clean: Array, log_odds: Array, counts: Array, false_alarms: float) -> float:
    """The largest probability in a list of cells whose mean probability is at most `false_alarms`, and at most ½."""
    probability = np.empty(2 * CELLS)
    mass = np.empty(2 * CELLS)
    for sign in range(2):
        here = counts[sign].sum() + 1.0
        for c in range(CELLS):
            i = sign * CELLS + c
            probability[i] = 1.0 / (1.0 + np.exp(-log_odds[sign, c]))
            mass[i] = here * clean[sign, c] / max(probability[i], SMALLEST)
    found = false = listed = 0.0
    for i in np.argsort(probability):
        if probability[i] > 0.5:
            break
        false += probability[i] * mass[i]
        listed += mass[i]
        if false <= false_alarms * listed:
            found = probability[i]
    return max(found, false_alarms) if found > 0.0 else 0.0


@compiled
def find_quantile(clean: Array, edges: Array, share: float) -> float:
    """The size of a clean residual of one sign that this share of them exceeds."""
    tail, left = 0.0, share * clean.sum()
    for c in range(CELLS - 1, -1, -1):
        if tail + clean[c] >= left:
            part = (left - tail) / clean[c]
            if c == 0:
                return edges[1] * (1.0 - part)
            return edges[c + 1] * (edges[c] / edges[c + 1]) ** part
        tail += clean[c]
    return 0.0


@compiled
def find_quantiles(clean: Array, counts: Array, edges: Array, level: float) -> tuple[float, float]:
    """The ends of the interval with this share of clean residuals, as sizes below and above."""
    below, above = clean[0].sum() * (counts[0].sum() + 1.0), clean[1].sum() * (counts[1].sum() + 1.0)
    tail = 0.5 * (1.0 - level) * (below + above)
    low = find_quantile(clean[0], edges, min(tail / below, 1.0))
    return low, find_quantile(clean[1], edges, min(tail / above, 1.0))
