"""Appendix B: clean dynamic regret of OGD with the Top-k filter.

Problem. Convex losses in a domain of diameter Δ; clean gradients are at most G(S) long; k rounds are corrupted.

Algorithm. OGD with the step √(3Δ·V_T + Δ²)/(2·G(S)·√T) on the rounds that pass the Top-k filter, which knows k.

Claim. Regret ≤ 2·G(S)·√((3Δ·V_T + Δ²)·T) + 2Δ·G(S)·k + 2Δ·G(S)·(k + 1).

Code. Hinge on records of unit length, so that G(S) ≤ 1 + l2·D is known before the game.

Kind: upper. Source: Barik, Krishna and Tan, appendix on the Top-k filter; van Erven et al., COLT 2021.
"""

from functools import partial

from _claim import claim, show
from _games import labels, play_at_prescribed_step

import redescend as rd

LOSS, RADIUS = rd.losses.Hinge(l2=0.01), 1.0


@claim("upper", {"k": 0}, {"k": 50})
def top_k_regret(k: int, rounds: int = 500) -> tuple[float, float]:
    stream, ball = labels(rounds, k), rd.domains.Ball(RADIUS)
    learner = partial(rd.TopK, 2, k=k, loss=LOSS, domain=ball)
    longest = 1.0 + LOSS.l2 * RADIUS
    trace, bound = play_at_prescribed_step(
        lambda step: learner(step=step), stream, rd.bounds.top_k, D=RADIUS, gradient=longest
    )
    return float(rd.regret.clean_dynamic(trace, stream, LOSS, domain=ball)[-1]), bound.value


if __name__ == "__main__":
    show(top_k_regret)
