"""What is fitted to all records of a table at once: the scale of residuals by the features, a histogram, intervals.

The likelihood of the scale is that along a stream, see `kernels.belief.scale`: a residual of size r with the scale s
has the log-likelihood -ln s - ln(1 + (r/s)²), which outliers change little. Along a stream, effects of features are
found by small steps, and stay noisy for thousands of records; here they are the maximum, shrunk.
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
    """Fit the level and the effects of features to the scale of residuals.

    Each iteration maximises a quadratic lower bound of the likelihood, whose curvature is the same in all iterations.

    Parameters
    ----------
    standard : array of floats, shape (rows, features)
        Standardised features.
    logs : array of floats, shape (rows,)
        Logarithms of the sizes of residuals.

    Returns
    -------
    level : float
        The logarithm of the scale where all features have their means.
    effects : array of floats, shape (features,)
        What every feature adds to it, in its standard deviations.

    Examples
    --------
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


def correct_ends(ratios: Array, clean: Array, ends: Array, tail: float) -> Array:
    """Logarithms of factors for the ends of intervals, below and above, so that this share of the clean records is
    beyond each; 0 where an end would not be on its side. `clean` are probabilities.
    """
    order = np.argsort(ratios, kind="stable")
    found = np.interp([tail, 1.0 - tail], np.cumsum(clean[order]) / clean.sum(), ratios[order]) * [-1.0, 1.0]
    known = np.minimum(found, ends) > 0.0
    return np.where(known, np.log(np.where(known, found, 1.0)) - np.log(np.where(known, ends, 1.0)), 0.0)
