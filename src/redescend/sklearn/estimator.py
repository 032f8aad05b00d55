"""What the regressor and the classifier share: parameters, input validation, and an engine that learns."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import Any, ClassVar, TypeVar

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_random_state
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from redescend.checkpoint.serialization import Deserializer, Serializer
from redescend.engines import Engine, ModelConfig, NonlinearEngine
from redescend.engines.config import FEATURES, Task, check_bool
from redescend.errors import DataError
from redescend.kernels.selftuning.layout import HEAVIEST
from redescend.numeric import Array
from redescend.parameters import AT_LEAST_ONE, check
from redescend.sklearn.stateful import StatefulEstimator
from redescend.state import ArraySpec, read_arrays, require

Self = TypeVar("Self", bound="LinearEstimator")

ENGINE_PARAMETERS = (
    "loss",
    "transform",
    "step",
    "order",
    "alpha",
    "fit_intercept",
    "standardize",
    "average",
    "features",
)
"""Parameters that an engine is made with; after a change the engine at hand is still used until the next `fit`."""

DOUBLE = np.dtype(np.float64)


@dataclass(eq=False, repr=False)
class LinearEstimator(StatefulEstimator):
    """A linear model that is learned row by row."""

    TASK: ClassVar[Task]
    FITTED = "_engine"
    LEARNED = (
        *("_engine", "_engine_parameters", "_dtype", "_target_ndim", "inlier_weight_", "n_iter_", "classes_"),
        *("n_features_in_", "feature_names_in_"),
    )

    loss: Any = "squared"
    _: KW_ONLY
    transform: InitVar[Any] = None
    step: Any = None
    order: Any = "auto"
    alpha: float = 0.0
    fit_intercept: bool = True
    standardize: Any = True
    average: Any = False
    features: Any = FEATURES
    max_iter: int = 10
    shuffle: bool = True
    random_state: Any = 0
    warm_start: bool = False

    _engine: Engine = field(init=False)
    _engine_parameters: dict[str, Any] = field(init=False)
    _dtype: np.dtype[Any] = field(init=False)

    def __post_init__(self, transform: Any) -> None:
        self._transform = transform

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; `deep` is ignored, because none is an estimator."""
        names = self._get_param_names()
        return {name: self._transform if name == "transform" else getattr(self, name) for name in names}

    def set_params(self: Self, **params: Any) -> Self:
        """Set the parameters `params`, which take effect with the next new model, and return the estimator."""
        if "transform" in params:
            self._transform = params.pop("transform")
        return super().set_params(**params)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # --- targets, which the regressor and the classifier define ---

    @abstractmethod
    def _validate(self, X: Any, y: Any, reset: bool) -> tuple[Any, Array]:
        """Checked features and targets."""

    @abstractmethod
    def _start(self, X: Any, y: Array, classes: Array | None) -> None:
        """Make a new engine for targets like these."""

    @abstractmethod
    def _encode(self, y: Array) -> Array:
        """Checked targets as numbers, a row for each output."""

    @abstractmethod
    def _encode_plain(self, y: Array) -> Array | None:
        """The same for a plain array that was not checked; None if it needs to be."""

    # --- learning ---

    def fit(self: Self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit a new model, or with `warm_start` continue the current one, on `max_iter` passes over the rows.

        A model with trees takes one pass.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets; only a regressor takes several outputs.
        sample_weight : float or array-like of shape (n_samples,), optional
            How much each row counts.

        Returns
        -------
        self : estimator

        Examples
        --------
        >>> from redescend.sklearn import RedescendingRegressor
        >>> RedescendingRegressor(max_iter=50).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).coef_.round(1)
        array([2.])
        """
        owner = type(self).__name__
        shuffle = check_bool(owner, "shuffle", self.shuffle)
        warm_start = check_bool(owner, "warm_start", self.warm_start)
        check(owner, "max_iter", self.max_iter, AT_LEAST_ONE)
        is_new = not (warm_start and self.__sklearn_is_fitted__())
        X, y = self._validate(X, y, reset=is_new)
        weights = _check_sample_weight(sample_weight, X.shape[0])
        if not weights.any():
            raise DataError("sample_weight must not be zero for all rows.")
        if is_new:
            self._start(X, y, None)
        table, Y, random = _engine_input(X), self._encode(y), check_random_state(self.random_state)
        # Trees would learn the noise of rows that they see again.
        self.n_iter_ = 1 if isinstance(self._engine, NonlinearEngine) else self.max_iter
        for _ in range(self.n_iter_):
            order = random.permutation(len(weights)) if shuffle else np.arange(len(weights))
            inlier_weights = self._engine.learn(table[order], np.ascontiguousarray(Y[:, order]), weights[order])
            self.inlier_weight_ = np.empty(len(weights))
            self.inlier_weight_[order] = _smallest(inlier_weights)
        return self

    def _partial_fit(self: Self, X: Any, y: Any, sample_weight: Any, classes: Array | None = None) -> Self:
        """Learn from rows once, in their order."""
        is_new = not self.__sklearn_is_fitted__()
        if sample_weight is None and self._is_plain(X, y) and (not is_new or self._start_plain(X)):
            Y = self._encode_plain(y)
            inlier_weights = None if Y is None else self._engine.learn_unchecked(X, Y)
            if inlier_weights is not None:
                self.inlier_weight_ = _smallest(inlier_weights)
                return self
            if is_new:
                del self._engine
        X, y = self._validate(X, y, reset=is_new)
        weights = _check_sample_weight(sample_weight, X.shape[0])
        if weights.any():
            if is_new:
                self._start(X, y, classes)
            self.inlier_weight_ = _smallest(self._engine.learn(_engine_input(X), self._encode(y), weights))
        return self

    def _is_plain(self, X: Any, y: Any) -> bool:
        """Whether both are plain arrays like those before, of which only the values are left to check.

        Full validation costs more than learning from a few rows does, and reads a large table once more.
        """
        own = self.__dict__
        return (
            type(X) is np.ndarray
            and type(y) is np.ndarray
            and X.dtype == DOUBLE
            and y.ndim == 1
            and X.ndim == 2
            and X.shape == (len(y), own.get("n_features_in_", X.shape[1]))
            and X.size > 0
            and X.flags.carray
            and "feature_names_in_" not in own
        )

    def _start_plain(self, X: Array) -> bool:
        """Make the engine for a first plain table, if X alone determines it."""
        return False

    def _make_engine(self, X: Any, outputs: int) -> None:
        parameters = self.get_params()
        chosen = {name: parameters[name] for name in ENGINE_PARAMETERS}
        self._engine = self._config(chosen).make_engine(X.shape[1], outputs, sparse=issparse(X))
        # Searches pass NumPy scalars, which a state does not hold.
        self._engine_parameters = {
            name: value.item() if isinstance(value, np.generic) else value for name, value in chosen.items()
        }
        self._dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
        self.inlier_weight_ = np.empty(0)

    def _config(self, parameters: dict[str, Any]) -> ModelConfig:
        return ModelConfig.from_parameters(type(self).__name__, self.TASK, **parameters)

    # --- what was learned ---

    @property
    def t_(self) -> int:
        """Number of rows learned from."""
        return self._fitted().row_count

    @property
    def coef_(self) -> Array:
        """Coefficients of the features, in their original units; a model with trees has none."""
        coefficients, _ = self._fitted().coefficients()
        return self._shape_coefficients(_cast(self._dtype, coefficients))

    @property
    def intercept_(self) -> Array:
        """Prediction of each output where all features are 0; a model with trees has none."""
        _, intercepts = self._fitted().coefficients()
        return _cast(self._dtype, intercepts)

    def _shape_coefficients(self, coefficients: Array) -> Array:
        return coefficients

    def _predict_outputs(self, X: Any) -> Array:
        """The prediction of every output, a column each."""
        X = self._validate_features(X)
        if isinstance(self._engine, NonlinearEngine):
            return _cast(self._dtype, self._engine.predict(X).T)
        coefficients, intercepts = self._engine.coefficients()
        predictions = _linear(X, _cast(self._dtype, coefficients), _cast(self._dtype, intercepts))
        return _cast(self._dtype, self._engine.clip(predictions.T).T)

    def _validate_features(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)

    def score_samples(self, X: Any, y: Any = None) -> Array:
        """Return the probability that each record is clean: near 1 for a normal record, near 0 for an outlier.

        Nothing is learned.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Targets. Without them the score is how usual the features are: the typical squared length of a row, in the
            scales of the features, over its own, and at most 1.

        Returns
        -------
        scores : array of shape (n_samples,)
            With several outputs or three or more classes, the smallest of them; with a transform, its weight.

        Examples
        --------
        >>> from redescend.sklearn import RedescendingRegressor
        >>> model = RedescendingRegressor().fit([[0.0], [1.0], [2.0], [3.0]] * 9, [1.0, 3.0, 5.0, 7.0] * 9)
        >>> model.score_samples([[4.0], [4.0]], [9.0, 90.0]).round(1)
        array([1., 0.])
        """
        checked = self._validate_features(X)
        if y is None:
            return self._engine.score_features(checked)
        X, y = self._validate(X, y, reset=False)
        # In double precision, as the records were learned from.
        return _smallest(self._engine.score(_engine_input(X), self._encode(y)))

    # --- state ---

    def _learned_state(self) -> dict[str, Any]:
        return {
            "engine": self._engine.state(),
            "made_with": {name: Serializer().serialize(value, name) for name, value in self._engine_parameters.items()},
            "precision": self._dtype.name,
            "inlier_weight": self.inlier_weight_.copy(),
            "passes": getattr(self, "n_iter_", None),
        }

    def _read_state(self, state: dict[str, Any]) -> dict[str, Any]:
        owner, engine_state, passes = type(self).__name__, state["engine"], state["passes"]
        # Models from before there were trees are linear.
        made_with = {"features": "linear"} | state["made_with"]
        parameters = {name: Deserializer({}, file_size=0).deserialize(made_with[name]) for name in ENGINE_PARAMETERS}
        engine = self._config(parameters).restore_engine(engine_state)
        require(state["precision"] in ("float32", "float64"), owner, "an unknown precision")
        require(passes is None or (type(passes) is int and passes > 0), owner, "an impossible number of passes")
        weights = ArraySpec("inlier_weight", ("rows",), low=0.0, high=1.0)
        learned = {
            "_engine": engine,
            "_engine_parameters": parameters,
            "_dtype": np.dtype(state["precision"]),
            "inlier_weight_": read_arrays([weights], {weights.name: state[weights.name]}, {}, owner)[weights.name],
            "n_features_in_": engine.dim,
        }
        return learned if passes is None else learned | {"n_iter_": passes}


# An attribute of that name would make scikit-learn take the model for a transformer.
del LinearEstimator.transform


def _check_sample_weight(sample_weight: Any, rows: int) -> Array:
    """The weight of each row, at most the largest that the learner distinguishes."""
    if sample_weight is None:
        return np.ones(rows)
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"sample_weight must be numbers. Got {sample_weight!r} instead.") from None
    if weights.shape not in ((), (rows,)):
        raise DataError(f"sample_weight must be a number or have shape ({rows},). Got shape {weights.shape} instead.")
    if not (np.isfinite(weights) & (weights >= 0.0)).all():
        raise DataError("sample_weight must be finite and >= 0.")
    return np.minimum(np.broadcast_to(weights, (rows,)), HEAVIEST)


def _engine_input(X: Any) -> Any:
    """Validated features as an engine takes them."""
    if isinstance(X, np.ndarray):
        return np.require(X, np.float64, ["C", "A", "W"])
    X = X.astype(np.float64)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _smallest(weights: Array) -> Array:
    """The smallest weight of each row over all outputs."""
    return weights[0] if len(weights) == 1 else weights.min(axis=0)


def _cast(dtype: np.dtype[Any], values: Array) -> Array:
    """Values in this precision, clipped to its range."""
    limit = np.finfo(dtype).max
    return np.clip(values, -limit, limit).astype(dtype)


def _linear(X: Any, coefficients: Array, intercepts: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        out = safe_sparse_dot(X, coefficients.T, dense_output=True) + intercepts
    return np.nan_to_num(out, nan=0.0)
