"""Euclidean LEARN, and every other flat descent, as an instance of Algorithm 3."""

from __future__ import annotations

from typing import Any

from redescend import losses
from redescend.errors import DataError
from redescend.invex.algorithm import Clock, FirstOrder, Move
from redescend.invex.euclidean import Euclidean
from redescend.learners.descent import Descent
from redescend.numeric import Array, norm
from redescend.parameters import check_instance


class Flat(FirstOrder):
    """A learner of the flat case, unchanged: it makes every move itself, and the loop of Algorithm 3 looks on.

    A record is a pair (x, y).

    Examples
    --------
    >>> import numpy as np
    >>> import redescend as rd
    >>> learner = rd.Learn(1, loss=rd.losses.Squared(), a=1.0, b=1.0, step=rd.steps.Constant(0.25))
    >>> Flat(learner).update(([1.0], 2.0)) == rd.Round(loss=4.0, weight=1.0 / (1.0 + np.exp(4.0)))
    True
    """

    def __init__(self, learner: Descent) -> None:
        self.learner = check_instance("Flat", "learner", learner, Descent, "a flat descent, such as Learn(...)")
        self.space, self.gate = Euclidean(learner.dim), learner.gate
        self._clock = Clock("Flat", learner.gate, learner.step)
        if learner.rounds:
            raise DataError(
                f"The learner of Flat must not have played yet. Got one after {learner.rounds} rounds instead."
            )

    def __repr__(self) -> str:
        return f"Flat({self.learner})"

    @property
    def theta(self) -> Array:
        return self.learner.theta

    @property
    def loss(self) -> losses.Loss:
        return self.learner.loss

    def value(self, point: Array, record: Any) -> float:
        return self.loss.value(point, *record)

    def advance(self, record: Any) -> Move:
        x, y = record
        length = norm(self.loss.gradient(self.learner.theta, x, y))
        played = self.learner.update(x, y)
        rate = self._clock.size(played.weight, length)
        self._clock.tick(played.weight, length)
        normalised = self._clock.normalised
        return Move(played.loss, played.weight, length, rate * length if normalised else rate, normalised)
