"""The sharp φ, κ, ν, ψ are suprema that a loss attains.

Problem. f ≥ 0 is m-strongly convex with minimizer ω, and ‖∇f(θ)‖ ≤ G + L·r with r = ‖θ − ω‖. LEARN weighs a round by
η = 1/(1 + b·exp(f/a)).

Claim. η·r ≤ φ, η·r² ≤ κ, η·f ≤ ν and η·‖∇f‖ ≤ ψ, with the constants of ``rd.bounds.constants(sharp=True)``; none of
them can be smaller.

Code. A scalar search for the action at which a loss of the library makes the left side largest. With G = 0 the loss is
Squared in one dimension with x = √(m/2), which is (m/2)·r² exactly. With G > 0 it is EpsilonInsensitive with l2 = m: it
is (m/2)·r² up to a kink, and behind it the gradient is longer by ‖x‖ = G; the kink is put where ψ is attained.

Kind: tight. Source: derived; the lemma in the paper's appendix 'Useful bounds' gives larger constants.
"""

from _claim import claim, show
from scipy.optimize import minimize_scalar

import redescend as rd

M, A, B = 0.1, 2.0, 0.5
CASES = ({"name": "phi"}, {"name": "kappa"}, {"name": "nu"}, {"name": "psi"}, {"name": "psi", "G": 0.7})


def largest(name: str, G: float = 0.0) -> float:
    """The largest that η times what the constant bounds gets, over the actions on a half-line."""
    weight = rd.transforms.Learn(A, B).weight
    squared, x = rd.losses.Squared(), [(M / 2.0) ** 0.5]

    def at(r: float) -> float:
        if G > 0.0:
            # Each r is tried with its own kink, a hair before it: the loss is (m/2)·r² and the gradient G + m·r.
            loss, record = rd.losses.EpsilonInsensitive(epsilon=G * r * (1.0 - 1e-12), l2=M), [G]
        else:
            loss, record = squared, x
        f = loss.value([r], record, 0.0)
        length = abs(loss.gradient([r], record, 0.0).item())
        return float(weight(f)) * {"phi": r, "kappa": r * r, "nu": f, "psi": length}[name]

    found = minimize_scalar(lambda r: -at(r), bounds=(1e-6, 50.0), method="bounded", options={"xatol": 1e-10})
    return -found.fun


@claim("tight", *CASES)
def sharp_constants(name: str, G: float = 0.0) -> tuple[float, float]:
    constants = rd.bounds.constants(m=M, G=G, L=M, a=A, b=B, B=0.0, sharp=True)
    return largest(name, G), getattr(constants, name)


if __name__ == "__main__":
    show(sharp_constants)
