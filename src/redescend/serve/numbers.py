"""The short way from tensors of numbers to the rows of a model, which most requests can take.

Everything unusual, such as texts, missing values or what is wrong, takes the way of `redescend.serve.inference`. Both
ways lead to the same rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from redescend.numeric import Array
from redescend.serve.tensors import TYPES
from redescend.sources import Kind
from redescend.streaming.encoding.features import MAX_NUMBER
from redescend.streaming.encoding.schema import Schema

NUMBERS = frozenset({int, float})
PLAIN = frozenset(name for name in TYPES if name not in ("BOOL", "BYTES"))


class NumericInputs:
    """Reads the inputs of requests to a model of numbers."""

    def __init__(self, schema: Schema) -> None:
        self._names, self._dim = schema.inputs, schema.dim
        self._first = np.array([span.start for span in schema.spans], dtype=np.intp)
        self._usable = schema.by is None and all(feature.kind is Kind.NUMBER for feature in schema.features)

    def read(self, content: Any) -> Array | None:
        """The numbers of a request, a row for each record, or None.

        Tensors must be flat lists whose lengths are their shapes: one of shape [records, columns], or one for each
        column.
        """
        if not self._usable:
            return None
        try:
            inputs = content["inputs"]
            if len(inputs) == 1 and inputs[0]["name"] not in self._names:
                return self._read_whole(inputs[0])
            columns = {
                each["name"]: each["data"]
                for each in inputs
                if each["datatype"] in PLAIN and each["shape"] == [len(each["data"])]
            }
            if len(columns) != len(inputs) or len(inputs) != len(self._names):
                return None
            rows = [columns[name] for name in self._names]
            if not all(type(row) is list and NUMBERS.issuperset(map(type, row)) for row in rows):
                return None
            return np.array(rows, dtype=np.float64).T
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError):
            return None

    def _read_whole(self, tensor: Any) -> Array | None:
        count, width = tensor["shape"]
        data = tensor["data"]
        if (
            width != len(self._names)
            or type(count) is not int
            or tensor["datatype"] not in PLAIN
            or type(data) is not list
            or not NUMBERS.issuperset(map(type, data))
        ):
            return None
        return np.array(data, dtype=np.float64).reshape(count, width)

    def encode(self, numbers: Array) -> Array | None:
        """Rows for the model, or None if a number is missing or too large to be used."""
        # NaN fails the comparison.
        if not (np.abs(numbers) <= MAX_NUMBER).all():
            return None
        X = np.zeros((len(numbers), self._dim))
        X[:, self._first] = numbers
        return X
