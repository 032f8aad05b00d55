"""Base class of the regressor and the classifier: parameters, input validation, and an engine that learns."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import Any, ClassVar, TypeVar

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from redescend.belief import to_probability
from redescend.checkpoint.serialization import Deserializer, Serializer
from redescend.engines import Engine, ModelConfig, NonlinearEngine
from redescend.engines.config import Task
from redescend.engines.engine import LinearForm
from redescend.engines.selftuning import SelfTuningEngine
from redescend.errors import DataError
from redescend.exclusive import exclusive
from redescend.kernels.layout import Table
from redescend.numeric import Array
from redescend.parameters import AT_LEAST_ONE, bad_parameter, check_bool
from redescend.sklearn.row_beliefs import JudgingEstimator, RowBeliefs
from redescend.sklearn.rows import cast_clipped, check_sample_weight, min_over_outputs, predict_linear, to_engine_input
from redescend.state import ArraySpec, read_arrays, require

Self = TypeVar("Self", bound="LinearEstimator")

ENGINE_PARAMETERS = (
    *("loss", "transform", "step", "order", "alpha"),
    *("fit_intercept", "standardize", "average", "features"),
)
"""Parameters of the engine; a change takes effect with the next `fit`."""

DOUBLE = np.dtype(np.float64)


@dataclass(eq=False, repr=False)
class LinearEstimator(JudgingEstimator):
    """A model that is learned row by row: linear, and with trees unless these are left out or impossible."""

    TASK: ClassVar[Task]
    FITTED = "_engine"
    LEARNED = (
        *("_engine", "_engine_parameters", "_dtype", "_target_ndim", "_beliefs"),
        *("inlier_weight_", "n_iter_", "classes_", "n_features_in_", "feature_names_in_"),
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
    features: Any = "auto"
    max_iter: Any = "auto"
    shuffle: bool = True
    random_state: Any = 0
    warm_start: bool = False

    _engine: Engine = field(init=False)
    _beliefs: RowBeliefs | None = field(init=False)
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
    def _start_model(self, X: Any, y: Array, classes: Array | None) -> None:
        """Make a new engine for targets like these."""

    @abstractmethod
    def _encode_targets(self, y: Array) -> Array:
        """Checked targets as numbers, a row for each output."""

    @abstractmethod
    def _encode_plain_targets(self, y: Array) -> Array | None:
        """Encode a plain array that was not checked; None if it must be checked."""

    # --- learning ---

    @exclusive
    def fit(self: Self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit a new model, or with `warm_start` continue the current one, on `max_iter` passes over the rows.

        Each pass grows the trees of a model from scratch.

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
        >>> model = RedescendingRegressor(features="linear", max_iter=50)
        >>> model.fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).coef_.round(1)
        array([2.])
        """
        owner = type(self).__name__
        shuffle = check_bool(owner, "shuffle", self.shuffle)
        warm_start = check_bool(owner, "warm_start", self.warm_start)
        if not (isinstance(self.max_iter, str) and self.max_iter == "auto") and self.max_iter not in AT_LEAST_ONE:
            raise bad_parameter(owner, "max_iter", f"'auto' or {AT_LEAST_ONE}", self.max_iter)
        is_new = not (warm_start and self.__sklearn_is_fitted__())
        X, y = self._validate(X, y, reset=is_new)
        weights = check_sample_weight(sample_weight, X.shape[0])
        if not weights.any():
            raise DataError("sample_weight must not be zero for all rows.")
        if is_new:
            self._start_model(X, y, None)
        table, Y, random = to_engine_input(X), self._encode_targets(y), check_random_state(self.random_state)
        self.n_iter_ = self._count_passes()
        inlier_weights, predictions = np.empty((2, *Y.shape))
        trees = self._engine if isinstance(self._engine, NonlinearEngine) else None
        learner = self._engine if trees is None else trees.linear
        for _ in range(self.n_iter_):
            order = random.permutation(len(weights)) if shuffle else np.arange(len(weights))
            rows = table[order], np.ascontiguousarray(Y[:, order]), weights[order]
            inlier_weights[:, order] = learner.learn(*rows)
        if trees is not None:
            believed = np.empty(Y.shape)
            predictions[:, order] = trees.conclude(*rows, believed)
            inlier_weights[:, order] = believed
        self.inlier_weight_ = min_over_outputs(inlier_weights)
        if self._beliefs is not None and trees is not None:
            self._beliefs.fit_members(trees, Table(table, Y, weights), predictions, order)
        elif self._beliefs is not None:
            used = np.flatnonzero(weights > 0.0)
            self._beliefs.fit(table, Y, self._predict_unrounded(table), inlier_weights, used)
        return self

    def _count_passes(self) -> int:
        if self.max_iter != "auto":
            return int(self.max_iter)
        if isinstance(self._engine, NonlinearEngine):
            return 2
        return 2 if isinstance(self._engine, SelfTuningEngine) and self._engine.order == 2 else 10

    @exclusive
    def _partial_fit(self: Self, X: Any, y: Any, sample_weight: Any, classes: Array | None = None) -> Self:
        """Learn from rows once, in their order."""
        is_new = not self.__sklearn_is_fitted__()
        if sample_weight is None and self._is_plain(X, y) and (not is_new or self._start_plain(X)):
            Y = self._encode_plain_targets(y)
            if Y is not None and self._learn_rows(X, Y, None):
                return self
            if is_new:
                del self._engine
        X, y = self._validate(X, y, reset=is_new)
        weights = check_sample_weight(sample_weight, X.shape[0])
        if weights.any():
            if is_new:
                self._start_model(X, y, classes)
            self._learn_rows(to_engine_input(X), self._encode_targets(y), weights)
        return self

    def _learn_rows(self, X: Any, Y: Array, weights: Array | None) -> bool:
        """Learn from rows; returns False, and learns nothing, if those without weights, not checked yet, are bad."""
        engine, predictions = self._engine, None if self._beliefs is None else np.zeros(Y.shape)
        if weights is None:
            inlier_weights = engine.learn_unchecked(X, Y, predictions)
        else:
            inlier_weights = engine.learn(X, Y, weights, predictions)
        if inlier_weights is None:
            return False
        self.inlier_weight_ = min_over_outputs(inlier_weights)
        if self._beliefs is not None and predictions is not None:
            self._beliefs.add(X, Y, predictions, None if weights is None else np.flatnonzero(weights > 0.0))
        return True

    def _is_plain(self, X: Any, y: Any) -> bool:
        """Whether both are plain arrays of the same type and width as before, so that only values must be checked.

        Full validation costs more than learning from a few rows does, and reads a large table once more.
        """
        attributes = self.__dict__
        return (
            type(X) is np.ndarray
            and type(y) is np.ndarray
            and X.dtype == DOUBLE
            and y.ndim == 1
            and X.ndim == 2
            and X.shape == (len(y), attributes.get("n_features_in_", X.shape[1]))
            and X.size > 0
            and X.flags.carray
            and "feature_names_in_" not in attributes
        )

    def _start_plain(self, X: Array) -> bool:
        """Make the engine for a first plain table, if X alone determines it."""
        return False

    def _make_engine(self, X: Any, outputs: int) -> None:
        parameters = self.get_params()
        chosen = {name: parameters[name] for name in ENGINE_PARAMETERS}
        self._engine = self._make_config(chosen).make_engine(X.shape[1], outputs, sparse=issparse(X))
        # Searches pass NumPy scalars, which a state does not hold.
        self._engine_parameters = {
            name: value.item() if isinstance(value, np.generic) else value for name, value in chosen.items()
        }
        self._dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
        self._beliefs = self._make_beliefs(X.shape[1], outputs) if parameters["transform"] is None else None
        self.inlier_weight_ = np.empty(0)

    def _make_beliefs(self, dim: int, outputs: int) -> RowBeliefs:
        return RowBeliefs(dim, outputs, self.TASK == "classification")

    def _make_config(self, parameters: dict[str, Any]) -> ModelConfig:
        return ModelConfig.from_parameters(type(self).__name__, self.TASK, **parameters)

    # --- fitted attributes and predictions ---

    @property
    def t_(self) -> int:
        """Number of rows learned from."""
        return self._fitted().row_count

    @property
    def coef_(self) -> Array:
        """Coefficients of the features, in their original units; a model with trees has none."""
        coefficients, _ = self._fitted().coefficients()
        return self._shape_coefficients(cast_clipped(self._dtype, coefficients))

    @property
    def intercept_(self) -> Array:
        """Prediction of each output where all features are 0; a model with trees has none."""
        _, intercepts = self._fitted().coefficients()
        return cast_clipped(self._dtype, intercepts)

    def linear_form(self) -> LinearForm:
        """Return the coefficients, centres and limits of predictions, for exports."""
        return self._fitted().linear_form()

    def _shape_coefficients(self, coefficients: Array) -> Array:
        return coefficients

    def _predict_outputs(self, X: Any) -> Array:
        """The prediction of every output, a column each."""
        X = self._validate_features(X)
        if isinstance(self._engine, NonlinearEngine):
            return cast_clipped(self._dtype, self._engine.predict(X).T)
        coefficients, intercepts = self._engine.coefficients()
        predictions = predict_linear(X, cast_clipped(self._dtype, coefficients), cast_clipped(self._dtype, intercepts))
        return cast_clipped(self._dtype, self._engine.clip(predictions.T).T)

    def _predict_unrounded(self, X: Any) -> Array:
        """The predictions in double precision, as in learning, a row for each output."""
        if isinstance(self._engine, NonlinearEngine):
            return self._engine.predict(X)
        return self._engine.clip(predict_linear(X, *self._engine.coefficients()).T)

    def _validate_features(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)

    def score_samples(self, X: Any, y: Any = None) -> Array:
        """Return the probability that each record is clean: near 1 for a normal record, near 0 for an outlier.

        Nothing is learned. See `redescend.belief` for what the probability means.

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
            Never exactly 0 or 1. With several outputs, the smallest of them. With a transform, its weight.

        Examples
        --------
        >>> from redescend.sklearn import RedescendingRegressor
        >>> X, noise = np.random.default_rng(0).normal(size=(2, 300, 1))
        >>> y = 2.0 * X[:, 0] + noise[:, 0]
        >>> y[::50] = 90.0
        >>> RedescendingRegressor().fit(X, y).score_samples([[1.0], [1.0]], [2.5, 90.0]).round(1)
        array([1., 0.])
        """
        checked = self._validate_features(X)
        if y is None:
            return self._engine.score_features(checked)
        X, y = self._validate(X, y, reset=False)
        # In double precision, as the records were learned from.
        table, Y = to_engine_input(X), self._encode_targets(y)
        if self._beliefs is None:
            return min_over_outputs(self._engine.score(table, Y))
        return to_probability(self._beliefs.judge(table, Y, self._predict_unrounded(table)))

    # --- state ---

    def _learned_state(self) -> dict[str, Any]:
        return {
            "engine": self._engine.state(),
            "made_with": {name: Serializer().serialize(value, name) for name, value in self._engine_parameters.items()},
            "precision": self._dtype.name,
            "inlier_weight": self.inlier_weight_.copy(),
            "beliefs": None if self._beliefs is None else self._beliefs.state(),
            "passes": getattr(self, "n_iter_", None),
        }

    def _read_state(self, state: dict[str, Any]) -> dict[str, Any]:
        owner, engine_state, passes = type(self).__name__, state["engine"], state["passes"]
        made_with = state["made_with"]
        parameters = {name: Deserializer({}, file_size=0).deserialize(made_with[name]) for name in ENGINE_PARAMETERS}
        engine = self._make_config(parameters).restore_engine(engine_state)
        require(state["precision"] in ("float32", "float64"), owner, "an unknown precision")
        require(passes is None or (type(passes) is int and passes > 0), owner, "an impossible number of passes")
        beliefs = None
        if state["beliefs"] is not None:
            require(parameters["transform"] is None, owner, "a belief in spite of its transform")
            beliefs = self._make_beliefs(engine.dim, engine.outputs)
            beliefs.restore(state["beliefs"])
        weights = ArraySpec("inlier_weight", ("rows",), low=0.0, high=1.0)
        learned = {
            "_engine": engine,
            "_beliefs": beliefs,
            "_engine_parameters": parameters,
            "_dtype": np.dtype(state["precision"]),
            "inlier_weight_": read_arrays([weights], {weights.name: state[weights.name]}, {}, owner)[weights.name],
            "n_features_in_": engine.dim,
        }
        return learned if passes is None else learned | {"n_iter_": passes}


# An attribute of that name would make scikit-learn take the model for a transformer.
del LinearEstimator.transform
