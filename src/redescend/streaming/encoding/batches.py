"""A table that is ready to be learned from: what can be used as numbers, a part at a time, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from redescend.numeric import Array
from redescend.streaming.encoding.encoder import Columns
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.encoding.target import encode_target

CELLS = 1 << 17
"""Numbers that records are made into at a time: they stay near, and memory does not grow with the columns."""

FEWEST = 64
"""Records at a time at the least: each time, all columns are gone through."""


class Part(NamedTuple):
    """Some records that can be used: as numbers, their targets, and their places in the table.

    Where there are keys, so are the places of theirs among all names.
    """

    X: Array
    values: Array
    kept: Array
    keys: Array = np.empty(0, np.int64)
    names: Sequence[str] = ()


class Readied:
    """A table that is ready to be learned from, or to be answered.

    Parameters
    ----------
    schema : Schema
    table : pyarrow.RecordBatch
    target : bool
        Whether targets are needed.
    refused : mapping of int to str
        Why some cannot be used, for other reasons than what is in their columns.
    cells : int
        Numbers that records are made into at a time.

    Attributes
    ----------
    refused : dict of int to str
        Why records cannot be used, by place in the table.
    """

    def __init__(
        self, schema: Schema, table: Any, target: bool, refused: Mapping[int, str] | None = None, cells: int = CELLS
    ) -> None:
        self._columns, self._count = Columns(schema, table), table.num_rows
        self._values, unanswered = np.full(self._count, np.nan), dict[int, str]()
        if target:
            self._values, unanswered = encode_target(schema, table.column(schema.target))
        self.refused = self._columns.refused | unanswered | dict(refused or {})
        self._usable = np.delete(np.arange(self._count), list(self.refused))
        self._most = max(FEWEST, cells // (schema.dim + 4 * schema.outputs))

    def parts(self) -> Iterator[Part]:
        """The records that can be used, some at a time; without targets these are NaN."""
        for start in range(0, self._count, self._most):
            stop = min(start + self._most, self._count)
            first, last = np.searchsorted(self._usable, (start, stop))
            if first == last:
                continue
            X, kept = self._columns.rows(start, stop), self._usable[first:last]
            yield Part(X if len(kept) == len(X) else X[kept - start], self._values[kept], kept)
