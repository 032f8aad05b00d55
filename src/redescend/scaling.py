"""Quantiles of a stream, in a fixed amount of memory: what robust scaling is made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from redescend.errors import DataError
from redescend.kernels import quantiles
from redescend.numeric import Array
from redescend.parameters import AT_LEAST_ONE, Interval, bad_parameter, check

SIZE = 128
"""Values that are kept of each feature."""

SIZES = Interval(8, np.inf, "left", whole=True)
"""How many there may be."""

COUNTABLE = 2.0**53
"""Floats count no further."""


class RunningQuantiles:
    r"""Any quantile of every feature of a stream, exact until `size` values were seen and close to it for ever after.

    What is kept is a summary of at most `size` values a feature. It depends on the values and their order alone, not on
    the batches in which they come. NaN is left out.

    Parameters
    ----------
    dim : int
        Number of features.
    size : int
        Values kept of each feature, at least 8: the error in rank is at most about 1.5/size of all values, and up to
        9/size in an order made to be hard, such as from both ends inward; `rank_error` bounds it.

    Examples
    --------
    >>> stream = np.random.default_rng(0).standard_cauchy((10_000, 1))
    >>> quantiles = RunningQuantiles(1)
    >>> quantiles.update(stream)
    >>> below = np.mean(stream <= quantiles.at(0.75))
    >>> bool(abs(below - 0.75) <= quantiles.rank_error[0] < 0.02)
    True
    """

    def __init__(self, dim: int, size: int = SIZE) -> None:
        name = type(self).__name__
        self.dim = int(check(name, "dim", dim, AT_LEAST_ONE))
        self.size = int(check(name, "size", size, SIZES))
        self._summaries = np.zeros((self.dim, 3, self.size + 2))
        self._kept = np.zeros(self.dim)
        self.counts = np.zeros(self.dim)
        """How many values of each feature were seen."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dim}, size={self.size})"

    def update(self, X: Array) -> None:
        """See the rows of a table of finite floats or NaN."""
        X = np.require(X, np.float64, ["C", "A", "W"])
        if X.ndim != 2 or X.shape[1] != self.dim:
            raise DataError(f"X must have shape (rows, {self.dim}). Got {X.shape} instead.")
        quantiles.insert_rows(X, self._summaries, self._kept, self.counts)

    def at(self, share: float) -> Array:
        """The quantile of every feature, between neighbours as ``np.quantile`` has it; NaN where nothing was seen."""
        if share not in Interval(0, 1):
            raise bad_parameter(f"{type(self).__name__}.at", "share", Interval(0, 1), share)
        return quantiles.quantiles(self._summaries, self._kept, float(share))

    @property
    def rank_error(self) -> Array:
        """By how much the rank of any quantile of a feature can be wrong, as a share of all values; 0 while exact."""
        return quantiles.rank_errors(self._summaries, self._kept)

    def state(self) -> dict[str, Any]:
        """All that was seen, as arrays; copies."""
        return {"summaries": self._summaries.copy(), "kept": self._kept.copy(), "counts": self.counts.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state that one of the same size gave."""
        expected = self.state()
        if not isinstance(state, dict) or state.keys() != expected.keys():
            raise DataError(f"The state of {self!r} must be a dict with the keys {', '.join(expected)}.")
        try:
            arrays = {name: np.array(state[name], dtype=np.float64, order="C") for name in expected}
            sound = all(array.shape == expected[name].shape for name, array in arrays.items()) and self._sound(**arrays)
        except (TypeError, ValueError):
            sound = False
        if not sound:
            raise DataError(f"The state of {self!r} has missing, misshapen or impossible numbers; it has been altered.")
        self._summaries, self._kept, self.counts = arrays["summaries"], arrays["kept"], arrays["counts"]

    def _sound(self, summaries: Array, kept: Array, counts: Array) -> bool:
        """Whether these arrays could be a state: no search that begins with them leaves a summary."""
        if not all(np.isfinite(part).all() for part in (summaries, kept, counts)):
            return False
        values, gaps, slacks = summaries[:, :, : self.size].swapaxes(0, 1)
        there = np.arange(self.size) < kept[:, None]
        rising = (values[:, 1:] >= values[:, :-1]) | ~there[:, 1:]
        counted = (gaps >= 1.0) & (gaps % 1.0 == 0.0) & (slacks >= 0.0) | ~there
        place, limit = summaries[:, quantiles.VALUE, -1], summaries[:, quantiles.GAP, -1]
        searched = (place >= 0.0) & (place < self.size) & (place % 1.0 == 0.0) & (limit >= 0.0)
        all_fit = (kept >= 0.0) & (kept % 1.0 == 0.0) & (kept == np.minimum(counts, self.size)) & (counts < COUNTABLE)
        told = np.where(there, gaps, 0.0).sum(axis=1) == counts
        return bool(rising.all() and counted.all() and (searched & all_fit & told).all())
