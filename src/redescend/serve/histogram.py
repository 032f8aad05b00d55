"""A histogram of durations."""

from __future__ import annotations

from bisect import bisect_left
from typing import ClassVar


class Histogram:
    """Counts of seconds, by upper bounds.

    >>> histogram = Histogram()
    >>> histogram.observe(0.001)
    >>> histogram.observe(100.0)
    >>> histogram.counts[0], histogram.counts[-1], histogram.sum
    (1, 1, 100.001)
    """

    BOUNDS: ClassVar[tuple[float, ...]] = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)

    def __init__(self) -> None:
        self.counts, self.sum = [0] * (len(self.BOUNDS) + 1), 0.0

    def observe(self, seconds: float) -> None:
        """Count a duration."""
        self.counts[bisect_left(self.BOUNDS, seconds)] += 1
        self.sum += seconds
