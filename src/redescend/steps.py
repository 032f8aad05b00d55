r"""Step sizes α_t, and `Normalised`, which divides any of them by the length of the gradient.

To add a step, write its class here and a branch in `size`; the compiled rounds call the same function.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from redescend.numeric import unknown_code
from redescend.parameters import Component, Interval, Positive, Scale, check_instance

FIXED, PER_ROOT_ROUND, PER_ROUND, PER_TRAVELLED = range(4)

Rounds = Annotated[int, Interval(1, 10**18, whole=True)]


def size(kind: int, scale: float, normalised: float, t: float, travelled: float, length: float) -> float:
    """α_t in round t = 1, 2, …; `travelled` is √Σ w²‖g‖² up to and with this round, `length` is this ‖g‖."""
    if kind == PER_ROOT_ROUND:
        alpha = scale / np.sqrt(t)
    elif kind == PER_ROUND:
        alpha = scale / t
    elif kind == PER_TRAVELLED:
        alpha = scale / travelled if travelled > 0.0 else 0.0
    elif kind == FIXED:
        alpha = scale
    else:
        alpha = unknown_code(kind)
    if normalised != 0.0:
        return alpha / length if length > 0.0 else 0.0
    return alpha


class Step(Component):
    """The size of a step along the weighted gradient."""

    kind: ClassVar[int]
    """The code of the step in compiled rounds."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Raise an error at once if the branch for the code of a new step was forgotten."""
        super().__init_subclass__(**keywords)
        if isinstance(cls.kind, int):
            size(cls.kind, 1.0, 0.0, 1.0, 1.0, 1.0)

    @property
    def settings(self) -> tuple[float, float]:
        """The settings for compiled rounds: the scale, and 1 if the gradient is normalised."""
        return getattr(self, "scale", 1.0), 0.0


@dataclass(frozen=True)
class Constant(Step):
    """α_t = alpha.

    Parameters
    ----------
    alpha : float
        The step size, the same in every round.

    Examples
    --------
    >>> import redescend as rd
    >>> learner = rd.OGD(1, loss=rd.losses.Squared(), step=Constant(0.25))
    >>> learner.update([1.0], 2.0), learner.theta
    (Round(loss=4.0, weight=1.0), array([1.]))
    """

    alpha: Positive
    kind: ClassVar[int] = FIXED

    @property
    def settings(self) -> tuple[float, float]:
        return self.alpha, 0.0


@dataclass(frozen=True)
class Horizon(Step):
    """α_t = scale/√rounds, for a game of known length: the step of the paper's experiments.

    Parameters
    ----------
    rounds : int
        Length of the game.
    scale : float, default 1.0
        Factor of the step size.

    Examples
    --------
    >>> Horizon(rounds=10_000).settings
    (0.01, 0.0)
    """

    rounds: Rounds
    scale: Positive = 1.0
    kind: ClassVar[int] = FIXED

    @property
    def settings(self) -> tuple[float, float]:
        return self.scale / math.sqrt(self.rounds), 0.0


@dataclass(frozen=True)
class Anytime(Step):
    """α_t = scale/√t: no horizon needed.

    Parameters
    ----------
    scale : float, default 1.0
        The step size in the first round.

    Examples
    --------
    >>> Anytime(scale=2.0)
    Anytime(scale=2.0)
    """

    scale: Positive = 1.0
    kind: ClassVar[int] = PER_ROOT_ROUND


@dataclass(frozen=True)
class StronglyConvex(Step):
    """α_t = 1/(m·t), for m-strongly convex losses.

    Parameters
    ----------
    m : float
        Strong convexity of the losses, such as their l2.

    Examples
    --------
    >>> StronglyConvex(m=0.5).settings
    (2.0, 0.0)
    """

    m: Scale
    kind: ClassVar[int] = PER_ROUND

    @property
    def settings(self) -> tuple[float, float]:
        return 1.0 / self.m, 0.0


@dataclass(frozen=True)
class AdaptiveNorm(Step):
    """α_t = scale/√(Σ_{s≤t} w_s²‖∇f_s‖²): scale-free in the losses.

    With scale = D/√2 it is the step of van Erven's Top-k learner.

    Parameters
    ----------
    scale : float, default 1.0
        Factor of the step size, of the order of the domain's diameter.

    Examples
    --------
    >>> AdaptiveNorm()
    AdaptiveNorm(scale=1.0)
    """

    scale: Positive = 1.0
    kind: ClassVar[int] = PER_TRAVELLED


@dataclass(frozen=True)
class Theorem(Step):
    r"""The step that the paper's theorems prescribe: α = √((4D² + 6D·V_T)/(ψ²·T)).

    Parameters
    ----------
    rounds : int
        T, the length of the game.
    radius : float
        D, with ‖θ‖ ≤ D over the domain.
    path : float
        V_T, the path length of the comparators.
    psi : float
        ψ ≥ sup w·‖∇f‖: the paper's is G + max(mL/2ab, 4a²L/m²b). With ψ = 1 this is the step of normalised descent.

    Examples
    --------
    >>> Theorem(rounds=100, radius=1.0, path=0.0, psi=2.0).settings
    (0.1, 0.0)

    References
    ----------
    Barik, Krishna and Tan, Theorems 3.2 and 3.3.
    """

    rounds: Rounds
    radius: Scale
    path: Annotated[float, Interval(0, 1e100)]
    psi: Scale
    kind: ClassVar[int] = FIXED

    @property
    def settings(self) -> tuple[float, float]:
        reach = 4.0 * self.radius**2 + 6.0 * self.radius * self.path
        return math.sqrt(reach / self.rounds) / self.psi, 0.0


@dataclass(frozen=True)
class Normalised(Step):
    """Another step, divided by ‖∇f_t‖: every round of weight 1 moves the action by the step, whatever its gradient.

    Parameters
    ----------
    step : Step
        The step to divide, such as ``Constant(0.1)``.

    Examples
    --------
    >>> Normalised(Constant(0.1)).settings
    (0.1, 1.0)
    """

    step: Step

    def __post_init__(self) -> None:
        check_instance("Normalised", "step", self.step, Step, "a step, such as Constant(0.1)")

    @property
    def kind(self) -> int:  # type: ignore[override]
        """The code of the step that is divided."""
        return self.step.kind

    @property
    def settings(self) -> tuple[float, float]:
        return self.step.settings[0], 1.0
