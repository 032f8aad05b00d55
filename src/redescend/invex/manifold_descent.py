r"""First-order algorithms 𝒜(θ_t, ∇g_t(θ_t), α_t, ζ_t): the players of Algorithm 3.

`FirstOrder` is the interface that the loop in `game` uses. `ManifoldDescent` is gated gradient descent on a manifold,

    θ ← Π( Exp_θ( −α_t·w_t·grad f_t(θ) ) ),

with the gates and steps of the flat case. `Flat` wraps a flat learner without changing it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from redescend import gates, losses, steps
from redescend.errors import DataError, DivergenceError, MissingLabelError
from redescend.invex.losses import InvexLoss
from redescend.invex.space import Euclidean, GeodesicBall, Space
from redescend.learners.descent import Descent
from redescend.learners.learner import Round, read_state
from redescend.numeric import LARGEST, Array, norm
from redescend.parameters import check_instance
from redescend.state import ArraySpec, Stateful


class Move(NamedTuple):
    """The quantities of a round in the theorem.

    Parameters
    ----------
    loss : float
        f(θ_t).
    weight : float
        The gate's weight w_t.
    length : float
        ‖grad f(θ_t)‖.
    step : float
        α_t, before any division by the gradient's length.
    normalised : bool
        Whether the step is divided by the gradient's length.

    Examples
    --------
    >>> from redescend import invex
    >>> invex.FrechetMean(invex.Euclidean(1)).advance([2.0])
    Move(loss=2.0, weight=1.0, length=2.0, step=1.0, normalised=False)
    """

    loss: float
    weight: float
    length: float
    step: float
    normalised: bool = False


class FirstOrder(ABC):
    """Interface of an algorithm that plays θ, observes a record, and moves along the gradient of its loss.

    Attributes
    ----------
    space : Space
        Where actions live.
    gate : Gate
        Weighs the rounds.
    """

    space: Space
    gate: gates.Gate

    @property
    @abstractmethod
    def theta(self) -> Array:
        """A copy of the current action."""

    @abstractmethod
    def advance(self, record: Any) -> Move:
        """Learn from one record and return the quantities of the theorem."""

    @abstractmethod
    def value(self, point: Array, record: Any) -> float:
        """Return f of this record at a point."""

    def slack(self, length: float) -> float:
        """Return c in f(θ) − f(u) ≤ c·⟨−grad f(θ), Log_θ(u)⟩ where the gradient has this length."""
        return 1.0

    def update(self, record: Any) -> Round:
        """Learn from one record.

        Parameters
        ----------
        record : array_like
            A record of the loss, such as a point of the space.

        Returns
        -------
        Round
            The loss of the action on this record, and the weight of the record.
        """
        move = self.advance(record)
        return Round(move.loss, move.weight)


class Schedule:
    """Weighs rounds and sets their steps with the gates and steps of the flat case."""

    def __init__(self, owner: str, gate: gates.Gate, step: steps.Step) -> None:
        self.gate = check_instance(owner, "gate", gate, gates.Gate, "a gate, such as Always()")
        self.step = check_instance(owner, "step", step, steps.Step, "a step, such as Anytime()")
        self.memory = gate.fresh_memory()
        self.rounds, self.travelled = 0, 0.0

    def weigh(self, f: float, length: float) -> float:
        weight = compute_weight(self.gate, f, self.memory, self.rounds, length)
        if np.isnan(weight):
            raise MissingLabelError(f"{self.gate} has no label for round {self.rounds + 1}.")
        return weight

    def size(self, weight: float, length: float) -> float:
        """The factor α_t of weight × gradient in the next round."""
        travelled = float(np.hypot(self.travelled, weight * length))
        scale, normalised = self.step.settings
        return float(steps.size(self.step.kind, scale, normalised, self.rounds + 1.0, travelled, length))

    def finish(self, f: float, weight: float, length: float, rate: float) -> Move:
        """Count the round that was played with this rate."""
        gates.remember(self.gate.kind, self.memory, min(length, LARGEST))
        self.travelled = float(np.hypot(self.travelled, weight * length))
        self.rounds += 1
        normalised = self.step.settings[1] != 0.0
        return Move(f, weight, length, rate * length if normalised else rate, normalised)


class GatedLearner(FirstOrder, Stateful):
    """A first-order algorithm with one action, a loss over its space, a gate and a step."""

    def __init__(self, loss: InvexLoss, gate: gates.Gate, step: steps.Step, theta: Array) -> None:
        self.loss, self.space, self.gate, self.step = loss, loss.space, gate, step
        self._schedule = Schedule(type(self).__name__, gate, step)
        self._theta = theta

    @property
    def theta(self) -> Array:
        return self._theta.copy()

    @property
    def rounds(self) -> int:
        """Number of records learned so far."""
        return self._schedule.rounds

    def value(self, point: Array, record: Any) -> float:
        return self.loss.value(point, self.loss.check(record))

    def slack(self, length: float) -> float:
        return self.loss.slack(length)

    def state(self) -> dict[str, Any]:
        memory, rounds, travelled = self._schedule.memory.copy(), self._schedule.rounds, self._schedule.travelled
        return {"learner": repr(self), "theta": self.theta, "memory": memory, "rounds": rounds, "travelled": travelled}

    def restore(self, state: dict[str, Any]) -> None:
        self._read_state(state)

    def _read_state(self, state: Any, *more: ArraySpec) -> dict[str, Array]:
        """Check the state with further arrays, take it over, and return its arrays."""
        specs = [ArraySpec("theta", self.space.shape), ArraySpec("memory", self._schedule.memory.shape)]
        specs += [ArraySpec("rounds", kind="count"), ArraySpec("travelled", low=0.0), *more]
        arrays = read_state(specs, state, repr(self))
        self._theta = self.space.check("The 'theta' of the state", arrays["theta"])
        self._schedule.memory = arrays["memory"]
        self._schedule.rounds, self._schedule.travelled = int(arrays["rounds"]), float(arrays["travelled"])
        return arrays


class ManifoldDescent(GatedLearner):
    r"""Riemannian online gradient descent with a gate.

    Parameters
    ----------
    loss : InvexLoss
        A loss over a space, such as ``SquaredDistance(SPD(5))``.
    step : Step
        ``Anytime(D/(L·√ζ))`` is the step D/(L√(ζt)), ``StronglyConvex(1.0)`` gives the running mean, and
        ``Normalised(Constant(α))`` is normalised descent for weakly pseudo-convex losses.
    gate : Gate, default=Always()
        Weighs the rounds. ``Robust(transforms.Learn(a, b))`` is LEARN.
    domain : GeodesicBall, optional
        Actions are projected on it; by default they are free.
    start : point, optional
        The first action; by default the centre of the domain, or the origin of the space.

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
        loss: InvexLoss,
        *,
        step: steps.Step,
        gate: gates.Gate = gates.Always(),  # noqa: B008 -- frozen
        domain: GeodesicBall | None = None,
        start: Any = None,
    ) -> None:
        name = type(self).__name__
        check_instance(name, "loss", loss, InvexLoss, "a loss over a space, such as SquaredDistance(SPD(5))")
        first = loss.space.origin if start is None else loss.space.check("start", start)
        if domain is not None:
            check_instance(name, "domain", domain, GeodesicBall, "a GeodesicBall")
            first = domain.centre.copy() if start is None else domain.project(first)
        self.domain = domain
        super().__init__(loss, gate, step, first)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.loss}, {self.gate}, {self.step}, {self.domain or 'Everywhere()'})"

    def advance(self, record: Any) -> Move:
        f, gradient = self.loss.at(self._theta, self.loss.check(record))
        length = self.space.norm(self._theta, gradient)
        weight = self._schedule.weigh(f, length)
        rate = self._schedule.size(weight, length)
        if weight > 0.0 and length > 0.0:
            with np.errstate(all="ignore"):
                moved = self.space.exp(self._theta, (-rate * weight) * gradient)
            moved = self._check_finite(moved)
            self._theta = moved if self.domain is None else self.domain.project(moved)
        return self._schedule.finish(f, weight, length, rate)

    def _check_finite(self, moved: Array) -> Array:
        try:
            return self.space.check("The action", moved)
        except DataError as error:
            raise DivergenceError(
                f"The update of round {self.rounds + 1} overflowed; the action is unchanged. {error} "
                "Try a smaller step or a robust gate."
            ) from None


