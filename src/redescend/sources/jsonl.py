"""Files of JSON lines, parsed by PyArrow, and by Python where that fails."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from redescend.errors import DataError, quote
from redescend.numeric import Array
from redescend.sources.batch import empty_table
from redescend.sources.formats import Columns, check_blank, check_number_of_columns
from redescend.sources.kinds import (
    DESCRIPTIONS,
    MISSING_SPELLINGS,
    PATTERNS,
    SAMPLE,
    TYPES,
    Kind,
    choose_kind,
    convert_value,
    count_matches,
    find_outside_calendar,
)
from redescend.sources.readers import Text
from redescend.sources.splitter import Grammar
from redescend.sources.text import BOM, INVALID_UTF8, Head, TextFile

JSON_TYPES = {Kind.NUMBER: (int, float), Kind.BOOLEAN: (bool,), Kind.DATE: (str,), Kind.TEXT: (str,)}
"""The usual types of the values of each kind."""

_DATE = re.compile(PATTERNS[Kind.DATE])
_MISSING = pa.array(MISSING_SPELLINGS)


class JsonLinesFile(TextFile):
    """A file with one JSON object a line. A name that a record lacks is a missing value."""

    format = "jsonl"
    suffixes: ClassVar[tuple[str, ...]] = ("jsonl", "ndjson", "json")

    @classmethod
    def recognizes(cls, first: bytes) -> bool:
        return first.removeprefix(BOM).lstrip()[:1] in (b"{", b"[")

    def read_preamble(self, text: Text) -> Head:
        first = b""
        # A block may be shorter than the byte order mark.
        while (len(first) <= len(BOM) or not first.removeprefix(BOM).strip()) and (data := text.read()):
            first += data
            check_blank(self.name, len(first) - len(first.lstrip()))
        begin = len(BOM) if first.startswith(BOM) else 0
        if first[begin:].lstrip()[:1] == b"[":
            raise DataError(
                f"{self.name} is one JSON array; write one JSON object per line, for example with jq -c '.[]'."
            )
        text.push_back(first[begin:])
        return Head(begin, Grammar(carriage=ord("\r"), longest=self.options.longest), None)

    def parser(self, kinds: Mapping[str, Kind]) -> JsonParser:
        return JsonParser(kinds, self.head.grammar)

    def infer_columns(self, files: Sequence[Self]) -> Columns:
        values: dict[str, list[Any]] = {}
        records = itertools.chain.from_iterable(file.first_records() for file in files)
        for record in itertools.islice(records, SAMPLE):
            content = decode(record)
            if isinstance(content, dict):
                for name, value in content.items():
                    values.setdefault(name, []).append(value)
                check_number_of_columns(self.name, len(values))
        kinds, others = {}, {}
        for name, column in values.items():
            if not _is_unicode(name):
                others[name] = "not valid Unicode"
                continue
            present = [value for value in column if value is not None and value not in MISSING_SPELLINGS]
            if 2 * sum(isinstance(value, dict | list) for value in present) > len(present):
                others[name] = "nested"
            else:
                kinds[name] = _infer_kind(present)
        return kinds, others

    def first_records(self) -> Iterator[bytes]:
        """The bytes of the sampled records."""
        for chunk in self.sample:
            yield from [chunk.data] if chunk.reason else self.head.grammar.records(chunk.data)

    def explain_no_columns(self) -> str:
        first = next(self.first_records(), None)
        if first is None:
            return "no records"
        content = decode(first)
        if isinstance(content, str):
            return f"no record that can be read; the first: {content}"
        return super().explain_no_columns()


def _is_unicode(name: str) -> bool:
    """Whether a name is valid Unicode: JSON may have half of a surrogate pair."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _infer_kind(values: list[Any]) -> Kind:
    scalars = [value for value in values if isinstance(value, bool | int | float)]
    counts = Counter(Kind.BOOLEAN if isinstance(value, bool) else Kind.NUMBER for value in scalars)
    # Arrow cannot store half of a surrogate pair.
    texts = [value.encode("utf-8", "replace").decode() for value in values if isinstance(value, str)]
    column = pa.array(texts, pa.string())
    return choose_kind(lambda kind: counts[kind] + count_matches(column, PATTERNS[kind]), len(values))


