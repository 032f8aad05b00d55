"""Records as rows of numbers, each by itself: what a record becomes depends on the schema and on nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from redescend.numeric import Array
from redescend.sources import Kind
from redescend.streaming.encoding.features import Feature, as_numbers, reason_against, unusable, within_reach
from redescend.streaming.encoding.schema import Schema


def encode(schema: Schema, table: Any) -> tuple[Array, dict[int, str]]:
    """The records of a table as numbers, and why some are refused.

    Parameters
    ----------
    schema : Schema
    table : pyarrow.RecordBatch
        With the columns of the features, typed by their kinds.

    Returns
    -------
    X : array of shape (records, schema.dim)
        In C order. NaN is a missing number. Records that are refused are there, and are not to be used.
    refused : dict of int to str
        The reason, by place in the table.

    Examples
    --------
    >>> schema = Schema("y", Kind.NUMBER, "regression", [], [Feature("x", Kind.NUMBER, "number")])
    >>> encode(schema, pa.record_batch({"x": [1.0, None, np.inf]}))
    (array([[ 1.,  0.], [nan,  1.], [inf,  0.]]), {2: "column 'x': inf is not finite"})
    """
    columns = Columns(schema, table)
    return columns.rows(0, table.num_rows), columns.refused


class Columns:
    """A table that was looked at column by column, and can be made into rows of numbers a part at a time.

    Columns are cheap to look at in full, and rows are cheap to write where few of them are written at a time.

    Attributes
    ----------
    refused : dict of int to str
        Why records cannot be used, by place in the table.
    """

    def __init__(self, schema: Schema, table: Any) -> None:
        self.refused: dict[int, str] = {}
        self._dim = schema.dim
        self._numbers: list[tuple[int, Any]] = []
        self._ones: list[tuple[int, Array, Array | None]] = []
        elsewhere: Any = 0.0
        for feature, span in zip(schema.features, schema.spans, strict=True):
            column = table.column(feature.name)
            look = self._look_at_texts if feature.kind is Kind.TEXT else self._look_at_numbers
            missing = look(feature, column, span.start)
            if feature.missing:
                self._numbers.append((span.stop - 1, 0.0 if missing is None else missing))
            elif missing is not None:
                elsewhere = np.logical_or(elsewhere, missing)
        if schema.shares_indicator:
            self._numbers.append((schema.dim - 1, elsewhere))

    def _look_at_numbers(self, feature: Feature, column: Any, first: int) -> Array | None:
        """Which numbers are missing, if any may be."""
        values = as_numbers(column)
        self._numbers.append((first, values))
        if within_reach(values):
            return None
        for at in unusable(values).tolist():
            self.refused.setdefault(at, reason_against(feature.name, float(values[at])))
        return np.isnan(values)

    def _look_at_texts(self, feature: Feature, column: Any, first: int) -> Array | None:
        """Which texts are missing, if any are; of those that are there, different ones alone are looked at."""
        encoded = column.dictionary_encode()
        different = encoded.dictionary.cast(pa.binary()).to_pylist()
        places = np.append(feature.places(different), 0)
        codes = encoded.indices
        there = None if codes.null_count == 0 else codes.is_valid().to_numpy(zero_copy_only=False)
        codes = codes.fill_null(len(different)).to_numpy(zero_copy_only=False)
        self._ones.append((first, places[codes], there))
        return None if there is None else ~there

    def rows(self, start: int, stop: int) -> Array:
        """The records from `start` up to `stop` as rows of numbers, in C order."""
        X = np.zeros((stop - start, self._dim)) if self._ones else np.empty((stop - start, self._dim))
        for place, values in self._numbers:
            X[:, place] = values[start:stop] if isinstance(values, np.ndarray) else values
        every = np.arange(len(X))
        for first, places, there in self._ones:
            X[every, first + places[start:stop]] = 1.0 if there is None else there[start:stop]
        return X
