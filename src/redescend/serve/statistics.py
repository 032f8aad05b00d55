"""Statistics of the records of a served model, in little memory: there may be thousands of models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np

from redescend import transforms
from redescend.numeric import Array
from redescend.sources import Bad
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.rounds import Rounds
from redescend.streaming.summary import SuspectRule
from redescend.streaming.summary.records import Rejections

SHIFT = 48
"""Bits of a loss that are dropped: 16 cells are left between a number and its double."""

MOST, MOST_COMMITS = 4096, 64
"""Records and commits whose losses wait at most until they are counted."""


class Statistics:
    """Counts of losses and of reasons, and which records are suspects."""

    def __init__(self, schema: Schema, transform: transforms.Transform | None = None) -> None:
        self._rule = SuspectRule.make(schema, transform)
        self.rejections = Rejections()
        self._losses: Counter[int] = Counter()
        """Losses by their first bits."""
        self._newest: list[Array] = []
        """Losses that are not among them yet: to count many at once takes less time."""
        self._waiting = 0
        """Their number."""
        self.learned = 0
        """How many rounds were counted."""
        self._lock = Lock()
        """Held while losses are counted: a snapshot is taken while others read."""

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
