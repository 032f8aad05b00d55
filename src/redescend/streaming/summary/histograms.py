"""Histograms of losses and weights along a stream of any length, in a fixed amount of memory.

The stream is divided into bins of 2^k rows. When there would be more than `BINS`, adjacent bins are merged. Counts are
whole numbers, so the histograms depend on the rounds alone and not on the batches in which they come.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from redescend.numeric import Array, splitmix64
from redescend.state import ArraySpec, read_arrays, require

LEVELS = (1e-6, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9)
"""Edges between the cells of a histogram of weights, as shares of the largest weight."""

OCTAVES, STEPS = 512, 64
"""Cells of losses are between 2⁻²⁵⁶ and 2²⁵⁶, STEPS per octave; the first and the last include what is beyond."""

CELLS = OCTAVES * STEPS
COARSE = 32  # how many cells are one cell of the histograms along the stream
FINE = 1 << 20  # probabilities are added as whole multiples of 1/FINE, whose sum is exact in any order

_MANTISSA = 52 - 6
_FIRST = (1023 - OCTAVES // 2) * STEPS


def find_levels(weights: Array, full: float) -> Array:
    """The cell of every weight, where `full` is the largest one; that of NaN is the first.

    >>> find_levels(np.array([0.0, np.nan, 0.01, 0.1, 1.0]), 1.0)
    array([0, 0, 3, 4, 8])
    """
    return np.searchsorted(LEVELS, np.nan_to_num(weights / full, nan=-1.0), side="right")


def find_cells(sizes: Array) -> Array:
    """The cell of every size, such as a loss, which is not below 0: its exponent and the digits after it."""
    bits = np.ascontiguousarray(sizes, dtype=np.float64).view(np.int64)
    return np.clip((bits >> _MANTISSA) - _FIRST, 0, CELLS - 1)


def add_at(counts: Array, row: Array, column: Array | int, amounts: Array | int = 1) -> None:
    """Add amounts to the counts at these places, which may come more than once."""
    np.add.at(counts.reshape(-1), (row * counts.shape[-1] + column).reshape(-1), amounts)


def pack_counts(counts: Array) -> Array:
    """Pack counts for a state: the indices and the values of those that are not 0."""
    indices = np.flatnonzero(counts)
    return np.stack([indices, counts.ravel()[indices]])


def packed_spec(name: str, counts: Array) -> ArraySpec:
    """The spec of packed counts."""
    parts = {0: ArraySpec(name, (), "index", high=counts.size), 1: ArraySpec(name, (), "count", low=1)}
    return ArraySpec(name, (2, f"{name} cells"), "count", dtype=np.int64, parts=parts)


def unpack_counts(packed: Array, counts: Array) -> None:
    """Write packed counts; all others are 0."""
    counts[...] = 0
    counts.reshape(-1)[packed[0]] = packed[1]


def cell_edges(cells: Array) -> Array:
    """The lower edges of cells of losses; that of the first is 0.

    >>> cell_edges(np.array([0, CELLS // 2, CELLS // 2 + 1, CELLS // 2 + STEPS]))
    array([0.      , 1.      , 1.015625, 2.      ])
    """
    cells = np.asarray(cells, dtype=np.int64)
    return np.where(cells == 0, 0.0, ((cells + _FIRST) << _MANTISSA).view(np.float64))


def hash_rows(rows: Array) -> Array:
    """A number between 0 and 2⁶³ for every row that looks random: the smallest are a uniform sample of the rows."""
    return (splitmix64(rows) >> np.uint64(1)).astype(np.int64)


BINS = 512  # the maximum number of bins; in a shorter stream, every row has a bin of its own


class SuspectLimits(NamedTuple):
    """Weights below which a record is a strong suspect, or a suspect, as shares of the largest possible weight."""

    strong: float
    suspect: float

    @property
    def cells(self) -> tuple[int, int]:
        """The first cells of weights above these two."""
        return 1 + LEVELS.index(self.strong), 1 + LEVELS.index(self.suspect)


BELIEF, FIXED_GATE = SuspectLimits(0.1, 0.5), SuspectLimits(0.01, 0.1)
"""Below a probability of a half, a record is more likely wrong than right. The weight of a fixed gate is not a
probability, and decreases more slowly."""


def compute_quantile(counts: Array, share: float, width: int = 1) -> float:
    """A quantile of the losses in a histogram, interpolated linearly within a cell.

    >>> counts = np.zeros(CELLS, dtype=np.int64)
    >>> counts[CELLS // 2] = 100  # between 1 and 1 + 1/64
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
    low, high = cell_edges(np.array([cell, cell + 1]) * width)
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
        self.all_losses = np.zeros(CELLS, dtype=np.int64)
        self.weights = np.zeros((BINS, len(LEVELS) + 1), dtype=np.int64)
        self.losses = np.zeros((BINS, CELLS // COARSE), dtype=np.int64)
        self.rejected = np.zeros(BINS, dtype=np.int64)
        self.coverage = np.zeros((BINS, 4), dtype=np.int64)
        """Numbers of records outside and within their intervals, and sums of their clean probabilities, in 1/FINE."""

    def add(self, rows: Array, weights: Array, losses: Array) -> None:
        """Count rounds, with rows from 1."""
        if len(rows):
            self._extend_to(int(rows.max()))
            places, found = (rows - 1) >> self.shift, find_cells(losses)
            np.add.at(self.all_losses, found, 1)
            add_at(self.losses, places, found // COARSE)
            add_at(self.weights, places, find_levels(weights, self.max_weight))

    def add_intervals(self, rows: Array, inside: Array, clean_probability: Array) -> None:
        """Count which of these records, added before, are within their intervals."""
        places, inside = (rows - 1) >> self.shift, inside.astype(np.int64)
        add_at(self.coverage, places, inside)
        add_at(self.coverage, places, 2 + inside, np.rint(FINE * clean_probability).astype(np.int64))

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
        """Counts of weights over the whole stream, in the cells between `LEVELS`."""
        return self.weights.sum(axis=0)

    def loss_quantiles(self, share: float, bins: int = BINS) -> Array:
        """A quantile of the losses in every bin; NaN where there are none."""
        return np.array([compute_quantile(counts, share, COARSE) for counts in self.merge(self.losses, bins)])

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
        packed = {name: pack_counts(counts) for name, counts in self._named_counts().items()}
        return {"rows": self.rows, "shift": self.shift, **packed}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state; an invalid one raises an error and changes nothing."""
        fresh = StreamHistograms(self.max_weight, self.limits)
        specs = [packed_spec(name, counts) for name, counts in fresh._named_counts().items()]
        arrays = read_arrays(specs, state, {}, "the histograms", ("rows", "shift"))
        rows, shift = state["rows"], state["shift"]
        whole = type(rows) is type(shift) is int and 0 <= rows < 2**62
        require(whole and shift == _find_shift(rows), "the histograms", f"{rows!r} rows in bins of 2^{shift!r}")
        for name, counts in fresh._named_counts().items():
            unpack_counts(arrays[name], counts)
        self.__dict__ |= fresh.__dict__ | {"rows": rows, "shift": shift}
