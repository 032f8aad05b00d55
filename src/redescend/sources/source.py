"""A source of records: its columns, their kinds, and its records in batches."""

from __future__ import annotations

import functools
import itertools
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from redescend.errors import DataError
from redescend.parameters import AT_LEAST_ONE, check
from redescend.sources.batch import START, Batch, Piece, Position, joined
from redescend.sources.kinds import SAMPLE, TYPES, Kind
from redescend.sources.prefetch import Ahead
from redescend.sources.words import shown, there_are

MOST = 65_536
"""How many records a batch has at most."""

Follow = Callable[[], bool]


class Part(Protocol):
    """One file, or one table."""

    name: str
    taken: int
    can_grow: bool

    @property
    def names(self) -> Sequence[str] | None:
        """Its columns; None if any may be missing from a record."""

    def jobs(
        self, kinds: Mapping[str, Kind], start: int, *, keep: bool = False, follow: Follow | None = None
    ) -> Iterator[Callable[[], Piece]]:
        """What is to be done to read the columns of these kinds, at least one, from an offset on."""


class Source:
    """Records to be read one after the other. Made by `open_source`.

    Attributes
    ----------
    name : what it is called.
    format : csv, tsv, jsonl, parquet, arrow or memory.
    files : the names of its files, in the order in which they are read; of a table, what it is called.
    size : its bytes, as they are stored, where that is known.
    columns : their names, in order.
    kinds : the kind of each.
    sample : the first thousand records, or as many as there are, with all columns. They come again in `batches`.
    """

    def __init__(
        self,
        name: str,
        format: str,
        parts: Sequence[Part],
        kinds: Mapping[str, Kind],
        size: int | None,
        others: Mapping[str, str],
    ) -> None:
        self.name = name
        self.format = format
        self.files = [part.name for part in parts]
        self.size = size
        self.columns = list(kinds)
        self.kinds = dict(kinds)
        self._others = dict(others)
        self._parts = list(parts)
        self.sample = self._sample()
        if not self.sample.count and format != "memory":
            raise DataError(f"{name} has no records.")

    def batches(
        self,
        columns: Sequence[str],
        *,
        start: Position | None = None,
        most: int = MOST,
        follow: Follow | None = None,
    ) -> Generator[Batch, None, None]:
        """Read these columns of all records, ahead in threads.

        Parameters
        ----------
        columns
            Their names. A record with a value that is not of its column's kind is bad; other columns do not matter.
        start
            Where to begin: the `end` of a batch. The first record if None.
        most
            How many records a batch has at most. What becomes of a record does not depend on it.
        follow
            For a file of text that grows: called, in another thread, when its end is reached. It waits and returns
            whether to look again. A record is complete only when its line has ended.

        Returns
        -------
        an iterator; closing it ends the reading.
        """
        check("batches", "most", most, AT_LEAST_ONE)
        self._check_columns(columns)
        start = START if start is None else Position(*start)
        if not 0 <= start.file <= len(self._parts) or min(start) < 0:
            raise DataError(f"{self.name} has no position {tuple(start)}.")
        if follow is not None and not self._parts[-1].can_grow:
            raise DataError(f"{self.name} cannot be followed: only a file of text that is not compressed can.")
        return self._batches(list(columns), start, most, follow)

    def progress(self) -> int:
        """How many bytes, as they are stored, have been read so far in this pass."""
        return sum(part.taken for part in self._parts)

    def _batches(
        self, columns: list[str], start: Position, most: int, follow: Follow | None
    ) -> Generator[Batch, None, None]:
        for part in self._parts:
            part.taken = 0
        wanted = threading.Event()
        wanted.set()
        growing = follow and (lambda: wanted.is_set() and follow())
        pieces = Ahead(_jobs(self._wanted(columns), start, self._parts, follow=growing)).results()
        try:
            for batch in _batched(pieces, start, most, self._parts):
                yield batch if columns else _narrowed(batch)
        finally:
            wanted.clear()
            pieces.close()

    def _sample(self) -> Batch:
        """The first records of all files together, up to one that lacks a column, under the name of the first."""
        batches, row = [], 0
        alike = list(itertools.takewhile(lambda part: set(self.kinds) <= set(part.names or self.kinds), self._parts))
        for job in _jobs(self.kinds, START, alike, keep=True):
            file, piece = job()
            batches.append(piece.cut(0, min(piece.count, SAMPLE - row), file, self._parts[file].name, row))
            row = batches[-1].end.row
            if row == SAMPLE:
                break
        return joined(batches) if batches else self._nothing()

    def _nothing(self) -> Batch:
        schema = pa.schema([(name, TYPES[kind]) for name, kind in self.kinds.items()])
        empty = pa.RecordBatch.from_pylist([], schema)
        return Batch(empty, np.empty(0, np.int64), [], self.name, START, lambda row: b"")

    def _wanted(self, columns: Sequence[str]) -> dict[str, Kind]:
        # Records can be counted only by a column that they have.
        return {name: self.kinds[name] for name in columns or self.columns[:1]}

    def _check_columns(self, columns: Sequence[str]) -> None:
        for name in columns:
            if name in self._others:
                raise DataError(
                    f"Column {shown(name)} of {self.name} is {self._others[name]}: no number, date or text."
                )
            if name not in self.kinds:
                raise DataError(f"{self.name} has no column {shown(name)}; {there_are(self.columns, name)}")
        for part in self._parts:
            if part.names is None:
                continue
            times = Counter(part.names)
            for name in columns:
                if not times[name]:
                    raise DataError(f"{part.name} has no column {shown(name)}, which {self._parts[0].name} has.")
                if times[name] > 1:
                    raise DataError(f"{part.name} has two columns {shown(name)}.")


def _numbered(file: int, job: Callable[[], Piece]) -> tuple[int, Piece]:
    return file, job()


def _jobs(
    kinds: Mapping[str, Kind],
    start: Position,
    parts: Sequence[Part],
    *,
    keep: bool = False,
    follow: Follow | None = None,
) -> Iterator[Callable[[], tuple[int, Piece]]]:
    for file in range(start.file, len(parts)):
        offset = start.offset if file == start.file else 0
        growing = follow if file == len(parts) - 1 else None
        for job in parts[file].jobs(kinds, offset, keep=keep, follow=growing):
            yield functools.partial(_numbered, file, job)


def _batched(pieces: Iterator[tuple[int, Piece]], start: Position, most: int, parts: Sequence[Part]) -> Iterator[Batch]:
    row, skip, current = start.row, start.skip, start.file
    for file, piece in pieces:
        if file != current:
            skip, current = 0, file
        low = min(skip, piece.count)
        skip -= low
        while low < piece.count:
            high = min(low + most, piece.count)
            yield piece.cut(low, high, file, parts[file].name, row)
            row += high - low
            low = high


def _narrowed(batch: Batch) -> Batch:
    return replace(batch, table=batch.table.select([]))
