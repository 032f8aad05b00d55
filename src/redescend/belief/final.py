"""What the final verdict is made of, from records and histograms."""

from __future__ import annotations

import numpy as np

from redescend.belief.suspects import HALF
from redescend.kernels.belief import layout
from redescend.numeric import Array

PREDICTED = 0.01
"""A target that the final model predicts up to this part of half an interval is not stuck."""


def are_natural_runs(targets: Array, stuck: Array) -> bool:
    """Whether runs of equal targets are no stuck sensor: they are most records, or many and at an edge of the targets.

    In a sorted table all zeros are in a row, and in a table of groups the target may be that of the group.
    """
    share = np.count_nonzero(stuck) / max(len(stuck), 1)
    if share <= layout.EDGE_SHARE or share > HALF:
        return bool(share > HALF)
    value = np.median(targets[stuck])
    return bool(min(np.mean(targets < value), np.mean(targets > value)) <= layout.BEYOND_EDGE)


def are_predicted(targets: Array, predictions: Array, low: Array, high: Array) -> Array:
    """Whether each target is so near its prediction, for the width of its interval, that it is no stuck sensor's."""
    return np.abs(targets - predictions) <= PREDICTED * np.maximum(0.5 * (high - low), np.finfo(float).tiny)


def final_counts(counts: Array, increment: float) -> Array:
    """The histogram for the final verdict: of all records, or in a short stream the recent one, which has the first."""
    return counts[layout.ALL] if counts[layout.ALL].sum() >= layout.WARM else counts[layout.RECENT] / increment
