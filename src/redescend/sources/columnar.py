"""Parquet and Arrow files, a group of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from redescend.sources.tables import SLICE, UNREADABLE, ColumnarPart, Rows

BUFFER = 2**16
"""How many bytes of a column of a Parquet file are read at a time."""

ARROW_FILE = b"ARROW1"
PARQUET_FILE = b"PAR1"
ARROW_STREAM = b"\xff\xff\xff\xff"


class ParquetPart(ColumnarPart):
    """A Parquet file. Row groups before the one where reading begins are not read."""

    def __init__(self, name: str, path: Path, damage: str | None = None) -> None:
        super().__init__(name, damage)
        self.path = path
        self.size = path.stat().st_size

    def read_schema(self) -> pa.Schema:
        return pq.read_schema(self.path)

    def rows(self, columns: list[str] | None, start: int, keep: bool) -> Iterator[Rows]:
        try:
            # Through a buffer: a row group may be larger than the memory that we allow ourselves.
            file = pq.ParquetFile(self.path, pre_buffer=False, buffer_size=BUFFER)
        except UNREADABLE as error:
            yield Rows(0, 1, error)
            return
        with file:
            row, total = 0, max(file.metadata.num_rows, 1)
            for group in range(file.num_row_groups):
                count = file.metadata.row_group(group).num_rows
                if row + count > start:
                    yield from self._group(file, group, columns, row, row + count, start)
                row += count
                if columns is not None:
                    self.taken = self.size * row // total
            if self.damage is not None and row >= start:
                yield Rows(row, row + 1, pa.ArrowInvalid(self.damage))

    @staticmethod
    def _group(
        file: pq.ParquetFile, group: int, columns: list[str] | None, row: int, stop: int, start: int
    ) -> Iterator[Rows]:
        try:
            for batch in file.iter_batches(SLICE, row_groups=[group], columns=columns):
                if row + batch.num_rows > start:
                    yield Rows(row, row + batch.num_rows, batch)
                row += batch.num_rows
        except UNREADABLE as error:
            yield Rows(row, stop, error)


class ArrowPart(ColumnarPart):
    """A file of Arrow batches, with an index at its end or, as a stream, without."""

    def __init__(self, name: str, path: Path, damage: str | None = None) -> None:
        super().__init__(name, damage)
        self.path = path
        self.size = path.stat().st_size

    def read_schema(self) -> pa.Schema:
        with pa.OSFile(str(self.path)) as file:
            return next(self._open(file, None))

    def rows(self, columns: list[str] | None, start: int, keep: bool) -> Iterator[Rows]:
        row = 0
        with pa.OSFile(str(self.path)) as file:
            places = {name: place for place, name in enumerate(self.names)}
            batches = self._open(file, None if columns is None else [places[name] for name in columns])
            try:
                next(batches)
            except UNREADABLE as error:
                yield Rows(0, 1, error)
                return
            for batch, share in batches:
                # How many rows are lost is not known: they count as one.
                count = 1 if isinstance(batch, Exception) else batch.num_rows
                if row + count > start:
                    yield Rows(row, row + count, batch)
                row += count
                if columns is not None:
                    self.taken = int(share * self.size)
            if columns is not None:
                self.taken = self.size

    def look_up(self, columns: list[str], row: int) -> Rows:
        # Batch by batch: how many rows there are in one that is damaged, those columns tell that are not.
        pairs = zip_longest(self.rows(columns, -1, True), self.rows(None, -1, True))
        group, whole = next((group, whole) for group, whole in pairs if group is not None and row < group.stop)
        return group if whole is None or isinstance(whole.held, Exception) else group._replace(held=whole.held)

    def _open(self, file: Any, fields: list[int] | None) -> Iterator[Any]:
        """The schema, then every batch, or what is wrong with it, and the share of the file that has been read."""
        options = pa.ipc.IpcReadOptions(included_fields=fields)
        indexed = file.read(len(ARROW_FILE)) == ARROW_FILE
        file.seek(0)
        if indexed:
            try:
                reader = pa.ipc.open_file(file, options=options)
            except UNREADABLE:
                # Without its index it is still a stream, after eight bytes.
                file.seek(8)
            else:
                yield reader.schema
                for number in range(reader.num_record_batches):
                    yield _checked(partial(reader.get_batch, number)), (number + 1) / reader.num_record_batches
                if self.damage is not None:
                    yield pa.ArrowInvalid(self.damage), 1.0
                return
        stream = pa.ipc.open_stream(file, options=options)
        yield stream.schema
        batch = _checked(stream.read_next_batch)
        while batch is not None and not isinstance(batch, Exception):
            yield batch, file.tell() / max(self.size, 1)
            batch = _checked(stream.read_next_batch)
        if self.damage is not None:
            batch = pa.ArrowInvalid(self.damage)
        if indexed or batch is not None:
            yield batch or pa.ArrowInvalid("the end of the file is missing"), 1.0


def _checked(read: Callable[[], pa.RecordBatch]) -> pa.RecordBatch | Exception | None:
    """A batch, or what is wrong with it; None at the end. One that is not checked may point anywhere in memory."""
    try:
        batch = read()
        batch.validate(full=True)
    except StopIteration:
        return None
    except UNREADABLE as error:
        return error
    return batch
