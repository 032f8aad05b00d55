"""The expert lemma corrected: the inequality weighted by η̃.

Problem. f_t ≥ 0 convex, k rounds corrupted.

Algorithm. LEARN with experts (Algorithm 2), rate β = √(8·ln N/(T·ν²)); η̃_t is the least LEARN weight of all experts.

Claim. Σ over the clean rounds of η̃_t·(f_t(θ_t) − f_t(θ^τ_t)) ≤ k·ν + ν·√(T·ln N/2), for every expert τ: the printed
proof up to the division by η̃.

Code. Every distinct expert is played alone, and the largest of the sums is returned.

Kind: upper. Source: the proof of the lemma 'bound on expert regret' of Barik, Krishna and Tan, without its last line.
"""

from _claim import claim, show
from _games import STREAMS, count_experts, make_expert_setting, play_experts, play_with_experts

import redescend as rd


@claim("upper", *({"stream": name} for name in STREAMS))
def expert_inequality(stream: str, reach: float = 16.0) -> tuple[float, float]:
    game = STREAMS[stream]()
    learner, trace = play_with_experts(game, reach)
    paid = play_experts(learner, game)
    least = rd.transforms.Learn(1.0, 1.0).weight(paid.max(axis=0))
    sums = (least * (trace.losses - paid))[:, game.clean].sum(axis=1)
    # The weights do not depend on B, and the lemma's bound is ξ times theirs.
    setting = make_expert_setting(game, B=0.0)
    bound = rd.bounds.expert(setting, a=1.0, b=1.0, experts=count_experts(learner)).value
    return float(sums.max()), bound / setting.constants(1.0, 1.0).xi


if __name__ == "__main__":
    show(expert_inequality)
