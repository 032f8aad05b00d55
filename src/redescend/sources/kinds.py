"""The four kinds of columns, and how the kind of a column is read off the values it begins with."""

from __future__ import annotations

import enum
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

SAMPLE = 1000
"""From so many records, the first, the kinds of the columns are decided."""

AGREEMENT = 0.9
"""The share of the values that are there which must be of a kind for the column to be."""

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?", "-")
"""What stands for a missing value in text, alone or between single blanks."""

MISSING_SPELLINGS = sorted({before + token + after for token in MISSING for before in ("", " ") for after in ("", " ")})

TRUE = ("true", "True", "TRUE")
FALSE = ("false", "False", "FALSE")

# Digits can be matched in one way only: a long value is looked at in time that grows with its length, not its square.
_NUMBER = r"^[ \t]*([-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?|[-+]?(?i:inf|infinity|nan))[ \t]*$"
_BOOLEAN = r"^[ \t]*(?i:true|false)[ \t]*$"
_DATE = r"^\d{4}-\d{2}-\d{2}([ T]\d{2}(:\d{2}(:\d{2}(\.\d{1,6})?)?)?)?"
_ZONE = r"(Z|[-+]\d{2}(:?\d{2})?)"


class Kind(enum.StrEnum):
    """What the values of a column are."""

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
"""How the values of each kind are kept."""

ZONED = pa.timestamp("us", tz="UTC")
"""How dates that name their zone are read, before they are kept as the same moment in UTC."""

LOOKS_LIKE = {Kind.NUMBER: _NUMBER, Kind.BOOLEAN: _BOOLEAN, Kind.DATE: f"{_DATE}{_ZONE}?$"}
"""Patterns of the values of each kind but text."""

A_VALUE = {Kind.NUMBER: "a number", Kind.BOOLEAN: "true or false", Kind.DATE: "a date", Kind.TEXT: "text"}
"""What a value of each kind is called in a sentence."""


def kind_of_text(values: pa.Array) -> Kind:
    """The kind of a column, from the text of its values; null is no value.

    Examples
    --------
    >>> kind_of_text(pa.array(["1", "2.5", None, "-3e8"])).value, kind_of_text(pa.array(["1", "b"])).value
    ('number', 'text')
    """
    there = values.drop_null()
    return agreed(lambda kind: _matching(there, LOOKS_LIKE[kind]), len(there))


def agreed(count: Callable[[Kind], int], total: int) -> Kind:
    """The kind that enough of the values are of; text if none is, and a number if there is no value."""
    if total == 0:
        return Kind.NUMBER
    return next((kind for kind in LOOKS_LIKE if count(kind) >= AGREEMENT * total), Kind.TEXT)


def zoned(values: pa.Array) -> bool:
    """Whether most of the dates in a column of text name their zone."""
    there = values.drop_null()
    return 2 * _matching(there, f"{_DATE}{_ZONE}$") > len(there)


def _matching(values: pa.Array, pattern: str) -> int:
    return pc.sum(pc.match_substring_regex(values, pattern)).as_py() or 0
