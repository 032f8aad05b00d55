"""The expert lemma as printed is false.

Problem. f_t ≥ 0 convex; B is the largest clean loss at the actions that are played, as Section 3 of the paper says.

Algorithm. LEARN with experts (Algorithm 2), rate β = √(8·ln N/(T·ν²)).

Claim. Σ over the clean rounds of f_t(θ_t) − f_t(θ^τ_t) ≤ ξ·(k·ν + ν·√(T·ln N/2)), for every expert τ.

Code. A clean stream in one dimension: y is 0.2 in the first round and 0 from then on. The experts with long steps
move far away, where LEARN hardly moves them. η̃ is the least of all their weights, so the proof bounds Σ η̃_t·(…) with η̃
far below 1/ξ. It cannot be divided by η̃, because the regret against another expert may be negative in a round.
expert_inequality.py has the corrected lemma.

Kind: refuted. Source: Barik, Krishna and Tan, lemma 'bound on expert regret'.
"""

import numpy as np
from _claim import claim, show
from _games import EXPERT_LOSS, count_experts, make_expert_setting, one_step, play_with_experts

import redescend as rd


@claim("refuted")
def expert_lemma_as_printed(rounds: int = 300, first: float = 0.2, reach: float = 16.0) -> tuple[float, float]:
    stream = one_step(rounds, first)
    learner, trace = play_with_experts(stream, reach)
    alone = rd.play(learner.alone(learner.experts[0]), stream)
    regret = rd.regret.split(trace, alone, stream, EXPERT_LOSS).expert
    setting = make_expert_setting(stream, B=float(np.max(trace.losses)))
    return float(regret[-1]), rd.bounds.expert(setting, a=1.0, b=1.0, experts=count_experts(learner)).value


if __name__ == "__main__":
    show(expert_lemma_as_printed)
