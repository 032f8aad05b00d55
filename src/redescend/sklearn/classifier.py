"""`RedescendingClassifier`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from redescend import losses
from redescend.engines.labels import count_outputs, encode_labels, label_probabilities
from redescend.errors import DataError
from redescend.numeric import Array
from redescend.sklearn.estimator import LinearEstimator
from redescend.state import require


def _has_probabilities(estimator: Any) -> bool:
    if estimator.loss == "logistic" or isinstance(estimator.loss, losses.Logistic):
        return True
    raise AttributeError(f"predict_proba is only available for loss='logistic'. Got loss={estimator.loss!r}.")


@dataclass(eq=False, repr=False)
class RedescendingClassifier(ClassifierMixin, LinearEstimator):
    r"""Classification, learned row by row, that wrong labels cannot move: a linear model, and trees beside it.

    There is nothing to tune: the step size and the share of wrong labels are estimated from the stream, as in
    `redescend.SelfTuning`. Learning from a batch gives exactly the same model as learning from its rows one by one.
    With three or more classes, each is learned against the rest, and a small matrix, learned in the same pass, makes
    logits of all classes together from their scores. With the hinge loss there is none.

    Parameters
    ----------
    loss : {'logistic', 'hinge'} or LinearLoss, default='logistic'
        The loss. The l2 of an object is added to `alpha`.
    transform : Transform or None, default=None
        A fixed robust transform of the loss, such as ``transforms.Learn.from_threshold(3.0, softness=0.5)``. The
        model is then plain gradient descent behind the gate of the transform, which is several times faster.
    step : Step or None, default=None
        The step of a fixed transform. None: one that needs no tuning, as in `RedescendingRegressor`.
    order : 'auto', 1 or 2, default='auto'
        The order of the self-tuning learner. 2: O(d²) per row, but fewer rows are needed. 'auto': 2 with trees
        or for at most 150 features that are not sparse, otherwise 1.
    alpha, fit_intercept, standardize, average, max_iter, shuffle, random_state, warm_start
        As in `RedescendingRegressor`.
    features : {'auto', 'linear'}, default='auto'
        As in `RedescendingRegressor`, for the logistic loss.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes, sorted.
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        Coefficients, in the original units of the features; one row for two classes. A model with trees has none.
    intercept_ : array of shape (1,) or (n_classes,)
        Intercepts.
    inlier_weight_, clean_probability_, q_value_, suspects_
        As in `RedescendingRegressor`; with three or more classes, the weight is the smallest over the classes, and the
        probability that of the given class.
    t_, n_iter_, n_features_in_, feature_names_in_
        As in `RedescendingRegressor`, whose notes explain `sample_weight`.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(2000, 2))
    >>> right = np.where(X @ [1.0, 2.0] > 0.0, "yes", "no")
    >>> y = np.where(random.random(2000) < 0.2, np.where(right == "yes", "no", "yes"), right)
    >>> model = RedescendingClassifier().partial_fit(X, y, classes=["no", "yes"])
    >>> bool(model.score(X, right) > 0.97)
    True
    """

    TASK = "classification"

    loss: Any = "logistic"
    classes_: Array = field(init=False)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> RedescendingClassifier:
        """Learn from rows once, in their order.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), optional
            All classes that may occur; required in the first call.
        sample_weight : float or array-like of shape (n_samples,), optional
            How much each row counts.

        Returns
        -------
        self : RedescendingClassifier

        Examples
        --------
        >>> RedescendingClassifier().partial_fit([[1.0], [-1.0]], ["yes", "no"], classes=["no", "yes"]).classes_
        array(['no', 'yes'], dtype='<U3')
        """
        if classes is not None:
            classes = np.unique(classes)
        if not self.__sklearn_is_fitted__():
            if classes is None:
                raise DataError("The first call of partial_fit needs all classes, as classes=[...].")
        elif classes is not None and not np.array_equal(classes, self.classes_):
            raise DataError(f"classes must be {self.classes_}, as in the first call. Got {classes} instead.")
        return self._partial_fit(X, y, sample_weight, classes)

    def decision_function(self, X: Any) -> Array:
        """Return a score for each row of `X`: positive for the second of two classes, or a column for each of more.

        It ranks rows as `predict_proba` does. After `fit` with a logistic loss it is the linear margin,
        ``X @ coef_.T + intercept_``, made smaller where the coefficients are uncertain; otherwise the margin itself.
        """
        margins = self._predict_outputs(X)
        if self._beliefs is not None:
            shrunk = self._beliefs.shrink(self._validate_features(X), margins.T)
            margins = shrunk.T.astype(self._dtype, copy=False)
        return margins[:, 0] if len(self.classes_) == 2 else margins

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row of `X`."""
        margins = self._predict_outputs(X)
        places = (margins[:, 0] > 0.0).astype(np.intp) if len(self.classes_) == 2 else margins.argmax(axis=1)
        return self.classes_[places]

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class to be the true one, a column each, for the rows `X`.

        Only with a logistic loss. Without a transform it is calibrated: labels that are flipped do not pull it to ½.
        """
        margins = self._predict_outputs(X).T
        if self._beliefs is None:
            return label_probabilities(margins).T
        return self._beliefs.predict_proba(self._validate_features(X), margins).astype(self._dtype)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of `predict_proba` of the rows `X`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _validate(self, X: Any, y: Any, reset: bool) -> tuple[Any, Array]:
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order="C", reset=reset)
        check_classification_targets(y)
        return X, y

    def _start_model(self, X: Any, y: Array, classes: Array | None) -> None:
        classes = np.unique(y) if classes is None else classes
        if len(classes) < 2:
            raise DataError(f"A classifier needs two classes or more; got {len(classes)} class: {classes}.")
        self._make_engine(X, count_outputs(len(classes)))
        self.classes_ = classes

    def _encode_targets(self, y: Array) -> Array:
        classes = self.classes_
        places = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        if not np.array_equal(classes[places], y):
            raise DataError(f"y must be one of {classes}. Got {np.setdiff1d(y, classes)} instead.")
        return encode_labels(places, len(classes))

    def _encode_plain_targets(self, y: Array) -> Array | None:
        return self._encode_targets(y)

    def _learned_state(self) -> dict[str, Any]:
        classes = {"classes": self.classes_.tolist(), "class_type": self.classes_.dtype.str}
        return super()._learned_state() | classes

    def _read_state(self, state: dict[str, Any]) -> dict[str, Any]:
        learned, owner = super()._read_state(state), type(self).__name__
        dtype = np.dtype(state["class_type"])
        require(dtype.kind in "biufUO", owner, f"classes of type {dtype}")
        # The length of strings follows from the classes: that in the file may request any amount of memory.
        classes = np.array(state["classes"], dtype=np.str_ if dtype.kind == "U" else dtype)
        is_valid = len(classes) > 1 and count_outputs(len(classes)) == learned["_engine"].outputs
        require(is_valid, owner, f"{len(classes)} classes")
        require(np.array_equal(np.unique(classes), classes), owner, "classes that are not unique and sorted")
        return learned | {"classes_": classes}
