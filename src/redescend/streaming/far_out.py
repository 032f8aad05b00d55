"""The rarity of extreme values of a column, even of a single one; and records with one, suspects in the final look.

The tail of the deviations of a column is modelled by a power law through their quantiles at `BODY` and `TAIL`, which a
share of wrong values below 1 - `TAIL` hardly changes. Most tails are lighter beyond, so the model is conservative: it
overestimates the frequency of extreme values.

Records with such a value are found while a source is read again. The belief judges the target by the other columns. A
9999 in another column may change the prediction little, and in a burst of odd records the belief is lenient, because
the stream may have changed; a value that is never seen by nature is wrong all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from redescend.belief import Verdict
from redescend.belief.suspects import HALF
from redescend.numeric import Array
from redescend.sources import Batch, Kind, Source
from redescend.streaming.encoding.features import to_floats
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.encoding.survey import survey_source
from redescend.streaming.summary.records import FarColumn

BODY, TAIL = 0.9, 0.99  # the quantiles that the power law goes through
LIGHTEST = 5.0  # the largest exponent, about that of the normal distribution between these quantiles
NEVER = 1e-6  # a value that is rarer than this is extreme
HEAVIEST = 0.02  # the least exponent, so that the limit is finite
MIN_VALUES = 100  # the fewest values from which a tail is estimated
MOST_WRONG = 0.25  # the largest share of values beyond a gap that are taken for wrong


class Tail(NamedTuple):
    """A `share` of the deviations is beyond `start`; beyond z times that, z to the power -`exponent` of that share.

    >>> Tail(start=2.0, exponent=3.0).share_beyond(np.array([1.0, 2.0, 20.0]))
    array([1.e+00, 1.e-02, 1.e-05])
    """

    start: float
    exponent: float
    share: float = 1.0 - TAIL

    def share_beyond(self, deviations: Array) -> Array:
        """The share of clean values that deviate as much as these; 1 below `start`."""
        ratio = np.maximum(deviations, self.start) / self.start
        return np.where(deviations < self.start, 1.0, self.share * ratio**-self.exponent)

    def count_expected(self, deviations: Array) -> Array:
        """The expected number of clean values per value that deviates as much, at most 1.

        It is not larger than for a value that deviates less, as in the procedure of Benjamini and Hochberg.
        """
        order = np.argsort(deviations, kind="stable")
        ranked = deviations[order]
        as_far = len(ranked) - np.searchsorted(ranked, ranked)
        expected = np.empty(len(ranked))
        expected[order] = np.minimum.accumulate(np.minimum(1.0, len(ranked) * self.share_beyond(ranked) / as_far))
        return expected

    @property
    def limit(self) -> float:
        """The deviation beyond which a value is extreme."""
        return self.start * float((self.share / NEVER) ** (1.0 / max(self.exponent, HEAVIEST)))


def fit_tail(deviations: Array, floor: float = 0.0, quantiles: tuple[float, float] = (BODY, TAIL)) -> Tail | None:
    """Fit the tail of deviations through two quantiles; None if there are too few values.

    The tail begins at `floor` or beyond.

    >>> tail = fit_tail(np.abs(np.random.default_rng(0).normal(size=5000)))
    >>> bool(2.4 < tail.start < 2.7), bool(4.5 < tail.exponent <= 5.0), bool(tail.limit > 10.0)
    (True, True, True)
    """
    if len(deviations) < MIN_VALUES:
        return None
    body, start = np.quantile(deviations, quantiles).tolist()
    if not 0.0 < body <= start < np.inf:
        return None
    exponent = np.log((1.0 - quantiles[0]) / (1.0 - quantiles[1])) / max(float(np.log(start / body)), 1e-9)
    return Tail(max(start, floor), min(float(exponent), LIGHTEST), 1.0 - quantiles[1])


class Range(NamedTuple):
    """The range of a column: its `middle`, and the `tail` of distances from it.

    >>> column = find_range(np.append(np.random.default_rng(0).normal(size=900), np.full(100, 9999.0)))
    >>> bool(column.high < 20.0), bool(column.share_beyond(np.array([0.5, 9999.0]))[1] < 1e-15)
    (True, True)
    """

    middle: float
    tail: Tail

    @property
    def low(self) -> float:
        return self.middle - self.tail.limit

    @property
    def high(self) -> float:
        return self.middle + self.tail.limit

    def share_beyond(self, values: Array) -> Array:
        """The share of clean values that are as far from the middle as these; 1 for missing values."""
        return self.tail.share_beyond(np.abs(np.nan_to_num(values, nan=self.middle) - self.middle))


def find_range(values: Array) -> Range | None:
    """Estimate the range of a column; None if there are too few values.

    Up to a quarter of the values may be wrong if they are far from all others and most of them are one number, such as
    9999: the tail is then that of the values before the widest gap. Different far values may be a group of their own.
    """
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    middle = float(np.median(values))
    order = np.argsort(np.abs(values - middle), kind="stable")
    values, distances = values[order], np.abs(values[order] - middle)
    first = int((1.0 - MOST_WRONG) * len(distances))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.nan_to_num(distances[first + 1 :] / distances[first:-1], nan=1.0, posinf=1.0)
    if len(ratios):
        end = first + 1 + int(np.argmax(ratios))
        tail = fit_tail(distances[:end])
        few = len(values) - end <= (1.0 - TAIL) * len(values)
        if tail is not None and distances[end] > tail.limit and (few or _are_mostly_one(values[end:])):
            return Range(middle, tail)
    tail = fit_tail(distances)
    return None if tail is None else Range(middle, tail)


def _are_mostly_one(values: Array) -> bool:
    """Whether at least half of the values are equal."""
    return bool(2 * np.unique(values, return_counts=True)[1].max() >= len(values))


def find_ranges(source: Source, schema: Schema) -> dict[str, Range]:
    """Estimate the ranges of columns of numbers from a sample from all over the source."""
    table = survey_source(source, schema.target, labels=False).table
    names = [name for name, kind in schema.kinds.items() if kind is Kind.NUMBER and name != schema.by]
    if schema.classifies and schema.target in names:
        names.remove(schema.target)
    found = {name: find_range(to_floats(table.column(name))) for name in names}
    return {name: one for name, one in found.items() if one is not None}


class FarRecords:
    """The rows of far records, how probable they are if they are clean, and their columns."""

    def __init__(self, ranges: Mapping[str, Range] | None = None, records: int = 0) -> None:
        self._ranges = dict(ranges or {})
        self._records = records
        self._parts: list[tuple[Array, Array, Array, Array]] = []

    def add(self, batch: Batch, indices: Array) -> None:
        """Consider the records of a batch at these indices."""
        least, which = np.full(len(indices), np.inf), np.zeros(len(indices), np.int64)
        value = np.zeros(len(indices))
        for place, (name, column) in enumerate(self._ranges.items()):
            values = to_floats(batch.table.column(name))[indices]
            shares = column.share_beyond(values)
            less = shares < least
            least, which, value = (
                np.where(less, shares, least),
                np.where(less, place, which),
                np.where(less, values, value),
            )
        # As many clean records are expected to be as far out in all of the stream.
        far = (least <= NEVER) & (self._records * least <= HALF)
        if far.any():
            self._parts.append((batch.rows[indices[far]], self._records * least[far], which[far], value[far]))

    def _collect(self) -> tuple[Array, Array, Array, Array]:
        """Rows in order, expected numbers, columns and values."""
        rows, expected, which, values = (np.concatenate(parts) for parts in zip(*self._parts, strict=True))
        order = np.argsort(rows, kind="stable")
        return rows[order], expected[order], which[order], values[order]

    def apply(self, rows: Array, verdict: Verdict) -> Verdict:
        """The verdict on records with these rows, of which the far ones are as good as never clean."""
        if not self._parts:
            return verdict
        known, expected, _, _ = self._collect()
        places = np.minimum(np.searchsorted(known, rows), len(known) - 1)
        odds = np.log(np.maximum(expected, np.finfo(float).tiny))[places]
        odds = np.where(known[places] == rows, odds, np.inf)
        return verdict._replace(clean_log_odds=np.minimum(verdict.clean_log_odds, odds))

    def name_columns(self, rows: Array) -> list[str | None]:
        """The column in which each of these records is far out, if it is."""
        if not self._parts:
            return [None] * len(rows)
        known, _, which, _ = self._collect()
        names = dict(zip(known.tolist(), which.tolist(), strict=True))
        columns = list(self._ranges)
        return [columns[names[row]] if row in names else None for row in rows.tolist()]

    def count_columns(self) -> list[FarColumn]:
        """The columns with far records, those with the most first."""
        if not self._parts:
            return []
        rows, _, which, values = self._collect()
        found = []
        for place, name in enumerate(self._ranges):
            own = np.flatnonzero(which == place)
            if len(own):
                found.append(FarColumn(name, len(own), int(rows[own[0]]), float(values[own[0]])))
        return sorted(found, key=lambda one: -one.records)
