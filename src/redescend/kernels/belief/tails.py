"""The evidence in a histogram for a second group of residuals: beyond some size, the tail is heavier than before.

The tail of natural residuals may be heavy, but it is not heavier further out. Its weight is described by the hazard on
a logarithmic scale: the share of the residuals beyond a size that end within the next small factor. The hazard of
Student's t rises to the degrees of freedom, that of a power law is constant, that of lighter tails keeps rising. Before
a second group, it falls.
"""

from __future__ import annotations

import numpy as np

from redescend.kernels.belief.cells import CELLS, FINE, LOWEST, MIDDLE
from redescend.kernels.compiler import part
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
