"""Records as rows of numbers: what a record becomes depends on the schema alone, never on other records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from redescend.numeric import Array
from redescend.sources import Kind
from redescend.streaming.encoding.features import Feature, are_in_range, reject_out_of_range, to_floats
from redescend.streaming.encoding.schema import Schema


def encode(schema: Schema, table: Any) -> tuple[Array, dict[int, str]]:
    """Encode the records of a table.

    Parameters
    ----------
    schema : Schema
    table : pyarrow.RecordBatch
        With the columns of the features, typed by their kinds.

    Returns
    -------
    X : array of shape (records, schema.dim)
        In C order. NaN is a missing number. Rows of rejected records are arbitrary.
    rejected : dict of int to str
        The reason, by index in the table.

    Examples
    --------
    >>> schema = Schema("y", Kind.NUMBER, "regression", [], [Feature("x", Kind.NUMBER, "number")])
    >>> encode(schema, pa.record_batch({"x": [1.0, None, np.inf]}))
    (array([[ 1.,  0.], [nan,  1.], [inf,  0.]]), {2: "column 'x': inf is not finite"})
    """
    columns = EncodedColumns(schema, table)
    return columns.rows(0, table.num_rows), columns.rejected


class EncodedColumns:
    """A table encoded column by column, from which rows of numbers are made a part at a time.

    Whole columns are cheap to analyse, and rows are cheap to write if few are written at a time.

    Attributes
    ----------
    rejected : dict of int to str
        Why records are rejected, by index in the table.
    """

    def __init__(self, schema: Schema, table: Any) -> None:
        self.rejected: dict[int, str] = {}
        self._dim = schema.dim
        self._numbers: list[tuple[int, Any]] = []
        self._one_hot: list[tuple[int, Array, Array | None]] = []
        missing_elsewhere: Any = 0.0
        for feature, span in zip(schema.features, schema.spans, strict=True):
            column = table.column(feature.name)
            add = self._add_texts if feature.kind is Kind.TEXT else self._add_numbers
            missing = add(feature, column, span.start)
            if feature.missing:
                self._numbers.append((span.stop - 1, 0.0 if missing is None else missing))
            elif missing is not None:
                missing_elsewhere = np.logical_or(missing_elsewhere, missing)
        if schema.shares_indicator:
            self._numbers.append((schema.dim - 1, missing_elsewhere))

    def _add_numbers(self, feature: Feature, column: Any, first: int) -> Array | None:
        """Return which numbers are missing, if any may be."""
        values = to_floats(column)
        self._numbers.append((first, values))
        if are_in_range(values):
            return None
        self.rejected = reject_out_of_range(feature.name, values) | self.rejected
        return np.isnan(values)

    def _add_texts(self, feature: Feature, column: Any, first: int) -> Array | None:
        """Return which texts are missing, if any are; only distinct texts are looked up."""
        encoded = column.dictionary_encode()
        distinct = encoded.dictionary.cast(pa.binary()).to_pylist()
        places = np.append(feature.column_indices(distinct), 0)
        codes = encoded.indices
        present = None if codes.null_count == 0 else codes.is_valid().to_numpy(zero_copy_only=False)
        codes = codes.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
        self._one_hot.append((first, places[codes], present))
        return None if present is None else ~present

    def rows(self, start: int, stop: int) -> Array:
        """The records from `start` up to `stop` as rows of numbers, in C order."""
        X = np.zeros((stop - start, self._dim)) if self._one_hot else np.empty((stop - start, self._dim))
        for place, values in self._numbers:
            X[:, place] = values[start:stop] if isinstance(values, np.ndarray) else values
        every = np.arange(len(X))
        for first, places, present in self._one_hot:
            X[every, first + places[start:stop]] = 1.0 if present is None else present[start:stop]
        return X
