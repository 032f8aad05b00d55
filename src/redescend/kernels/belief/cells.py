"""Cells of standardised residuals: a quarter of an octave wide up to 2⁵, then one octave."""

from __future__ import annotations

import numpy as np

from redescend.kernels.compiler import part
from redescend.numeric import Array

LOWEST, MIDDLE, HIGHEST = -4, 5, 25
FINE = 4
CELLS = (MIDDLE - LOWEST) * FINE + HIGHEST - MIDDLE

TILT = 1e-3
"""Log-odds keep falling by this much where the histogram has no more cells, so that records are ranked without ties."""


def cell_edges() -> Array:
    """The edges of the cells; the first is 0."""
    fine = np.arange(LOWEST * FINE, MIDDLE * FINE) / FINE
    edges = 2.0 ** np.concatenate([fine, np.arange(MIDDLE, HIGHEST + 1.0)])
    edges[0] = 0.0
    return edges


def cell_centers(edges: Array) -> Array:
    """The logarithm to base 2 in the middle of every cell; of the first, its lower end: below, all is one."""
    logs = np.log2(np.maximum(edges, 2.0**LOWEST))
    centers = 0.5 * (logs[1:] + logs[:-1])
    centers[0] = LOWEST
    return centers


@part
def find_cell(size: float) -> int:
    """The cell of a residual of this size."""
    if not size > 2.0**LOWEST:
        return 0
    log = np.log2(size)
    if log < MIDDLE:
        return int((log - LOWEST) * FINE)
    return min((MIDDLE - LOWEST) * FINE + int(min(log, HIGHEST + 1.0) - MIDDLE), CELLS - 1)


@part
def interpolate(size: float, table: Array, centers: Array) -> float:
    """The entry of a table of cells for a residual of this size, interpolated between the centers of cells."""
    if not size > 2.0**LOWEST:
        return table[0] + TILT * (1.0 - size * 2.0**-LOWEST)
    cell = find_cell(size)
    value = table[cell]
    step = np.log2(size) - centers[cell]
    if cell == CELLS - 1 and step > 0.0:
        return value - TILT * step
    other = cell + 1 if step > 0.0 else cell - 1
    return value + abs(step) / abs(centers[other] - centers[cell]) * (table[other] - value)
