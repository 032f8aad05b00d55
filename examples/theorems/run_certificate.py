"""The certificate of a run bounds its clean dynamic regret.

Problem. Convex losses, any stream, any domain, k rounds corrupted.

Algorithm. Any learner that descends; here LEARN, Top-k and OGD at the step 1/√T, with no domain.

Claim. measured ≤ weakest·(start + gradients + outliers + path) + filtered, the inequality in the proof of Theorem 3.3
with the weights, gradients, steps and distances that occurred (``rd.bounds.certify``).

Kind: upper. Source: the proof of Theorem 3.3 of Barik, Krishna and Tan. run_certificate_of_ogd.py has the runs on which
it is exact.
"""

from _claim import claim, show
from _games import LOSS, regression

import redescend as rd

GATES = {"learn": rd.gates.Robust(rd.transforms.Learn(4.0, 0.1)), "top_k": rd.gates.TopK(50), "ogd": rd.gates.Always()}


@claim("upper", *({"gate": name} for name in GATES))
def run_certificate(gate: str, rounds: int = 500) -> tuple[float, float]:
    stream = regression(rounds, k=50)
    learner = rd.Descent(3, loss=LOSS, gate=GATES[gate], step=rd.steps.Horizon(rounds))
    trace = rd.play(learner, stream, keep_actions=True)
    certificate = rd.bounds.certify(trace, stream, learner)
    return certificate.measured, certificate.value


if __name__ == "__main__":
    show(run_certificate)
