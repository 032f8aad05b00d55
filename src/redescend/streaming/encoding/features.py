"""The encoding of a column as numbers, inferred from the first records.

- A number is one column. So are booleans, as 0 and 1, and dates, as days since 1970-01-01; dates also have waves of the
  time of day, the day of the week and the day of the year, as far as these differ in the sample.
- A text with at most `MAX_LEVELS` distinct values in the sample is one-hot encoded, with `UNSEEN` more columns that
  values which are not in the sample are hashed into. A text with more values is hashed into `HASHED` columns. If the
  target is a label and all columns together are too many for a model of order 2, only the most frequent values have a
  column of their own, as many as order 2 allows.
- A missing number, boolean or date is imputed by the running mean of its column, or with a transform by its running
  median; a missing text is 0 in all its columns. A column with a missing value in the sample has a missing-value
  indicator of its own; the others share one.
- Excluded are ignored columns; columns without a value in the sample; constant columns; texts with more than half of at
  least `MIN_IDENTIFIERS` values distinct, which are taken for identifiers; and, unless no other column is left, whole
  numbers that number the records: they only grow, are evenly spaced in whatever order, or are all different in a column
  named like an identifier. The first records of a stream may be sorted by a feature: there, a growing column is
  excluded only if it is named like a count or an identifier, or counts from 0 or 1. Columns that are requested by name
  are never excluded for their content.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from redescend.errors import quote
from redescend.learners.selftuning import WIDEST_FULL
from redescend.numeric import Array
from redescend.sources import Kind

MAX_LEVELS, UNSEEN, HASHED = 256, 8, 256
MIN_IDENTIFIERS = 100

MAX_LAG = 10_000  # the most records that a feature may look back
MAX_NUMBER = 1e100  # numbers beyond this are rejected: their products would overflow

MICROSECONDS_PER_DAY = 86_400e6

CYCLES = {"time of day": (1.0, 2), "day of the week": (7.0, 3), "day of the year": (365.2425, 2)}
"""The cycles of dates: their lengths in days, and their numbers of waves; three waves describe seven days exactly."""

COUNTS = "counts the records"  # why a column that numbers the records is excluded
MIN_COUNTED = 20  # the fewest values of a column that numbers the records

EVEN = 0.2
"""The largest deviation of numbers from evenly spaced ones, relative to the inverse square root of their count; that of
random ones is smaller with a probability below 1e-9."""

_IDENTIFIER = re.compile(
    r"(?i:(^|[^a-z])((u|gu|uu|p|pat|sub|subj|user|cust|case|rec)?id(s|no|nr|num)?|key|index|idx|row|rownames?|record|no|nr"
    r"|unnamed)([^a-z]|$))|(Id|ID)$"
)
_COUNTER = re.compile(r"(#|n|num|number|count|counter|seq|sequence|line|obs|observation|case)?", re.IGNORECASE)
_TIME = re.compile(r"year|month|week|day|date|time|hour|minute|second|epoch", re.IGNORECASE)
_AGE = re.compile(r"age", re.IGNORECASE)

Encoding = Literal["number", "boolean", "date", "levels", "hashed"]
ENCODINGS: dict[Kind, tuple[Encoding, ...]] = {
    Kind.NUMBER: ("number",),
    Kind.BOOLEAN: ("boolean",),
    Kind.DATE: ("date",),
    Kind.TEXT: ("levels", "hashed"),
}


@dataclass(frozen=True)
class Feature:
    """A column that a model learns from, and its encoding.

    `levels` are the values that have a column of their own, in order; `missing` is whether it has a missing-value
    indicator of its own. A lagged feature has the value of the column `of` in the record `lag` records before.

    >>> Feature("depth", Kind.NUMBER, "number", missing=True).encoded
    ['depth', 'depth is missing']
    >>> Feature("colour", Kind.TEXT, "levels", ["blue", "red"]).encoded[:3]
    ['colour = blue', 'colour = red', 'colour is another (1)']
    """

    name: str
    kind: Kind
    how: Encoding
    levels: list[str] = field(default_factory=list)
    missing: bool = False
    of: str | None = None
    lag: int = 0

    @functools.cached_property
    def encoded(self) -> list[str]:
        """The names of its encoded columns; that of its own indicator is the last."""
        names = [self.name]
        if self.how == "date":
            names += [f"{self.name}: {cycle}, {wave}" for cycle, wave in self._waves()]
        elif self.how == "levels":
            names = [f"{self.name} = {level}" for level in self.levels]
            # All labels are known, so a lagged label needs no columns for unseen values.
            names += [f"{self.name} is another ({place})" for place in range(1, 1 + (0 if self.lag else UNSEEN))]
        elif self.how == "hashed":
            names = [f"{self.name} ({place})" for place in range(1, HASHED + 1)]
        return [*names, f"{self.name} is missing"] if self.missing else names

    def _waves(self) -> Iterator[tuple[str, str]]:
        for cycle in self.levels:
            for times in range(1, CYCLES[cycle][1] + 1):
                yield from ((cycle, f"{wave} {times}") for wave in ("sine", "cosine"))

    def waves(self, days: Array) -> Iterator[Array]:
        """The waves of a date's cycles, in the order of its encoded columns."""
        for cycle in self.levels:
            length, count = CYCLES[cycle]
            angles = 2.0 * np.pi / length * np.mod(days, length)
            for times in range(1, count + 1):
                yield np.sin(times * angles)
                yield np.cos(times * angles)

    @functools.cached_property
    def _level_indices(self) -> dict[bytes, int]:
        return {level.encode(): index for index, level in enumerate(self.levels)}

    def column_indices(self, texts: list[bytes]) -> Array:
        """Which of its encoded columns is 1 for each text, given as UTF-8."""
        hashes = np.fromiter(map(crc32, texts), np.int64, len(texts))
        if self.how == "hashed":
            return hashes % HASHED
        unseen = len(self.levels) + hashes % UNSEEN
        return np.fromiter(map(self._level_indices.get, texts, unseen.tolist()), np.int64, len(texts))

    def is_valid(self) -> bool:
        """Whether the parts are consistent."""
        return (
            all(isinstance(text, str) for text in (self.name, *self.levels))
            and self.how in ENCODINGS[self.kind]
            and isinstance(self.missing, bool)
            and len(set(self.levels)) == len(self.levels) <= MAX_LEVELS
            and (self.how == "levels" or set(self.levels) <= (set(CYCLES) if self.how == "date" else set()))
            and type(self.lag) is int
            and 0 <= self.lag <= MAX_LAG
            and (isinstance(self.of, str) and not self.missing if self.lag else self.of is None)
        )

    def to_dict(self) -> dict[str, Any]:
        """Convert to texts, lists and dicts; `of` and `lag` are left out unless the feature is lagged."""
        plain = asdict(self) | {"kind": self.kind.value}
        return plain if self.lag else {name: plain[name] for name in plain if name not in ("of", "lag")}


