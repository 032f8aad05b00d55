"""LEARN of a convex loss is invex with ζ = (ω − θ)/η.

Problem. f is convex with minimizer ω, g = −a·log(exp(−f/a) + b) is its LEARN loss, η = 1/(1 + b·exp(f(θ)/a)).

Claim. g(θ) − g(ω) ≤ −⟨∇g(θ), ζ⟩ with ζ = (ω − θ)/η: the first-order inequality of convexity, with another direction.

Code. The action with the largest ratio of the two sides among 300 actions, for each of three losses. The ratio is
at most η(ω) = 1/(1 + b·exp(f(ω)/a)), because g is a concave function of f: the lemma is loose by a factor of at least
1 + b, and also holds with ζ = η(ω)·(ω − θ)/η. learn_is_invex_in_the_limit.py has the limit in which it is tight.

Kind: upper. Source: Barik, Krishna and Tan, Lemma 3.1.
"""

import numpy as np
from _claim import claim, show

import redescend as rd

LOSSES = {
    "squared": rd.losses.Squared(l2=0.1),
    "logistic": rd.losses.Logistic(l2=0.1),
    "absolute": rd.losses.Absolute(),
}


def sides(loss: rd.losses.LinearLoss, theta: np.ndarray, x: np.ndarray, y: float, a: float, b: float) -> tuple:
    """g(θ) − g(ω) and −⟨∇g(θ), ζ⟩."""
    learn = rd.transforms.Learn(a, b)
    omega, least = loss.minimum(x, y)
    f = loss.value(theta, x, y)
    eta = float(learn.weight(f))
    zeta = (omega - theta) / eta
    return float(learn.value(f) - learn.value(least)), float(-(eta * loss.gradient(theta, x, y)) @ zeta)


@claim("upper", *({"loss": name} for name in LOSSES))
def learn_is_invex(loss: str) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    a, b, y = 1.0, 0.5, 1.0
    pairs = [sides(LOSSES[loss], 2.0 * rng.normal(size=3), rng.normal(size=3), y, a, b) for _ in range(300)]
    return max(pairs, key=lambda pair: pair[0] / pair[1])


if __name__ == "__main__":
    show(learn_is_invex)
