"""The four kinds of columns: inferring a kind, and converting values to it."""

from __future__ import annotations

import datetime
import enum
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from redescend.errors import quote
from redescend.numeric import Array

SAMPLE = 1000
"""The number of records from which the kinds of the columns are inferred."""

AGREEMENT = 0.9  # the share of its values that must be of a kind for a column to be of that kind

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL", "None", "?", "-", "--", ".")
"""Spellings of a missing value, alone or between single blanks."""

MISSING_SPELLINGS = sorted({before + token + after for token in MISSING for before in ("", " ") for after in ("", " ")})

TRUE = ("true", "True", "TRUE")
FALSE = ("false", "False", "FALSE")

# Digits match in one way only, so that matching a long value takes linear time.
_NUMBER = r"^[ \t]*([-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?|[-+]?(?i:inf|infinity|nan))[ \t]*$"
_BOOLEAN = r"^[ \t]*(?i:true|false)[ \t]*$"
_DATE = r"^\d{4}-\d{2}-\d{2}([ T]\d{2}(:\d{2}(:\d{2}(\.\d{1,6})?)?)?)?"
_ZONE = r"(Z|[-+]\d{2}(:?\d{2})?)"


class Kind(enum.StrEnum):
    """The kind of values in a column: number, boolean, date or text.

    Examples
    --------
    >>> Kind("date") is Kind.DATE
    True
    """

    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "date"
    TEXT = "text"


TYPES: dict[Kind, pa.DataType] = {
    Kind.NUMBER: pa.float64(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.DATE: pa.timestamp("us"),
    Kind.TEXT: pa.string(),
}
"""The Arrow type of each kind."""

ZONED = pa.timestamp("us", tz="UTC")  # the Arrow type with which dates that name their time zone are parsed

PATTERNS = {Kind.NUMBER: _NUMBER, Kind.BOOLEAN: _BOOLEAN, Kind.DATE: f"{_DATE}{_ZONE}?$"}
"""Regular expressions for values of each kind except text."""

DESCRIPTIONS = {Kind.NUMBER: "a number", Kind.BOOLEAN: "true or false", Kind.DATE: "a date", Kind.TEXT: "text"}

FIRST_DATE, LAST_DATE = (
    (end - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
    for end in (datetime.datetime.min, datetime.datetime.max)
)
"""The dates that Python has, in microseconds. Arrow would import pandas to compute them."""
LENIENT = {"allow_int_overflow": True, "allow_time_truncate": True, "allow_float_truncate": True}
DATED = (pa.TimestampScalar, pa.Date32Scalar, pa.Date64Scalar)
NUMERIC = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)


def infer_text_kind(values: pa.Array) -> Kind:
    """Infer the kind of a column from the text of its values; nulls are ignored.

    >>> infer_text_kind(pa.array(["1", "2.5", None, "-3e8"])).value, infer_text_kind(pa.array(["1", "b"])).value
    ('number', 'text')
    """
    present = values.drop_null()
    return choose_kind(lambda kind: count_matches(present, PATTERNS[kind]), len(present))


def choose_kind(count: Callable[[Kind], int], total: int) -> Kind:
    """The kind that enough of the values have; text if there is none, and number if there are no values."""
    if total == 0:
        return Kind.NUMBER
    return next((kind for kind in PATTERNS if count(kind) >= AGREEMENT * total), Kind.TEXT)


def has_time_zones(values: pa.Array) -> bool:
    """Whether most of the dates in a column of text name their time zone."""
    present = values.drop_null()
    return 2 * count_matches(present, f"{_DATE}{_ZONE}$") > len(present)


def count_matches(values: pa.Array, pattern: str) -> int:
    """The number of texts that match."""
    return pc.sum(pc.match_substring_regex(values, pattern)).as_py() or 0


def infer_type_kind(type: pa.DataType) -> Kind | None:
    """The kind of a column of this Arrow type; None if it is not one of the four.

    >>> infer_type_kind(pa.decimal128(10, 2)).value, infer_type_kind(pa.list_(pa.int8()))
    ('number', None)
    """
    if pa.types.is_dictionary(type):
        return infer_type_kind(type.value_type)
    if pa.types.is_boolean(type):
        return Kind.BOOLEAN
    if pa.types.is_timestamp(type) or pa.types.is_date(type):
        return Kind.DATE
    if pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type):
        return Kind.TEXT
    return Kind.NUMBER if any(is_one(type) for is_one in NUMERIC) else None


