"""`MedianScaler`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from redescend.exclusive import exclusive
from redescend.numeric import Array
from redescend.parameters import bad_parameter, check, check_bool
from redescend.scaling import SIZE, SIZES, RunningQuantiles
from redescend.sklearn.stateful import StatefulEstimator
from redescend.state import ArraySpec, read_arrays, require


@dataclass(eq=False, repr=False, kw_only=True)
class MedianScaler(OneToOneFeatureMixin, TransformerMixin, StatefulEstimator):
    r"""Subtract the median and divide by the range between two quantiles: `RobustScaler`, learned from batches.

    Up to `size` rows the result is exactly that of `RobustScaler`. After that, quantiles come from a summary of `size`
    values per feature; the error in their rank is at most `rank_error_`, about 1 % with the default. The result does
    not depend on how rows are split into batches. NaN is ignored when learning, and stays NaN.

    Parameters
    ----------
    with_centering : bool, default=True
        Whether to subtract the median.
    with_scaling : bool, default=True
        Whether to divide by the range between the quantiles.
    quantile_range : tuple of two floats, default=(25.0, 75.0)
        The quantiles in percent. A feature whose range is 0 is divided by 1.
    size : int, default=128
        Number of values stored per feature, at least 8.

    Attributes
    ----------
    center_ : array of shape (n_features,) or None
        Medians; None without centering.
    scale_ : array of shape (n_features,) or None
        Ranges between the quantiles; None without scaling.
    rank_error_ : array of shape (n_features,)
        Bound on the error in the rank of a quantile, as a share of all rows.
    n_samples_seen_ : array of shape (n_features,)
        Number of rows that were not NaN.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str
        Names of the features, if they have any.

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

    FITTED = "_quantiles"
    LEARNED = ("_quantiles", "n_features_in_", "center_", "scale_", "feature_names_in_")

    with_centering: bool = True
    with_scaling: bool = True
    quantile_range: tuple[float, float] = (25.0, 75.0)
    size: int = SIZE
    _quantiles: RunningQuantiles = field(init=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any = None) -> MedianScaler:
        """Learn from the rows `X`, and forget all earlier ones; `y` is ignored."""
        self.__dict__.pop("_quantiles", None)
        return self.partial_fit(X)

    @exclusive
    def partial_fit(self, X: Any, y: Any = None) -> MedianScaler:
        """Learn from the rows `X`, in addition to all earlier ones; `y` is ignored."""
        owner, (low, high) = type(self).__name__, self._check_range()
        check_bool(owner, "with_centering", self.with_centering)
        check_bool(owner, "with_scaling", self.with_scaling)
        check(owner, "size", self.size, SIZES)
        is_new = not self.__sklearn_is_fitted__()
        X = self._validate(X, reset=is_new)
        if is_new:
            self._quantiles = RunningQuantiles(X.shape[1], self.size)
        self._quantiles.update(X)
        self.center_ = self._quantiles.at(0.5) if self.with_centering else None
        self.scale_ = None
        if self.with_scaling:
            largest = np.finfo(float).max / 2
            width = np.minimum(self._quantiles.at(high), largest) - np.maximum(self._quantiles.at(low), -largest)
            self.scale_ = np.where(width > 10.0 * np.finfo(float).eps, width, np.where(np.isnan(width), np.nan, 1.0))
        return self

    def _check_range(self) -> tuple[float, float]:
        try:
            low, high = (float(end) / 100.0 for end in self.quantile_range)
        except (TypeError, ValueError):
            low, high = 1.0, 0.0
        if not 0.0 <= low < high <= 1.0:
            what = "two increasing numbers in [0, 100]"
            raise bad_parameter(type(self).__name__, "quantile_range", what, self.quantile_range)
        return low, high

    def _validate(self, X: Any, reset: bool) -> Any:
        options = {"ensure_all_finite": "allow-nan", "copy": not reset}
        return validate_data(self, X, dtype=[np.float64, np.float32], reset=reset, **options)

    @property
    def rank_error_(self) -> Array:
        """Bound on the error in the rank of a quantile, as a share of all rows."""
        return self._fitted().rank_error

    @property
    def n_samples_seen_(self) -> Array:
        """Number of rows of each feature that were not NaN."""
        return self._fitted().counts.astype(np.int64)

    def transform(self, X: Any) -> Array:
        """Return the rows `X`, centered and scaled."""
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        if self.center_ is not None:
            X -= self.center_.astype(X.dtype)
        if self.scale_ is not None:
            X /= self.scale_.astype(X.dtype)
        return X

    def inverse_transform(self, X: Any) -> Array:
        """Return the original rows of the transformed rows `X`."""
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        if self.scale_ is not None:
            X *= self.scale_.astype(X.dtype)
        if self.center_ is not None:
            X += self.center_.astype(X.dtype)
        return X

    def _learned_state(self) -> dict[str, Any]:
        return {
            "dim": self.n_features_in_,
            "quantiles": self._quantiles.state(),
            "center": None if self.center_ is None else self.center_.copy(),
            "scale": None if self.scale_ is None else self.scale_.copy(),
        }

    def _read_state(self, state: dict[str, Any]) -> dict[str, Any]:
        owner, dim, summaries = type(self).__name__, state["dim"], np.shape(state["quantiles"]["summaries"])
        require(len(summaries) == 3 and summaries[0] == dim, owner, f"summaries of shape {summaries}")
        quantiles = RunningQuantiles(dim, summaries[2] - 2)
        quantiles.restore(state["quantiles"])
        unseen = quantiles.counts == 0.0
        learned = {"_quantiles": quantiles, "n_features_in_": quantiles.dim, "center_": None, "scale_": None}
        for name in ("center", "scale"):
            if state[name] is not None:
                spec = ArraySpec(name, (dim,), low=0.0 if name == "scale" else None, finite=False)
                values = read_arrays([spec], {name: state[name]}, {}, owner)[name]
                is_known = np.isfinite(values) & (values != 0.0 if name == "scale" else True)
                require((unseen | is_known).all(), owner, f"a {name} that is zero, missing or infinite")
                learned[f"{name}_"] = values
        return learned
