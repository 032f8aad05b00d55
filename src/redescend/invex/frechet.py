r"""The Fréchet mean of points of a space, all at once or one by one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from redescend import gates, steps
from redescend.errors import DataError
from redescend.invex.algorithm import Clock, FirstOrder, Move, check_state
from redescend.invex.losses import SquaredDistance
from redescend.invex.space import Space
from redescend.numeric import Array

ROUNDS, AT_REST = 1_000, 1e-13


def frechet_mean(space: Space, points: Iterable[Any]) -> Array:
    r"""The point with the least mean squared distance, by descent with the step 1/ζ that cannot overshoot.

    Examples
    --------
    >>> from redescend import invex
    >>> frechet_mean(invex.SPD(1), [[[1.0]], [[4.0]], [[16.0]]]).round(12)
    array([[4.]])
    """
    loss = SquaredDistance(space)
    stack = loss.check(list(points))
    mean = stack[0]
    for _ in range(ROUNDS):
        pulls = [space.log(mean, point) for point in stack]
        widest = max(space.norm(mean, pull) for pull in pulls)
        pull = sum(pulls, np.zeros(space.shape)) / len(pulls)
        if space.norm(mean, pull) <= AT_REST * widest:
            break
        mean = space.exp(mean, pull / space.distortion(widest))
    return mean


class FrechetMean(FirstOrder):
    r"""The running Fréchet mean behind a gate: θ goes w/Σw of the way to every record.

    With weights of 1 these are the steps 1/(μt) of a strongly convex loss, μ = 1.

    Parameters
    ----------
    space : Space
        Where the records are, such as ``SPD(5)``.
    gate : Gate
        Sees f = Δ²/2. ``Always()`` unless given; ``Robust(transforms.Learn(a, b))`` is LEARN with constants, ``Oracle``
        a yardstick. `RobustFrechetMean` needs none.
    start : point, optional
        What is played before the first record, and has no weight; the origin unless given.

    Examples
    --------
    >>> from redescend import invex
    >>> mean = FrechetMean(invex.SPD(1))
    >>> [mean.update([[x]]).weight for x in (1.0, 4.0, 16.0)]
    [1.0, 1.0, 1.0]
    >>> mean.theta.round(12)
    array([[4.]])
    """

    def __init__(self, space: Space, *, gate: gates.Gate = gates.Always(), start: Any = None) -> None:  # noqa: B008
        self.loss = SquaredDistance(space)
        self.space, self.gate = space, gate
        self._clock = Clock(type(self).__name__, gate, steps.StronglyConvex(1.0))
        self._theta = space.origin if start is None else space.check("start", start)
        self._believed = 0.0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.space}, {self.gate})"

    @property
    def theta(self) -> Array:
        return self._theta.copy()

    @property
    def rounds(self) -> int:
        return self._clock.rounds

    def value(self, point: Array, record: Any) -> float:
        return self.loss.value(point, self.space.check("The record", record))

    def advance(self, record: Any) -> Move:
        point = self.space.check("The record", record)
        distance, at = self.space.geodesic(self._theta, point)
        f = 0.5 * distance**2
        weight = self._clock.weigh(f, distance)
        believed = self._believed + weight
        if weight > 0.0 and distance > 0.0:
            self._theta = at(weight / believed)
        self._believed = believed
        self._clock.tick(weight, distance)
        return Move(f, weight, distance, 1.0 / believed if believed > 0.0 else 0.0)

    def state(self) -> dict[str, Any]:
        return {
            "learner": repr(self),
            "theta": self.theta,
            "memory": self._clock.memory.copy(),
            "rounds": self._clock.rounds,
            "believed": self._believed,
        }

    def restore(self, state: dict[str, Any]) -> None:
        check_state(self, state, self.state())
        if state["believed"] < 0.0:
            raise DataError(f"The 'believed' of the state of {self!r} must not be negative.")
        self._theta = self.space.check("The 'theta' of the state", state["theta"])
        self._clock.memory = np.array(state["memory"], dtype=np.float64)
        self._clock.rounds, self._believed = int(state["rounds"]), float(state["believed"])
