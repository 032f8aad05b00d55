"""What a belief says about records: judgements before it learns from them, and the final verdict."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from redescend.belief.suspects import HALF, q_values, select_suspects, to_probability
from redescend.kernels.belief import layout
from redescend.kernels.belief.layout import Outputs
from redescend.numeric import Array

PREDICTED = 0.01
"""A target that the final model predicts up to this part of half an interval is not stuck."""


class Judgements(Outputs):
    """The judgements of records, each from before it was learned from.

    Attributes
    ----------
    clean_log_odds : array of floats
        Logarithm of the odds that the record is clean.
    low, high : arrays of floats
        The interval in which nine in ten clean targets lie.
    scale : array of floats
        The scale of the residual, from the records before and the features.
    stuck : array of floats
        The probability that the target only repeats the last one.
    suspect : array of bools
        Whether the record would be in a list with a tenth of false alarms.

    Examples
    --------
    >>> import numpy as np
    >>> Judgements(np.zeros(1), *np.zeros((5, 1))).clean_probability
    array([0.5])
    """

    __slots__ = ()

    @property
    def clean_probability(self) -> Array:
        """The probability that each record is clean, never exactly 0 or 1."""
        return to_probability(self.clean_log_odds)


class Verdict(NamedTuple):
    """The final verdict on records, by everything learned.

    Attributes
    ----------
    clean_log_odds : array of floats
        Logarithm of the odds that the record is clean.
    stuck : array of floats
        The probability that the target only repeats an earlier one.
    numbers : bool
        Whether targets are numbers, not labels.

    Examples
    --------
    >>> import numpy as np
    >>> verdict = Verdict(np.array([3.0, -4.0, 2.0]), np.zeros(3))
    >>> verdict.suspects(fdr=0.1)
    array([1])
    """

    clean_log_odds: Array
    stuck: Array
    numbers: bool = False

    @property
    def clean_probability(self) -> Array:
        """The probability that each record is clean, never exactly 0 or 1."""
        return to_probability(self.clean_log_odds)

    @property
    def q_value(self) -> Array:
        """The estimated share of false alarms in the list of a record and all that are less likely clean."""
        return q_values(self.clean_probability)

    def suspects(self, fdr: float = 0.1) -> Array:
        """The largest list of rows whose estimated share of false alarms is at most `fdr`, the worst first."""
        return select_suspects(self.clean_probability, fdr, self.numbers)


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
