"""Errors in whole rows of a table: copies of rows and of blocks of rows, and dates out of order."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from redescend.numeric import Array
from redescend.sources import Batch
from redescend.sources.sampling import hash_column, hash_contents
from redescend.streaming.encoding.features import MICROSECONDS_PER_DAY, to_floats

BLOCK = 5  # the fewest consecutive copies that are a block
RUN = 10  # the fewest equal values in succession that are a run of a column of groups
GROUPED = 0.7  # rows are a group if this share of them has texts that occur mostly, by this share, among them
NATURAL = 0.05  # if a larger share of rows are copies, few values are possible, and copies are natural
STRETCHES = 100  # parts of a table in which suspects are counted
IN_ORDER = 0.98  # the share of dates that must not be before the last one, for a column to be in order


class Copy(NamedTuple):
    """Rows from `first` to `last` that repeat those from `source` on."""

    first: int
    last: int
    source: int


class Copies(NamedTuple):
    """The number of rows that are copies of earlier ones, and the longest blocks of copies."""

    rows: int
    blocks: list[Copy]


class RowCheck:
    """Checks the rows of a table for copies and for dates out of order, a batch at a time.

    `apart` are columns that number the records: copies may differ in them, and batches do not have them.
    """

    def __init__(self, apart: Sequence[str] = ()) -> None:
        self._apart = list(apart)
        self._rows: list[Array] = []
        self._hashes: list[Array] = []
        self._dates: dict[str, list[Array]] = {}
        self._texts: dict[str, list[Array]] = {}

    def add(self, batch: Batch) -> None:
        """Add the records of a batch."""
        self._rows.append(batch.rows)
        self._hashes.append(hash_contents(batch.table))
        for name, column in zip(batch.table.schema.names, batch.table.columns, strict=True):
            if pa.types.is_timestamp(column.type):
                self._dates.setdefault(name, []).append(to_floats(column))
            elif pa.types.is_string(column.type):
                self._texts.setdefault(name, []).append(hash_column(column))

    def late_dates(self) -> list[LateDate]:
        """The dates that are out of order, a column after the other."""
        rows = np.concatenate([np.empty(0, np.int64), *self._rows])
        late = (find_late_dates(name, np.concatenate(parts), rows) for name, parts in self._dates.items())
        return list(itertools.chain.from_iterable(late))

    def describe(self) -> list[str]:
        """Describe the errors, a sentence each."""
        if not self._rows:
            return []
        copies = find_copies(np.concatenate(self._hashes), np.concatenate(self._rows))
        return describe_rows(copies, self.late_dates(), self._apart)

    def is_group(self, first: int, last: int) -> bool:
        """Whether rows from `first` to `last` are mostly those with certain texts, such as all records of a shop."""
        rows = np.concatenate(self._rows)
        inside = (rows >= first) & (rows <= last)
        for parts in self._texts.values():
            _, codes = np.unique(np.concatenate(parts), return_inverse=True)
            counts, own = np.bincount(codes), np.bincount(codes[inside], minlength=codes.max() + 1)
            belongs = (own >= GROUPED * counts) & (counts >= BLOCK)
            if belongs[codes[inside]].mean() >= GROUPED:
                return True
        return False


def comes_in_runs(values: Array) -> bool:
    """Whether most values of a column are in runs of `RUN` equal ones, as the numbers of groups of rows are.

    The most frequent value does not count: it may be a 0 that is nearly always there.

    >>> comes_in_runs(np.repeat([4.0, 2.0, 7.0, 1.0], 12)), comes_in_runs(np.append(np.arange(30.0), np.zeros(50)))
    (True, False)
    """
    if len(values) == 0:
        return False
    starts = np.flatnonzero(np.diff(values, prepend=np.nan) != 0.0)
    lengths, (found, codes) = np.diff(starts, append=len(values)), np.unique(values[starts], return_inverse=True)
    others = codes != np.bincount(codes, lengths).argmax()
    return len(found) > 2 and bool(2 * lengths[others & (lengths >= RUN)].sum() > lengths[others].sum())


def count_along(rows: Array, records: int) -> Array:
    """Compute the share of these rows, numbered from 1, in each of `STRETCHES` parts of a table."""
    edges = np.linspace(0, records, min(STRETCHES, max(records, 1)) + 1)
    return np.histogram(rows - 0.5, edges)[0] / np.maximum(np.diff(edges), 1.0)


class LateDate(NamedTuple):
    """A date that is earlier than that of the row before, or later than that of the row after, out of order."""

    row: int
    column: str
    value: float  # in days since 1970-01-01

    def __str__(self) -> str:
        date = np.datetime64(round(self.value * MICROSECONDS_PER_DAY), "us").astype("datetime64[s]")
        return str(date).removesuffix("T00:00:00")


def find_copies(hashes: Array, rows: Array, most: int = 5) -> Copies | None:
    """Find copies among rows with these hashes; None if there are none, or too many to be errors.

    >>> find_copies(np.array([7, 8, 9, 10, 7, 8, 11] + list(range(100, 200))), np.arange(1, 108))
    Copies(rows=2, blocks=[Copy(first=5, last=6, source=1)])
    """
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    sources = first[inverse]
    copies = np.flatnonzero(sources < np.arange(len(hashes)))
    if not len(copies) or (len(copies) > NATURAL * len(hashes) and not _has_block(copies, sources)):
        return None
    breaks = np.flatnonzero((np.diff(copies) != 1) | (np.diff(sources[copies]) != 1)) + 1
    blocks = [
        Copy(int(rows[part[0]]), int(rows[part[-1]]), int(rows[sources[part[0]]])) for part in np.split(copies, breaks)
    ]
    return Copies(len(copies), sorted(blocks, key=lambda one: (one.first - one.last, one.first))[:most])


def _has_block(copies: Array, sources: Array) -> bool:
    """Whether most copies are in blocks."""
    together = (np.diff(copies) == 1) & (np.diff(sources[copies]) == 1)
    return bool(np.mean(together) > 1.0 - 1.0 / BLOCK) if len(together) else False


def find_late_dates(name: str, values: Array, rows: Array) -> list[LateDate]:
    """Find the dates that are out of order in a column that is otherwise sorted; NaN is ignored.

    >>> find_late_dates("day", np.array([1.0, 2.0, 9.0, 3.0, 4.0] + [5.0] * 99), np.arange(1, 105))
    [LateDate(row=3, column='day', value=9.0)]
    """
    known = np.isfinite(values)
    values, rows = values[known], rows[known]
    steps = np.diff(values)
    if len(steps) < 2 or not (steps > 0).any():
        return []
    if np.mean(steps >= 0) < IN_ORDER:
        return []
    late = []
    for place in np.flatnonzero(steps < 0).tolist():
        # Of the two rows at a step back, the wrong one is the one whose removal leaves the others in order.
        before = values[place - 1] if place else -np.inf
        wrong = place if before <= values[place + 1] else place + 1
        late.append(LateDate(int(rows[wrong]), name, float(values[wrong])))
    return late


def describe_rows(copies: Copies | None, late: Iterable[LateDate], apart: Sequence[str] = ()) -> list[str]:
    """Describe copies and late dates, a sentence each."""
    sentences = []
    if copies is not None:
        blocks = ", ".join(
            f"row {one.first:,} of row {one.source:,}"
            if one.first == one.last
            else f"rows {one.first:,} to {one.last:,} of those from row {one.source:,} on"
            for one in copies.blocks
        )
        but = f" but for {' and '.join(map(repr, apart))}" if apart else ""
        sentences.append(f"Copies of earlier rows{but}: {copies.rows:,}, such as {blocks}.")
    by_column: dict[str, list[LateDate]] = {}
    for one in late:
        by_column.setdefault(one.column, []).append(one)
    for name, dates in by_column.items():
        shown = ", ".join(f"row {one.row:,} ({one})" for one in dates[:5])
        sentences.append(f"Dates out of order in {name!r}: {len(dates):,}, such as {shown}.")
    return sentences
