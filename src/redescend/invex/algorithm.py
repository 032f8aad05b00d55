r"""A first-order algorithm 𝒜(θ_t, ∇g_t(θ_t), α_t, ζ_t): what Algorithm 3 plays.

`FirstOrder` is what the loop in `game` asks for. `ManifoldDescent` is the sentence of this package on a manifold,

    θ ← Π( Exp_θ( −α_t·w_t·grad f_t(θ) ) ),

with the gates and steps of the flat case; `Flat` lends a flat learner to the loop as it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from redescend import gates, steps
from redescend.errors import DataError, DivergenceError, UntoldError
from redescend.invex.losses import Loss
from redescend.invex.space import Everywhere, GeodesicBall, Space
from redescend.learners.base import Round
from redescend.numeric import LARGEST, Array
from redescend.parameters import check_instance


class Move(NamedTuple):
    """What a round did: f(θ_t), the weight w_t, ‖grad f(θ_t)‖, and the step α_t, divided or not by that length."""

    loss: float
    weight: float
    length: float
    step: float
    normalised: bool = False


class FirstOrder(ABC):
    """Plays θ, sees a record, and moves along the gradient of its loss."""

    space: Space
    gate: gates.Gate

    @property
    @abstractmethod
    def theta(self) -> Array:
        """The action it plays now; a copy."""

    @abstractmethod
    def advance(self, record: Any) -> Move:
        """Learn from one record, and say what the theorem needs to know of it."""

    @abstractmethod
    def value(self, point: Array, record: Any) -> float:
        """f of this record at a point."""

    def slack(self, length: float) -> float:
        """c in f(θ) − f(u) ≤ c·⟨−grad f(θ), Log_θ(u)⟩, where the gradient has this length."""
        return 1.0

    def update(self, record: Any) -> Round:
        """Learn from one record, and say what the action lost on it and how much of it was believed."""
        move = self.advance(record)
        return Round(move.loss, move.weight)


class Clock:
    """Weighs rounds and sets their steps by the gates and steps of the flat case."""

    def __init__(self, owner: str, gate: gates.Gate, step: steps.Step) -> None:
        self.gate = check_instance(owner, "gate", gate, gates.Gate, "a gate, such as Always()")
        self.step = check_instance(owner, "step", step, steps.Step, "a step, such as Anytime()")
        self.memory = gate.fresh_memory()
        self.rounds, self.travelled = 0, 0.0

    @property
    def normalised(self) -> bool:
        return self.step.settings[1] != 0.0

    def weigh(self, f: float, length: float) -> float:
        """The weight of the round that comes."""
        weight = weight_of(self.gate, f, self.memory, self.rounds, length)
        if np.isnan(weight):
            raise UntoldError(f"{self.gate} knows nothing of round {self.rounds + 1}; tell it of every round.")
        return weight

    def size(self, weight: float, length: float) -> float:
        """The α_t by which weight × gradient would be multiplied in the round that comes."""
        travelled = float(np.hypot(self.travelled, weight * length))
        scale, normalised = self.step.settings
        return float(steps.size(self.step.kind, scale, normalised, self.rounds + 1.0, travelled, length))

    def tick(self, weight: float, length: float) -> None:
        """The round has been played."""
        gates.remember(self.gate.kind, self.memory, min(length, LARGEST))
        self.travelled = float(np.hypot(self.travelled, weight * length))
        self.rounds += 1


class ManifoldDescent(FirstOrder):
    r"""Riemannian online gradient descent behind a gate.

    Parameters
    ----------
    loss : Loss
        A loss over a space, such as ``SquaredDistance(SPD(5))``.
    step : Step
        ``Anytime(D/(L·√ζ))`` is D/(L√(ζt)), ``StronglyConvex(1.0)`` the running mean, ``Normalised(Constant(α))``
        normalised descent for weakly pseudo-convex losses.
    gate : Gate
        How much of a round is believed; all of it unless given. ``Robust(transforms.Learn(a, b))`` is LEARN.
    domain : GeodesicBall, optional
        Where actions may be; everywhere unless given.
    start : point, optional
        The first action; the origin of the space, or the centre of the domain, unless given.

    Examples
    --------
    >>> from redescend import invex, steps
    >>> learner = ManifoldDescent(invex.SquaredDistance(invex.SPD(2)), step=steps.StronglyConvex(1.0))
    >>> for matrix in (np.diag([1.0, 4.0]), np.diag([16.0, 1.0])):
    ...     _ = learner.update(matrix)
    >>> learner.theta.round(12)
    array([[4., 0.],
           [0., 2.]])

    References
    ----------
    Wang, Tu, Hong, Mhammedi and Shi, Online optimization over Riemannian manifolds, JMLR 2023.
    """

    def __init__(
        self,
        loss: Loss,
        *,
        step: steps.Step,
        gate: gates.Gate = gates.Always(),  # noqa: B008 -- frozen
        domain: GeodesicBall | None = None,
        start: Any = None,
    ) -> None:
        name = type(self).__name__
        self.loss = check_instance(name, "loss", loss, Loss, "a loss over a space, such as SquaredDistance(SPD(5))")
        if domain is not None:
            check_instance(name, "domain", domain, GeodesicBall, "a GeodesicBall")
        self.space, self.gate, self.step = loss.space, gate, step
        self.domain: GeodesicBall | Everywhere = Everywhere() if domain is None else domain
        self._clock = Clock(name, gate, step)
        middle = self.space.origin if domain is None else domain.centre.copy()
        self._theta = self.domain.project(middle if start is None else self.space.check("start", start))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.loss}, {self.gate}, {self.step}, {self.domain})"

    @property
    def theta(self) -> Array:
        return self._theta.copy()

    @property
    def rounds(self) -> int:
        return self._clock.rounds

    def value(self, point: Array, record: Any) -> float:
        return self.loss.value(point, self.loss.check(record))

    def slack(self, length: float) -> float:
        return self.loss.slack(length)

    def advance(self, record: Any) -> Move:
        f, gradient = self.loss.at(self._theta, self.loss.check(record))
        length = self.space.norm(self._theta, gradient)
        weight = self._clock.weigh(f, length)
        rate = self._clock.size(weight, length)
        if weight > 0.0 and length > 0.0:
            with np.errstate(all="ignore"):
                moved = self.space.exp(self._theta, (-rate * weight) * gradient)
            self._theta = self.domain.project(self._sound(moved))
        self._clock.tick(weight, length)
        normalised = self._clock.normalised
        return Move(f, weight, length, rate * length if normalised else rate, normalised)

    def _sound(self, moved: Array) -> Array:
        try:
            return self.space.check("The action", moved)
        except DataError as error:
            raise DivergenceError(
                f"Round {self.rounds + 1}: the action would leave what floats can hold, so the last is kept. {error} "
                "Try a smaller step, or a robust gate."
            ) from None

    def state(self) -> dict[str, Any]:
        clock = self._clock
        return {
            "learner": repr(self),
            "theta": self.theta,
            "memory": clock.memory.copy(),
            "rounds": clock.rounds,
            "travelled": clock.travelled,
        }

    def restore(self, state: dict[str, Any]) -> None:
        check_state(self, state, self.state())
        self._theta = self.space.check("The 'theta' of the state", state["theta"])
        self._clock.memory = np.array(state["memory"], dtype=np.float64)
        self._clock.rounds, self._clock.travelled = int(state["rounds"]), float(state["travelled"])


def weight_of(gate: gates.Gate, f: float, memory: Array | None = None, t: int = 0, length: float = 0.0) -> float:
    """The gate's weight of a round with loss f."""
    kind, c, b = gate.settings
    memory = gate.fresh_memory() if memory is None else memory
    with np.errstate(over="ignore"):
        return float(gates.weigh(gate.kind, kind, c, b, memory, t, np.float64(f), min(length, LARGEST)))


def check_state(owner: object, state: Any, expected: dict[str, Any]) -> None:
    """Raise unless the state has the keys, the shapes and the owner that are expected, and finite numbers."""
    if not isinstance(state, dict) or state.keys() != expected.keys():
        raise DataError(f"The state of {owner!r} must be a dict with the keys {', '.join(expected)}.")
    if state["learner"] != expected["learner"]:
        raise DataError(f"The state belongs to {state['learner']}, not to {owner!r}; make a learner like that one.")
    for name, value in expected.items():
        if isinstance(value, np.ndarray | int | float):
            given = np.asarray(state[name])
            if given.shape != np.shape(value) or given.dtype.kind not in "fiu" or not np.isfinite(given).all():
                raise DataError(f"The '{name}' of the state of {owner!r} is misshapen or not finite.")
