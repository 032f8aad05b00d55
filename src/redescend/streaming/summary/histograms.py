"""How losses and weights go along a stream of any length, in a fixed amount of memory.

The stream is cut into places of 2^k rows. When there would be more than `PLACES`, every two become one. What is counted
are whole numbers, so the curve depends on the rounds alone and not on the batches in which they come.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from redescend.errors import DataError
from redescend.kernels import histograms as kernel
from redescend.numeric import Array

PLACES = 512
"""How many places a curve has at most; while a stream is shorter, every row has its own."""


class Doubt(NamedTuple):
    """Below which weight a record is hardly believed, and below which it does not look clean.

    Both are shares of the largest weight that a record can have.
    """

    hardly: float
    limit: float

    @property
    def cells(self) -> tuple[int, int]:
        """The first cells of weights above these two."""
        return 1 + kernel.LEVELS.index(self.hardly), 1 + kernel.LEVELS.index(self.limit)


LABELS, NUMBERS, GATED = Doubt(0.1, 0.5), Doubt(1e-6, 0.001), Doubt(0.01, 0.1)
"""The weight of a label is a probability, and what is below half is likelier wrong than right. That of a number is more
careful: of clean records with normal noise, one in ten to one in four has less than half, up to one in ten less than a
tenth, and one in eighty at most less than a thousandth; what is twenty times the noise has less than any of these. The
gate of a fixed transform falls more slowly."""


def quantile(counts: Array, share: float, each: int = 1) -> float:
    """The loss below which a share of the counted ones lies, within a cell as if they were spread evenly over it.

    Examples
    --------
    >>> counts = np.zeros(kernel.CELLS, dtype=np.int64)
    >>> counts[kernel.CELLS // 2] = 100  # between 1 and 1 + 1/64
    >>> quantile(counts, 0.5)
    1.0078125
    """
    total = int(counts.sum())
    if total == 0:
        return np.nan
    sums = np.cumsum(counts)
    wanted = share * total
    cell = int(np.searchsorted(sums, wanted))
    low, high = kernel.edges(np.array([cell, cell + 1]) * each)
    before = float(sums[cell - 1]) if cell else 0.0
    # The first cell is wide in octaves and holds what is as good as nothing.
    return float(low + (high - low) * (wanted - before) / counts[cell]) if cell else 0.0


def _shift(rows: int) -> int:
    """The least k for which places of 2^k rows are enough."""
    return ((rows - 1) // PLACES).bit_length() if rows else 0


class Curve:
    """Histograms of weights and of losses for every place, the losses of all, and where records could not be used.

    Parameters
    ----------
    full : float
        The largest weight that a record can have.
    doubt : Doubt
        When a record does not look clean.
    """

    def __init__(self, full: float = 1.0, doubt: Doubt = NUMBERS) -> None:
        self.full, self.doubt = full, doubt
        self.shift = 0
        """A place has 2^shift rows."""
        self.rows = 0
        """The last row that was seen."""
        self.cells = np.zeros(kernel.CELLS, dtype=np.int64)
        self.believed = np.zeros((PLACES, len(kernel.LEVELS) + 1), dtype=np.int64)
        self.paid = np.zeros((PLACES, kernel.CELLS // kernel.COARSE), dtype=np.int64)
        self.bad = np.zeros(PLACES, dtype=np.int64)

    def add(self, rows: Array, weights: Array, losses: Array) -> None:
        """Count rounds, with rows from 1."""
        if len(rows):
            self._reach(int(rows[-1]))
            bits = np.ascontiguousarray(losses, dtype=np.float64).view(np.int64)
            kernel.count(rows, weights, bits, self.full, self.shift, self.cells, self.believed, self.paid)

    def add_bad(self, rows: Array) -> None:
        """Count records that could not be used."""
        if len(rows):
            self._reach(int(rows[-1]))
            np.add.at(self.bad, (rows - 1) >> self.shift, 1)

    def _reach(self, row: int) -> None:
        self.rows = max(self.rows, row)
        while self.shift < _shift(self.rows):
            self.shift += 1
            for counts in (self.believed, self.paid, self.bad):
                counts[: PLACES // 2] = counts[0::2] + counts[1::2]
                counts[PLACES // 2 :] = 0

    @property
    def levels(self) -> Array:
        """How many records were believed how much, in the cells between `kernels.histograms.LEVELS`."""
        return self.believed.sum(axis=0)

    @property
    def median_loss(self) -> float:
        """Of all rounds, within 0.8 %; NaN before the first."""
        return quantile(self.cells, 0.5)

    def shares(self, places: int = PLACES) -> Array:
        """The share of records that were believed, in at most so many places of equal length; NaN where there is none.

        Examples
        --------
        >>> curve = Curve()
        >>> curve.add(np.arange(1, 9), np.array([0.9, 1e-4, 0.8, 0.7, 2e-4, 0.0, 0.9, 0.9]), np.ones(8))
        >>> curve.shares(4)
        array([0.5, 1. , 0. , 1. ])
        """
        weights = self.gathered(self.believed, places)
        looks_clean, counts = weights[:, self.doubt.cells[1] :], weights.sum(axis=1)
        return np.divide(looks_clean.sum(axis=1), counts, out=np.full(len(counts), np.nan), where=counts > 0)

    def quantiles(self, share: float, places: int = PLACES) -> Array:
        """A quantile of the losses in every place; NaN where there is none."""
        return np.array([quantile(counts, share, kernel.COARSE) for counts in self.gathered(self.paid, places)])

    def gathered(self, counts: Array, places: int) -> Array:
        """What is counted, in at most so many places, each as long as a power of two of those here."""
        used = ((self.rows - 1) >> self.shift) + 1 if self.rows else 0
        together = 1
        while -(-used // together) > places:
            together *= 2
        starts = np.arange(0, used, together)
        return np.add.reduceat(counts[:used], starts, axis=0) if used else counts[:0]

    def starts(self, places: int) -> Array:
        """The first row of each of these places, and the row after the last of the stream."""
        length = len(self.gathered(self.bad, places))
        each = 1 << self.shift
        while each * length < self.rows:
            each *= 2
        return np.append(1 + each * np.arange(length), self.rows + 1)

    def state(self) -> dict[str, Any]:
        """All that was counted, as arrays; of the histograms only what is not 0."""
        state: dict[str, Any] = {"rows": self.rows, "shift": self.shift}
        for name in ("cells", "believed", "paid", "bad"):
            counts = getattr(self, name).ravel()
            places = np.flatnonzero(counts)
            state[name] = np.stack([places, counts[places]])
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state that a curve gave."""
        rows, shift = state["rows"], state["shift"]
        if not (isinstance(rows, int) and isinstance(shift, int) and 0 <= rows < 2**62 and shift == _shift(rows)):
            raise DataError("The state of a curve has impossible numbers; it has been altered.")
        fresh = Curve(self.full, self.doubt)
        for name in ("cells", "believed", "paid", "bad"):
            array, found = getattr(fresh, name).reshape(-1), np.asarray(state[name])
            if found.dtype != np.int64 or found.ndim != 2 or len(found) != 2:
                raise DataError(f"The state of a curve has misshapen {name}; it has been altered.")
            places, counts = found
            if (places < 0).any() or (places >= len(array)).any() or (counts < 1).any():
                raise DataError(f"The state of a curve has impossible {name}; it has been altered.")
            array[places] = counts
        self.__dict__ |= fresh.__dict__ | {"rows": rows, "shift": shift}
