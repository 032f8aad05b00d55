"""A sample of rounds in which every record has the same chance, and the same records are drawn every time."""

from __future__ import annotations

from typing import Any

import numpy as np

from redescend.errors import DataError
from redescend.kernels.histograms import shuffled
from redescend.streaming.rounds import Rounds


class Sample:
    """The rounds whose rows, shuffled, come first: a uniform sample that depends on the rows alone.

    Parameters
    ----------
    size : int
        How many rounds are kept at most.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.rounds = Rounds.joined([])
        """What was drawn so far."""
        self._orders = shuffled(self.rounds.rows)

    def add(self, rounds: Rounds) -> None:
        """Draw from these rounds too."""
        orders = shuffled(rounds.rows)
        if len(self.rounds) == self.size:
            drawn = np.flatnonzero(orders < self._orders[-1])
            if not len(drawn):
                return
            rounds, orders = rounds[drawn], orders[drawn]
        orders = np.append(self._orders, orders)
        first = np.argsort(orders, kind="stable")[: self.size]
        self.rounds, self._orders = Rounds.joined([self.rounds, rounds])[first], orders[first]

    def state(self) -> dict[str, Any]:
        return {"rows": self.rounds.rows.copy(), "numbers": np.stack(list(self.rounds.arrays())[1:])}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state that a sample of the same size gave."""
        rows, numbers = np.asarray(state["rows"]), np.asarray(state["numbers"])
        sound = rows.dtype == np.int64 and rows.ndim == 1 and len(rows) <= self.size and numbers.dtype == np.float64
        if not sound or numbers.shape != (5, len(rows)):
            raise DataError("The state of a sample is misshapen; it has been altered.")
        self.rounds, self._orders = Rounds(rows.copy(), *numbers.copy()), shuffled(rows)
