"""Normalised descent, which does not know k: clean dynamic regret in a ball.

Problem. Losses with f(θ) − f* ≤ K·⟨∇f(θ), θ − θ*⟩/‖∇f(θ)‖ in the clean rounds; ‖θ‖ ≤ R; k rounds are corrupted.

Algorithm. θ ← Π(θ − α·∇f/‖∇f‖), α = √((4R² + 6R·V_T)/T).

Claim. Regret ≤ K·(√(T·(4R² + 6R·V_T)) + 2R·k): an outlier moves the action by at most α.

Code. Hinge on records of unit length, corrupted ones five times as long; K is the longest clean gradient.

Kind: upper. Source: Gao, Li and Zhang, AISTATS 2018, for k = 0 (their printed bound is half of what their proof gives);
the term in k is derived.
"""

from functools import partial

from _claim import claim, show
from _games import labels, play_at_prescribed_step

import redescend as rd

LOSS, RADIUS = rd.losses.Hinge(l2=0.01), 1.0


@claim("upper", {"k": 0}, {"k": 50})
def normalised_regret(k: int, rounds: int = 500) -> tuple[float, float]:
    stream, ball = labels(rounds, k), rd.domains.Ball(RADIUS)
    learner = partial(rd.NormalisedOGD, 2, loss=LOSS, domain=ball)
    trace, bound = play_at_prescribed_step(lambda step: learner(step=step), stream, rd.bounds.normalised, D=RADIUS)
    return float(rd.regret.clean_dynamic(trace, stream, LOSS, domain=ball)[-1]), bound.value


if __name__ == "__main__":
    show(normalised_regret)
