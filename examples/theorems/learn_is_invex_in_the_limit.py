"""Invexity of LEARN is tight as b → 0 with a loss that is linear up to its minimizer.

Claim. The inequality of learn_is_invex.py becomes an equality as b → 0, for Absolute: its two steps are
a·log(η(θ)/η(ω)) ≤ 0, which vanishes with b, and convexity of f, which loses nothing where f is linear.

Code. Both sides at b = 1e-9, where they differ by about b·exp(f/a) of themselves.

Kind: tight, in that limit. Source: Barik, Krishna and Tan, proof of Lemma 3.1; the limit is derived here.
"""

import numpy as np
from _claim import claim, show
from learn_is_invex import LOSSES, sides


@claim("tight")
def learn_is_invex_in_the_limit(b: float = 1e-9) -> tuple[float, float]:
    return sides(LOSSES["absolute"], np.array([1.5, -0.5]), np.array([1.0, 2.0]), 1.0, a=1.0, b=b)


if __name__ == "__main__":
    show(learn_is_invex_in_the_limit)
