"""LEARN as a loss for River's own models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from river import optim

from redescend import losses, transforms
from redescend.kernels.descent.prediction import slope
from redescend.numeric import choose
from redescend.parameters import bad_parameter
from redescend.river.labels import probability
from redescend.river.settings import loss_of


class LearnLoss(optim.losses.RegressionLoss, optim.losses.BinaryLoss):
    r"""h(φ(y, p)) with LEARN's h(f) = −a·log(exp(−f/a) + b), for River's own linear models: it lets outliers go.

    It is a loss of numbers or of labels, as φ is. Its gradient is h'(φ)·φ', the derivative of its value.

    Parameters
    ----------
    loss
        φ: "squared", "absolute", "logistic", "hinge", or a loss without l2, such as ``rd.losses.Pinball(0.9)``.
    a
        Softness of the switch, in units of φ.
    b
        Where it switches: at φ = −a·ln b.

    Examples
    --------
    >>> from river import linear_model
    >>> loss = LearnLoss("squared", a=1.0, b=0.01)
    >>> loss.gradient(0.0, 1.0), loss.gradient(0.0, 100.0)
    (1.94..., 0.0)
    >>> model = linear_model.LinearRegression(loss=loss)
    >>> model.learn_one({"a": 1.0}, 0.5)
    """

    def __init__(self, loss: str | losses.LinearLoss = "squared", a: float = 1.0, b: float = 0.1) -> None:
        self._phi = loss_of(type(self).__name__, loss, None)
        if self._phi.l2:
            raise bad_parameter(type(self).__name__, "loss", "a loss without l2, which River's models have", loss)
        self._learn = transforms.Learn(a, b)
        self._formula = self._phi.kind, self._phi.setting, self._learn.kind, *self._learn.settings
        self.loss = loss
        self.a, self.b = a, b

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"loss": "logistic"}

    def __call__(self, y_true: Any, y_pred: Any) -> Any:
        """The loss of a prediction, or of many."""
        return self._alike(y_pred, self._learn.value(self._phi.of_prediction(y_pred, self._target(y_true))))

    def gradient(self, y_true: Any, y_pred: Any) -> Any:
        """The derivative of the loss in the prediction."""
        if not isinstance(y_pred, np.ndarray):
            y = (1.0 if y_true > 0 else -1.0) if self._phi.margin else float(y_true)
            return slope(*self._formula, float(y_pred), y)
        target = self._target(y_true)
        return self._learn.weight(self._phi.of_prediction(y_pred, target)) * self._phi.slope(y_pred, target)

    def mean_func(self, y_pred: Any) -> Any:
        """What a raw prediction stands for: itself, or the probability of the label True."""
        return self._alike(y_pred, probability(y_pred)) if self._phi.margin else y_pred

    def _target(self, y_true: Any) -> Any:
        y = np.asarray(y_true, dtype=np.float64)
        return choose(y > 0.0, 1.0, -1.0) if self._phi.margin else y

    @staticmethod
    def _alike(given: Any, found: Any) -> Any:
        return found if isinstance(given, np.ndarray) else float(found)
