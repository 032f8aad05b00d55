"""Histograms of losses and weights along a stream of any length, in a fixed amount of memory.

The stream is divided into bins of 2^k rows. When there would be more than `BINS`, adjacent bins are merged. Counts are
whole numbers, so the histograms depend on the rounds alone and not on the batches in which they come.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from redescend.numeric import Array
from redescend.state import read_arrays, require
from redescend.streaming.summary import cells

BINS = 512  # the maximum number of bins; in a shorter stream, every row has a bin of its own


class SuspectLimits(NamedTuple):
    """Weights below which a record is a strong suspect, or a suspect, as shares of the largest possible weight."""

    strong: float
    suspect: float

    @property
    def cells(self) -> tuple[int, int]:
        """The first cells of weights above these two."""
        return 1 + cells.LEVELS.index(self.strong), 1 + cells.LEVELS.index(self.suspect)


BELIEF, FIXED_GATE = SuspectLimits(0.1, 0.5), SuspectLimits(0.01, 0.1)
"""Below a probability of a half, a record is more likely wrong than right. The weight of a fixed gate is not a
probability, and decreases more slowly."""


def compute_quantile(counts: Array, share: float, width: int = 1) -> float:
    """A quantile of the losses in a histogram, interpolated linearly within a cell.

    >>> counts = np.zeros(cells.CELLS, dtype=np.int64)
    >>> counts[cells.CELLS // 2] = 100  # between 1 and 1 + 1/64
    >>> compute_quantile(counts, 0.5)
    1.0078125
    """
    sums = np.cumsum(counts)
    if sums[-1] == 0:
        return np.nan
    wanted = share * int(sums[-1])
    cell = int(np.searchsorted(sums, wanted))
    if cell == 0:
        return 0.0  # the first cell spans many octaves and holds losses that are practically zero
    low, high = cells.cell_edges(np.array([cell, cell + 1]) * width)
    return float(low + (high - low) * (wanted - float(sums[cell - 1])) / counts[cell])


def _find_shift(rows: int, bins: int = BINS) -> int:
    """The smallest k for which this many bins of 2^k rows are enough."""
    return ((rows - 1) // bins).bit_length() if rows else 0


class StreamHistograms:
    """Histograms of weights and losses per bin, of all losses, and counts of rejected records.

    `max_weight` is the largest weight that a record can have, and `limits` are those of suspects.
    """

    def __init__(self, max_weight: float = 1.0, limits: SuspectLimits = BELIEF) -> None:
        self.max_weight, self.limits = max_weight, limits
        self.rows, self.shift = 0, 0  # the last row so far; a bin has 2^shift rows
        self.all_losses = np.zeros(cells.CELLS, dtype=np.int64)
        self.weights = np.zeros((BINS, len(cells.LEVELS) + 1), dtype=np.int64)
        self.losses = np.zeros((BINS, cells.CELLS // cells.COARSE), dtype=np.int64)
        self.rejected = np.zeros(BINS, dtype=np.int64)
        self.coverage = np.zeros((BINS, 4), dtype=np.int64)
        """Numbers of records outside and within their intervals, and sums of their clean probabilities, in 1/FINE."""

    def add(self, rows: Array, weights: Array, losses: Array) -> None:
        """Count rounds, with rows from 1."""
        if len(rows):
            self._extend_to(int(rows.max()))
            places, found = (rows - 1) >> self.shift, cells.find_cells(losses)
            np.add.at(self.all_losses, found, 1)
            cells.add_at(self.losses, places, found // cells.COARSE)
            cells.add_at(self.weights, places, cells.find_levels(weights, self.max_weight))

    def add_intervals(self, rows: Array, inside: Array, clean_probability: Array) -> None:
        """Count which of these records, added before, are within their intervals."""
        places, inside = (rows - 1) >> self.shift, inside.astype(np.int64)
        cells.add_at(self.coverage, places, inside)
        cells.add_at(self.coverage, places, 2 + inside, np.rint(cells.FINE * clean_probability).astype(np.int64))

    def add_rejected(self, rows: Array) -> None:
        """Count rejected records."""
        if len(rows):
            self._extend_to(int(rows.max()))
            np.add.at(self.rejected, (rows - 1) >> self.shift, 1)

    def _extend_to(self, row: int) -> None:
        self.rows = max(self.rows, row)
        while self.shift < _find_shift(self.rows):
            self.shift += 1
            for counts in (self.weights, self.losses, self.rejected, self.coverage):
                counts[: BINS // 2] = counts[0::2] + counts[1::2]
                counts[BINS // 2 :] = 0

    @property
    def weight_counts(self) -> Array:
        """Counts of weights over the whole stream, in the cells between `cells.LEVELS`."""
        return self.weights.sum(axis=0)

    def quantiles(self, share: float, bins: int = BINS) -> Array:
        """A quantile of the losses in every bin; NaN where there are none."""
        return np.array([compute_quantile(counts, share, cells.COARSE) for counts in self.merge(self.losses, bins)])

    def merge(self, counts: Array, bins: int) -> Array:
        """Merge counts into at most this many bins, each of a power of two of the bins here."""
        used = -(-self.rows >> self.shift)
        starts = np.arange(0, used, 1 << _find_shift(used, bins))
        return np.add.reduceat(counts[:used], starts, axis=0) if used else counts[:0]

    def edges(self, bins: int) -> Array:
        """The first row of each of the merged bins, and the row after the last of the stream."""
        width = 1 << max(self.shift, _find_shift(self.rows, bins))
        return np.append(np.arange(1, self.rows + 1, width), self.rows + 1)

    def _named_counts(self) -> dict[str, Array]:
        return {name: getattr(self, name) for name in ("all_losses", "weights", "losses", "rejected", "coverage")}

    def state(self) -> dict[str, Any]:
        """All counts; of the histograms only the indices and values of cells that are not 0."""
        packed = {name: cells.pack_counts(counts) for name, counts in self._named_counts().items()}
        return {"rows": self.rows, "shift": self.shift, **packed}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state; an invalid one raises an error and changes nothing."""
        fresh = StreamHistograms(self.max_weight, self.limits)
        specs = [cells.packed_spec(name, counts) for name, counts in fresh._named_counts().items()]
        arrays = read_arrays(specs, state, {}, "the histograms", ("rows", "shift"))
        rows, shift = state["rows"], state["shift"]
        whole = type(rows) is type(shift) is int and 0 <= rows < 2**62
        require(whole and shift == _find_shift(rows), "the histograms", f"{rows!r} rows in bins of 2^{shift!r}")
        for name, counts in fresh._named_counts().items():
            cells.unpack_counts(arrays[name], counts)
        self.__dict__ |= fresh.__dict__ | {"rows": rows, "shift": shift}
