"""Cells of the histograms of weights, losses and probabilities, and hashes of rows for a sample."""

from __future__ import annotations

import numpy as np

from redescend.numeric import Array, splitmix64
from redescend.state import ArraySpec

LEVELS = (1e-6, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9)
"""Edges between the cells of a histogram of weights, as shares of the largest weight."""

OCTAVES, STEPS = 512, 64
"""Cells of losses are between 2⁻²⁵⁶ and 2²⁵⁶, STEPS per octave; the first and the last include what is beyond."""

CELLS = OCTAVES * STEPS
COARSE = 32  # how many cells are one cell of the histograms along the stream
FINE = 1 << 20  # probabilities are added as whole multiples of 1/FINE, whose sum is exact in any order

_MANTISSA = 52 - 6
_FIRST = (1023 - OCTAVES // 2) * STEPS


def find_levels(weights: Array, full: float) -> Array:
    """The cell of every weight, where `full` is the largest one; that of NaN is the first.

    Examples
    --------
    >>> find_levels(np.array([0.0, np.nan, 0.01, 0.1, 1.0]), 1.0)
    array([0, 0, 3, 4, 8])
    """
    return np.searchsorted(LEVELS, np.nan_to_num(weights / full, nan=-1.0), side="right")


def find_cells(sizes: Array) -> Array:
    """The cell of every size, such as a loss, which is not below 0: its exponent and the digits after it."""
    bits = np.ascontiguousarray(sizes, dtype=np.float64).view(np.int64)
    return np.clip((bits >> _MANTISSA) - _FIRST, 0, CELLS - 1)


def add_at(counts: Array, row: Array, column: Array | int, amounts: Array | int = 1) -> None:
    """Add amounts to the counts at these places, which may come more than once."""
    np.add.at(counts.reshape(-1), (row * counts.shape[-1] + column).reshape(-1), amounts)


def pack_counts(counts: Array) -> Array:
    """Pack counts for a state: the indices and the values of those that are not 0."""
    indices = np.flatnonzero(counts)
    return np.stack([indices, counts.ravel()[indices]])


def packed_spec(name: str, counts: Array) -> ArraySpec:
    """The spec of packed counts."""
    parts = {0: ArraySpec(name, (), "index", high=counts.size), 1: ArraySpec(name, (), "count", low=1)}
    return ArraySpec(name, (2, f"{name} cells"), "count", dtype=np.int64, parts=parts)


def unpack_counts(packed: Array, counts: Array) -> None:
    """Write packed counts; all others are 0."""
    counts[...] = 0
    counts.reshape(-1)[packed[0]] = packed[1]


def cell_edges(cells: Array) -> Array:
    """The lower edges of cells of losses; that of the first is 0.

    Examples
    --------
    >>> cell_edges(np.array([0, CELLS // 2, CELLS // 2 + 1, CELLS // 2 + STEPS]))
    array([0.      , 1.      , 1.015625, 2.      ])
    """
    cells = np.asarray(cells, dtype=np.int64)
    return np.where(cells == 0, 0.0, ((cells + _FIRST) << _MANTISSA).view(np.float64))


def hash_rows(rows: Array) -> Array:
    """A number between 0 and 2⁶³ for every row that looks random: the smallest are a uniform sample of the rows."""
    return (splitmix64(rows) >> np.uint64(1)).astype(np.int64)
