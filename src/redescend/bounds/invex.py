r"""The dynamic regret bound of online invex optimization (Algorithm 3), as a function of measured quantities.

A first-order algorithm plays θ_t, sees a ζ_t-invex loss g_t and moves with the step α_t. Let u_t be the points that it
is compared with, Δ the distance, and assume for every round

1. law of cosines: Δ(x, y)² ≤ Δ(x, z)² + γ₁·Δ(z, y)² + 2γ₂·Δ(x, z)·Δ(z, y); in any metric space with γ₁ = γ₂ = 1;
2. bounded domain: Δ ≤ R;
3. first-order update: Δ(θ_{t+1}, u_t)² ≤ Δ(θ_t, u_t)² + γ₃α_t²‖∇g_t(θ_t)‖² − (2/γ₄)·α_t·⟨−∇g_t(θ_t), ζ_t(u_t, θ_t)⟩.

Only 1 to 3 and g_t(θ_t) − g_t(u_t) ≤ ⟨−∇g_t(θ_t), ζ_t(u_t, θ_t)⟩ are used in the theorem, so that it holds for any u_t
of the domain, not only for the minimizers of g_t. The corollary needs the minimizers: see `constant_step`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from redescend.errors import ParameterError
from redescend.numeric import Array, Values
from redescend.parameters import NONNEGATIVE, POSITIVE, check


def dynamic_regret(
    distances: Values,
    path: Values,
    gradients: Values,
    steps: Values,
    *,
    diameter: float,
    gamma1: Values = 1.0,
    gamma2: Values = 1.0,
    gamma3: Values = 1.0,
    gamma4: Values = 1.0,
) -> float:
    r"""The right-hand side of the theorem, with the distances and steps that occurred.

    Σ γ₄(Δ(θ_t, u_t)² − Δ(θ_{t+1}, u_{t+1})²)/(2α_t) + ½·Σ α_tγ₃γ₄‖∇g_t‖² + R·Σ γ₄(γ₁ + 2γ₂)·Δ(u_t, u_{t+1})/(2α_t)

    `distances` are Δ(θ_t, u_t) for t = 1..T+1, where u_{T+1} is of your choice, u_T for one; `path` Δ(u_t, u_{t+1});
    `gradients` ‖∇g_t(θ_t)‖; `steps` α_t, any step for a round whose gradient was 0; and `diameter` is R. Steps and the
    constants of the assumptions, γ₁ to γ₄, may be one number for all rounds.

    Examples
    --------
    One round from distance 1 to the minimizer itself:

    >>> dynamic_regret([1.0, 0.0], [0.0], [2.0], 0.5, diameter=1.0)
    2.0

    References
    ----------
    Barik, Krishna and Tan, section 'A unified framework to bound dynamic regret for online invex optimization'. The
    printed proof has Δ(θ_{t+1}, u_{t+1}) in the cross term of the law of cosines where Δ(θ_{t+1}, u_t) belongs; both
    are at most R, so that nothing else changes.
    """
    away = _check_row("distances", distances)
    rounds = len(away) - 1
    moved, slopes = _check_row("path", path, rounds), _check_row("gradients", gradients, rounds)
    alpha = _check_row("steps", np.broadcast_to(steps, rounds), rounds)
    if (alpha <= 0.0).any():
        raise ParameterError(f"steps must be positive. Got {alpha.min()} instead.")
    radius = float(check("dynamic_regret", "diameter", diameter, NONNEGATIVE))
    first, second, third, fourth = (
        _check_row(name, np.broadcast_to(gamma, rounds), rounds)
        for name, gamma in {"gamma1": gamma1, "gamma2": gamma2, "gamma3": gamma3, "gamma4": gamma4}.items()
    )
    nearer = away[:-1] ** 2 - away[1:] ** 2
    drifted = radius * (first + 2.0 * second) * moved
    return float(np.sum(fourth * ((nearer + drifted) / (2.0 * alpha) + 0.5 * alpha * third * slopes**2)))


class ConstantStep(NamedTuple):
    """The bound of the corollary, and the step that it prescribes."""

    bound: float
    step: float


def constant_step(
    *, diameter: float, path: float, gradient: float, gamma3: float, gamma12: float = 3.0, gamma4: float = 1.0
) -> ConstantStep:
    r"""The corollary: regret ≤ γ₄ᵐᵃˣ·√((R² + R·γ₁₂·V_T)·𝒢²·Σγ₃), with α = √((R² + R·γ₁₂·V_T)/(𝒢²·Σγ₃)).

    It holds against the minimizers u_t of g_t; against other comparators only if γ₄ is the same in all rounds. The
    printed proof has a gap: docs/invex.md shows it, and how dividing each round by its γ₄ closes it.

    `diameter` is R, `path` V_T = Σ Δ(u_t, u_{t+1}), `gradient` 𝒢 ≥ ‖∇g_t(θ_t)‖, `gamma3` Σ γ₃ over the rounds, T in
    flat space, and `gamma12` and `gamma4` are the largest γ₁ + 2γ₂ and γ₄ of a round.

    Examples
    --------
    Normalised descent in a ball of radius 1 (γ₃‖∇g‖² = 1, γ₄ = K), against a comparator that stands still:

    >>> constant_step(diameter=2.0, path=0.0, gradient=1.0, gamma3=100.0, gamma4=3.0)
    ConstantStep(bound=60.0, step=0.2)
    """
    for name, value in {"diameter": diameter, "gradient": gradient, "gamma3": gamma3}.items():
        check("constant_step", name, value, POSITIVE)
    for name, value in {"path": path, "gamma12": gamma12, "gamma4": gamma4}.items():
        check("constant_step", name, value, NONNEGATIVE)
    reach, cost = diameter**2 + diameter * gamma12 * path, gradient**2 * gamma3
    return ConstantStep(bound=float(gamma4 * np.sqrt(reach * cost)), step=float(np.sqrt(reach / cost)))


def _check_row(name: str, values: Values, length: int | None = None) -> Array:
    row = np.asarray(values, dtype=np.float64)
    if row.ndim != 1 or not len(row) or not np.isfinite(row).all() or (length is not None and len(row) != length):
        count = "a row of" if length is None else f"{length}"
        raise ParameterError(f"{name} must be {count} finite floats. Got shape {row.shape} instead.")
    return row
