"""How the verdicts of all members on a number are combined, record by record."""

from __future__ import annotations

import math
from statistics import median


def combine(own, local, linear, residuals, linear_residuals):
    """The log-odds that records are clean, from those among all residuals, around them, and of the linear member."""
    ours, theirs = median(abs(r) for r in residuals), median(abs(r) for r in linear_residuals)
    better = 4.0 * math.log(theirs / ours) if theirs > ours else 0.0
    return [min(median([a, b, c + 1.0]), c + 1.0 + better) for a, b, c in zip(own, local, linear, strict=True)]