def convert_column(values: pa.Array, kind: Kind) -> tuple[pa.Array, dict[int, str]]:
    """Convert a column to a kind: the values, null where that fails, and the reasons by index."""
    if pa.types.is_dictionary(values.type):
        # Convert the few distinct values before repeating them.
        words = values.dictionary
        words = words.cast(TYPES[Kind.TEXT]) if infer_type_kind(words.type) is Kind.TEXT else words
        values = words.take(values.indices)
    current = infer_type_kind(values.type)
    if current is Kind.TEXT and (kind is not Kind.TEXT or not _is_utf8(values)):
        return _convert_one_by_one(values, kind)
    if current is kind or current is Kind.BOOLEAN or kind is Kind.TEXT:
        try:
            return _mask_outside_calendar(values.cast(options=pc.CastOptions(TYPES[kind], **LENIENT)))
        except pa.ArrowException:
            pass
    return _convert_one_by_one(values, kind)


def _mask_outside_calendar(values: pa.Array) -> tuple[pa.Array, dict[int, str]]:
    outside = find_outside_calendar(values)
    if not len(outside):
        return values, {}
    moments = values.cast(pa.int64())
    wrong = {int(index): f"{moments[index]} is not a date in the years 1 to 9999" for index in outside}
    mask = np.zeros(len(values), bool)
    mask[outside] = True
    return pc.if_else(pa.array(mask), pa.scalar(None, values.type), values), wrong


def find_outside_calendar(values: pa.Array) -> Array:
    """Indices of dates that Python cannot represent, outside the years 1 to 9999; none in columns of other kinds."""
    ends = pc.min_max(values) if values.type == TYPES[Kind.DATE] else None
    if ends is None or not ends["min"].is_valid or (ends["min"].value >= FIRST_DATE and ends["max"].value <= LAST_DATE):
        return np.empty(0, np.int64)
    moments = pc.fill_null(values.cast(pa.int64()), 0).to_numpy()
    return np.flatnonzero((moments < FIRST_DATE) | (moments > LAST_DATE))


def _is_utf8(values: pa.Array) -> bool:
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _convert_one_by_one(values: pa.Array, kind: Kind) -> tuple[pa.Array, dict[int, str]]:
    out: list[Any] = []
    wrong: dict[int, str] = {}
    for index, value in enumerate(_to_python(values)):
        try:
            out.append(convert_value(value, kind))
        except (ValueError, TypeError, OverflowError, pa.ArrowException):
            out.append(None)
            wrong[index] = f"{quote(value)} is not {DESCRIPTIONS[kind]}"
    return pa.array(out, TYPES[kind]), wrong


def _to_python(values: pa.Array) -> list[Any]:
    """The values as Python objects; as text where Python has none."""
    try:
        return values.to_pylist()
    except (ValueError, OverflowError):
        return [_scalar_to_python(value) for value in values]


def _scalar_to_python(value: pa.Scalar) -> Any:
    try:
        return value.as_py()
    except (ValueError, OverflowError):
        pass
    if isinstance(value, pa.DictionaryScalar):
        return _scalar_to_python(value.value)
    if hasattr(value, "as_buffer"):
        return value.as_buffer().to_pybytes()
    return str(value.value) if isinstance(value, DATED) else str(value.type)


def convert_value(value: Any, kind: Kind) -> Any:
    """Convert a single value; raise an error if it is not of the kind."""
    if value is None or (kind is not Kind.TEXT and isinstance(value, str) and value in MISSING_SPELLINGS):
        return None
    return _CONVERTERS[kind](value)


def _to_number(value: Any) -> float:
    # Python also accepts digits of other scripts, and underscores.
    if isinstance(value, str) and ("_" in value or not value.isascii()):
        raise ValueError
    return float(value)


def _to_boolean(value: Any) -> bool:
    if isinstance(value, str):
        if value.strip() not in (*TRUE, *FALSE, "0", "1"):
            raise ValueError
        return value.strip() in (*TRUE, "1")
    if value not in (0, 1):
        raise ValueError
    return bool(value)


def _to_date(value: Any) -> Any:
    if isinstance(value, str):
        try:
            date = pc.cast(pa.scalar(value), TYPES[Kind.DATE])
        except pa.ArrowInvalid:
            date = pc.cast(pc.cast(pa.scalar(value), ZONED), TYPES[Kind.DATE])
        if not FIRST_DATE <= date.value <= LAST_DATE:
            raise ValueError
        return date
    if not isinstance(value, datetime.date):
        raise ValueError
    # PyArrow makes no timestamp of a date without a time.
    return value if isinstance(value, datetime.datetime) else datetime.datetime(*value.timetuple()[:3])


def _to_text(value: Any) -> str:
    if isinstance(value, bytes):
        raise ValueError
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, bool | int | float) else str(value)


_CONVERTERS = dict(zip(Kind, (_to_number, _to_boolean, _to_date, _to_text), strict=True))


def format_json(table: pa.RecordBatch, index: int) -> bytes:
    """Format a record as a JSON object of all its values."""
    record = {
        name: _to_json(_to_python(column.slice(index, 1))[0])
        for name, column in zip(table.schema.names, table.columns, strict=True)
    }
    return json.dumps(record, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass")


def _to_json(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
