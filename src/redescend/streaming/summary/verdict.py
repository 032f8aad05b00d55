"""Counts of the final look: suspects, false alarms, stuck runs and extreme values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from redescend.belief.suspects import HALF
from redescend.numeric import Array
from redescend.state import require
from redescend.streaming.rounds import Rounds


class StuckRun(NamedTuple):
    """A run of records that repeat the target of the record before; of one key, if there are keys."""

    first: int
    last: int
    records: int
    target: float
    key: str | None = None


class FarColumn(NamedTuple):
    """A column with extreme values: the number of records, and the first of them."""

    column: str
    records: int
    row: int
    value: float


class FinalCounts(NamedTuple):
    """The length of the final list and the expected number of false alarms in it.

    `stuck` are the longest runs of stuck targets, and `far` the columns with extreme values.
    """

    listed: int
    clean: float
    stuck: list[StuckRun]
    far: Sequence[FarColumn] = ()

    def state(self) -> list[Any]:
        return [self.listed, self.clean, [list(run) for run in self.stuck], [list(one) for one in self.far]]

    @classmethod
    def restore(cls, state: Any) -> FinalCounts:
        """Restore a state; an invalid one raises an error."""
        listed, clean, stuck, *far = state
        require(type(listed) is int and listed >= 0, "the summary", f"{listed!r} suspects")
        require(0.0 <= clean <= listed, "the summary", f"{clean!r} clean records among {listed} suspects")
        columns = [FarColumn(*one) for one in (far[0] if far else [])]
        return cls(listed, float(clean), [StuckRun(*run) for run in stuck], columns)


class StuckRuns:
    """Collects stuck runs from parts of a stream, given the probability that each record is stuck."""

    def __init__(self) -> None:
        self._runs: list[StuckRun] = []
        self._open: dict[str | None, int] = {}  # by key: the index of the run that ended with its last record

    def add(self, rounds: Rounds, stuck: Array) -> None:
        """Add the next rounds; a run may continue in later ones."""
        if not len(rounds):
            return
        keys = np.zeros(len(rounds), np.int64) if rounds.keys is None else rounds.keys
        order = np.argsort(keys, kind="stable")
        keys, targets, held = keys[order], rounds.targets[order], stuck[order] > HALF
        changed = (np.diff(keys) != 0) | (np.diff(targets) != 0.0) | (held[1:] != held[:-1])
        starts = np.flatnonzero(np.append(True, changed))
        ends = np.append(starts[1:], len(keys))
        begins = np.append(True, np.diff(keys) != 0)  # the first record of a key
        before, self._open = self._open, dict(self._open)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            key = None if rounds.keys is None else rounds.names[int(keys[start])]
            place = before.get(key) if begins[start] else None
            self._open.pop(key, None)
            if not held[start]:
                continue
            first, last = rounds.rows[order[[start, end - 1]]].tolist()
            run = StuckRun(first, last, end - start, float(targets[start]), key)
            if place is not None and self._runs[place].target == run.target:
                known = self._runs[place]
                self._runs[place] = known._replace(last=run.last, records=known.records + run.records)
            else:
                place = len(self._runs)
                self._runs.append(run)
            self._open[key] = place

    def longest(self, most: int) -> list[StuckRun]:
        """The longest runs, in the order of the stream."""
        return sorted(sorted(self._runs, key=lambda run: (-run.records, run.first))[:most])
