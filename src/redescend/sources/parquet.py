"""Parquet files, read a group of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from redescend.sources.arrow_messages import MOST_ROWS
from redescend.sources.batch import Piece
from redescend.sources.columnar import SLICE, UNREADABLE, ColumnarFile, RowGroup, check_damage, check_expansion
from redescend.sources.kinds import Kind
from redescend.sources.parquet_pages import Chunk, measure_pages, read_chunks

BUFFER = 2**16  # bytes of a column to read at a time: a row group may not fit in memory


SPREAD = 16  # places in a large file from which records are sampled
WHOLE = 2**23  # the most values of a file that is read as a whole for a sample

FEWER = "there are fewer rows than in its index"


class ParquetFile(ColumnarFile):
    """A Parquet file. Row groups before the first row that is needed are not read."""

    format = "parquet"
    suffixes = ("parquet", "pq")
    magic = (b"PAR1",)

    def read_schema(self) -> pa.Schema:
        return pq.read_schema(self.path)

    def read_spread(self, kinds: Mapping[str, Kind]) -> Iterator[Piece]:
        count = pq.read_metadata(self.path).num_rows if self.damage is None else 0
        if count * len(kinds) <= WHOLE:
            yield from super().read_spread(kinds)
            return
        for places in self._choose_places():
            for rows in self.read_rows(list(kinds), places[0]):
                while places and places[0] < rows.stop:
                    # The rows of a place are its first slice.
                    if (job := next(self._jobs(kinds, iter([rows]), places[0]), None)) is not None:
                        yield job()
                    places = [place for place in places if place >= min(rows.stop, places[0] + SLICE)]
                if not places:
                    break

    def _choose_places(self) -> Iterator[list[int]]:
        """Rows at which to sample a large file, by row group.

        The rows of a group before a place must be read, too: with n groups, places are in the first 1/n of each, so
        that together no more is read than one group.
        """
        metadata = pq.read_metadata(self.path)
        counts = [max(metadata.row_group(group).num_rows, 0) for group in range(metadata.num_row_groups)]
        firsts = np.cumsum([0, *counts]).tolist()
        chosen = np.unique(np.linspace(0, len(counts) - 1, min(SPREAD, len(counts))).astype(int)).tolist()
        for group in chosen:
            ends = np.linspace(0, counts[group] / len(counts), -(-SPREAD // len(chosen)), endpoint=False)
            yield [firsts[group] + place for place in np.unique(ends.astype(int)).tolist()]

    @cached_property
    def _chunks(self) -> list[list[Chunk]]:
        with open(self.path, "rb") as file:
            return read_chunks(file, self.size)

    def read_rows(self, columns: list[str] | None, start: int) -> Iterator[RowGroup]:
        try:
            file = pq.ParquetFile(
                self.path,
                pre_buffer=False,
                buffer_size=BUFFER,
                page_checksum_verification=True,
                # A long text that is repeated is stored once: it stays so until a few rows are converted.
                read_dictionary=[field.name for field in self.schema if pa.types.is_string(field.type)],
            )
        except UNREADABLE as error:
            check_damage(error, self.size)
            yield RowGroup(0, 1, error)
            return
        with file, open(self.path, "rb") as pages:
            row, total = 0, max(file.metadata.num_rows, 1)
            for group in range(file.num_row_groups):
                count = min(max(file.metadata.row_group(group).num_rows, 0), MOST_ROWS)
                if row + count > start:
                    sizes = measure_pages(pages, self._chunks[group] if group < len(self._chunks) else [], columns)
                    check_expansion(self.name, f"a page of each column from row {row + 1:,} on", *sizes)
                    yield from self._read_group(file, group, columns, range(row, row + count), start)
                row += count
                if columns is not None:
                    self.taken = self.size * row // total
            declared = min(file.metadata.num_rows, MOST_ROWS)
            if declared > max(row, start):
                yield RowGroup(max(row, start), declared, Exception(FEWER))
                row = declared
            if self.damage is not None and row >= start:
                yield RowGroup(row, row + 1, pa.ArrowInvalid(self.damage))

    def _read_group(
        self, file: pq.ParquetFile, group: int, columns: list[str] | None, rows: range, start: int
    ) -> Iterator[RowGroup]:
        row, error = rows.start, Exception(FEWER)
        try:
            for batch in file.iter_batches(SLICE, row_groups=[group], columns=columns):
                if row + batch.num_rows > start:
                    yield RowGroup(row, row + batch.num_rows, batch)
                row += batch.num_rows
        except UNREADABLE as damage:
            check_damage(damage, self.size)
            error = damage
        if row < rows.stop:
            yield RowGroup(row, rows.stop, error)