class JsonParser:
    """Parses some columns of JSON lines."""

    def __init__(self, kinds: Mapping[str, Kind], grammar: Grammar) -> None:
        self.kinds = dict(kinds)
        self.grammar = grammar
        self.schema = empty_table(kinds).schema

    def parse(self, data: bytes) -> pa.RecordBatch | None:
        lines = [line.strip(b" \t") for line in data.splitlines() if line]
        # An object then ends on its first line.
        if not all(line[:1] == b"{" and line[-1:] == b"}" for line in lines) or b"\0" in data:
            return None
        if not lines:
            return empty_table(self.kinds)
        try:
            data.decode()
            table = pa.json.read_json(
                pa.BufferReader(data),
                pa.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
                pa.json.ParseOptions(explicit_schema=self.schema, unexpected_field_behavior="ignore"),
            )
        except (UnicodeDecodeError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        return self._to_batch(table) if table.num_rows == len(lines) else None

    def find_suspicious(self, records: list[bytes]) -> Array:
        return np.array([not self._is_plain(record) for record in records], bool)

    def parse_one(self, record: bytes) -> pa.RecordBatch | str:
        table = self.parse(record)
        if table is not None:
            return table
        values = decode(record)
        if isinstance(values, str):
            return values
        arrays = []
        for name, kind in self.kinds.items():
            value = values.get(name)
            try:
                arrays.append(pa.array([_convert_value(value, kind)], TYPES[kind]))
            except (ValueError, TypeError, OverflowError, pa.ArrowException):
                return f"column {name!r}: {quote(value)} is not {DESCRIPTIONS[kind]}"
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _is_plain(self, record: bytes) -> bool:
        values = decode(record)
        return not isinstance(values, str) and all(
            value is None or (type(value) in JSON_TYPES[kind] and (kind is not Kind.DATE or bool(_DATE.match(value))))
            for value, kind in ((values.get(name), kind) for name, kind in self.kinds.items())
        )

    def _to_batch(self, table: pa.Table) -> pa.RecordBatch | None:
        arrays = [column.combine_chunks() for column in table.select(self.schema.names).columns]
        if any(len(find_outside_calendar(values)) for values in arrays):
            return None
        for index, values in enumerate(arrays):
            if pa.types.is_string(values.type):
                absent = pc.is_in(values, _MISSING)
                if pc.any(absent).as_py():
                    arrays[index] = pc.if_else(absent, pa.scalar(None, pa.string()), values)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def decode(record: bytes) -> dict[str, Any] | str:
    """Decode the object of a line, or return what is wrong with it.

    >>> decode(b'{"x": 1}'), decode(b"[1]"), decode(b'{"x": 1, "x": 2}')
    ({'x': 1}, 'not a JSON object', "the name 'x' is there twice")
    """
    try:
        values = json.loads(record.decode(), object_pairs_hook=make_object)
    except UnicodeDecodeError as error:
        return f"{INVALID_UTF8} at byte {error.start + 1}"
    except RepeatedNameError as error:
        return str(error)
    except json.JSONDecodeError as error:
        return f"not a JSON object: {error.msg} at character {error.pos + 1}"
    except (ValueError, RecursionError):
        return "not a JSON object"
    return values if isinstance(values, dict) else "not a JSON object"


class RepeatedNameError(ValueError):
    """A name is in a JSON object twice."""


def make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these names and values; raises if a name is there twice."""
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise RepeatedNameError(f"the name {quote(name)} is there twice")
        values[name] = value
    return values


def _convert_value(value: Any, kind: Kind) -> Any:
    if isinstance(value, dict | list) or (isinstance(value, bool) and kind is Kind.NUMBER):
        raise ValueError
    return None if isinstance(value, str) and value in MISSING_SPELLINGS else convert_value(value, kind)
