"""Arrow IPC files and streams, read a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import zip_longest
from typing import Any

import pyarrow as pa

from redescend.sources.columnar import UNREADABLE, ColumnarFile, RowGroup

INDEXED = b"ARROW1"


class ArrowFile(ColumnarFile):
    """A file of Arrow batches, with an index at its end or, as a stream, without."""

    format = "arrow"
    suffixes = ("arrow", "arrows", "feather", "ipc")
    magic = (INDEXED, b"\xff\xff\xff\xff")

    def read_schema(self) -> pa.Schema:
        with pa.OSFile(str(self.path)) as file:
            return next(self._read(file, None))

    def read_rows(self, columns: list[str] | None, start: int) -> Iterator[RowGroup]:
        row = 0
        with pa.OSFile(str(self.path)) as file:
            places = {name: place for place, name in enumerate(self.names)}
            batches = self._read(file, None if columns is None else [places[name] for name in columns])
            try:
                next(batches)
            except UNREADABLE as error:
                yield RowGroup(0, 1, error)
                return
            for batch, share in batches:
                # The number of lost rows is not known: they count as one.
                count = 1 if isinstance(batch, Exception) else batch.num_rows
                if row + count > start:
                    yield RowGroup(row, row + count, batch)
                row += count
                if columns is not None:
                    self.taken = int(share * self.size)
            if columns is not None:
                self.taken = self.size

    def _look_up(self, columns: list[str], row: int) -> RowGroup:
        # Batch by batch: the columns that were read tell the number of rows of a batch in which others are damaged.
        pairs = zip_longest(self.read_rows(columns, -1), self.read_rows(None, -1))
        group, whole = next((group, whole) for group, whole in pairs if group is not None and row < group.stop)
        return group if whole is None or isinstance(whole.content, Exception) else group._replace(content=whole.content)

    def _read(self, file: Any, fields: list[int] | None) -> Iterator[Any]:
        """The schema; then every batch, or its error, and the share of the file that was read."""
        options = pa.ipc.IpcReadOptions(included_fields=fields)
        indexed = file.read(len(INDEXED)) == INDEXED
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
                    yield _read_checked(partial(reader.get_batch, number)), (number + 1) / reader.num_record_batches
                if self.damage is not None:
                    yield pa.ArrowInvalid(self.damage), 1.0
                return
        stream = pa.ipc.open_stream(file, options=options)
        yield stream.schema
        batch = _read_checked(stream.read_next_batch)
        while batch is not None and not isinstance(batch, Exception):
            yield batch, file.tell() / max(self.size, 1)
            batch = _read_checked(stream.read_next_batch)
        if self.damage is not None:
            batch = pa.ArrowInvalid(self.damage)
        if indexed or batch is not None:
            yield batch or pa.ArrowInvalid("the end of the file is missing"), 1.0


def _read_checked(read: Callable[[], pa.RecordBatch]) -> pa.RecordBatch | Exception | None:
    """A batch, its error, or None at the end. A batch that is not validated may point anywhere in memory."""
    try:
        batch = read()
        batch.validate(full=True)
    except StopIteration:
        return None
    except UNREADABLE as error:
        return error
    return batch
