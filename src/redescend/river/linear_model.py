"""`RedescendingRegressor` and `RedescendingClassifier`, for River, and their base class."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from river import base
from river.utils import dataframe

from redescend import losses, steps, transforms
from redescend.engines.config import ModelConfig, Task
from redescend.exclusive import exclusive
from redescend.numeric import Array
from redescend.parameters import Order
from redescend.river import records
from redescend.river.dict_model import DictModel
from redescend.river.records import BinaryLabels, key_to_plain, plain_to_key
from redescend.state import Stateful, check_keys, corrupt_state


@dataclass(eq=False, repr=False)
class LinearModel(Stateful):
    """A linear model behind River's methods; subclasses define the encoding of targets."""

    TASK: ClassVar[Task]

    loss: str | losses.LinearLoss = "squared"
    order: Order = "auto"
    transform: transforms.Transform | None = None
    step: steps.Step | None = None
    fit_intercept: bool = True

    def __post_init__(self) -> None:
        chosen = {field.name: getattr(self, field.name) for field in fields(self)}
        self._model = DictModel(ModelConfig.from_parameters(type(self).__name__, self.TASK, **chosen))
        self._labels = BinaryLabels()
        self._y_name: str | None = None

    def _encode(self, y: Any) -> float:
        """A target as the number that is learned."""
        return y

    def _encode_many(self, y: Array, weights: list[float] | None) -> tuple[Array, BinaryLabels]:
        """Targets as numbers, and the labels known after them."""
        return records.read_numbers(y, weights), self._labels

    def _decode_many(self, predictions: Array) -> Any:
        """Decode predictions."""
        return predictions

    def score_one(self, x: dict[Any, Any], y: Any) -> float:
        """Return how anomalous a record is: one minus the probability that it is clean, see `redescend.belief`.

        Parameters
        ----------
        x : dict
            Features.
        y : float or label
            Target.

        Returns
        -------
        score : float
            Between 0 and 1; high for an outlier or a label that is probably flipped. With a transform, one minus its
            weight.

        Examples
        --------
        >>> from redescend.river import RedescendingRegressor
        >>> model = RedescendingRegressor()
        >>> for t in range(300):
        ...     model.learn_one({"a": t % 7}, 2.0 * (t % 7) + t % 3 + 99.0 * (t % 20 == 19))
        >>> model.score_one({"a": 3.0}, 7.0) < 0.1, model.score_one({"a": 3.0}, 99.0) > 0.9
        (True, True)
        """
        return 1.0 - self._model.clean_probability(x, self._encode(y))

    @exclusive
    def learn_many(self, X: Any, y: Any, w: Any = 1.0) -> None:
        """Learn from the rows of a frame in turn; from none of them if a number is not finite.

        Parameters
        ----------
        X : DataFrame
            A frame of pandas, or any other that River takes, with a column for each feature.
        y : Series
            Targets.
        w : float or Series
            How much each row counts. Rows of weight 0 are ignored.

        Examples
        --------
        >>> import pandas as pd
        >>> from redescend.river import RedescendingRegressor
        >>> model = RedescendingRegressor()
        >>> model.learn_many(pd.DataFrame({"a": [1.0, 2.0]}), pd.Series([2.0, 4.0]))
        """
        columns, values = self._model.frames.read(X)
        targets, name = records.read_series("y", y, len(values))
        weights = records.read_weights(w, len(values))
        numbers, labels = self._encode_many(targets, weights)
        self._model.learn_rows(columns, values, numbers, weights)
        self._labels, self._y_name = labels, name

    def predict_many(self, X: Any) -> Any:
        """Return a series of predictions for the rows of the frame `X`."""
        columns, values = self._model.frames.read(X)
        predictions = self._decode_many(self._model.predict_rows(columns, values))
        return dataframe.to_native_series(predictions, name=self._y_name, like=dataframe.into_frame(X))

    @property
    def weights(self) -> dict[Any, float]:
        """The coefficient of every feature learned from."""
        return self._model.weights

    @property
    def intercept(self) -> float:
        """The prediction where every feature is 0."""
        return self._model.intercept

    def state(self) -> dict[str, Any]:
        return {"linear": self._model.state(), "labels": self._labels.state(), "target": key_to_plain(self._y_name)}

    def restore(self, state: dict[str, Any]) -> None:
        owner = type(self).__name__
        check_keys(state, ("linear", "labels", "target"), owner)
        labels = BinaryLabels()
        try:
            labels.restore(state["labels"])
        except (TypeError, ValueError):
            raise corrupt_state(owner, "invalid labels") from None
        self._model.restore(state["linear"])
        self._labels, self._y_name = labels, plain_to_key(state["target"])


