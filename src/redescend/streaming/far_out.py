"""The rarity of extreme values of a column, even of a single one.

The tail of the deviations of a column is modelled by a power law through their quantiles at `BODY` and `TAIL`, which a
share of wrong values below 1 - `TAIL` hardly changes. Most tails are lighter beyond, so the model is conservative: it
overestimates the frequency of extreme values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from redescend.numeric import Array

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
