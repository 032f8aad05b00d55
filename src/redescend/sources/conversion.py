"""Columns that have a type already become columns of the four kinds."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from redescend.numeric import Array
from redescend.sources.kinds import A_VALUE, FALSE, MISSING_SPELLINGS, TRUE, TYPES, ZONED, Kind
from redescend.sources.words import shown

FIRST, LAST = (pa.scalar(end, TYPES[Kind.DATE]).value for end in (datetime.datetime.min, datetime.datetime.max))
LENIENT = {"allow_int_overflow": True, "allow_time_truncate": True, "allow_float_truncate": True}
DATED = (pa.TimestampScalar, pa.Date32Scalar, pa.Date64Scalar)
NUMERIC = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)


def kind_of(type: pa.DataType) -> Kind | None:
    """The kind of a column of this type; None if its values are none of the four.

    Examples
    --------
    >>> kind_of(pa.decimal128(10, 2)).value, kind_of(pa.list_(pa.int8()))
    ('number', None)
    """
    if pa.types.is_dictionary(type):
        return kind_of(type.value_type)
    if pa.types.is_boolean(type):
        return Kind.BOOLEAN
    if pa.types.is_timestamp(type) or pa.types.is_date(type):
        return Kind.DATE
    if pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type):
        return Kind.TEXT
    if any(is_one(type) for is_one in NUMERIC):
        return Kind.NUMBER
    return None


def as_kind(values: pa.Array, kind: Kind) -> tuple[pa.Array, dict[int, str]]:
    """A column as one of the four kinds, and what is wrong with the values that are not, which are null then."""
    if pa.types.is_dictionary(values.type):
        # The words are few: they take the type that is wanted before they are repeated.
        words = values.dictionary
        words = words.cast(TYPES[Kind.TEXT]) if kind_of(words.type) is Kind.TEXT else words
        values = words.take(values.indices)
    own = kind_of(values.type)
    if own is Kind.TEXT and (kind is not Kind.TEXT or not _is_text(values)):
        return _one_by_one(values, kind)
    if own is kind or own is Kind.BOOLEAN or kind is Kind.TEXT:
        try:
            return _in_calendar(values.cast(options=pc.CastOptions(TYPES[kind], **LENIENT)))
        except pa.ArrowException:
            pass
    return _one_by_one(values, kind)


def _in_calendar(values: pa.Array) -> tuple[pa.Array, dict[int, str]]:
    """Python has no dates outside the years 1 to 9999."""
    outside = outside_calendar(values)
    if not len(outside):
        return values, {}
    moments = values.cast(pa.int64())
    wrong = {int(index): f"{moments[index]} is not a date in the years 1 to 9999" for index in outside}
    mask = np.zeros(len(values), bool)
    mask[outside] = True
    return pc.if_else(pa.array(mask), pa.scalar(None, values.type), values), wrong


def outside_calendar(values: pa.Array) -> Array:
    """Which dates are outside the years 1 to 9999; none where these are no dates."""
    ends = pc.min_max(values) if values.type == TYPES[Kind.DATE] else None
    if ends is None or not ends["min"].is_valid or (ends["min"].value >= FIRST and ends["max"].value <= LAST):
        return np.empty(0, np.int64)
    moments = pc.fill_null(values.cast(pa.int64()), 0).to_numpy()
    return np.flatnonzero((moments < FIRST) | (moments > LAST))


def _is_text(values: pa.Array) -> bool:
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _one_by_one(values: pa.Array, kind: Kind) -> tuple[pa.Array, dict[int, str]]:
    out: list[Any] = []
    wrong: dict[int, str] = {}
    for index, value in enumerate(plain(values)):
        try:
            out.append(None if value is None else CONVERT[kind](value))
        except (ValueError, TypeError, OverflowError, pa.ArrowException):
            out.append(None)
            wrong[index] = f"{shown(value)} is not {A_VALUE[kind]}"
    return pa.array(out, TYPES[kind]), wrong


def plain(values: pa.Array) -> list[Any]:
    """The values as Python's own; those that it has no word for, in words."""
    try:
        return values.to_pylist()
    except (ValueError, OverflowError):
        return [_plain(value) for value in values]


def _plain(value: pa.Scalar) -> Any:
    try:
        return value.as_py()
    except (ValueError, OverflowError):
        pass
    if isinstance(value, pa.DictionaryScalar):
        return _plain(value.value)
    if hasattr(value, "as_buffer"):
        return value.as_buffer().to_pybytes()
    return str(value.value) if isinstance(value, DATED) else str(value.type)


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        if value in MISSING_SPELLINGS:
            return None
        # Python reads digits of any script, and in groups.
        if "_" in value or not value.isascii():
            raise ValueError
    return float(value)


def _boolean(value: Any) -> bool | None:
    if isinstance(value, str):
        if value in MISSING_SPELLINGS:
            return None
        if value.strip() not in (*TRUE, *FALSE, "0", "1"):
            raise ValueError
        return value.strip() in (*TRUE, "1")
    if value not in (0, 1):
        raise ValueError
    return bool(value)


def _date(value: Any) -> Any:
    if isinstance(value, str):
        if value in MISSING_SPELLINGS:
            return None
        try:
            return pc.cast(pa.scalar(value), TYPES[Kind.DATE])
        except pa.ArrowInvalid:
            return pc.cast(pc.cast(pa.scalar(value), ZONED), TYPES[Kind.DATE])
    if not isinstance(value, datetime.date):
        raise ValueError
    # A day is no moment to PyArrow, which takes a date with a time for one.
    return value if isinstance(value, datetime.datetime) else datetime.datetime(*value.timetuple()[:3])


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        raise ValueError
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, bool | int | float) else str(value)


CONVERT: dict[Kind, Callable[[Any], Any]] = {
    Kind.NUMBER: _number,
    Kind.BOOLEAN: _boolean,
    Kind.DATE: _date,
    Kind.TEXT: _text,
}
"""A single value as each kind; raises where it is not."""


def as_json(table: pa.RecordBatch, index: int) -> bytes:
    """A record as a JSON object of all its values."""
    record = {
        name: _writable(plain(column.slice(index, 1))[0])
        for name, column in zip(table.schema.names, table.columns, strict=True)
    }
    return json.dumps(record, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass")


def _writable(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
