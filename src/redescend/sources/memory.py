"""Tables in memory, and streams of them."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from redescend.errors import DataError
from redescend.sources.conversion import as_json
from redescend.sources.tables import UNREADABLE, ColumnarPart, Rows, said

Batches = Callable[[bool], Iterator[pa.RecordBatch]]


class TablePart(ColumnarPart):
    """A table, or a stream of them, read like a file.

    Parameters
    ----------
    name
        What it is called.
    schema
        Its columns.
    batches
        Gives its rows from the first on; told whether they will be asked for again.
    """

    def __init__(self, name: str, schema: pa.Schema, batches: Batches) -> None:
        super().__init__(name)
        self._schema = schema
        self._batches = batches

    def read_schema(self) -> pa.Schema:
        return self._schema

    def rows(self, columns: list[str] | None, start: int, keep: bool) -> Iterator[Rows]:
        row = 0
        batches = self._batches(keep)
        while True:
            try:
                batch = next(batches, None)
            except UNREADABLE as error:
                yield Rows(row, row + 1, error)
                return
            if batch is None:
                return
            self.taken += batch.nbytes
            if row + batch.num_rows > start:
                yield Rows(row, row + batch.num_rows, batch)
            row += batch.num_rows

    def recall(self, start: int, rows: pa.RecordBatch) -> Callable[[int], bytes]:
        return functools.partial(as_json, rows)


class OnceBatches:
    """Batches that come once. Those that were looked at before the pass are kept until it begins."""

    def __init__(self, name: str, reader: Iterator[pa.RecordBatch]) -> None:
        self._name = name
        self._reader = reader
        self._tape: list[pa.RecordBatch] = []
        self._spent = False

    def __call__(self, keep: bool) -> Iterator[pa.RecordBatch]:
        if self._spent:
            raise DataError(f"A stream can be read only once, and {self._name} has been; make a table of it before.")
        self._spent = not keep
        return self._kept() if keep else itertools.chain(self._tape, self._reader)

    def _kept(self) -> Iterator[pa.RecordBatch]:
        yield from self._tape
        for batch in self._reader:
            self._tape.append(batch)
            yield batch


def memory_part(source: Any) -> TablePart | None:
    """A table, a data frame or a stream of Arrow batches; None if it is none of these."""
    name = f"the {type(source).__name__}"
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "columns"):
        try:
            # The index of a data frame is no column of it.
            source = pa.Table.from_pandas(source, preserve_index=False)
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise DataError(f"The data frame has a column of values of several types: {said(error)}.") from None
    if isinstance(source, pa.Table):
        return TablePart(name, source.schema, lambda keep: iter(source.to_batches()))
    if not isinstance(source, pa.RecordBatchReader):
        if not hasattr(source, "__arrow_c_stream__"):
            return None
        if hasattr(source, "columns"):
            table = pa.table(source)
            return TablePart(name, table.schema, lambda keep: iter(table.to_batches()))
        source = pa.RecordBatchReader.from_stream(source)
    return TablePart(name, source.schema, OnceBatches(name, source))
