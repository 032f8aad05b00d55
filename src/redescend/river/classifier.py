"""Classification that flipped labels cannot move, for River."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Literal

import numpy as np
from river import base
from river.utils import dataframe

from redescend import losses, steps, transforms
from redescend.river import records
from redescend.river.labels import Labels
from redescend.river.linear import Linear
from redescend.river.model import Model
from redescend.river.settings import checked


class RedescendingClassifier(Model, base.MiniBatchClassifier):
    r"""A linear classifier in which a record counts as much as its label is believed.

    For two labels of any kind: bools, texts or numbers. For more, put it in River's ``multiclass.OneVsRestClassifier``.
    The parameters are those of `RedescendingRegressor`.

    Parameters
    ----------
    loss
        What is paid: "logistic", "hinge", or a loss of labels such as ``rd.losses.Logistic(l2=1e-4)``.
    order
        1, or 2 for a second-order follower among those that the model plays: O(d²) a record instead of O(d).
    transform
        A robust transform with constants of your own; none lets the model tune itself.
    step
        The step that goes with the transform; 0.01 unless given.
    fit_intercept
        Whether there is a constant feature.

    Notes
    -----
    The probability of a label is 1/(1 + exp(−margin)). For the hinge it grows with the margin as it should, but it is
    no frequency.

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

    def __init__(
        self,
        loss: str | losses.LinearLoss = "logistic",
        order: Literal[1, 2] = 1,
        transform: transforms.Transform | None = None,
        step: steps.Step | None = None,
        fit_intercept: bool = True,
    ) -> None:
        self.loss = loss
        self.order = order
        self.transform = transform
        self.step = step
        self.fit_intercept = fit_intercept
        self._linear = Linear(checked(type(self).__name__, True, loss, order, transform, step, fit_intercept))
        self._labels = Labels()
        self._y_name: str | None = None

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"loss": "hinge", "order": 2}
        yield {"transform": transforms.Learn(a=2.0, b=0.1), "step": steps.AdaptiveNorm()}

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn from one record; w is how often it counts, as in `RedescendingRegressor.learn_one`."""
        counts = w != 0.0
        self._linear.learn(x, self._labels.sign(y) if counts else 0.0, w)
        if counts:
            self._labels.keep(y)

    def predict_proba_one(self, x: dict[Any, Any]) -> dict[Any, float]:
        """The probability of each label; of False and True until others have been seen."""
        shares = self._labels.shares(self._linear.predict(x))
        return {label: float(share) for label, share in shares.items()}

    def predict_one(self, x: dict[Any, Any]) -> Any:
        """The more probable label."""
        return self._labels.ends[self._linear.predict(x) > 0.0]

    def score_one(self, x: dict[Any, Any], y: Any) -> float:
        """How anomalous a record is, from 0 to 1: high for a label that looks flipped."""
        return 1.0 - self._linear.judge(x, self._labels.sign(y))

    def learn_many(self, X: Any, y: Any, w: Any = 1.0) -> None:
        """Learn from the rows of a frame, one after the other; from none if a number in it is not finite."""
        columns, values = self._linear.frames.read(X)
        targets, name = records.series("y", y, len(values))
        weights = records.weights(w, len(values))
        labels = deepcopy(self._labels)
        signs = np.zeros(len(values))
        for row, label in enumerate(targets.tolist()):
            if weights is None or weights[row] > 0.0:
                signs[row] = labels.sign(label)
                labels.keep(label)
        self._linear.learn_table(columns, values, signs, weights)
        self._labels, self._y_name = labels, name

    def predict_proba_many(self, X: Any) -> Any:
        """The probability of each label for every row of a frame, as a frame."""
        columns, values = self._linear.frames.read(X)
        shares = self._labels.shares(self._linear.predict_table(columns, values))
        return dataframe.to_native_frame(shares, like=dataframe.into_frame(X))

    def predict_many(self, X: Any) -> Any:
        """The more probable label of every row of a frame, as a series."""
        columns, values = self._linear.frames.read(X)
        margins, ends = self._linear.predict_table(columns, values), self._labels.ends
        labels = [ends[margin > 0.0] for margin in margins.tolist()]
        return dataframe.to_native_series(labels, name=self._y_name, like=dataframe.into_frame(X))
