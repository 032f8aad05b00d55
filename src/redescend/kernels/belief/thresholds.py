"""What follows from fitted tables of cells: the threshold of suspects, and quantiles of clean residuals."""

from __future__ import annotations

from redescend.kernels.belief.cells import CELLS
from redescend.kernels.belief.hypotheses import sigmoid
from redescend.kernels.compiler import kernel, part
from redescend.kernels.views import view
from redescend.numeric import Array


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
