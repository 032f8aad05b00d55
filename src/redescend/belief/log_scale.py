"""Targets on a logarithmic scale, on which those that are too small by a factor stand out.

A price that lost a digit is off by nine tenths of itself, less than many right prices are. On a logarithmic scale it is
as odd as one with a digit too many. The scale is asinh(y / unit): logarithmic beyond the unit, and linear around 0, so
that any number has a place on it. Targets that are too large stand out as they are; on this scale, only those below
their predictions are judged. Predictions near 0 or of the wrong sign are thus no reason to doubt a target, nor
is a target of 0, which no factor makes of another number.
"""

from __future__ import annotations

import numpy as np

from redescend.belief.table import find_cells
from redescend.kernels.belief.layout import HUGE
from redescend.numeric import Array

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

    Parameters
    ----------
    ratios, scales : arrays of floats, shape (rows,)
        Standardised residuals and what they were divided by.
    clean, counts : arrays of floats, shape (2, cells)
        For each sign, the share of its records that are clean and in each cell, and its histogram.
    edges : array of floats, shape (cells + 1,)
        The edges of the cells.
    """
    density = clean * (counts.sum(axis=1, keepdims=True) / counts.sum()) / np.diff(edges)
    return np.log(np.maximum(density[find_cells(ratios, edges)], np.finfo(float).tiny)) - np.log(scales)