class RedescendingRegressor(LinearModel, base.MiniBatchRegressor):
    r"""Linear regression that outliers cannot move.

    There is nothing to tune: the scale of the noise, the step size and the share of outliers are estimated from the
    stream, as in `redescend.SelfTuning`. With a `transform`, the model is plain gradient descent on that robust loss
    with that `step`: faster, but tuned by you.

    Parameters
    ----------
    loss : str or LinearLoss
        "squared", "absolute", "epsilon_insensitive", "pinball", or a loss such as ``rd.losses.Pinball(0.9)``. The l2
        of a loss spares the intercept unless a transform is given.
    order : 'auto', 1 or 2
        The order of the self-tuning learner. 2: O(d²) per record instead of O(d), but fewer records to learn from.
        'auto': 2 while there are at most 150 features, otherwise 1.
    transform : Transform, optional
        A fixed robust transform, such as ``rd.transforms.Huber(1.0)``. Without one, the model tunes itself.
    step : Step, optional
        The step that goes with the transform, such as ``rd.steps.Anytime()``; ``rd.steps.Constant(0.01)`` by default.
    fit_intercept : bool
        Whether to learn an intercept.

    Notes
    -----
    A feature that is missing from a record is 0, and new features may appear at any time. What was learned before does
    not change then.

    `learn_many` gives the same model as `learn_one` row by row. A record with a number that is not finite raises an
    error and leaves the model unchanged; an absurd one, such as 1e308, is counted but moves nothing.

    Examples
    --------
    >>> model = RedescendingRegressor()
    >>> for t in range(200):
    ...     x = {"a": float(t % 7), "b": float(t % 3)}
    ...     wrong = t % 10 == 9
    ...     model.learn_one(x, 1000.0 if wrong else 2 * x["a"] - x["b"] + 0.5)
    >>> round(model.predict_one({"a": 3.0, "b": 1.0}), 2)
    5.5
    """

    TASK = "regression"

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"order": 2}
        yield {"transform": transforms.Learn(a=2.0, b=0.1), "step": steps.AdaptiveNorm()}

    @exclusive
    def learn_one(self, x: dict[Any, Any], y: float, w: float = 1.0) -> None:
        """Learn from one record.

        Parameters
        ----------
        x : dict
            Features; missing ones are 0.
        y : float
            Target.
        w : float
            How much the record counts: steps are w times as long, and a model that tunes itself divides the variance
            of its noise by w. 0 changes nothing.

        Examples
        --------
        >>> model = RedescendingRegressor()
        >>> model.learn_one({"a": 1.0}, 2.0)
        """
        self._model.learn(x, y, w)

    def predict_one(self, x: dict[Any, Any]) -> float:
        """Predict the target of the record `x`; unknown features are ignored."""
        return self._model.predict(x)

    def predict_interval_one(self, x: dict[Any, Any], level: float = 0.9) -> tuple[float, float]:
        """Predict the interval in which a share of clean targets lies; wrong ones need not.

        Parameters
        ----------
        x : dict
            Features.
        level : float
            The share, between 0 and 1.

        Returns
        -------
        low, high : float
            The ends of the interval. Only without a transform.

        Examples
        --------
        >>> model = RedescendingRegressor()
        >>> for t in range(300):
        ...     model.learn_one({"a": t % 7}, 2.0 * (t % 7) + t % 3)
        >>> low, high = model.predict_interval_one({"a": 3.0})
        >>> low < 7.0 < high
        True
        """
        return self._model.predict_interval(x, level)


@dataclass(eq=False, repr=False)
class RedescendingClassifier(LinearModel, base.MiniBatchClassifier):
    r"""A linear classifier that flipped labels cannot move.

    For two labels of any kind: booleans, strings or numbers. For more, wrap it in River's
    ``multiclass.OneVsRestClassifier``.

    Parameters
    ----------
    loss : str or LinearLoss
        "logistic", "hinge", or a loss for labels such as ``rd.losses.Logistic(l2=1e-4)``.
    order, transform, step, fit_intercept
        As in `RedescendingRegressor`.

    Notes
    -----
    The probability of a label is calibrated: it is that of the true label, and flipped labels do not pull it to ½.
    With a transform it is 1/(1 + exp(−margin)).

    Examples
    --------
    >>> import math
    >>> model = RedescendingClassifier()
    >>> for t in range(300):
    ...     x = {"a": math.sin(t), "b": math.cos(3 * t)}
    ...     flipped = t % 10 == 9
    ...     model.learn_one(x, "spam" if (x["a"] > x["b"]) != flipped else "ham")
    >>> model.predict_one({"a": 1.0, "b": -1.0}), model.predict_one({"a": -1.0, "b": 1.0})
    ('spam', 'ham')
    >>> model.score_one({"a": 1.0, "b": -1.0}, "ham") > 0.5
    True
    """

    TASK = "classification"

    loss: str | losses.LinearLoss = "logistic"

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"loss": "hinge", "order": 2}
        yield {"transform": transforms.Learn(a=2.0, b=0.1), "step": steps.AdaptiveNorm()}

    def _encode(self, y: Any) -> float:
        return self._labels.sign(y)

    def _encode_many(self, y: Array, weights: list[float] | None) -> tuple[Array, BinaryLabels]:
        labels, signs = deepcopy(self._labels), np.zeros(len(y))
        for row, label in enumerate(y.tolist()):
            if weights is None or weights[row] > 0.0:
                signs[row] = labels.sign(label)
                labels.add(label)
        return signs, labels

    def _decode_many(self, predictions: Array) -> list[Any]:
        both = self._labels.negative_and_positive
        return [both[margin > 0.0] for margin in predictions.tolist()]

    @exclusive
    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn from the record `x` with label `y` and weight `w`; see `RedescendingRegressor.learn_one`."""
        counts = w != 0.0
        self._model.learn(x, self._labels.sign(y) if counts else 0.0, w)
        if counts:
            self._labels.add(y)

    def predict_one(self, x: dict[Any, Any]) -> Any:
        """Return the more probable label of the record `x`."""
        return self._labels.negative_and_positive[self._model.predict(x) > 0.0]

    def predict_proba_one(self, x: dict[Any, Any]) -> dict[Any, float]:
        """Return the probability of each label of the record `x`; False and True until others have been learned."""
        shares = self._labels.probabilities(self._model.predict_shares(np.array([self._model.predict(x)])))
        return {label: float(share[0]) for label, share in shares.items()}

    def predict_proba_many(self, X: Any) -> Any:
        """Return a frame of the probabilities of the rows of the frame `X`, with a column for each label."""
        columns, values = self._model.frames.read(X)
        shares = self._labels.probabilities(self._model.predict_shares(self._model.predict_rows(columns, values)))
        return dataframe.to_native_frame(shares, like=dataframe.into_frame(X))
