"""The short way from numbers to the rows of a model, which most requests can take.

Everything unusual, such as texts, missing values or what is wrong, takes the way of `redescend.serve.inference` or
`redescend.serve.records`. Both ways lead to the same rows.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np

from redescend.numeric import Array
from redescend.serve.tensors import TYPES
from redescend.sources import Bad, Kind, Position
from redescend.sources.batch import START
from redescend.streaming.encoding.features import MAX_NUMBER
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.model import StreamModel
from redescend.streaming.predictor import Learned

EXACT = 2.0**53
"""Integers up to here are doubles."""

MINUS_ZERO = re.compile(rb"-0[^.\d]")
"""Which one parser of JSON takes for the integer 0, and another for the float -0."""

PLAIN = frozenset(name for name in TYPES if name not in ("BOOL", "BYTES"))


def to_numbers(values: list[Any]) -> Array:
    """Numbers as doubles; raises a TypeError or an OverflowError if anything else but booleans is among them.

    >>> to_numbers([1, 2.5])
    array([1. , 2.5])
    """
    # Faster than by NumPy, and stricter: it takes no texts. But it takes booleans.
    return np.frombuffer(array("d", values))


class NumericInputs:
    """Reads the inputs of requests to a model of numbers."""

    def __init__(self, schema: Schema) -> None:
        self._names, self._dim = schema.inputs, schema.dim
        self._first = np.array([span.start for span in schema.spans], dtype=np.intp)
        self.usable = schema.by is None and all(feature.kind is Kind.NUMBER for feature in schema.features)

    def read(self, content: Any) -> Array | None:
        """The numbers of a request without booleans, a row for each record, or None.

        Tensors must be flat lists whose lengths are their shapes: one of shape [records, columns], or one for each
        column.
        """
        if not self.usable:
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
            if len({len(data) for data in columns.values()}) > 1:
                return None
            rows = to_numbers([number for name in self._names for number in columns[name]])
            return rows.reshape(len(self._names), -1).T
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError):
            return None

    def _read_whole(self, tensor: Any) -> Array | None:
        count, width = tensor["shape"]
        data = tensor["data"]
        if width != len(self._names) or type(count) is not int or tensor["datatype"] not in PLAIN:
            return None
        return to_numbers(data).reshape(count, width)

    def encode(self, numbers: Array) -> Array | None:
        """Rows for the model, or None if a number is missing or too large to be used."""
        # NaN fails the comparison.
        if not numbers.size or not (numbers.max() <= MAX_NUMBER and numbers.min() >= -MAX_NUMBER):
            return None
        X = np.zeros((len(numbers), self._dim))
        X[:, self._first] = numbers
        return X

    def decode(self, row: Array) -> list[float]:
        """The numbers in a row."""
        return list(row[self._first].tolist())


@dataclass(frozen=True, eq=False)
class NumericBatch:
    """Records of a model of numbers, as rows of `X` and targets: like a `redescend.sources.Batch`, none of them bad."""

    X: Array
    targets: Array
    rows: Array
    bad: Sequence[Bad] = ()

    @property
    def count(self) -> int:
        return len(self.rows)

    @property
    def end(self) -> Position:
        return START._replace(row=int(self.rows[-1]))

    def teach(self, model: StreamModel) -> Learned:
        """Let a model learn from the records."""
        return model.learn_encoded(self.X, self.targets, self.rows)


class NumericRecords:
    """Reads the records to learn from, if all columns are numbers."""

    def __init__(self, schema: Schema) -> None:
        self._inputs, self._names = NumericInputs(schema), [*schema.inputs, schema.target]
        self._get = itemgetter(*self._names)
        numbers = schema.kind is Kind.NUMBER and not schema.classifies and len(set(self._names)) == len(self._names)
        self._usable = self._inputs.usable and numbers

    def read(self, lines: Sequence[bytes], objects: Sequence[dict[str, Any]], before: int) -> NumericBatch | None:
        """Records by their texts and by what is in them, without booleans; `before` is the number of those before."""
        if not self._usable:
            return None
        try:
            numbers = to_numbers(list(chain.from_iterable(map(self._get, objects)))).reshape(len(objects), -1)
        except (KeyError, TypeError, OverflowError):
            return None
        if not (numbers.max() <= EXACT and numbers.min() >= -EXACT):
            return None
        if not numbers.all() and any(map(MINUS_ZERO.search, lines)):
            return None
        X = self._inputs.encode(numbers[:, :-1])
        rows = np.arange(before + 1, before + 1 + len(objects))
        return None if X is None else NumericBatch(X, numbers[:, -1].copy(), rows)

    def read_values(self, batch: NumericBatch, index: int) -> dict[str, Any]:
        """The values of a record."""
        return dict(zip(self._names, self._inputs.decode(batch.X[index]), strict=False))
