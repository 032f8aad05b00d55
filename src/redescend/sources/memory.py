"""Tables in memory, and streams of Arrow batches."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from redescend.errors import DataError
from redescend.sources.batch import Piece
from redescend.sources.columnar import ColumnarFile, RowGroup, format_error, group_rows
from redescend.sources.kinds import Kind, format_json
from redescend.sources.readers import Tape

Batches = Callable[[bool], Iterator[pa.RecordBatch]]


class MemoryTable(ColumnarFile):
    """A table, or a stream of tables, read like a file.

    `batches(keep)` returns its rows from the first on; `keep` if they will be read again.
    """

    format = "memory"

    def __init__(self, name: str, schema: pa.Schema, batches: Batches) -> None:
        super().__init__(name)
        self.schema = schema
        self._batches = batches

    def read_head(self, kinds: Mapping[str, Kind]) -> Iterator[Piece]:
        return (job() for job in self._jobs(kinds, group_rows(self._batches(True), None, 0), 0))

    def read_rows(self, columns: list[str] | None, start: int) -> Iterator[RowGroup]:
        return group_rows(map(self._count, self._batches(False)), None, start)

    def _count(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self.taken += batch.get_total_buffer_size()
        return batch

    def _recall(self, start: int, rows: pa.RecordBatch) -> Callable[[int], bytes]:
        return functools.partial(format_json, rows)


def open_table(source: Any) -> MemoryTable | None:
    """Open a table, a data frame or a stream of Arrow batches; None if it is none of these."""
    name = f"the {type(source).__name__}"
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "columns"):
        try:
            # The index of a data frame is not one of its columns.
            source = pa.Table.from_pandas(source, preserve_index=False)
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise DataError(
                f"The data frame has a column with values of several types: {format_error(error)}."
            ) from None
    if not isinstance(source, pa.Table | pa.RecordBatchReader):
        if not hasattr(source, "__arrow_c_stream__"):
            return None
        source = pa.table(source) if hasattr(source, "columns") else pa.RecordBatchReader.from_stream(source)
    if isinstance(source, pa.Table):
        return MemoryTable(name, source.schema, lambda keep: iter(source.to_batches()))
    tape: Tape[pa.RecordBatch] = Tape(
        f"A stream can be read only once, and {name} was read before; make a table of it."
    )
    stream = MemoryTable(name, source.schema, functools.partial(tape.replay, source))
    stream.can_reread = False
    return stream
