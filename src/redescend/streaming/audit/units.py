"""Stretches of a column in another unit: a few hundred rows in Fahrenheit, for example, or a thousand times as large.

Each value has two likelihoods: as it is, and converted back from another unit. The stretch with the largest sum of
log-ratios is reported if the sum exceeds what chance explains, and if the converted values are about as close to their
predictions as all other values. The density of errors has heavy tails, and log-ratios are clipped, so that a few
records do not make a stretch. A drifting column may be closer to another unit for a while, but a unit changes from one
row to the next, so the `EDGE` rows on either side of both ends must agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from redescend.numeric import Array
from redescend.streaming.audit.kinds import FACTORS

EVIDENCE, MOST = 50.0, 5.0  # the sum of log-ratios that a stretch needs, and the largest log-ratio of one record

FEWEST, EDGE, SHARP, CLOSE = 20, 10, 1.0, 3.0
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
        if stop - start >= FEWEST and sharp and told and float(np.median(left)) <= CLOSE * scale:
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
