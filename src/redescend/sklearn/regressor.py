"""`RedescendingRegressor`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from redescend.errors import DataError
from redescend.numeric import Array
from redescend.sklearn.base import LinearEstimator


class RedescendingRegressor(RegressorMixin, LinearEstimator):
    r"""Linear regression, learned row by row, that outliers cannot move.

    There is nothing to tune: scale, step and the share of outliers follow the stream (`redescend.SelfTuning`). A batch
    teaches exactly what its rows teach one by one.

    Parameters
    ----------
    loss : {'squared', 'absolute', 'epsilon_insensitive', 'pinball'} or LinearLoss
        What is paid; an object such as ``losses.Pinball(0.9)`` sets the quantile, whose default is 0.5, or the epsilon,
        whose default is 0.1 in the units of the target. The l2 of an object is added to `alpha`.
    transform : Transform or None
        A fixed transform of the loss, such as ``transforms.Huber(1.0)``, in the units of the target: first-order
        descent behind its gate, which is many times faster. A transform that closes, such as Tukey's, takes targets
        that are all far from the first predictions, near 0, for outliers for ever: centre such targets.
    step : Step or None
        The step of a fixed transform. None: 1/(L·N·√(1 + t/N)), with N the larger of ‖z‖² and its median, z the
        standardised row, L the curvature of the loss and t the rows so far: it never passes the record that it learns
        from, and shrinks once there were as many rows as there are directions. For a loss without curvature, which may
        pass a record, 1/L is the scale of the target.
    order : 1 or 2
        2 adds a second-order follower to the self-tuning learner: O(d²) a row, fewer rows to learn from.
    alpha : float
        l2: α/2·‖θ‖² is added to the loss of every row. θ are coefficients of the standardised features, without the
        intercept.
    fit_intercept : bool
    standardize : bool or 'scale'
        Whether features are centred at their running median and divided by a scale from their running quartiles, both
        from a uniform sample of 32 rows. 'scale' divides by the median size of values other than 0 and does not centre;
        so does True for sparse input, and without an intercept. A change of units does not change a prediction.
    average : bool or int
        Whether predictions are those of the mean of all models so far, or of all after so many rows.
    max_iter : int
        Passes of `fit` over the rows.
    shuffle : bool
        Whether `fit` takes the rows in another order in each pass.
    random_state : int, RandomState or None
        What orders them.
    warm_start : bool
        Whether `fit` goes on from where the model is.

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_outputs, n_features)
    intercept_ : array of shape (n_outputs,)
    inlier_weight_ : array of shape (n_samples,)
        How likely each row of the last call was to be clean when it came (with a transform: its weight); 0 for a row
        of weight 0. With several outputs, the least of them.
    t_ : int
        Rows learned from.
    n_features_in_ : int
    feature_names_in_ : array of str

    Notes
    -----
    A row of `sample_weight` w counts w times: its likelihood is taken to the power w, and steps are w times as long
    (and implicit, so that none overshoots). It is not the same as w copies, of which all but the first look too good to
    be noisy. Weight 0 is a no-op. With a transform the step is w times as long.

    Coefficients and predictions have the precision of the first records; inside it is double, because the noise of a
    stream is told from its signal by differences that single precision does not hold.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(1000, 3))
    >>> y = X @ [1.0, 2.0, 3.0] + 4.0 + 0.1 * random.normal(size=1000)
    >>> y[::5] = 1000.0
    >>> model = RedescendingRegressor().partial_fit(X, y)
    >>> np.append(model.coef_, model.intercept_).round(1)
    array([1., 2., 3., 4.])
    >>> bool(model.score_samples(X, y)[::5].max() < 0.01)
    True
    """

    LOSSES = ("squared", "absolute", "epsilon_insensitive", "pinball")
    MARGIN = False

    def __init__(
        self,
        loss: Any = "squared",
        *,
        transform: Any = None,
        step: Any = None,
        order: int = 1,
        alpha: float = 0.0,
        fit_intercept: bool = True,
        standardize: Any = True,
        average: Any = False,
        max_iter: int = 10,
        shuffle: bool = True,
        random_state: Any = 0,
        warm_start: bool = False,
    ) -> None:
        super().__init__(
            loss,
            transform=transform,
            step=step,
            order=order,
            alpha=alpha,
            fit_intercept=fit_intercept,
            standardize=standardize,
            average=average,
            max_iter=max_iter,
            shuffle=shuffle,
            random_state=random_state,
            warm_start=warm_start,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RedescendingRegressor:
        """Forget what was learned, unless `warm_start`, and learn from all rows `max_iter` times."""
        going_on = self._goes_on()
        X, Y = self._validated(X, y, reset=not going_on)
        times = self._times_of_fit(sample_weight, Y.shape[1])
        if not going_on:
            self._begin(X, len(Y))
        return self._fit_passes(X, self._matching(Y), times)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> RedescendingRegressor:
        """Learn from rows, once, in their order."""
        first = "_engine" not in self.__dict__
        if sample_weight is None and self._plain(X, y) and y.dtype == np.float64 and y.flags.carray:
            Y = y.reshape(1, -1)
            if first:
                self.n_features_in_, self._columns = X.shape[1], 1
                self._begin(X, 1)
            if self._engine.outputs == 1 and self._learned_plain(X, Y):
                return self
            if first:
                del self._engine
        X, Y = self._validated(X, y, reset=first)
        times = self._times(sample_weight, Y.shape[1])
        if not times.any():
            return self
        if first:
            self._begin(X, len(Y))
        return self._learn(self._ready(X), self._matching(Y), times)

    def _validated(self, X: Any, y: Any, reset: bool) -> tuple[Any, Array]:
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            reset=reset,
            multi_output=True,
            y_numeric=True,
        )
        if reset:
            self._columns = y.ndim
        return X, np.array(y.reshape(len(y), -1).T, dtype=np.float64, order="C")

    def _matching(self, Y: Array) -> Array:
        if len(Y) != self._engine.outputs:
            raise DataError(f"y must have {self._engine.outputs} columns, as before. Got {len(Y)} instead.")
        return Y

    def _shaped(self, coefficients: Array) -> Array:
        return coefficients[0] if self._columns == 1 else coefficients

    def predict(self, X: Any) -> Array:
        """Predictions, one for each row, or a column of them for each output."""
        predicted = self._predicted(self._checked(X))
        return predicted[:, 0] if self._columns == 1 else predicted

    def score_samples(self, X: Any, y: Any = None) -> Array:
        """How likely each record is to be clean, by what was learned so far: 1 is normal, 0 is an outlier.

        Nothing is learned. With several outputs, the least of them; with a transform, its weight.
        Without y, how usual the features are: min(1, N/‖z‖²) of the standardised row z, with N the median of ‖z‖².
        """
        checked = self._checked(X)
        if y is None:
            return self._engine.usual(checked)
        X, Y = self._validated(X, y, reset=False)
        return self._scored(X, self._matching(Y))

    def state(self) -> dict[str, Any]:
        state = super().state()
        return state | {"columns": self._columns} if state["fitted"] else state

    def _read(self, state: dict[str, Any]) -> dict[str, Any]:
        learned = super()._read(state)
        columns = state.get("columns")
        if columns not in (1, 2) or (columns == 1 and learned["_engine"].outputs != 1):
            raise DataError(f"The state cannot have targets of {columns!r} dimensions; it has been altered.")
        return learned | {"_columns": int(columns)}
