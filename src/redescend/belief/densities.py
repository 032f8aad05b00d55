"""Densities of standardised residuals, as the shares of a histogram's cells."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import scipy

from redescend.kernels.belief.cells import HIGHEST, cell_centers, cell_edges
from redescend.kernels.belief.layout import Tables
from redescend.numeric import Array

Distribution = Callable[[Array], Array]
"""The share of residuals that are no larger than each of these sizes."""


def student(degrees: float) -> Distribution:
    return lambda size: 2.0 * scipy.special.stdtr(degrees, size) - 1.0


FAMILIES: dict[str, tuple[Distribution, float]] = {
    "normal": (lambda size: 2.0 * scipy.special.ndtr(size) - 1.0, 0.6744897501960817),
    "Laplace": (lambda size: -np.expm1(-size), 0.6931471805599453),
    "t4": (student(4.0), 0.7406970841126829),
    "t2": (student(2.0), 0.8164965809277260),
    "t1": (student(1.0), 1.0),
    "t0.7": (student(0.7), 1.200330743457406),
}
"""Families of clean residuals, and the median size of each. The last are those of models that fit some records nearly
exactly and others hardly, without a gap between them."""

NEARBY, NEARBY_PRIOR = "normal", 0.005
"""The family that comes once more, with outliers nearby, and how likely that is: outliers so near explain whatever a
family does not fit, so only a second peak of many records should speak for them."""

NEARBY_PEAK = (1.0, 2.0, 3.0)
"""Where outliers nearby begin, are most frequent and end, on a scale of logarithms to base 2."""

OCTAVES = np.arange(-8, 9) / 4
"""Medians of families, as logarithms to base 2."""

SLAB = 12.0
"""Outliers may be spread evenly up to here."""

PEAKS = (3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 13.0, 16.0, 19.0, 22.0)
"""Outliers may be around here, on a scale of logarithms to base 2."""

OUTLIER_PRIOR, SLAB_SHARE = 1.0, 0.3
"""Prior records that are outliers, and how many of them are spread evenly."""


@functools.cache
def make_tables() -> Tables:
    """The densities that a belief compares, made once."""
    edges = cell_edges()

    def cells(distribution: Distribution) -> Array:
        shares = np.array(distribution(edges))
        shares[-1] = 1.0
        return np.diff(shares)

    def scaled(distribution: Distribution, median: float) -> Array:
        return np.array([cells(lambda size, k=k: distribution(size * (median / 2.0**k))) for k in OCTAVES])  # type: ignore[misc]

    families = np.array([scaled(*family) for family in (*FAMILIES.values(), FAMILIES[NEARBY])])
    log_clean = np.log(np.maximum(families, 1e-300))
    starts, ends = (PEAKS[0] - 0.5, *PEAKS[:-1]), (*PEAKS[1:], float(HIGHEST))
    hats = [cells(make_hat(*corners)) for corners in zip(starts, PEAKS, ends, strict=True)]
    outliers = np.array([cells(lambda size: np.minimum(size / SLAB, 1.0)), *hats, cells(make_hat(*NEARBY_PEAK))])
    spans = np.array([[np.flatnonzero(atom)[0], np.flatnonzero(atom)[-1] + 1] for atom in outliers])
    shares = [SLAB_SHARE, *[(1.0 - SLAB_SHARE) / len(hats)] * len(hats)]
    log_prior = np.log([*(1.0 for _ in FAMILIES), NEARBY_PRIOR])
    prior = np.tile(OUTLIER_PRIOR * np.array([*shares, 0.0]), (len(families), 1))
    prior[-1, -1] = OUTLIER_PRIOR
    return Tables(edges, cell_centers(edges), families, log_clean, outliers, spans, prior, log_prior)


def make_hat(start: float, peak: float, end: float) -> Distribution:
    """The distribution of sizes whose logarithm has a triangular density."""

    def distribution(size: Array) -> Array:
        log = np.log2(np.maximum(size, 2.0**-20))
        up = np.clip((log - start) / (peak - start), 0.0, 1.0)
        down = np.clip((log - peak) / (end - peak), 0.0, 1.0)
        return ((peak - start) * up**2 + (end - peak) * (2.0 * down - down**2)) / (end - start)

    return distribution
