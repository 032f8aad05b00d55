"""Theorem 3.2: invex dynamic regret of LEARN in a ball.

Problem. Losses f_t ≥ 0, m-strongly convex, ‖∇f_t(θ)‖ ≤ G + L·‖θ − ω_t‖, at most B in every round, corrupted or not;
‖θ‖ ≤ D. Regret is Σ over all rounds of g_t(θ_t) − g_t(ω_t), with g = h(f) the LEARN loss.

Algorithm. LEARN (Algorithm 1) with the constant step α = √((4D² + 6D·V_T)/(ψ²·T)).

Claim. Regret ≤ ξ·ψ·√((4D² + 6D·V_T)·T), V_T the path length of the minimizers as they were played.

Kind: upper. Source: Barik, Krishna and Tan, Theorem 3.2; with the sharp ψ.
"""

from functools import partial

from _claim import claim, show
from _games import LOSS, RADIUS, play_at_prescribed_step, regression

import redescend as rd


@claim("upper", {"k": 0}, {"k": 50})
def invex_dynamic_regret(k: int, rounds: int = 500, a: float = 4.0, b: float = 0.1) -> tuple[float, float]:
    stream, ball = regression(rounds, k), rd.domains.Ball(RADIUS)
    learner = partial(rd.Learn, 3, loss=LOSS, a=a, b=b, domain=ball)
    theorem = partial(rd.bounds.invex_dynamic, a=a, b=b, sharp=True)
    trace, bound = play_at_prescribed_step(lambda step: learner(step=step), stream, theorem, D=RADIUS)
    regret = rd.regret.invex_dynamic(trace, stream, LOSS, rd.transforms.Learn(a, b), domain=ball)
    return float(regret[-1]), bound.value


if __name__ == "__main__":
    show(invex_dynamic_regret)
