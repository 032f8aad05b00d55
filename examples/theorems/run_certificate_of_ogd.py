"""The certificate is exact for OGD on clean losses that are linear up to their minimizer.

Problem. f_t = |⟨x_t, θ⟩ − y_t| in three dimensions, no domain, no corrupted round.

Claim. measured = certificate. Every step of the proof is an equality: all weights are 1, nothing is projected, and
f_t(θ_t) − f_t(u_t) = ⟨∇f_t(θ_t), θ_t − u_t⟩.

Kind: tight. Source: derived.
"""

from _claim import claim, show

import redescend as rd


@claim("tight")
def run_certificate_of_ogd(rounds: int = 500) -> tuple[float, float]:
    stream = rd.streams.ridge(rounds, seed=0, dim=3)
    learner = rd.OGD(3, loss=rd.losses.Absolute(), step=rd.steps.Horizon(rounds))
    trace = rd.play(learner, stream, keep_actions=True)
    certificate = rd.bounds.certify(trace, stream, learner)
    return certificate.measured, certificate.value


if __name__ == "__main__":
    show(run_certificate_of_ogd)
