"""`RedescendingClassifier`."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from redescend import losses
from redescend.errors import DataError
from redescend.numeric import Array
from redescend.sklearn.base import LinearEstimator
from redescend.sklearn.states import reading


def _has_probabilities(estimator: Any) -> bool:
    if estimator.loss == "logistic" or isinstance(estimator.loss, losses.Logistic):
        return True
    raise AttributeError(f"predict_proba is there for loss='logistic'. Got loss={estimator.loss!r} instead.")


class RedescendingClassifier(ClassifierMixin, LinearEstimator):
    r"""Linear classification, learned row by row, that wrong labels cannot move.

    There is nothing to tune: the step and the share of wrong labels follow the stream (`redescend.SelfTuning`). A batch
    teaches exactly what its rows teach one by one. Three or more classes are each learned against the rest, in one
    pass.

    Parameters
    ----------
    loss : {'logistic', 'hinge'} or LinearLoss
        What is paid; the l2 of an object is added to `alpha`.
    transform : Transform or None
        A fixed transform of the loss, such as ``transforms.Learn.from_threshold(3.0, softness=0.5)``: first-order
        descent behind its gate, which is several times faster.
    step : Step or None
        The step of a fixed transform. None: one that needs no tuning, as in `RedescendingRegressor`.
    order : 1 or 2
        2 adds a second-order follower to the self-tuning learner: O(d²) a row, fewer rows to learn from.
    alpha, fit_intercept, standardize, average, max_iter, shuffle, random_state, warm_start
        As in `RedescendingRegressor`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    coef_ : array of shape (1, n_features) for two classes, or (n_classes, n_features)
    intercept_ : array of shape (1,) or (n_classes,)
    inlier_weight_ : array of shape (n_samples,)
        How likely each label of the last call was to be right when it came (with a transform: its weight); 0 for a row
        of weight 0. With three or more classes, the least over the classes.
    t_, n_features_in_, feature_names_in_
        As in `RedescendingRegressor`, where the meaning of `sample_weight` is written too.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(2000, 2))
    >>> right = np.where(X @ [1.0, 2.0] > 0.0, "yes", "no")
    >>> y = np.where(random.random(2000) < 0.2, np.where(right == "yes", "no", "yes"), right)
    >>> model = RedescendingClassifier().partial_fit(X, y, classes=["no", "yes"])
    >>> bool(model.score(X, right) > 0.98)
    True
    """

    LOSSES = ("logistic", "hinge")
    MARGIN = True

    classes_: Array

    def __init__(
        self,
        loss: Any = "logistic",
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RedescendingClassifier:
        """Forget what was learned, unless `warm_start`, and learn from all rows `max_iter` times."""
        going_on = self._goes_on()
        X, y = self._validated(X, y, reset=not going_on)
        times = self._times_of_fit(sample_weight, len(y))
        if not going_on:
            self._start(X, np.unique(y))
        return self._fit_passes(X, self._signs(y), times)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> RedescendingClassifier:
        """Learn from rows, once, in their order; the first call must name all classes."""
        first = "_engine" not in self.__dict__
        plain = not first and classes is None and sample_weight is None and self._plain(X, y)
        if plain and self._learned_plain(X, self._signs(y)):
            return self
        X, y = self._validated(X, y, reset=first)
        times = self._times(sample_weight, len(y))
        if first and classes is None:
            raise DataError("The first call of partial_fit must be given all classes, as classes=[...].")
        if not times.any():
            return self
        if first:
            self._start(X, np.unique(classes))
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise DataError(f"classes must be {self.classes_}, as in the first call. Got {classes} instead.")
        return self._learn(self._ready(X), self._signs(y), times)

    def _validated(self, X: Any, y: Any, reset: bool) -> tuple[Any, Array]:
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order="C", reset=reset)
        check_classification_targets(y)
        return X, y

    def _start(self, X: Any, classes: Array) -> None:
        if len(classes) < 2:
            raise DataError(f"A classifier needs two classes or more; got {len(classes)} class: {classes}.")
        self._begin(X, 1 if len(classes) == 2 else len(classes))
        self.classes_ = classes

    def _signs(self, y: Array) -> Array:
        """+1 for the class of each output and −1 for the others, a row for each output."""
        classes = self.classes_
        places = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        if not np.array_equal(classes[places], y):
            strange = np.setdiff1d(y, classes)
            raise DataError(f"y must have no other classes than {classes}. Got {strange} instead.")
        if len(classes) == 2:
            return 2.0 * places.reshape(1, -1) - 1.0
        return np.where(np.arange(len(classes))[:, None] == places, 1.0, -1.0)

    def decision_function(self, X: Any) -> Array:
        """Margins: positive for the second of two classes; a column for each of three or more."""
        margins = self._predicted(self._checked(X))
        return margins[:, 0] if len(self.classes_) == 2 else margins

    def predict(self, X: Any) -> Array:
        """The class of every row."""
        margins = self.decision_function(X)
        places = (margins > 0.0).astype(np.intp) if margins.ndim == 1 else margins.argmax(axis=1)
        return self.classes_[places]

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes; for three or more, those of each against the rest, made to sum to 1."""
        margins = self.decision_function(X)
        if margins.ndim == 1:
            second = expit(margins)
            return np.column_stack([expit(-margins), second])
        shares = expit(margins)
        totals = shares.sum(axis=1, keepdims=True)
        return np.where(totals > 0.0, shares / np.where(totals > 0.0, totals, 1.0), 1.0 / len(self.classes_))

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def score_samples(self, X: Any, y: Any = None) -> Array:
        """How likely each label is to be right, by what was learned so far: 1 is normal, 0 is a wrong label.

        Nothing is learned. With three or more classes, the least over the classes; with a transform, its weight.
        Without y, how usual the features are: min(1, N/‖z‖²) of the standardised row z, with N the median of ‖z‖².
        """
        checked = self._checked(X)
        if y is None:
            return self._engine.usual(checked)
        X, y = self._validated(X, y, reset=False)
        return self._scored(X, self._signs(y))

    def state(self) -> dict[str, Any]:
        state = super().state()
        if not state["fitted"]:
            return state
        return state | {"classes": self.classes_.tolist(), "class_type": self.classes_.dtype.str}

    def _read(self, state: dict[str, Any]) -> dict[str, Any]:
        learned = super()._read(state)
        with reading(type(self).__name__):
            kind = np.dtype(state["class_type"])
            if kind.kind not in "biufUO":
                raise DataError(f"The state has classes of {kind}, which cannot be; it has been altered.")
            # Texts take the room that they need, whatever room is asked for.
            classes = np.array(state["classes"], dtype=np.str_ if kind.kind == "U" else kind)
            outputs = 1 if len(classes) == 2 else len(classes)
            if outputs != learned["_engine"].outputs or len(classes) < 2:
                raise DataError(f"The state has {len(classes)} classes, which cannot be; it has been altered.")
            if not np.array_equal(np.unique(classes), classes):
                raise DataError("The state must name each class once, in order; it has been altered.")
        return learned | {"classes_": classes}
