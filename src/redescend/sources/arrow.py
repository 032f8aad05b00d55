"""Arrow IPC files and streams, read a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, zip_longest
from typing import Any

import pyarrow as pa

from redescend.sources.arrow_messages import END, MARKER, count_batch_rows, measure_batches, measure_indexed
from redescend.sources.columnar import UNREADABLE, ColumnarFile, RowGroup, check_damage, check_expansion

INDEXED = b"ARROW1"
BODY = 8  # the offset of the first message of an indexed file

DAMAGED = pa.ArrowInvalid("a message is damaged")


class ArrowFile(ColumnarFile):
    """A file of Arrow batches, with an index at its end or, as a stream, without."""

    format = "arrow"
    suffixes = ("arrow", "arrows", "feather", "ipc")
    magic = (INDEXED, b"\xff\xff\xff\xff")
    _declared: list[int] | None = None

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
                check_damage(error, self.size)
                yield RowGroup(0, 1, error)
                return
            for batch, rows, share in batches:
                if row + rows > start:
                    yield RowGroup(row, row + rows, batch)
                row += rows
                if columns is not None:
                    self.taken = int(share * self.size)
            if columns is not None:
                self.taken = self.size

    def _look_up(self, columns: list[str], row: int) -> RowGroup:
        # Batch by batch: the columns that were read give the number of rows of a batch whose other columns are damaged.
        pairs = zip_longest(self.read_rows(columns, -1), self.read_rows(None, -1))
        group, whole = next((group, whole) for group, whole in pairs if group is not None and row < group.stop)
        return group if whole is None or isinstance(whole.content, Exception) else group._replace(content=whole.content)

    def _read(self, file: Any, fields: list[int] | None) -> Iterator[Any]:
        """Yield the schema; then every batch, or its error, its number of rows, and the share read."""
        options = pa.ipc.IpcReadOptions(included_fields=fields)
        indexed = file.read(len(INDEXED)) == INDEXED
        file.seek(BODY)
        # A size without a marker before it: from before 2019. PyArrow up to 21 cannot select columns by its index.
        old = 0 < int.from_bytes(file.read(len(MARKER)), "little", signed=True) < self.size
        file.seek(max(self.size - len(INDEXED), 0))
        complete = not indexed or file.read(len(INDEXED)) == INDEXED
        file.seek(0)
        if indexed and not old:
            try:
                reader = pa.ipc.open_file(file, options=options)
            except UNREADABLE as error:
                check_damage(error, self.size)
                complete = False
            else:
                yield reader.schema
                with open(self.path, "rb") as other:
                    measured = dict(enumerate(measure_indexed(other, self.size)))
                for number in range(reader.num_record_batches):
                    batch: Any = DAMAGED
                    if (sizes := measured.get(number)) is not None:
                        check_expansion(self.name, f"batch {number + 1:,}", *sizes)
                        batch = self._read_checked(partial(reader.get_batch, number))
                    share = (number + 1) / reader.num_record_batches
                    yield batch, self._count_rows(batch, number, BODY) or 1, share
                if self.damage is not None:
                    yield pa.ArrowInvalid(self.damage), 1, 1.0
                return
        # Without its index it is still a stream, after eight bytes.
        yield from self._read_stream(file, options, BODY if indexed else 0, complete)

    def _read_stream(self, file: Any, options: pa.ipc.IpcReadOptions, offset: int, complete: bool) -> Iterator[Any]:
        file.seek(offset)
        stream = pa.ipc.open_stream(file, options=options)
        yield stream.schema
        end: Exception | None = None if complete else pa.ArrowInvalid("the end of the file is missing")
        for number in count():
            sizes = self._measure_next(file.tell())
            if sizes is not None:
                check_expansion(self.name, f"batch {number + 1:,}", *sizes)
            elif not self._ends_at(file.tell()):
                end = end or DAMAGED
                break
            batch = self._read_checked(stream.read_next_batch)
            if batch is None:
                break
            rows = self._count_rows(batch, number, offset)
            if rows is None:
                end = batch  # the start of the next batch is unknown
                break
            yield batch, rows, file.tell() / max(self.size, 1)
        if self.damage is not None:
            end = pa.ArrowInvalid(self.damage)
        if end is not None:
            yield end, 1, 1.0

    def _measure_next(self, offset: int) -> tuple[int, int] | None:
        """The bytes of the next batch, in the file and in memory; None if there is none, or if it is damaged."""
        with open(self.path, "rb") as file:
            return next(measure_batches(file, self.size, offset), None)

    def _ends_at(self, offset: int) -> bool:
        with open(self.path, "rb") as file:
            file.seek(offset)
            following = file.read(len(END))
        return following in (b"", END) or following[:4] == bytes(4)  # without a marker before 2019

    def _count_rows(self, batch: pa.RecordBatch | Exception, number: int, offset: int) -> int | None:
        """The rows of a batch; of a damaged one, those that it declares. None if its header is damaged, too."""
        if not isinstance(batch, Exception):
            return batch.num_rows
        if self._declared is None:
            with open(self.path, "rb") as file:
                self._declared = count_batch_rows(file, self.size, offset)
        return self._declared[number] if number < len(self._declared) else None

    def _read_checked(self, read: Callable[[], pa.RecordBatch]) -> pa.RecordBatch | Exception | None:
        """A batch, its error, or None at the end. A batch that is not validated may point anywhere in memory."""
        try:
            batch = read()
            batch.validate(full=True)
        except StopIteration:
            return None
        except UNREADABLE as error:
            check_damage(error, self.size)
            return error
        return batch
