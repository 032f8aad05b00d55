"""The newest rounds of a served model, for its live page: a few numbers each, in a ring."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from redescend.numeric import Array
from redescend.streaming.rounds import Rounds

SIZE = 400
"""Rounds that are kept."""


class RecentRounds(NamedTuple):
    """Consecutive rounds, the oldest first, as arrays of one length; targets and predictions are numbers."""

    rows: Array
    targets: Array
    predictions: Array
    probabilities: Array
    low: Array
    high: Array
    losses: Array
    suspects: Array


class RecentRing:
    """The newest rounds.

    >>> ring = RecentRing(2)
    >>> one = np.ones(3)
    >>> ring.add(Rounds(np.array([1, 2, 3]), one, one, one, one, one), np.array([False, True, False]))
    >>> ring.read().rows
    array([2., 3.])
    """

    def __init__(self, size: int = SIZE) -> None:
        self._ring = np.empty((len(RecentRounds._fields), size))
        self._count = 0

    def add(self, rounds: Rounds, suspects: Array) -> None:
        """Add rounds and whether they are suspects."""
        size = self._ring.shape[1]
        numbers = (rounds.rows, rounds.targets, rounds.predictions, rounds.probabilities)
        columns = (*numbers, rounds.low, rounds.high, rounds.losses, suspects)
        self._count += len(rounds)
        added = min(len(rounds), size)
        start = (self._count - added) % size
        end = min(start + added, size)
        for ring, column in zip(self._ring, columns, strict=True):
            newest = column[-added:]
            ring[start:end] = newest[: end - start]
            if added > end - start:
                ring[: added - (end - start)] = newest[end - start :]

    def read(self) -> RecentRounds:
        """A copy of the rounds."""
        size = self._ring.shape[1]
        ordered = (
            self._ring[:, : self._count] if self._count <= size else np.roll(self._ring, -(self._count % size), axis=1)
        )
        return RecentRounds(*ordered.copy())
