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


SPREAD = 16  # places from which records are sampled

FEWER = "there are fewer rows than in its index"


class ParquetFile(ColumnarFile):
    """A Parquet file. Row groups before the first row that is needed are not read."""

    format = "parquet"
    suffixes = ("parquet", "pq")
    magic = (b"PAR1",)

    def read_schema(self) -> pa.Schema:
        return pq.read_schema(self.path)

    def read_spread(self, kinds: Mapping[str, Kind]) -> Iterator[Piece]:
        rows = pq.read_metadata(self.path).num_rows if self.damage is None else 0
        for start in np.unique(np.linspace(0, max(rows - 1, 0), SPREAD).astype(int)).tolist():
            jobs = self._jobs(kinds, self.read_rows(list(kinds), start), start)
            if (job := next(jobs, None)) is not None:
                yield job()

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
