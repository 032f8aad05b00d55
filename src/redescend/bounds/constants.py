r"""The constants of the paper's theorems, as printed and as small as they can be.

Each bounds something that LEARN's weight η = 1/(1 + b·exp(f/a)) multiplies. Write r for the distance from the action
to the minimiser ω* of the round. A loss that is not negative and m-strongly convex has f ≥ (m/2)·r², so that
η ≤ 1/(1 + b·exp(c·r²)) with c = m/(2a), and that is attained.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from redescend.numeric import LARGEST
from redescend.parameters import NONNEGATIVE, SCALE, check


class Constants(NamedTuple):
    """ψ ≥ sup η‖∇f‖, φ ≥ sup η·r, κ ≥ sup η·r², ν ≥ sup η·f, and ξ = 1/η at the largest clean loss B."""

    psi: float
    phi: float
    kappa: float
    nu: float
    xi: float


def constants(m: float, G: float, L: float, a: float, b: float, B: float, sharp: bool = False) -> Constants:
    r"""ψ, φ, κ, ν and ξ of LEARN at (a, b).

    Parameters
    ----------
    m : float
        Strong convexity of the losses.
    G, L : float
        ‖∇f_t(θ)‖ ≤ G + L·‖θ − ω*_t‖ in every round. The sharp constants are attained if L ≥ m, which every loss without
        a G satisfies.
    a, b : float
        LEARN's constants.
    B : float
        The largest loss of a clean round.
    sharp : bool
        The suprema themselves instead of the paper's bounds on them.

    Returns
    -------
    Constants
        As printed: ψ = G + L·φ, φ = max(m/2a, 4a²/m²)/b, κ = max(m/2a, 2a/m)/b, ν = max(a, 1/a)/b, ξ = 1 + b·exp(B/a).
        Sharp, with W Lambert's function and z = ½ + W(e^(−½)/2b): φ = √(z/c)·(2z − 1)/(2z), κ = W(1/(e·b))/c,
        ν = a·W(1/(e·b)), and ψ the maximum of (G + L·r)/(1 + b·exp(c·r²)), which is L·φ where G = 0.

    Notes
    -----
    The printed constants come from a lemma that is false as stated (docs/notes-on-the-paper.md); they hold all the
    same. A value beyond the floats is given as the largest float.

    Examples
    --------
    >>> round(constants(1e-4, 0.0, 1.0, 10.0, 10.0, 1.0).phi)
    4000000000
    >>> round(constants(1e-4, 0.0, 1.0, 10.0, 10.0, 1.0, sharp=True).phi, 1)
    18.1

    References
    ----------
    Barik, Krishna and Tan, Section 3; the suprema are derived in docs/notes-on-the-paper.md.
    """
    m, a, b = (check("constants", name, value, SCALE) for name, value in {"m": m, "a": a, "b": b}.items())
    G, L, B = (check("constants", name, value, NONNEGATIVE) for name, value in {"G": G, "L": L, "B": B}.items())
    xi = 1.0 + math.exp(min(math.log(b) + B / a, 709.7))
    c = m / (2.0 * a)
    if sharp:
        phi, kappa = _largest_distance(b) / math.sqrt(c), _lambert(1.0 / (math.e * b)) / c
        psi, nu = _largest_gradient(G, L, b, c), a * _lambert(1.0 / (math.e * b))
    else:
        phi, kappa = max(c, 1.0 / c / c) / b, max(c, 1.0 / c) / b
        psi, nu = G + L * min(phi, LARGEST), max(a, 1.0 / a) / b
    return Constants(*(min(value, LARGEST) for value in (psi, phi, kappa, nu, xi)))


def _lambert(x: float) -> float:
    from scipy.special import lambertw

    return float(lambertw(x).real)


def _largest_distance(b: float) -> float:
    """max over r of r/(1 + b·exp(r²))."""
    # With z = r², the maximum has 2z·b·e^z = 1 + b·e^z. In v = z − ½ that is v·e^v = e^(−½)/(2b), and η there is v/z.
    v = _lambert(math.exp(-0.5) / (2.0 * b))
    return v / math.sqrt(0.5 + v)


def _largest_gradient(G: float, L: float, b: float, c: float) -> float:
    """max over r of (G + L·r)/(1 + b·exp(c·r²)); its logarithm is concave in r, so one root of the slope is all."""
    from scipy.optimize import brentq
    from scipy.special import expit

    if L == 0.0:
        return G / (1.0 + b)
    offset, reach = G / L * math.sqrt(c), math.sqrt(0.5 + _lambert(math.exp(-0.5) / (2.0 * b)))

    def slope(r: float) -> float:
        return 1.0 - (offset + r) * 2.0 * r * float(expit(math.log(b) + r * r))

    # Without G the maximum is at `reach`; the larger G is, the nearer it comes to 0.
    r = brentq(slope, 0.0, reach * (1.0 + 1e-9), xtol=1e-300, rtol=8.9e-16)
    return L / math.sqrt(c) * (offset + r) * float(expit(-math.log(b) - r * r))
