"""Cells of standardised residuals: a quarter of an octave wide up to 2⁵, then one octave.

From tables of cells follow the threshold of suspects, and quantiles of clean residuals.
"""

from __future__ import annotations

import numpy as np

from redescend.kernels.belief.hypotheses import sigmoid
from redescend.kernels.compiler import kernel, part
from redescend.kernels.views import view
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


@part
def find_threshold(log_odds: Array, mass: Array, false_alarms: float) -> float:
    """The largest probability in a list of cells whose mean probability is at most `false_alarms`, and at most ½.

    If there is such a list, at least `false_alarms`. `log_odds` and `mass` have two rows of cells.
    """
    found = 0.0
    for i in range(log_odds.size):
        last = log_odds[i // log_odds.shape[1], i % log_odds.shape[1]]
        if last > 0.0:
            continue
        false = listed = 0.0
        for row in range(2):
            for c in range(log_odds.shape[1]):
                if log_odds[row, c] <= last:
                    false += sigmoid(log_odds[row, c]) * mass[row, c]
                    listed += mass[row, c]
        if listed > 0.0 and false <= false_alarms * listed:
            found = max(found, sigmoid(last), false_alarms)
    return found


@part
def find_quantile(clean: Array, edges: Array, tail: float) -> float:
    """The size of a residual beyond which there is this share of residuals."""
    beyond = 0.0
    for c in range(CELLS - 1, -1, -1):
        if clean[c] > 0.0 and beyond + clean[c] >= tail:
            inside = min((tail - beyond) / clean[c], 1.0)  # a rounding error beyond 1 would be a negative size
            if c == 0:
                return edges[1] * (1.0 - inside)
            return edges[c + 1] * (edges[c] / edges[c + 1]) ** inside
        beyond += clean[c]
    return 0.0


@kernel
def find_quantiles(clean: Array, counts: Array, edges: Array, level: float) -> tuple[float, float]:
    """The ends of the interval with this share of clean residuals, as sizes below and above."""
    clean, counts, edges = view((clean, counts, edges))
    below = above = 0.0
    records_below = records_above = 1.0
    for c in range(CELLS):
        below += clean[0, c]
        above += clean[1, c]
        records_below += counts[0, c]
        records_above += counts[1, c]
    tail = 0.5 * (1.0 - level) * (below * records_below + above * records_above)
    low = find_quantile(clean[0], edges, min(tail / records_below, below))
    return low, find_quantile(clean[1], edges, min(tail / records_above, above))