def infer_feature(name: str, kind: Kind, column: Any) -> Feature:
    """Infer how to encode a column from the sample."""
    values = drop_missing(column)
    levels = sorted(pc.unique(values).to_pylist()) if kind is Kind.TEXT else []
    levels = _find_cycles(to_floats(values)) if kind is Kind.DATE else levels
    if len(levels) > MAX_LEVELS:
        return Feature(name, kind, "hashed", missing=len(values) < len(column))
    return Feature(name, kind, ENCODINGS[kind][0], levels, missing=len(values) < len(column))


def pool_rare_levels(features: list[Feature], table: Any) -> list[Feature]:
    """Encode the most frequent texts only, and hash the others, if all would be too many features for order 2.

    Used for labels: they are learned better by a model of order 2 with fewer features than by one of order 1. If the
    other features are too many, nothing is changed.

    >>> towns = pa.table({"town": [*(["Rome"] * 500), *(f"village {n % 200}" for n in range(500))]})
    >>> [feature] = pool_rare_levels([infer_feature("town", Kind.TEXT, towns["town"])], towns)
    >>> len(feature.encoded), "Rome" in feature.levels, "village 199" in feature.levels
    (148, True, False)
    """
    texts = [feature for feature in features if feature.kind is Kind.TEXT]
    width = sum(len(feature.encoded) for feature in features)
    pooled = [replace(feature, how="levels", levels=[]) for feature in texts]
    room = WIDEST_FULL - 2 - width + sum(len(feature.encoded) for feature in texts)
    room -= sum(len(feature.encoded) for feature in pooled)
    if not texts or width + 2 <= WIDEST_FULL or room < 0:
        return features
    counts = [
        (-one["counts"], feature.name, one["values"])
        for feature in texts
        for one in pc.value_counts(drop_missing(table.column(feature.name))).to_pylist()
    ]
    frequent = sorted(counts)[:room]
    levels = {name: sorted(text for _, own, text in frequent if own == name) for name in {text.name for text in texts}}
    return [
        replace(feature, how="levels", levels=levels[feature.name]) if feature.kind is Kind.TEXT else feature
        for feature in features
    ]


def _find_cycles(days: Array) -> list[str]:
    """The cycles of dates: the times of day differ, and the dates span two weeks, or two years.

    With less than two years, the effect of a season and that of a trend cannot be told apart.
    """
    span = float(np.ptp(days)) if len(days) else 0.0
    found = {
        "time of day": len(days) > 0 and bool(np.ptp(np.mod(days, 1.0)) > 0.0),
        "day of the week": span >= 14.0 and len(np.unique(np.mod(np.floor(days), 7.0))) > 1 and not _are_months(days),
        "day of the year": span >= 730.0 and len(np.unique(np.mod(np.floor(days), 365.2425))) > 12,
    }
    return [cycle for cycle in CYCLES if found[cycle]]


