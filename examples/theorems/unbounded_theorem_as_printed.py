"""Theorem 3.5, clean dynamic regret without a domain, is false with B as printed.

Problem. f_t ≥ 0 m-strongly convex; B is the largest clean loss at the actions that are played, as Section 3 of the
paper says; 𝔇 is the longest minimizer.

Algorithm. LEARN with experts (Algorithm 2), A_max = C·√T.

Claim. The formal version of the theorem, in the case that applies here (a step below the grid), constants as printed.

Code. A clean stream in one dimension: y is 0.1 in the first round and 0 from then on, T = 3000, C = 64. The experts
with long steps move far away and stay there, so the mean stays at a distance of about 1 from the minimizer.
unbounded_theorem.py has the corrected theorem.

Kind: refuted. Source: Barik, Krishna and Tan, the formal version of Theorem 3.5.
"""

import numpy as np
from _claim import claim, show
from _games import EXPERT_LOSS, make_expert_setting, one_step, play_with_experts

import redescend as rd


@claim("refuted")
def unbounded_theorem_as_printed(rounds: int = 3000, first: float = 0.1, reach: float = 64.0) -> tuple[float, float]:
    stream = one_step(rounds, first)
    learner, trace = play_with_experts(stream, reach)
    setting = make_expert_setting(stream, B=float(np.max(trace.losses)))
    bound = rd.bounds.clean_dynamic_unbounded(
        setting, a=1.0, b=1.0, epsilon=learner.epsilon, a_max=learner.a_max, printed=True
    )
    return float(rd.regret.clean_dynamic(trace, stream, EXPERT_LOSS)[-1]), bound.value


if __name__ == "__main__":
    show(unbounded_theorem_as_printed)
