"""What the regressor and the classifier share: settings, checked input, and an engine that learns."""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from redescend import losses, steps, transforms
from redescend.errors import DataError
from redescend.kernels.online import units as unit
from redescend.kernels.selftuning.layout import HEAVIEST
from redescend.numeric import Array
from redescend.parameters import AT_LEAST_ONE, COUNT, NONNEGATIVE, bad_parameter, check, check_instance
from redescend.sklearn.engines import DescentEngine, Engine
from redescend.sklearn.selftuning import SelfTuningEngine

NAMES: dict[str, losses.LinearLoss] = {
    "squared": losses.Squared(),
    "absolute": losses.Absolute(),
    "epsilon_insensitive": losses.EpsilonInsensitive(0.1),
    "pinball": losses.Pinball(0.5),
    "logistic": losses.Logistic(),
    "hinge": losses.Hinge(),
}


def _least(weights: Array) -> Array:
    return weights[0] if len(weights) == 1 else weights.min(axis=0)


class LinearEstimator(BaseEstimator):
    """A linear model that is learned row by row."""

    LOSSES: ClassVar[tuple[str, ...]]
    MARGIN: ClassVar[bool]

    _engine: Engine
    _precision: np.dtype[Any]
    n_features_in_: int

    def __init__(
        self,
        loss: Any,
        *,
        transform: Any,
        step: Any,
        order: int,
        alpha: float,
        fit_intercept: bool,
        standardize: Any,
        average: Any,
        max_iter: int,
        shuffle: bool,
        random_state: Any,
        warm_start: bool,
    ) -> None:
        self.loss = loss
        # An attribute of that name would make scikit-learn take the model for a transformer.
        self._transform = transform
        self.step = step
        self.order = order
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.average = average
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.warm_start = warm_start

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_engine")

    # --- settings ---

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings, by name."""
        names = self._get_param_names()
        return {name: self._transform if name == "transform" else getattr(self, name) for name in names}

    def set_params(self, **params: Any) -> Any:
        """Change settings; they hold from the next new model on."""
        if "transform" in params:
            self._transform = params.pop("transform")
        return super().set_params(**params)

    def _chosen_loss(self) -> losses.LinearLoss:
        owner = type(self).__name__
        loss = NAMES.get(self.loss) if isinstance(self.loss, str) and self.loss in self.LOSSES else self.loss
        if not isinstance(loss, losses.LinearLoss) or loss.margin != self.MARGIN:
            what = f"one of {', '.join(map(repr, self.LOSSES))}, or a loss object for such targets"
            raise bad_parameter(owner, "loss", what, self.loss)
        alpha = check(owner, "alpha", self.alpha, NONNEGATIVE)
        return cast(losses.LinearLoss, replace(cast(Any, loss), l2=loss.l2 + alpha))

    def _make_engine(self, dim: int, outputs: int, sparse: bool) -> Engine:
        """A new engine, from settings that are checked here."""
        owner, loss = type(self).__name__, self._chosen_loss()
        if self.order not in (1, 2) or isinstance(self.order, bool):
            raise bad_parameter(owner, "order", "1 or 2", self.order)
        for name in ("fit_intercept", "shuffle", "warm_start"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise bad_parameter(owner, name, "True or False", getattr(self, name))
        check(owner, "max_iter", self.max_iter, AT_LEAST_ONE)
        average = None
        if not (isinstance(self.average, bool | np.bool_) and not self.average):
            is_count = isinstance(self.average, numbers.Integral) and self.average in COUNT
            if not (self.average is True or is_count):
                raise bad_parameter(owner, "average", "True, False or a whole number in [0, inf)", self.average)
            average = 0 if self.average is True else int(self.average)
        if self._transform is None and self.step is not None:
            raise bad_parameter(owner, "step", "None unless a transform is given: self-tuning sets its own", self.step)
        shared = (dim, outputs, loss, bool(self.fit_intercept), self._standard(sparse), average)
        if self._transform is None:
            return SelfTuningEngine(*shared, self.order)  # type: ignore[arg-type]
        what = "a transform, such as Huber(1.0), or None"
        transform = check_instance(owner, "transform", self._transform, transforms.Transform, what)
        if self.order == 2:
            raise bad_parameter(owner, "order", "1 where a transform is given", self.order)
        if self.step is not None:
            check_instance(owner, "step", self.step, steps.Step, "a step, such as Constant(0.01), or None")
        return DescentEngine(*shared, transform, self.step)

    def _standard(self, sparse: bool) -> int:
        if isinstance(self.standardize, str) and self.standardize == "scale":
            return unit.SCALED
        if not isinstance(self.standardize, bool | np.bool_):
            raise bad_parameter(type(self).__name__, "standardize", "True, False or 'scale'", self.standardize)
        if not self.standardize:
            return unit.AS_THEY_ARE
        return unit.SCALED if sparse or not self.fit_intercept else unit.CENTRED

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

    def _times(self, sample_weight: Any, X: Any, rows: int) -> Array:
        """How often each row counts; beyond a million times is as often as a million times."""
        if sample_weight is None:
            return np.ones(rows)
        given = np.asarray(sample_weight)
        if self.__sklearn_is_fitted__() and given.shape == (rows,) and not given.any():
            return np.zeros(rows)
        times = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        return np.minimum(times, HEAVIEST)

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
        self._precision = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)

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
        return self._shaped(self._fitted_engine().coefficients()[0].astype(self._precision))

    @property
    def intercept_(self) -> Array:
        """What is predicted where all features are 0."""
        return self._fitted_engine().coefficients()[1].astype(self._precision)

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
        return self._predicted_by(X, *self._engine.coefficients())

    def _predicted_by(self, X: Any, coefficients: Array, intercepts: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            out = safe_sparse_dot(X, coefficients.astype(self._precision).T, dense_output=True)
            limit = np.finfo(out.dtype).max
            return np.nan_to_num(out + intercepts.astype(self._precision), nan=0.0, posinf=limit, neginf=-limit)

    def _scored(self, X: Any, Y: Array) -> Array:
        predictions = self._predicted_by(X, *self._engine.judged_at())
        predictions = np.ascontiguousarray(predictions.T, dtype=np.float64)
        return _least(self._engine.score(Y, predictions))

    # --- persistence ---

    def state(self) -> dict[str, Any]:
        """All that was learned, as arrays and plain values; copies."""
        if "_engine" not in self.__dict__:
            return {"fitted": False}
        names = getattr(self, "feature_names_in_", None)
        return {
            "fitted": True,
            "engine": self._engine.state(),
            "precision": self._precision.name,
            "feature_names": None if names is None else [str(name) for name in names],
            "inlier_weight": self.inlier_weight_.copy(),
            "passes": getattr(self, "n_iter_", None),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state that an estimator with the same settings gave; it continues to the last bit."""
        if not isinstance(state, dict) or not isinstance(state.get("fitted"), bool):
            raise DataError(f"The state of {type(self).__name__} must be a dict that its state() gave.")
        if not state["fitted"]:
            return
        try:
            given = state["engine"]
            engine = self._make_engine(int(given["dim"]), int(given["outputs"]), given["standard"] == unit.SCALED)
            if engine.standard != given["standard"]:
                raise DataError("The state was learned with another 'standardize'; make an estimator with the same.")
            engine.restore(given)
            precision, weights = np.dtype(state["precision"]), np.array(state["inlier_weight"], dtype=np.float64)
        except (KeyError, TypeError) as error:
            raise DataError(
                f"The state of {type(self).__name__} lacks or garbles {error}; it has been altered."
            ) from None
        self._engine, self._precision, self.inlier_weight_ = engine, precision, weights
        self.n_features_in_ = engine.dim
        if state["feature_names"] is not None:
            self.feature_names_in_ = np.array(state["feature_names"], dtype=object)
        if state["passes"] is not None:
            self.n_iter_ = int(state["passes"])
