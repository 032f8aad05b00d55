"""A uniform sample of the rounds of a stream, in a fixed size."""

from __future__ import annotations

from typing import Any

import numpy as np

from redescend.state import ArraySpec, read_arrays, require
from redescend.streaming.rounds import Judged, Rounds
from redescend.streaming.summary import cells


class Reservoir:
    """A uniform sample of at most `size` rounds. It depends on the row numbers alone, so it is reproducible."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.rounds = Rounds.concatenate([])
        self._orders = cells.hash_rows(self.rounds.rows)

    def add(self, rounds: Rounds) -> None:
        """Sample from these rounds as well."""
        orders = cells.hash_rows(rounds.rows)
        if len(self.rounds) == self.size:
            drawn = np.flatnonzero(orders < self._orders[-1])
            if not len(drawn):
                return
            rounds, orders = rounds[drawn], orders[drawn]
        orders = np.append(self._orders, orders)
        first = np.argsort(orders, kind="stable")[: self.size]
        self.rounds, self._orders = Rounds.concatenate([self.rounds, rounds])[first], orders[first]

    def state(self) -> dict[str, Any]:
        judged = self.rounds.judged
        return {
            "rows": self.rounds.rows.copy(),
            "numbers": np.stack(list(self.rounds.arrays())[1:]),
            "judged": np.empty((0, len(self.rounds))) if judged is None else np.stack(judged),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state of a reservoir of the same size."""
        specs = (
            ArraySpec("rows", ("count",), kind="count", dtype=np.int64),
            ArraySpec("numbers", (5, "count"), finite=False),
            ArraySpec("judged", ("judgements", "count"), finite=False),
        )
        rows, numbers, parts = read_arrays(specs, state, {}, "a sample").values()
        require(len(rows) <= self.size, "a sample", f"more than {self.size} records")
        require(len(parts) in (0, len(Judged._fields)), "a sample", f"{len(parts)} judgements")
        judged = Judged(*parts)._replace(suspect=parts[-1] != 0.0) if len(parts) else None
        self.rounds, self._orders = Rounds(rows, *numbers, judged=judged), cells.hash_rows(rows)
