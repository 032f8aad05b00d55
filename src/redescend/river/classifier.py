"""`RedescendingClassifier`, for River."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from river import base
from river.utils import dataframe

from redescend import losses, steps, transforms
from redescend.exclusive import exclusive
from redescend.numeric import Array
from redescend.river.linear_model import LinearModel
from redescend.river.records import BinaryLabels


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