class Flat(FirstOrder):
    """A flat learner as an instance of Algorithm 3. The learner makes every update itself; records are pairs (x, y).

    Parameters
    ----------
    learner : Descent
        A fresh learner, such as ``rd.Learn(...)``.

    Examples
    --------
    >>> import redescend as rd
    >>> learner = rd.Learn(1, loss=rd.losses.Squared(), a=1.0, b=1.0, step=rd.steps.Constant(0.25))
    >>> Flat(learner).update(([1.0], 2.0)) == rd.Round(loss=4.0, weight=1.0 / (1.0 + np.exp(4.0)))
    True
    """

    def __init__(self, learner: Descent) -> None:
        self.learner = check_instance("Flat", "learner", learner, Descent, "a flat descent, such as Learn(...)")
        self.space, self.gate = Euclidean(learner.dim), learner.gate
        self._schedule = Schedule("Flat", learner.gate, learner.step)
        if learner.rounds:
            raise DataError(f"The learner of Flat must be fresh. Got one after {learner.rounds} rounds instead.")

    def __repr__(self) -> str:
        return f"Flat({self.learner})"

    @property
    def theta(self) -> Array:
        return self.learner.theta

    @property
    def loss(self) -> losses.Loss:
        """The loss of the learner."""
        return self.learner.loss

    def value(self, point: Array, record: Any) -> float:
        return self.loss.value(point, *record)

    def advance(self, record: Any) -> Move:
        x, y = record
        length = norm(self.loss.gradient(self.learner.theta, x, y))
        f, weight = self.learner.update(x, y)
        return self._schedule.finish(f, weight, length, self._schedule.size(weight, length))


def compute_weight(gate: gates.Gate, f: float, memory: Array | None = None, t: int = 0, length: float = 0.0) -> float:
    """The gate's weight of a round with loss f."""
    kind, c, b = gate.settings
    memory = gate.fresh_memory() if memory is None else memory
    with np.errstate(over="ignore"):
        return float(gates.weigh(gate.kind, kind, c, b, memory, t, np.float64(f), min(length, LARGEST)))
