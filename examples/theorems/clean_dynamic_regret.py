"""Theorem 3.3: clean dynamic regret of LEARN in a ball.

Problem. Losses f_t ≥ 0, m-strongly convex, ‖∇f_t(θ)‖ ≤ G + L·‖θ − ω_t‖; clean losses at most B; k rounds corrupted, of
which the minimizer moved by at most δ; ‖θ‖ ≤ D. Regret is Σ over the clean rounds of f_t(θ_t) − f_t(θ*_t).

Algorithm. LEARN (Algorithm 1) with the constant step α = √((4D² + 6D·V_T)/(ψ²·T)); it does not know k.

Claim. Regret ≤ ξ·(ψ·√((4D² + 6D·V_T)·T) + k·(G·φ + L·κ) + k·(G + L·φ)·δ).

Kind: upper. Source: Barik, Krishna and Tan, Theorem 3.3; with the sharp constants and with those that are printed, each
at the step that they prescribe. worst_case.py says how near to the bound a stream can come.
"""

from functools import partial

from _claim import claim, show
from _games import LOSS, RADIUS, play_at_prescribed_step, regression

import redescend as rd


@claim("upper", {"k": 0}, {"k": 50}, {"k": 0, "sharp": False}, {"k": 50, "sharp": False})
def clean_dynamic_regret(
    k: int, sharp: bool = True, rounds: int = 500, a: float = 4.0, b: float = 0.1
) -> tuple[float, float]:
    stream, ball = regression(rounds, k), rd.domains.Ball(RADIUS)
    learner = partial(rd.Learn, 3, loss=LOSS, a=a, b=b, domain=ball)
    theorem = partial(rd.bounds.clean_dynamic, a=a, b=b, sharp=sharp)
    trace, bound = play_at_prescribed_step(lambda step: learner(step=step), stream, theorem, D=RADIUS)
    return float(rd.regret.clean_dynamic(trace, stream, LOSS, domain=ball)[-1]), bound.value


if __name__ == "__main__":
    show(clean_dynamic_regret)
