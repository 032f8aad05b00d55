"""What the regressor and the classifier share beside settings: checked input, and an engine that learns."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from redescend.checkpoint.describe import Reader, Writer
from redescend.engines import Engine
from redescend.engines.validation import check_room, within
from redescend.errors import DataError
from redescend.kernels.selftuning.layout import HEAVIEST
from redescend.kernels.tabular import standardize as unit
from redescend.numeric import Array
from redescend.sklearn.settings import MADE_WITH, Configured
from redescend.sklearn.states import names_of, reading, renewed

LEARNED = (
    *("_engine", "_made_with", "_precision", "_columns", "inlier_weight_", "n_iter_", "classes_"),
    *("n_features_in_", "feature_names_in_"),
)


def _least(weights: Array) -> Array:
    return weights[0] if len(weights) == 1 else weights.min(axis=0)


def _plain_value(setting: Any) -> Any:
    """A setting that a state can hold: searches hand over NumPy's numbers."""
    return setting.item() if isinstance(setting, np.generic) else setting


def _as(precision: np.dtype[Any], numbers: Array) -> Array:
    """Numbers in this precision; those beyond it are the largest that it has."""
    limit = np.finfo(precision).max
    return np.clip(numbers, -limit, limit).astype(precision)


def _linear(X: Any, coefficients: Array, intercepts: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        out = safe_sparse_dot(X, coefficients.T, dense_output=True) + intercepts
    return np.nan_to_num(out, nan=0.0)


class LinearEstimator(Configured):
    """A linear model that is learned row by row."""

    _engine: Engine
    _made_with: dict[str, Any]
    _precision: np.dtype[Any]
    n_features_in_: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_engine")

    # --- learning ---

    def _plain(self, X: Any, y: Any) -> bool:
        """Whether X is a plain table of doubles like those before, and y plain too: only numbers are left to look at.

        Checking them as any input would cost more than to learn from them.
        """
        own = self.__dict__
        return (
            type(X) is np.ndarray
            and type(y) is np.ndarray
            and X.dtype == np.float64
            and X.ndim == 2
            and y.shape == X.shape[:1]
            and X.size > 0
            and X.flags.carray
            and own.get("n_features_in_", X.shape[1]) == X.shape[1]
            and "feature_names_in_" not in own
        )

    def _times(self, sample_weight: Any, rows: int) -> Array:
        """How often each row counts; beyond a million times is as often as a million times."""
        if sample_weight is None:
            return np.ones(rows)
        try:
            times = np.asarray(sample_weight, dtype=np.float64)
        except (TypeError, ValueError):
            raise DataError(f"sample_weight must be numbers. Got {sample_weight!r} instead.") from None
        if times.shape not in ((), (rows,)):
            raise DataError(
                f"sample_weight must be one number, or one for each of {rows} rows. Got {times.shape} numbers."
            )
        if not within(times, 0.0, np.finfo(float).max):
            raise DataError("sample_weight must be finite and not negative.")
        return np.minimum(np.broadcast_to(times, (rows,)), HEAVIEST)

    def _times_of_fit(self, sample_weight: Any, rows: int) -> Array:
        times = self._times(sample_weight, rows)
        if not times.any():
            raise DataError("sample_weight must not be zero for all rows: there is nothing to fit.")
        return times

    def _ready(self, X: Any) -> Any:
        """Checked input as an engine takes it."""
        if not isinstance(X, np.ndarray):
            X = X.astype(np.float64)
            if not X.has_canonical_format:
                X = X.copy()
                X.sum_duplicates()
            return X
        return np.require(X, np.float64, ["C", "A", "W"])

    def _begin(self, X: Any, outputs: int) -> None:
        self._engine = self._make_engine(X.shape[1], outputs, issparse(X))
        settings = self.get_params(deep=False)
        self._made_with = {name: _plain_value(settings[name]) for name in MADE_WITH}
        self._precision = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
        self.inlier_weight_ = np.empty(0)

    def _learned_plain(self, X: Array, Y: Array) -> bool:
        """Learn from rows that nobody has looked at, if all numbers are finite."""
        believed = self._engine.learn_unseen(X, Y)
        if believed is None:
            return False
        self.inlier_weight_ = _least(believed)
        return True

    def _learn(self, X: Any, Y: Array, times: Array) -> Any:
        self.inlier_weight_ = _least(self._engine.learn(X, Y, times))
        return self

    def _fit_passes(self, X: Any, Y: Array, times: Array) -> Any:
        """All rows, `max_iter` times, each time in another order."""
        ready, random = self._ready(X), check_random_state(self.random_state)
        for _ in range(self.max_iter):
            order = random.permutation(len(times)) if self.shuffle else np.arange(len(times))
            believed = self._engine.learn(ready[order], np.ascontiguousarray(Y[:, order]), times[order])
            self.inlier_weight_ = np.empty(len(times))
            self.inlier_weight_[order] = _least(believed)
        self.n_iter_ = self.max_iter
        return self

    # --- what was learned ---

    @property
    def t_(self) -> int:
        """How many rows it has learned from."""
        return int(self._fitted_engine().clock[0])

    @property
    def coef_(self) -> Array:
        """Coefficients, in the features as they were given."""
        coefficients, _ = self._fitted_engine().coefficients()
        return self._shaped(_as(self._precision, coefficients))

    @property
    def intercept_(self) -> Array:
        """What is predicted where all features are 0."""
        _, intercepts = self._fitted_engine().coefficients()
        return _as(self._precision, intercepts)

    def _fitted_engine(self) -> Engine:
        if "_engine" not in self.__dict__:
            raise AttributeError(f"This {type(self).__name__} has not been fitted.")
        return self._engine

    def _shaped(self, coefficients: Array) -> Array:
        return coefficients

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)

    def _predicted(self, X: Any) -> Array:
        """The prediction of every output, a column each, of checked input."""
        coefficients, intercepts = self._engine.coefficients()
        return _linear(X, _as(self._precision, coefficients), _as(self._precision, intercepts))

    def _scored(self, X: Any, Y: Array) -> Array:
        """Records are judged in double precision, as they were learned from."""
        predictions = _linear(X.astype(np.float64), *self._engine.judged_at())
        return _least(self._engine.score(Y, np.ascontiguousarray(predictions.T)))

    # --- persistence ---

    def state(self) -> dict[str, Any]:
        """All that was learned, as arrays and plain values; copies."""
        if "_engine" not in self.__dict__:
            return {"fitted": False}
        names = getattr(self, "feature_names_in_", None)
        return {
            "fitted": True,
            "engine": self._engine.state(),
            "made_with": {name: Writer().described(value, name) for name, value in self._made_with.items()},
            "precision": self._precision.name,
            "feature_names": None if names is None else [str(name) for name in names],
            "inlier_weight": self.inlier_weight_.copy(),
            "passes": getattr(self, "n_iter_", None),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state that such an estimator gave; it continues to the last bit.

        A model goes on with the settings that it was begun with; those of this estimator hold from the next on.
        """
        renewed(self, state, LEARNED, self._read)

    def _read(self, state: dict[str, Any]) -> dict[str, Any]:
        """What a fitted state says, by the names of the attributes."""
        with reading(type(self).__name__):
            given, described, passes = state["engine"], state["made_with"], state["passes"]
            made_with = {name: Reader({}, room=0).made(described[name]) for name in MADE_WITH}
            dim, outputs = check_room(given, made_with["fit_intercept"] is not False, made_with["order"] == 2)
            engine = clone(self).set_params(**made_with)._make_engine(dim, outputs, given["standard"] == unit.SCALED)
            if engine.standard != given["standard"]:
                raise DataError("The state was learned with another 'standardize' than it says; it has been altered.")
            engine.restore(given)
            weights = np.array(state["inlier_weight"], dtype=np.float64)
            if weights.ndim != 1 or not within(weights, 0.0, 1.0) or state["precision"] not in ("float32", "float64"):
                raise DataError("The state has impossible weights, or an unknown precision; it has been altered.")
            if passes is not None and (type(passes) is not int or passes < 1):
                raise DataError(f"The state must have made a whole number of passes, not {passes!r}.")
            learned = {"_engine": engine, "_made_with": made_with, "_precision": np.dtype(state["precision"])}
            learned |= {"inlier_weight_": weights, "n_features_in_": dim}
            learned |= {} if passes is None else {"n_iter_": passes}
            return learned | names_of(state["feature_names"], dim)
