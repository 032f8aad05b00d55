"""Algorithm 3 beyond the plane: dynamic regret of Riemannian descent in a geodesic ball.

Problem. On a Hadamard manifold, points a_t in a geodesic ball of diameter R; f_t(θ) = Δ(θ, a_t)²/2, whose minimizer is
a_t: the online Fréchet mean. It is geodesically convex, and its gradient is at most R long. With LEARN, g_t = h(f_t).

Algorithm. θ ← Π(Exp_θ(−α·grad g_t)), with the constant step α = √((R² + 3R·V_T)/(𝒢²·T·ζ(R))).

Claim. Σ g_t(θ_t) − g_t(a_t) ≤ γ₄·√((R² + 3R·V_T)·𝒢²·T·ζ(R)), ζ the distortion of the space. Plain, γ₄ = 1 and 𝒢 = R;
with LEARN 𝒢 = ψ and γ₄ = ξ, for m = L = 1, G = 0 and B = R²/2.

Kind: upper. Source: Barik, Krishna and Tan, corollary of 'A Unified Framework to Bound Dynamic Regret'.
"""

from itertools import pairwise

import numpy as np
from _claim import claim, show

import redescend as rd
from redescend import invex
from redescend.bounds.invex import constant_step

SPACES = {"SPD(3)": invex.SPD(3), "Hyperboloid(3)": invex.Hyperboloid(3)}


@claim("upper", *({"space": name, "robust": robust} for name in SPACES for robust in (False, True)))
def manifold_regret(space: str, robust: bool, rounds: int = 100, radius: float = 1.0) -> tuple[float, float]:
    where, rng = SPACES[space], np.random.default_rng(0)
    ball, across = invex.GeodesicBall(where, radius), 2.0 * radius
    points = [ball.project(where.random(rng, 0.4)) for _ in range(rounds)]
    learn = rd.transforms.Learn(1.0, 0.1)
    constants = rd.bounds.constants(m=1.0, G=0.0, L=1.0, a=learn.a, b=learn.b, B=across**2 / 2.0, sharp=True)
    promise = constant_step(
        diameter=across,
        path=sum(where.distance(here, there) for here, there in pairwise(points)),
        gradient=constants.psi if robust else across,
        gamma3=rounds * where.distortion(across),
        gamma4=constants.xi if robust else 1.0,
    )
    gate = rd.gates.Robust(learn) if robust else rd.gates.Always()
    step = rd.steps.Constant(promise.step)
    learner = invex.ManifoldDescent(invex.SquaredDistance(where), step=step, gate=gate, domain=ball)
    return invex.play(learner, points, points).regret, promise.bound


if __name__ == "__main__":
    show(manifold_regret)
