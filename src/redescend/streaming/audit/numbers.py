"""Numbers that are wrong by a rule, however badly their column is predicted: sentinel values and wrong signs."""

from __future__ import annotations

import numpy as np

from redescend.numeric import Array
from redescend.streaming.audit.kinds import SENTINELS

FEWEST = 100  # the fewest other values by which a number is judged
MOST_SENTINELS, MOST_NEGATIVE = 0.25, 0.005  # the largest shares of sentinel values, and of numbers with a wrong sign
GAP = 0.25  # the least distance of a sentinel value from all other values, relative to their range


def find_odd_numbers(values: Array) -> dict[int, str]:
    """Find the sentinel values and the wrong signs in a column; the kind of each, by index. NaN is a missing value.

    A sentinel value, such as -999, is far from all other values, or negative where nearly no other is. A sign is wrong
    if nearly all other values are positive, and the number would be an ordinary one without it.

    >>> column = np.random.default_rng(0).uniform(5.0, 900.0, 1000)
    >>> column[[7, 8, 9]] = -999.0, -450.0, -1.0
    >>> find_odd_numbers(column)
    {7: 'sentinel value', 8: 'negative, unlike the others'}
    """
    found: dict[int, str] = {}
    is_sentinel = np.isin(values, list(SENTINELS))
    others = values[np.isfinite(values) & ~is_sentinel]
    if len(others) < FEWEST:
        return found
    low, high = float(others.min()), float(others.max())
    margin = GAP * (high - low)
    negative = others[others < 0.0]
    few_negative = len(negative) <= max(1.0, MOST_NEGATIVE * len(others))
    for place in np.flatnonzero(is_sentinel).tolist():
        value = float(values[place])
        if (value < 0.0 and few_negative) or value > high + margin or value < low - margin:
            found[place] = "sentinel value"
    found = found if len(found) <= MOST_SENTINELS * len(values) else {}
    if len(negative) and few_negative:
        least, most = np.quantile(others[others >= 0.0], [0.1, 0.99]).tolist()
        wrong = (values < 0.0) & ~is_sentinel & (-values >= least) & (-values <= most) & (least > 0.0)
        found |= dict.fromkeys(np.flatnonzero(wrong).tolist(), "negative, unlike the others")
    return dict(sorted(found.items()))
