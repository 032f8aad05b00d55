"""Quantiles of a stream in a fixed amount of memory, for robust scaling."""

from __future__ import annotations

from typing import Any

import numpy as np

from redescend.errors import DataError
from redescend.kernels import quantiles
from redescend.numeric import Array
from redescend.parameters import AT_LEAST_ONE, Interval, bad_parameter, check
from redescend.state import ArraySpec, Stateful, check_arrays, read_arrays, require

SIZE = 128  # values stored for each feature by default

SIZES = Interval(8, np.inf, "left", whole=True)

SPECS = (
    ArraySpec("summaries", ("dim", 3, lambda dims: dims["size"] + 2)),
    ArraySpec("kept", ("dim",), kind="count", high="size"),
    ArraySpec("counts", ("dim",), kind="count"),
)
SEARCH = (ArraySpec("search", ("dim",), kind="index", high="size"), ArraySpec("limit", ("dim",), low=0.0))
"""The last column of a summary: where it searches for a value to drop, and the largest gap it may leave."""


class RunningQuantiles(Stateful):
    """Any quantile of every feature of a stream: exact for up to `size` values, and approximate from then on.

    The summary of a feature has at most `size` values. It depends on the values and their order, but not on how they
    are batched. NaN is ignored.

    Parameters
    ----------
    dim : int
        Number of features.
    size : int
        Values stored for each feature, at least 8. The error in rank is usually at most 1.5/size of all values, and up
        to 9/size for adversarial orders, such as from both ends inward; `rank_error` bounds it.

    Attributes
    ----------
    counts : array of shape (dim,)
        Number of values of each feature so far.

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
        self._sizes = np.zeros(self.dim)
        self.counts = np.zeros(self.dim)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dim}, size={self.size})"

    def update(self, X: Array) -> None:
        """Add the rows of a table `X` of finite floats or NaN."""
        X = np.require(X, np.float64, ["C", "A", "W"])
        if X.ndim != 2 or X.shape[1] != self.dim:
            raise DataError(f"X must have shape (rows, {self.dim}). Got {X.shape} instead.")
        quantiles.insert_rows(X, self._summaries, self._sizes, self.counts)

    def at(self, share: float) -> Array:
        """The quantile of every feature at this `share`, interpolated as by ``np.quantile``; NaN without values."""
        if share not in Interval(0, 1):
            raise bad_parameter(f"{type(self).__name__}.at", "share", Interval(0, 1), share)
        return quantiles.quantiles(self._summaries, self._sizes, float(share))

    @property
    def rank_error(self) -> Array:
        """A bound on the error in rank of any quantile of a feature, as a share of all values; 0 while exact."""
        return quantiles.rank_errors(self._summaries, self._sizes)

    def state(self) -> dict[str, Any]:
        return {"summaries": self._summaries.copy(), "kept": self._sizes.copy(), "counts": self.counts.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        arrays = read_arrays(SPECS, state, {"dim": self.dim, "size": self.size}, self)
        summaries, sizes, counts = arrays.values()
        ends = {"search": summaries[:, quantiles.VALUE, -1], "limit": summaries[:, quantiles.GAP, -1]}
        check_arrays(SEARCH, ends, {"size": self.size}, self)
        values, gaps, slacks = summaries[:, :, : self.size].swapaxes(0, 1)
        unused = np.arange(self.size) >= sizes[:, None]
        require(((values[:, 1:] >= values[:, :-1]) | unused[:, 1:]).all(), self, "values that are not sorted")
        ranks = (gaps >= 1.0) & (gaps % 1.0 == 0.0) & (slacks >= 0.0) | unused
        totals = np.where(unused, 0.0, gaps).sum(axis=1)
        counted = (sizes == np.minimum(counts, self.size)) & (totals == counts)
        require(ranks.all() and counted.all(), self, "impossible ranks or counts")
        self._summaries, self._sizes, self.counts = summaries, sizes, counts
