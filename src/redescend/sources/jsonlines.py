"""JSON lines, parsed by PyArrow, and by Python where that refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from redescend.numeric import Array
from redescend.sources.conversion import CONVERT, outside_calendar
from redescend.sources.kinds import A_VALUE, LOOKS_LIKE, MISSING_SPELLINGS, TYPES, Kind
from redescend.sources.splitter import LONGEST, Grammar
from redescend.sources.words import shown

PLAIN = {Kind.NUMBER: (int, float), Kind.BOOLEAN: (bool,), Kind.DATE: (str,), Kind.TEXT: (str,)}
"""How the values of each kind are written in JSON."""

_DATE = re.compile(LOOKS_LIKE[Kind.DATE])
_MISSING = pa.array(MISSING_SPELLINGS)


class TwiceError(ValueError):
    """A name is there twice in a JSON object."""


class JsonParser:
    """Reads some columns of JSON lines: a name that a record lacks is a missing value.

    Parameters
    ----------
    kinds
        The columns that are asked for.
    longest
        The bytes of the longest record.
    """

    def __init__(self, kinds: Mapping[str, Kind], longest: int = LONGEST) -> None:
        self.kinds = dict(kinds)
        self.grammar = Grammar(carriage=ord("\r"), longest=longest)
        self.schema = pa.schema([(name, TYPES[kind]) for name, kind in self.kinds.items()])

    def empty(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([], self.schema)

    def parse(self, data: bytes) -> pa.RecordBatch | None:
        lines = [line.strip(b" \t") for line in data.splitlines() if line]
        # An object then ends on the line that it begins on: no brace can follow a closed one inside another.
        if not all(line[:1] == b"{" and line[-1:] == b"}" for line in lines) or b"\0" in data or not _is_text(data):
            return None
        if not lines:
            return self.empty()
        try:
            table = pa.json.read_json(
                pa.BufferReader(data),
                pa.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
                pa.json.ParseOptions(explicit_schema=self.schema, unexpected_field_behavior="ignore"),
            )
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        return self._kept(table) if table.num_rows == len(lines) else None

    def doubtful(self, records: list[bytes]) -> Array:
        return np.array([not self._plain(record) for record in records], bool)

    def single(self, record: bytes) -> pa.RecordBatch | str:
        table = self.parse(record)
        if table is not None:
            return table
        values = decoded(record)
        if isinstance(values, str):
            return values
        arrays = []
        for name, kind in self.kinds.items():
            value = values.get(name)
            try:
                arrays.append(pa.array([None if value is None else _converted(value, kind)], TYPES[kind]))
            except (ValueError, TypeError, OverflowError, pa.ArrowException):
                return f"column {name!r}: {shown(value)} is not {A_VALUE[kind]}"
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _plain(self, record: bytes) -> bool:
        values = decoded(record)
        return not isinstance(values, str) and all(
            value is None or (type(value) in PLAIN[kind] and (kind is not Kind.DATE or bool(_DATE.match(value))))
            for value, kind in ((values.get(name), kind) for name, kind in self.kinds.items())
        )

    def _kept(self, table: pa.Table) -> pa.RecordBatch | None:
        arrays = [column.combine_chunks() for column in table.select(self.schema.names).columns]
        if any(len(outside_calendar(values)) for values in arrays):
            return None
        for index, values in enumerate(arrays):
            if pa.types.is_string(values.type):
                absent = pc.is_in(values, _MISSING)
                if pc.any(absent).as_py():
                    arrays[index] = pc.if_else(absent, pa.scalar(None, pa.string()), values)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def decoded(record: bytes) -> dict[str, Any] | str:
    """The object that a line holds, or what is wrong with it.

    Examples
    --------
    >>> decoded(b'{"x": 1}'), decoded(b"[1]"), decoded(b'{"x": 1, "x": 2}')
    ({'x': 1}, 'not a JSON object', "the name 'x' is there twice")
    """
    try:
        values = json.loads(record.decode(), object_pairs_hook=_once)
    except UnicodeDecodeError as error:
        return f"invalid UTF-8 at byte {error.start + 1}"
    except TwiceError as error:
        return f"the name {shown(error.args[0])} is there twice"
    except json.JSONDecodeError as error:
        return f"not a JSON object: {error.msg} at character {error.pos + 1}"
    except (ValueError, RecursionError):
        return "not a JSON object"
    return values if isinstance(values, dict) else "not a JSON object"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise TwiceError(name)
        values[name] = value
    return values


def _converted(value: Any, kind: Kind) -> Any:
    if isinstance(value, dict | list) or (isinstance(value, bool) and kind is Kind.NUMBER):
        raise ValueError
    if isinstance(value, str) and value in MISSING_SPELLINGS:
        return None
    converted = CONVERT[kind](value)
    if kind is Kind.DATE and len(outside_calendar(pa.array([converted], TYPES[kind]))):
        raise ValueError
    return converted


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