def _are_months(days: Array) -> bool:
    """Whether all dates, in days since 1970-01-01, are the same day of a month: they stand for months, or for years.

    >>> months = np.arange("2020-01", "2021-01", dtype="M8[M]").astype("M8[D]").astype(float)
    >>> _are_months(months), _are_months(np.append(months, months[-1] + 1.0))
    (True, False)
    """
    dates = np.floor(days).astype("M8[D]")
    return len(np.unique(dates - dates.astype("M8[M]"))) == 1


def find_count(name: str, kind: Kind, first: Any, others: Any = None, stream: bool = False) -> str | None:
    """Explain why the whole numbers of a column number the records; None if they do not.

    `first` are the values of the first records, and `others` those of some from all over the source, in its order, or
    None if there are no more; of a `stream`, only the first are known.
    """
    values = to_floats(drop_missing(first)) if kind is Kind.NUMBER else np.empty(0)
    if len(values) < MIN_COUNTED or is_named_like_time(name) or _AGE.search(name) or not np.isfinite(values).all():
        return None
    if (np.mod(values, 1.0) != 0.0).any():
        return None
    steps, named = np.diff(values), bool(_IDENTIFIER.search(name))
    counter = named or bool(_COUNTER.fullmatch(name.strip()))
    direction = float(np.sign(np.mean(np.sign(steps))))
    known = values if others is None else to_floats(drop_missing(others))
    grows = not stream and len(known) > 1 and bool(np.mean(direction * np.diff(known) > 0.0) >= 0.95)
    if np.mean(np.abs(steps) == 1.0) >= 0.95 and abs(np.mean(np.sign(steps))) >= 0.95:
        from_start = stream and values[0] in (0.0, 1.0) and direction > 0.0
        grows = grows and len(np.unique(values)) >= 0.95 * len(values)  # and does not begin again
        if grows or counter or from_start:
            return COUNTS
    even = not stream and counter and _are_evenly_spaced(known)
    if even and np.ptp(known) < len(known):
        return COUNTS
    if len(values) < MIN_IDENTIFIERS or len(np.unique(values)) < len(values):
        return None
    if even or named or (grows and (direction * steps > 0.0).all()):
        return f"has {len(values):,} different whole numbers in {len(values):,} records, so it looks like an identifier"
    return None


def is_named_like_time(name: str) -> bool:
    """Whether the name of a column has a word for a time in it.

    >>> is_named_like_time("Weekday"), is_named_like_time("weight")
    (True, False)
    """
    return bool(_TIME.search(name))


def _are_evenly_spaced(values: Array) -> bool:
    """Whether numbers are evenly spaced in some order, as a counter of the records is.

    >>> random = np.random.default_rng(0)
    >>> _are_evenly_spaced(random.permutation(500)), _are_evenly_spaced(random.permutation(10**6)[:500])
    (True, False)
    """
    count, values = len(values), np.sort(values)
    if count < MIN_IDENTIFIERS or not (np.diff(values) > 0.0).all():
        return False
    even = np.linspace(values[0], values[-1], count)
    return bool(np.abs(values - even).max() <= EVEN / np.sqrt(count) * (values[-1] - values[0]))


def drop_missing(column: Any) -> Any:
    """The values of a column that are present; NaN is a missing number."""
    column = column.drop_null()
    return column.filter(pc.invert(pc.is_nan(column))) if pa.types.is_floating(column.type) else column


def to_floats(column: Any) -> Array:
    """A column of numbers, booleans or dates as read-only doubles, NaN where a value is missing."""
    if pa.types.is_floating(column.type) or pa.types.is_boolean(column.type):
        return column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return column.cast(pa.int64()).to_numpy(zero_copy_only=False) / MICROSECONDS_PER_DAY


def reject_out_of_range(name: str, values: Array) -> dict[int, str]:
    """Reasons to reject numbers, by index: infinite or too large; NaN is a missing number."""
    rejected = {}
    for index in np.flatnonzero(np.abs(values) > MAX_NUMBER).tolist():
        value = float(values[index])
        problem = "is too large to compute with (at most 1e100)" if np.isfinite(value) else "is not finite"
        rejected[index] = f"column {name!r}: {quote_value(value)} {problem}"
    return rejected


def quote_value(value: Any) -> str:
    """A value as it appears in a message."""
    if isinstance(value, str):
        return quote(value)
    return format_exactly(value) if isinstance(value, float) else str(value).lower()


def format_exactly(value: float) -> str:
    """A number in the shortest form that is parsed to the same number.

    >>> format_exactly(3.0), format_exactly(-0.0), format_exactly(0.1), format_exactly(1e308)
    ('3', '0', '0.1', '1e308')
    """
    if value.is_integer() and abs(value) < 2.0**53:
        return str(int(value))
    return repr(value).replace("e+", "e")
