"""The short way from numbers to the rows of a model, which most requests can take.

Everything unusual, such as texts, missing values or what is wrong, takes the way of `redescend.serve.calls` or
`redescend.serve.records`. Both ways lead to the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import orjson

from redescend.kernels import json_numbers
from redescend.numeric import Array
from redescend.serve.tensors import TYPES
from redescend.sources import Bad, Kind, Position
from redescend.sources.batch import START
from redescend.sources.splitter import LONGEST
from redescend.streaming.encoding.features import MAX_NUMBER
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.model import StreamModel
from redescend.streaming.predictor import Learned

EXACT = 2.0**53  # integers up to here are doubles
LONG = 1 << 13  # bytes that take long enough to read for other threads to run meanwhile

PLAIN = frozenset(name for name in TYPES if name not in ("BOOL", "BYTES"))

MAX_TENSORS = 999


def _to_bytes(text: bytes) -> Array:
    """A text for a kernel, which needs a zero behind it."""
    return np.frombuffer(text + b"\0", np.uint8)


def _find_longest(lines: Array) -> int:
    """The length of the longest line."""
    return int(np.diff(np.flatnonzero(lines == ord("\n")), prepend=-1).max()) - 1


class Layout(NamedTuple):
    """Where the numbers of a request are.

    `key` is its text but the data, and where the data of each tensor end. The `starts` are those of the columns among
    all numbers, `step` is that from a record to the next, and `records` their number.
    """

    key: tuple[bytes, bytes]
    content: dict[str, Any]
    starts: Array
    step: int
    records: int


class NumericInputs:
    """Reads the inputs of requests to a model of numbers."""

    def __init__(self, schema: Schema) -> None:
        self._names, self._dim = schema.inputs, schema.dim
        self.columns = np.array([span.start for span in schema.spans], dtype=np.int64)
        """The column of `X` for each of the inputs."""
        self._last: Layout | None = None  # that of the last request: those of the next are probably the same
        numeric = all(feature.kind is Kind.NUMBER for feature in schema.features)
        self.usable = schema.by is None and numeric and not schema.lagged

    def read(self, text: bytes) -> tuple[dict[str, Any], Array] | None:
        """The content of a request but its data, and rows for the model; or None.

        Tensors must be flat lists of numbers whose lengths are their shapes: one of shape [records, columns], or one
        for each column.
        """
        if not self.usable:
            return None
        numbers, ends = np.empty(len(text) // 2 + 1), np.empty(MAX_TENSORS, np.int64)
        rest = np.empty(len(text) + json_numbers.DECIMALS * MAX_TENSORS, np.uint8)
        lists, used = json_numbers.cut_lists(_to_bytes(text), numbers, numbers.view(np.uint64), ends, rest)
        if lists < 1:
            return None
        key, layout = (rest[:used].tobytes(), ends[:lists].tobytes()), self._last
        if layout is None or layout.key != key:
            layout = self._last = self._find_layout(key, ends[:lists].tolist())
        if layout is None:
            return None
        X = np.zeros((layout.records, self._dim))
        if not json_numbers.place_numbers(numbers, layout.starts, layout.step, self.columns, MAX_NUMBER, X):
            return None
        return layout.content, X

    def _find_layout(self, key: tuple[bytes, bytes], ends: list[int]) -> Layout | None:
        try:
            content = orjson.loads(key[0])
            inputs = content["inputs"]
            if len(inputs) == 1 and inputs[0]["name"] not in self._names:
                found = self._find_whole(inputs[0], ends)
            else:
                found = self._find_columns(inputs, ends)
        except (KeyError, TypeError, ValueError, IndexError):
            return None
        return Layout(key, content, *found) if found[2] else None

    def _find_whole(self, tensor: Any, ends: list[int]) -> tuple[Array, int, int]:
        """Where the columns of a tensor begin, the step to the next record, and the number of records."""
        count, width = tensor["shape"]
        if {type(count), type(width)} != {int} or width != len(self._names) or [count * width] != ends:
            raise ValueError
        if type(tensor["data"]) is not int or tensor["data"] != json_numbers.MARK or tensor["datatype"] not in PLAIN:
            raise ValueError
        return np.arange(width), width, count

    def _find_columns(self, tensors: list[Any], ends: list[int]) -> tuple[Array, int, int]:
        starts, counts = {}, set()
        for tensor in tensors:
            (count,), which = tensor["shape"], tensor["data"] - json_numbers.MARK
            starts[tensor["name"]] = start = ends[which - 1] if which else 0
            counts.add(count)
            if type(count) is not int or count != ends[which] - start or tensor["datatype"] not in PLAIN:
                raise ValueError
        if len(tensors) != len(self._names) or len(starts) != len(tensors) or len(counts) > 1:
            raise ValueError
        return np.array([starts[name] for name in self._names]), 1, counts.pop()

    def decode(self, row: Array) -> dict[str, float]:
        """The values of a record by the names of their columns."""
        return dict(zip(self._names, row[self.columns].tolist(), strict=True))


class NumericRows(NamedTuple):
    """Records of a request: as lines, with a newline behind each, and as rows of `X`.

    Behind each row are the target and a number that is not used.
    """

    lines: memoryview
    rows: Array


@dataclass(frozen=True, eq=False)
class NumericBatch:
    """Records of a model of numbers, as rows of `X` and targets: like a `redescend.sources.Batch`, none of them bad."""

    X: Array
    targets: Array
    rows: Array
    bad: Sequence[Bad] = ()

    @staticmethod
    def from_requests(parts: Sequence[NumericRows], before: int) -> NumericBatch:
        """The records of some requests; `before` is the number of those before."""
        # NumPy would release the interpreter for each part, and wait for it.
        rows = np.frombuffer(b"".join([part.rows.data for part in parts])).reshape(-1, parts[0].rows.shape[1])
        X, targets = np.ascontiguousarray(rows[:, :-2]), rows[:, -2].copy()
        return NumericBatch(X, targets, np.arange(before + 1, before + 1 + len(X)))

    @property
    def count(self) -> int:
        return len(self.rows)

    @property
    def end(self) -> Position:
        return START._replace(row=int(self.rows[-1]))

    def teach(self, model: StreamModel) -> Learned:
        """Let a model learn from the records."""
        return model.learn_encoded(self.X, self.targets, self.rows)


class Template(NamedTuple):
    """The names in the records of a client, in their order, as the kernel wants them, and the column of each."""

    names: Array
    ends: Array
    columns: Array

    @property
    def shortest(self) -> int:
        """Bytes of the shortest record."""
        return int(self.ends[-1]) + 3 * len(self.ends) + 1


class NumericRecords:
    """Reads the records to learn from, if all columns are numbers."""

    def __init__(self, schema: Schema) -> None:
        self.inputs, self._dim = NumericInputs(schema), schema.dim
        names = [*schema.inputs, schema.target]
        numbers = schema.kind is Kind.NUMBER and not schema.classifies and len(set(names)) == len(names)
        self._usable = self.inputs.usable and numbers
        # Lagged features have columns as well, but no names.
        self._columns = dict(zip(names, [*self.inputs.columns.tolist(), schema.dim], strict=self._usable))
        self._last: Template | None = None  # the names of the last request: those of the next are probably the same

    def read(self, text: bytes, *, lined: bool = False) -> NumericRows | None:
        """The records of a JSON text, or of JSON lines, if they are numbers with the same names in the same order."""
        if not self._usable:
            return None
        found = None if self._last is None else self._read(text, lined, self._last)
        if found is None and (template := self._find_template(text)) is not None:
            found = self._read(text, lined, template)
            self._last = template
        return found

    def _read(self, body: bytes, lined: bool, template: Template) -> NumericRows | None:
        # The kernel changes the text. NumPy would release the interpreter to copy it.
        buffer = bytearray().join((body, json_numbers.PADDING))
        text = np.frombuffer(buffer, np.uint8)
        # Columns for the target, and for what is not used.
        out = np.empty((len(body) // template.shortest + 1, self._dim + 2))
        read = json_numbers.read_records if len(text) <= LONG else json_numbers.read_many_records
        count, used = read(text, lined, template, EXACT, out, out.view(np.uint64))
        if count < 1 or (used > LONGEST and _find_longest(text[:used]) > LONGEST):
            return None
        return NumericRows(memoryview(buffer)[:used], out[:count])

    def _find_template(self, text: bytes) -> Template | None:
        """The template of the first record."""
        try:
            first = list(orjson.loads(text[text.index(b"{") : text.index(b"}") + 1]))
        except ValueError:
            return None
        if not self._columns.keys() <= set(first):
            return None
        names = [orjson.dumps(name) for name in first]
        columns = [self._columns.get(name, self._dim + 1) for name in first]
        joined = np.frombuffer(b"".join([*names, json_numbers.PADDING]), np.uint8)
        return Template(joined, np.cumsum([len(name) for name in names]), np.array(columns))
