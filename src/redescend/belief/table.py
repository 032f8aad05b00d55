"""What is fitted to all records of a table at once: the scale of residuals by the features, a histogram, intervals.

The likelihood of the scale is that along a stream, see `kernels.belief.scale`: a residual of size r with the scale s
has the log-likelihood -ln s - ln(1 + (r/s)²), which outliers change little. Along a stream, effects of features are
found by small steps, and stay noisy for thousands of records; here they are the maximum, shrunk.

Targets are also judged on a logarithmic scale, on which those that are too small by a factor stand out. A price that
lost a digit is off by nine tenths of itself, less than many right prices are; on a logarithmic scale it is as odd as
one with a digit too many. The scale is asinh(y / unit): logarithmic beyond the unit, and linear around 0, so that any
number has a place on it. Targets that are too large stand out as they are; on this scale, only those below their
predictions are judged. Predictions near 0 or of the wrong sign are thus no reason to doubt a target, nor is a target of
0, which no factor makes of another number.
"""

from __future__ import annotations

import numpy as np

from redescend.kernels.belief.cells import CELLS
from redescend.kernels.belief.layout import HUGE
from redescend.numeric import Array

RIDGE = 100.0
"""Prior records whose scale does not depend on the features."""

TRUST = 0.75
"""How far effects are trusted in judgements. Errors do not grow with the noise as clean residuals do: a smaller part of
the effects ranks errors of one size better, a larger one errors in proportion to the target."""

WIDEST, MOST_RECORDS = 300, 1 << 13
"""With more features, effects are left as they were learned; of more records, some from all over are used."""

ITERATIONS = 30


def fit_effects(standard: Array, logs: Array) -> tuple[float, Array]:
    """Fit the scale of residuals to `standard` features, a row each, and the logarithms of the sizes of residuals.

    Returns the logarithm of the scale where all features have their means, and what every feature adds to it, in its
    standard deviations. Each iteration maximises a quadratic lower bound of the likelihood, whose curvature is the same
    in all iterations.

    >>> random = np.random.default_rng(0)
    >>> x = random.normal(size=(5000, 1))
    >>> level, effects = fit_effects(x, np.log(np.abs(np.exp(0.5 * x[:, 0]) * random.normal(size=5000))))
    >>> bool(abs(effects[0] - 0.5) < 0.05)
    True
    """
    table = np.column_stack([standard, np.ones(len(logs))])
    prior = np.append(np.full(standard.shape[1], RIDGE), 0.0)
    inverse = np.linalg.inv(table.T @ table + np.diag(prior))
    found = np.append(np.zeros(standard.shape[1]), np.median(logs))
    for _ in range(ITERATIONS):
        found += inverse @ (table.T @ np.tanh(logs - table @ found) - prior * found)
    return float(found[-1]), found[:-1]


def choose_some(usable: Array) -> Array:
    """At most `MOST_RECORDS` of the usable records, from all over the table."""
    places = np.flatnonzero(usable)
    return places[np.linspace(0, len(places) - 1, min(len(places), MOST_RECORDS)).astype(np.int64)]


def divide(residuals: Array, scales: Array) -> Array:
    """Standardised residuals, finite."""
    with np.errstate(over="ignore", divide="ignore"):
        return np.clip(residuals / scales, -HUGE, HUGE)


def find_cells(ratios: Array, edges: Array) -> tuple[Array, Array]:
    """The places of standardised residuals in tables by sign and cell."""
    cells = np.minimum(np.searchsorted(edges, np.abs(ratios), side="right") - 1, CELLS - 1)
    return (ratios > 0.0).astype(np.int64), cells


def count_cells(ratios: Array, edges: Array) -> Array:
    """The histogram of standardised residuals, a row for each sign."""
    counts = np.zeros((2, CELLS))
    np.add.at(counts, find_cells(ratios, edges), 1.0)
    return counts


def correct_ends(ratios: Array, ends: Array, tail: float) -> Array:
    """Logarithms of factors for the ends of intervals, below and above, so that this share of the records is beyond
    each; 0 where an end would not be on its side.
    """
    found = np.quantile(ratios, [tail, 1.0 - tail]) * [-1.0, 1.0]
    known = np.minimum(found, ends) > 0.0
    return np.where(known, np.log(np.where(known, found, 1.0)) - np.log(np.where(known, ends, 1.0)), 0.0)


LINEAR = 1.0 / 16.0
"""The unit, as a part of the median size of targets: smaller ones are on the linear part of the scale."""

ONE_SIGN = 0.75
"""The least share of targets that have the same sign: between others, a factor means nothing."""

FINEST = 1e-6
"""Residuals below this size on the logarithmic scale are rounding errors of it."""


def choose_unit(targets: Array) -> float:
    """The unit of the logarithmic scale for these targets, of the same sign; 0 if their signs differ too often."""
    positive, negative = np.count_nonzero(targets > 0.0), np.count_nonzero(targets < 0.0)
    if max(positive, negative) < max(ONE_SIGN * len(targets), 1):
        return 0.0
    return float(np.copysign(np.median(LINEAR * np.abs(targets[targets != 0.0])), positive - negative))


def to_logarithmic(values: Array, unit: float) -> Array:
    """The places of values on the logarithmic scale with this unit."""
    with np.errstate(over="ignore"):
        return np.arcsinh(np.clip(values / unit, -HUGE, HUGE))


def log_slope(values: Array, unit: float) -> Array:
    """The logarithm of the slope of the scale: how much smaller residuals become on it."""
    largest = np.finfo(float).max
    return -np.log(np.hypot(np.clip(values, -0.5 * largest, 0.5 * largest), unit))


def log_density(ratios: Array, scales: Array, clean: Array, counts: Array, edges: Array) -> Array:
    """Logarithms of the density of clean targets.

    `ratios` are standardised residuals, which were divided by `scales`. For each sign, `clean` is the share of its
    records that are clean and in each cell, and `counts` its histogram.
    """
    density = clean * (counts.sum(axis=1, keepdims=True) / counts.sum()) / np.diff(edges)
    return np.log(np.maximum(density[find_cells(ratios, edges)], np.finfo(float).tiny)) - np.log(scales)
