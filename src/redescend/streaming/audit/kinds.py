"""Kinds of errors: a sentinel value, a wrong sign, another unit, or swapped columns.

Sentinel values and wrong signs are found by a rule as well, however badly their column is predicted. So are stretches
of a column in another unit: a few hundred rows in Fahrenheit, for example, or a thousand times as large.

Each value has two likelihoods: as it is, and converted back from another unit. The stretch with the largest sum of
log-ratios is reported if the sum exceeds what chance explains, and if the converted values are about as close to their
predictions as all other values. The density of errors has heavy tails, and log-ratios are clipped, so that a few
records do not make a stretch. A drifting column may be closer to another unit for a while, but a unit changes from one
row to the next, so the `EDGE` rows on either side of both ends must agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from redescend.numeric import Array
from redescend.streaming.far_out import Range

SENTINELS = frozenset(sign * number for number in (99.0, 999.0, 9999.0, 99999.0, 999999.0) for sign in (-1.0, 1.0))
"""Numbers that commonly stand for a missing value."""

FACTORS = {
    **{f"{10**power:,} times": float(10**power) for power in (1, 2, 3, 6)},
    **{f"1/{10**power:,} of": 10.0**-power for power in (1, 2, 3, 6)},
    "minus": -1.0,
    "2.54 times (inches as cm)": 2.54,
    "1/2.54 of (cm as inches)": 1 / 2.54,
    "1.609 times (miles as km)": 1.609344,
    "1/1.609 of (km as miles)": 1 / 1.609344,
    "2.205 times (kg as pounds)": 2.20462,
    "1/2.205 of (pounds as kg)": 1 / 2.20462,
    "3.281 times (m as feet)": 3.28084,
    "1/3.281 of (feet as m)": 1 / 3.28084,
}
"""Common mistakes with units and decimal points: the ratio of the value to the expected one."""

CONVERSIONS = frozenset(name for name in FACTORS if "(" in name)  # between two units that people use
EXPECTED = " the expected value"

NARROW, EXACT = 0.2, 0.05
"""A factor is only named if the interval is at most this wide, relative to the expected value: others fit by chance. Of
a value that is repeated, it is at most the second."""

FEWEST_ALIKE = 3
"""A unit is named only where at least as many different values of a column are in it: with a dozen units, one of them
fits many errors by chance. Digits are lost and added one at a time."""

CYCLES = {
    **dict.fromkeys(("dir", "direction", "bearing", "heading", "azimuth", "angle", "deg"), (0.0, 360.0)),
    **dict.fromkeys(("hour", "hr", "hours"), (0.0, 24.0)),
    **dict.fromkeys(("weekday", "dow", "wday"), (0.0, 7.0)),
    **dict.fromkeys(("day", "mday"), (1.0, 31.0)),
    **dict.fromkeys(("yday", "doy"), (0.0, 366.0)),
    **dict.fromkeys(("month", "mon", "mnth"), (1.0, 12.0)),
    **dict.fromkeys(("minute", "min", "second", "sec"), (0.0, 60.0)),
}
"""Words in the names of cyclic columns, and their ranges."""

ALONE = frozenset({"min"})  # words that are the whole name: temp_min is a minimum


class Column(NamedTuple):
    """A numeric column: its first and last percentile, its range, and the values that occur more than once."""

    low: float
    high: float
    range: Range | None
    repeated: frozenset[float]

    @classmethod
    def measure(cls, values: Array, far: Range | None) -> Column:
        """Measure a column by a sample of its `values`."""
        known = values[np.isfinite(values)]
        if not len(known):
            return cls(np.nan, np.nan, far, frozenset())
        found, counts = np.unique(known, return_counts=True)
        inside = known if far is None else known[(known >= far.low) & (known <= far.high)]
        low, high = np.quantile(inside if len(inside) else known, [0.01, 0.99]).tolist()
        return cls(low, high, far, frozenset(found[counts > 1].tolist()))

    def is_far(self, value: float) -> bool:
        return self.range is not None and not self.range.low <= value <= self.range.high

    def has(self, value: float) -> bool:
        """Whether a value would be usual in this column."""
        return self.low <= value <= self.high


def is_cycle(name: str, values: Array) -> bool:
    """Whether a column is cyclic, such as an angle or an hour, by its name and its range.

    >>> degrees = np.arange(0.0, 361.0, 10.0)
    >>> is_cycle("wind_dir", degrees), is_cycle("wind_dir", degrees / 10), is_cycle("direct_costs", degrees)
    (True, False, False)
    >>> is_cycle("min", degrees / 6.1), is_cycle("Min_Temp", degrees / 6.1)
    (True, False)
    """
    known = values[np.isfinite(values)]
    words = re.split(r"[^a-z]+", name.lower())
    ranges = [CYCLES[word] for word in words if word in CYCLES and (word not in ALONE or words == [word])]
    if not ranges or not len(known):
        return False
    low, high = ranges[0]
    inside = bool(low <= known.min() and known.max() <= high)
    return inside and bool(known.min() <= low + 0.1 * (high - low) and known.max() >= high - 0.2 * (high - low))


def name_kind(
    column: str,
    value: Any,
    expected: Any,
    interval: tuple[float | None, float | None],
    record: Mapping[str, float],
    columns: Mapping[str, Column],
) -> str:
    """Name the probable error of a cell; empty if unknown.

    The `interval` is that of nine in ten clean values, `record` has the numbers of the record by column, and `columns`
    are all numeric columns.
    """
    own = columns.get(column)
    if own is None or not isinstance(value, float):
        return ""
    factor, wide = _find_factor(value, expected, interval)
    # A value that is repeated may also be the same number twice, with a digit too many.
    if own.is_far(value) and (value in SENTINELS or (value in own.repeated and (not factor or wide > EXACT))):
        return "sentinel value"
    for name, other in columns.items():
        theirs = record.get(name, np.nan)
        swaps = own.has(theirs) and other.has(value) and not own.has(value) and not other.has(theirs)
        if name != column and swaps:
            return f"swapped with {name}"
    return f"{factor}{EXPECTED}" if factor and wide <= NARROW else ""


def _find_factor(value: float, expected: Any, interval: tuple[float | None, float | None]) -> tuple[str, float]:
    """The factor between a value and what is expected, and the width of the interval relative to that."""
    low, high = interval
    if low is None or high is None or not isinstance(expected, float) or expected == 0.0:
        return "", np.inf
    fitting = [name for name, factor in FACTORS.items() if low <= value / factor <= high]
    return fitting[0] if fitting else "", (high - low) / abs(expected)


def find_chance_units(named: Iterable[tuple[str, str, Any]]) -> set[tuple[str, str]]:
    """The columns and the kinds of errors that name a unit for too few different values.

    >>> kind = "2.54 times (inches as cm) the expected value"
    >>> sorted(column for column, _ in find_chance_units([("a", kind, 5.0), *(("b", kind, value) for value in "123")]))
    ['a']
    """
    found: dict[tuple[str, str], set[Any]] = {}
    for column, kind, value in named:
        if kind.removesuffix(EXPECTED) in CONVERSIONS:
            found.setdefault((column, kind), set()).add(value)
    return {one for one, values in found.items() if len(values) < FEWEST_ALIKE}


FEWEST = 100  # the fewest other values by which a number is judged
MOST_SENTINELS, MOST_NEGATIVE = 0.25, 0.005  # the largest shares of sentinel values, and of numbers with a wrong sign
GAP = 0.25  # the least distance of a sentinel value from all other values, relative to their range
FEWEST_CODES, FAR_CODE = 3, 3.0
"""The fewest copies of the only negative number, if it is a code of missing values, and its least distance from the
others, relative to nine in ten of the distances between neighbors in their lower half."""


def find_odd_numbers(values: Array) -> dict[int, str]:
    """Find the sentinel values and the wrong signs in a column; the kind of each, by index. NaN is a missing value.

    A sentinel value, such as -999, is far from all other values, or negative where nearly no other is. So is the only
    negative number if it is repeated, such as -9 among ages. A sign is wrong if nearly all other values are positive,
    and the number would be an ordinary one without it.

    >>> column = np.random.default_rng(0).uniform(5.0, 900.0, 1000)
    >>> column[[7, 8, 9]] = -999.0, -450.0, -1.0
    >>> find_odd_numbers(column)
    {7: 'sentinel value', 8: 'negative, unlike the others'}
    """
    found: dict[int, str] = {}
    is_sentinel = np.isin(values, list(SENTINELS)) | (values == _find_negative_code(values))
    others = values[np.isfinite(values) & ~is_sentinel]
    if len(others) < FEWEST:
        return found
    low, high = float(others.min()), float(others.max())
    margin = GAP * (high - low)
    negative = others[others < 0.0]
    few_negative = len(negative) <= max(1.0, MOST_NEGATIVE * len(others))
    for place in np.flatnonzero(is_sentinel).tolist():
        value = float(values[place])
        if (value < 0.0 and few_negative) or value > high + margin or value < low - margin:
            found[place] = "sentinel value"
    found = found if len(found) <= MOST_SENTINELS * len(values) else {}
    if len(negative) and few_negative:
        least, most = np.quantile(others[others >= 0.0], [0.1, 0.99]).tolist()
        wrong = (values < 0.0) & ~is_sentinel & (-values >= least) & (-values <= most) & (least > 0.0)
        found |= dict.fromkeys(np.flatnonzero(wrong).tolist(), "negative, unlike the others")
    return dict(sorted(found.items()))


def _find_negative_code(values: Array) -> float:
    """The only negative number, if it is whole, repeated, and away from the others; NaN if there is none.

    >>> ages = np.arange(500.0) % 80
    >>> _find_negative_code(np.append(ages, [-9.0] * 5)), _find_negative_code(np.append(ages, [-1.0] * 5))
    (-9.0, nan)
    """
    found, counts = np.unique(values[np.isfinite(values)], return_counts=True)
    if len(found) < 3 or found[0] >= 0.0 or found[1] < 0.0 or found[0] % 1.0 or counts[0] < FEWEST_CODES:
        return np.nan
    lower = found[1 : 2 + len(found) // 2]
    far = found[1] - found[0] >= FAR_CODE * float(np.quantile(np.diff(lower), 0.9))
    return float(found[0]) if far else np.nan


# --- stretches in another unit ---

EVIDENCE, MOST = 50.0, 5.0  # the sum of log-ratios that a stretch needs, and the largest log-ratio of one record

FEWEST_ROWS, EDGE, SHARP, CLOSE = 20, 10, 1.0, 3.0
"""The fewest rows of a stretch; rows at each side of its ends, and the least mean log-ratio for the unit inside and
against it outside; and the largest ratio of the errors of converted values to all errors."""

ELSEWHERE = 0.04  # the largest share of other rows that the unit fits better, too: of a column that drifts, many do

MOST_STRETCHES = 3  # the most stretches of a column

UNITS: dict[str, tuple[float, float]] = {
    **{f"{name} the expected ones": (factor, 0.0) for name, factor in FACTORS.items()},
    "as if in Fahrenheit, not Celsius": (1.8, 32.0),
    "as if in Celsius, not Fahrenheit": (1 / 1.8, -32.0 / 1.8),
    "as if in Kelvin, not Celsius": (1.0, 273.15),
    "as if in Celsius, not Kelvin": (1.0, -273.15),
}
"""Conversions to other units: factor and offset."""


class UnitStretch(NamedTuple):
    """Rows from `first` to `last` in which a column has another unit, and the evidence for it."""

    first: int
    last: int
    unit: str
    evidence: float

    @property
    def kind(self) -> str:
        """The kind of error of its cells."""
        return f"in another unit from row {self.first:,} to row {self.last:,}"

    def describe(self, column: str) -> str:
        """Describe the stretch in a sentence."""
        return f"{column!r} seems to be {self.kind}: its values are {self.unit}."


def find_unit_stretches(rows: Array, values: Array, predictions: Array) -> list[UnitStretch]:
    """Find the stretches of a column in which converted values fit the predictions much better, in row order.

    >>> random = np.random.default_rng(0)
    >>> expected = random.normal(20.0, 5.0, 500)
    >>> values = expected + random.normal(size=500)
    >>> values[200:300] = 1.8 * values[200:300] + 32.0
    >>> [found] = find_unit_stretches(np.arange(1, 501), values, expected)
    >>> print(found.describe("heat"))
    'heat' seems to be in another unit from row 201 to row 300: its values are as if in Fahrenheit, not Celsius.
    """
    errors = np.abs(values - predictions)
    scale = float(np.median(errors)) if len(errors) else 0.0
    # A column that is predicted exactly has rounding errors only.
    scale = max(scale, 1e-9 * float(np.median(np.abs(values)))) if len(errors) else 0.0
    free, found = np.ones(len(rows), bool), list[UnitStretch]()
    if scale == 0.0:
        return found
    ratios = {name: _compare(errors, values, predictions, scale, *unit) for name, unit in UNITS.items()}
    while len(found) < MOST_STRETCHES:
        best = max(((*_find_best(np.where(free, ratio, -MOST)), name) for name, ratio in ratios.items()))
        evidence, start, stop, name = best
        if evidence < EVIDENCE:
            break
        part = slice(start, stop)
        factor, added = UNITS[name]
        left = np.abs((values[part] - added) / factor - predictions[part])
        free[part] = False
        sharp = _has_edges(ratios[name], start, stop)
        # Where values near 0 are expected, every large unit fits: the values must fit better than zeros would.
        better = np.log1p(np.square(predictions[part] / scale)) - np.log1p(np.square(left / scale))
        told = factor <= 1.0 or float(np.clip(better, -MOST, MOST).sum()) >= EVIDENCE
        told &= not free.any() or float(np.mean(ratios[name][free] > 0.0)) <= ELSEWHERE
        if stop - start >= FEWEST_ROWS and sharp and told and float(np.median(left)) <= CLOSE * scale:
            found.append(UnitStretch(int(rows[start]), int(rows[stop - 1]), name, evidence))
    return sorted(found)


def select_stretches(found: Mapping[str, Iterable[UnitStretch]]) -> dict[str, list[UnitStretch]]:
    """Select, among overlapping stretches of all columns, those with the most evidence.

    A column in another unit makes the predictions of the other columns wrong.
    """
    every = [(stretch, name) for name, stretches in found.items() for stretch in stretches]
    chosen = list[tuple[UnitStretch, str]]()
    for stretch, name in sorted(every, key=lambda one: -one[0].evidence):
        if all(stretch.first > other.last or stretch.last < other.first for other, _ in chosen):
            chosen.append((stretch, name))
    return {name: sorted(stretch for stretch, own in chosen if own == name) for name in found}


def _compare(errors: Array, values: Array, predictions: Array, scale: float, factor: float, added: float) -> Array:
    """Compute the log-likelihood ratio of every value: converted back from the unit, against as it is."""
    converted = np.abs((values - added) / factor - predictions) / scale
    as_it_is = errors / scale
    # A value of 0 is the same in most units: a smaller unit is no more likely for it.
    ratio = np.log1p(np.square(as_it_is)) - np.log1p(np.square(converted)) - max(0.0, np.log(abs(factor)))
    return np.clip(ratio, -MOST, MOST)


def _has_edges(ratio: Array, start: int, stop: int) -> bool:
    """Whether the rows inside both ends of a stretch support the unit, and those outside contradict it."""
    if 2 * (stop - start) > len(ratio):
        return False
    inside = (ratio[start : start + EDGE], ratio[max(start, stop - EDGE) : stop])
    around = (ratio[max(0, start - EDGE) : start], ratio[stop : stop + EDGE])
    return all(part.mean() >= SHARP for part in inside) and all(part.mean() <= -SHARP for part in around if len(part))


def _find_best(ratio: Array) -> tuple[float, int, int]:
    """Find the largest sum of successive entries, and where they start and stop."""
    sums = np.concatenate([[0.0], np.cumsum(ratio)])
    stop = int(np.argmax(sums - np.minimum.accumulate(sums)))
    start = int(np.argmin(sums[: stop + 1]))
    return float(sums[stop] - sums[start]), start, stop
