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

SIMILAR, SEVERAL, ALONE = 1.0 / 3.0, 3, 1.0 / 3.0
"""Runs of at least the first part of the length of another are like it. Targets come in runs if at least SEVERAL other
values have such runs, and if at most the last part of all targets differs from both neighbours: a sensor may stick
several times, but the other targets then still change."""

TOP, SHIFT, CHANCE = 4, 3.0, 0.01
"""The tail of the runs of a frequent value is a power of the length and SHIFT, fitted to the longest TOP of them. A run
is ordinary if at least CHANCE runs are expected to be as long."""


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


def are_natural_runs(targets: Array, stuck: Array, wrong: Array) -> bool:
    """Whether runs of equal targets are no stuck sensor: they are most records, or many and at an edge of the targets.

    In a sorted table all zeros are in a row, and in a table of groups the target may be that of the group. Targets that
    are probably `wrong`, such as those with a wrong sign, may be beyond the edge.
    """
    share = np.count_nonzero(stuck) / max(len(stuck), 1)
    if share <= layout.EDGE_SHARE or share > HALF:
        return bool(share > HALF)
    value = np.median(targets[stuck])
    return bool(min(np.mean((targets < value) & ~wrong), np.mean((targets > value) & ~wrong)) <= layout.BEYOND_EDGE)


def find_ordinary_runs(targets: Array, changes: Array, stuck: Array) -> Array:
    """Find the records of runs of equal targets of which one was taken for `stuck`, but that are no stuck sensor.

    A run is ordinary if several other values have runs like it, each value counting once, and if most of the targets
    repeat: the table is sorted or has groups. If a quarter of the other records have its value, it is compared with the
    other runs of this value as well: their lengths may have a power law for a tail, and a run is ordinary if one as
    long can be expected. Records are in order key by key; `changes` says which are the first of their keys.

    >>> groups, alone = np.repeat([3.0, 1.0, 2.0, 5.0, 4.0], 30), np.append(np.arange(100.0), np.full(30, 4.5))
    >>> [find_ordinary_runs(y, y < 0.0, y == y[-1]).any().item() for y in (groups, alone)]
    [True, False]
    """
    if not stuck.any():
        return np.zeros(len(targets), np.bool_)
    starts = np.flatnonzero(np.append(True, np.diff(targets) != 0.0) | changes)
    lengths = np.diff(starts, append=len(targets))
    values, codes = np.unique(targets[starts], return_inverse=True)
    longest = np.zeros(len(values))
    np.maximum.at(longest, codes, lengths)
    longest.sort()
    order = np.lexsort((lengths, codes))
    places = np.searchsorted(codes[order], np.arange(len(values) + 1))
    ordinary = np.zeros(len(starts), np.bool_)
    repeating = np.count_nonzero(lengths == 1) <= ALONE * len(targets)
    for run in np.flatnonzero(np.logical_or.reduceat(stuck, starts)):
        others = len(values) - 1 - np.searchsorted(longest, SIMILAR * lengths[run])
        low, high = places[codes[run] : codes[run] + 2]
        same = lengths[order[low:high]]
        rest = np.delete(same, np.searchsorted(same, lengths[run]))
        frequent = len(rest) > TOP and rest.sum() >= layout.COMMON_POINT * (len(targets) - lengths[run])
        expected = _expect(rest, lengths[run]) if frequent else 0.0
        ordinary[run] = (repeating and others >= SEVERAL) or expected >= CHANCE
    return np.repeat(ordinary, lengths)


def _expect(lengths: Array, length: float) -> float:
    """How many runs are expected to have this length at least, by the power law of the longest of these, in order."""
    *top, least = lengths[: -TOP - 2 : -1] + SHIFT
    spread = float(np.log(top).sum() - TOP * np.log(least))
    if length <= lengths[-1]:
        return 1.0
    return TOP * float(((length + SHIFT) / least) ** (-TOP / spread)) if spread > 0.0 else 0.0


def are_predicted(targets: Array, predictions: Array, low: Array, high: Array) -> Array:
    """Whether each target is so near its prediction, for the width of its interval, that it is no stuck sensor's."""
    return np.abs(targets - predictions) <= PREDICTED * np.maximum(0.5 * (high - low), np.finfo(float).tiny)


def final_counts(counts: Array, increment: float) -> Array:
    """The histogram for the final verdict: of all records, or in a short stream the recent one, which has the first."""
    return counts[layout.ALL] if counts[layout.ALL].sum() >= layout.WARM else counts[layout.RECENT] / increment
