"""The printed φ, κ, ν, ψ are valid bounds.

Problem, algorithm and search as in sharp_constants.py.

Claim. η·r ≤ φ, η·r² ≤ κ, η·f ≤ ν and η·‖∇f‖ ≤ ψ with the constants as the paper prints them:
φ = max(m/2a, 4a²/m²)/b, κ = max(m/2a, 2a/m)/b, ν = max(a, 1/a)/b, ψ = G + L·φ. They come from a lemma that is false as
stated, but they hold; at m = 0.1, a = 2, b = 0.5 they are loose by a factor of 4 to 1200.

Kind: upper. Source: Barik, Krishna and Tan, Section 3 and the appendix 'Useful bounds'.
"""

from _claim import claim, show
from sharp_constants import CASES, A, B, M, largest

import redescend as rd


@claim("upper", *CASES)
def printed_constants(name: str, G: float = 0.0) -> tuple[float, float]:
    constants = rd.bounds.constants(m=M, G=G, L=M, a=A, b=B, B=0.0)
    return largest(name, G), getattr(constants, name)


if __name__ == "__main__":
    show(printed_constants)
