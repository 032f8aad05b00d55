"""`RedescendingRegressor`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from redescend.errors import DataError
from redescend.numeric import Array
from redescend.sklearn.estimator import DOUBLE, LinearEstimator
from redescend.sklearn.rows import cast_clipped, to_engine_input
from redescend.state import require


@dataclass(eq=False, repr=False)
class RedescendingRegressor(RegressorMixin, LinearEstimator):
    r"""Regression, learned row by row, that outliers cannot move: a linear model, and trees for what is not linear.

    There is nothing to tune: the scale of the noise, the step size and the share of outliers are estimated from the
    stream, as in `redescend.SelfTuning`. Learning from a batch gives exactly the same model as learning from its rows
    one by one.

    Parameters
    ----------
    loss : {'squared', 'absolute', 'epsilon_insensitive', 'pinball'} or LinearLoss, default='squared'
        The loss. By name, epsilon is 0.1 and the quantile 0.5; pass, for example, ``losses.Pinball(0.9)`` to set them.
    transform : Transform or None, default=None
        A fixed robust transform of the loss, such as ``transforms.Huber(1.0)``, in the units of the target: plain
        gradient descent behind its gate, many times faster. One that closes needs targets that are not all far from 0.
    step : Step or None, default=None
        The step of a fixed transform. None: 1/(L·N·√(1 + t/N)), where N is the larger of ‖z‖² and its median, z the
        standardized row, L the curvature of the loss (without one, 1/L is the scale of the target) and t the row.
    order : 'auto', 1 or 2, default='auto'
        The order of the self-tuning learner. 2: O(d²) per row, but fewer rows are needed. 'auto': 2 with trees
        or for at most 150 features that are not sparse, otherwise 1.
    alpha : float, default=0.0
        L2 penalty, in addition to that of the loss: α/2·‖θ‖² for every row, where θ are the coefficients of the
        standardized features. The intercept is not penalized.
    fit_intercept : bool, default=True
        Whether to learn an intercept.
    standardize : bool or 'scale', default=True
        With a transform, whether to center features at their running median and divide them by a scale from their
        running quartiles. 'scale' only divides, by the median size of nonzero values; so does True for sparse input or
        no intercept. Without a transform nothing depends on the units of features, and it has no effect.
    average : bool or int, default=False
        Whether to predict with the mean of all models so far, or of all after this number of rows.
    features : {'auto', 'linear'}, default='auto'
        'auto': add trees, and weight their predictions and those of the linear model by Bayes' rule, if the loss is
        squared with alpha = 0, with an intercept, neither a transform nor averaging, and at most 500 dense features.
    max_iter : int or 'auto', default='auto'
        Number of passes of `fit` over the rows. 'auto': 2 at order 2, where more bring little, or with trees, which
        each pass grows from scratch; otherwise 10.
    shuffle : bool, default=True
        Whether `fit` shuffles the rows before each pass.
    random_state : int, RandomState or None, default=0
        Seed of the shuffling.
    warm_start : bool, default=False
        Whether `fit` continues from the current model.

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_outputs, n_features)
        Coefficients, in the original units of the features. A model with trees has none.
    intercept_ : array of shape (n_outputs,)
        Intercepts.
    inlier_weight_ : array of shape (n_samples,)
        How much each row of the last call counted for the model, from 0 to 1, before learning from it; 0 for rows with
        a sample weight of 0. With several outputs, the smallest of them. It ranks rows, but is not a probability.
    clean_probability_ : array of shape (n_samples,)
        The probability that each row of the last call was clean, given everything learned so far. Rows of `fit` are
        judged once, after the last pass, by leave-one-out predictions; those of `partial_fit` by predictions from
        before the update. With several outputs, the smallest of them. Only without a transform, as the next two.
    q_value_ : array of shape (n_samples,)
        The estimated share of false alarms in the list of a row and all that are less likely clean.
    suspects_ : array of int
        The rows of the last call that are probably wrong: ``suspects(fdr=0.1)``.
    t_ : int
        Number of rows learned from.
    n_iter_ : int
        Number of passes of the last `fit`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str
        Names of the features, if they have any.

    Notes
    -----
    With a `sample_weight` w, the variance of the noise of a row is divided by w. This is not the same as w copies of
    the row, since repeated rows carry no new information. With a transform, the step is w times as long. Rows of weight
    0 are skipped.

    Coefficients and predictions have the precision of the first records. All computations are in double precision,
    which the separation of noise from signal needs.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(1000, 3))
    >>> y = X @ [1.0, 2.0, 3.0] + 4.0 + 0.1 * random.normal(size=1000)
    >>> y[::5] = 1000.0
    >>> model = RedescendingRegressor(features="linear").partial_fit(X, y)
    >>> np.append(model.coef_, model.intercept_).round(1)
    array([1., 2., 3., 4.])
    >>> bool(model.score_samples(X, y)[::5].max() < 0.01)
    True
    """

    TASK = "regression"

    _target_ndim: int = field(init=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> RedescendingRegressor:
        """Learn from rows once, in their order.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : float or array-like of shape (n_samples,), optional
            How much each row counts.

        Returns
        -------
        self : RedescendingRegressor

        Examples
        --------
        >>> RedescendingRegressor().partial_fit([[1.0], [2.0]], [2.0, 4.0]).t_
        2
        """
        return self._partial_fit(X, y, sample_weight)

    def predict(self, X: Any) -> Array:
        """Return the prediction for each row of `X`, with a column for each output if `y` had columns."""
        predictions = self._predict_outputs(X)
        return predictions[:, 0] if self._target_ndim == 1 else predictions

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[Array, Array]:
        """Return the interval in which a share of clean targets lies, for each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        level : float
            The share, between 0 and 1.

        Returns
        -------
        low, high : arrays, each with the shape of what `predict` returns
            The ends of the intervals. Targets that are wrong need not lie in them.

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(1000, 2))
        >>> y = X @ [1.0, 2.0] + np.random.default_rng(1).normal(size=1000)
        >>> low, high = RedescendingRegressor().fit(X[:800], y[:800]).predict_interval(X[800:], level=0.9)
        >>> bool(0.85 < np.mean((low <= y[800:]) & (y[800:] <= high)) < 0.95)
        True
        """
        X = to_engine_input(self._validate_features(X))
        if self._beliefs is None:
            raise DataError("Intervals need a model without a fixed transform.")
        low, high = (
            cast_clipped(self._dtype, end.T)
            for end in self._beliefs.predict_interval(X, self._predict_unrounded(X), level)
        )
        return (low[:, 0], high[:, 0]) if self._target_ndim == 1 else (low, high)

    def _start_plain(self, X: Array) -> bool:
        self.n_features_in_, self._target_ndim = X.shape[1], 1
        self._make_engine(X, 1)
        return True

    def _validate(self, X: Any, y: Any, reset: bool) -> tuple[Any, Array]:
        options = {"accept_sparse": "csr", "order": "C", "multi_output": True, "y_numeric": True}
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], reset=reset, **options)
        if reset:
            self._target_ndim = y.ndim
        return X, np.array(y.reshape(len(y), -1).T, dtype=np.float64, order="C")

    def _start_model(self, X: Any, y: Array, classes: Array | None) -> None:
        self._make_engine(X, len(y))

    def _encode_targets(self, y: Array) -> Array:
        if len(y) != self._engine.outputs:
            raise DataError(f"y must have {self._engine.outputs} columns, as before. Got {len(y)} instead.")
        return y

    def _encode_plain_targets(self, y: Array) -> Array | None:
        return y[None] if self._engine.outputs == 1 and y.dtype == DOUBLE and y.flags.carray else None

    def _shape_coefficients(self, coefficients: Array) -> Array:
        return coefficients[0] if self._target_ndim == 1 else coefficients

    def _learned_state(self) -> dict[str, Any]:
        return super()._learned_state() | {"columns": self._target_ndim}

    def _read_state(self, state: dict[str, Any]) -> dict[str, Any]:
        learned = super()._read_state(state)
        ndim = state.get("columns")
        is_valid = ndim in (1, 2) and (ndim == 2 or learned["_engine"].outputs == 1)
        require(is_valid, type(self).__name__, f"targets of {ndim!r} dimensions")
        return learned | {"_target_ndim": ndim}
