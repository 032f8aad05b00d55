"""Theorem 3.5 corrected: clean dynamic regret without a domain, with B for every expert.

Problem. f_t ≥ 0 m-strongly convex; B is the largest clean loss of any expert, not only of the actions that are played.

Algorithm. LEARN with experts (Algorithm 2).

Claim. The formal version of Theorem 3.5 with that B. Write θ* for the minimizers and τ for the expert of the proof; all
sums are over the clean rounds.

    Σ η̃_t·(f_t(θ_t) − f_t(θ*_t)) = Σ η̃_t·(f_t(θ_t) − f_t(θ^τ_t)) + Σ η̃_t·(f_t(θ^τ_t) − f_t(θ*_t))

The first sum on the right is bounded by expert_inequality.py. In the second no term is negative and η̃_t ≤ η^τ_t, so the
paper's meta analysis bounds it. No term on the left is negative, so it may be divided by the least η̃_t ≥ 1/ξ.

Code. Every distinct expert is played alone to measure B. Long steps make B large, and ξ grows as exp(B/a): with
A_max = 2·√T the bound is moderate; with the 16·√T of expert_lemma_as_printed.py it is 10^10, and 10^70 on the corrupted
waves.

Kind: upper. Source: derived from the paper's own lemmas.
"""

from _claim import claim, show
from _games import EXPERT_LOSS, STREAMS, make_expert_setting, play_experts, play_with_experts

import redescend as rd


@claim("upper", *({"stream": name} for name in STREAMS), {"stream": "one step", "reach": 16.0})
def unbounded_theorem(stream: str, reach: float = 2.0) -> tuple[float, float]:
    game = STREAMS[stream]()
    learner, trace = play_with_experts(game, reach)
    largest = float(play_experts(learner, game)[:, game.clean].max())
    bound = rd.bounds.clean_dynamic_unbounded(
        make_expert_setting(game, B=largest), a=1.0, b=1.0, epsilon=learner.epsilon, a_max=learner.a_max
    )
    return float(rd.regret.clean_dynamic(trace, game, EXPERT_LOSS)[-1]), bound.value


if __name__ == "__main__":
    show(unbounded_theorem)
