"""`LearnLoss`: LEARN as a loss for River's own models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from river import optim
from scipy.special import expit

from redescend import losses, transforms
from redescend.engines.config import check_loss
from redescend.kernels.descent import robust_slope
from redescend.numeric import choose
from redescend.parameters import bad_parameter


class LearnLoss(optim.losses.RegressionLoss, optim.losses.BinaryLoss):
    r"""The robust loss h(φ(y, p)) with h(f) = −a·log(exp(−f/a) + b), for River's own linear models.

    It is a loss for regression or for classification, like φ. Its gradient is h'(φ)·φ'.

    Parameters
    ----------
    loss : str or LinearLoss
        φ: "squared", "absolute", "logistic", "hinge", or a loss without l2, such as ``rd.losses.Pinball(0.9)``.
    a : float
        Softness of the switch, in units of φ.
    b : float
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
        self._phi = check_loss(type(self).__name__, loss)
        if self._phi.l2:
            raise bad_parameter(type(self).__name__, "loss", "a loss without l2; set the l2 of River's model", loss)
        self._learn = transforms.Learn(a, b)
        self._formula = self._phi.kind, self._phi.setting, self._learn.kind, *self._learn.settings
        self.loss = loss
        self.a, self.b = a, b

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"loss": "logistic"}

    def __call__(self, y_true: Any, y_pred: Any) -> Any:
        """Return the loss of one prediction `y_pred` of the target `y_true`, or of an array of them."""
        return self._match_type(y_pred, self._learn.value(self._phi.of_prediction(y_pred, self._encode_target(y_true))))

    def gradient(self, y_true: Any, y_pred: Any) -> Any:
        """Return the derivative of the loss of the target `y_true` with respect to the prediction `y_pred`."""
        if not isinstance(y_pred, np.ndarray):
            y = (1.0 if y_true > 0 else -1.0) if self._phi.margin else float(y_true)
            return robust_slope(*self._formula, float(y_pred), y)
        target = self._encode_target(y_true)
        return self._learn.weight(self._phi.of_prediction(y_pred, target)) * self._phi.slope(y_pred, target)

    def mean_func(self, y_pred: Any) -> Any:
        """Return what a raw prediction `y_pred` means: itself, or the probability of the label True."""
        return self._match_type(y_pred, expit(y_pred)) if self._phi.margin else y_pred

    def _encode_target(self, y_true: Any) -> Any:
        y = np.asarray(y_true, dtype=np.float64)
        return choose(y > 0.0, 1.0, -1.0) if self._phi.margin else y

    @staticmethod
    def _match_type(y_pred: Any, result: Any) -> Any:
        return result if isinstance(y_pred, np.ndarray) else float(result)
