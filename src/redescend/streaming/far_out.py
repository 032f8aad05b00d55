"""How rare a value far outside the others of its column is, also if it is the only one of its kind.

The tail of the deviations of a column is taken for a power law through their quantiles at `BODY` and `TAIL`, which no
share of wrong values below 1 - `TAIL` moves much. Beyond that, most tails are lighter, so that the law errs on the safe
side: it says that a far value is less rare than it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from redescend.numeric import Array

BODY, TAIL = 0.9, 0.99
"""The quantiles that the power law goes through."""

LIGHTEST = 5.0
"""The largest exponent: about that of the normal distribution between these quantiles."""

NEVER = 1e-6
"""A value that is rarer than this is far out."""

MIN_VALUES = 100
"""Of fewer values the tail is not known."""


class Tail(NamedTuple):
    """The share of deviations beyond `start` is 1 - `TAIL`; beyond z times that, z to the power -`exponent` of it.

    >>> Tail(start=2.0, exponent=3.0).share_beyond(np.array([1.0, 2.0, 20.0]))
    array([1.e+00, 1.e-02, 1.e-05])
    """

    start: float
    exponent: float

    def share_beyond(self, deviations: Array) -> Array:
        """The share of clean values that are as far out as these; 1 below `start`."""
        ratio = np.maximum(deviations, self.start) / self.start
        return np.where(deviations < self.start, 1.0, (1.0 - TAIL) * ratio**-self.exponent)

    def count_expected(self, deviations: Array) -> Array:
        """How many clean values are expected for each that is as far out: at most 1."""
        as_far = len(deviations) - np.searchsorted(np.sort(deviations), deviations)
        return np.minimum(1.0, len(deviations) * self.share_beyond(deviations) / as_far)

    @property
    def limit(self) -> float:
        """The deviation beyond which a value is far out."""
        return self.start * float(((1.0 - TAIL) / NEVER) ** (1.0 / self.exponent))


def fit_tail(deviations: Array, floor: float = 0.0) -> Tail | None:
    """The tail of deviations, which begins at `floor` or beyond; None if it is not known.

    >>> tail = fit_tail(np.abs(np.random.default_rng(0).normal(size=5000)))
    >>> bool(2.4 < tail.start < 2.7), bool(4.5 < tail.exponent <= 5.0), bool(tail.limit > 10.0)
    (True, True, True)
    """
    if len(deviations) < MIN_VALUES:
        return None
    body, start = np.quantile(deviations, [BODY, TAIL]).tolist()
    if not 0.0 < body <= start < np.inf:
        return None
    exponent = np.log((1.0 - BODY) / (1.0 - TAIL)) / max(float(np.log(start / body)), 1e-9)
    return Tail(max(start, floor), min(float(exponent), LIGHTEST))


def find_limits(values: Array) -> tuple[float, float]:
    """The interval beyond which the values of a column are far out; infinite if that is not known."""
    values = values[np.isfinite(values)]
    middle = float(np.median(values)) if len(values) else 0.0
    tail = fit_tail(np.abs(values - middle))
    return (-np.inf, np.inf) if tail is None else (middle - tail.limit, middle + tail.limit)
