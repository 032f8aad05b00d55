"""Statistics of a served model in little memory, for there may be thousands: losses, newest rounds, and durations."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from threading import Lock
from typing import Any, ClassVar, NamedTuple

import numpy as np

from redescend import transforms
from redescend.numeric import Array
from redescend.sources import Bad
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.rounds import Rounds
from redescend.streaming.summary import SuspectRule
from redescend.streaming.summary.records import Rejections

SHIFT = 48  # bits of a loss that are dropped: 16 cells are left between a number and its double
MOST, MOST_COMMITS = 4096, 64  # records and commits whose losses wait at most until they are counted


class Statistics:
    """Counts of losses and of reasons, and which records are suspects."""

    def __init__(self, schema: Schema, transform: transforms.Transform | None = None) -> None:
        self._rule = SuspectRule.make(schema, transform)
        self.rejections = Rejections()
        self._losses: Counter[int] = Counter()  # losses by their first bits
        self._newest: list[Array] = []  # losses that are not among them yet: to count many at once takes less time
        self._waiting = 0  # their number
        self.learned = 0  # how many rounds were counted
        self._lock = Lock()  # held while losses are counted: a snapshot is taken while others read

    def are_suspects(self, rounds: Rounds) -> Array:
        """Which of these records are suspects, by the limits of `redescend fit`."""
        return self._rule.are_suspects(rounds)

    def add(self, rounds: Rounds, rejected: Sequence[Bad]) -> None:
        """Count rounds, and rejected records in the order of their rows."""
        with self._lock:
            self.learned += len(rounds)
            if len(rounds):
                self._newest.append(rounds.losses)
                self._waiting += len(rounds)
            if self._waiting > MOST or len(self._newest) > MOST_COMMITS:
                self._count_newest()
            self.rejections.add(rejected)

    def count_losses(self) -> list[tuple[int, int]]:
        """The first bits of losses, each with the number of records."""
        with self._lock:
            self._count_newest()
            return list(self._losses.items())

    def _count_newest(self) -> None:
        if self._newest:
            cells = np.concatenate(self._newest).astype(np.float64, copy=False).view(np.int64) >> SHIFT
            first = cells.min()
            counts = np.bincount(cells - first)
            used = np.flatnonzero(counts)
            self._losses.update(dict(zip((used + first).tolist(), counts[used].tolist(), strict=True)))
        self._newest, self._waiting = [], 0

    @property
    def median_loss(self) -> float | None:
        """The median loss, within 4 %; None before the first record."""
        below, half = 0, self.learned / 2
        for cell, count in sorted(self.count_losses()):
            below += count
            if below >= half:
                ends = np.array([cell << SHIFT, (cell + 1) << SHIFT], dtype=np.int64).view(np.float64)
                return float(ends.mean()) if np.isfinite(ends).all() else float(ends[0])
        return None

    def state(self) -> dict[str, Any]:
        """Everything, as an array and plain values."""
        return {"losses": np.array(self.count_losses(), np.int64).reshape(-1, 2), "rejections": self.rejections.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state."""
        self._losses = Counter({int(cell): int(count) for cell, count in state["losses"]})
        self._newest, self._waiting, self.learned = [], 0, self._losses.total()
        self.rejections.restore(state["rejections"])


SIZE = 400  # rounds that are kept


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
        places = np.arange(self._count - min(len(rounds), size), self._count) % size
        for ring, column in zip(self._ring, columns, strict=True):
            ring[places] = column[len(column) - len(places) :]

    def read(self) -> RecentRounds:
        """A copy of the rounds."""
        size = self._ring.shape[1]
        return RecentRounds(*self._ring[:, np.arange(max(0, self._count - size), self._count) % size])

    def restore(self, rounds: Array) -> None:
        """Restore rounds that were read, a row for each of their arrays."""
        self._count = rounds.shape[1]
        self._ring[:, : self._count] = rounds


class Histogram:
    """Counts of seconds, by upper bounds.

    >>> histogram = Histogram()
    >>> histogram.observe(0.001)
    >>> histogram.observe(100.0)
    >>> histogram.counts[0], histogram.counts[-1], histogram.sum
    (1, 1, 100.001)
    """

    BOUNDS: ClassVar[tuple[float, ...]] = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)

    def __init__(self) -> None:
        self.counts, self.sum = [0] * (len(self.BOUNDS) + 1), 0.0

    def observe(self, seconds: float) -> None:
        """Count a duration."""
        self.counts[bisect_left(self.BOUNDS, seconds)] += 1
        self.sum += seconds
