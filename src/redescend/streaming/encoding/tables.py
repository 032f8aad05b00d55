"""Tables that people have at hand, as record batches with the columns of a schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from redescend.errors import DataError
from redescend.sources import Batch
from redescend.sources.columnar import convert_rows
from redescend.sources.kinds import infer_type_kind
from redescend.streaming.encoding.schema import Schema


def record_batches(schema: Schema, table: Any, target: bool) -> Iterator[Any]:
    """The columns that a schema needs, typed by their kinds.

    Raises
    ------
    DataError
        A column is not there or is there twice, or a value in it is not of its kind.
    """
    names = [*schema.inputs, *([schema.target] if target else []), *([] if schema.by is None else [schema.by])]
    kinds, row = {name: schema.kinds[name] for name in names}, 0
    for batch in _selected(as_table(table), names).to_batches():
        piece = convert_rows(batch, kinds, row, lambda index: b"")
        if piece.bad:
            raise DataError(f"Row {row + piece.bad[0].row + 1}: {piece.bad[0].reason}.")
        row += batch.num_rows
        yield piece.table


def as_table(table: Any) -> Any:
    """An Arrow table of what anyone has."""
    if isinstance(table, Batch):
        table = table.table
    if isinstance(table, pa.Table):
        return table
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    try:
        return pa.table(table)
    except (pa.ArrowException, TypeError, ValueError) as error:
        reason = ": ".join(str(part) for part in reversed(error.args)).rstrip(".")
        raise DataError(
            f"A table of PyArrow, pandas or polars is needed; what came, a {type(table).__name__}, cannot be read as "
            f"one ({' '.join(reason.split())})."
        ) from None


def _selected(table: Any, names: list[str]) -> Any:
    there = table.schema.names
    if lacking := [name for name in names if name not in there]:
        listed = ", ".join(map(repr, lacking[:10])) + (" and more" if len(lacking) > 10 else "")
        raise DataError(f"The table lacks the column{'s' * (len(lacking) > 1)} {listed}, which the model needs.")
    if twice := [name for name in names if there.count(name) > 1]:
        raise DataError(f"The table has the column {twice[0]!r} more than once.")
    if nested := [name for name in names if infer_type_kind(table.schema.field(name).type) is None]:
        kind = table.schema.field(nested[0]).type
        raise DataError(
            f"The column {nested[0]!r} of the table holds values of the type {kind}, which is not known here."
        )
    return table.select(names)
