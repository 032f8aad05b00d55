"""What a column of the first records is taken for, and columns as numbers.

The rules:

- A number is one column. So are true and false, as 1 and 0, and a date, as days since 1970-01-01.
- A text with at most `MOST_LEVELS` different values in the sample has a column of 0 and 1 for each, and `LATER` more
  that values which were not in the sample are hashed into. A text with more is hashed into `HASHED` columns.
- A missing number, truth or date is imputed by the running median of its column; a missing text is 0 in all its
  columns. A column with a missing value in the sample has an indicator of its own; the others share one.
- Left out are columns that are ignored as asked; with no value in the sample; with one and the same value in all of its
  records; and texts of which more than half differ, in `ENOUGH` values or more, which are taken for identifiers. A
  column that is asked for by name is never left out for what is in it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any, Literal
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from redescend.errors import quote
from redescend.numeric import Array
from redescend.sources import Kind
from redescend.streaming.report.formatting import first

MOST_LEVELS, LATER, HASHED = 256, 8, 256
ENOUGH = 100

FARTHEST = 1e100
"""Numbers beyond this are refused: their products would overflow."""

MICROSECONDS_A_DAY = 86_400e6

How = Literal["number", "boolean", "date", "levels", "hashed"]
WAYS: dict[Kind, tuple[How, ...]] = {
    Kind.NUMBER: ("number",),
    Kind.BOOLEAN: ("boolean",),
    Kind.DATE: ("date",),
    Kind.TEXT: ("levels", "hashed"),
}


@dataclass(frozen=True)
class Feature:
    """A column that a model learns from, and what becomes of it.

    Parameters
    ----------
    name : str
    kind : Kind
    how : {'number', 'boolean', 'date', 'levels', 'hashed'}
    levels : list of str
        The values that have a column of their own, in order.
    missing : bool
        Whether it has an indicator of its own for missing values.

    Examples
    --------
    >>> Feature("depth", Kind.NUMBER, "number", missing=True).encoded
    ['depth', 'depth is missing']
    >>> Feature("colour", Kind.TEXT, "levels", ["blue", "red"]).encoded[:3]
    ['colour = blue', 'colour = red', 'colour is another (1)']
    """

    name: str
    kind: Kind
    how: How
    levels: list[str] = field(default_factory=list)
    missing: bool = False

    @functools.cached_property
    def encoded(self) -> list[str]:
        """The names of its columns of numbers; that of its own indicator is the last."""
        names = [self.name]
        if self.how == "levels":
            names = [f"{self.name} = {level}" for level in self.levels]
            names += [f"{self.name} is another ({place})" for place in range(1, LATER + 1)]
        elif self.how == "hashed":
            names = [f"{self.name} ({place})" for place in range(1, HASHED + 1)]
        return [*names, f"{self.name} is missing"] if self.missing else names

    @functools.cached_property
    def _known(self) -> dict[bytes, int]:
        return {level.encode(): place for place, level in enumerate(self.levels)}

    def places(self, texts: list[bytes]) -> Array:
        """Which of its columns is 1 for each text, given as UTF-8."""
        hashes = np.fromiter(map(crc32, texts), np.int64, len(texts))
        if self.how == "hashed":
            return hashes % HASHED
        later = len(self.levels) + hashes % LATER
        return np.fromiter(map(self._known.get, texts, later.tolist()), np.int64, len(texts))

    @property
    def sound(self) -> bool:
        """Whether the parts could belong together."""
        texts = [self.name, *self.levels]
        return (
            all(isinstance(text, str) for text in texts)
            and self.how in WAYS[self.kind]
            and isinstance(self.missing, bool)
            and len(set(self.levels)) == len(self.levels) <= MOST_LEVELS
            and (self.how == "levels" or not self.levels)
        )


def feature_of(name: str, kind: Kind, column: Any) -> Feature:
    """What a column of the sample is taken for."""
    values = present(column)
    missing = len(values) < len(column)
    if kind is not Kind.TEXT:
        return Feature(name, kind, WAYS[kind][0], [], missing)
    distinct = pc.unique(values).to_pylist()
    if len(distinct) > MOST_LEVELS:
        return Feature(name, kind, "hashed", [], missing)
    return Feature(name, kind, "levels", sorted(distinct), missing)


def reason_to_leave_out(kind: Kind, column: Any) -> str | None:
    """Why nothing can be learned from a column of the sample, if so."""
    values = present(column)
    distinct = pc.unique(values)
    if len(values) == 0:
        return f"has no value in {first(len(column))}"
    if len(distinct) == 1 and len(values) == len(column):
        return f"is always {shown(distinct[0].as_py())} in {first(len(column))}"
    if kind is Kind.TEXT and len(values) >= ENOUGH and 2 * len(distinct) > len(values):
        return f"has {len(distinct):,} different texts in {len(values):,} values, so it is taken for an identifier"
    return None


def present(column: Any) -> Any:
    """The values of a column that are there; NaN is a missing number."""
    column = column.drop_null()
    return column.filter(pc.invert(pc.is_nan(column))) if pa.types.is_floating(column.type) else column


def as_numbers(column: Any) -> Array:
    """A column of numbers, truths or dates as doubles, NaN where one is missing; not to be written to."""
    if pa.types.is_floating(column.type):
        return column.to_numpy(zero_copy_only=False)
    if pa.types.is_boolean(column.type):
        return column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return column.cast(pa.int64()).to_numpy(zero_copy_only=False) / MICROSECONDS_A_DAY


def within_reach(values: Array) -> bool:
    """Whether all numbers are there and can be computed with; one look, because this is so of nearly all columns."""
    return len(values) == 0 or bool(values.min() >= -FARTHEST and values.max() <= FARTHEST)


def unusable(values: Array) -> Array:
    """The places of numbers that cannot be computed with; NaN is a missing one."""
    return np.flatnonzero(np.abs(values) > FARTHEST)


def reason_against(name: str, value: float) -> str:
    """Why a number cannot be computed with."""
    text = shown(value)
    if np.isfinite(value):
        return f"column {name!r}: {text} is too large to compute with (at most 1e100)"
    return f"column {name!r}: {text} is not finite"


def shown(value: Any) -> str:
    """A value in a sentence."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return number_text(value)
    return quote(value) if isinstance(value, str) else str(value)


def number_text(value: float) -> str:
    """A number as a person writes it; read back, it is the same.

    >>> number_text(3.0), number_text(-0.0), number_text(0.1), number_text(1e308)
    ('3', '0', '0.1', '1e308')
    """
    if value.is_integer() and abs(value) < 2.0**53:
        return str(int(value))
    return repr(value).replace("e+", "e")
