r"""The squared loss on clean rounds: which bounds are possible, and which are not.

`forecast` attains a regret of order Y²·(d·ln T + k) with k corrupted rounds, if the range Y of clean targets is known;
k is not needed, and the comparator may be anywhere. docs/theory.md has the proof, shows that Y²·k is necessary, and
that no algorithm has such a bound without Y. `paid_loss` compares a game with the bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from redescend.errors import DataError
from redescend.game import Stream
from redescend.learners.learner import float_array
from redescend.numeric import Array
from redescend.parameters import NONNEGATIVE, POSITIVE, check, check_instance


def forecast(stream: Stream, bound: float, l2: float = 1.0) -> Array:
    r"""Predict every target by the forecaster of Vovk, Azoury and Warmuth, which sees targets clipped at ±bound.

    With A_t = l2·I + Σ_{s≤t} x_s·x_s', which includes the record to predict, the prediction of round t is
    x_t'·A_t⁻¹·Σ_{s<t} x_s·clip(y_s), clipped as well.

    Parameters
    ----------
    stream : Stream
        The stream to predict, one record after another.
    bound : float
        Y, at least as large as any clean target.
    l2 : float, default 1.0
        The ridge penalty.

    Returns
    -------
    array
        The prediction of every round before its target was seen.

    Examples
    --------
    >>> forecast(Stream([[1.0], [1.0], [1.0]], [1.0, 1.0, 1.0]), bound=1.0, l2=1.0).round(3)
    array([0.   , 0.333, 0.5  ])
    """
    check_instance("forecast", "stream", stream, Stream, "a Stream")
    bound, l2 = check("forecast", "bound", bound, NONNEGATIVE), check("forecast", "l2", l2, POSITIVE)
    inverse, moment = np.eye(stream.dim) / l2, np.zeros(stream.dim)
    predictions = np.empty(len(stream))
    for t, (x, y) in enumerate(zip(stream.X.astype(np.float64), stream.y, strict=True)):
        spread = inverse @ x
        inverse -= np.outer(spread, spread / (1.0 + x @ spread))
        predictions[t] = np.clip(x @ (inverse @ moment), -bound, bound)
        moment += np.clip(y, -bound, bound) * x
    return predictions


@dataclass(frozen=True)
class PaidLoss:
    r"""Regret of the squared loss on the clean rounds of a game, and the bound of `forecast` on it.

    Attributes
    ----------
    measured : float
        Σ over the clean rounds of (p_t − y_t)² − (⟨x_t, u⟩ − y_t)².
    comparator : float
        l2·‖u‖². u is the ridge regression on the clean rounds.
    information : float
        Y²·ln det(I + Σ x·x'/l2): what learning costs.
    outliers : float
        Σ over the corrupted rounds of (|⟨x_t, u⟩| + Y)²: at most 4·Y² each if u predicts within ±Y there.

    Examples
    --------
    >>> PaidLoss(measured=5.0, comparator=1.0, information=4.0, outliers=2.0).value
    7.0
    """

    measured: float
    comparator: float
    information: float
    outliers: float

    @property
    def value(self) -> float:
        """The bound: comparator + information + outliers."""
        return self.comparator + self.information + self.outliers

    @property
    def holds(self) -> bool:
        """Whether measured ≤ value, up to rounding."""
        return self.measured <= self.value + 1e-9 * (abs(self.measured) + self.value)


def paid_loss(predictions: Any, stream: Stream, bound: float | None = None, l2: float = 1.0) -> PaidLoss:
    r"""Compare the squared loss paid on clean rounds with the bound of `forecast`.

    For the predictions of `forecast` it is a theorem. For those of any other learner, such as `SelfTuning`, it is a
    measurement: without a known range of clean targets, no learner has such a bound.

    Parameters
    ----------
    predictions : array
        The prediction of every round, such as ``play(...).predictions``.
    stream : Stream
        The stream that was played.
    bound : float, optional
        Y. Default: the largest absolute target of the clean rounds.
    l2 : float, default 1.0
        The ridge penalty of the comparator and of `forecast`.

    Returns
    -------
    PaidLoss
        The regret, and the parts of the bound.

    Examples
    --------
    >>> import redescend as rd
    >>> stream = rd.adversaries.ShiftResponse(1e3).corrupt(rd.streams.ridge(500, seed=0, dim=3), k=100, seed=1)
    >>> paid_loss(forecast(stream, bound=10.0), stream, bound=10.0).holds
    True
    >>> trace = rd.play(rd.SelfTuning(3, loss=rd.losses.Squared()), stream)
    >>> paid_loss(trace.predictions, stream).holds
    True
    """
    check_instance("paid_loss", "stream", stream, Stream, "a Stream")
    played = float_array("predictions", predictions, 1)
    if len(played) != len(stream):
        raise DataError(f"predictions must have one value for each of {len(stream)} rounds. Got {len(played)} instead.")
    X, clean = stream.X.astype(np.float64), stream.clean
    largest = float(np.abs(stream.y[clean]).max(initial=0.0))
    Y = largest if bound is None else check("paid_loss", "bound", bound, NONNEGATIVE)
    if largest > Y:
        raise DataError(f"bound must be at least the largest clean target, {largest}. Got {Y} instead.")
    l2 = check("paid_loss", "l2", l2, POSITIVE)
    eye = np.eye(stream.dim)
    u = np.linalg.solve(l2 * eye + X[clean].T @ X[clean], X[clean].T @ stream.y[clean])
    fitted = X @ u
    regret = (played - stream.y) ** 2 - (fitted - stream.y) ** 2
    return PaidLoss(
        measured=float(regret[clean].sum()),
        comparator=float(l2 * u @ u),
        information=float(Y * Y * np.linalg.slogdet(eye + X.T @ X / l2)[1]),
        outliers=float(((np.abs(fitted[~clean]) + Y) ** 2).sum()),
    )
