"""`MedianScaler`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from redescend.errors import DataError
from redescend.numeric import Array
from redescend.parameters import bad_parameter, check
from redescend.scaling import SIZE, SIZES, RunningQuantiles
from redescend.sklearn.states import names_of, reading, renewed

LEARNED = ("_quantiles", "n_features_in_", "center_", "scale_", "feature_names_in_")


class MedianScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Subtracts the median and divides by the range between two quantiles: `RobustScaler`, learned from batches.

    Up to `size` rows it is `RobustScaler` exactly. After that quantiles come from a summary of `size` values a feature,
    and their error in rank is bounded by `rank_error_`: about 1 % with 128. Batches of any size give the same. NaN is
    left out when learning, and stays NaN.

    Parameters
    ----------
    with_centering, with_scaling : bool
        Whether to subtract the median, and to divide by the range.
    quantile_range : tuple of two floats
        The quantiles in percent. A feature whose range is 0 is divided by 1.
    size : int
        Values kept of each feature, at least 8.

    Attributes
    ----------
    center_, scale_ : arrays of shape (n_features,), or None where not asked for
    rank_error_ : array of shape (n_features,)
        By how much the rank of a quantile may be wrong, as a share of all rows.
    n_samples_seen_ : array of shape (n_features,)
        Rows that were not NaN.

    Examples
    --------
    >>> scaler = MedianScaler()
    >>> for batch in ([[1.0], [2.0]], [[3.0], [4.0]], [[1e9]]):
    ...     scaler = scaler.partial_fit(batch)
    >>> scaler.center_, scaler.scale_
    (array([3.]), array([2.]))
    >>> scaler.transform([[5.0]])
    array([[1.]])
    """

    _quantiles: RunningQuantiles
    n_features_in_: int

    def __init__(
        self,
        *,
        with_centering: bool = True,
        with_scaling: bool = True,
        quantile_range: tuple[float, float] = (25.0, 75.0),
        size: int = SIZE,
    ) -> None:
        self.with_centering = with_centering
        self.with_scaling = with_scaling
        self.quantile_range = quantile_range
        self.size = size

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_quantiles")

    def fit(self, X: Any, y: Any = None) -> MedianScaler:
        """Forget what was learned, and learn from these rows."""
        if "_quantiles" in self.__dict__:
            del self._quantiles
        return self.partial_fit(X)

    def partial_fit(self, X: Any, y: Any = None) -> MedianScaler:
        """Learn from more rows."""
        low, high = self._range()
        for name in ("with_centering", "with_scaling"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise bad_parameter(type(self).__name__, name, "True or False", getattr(self, name))
        check(type(self).__name__, "size", self.size, SIZES)
        first = "_quantiles" not in self.__dict__
        X = self._validated(X, reset=first)
        if first:
            self._quantiles = RunningQuantiles(X.shape[1], self.size)
        self._quantiles.update(X)
        self.center_ = self._quantiles.at(0.5) if self.with_centering else None
        self.scale_ = None
        if self.with_scaling:
            top, bottom = self._quantiles.at(high), self._quantiles.at(low)
            width = np.minimum(top, np.finfo(float).max / 2) - np.maximum(bottom, -np.finfo(float).max / 2)
            self.scale_ = np.where(width > 10.0 * np.finfo(float).eps, width, np.where(np.isnan(width), np.nan, 1.0))
        return self

    def _range(self) -> tuple[float, float]:
        try:
            low, high = (float(end) / 100.0 for end in self.quantile_range)
        except (TypeError, ValueError):
            low, high = 1.0, 0.0
        if not 0.0 <= low < high <= 1.0:
            what = "two rising numbers between 0 and 100"
            raise bad_parameter(type(self).__name__, "quantile_range", what, self.quantile_range)
        return low, high

    def _validated(self, X: Any, reset: bool) -> Any:
        return validate_data(
            self, X, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan", reset=reset, copy=not reset
        )

    @property
    def rank_error_(self) -> Array:
        return self._seen().rank_error

    @property
    def n_samples_seen_(self) -> Array:
        return self._seen().counts.astype(np.int64)

    def _seen(self) -> RunningQuantiles:
        if "_quantiles" not in self.__dict__:
            raise AttributeError(f"This {type(self).__name__} has not been fitted.")
        return self._quantiles

    def transform(self, X: Any) -> Array:
        """Rows in units of the range, from the median."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        if self.center_ is not None:
            X -= self.center_.astype(X.dtype)
        if self.scale_ is not None:
            X /= self.scale_.astype(X.dtype)
        return X

    def inverse_transform(self, X: Any) -> Array:
        """Rows as they were before `transform`."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        if self.scale_ is not None:
            X *= self.scale_.astype(X.dtype)
        if self.center_ is not None:
            X += self.center_.astype(X.dtype)
        return X

    def state(self) -> dict[str, Any]:
        """All that was learned, as arrays and plain values; copies."""
        if "_quantiles" not in self.__dict__:
            return {"fitted": False}
        names = getattr(self, "feature_names_in_", None)
        return {
            "fitted": True,
            "dim": self.n_features_in_,
            "quantiles": self._quantiles.state(),
            "center": None if self.center_ is None else self.center_.copy(),
            "scale": None if self.scale_ is None else self.scale_.copy(),
            "feature_names": None if names is None else [str(name) for name in names],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state that a scaler gave; it continues to the last bit."""
        renewed(self, state, LEARNED, self._read)

    def _read(self, state: dict[str, Any]) -> dict[str, Any]:
        """What a fitted state says, by the names of the attributes."""
        with reading(type(self).__name__):
            dim, parts = state["dim"], state["quantiles"]
            shape = np.shape(parts["summaries"])
            if len(shape) != 3 or shape[0] != dim:
                raise DataError(f"The state has summaries of shape {shape} for {dim} features; it has been altered.")
            quantiles = RunningQuantiles(dim, shape[2] - 2)
            quantiles.restore(parts)
            unseen = quantiles.counts == 0.0
            center, scale = (_units(state[name], unseen) for name in ("center", "scale"))
            if scale is not None and not (unseen | (scale > 0.0)).all():
                raise DataError("The state has a scale that is not above 0; it has been altered.")
            learned = {"_quantiles": quantiles, "n_features_in_": quantiles.dim, "center_": center, "scale_": scale}
            return learned | names_of(state["feature_names"], quantiles.dim)


def _units(part: Any, unseen: Array) -> Array | None:
    """A number for every feature that was seen."""
    if part is None:
        return None
    units = np.array(part, dtype=np.float64)
    if units.shape != unseen.shape or not (np.isfinite(units) | unseen).all():
        raise DataError("The state has a center or a scale with missing or impossible numbers; it has been altered.")
    return units
