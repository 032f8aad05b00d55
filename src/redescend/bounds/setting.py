"""The assumptions of the theorems about a game, given or measured, and the resulting constants of LEARN."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from redescend.bounds.certificate import Measurements, measure_game
from redescend.game import Stream, Trace
from redescend.learners.descent import Descent
from redescend.losses import LinearLoss
from redescend.losses.linear import curvature
from redescend.numeric import LARGEST
from redescend.parameters import AT_LEAST_ONE, COUNT, NONNEGATIVE, SCALE, Component, NonNegative, bad_parameter, check


class Constants(NamedTuple):
    """Constants of LEARN's weight η in the theorems, with r the distance from the action to the round's minimizer.

    Parameters
    ----------
    psi, phi, kappa, nu : float
        ψ ≥ sup η·‖∇f‖, φ ≥ sup η·r, κ ≥ sup η·r² and ν ≥ sup η·f.
    xi : float
        ξ = 1/η at the largest clean loss B.

    Examples
    --------
    >>> constants(1.0, 0.0, 1.0, 1.0, 1.0, 0.0).xi
    2.0
    """

    psi: float
    phi: float
    kappa: float
    nu: float
    xi: float


def constants(m: float, G: float, L: float, a: float, b: float, B: float, sharp: bool = False) -> Constants:
    r"""Return ψ, φ, κ, ν and ξ of LEARN at (a, b), as printed or as small as they can be.

    LEARN's weight is η = 1/(1 + b·exp(f/a)). A loss that is not negative and m-strongly convex has f ≥ (m/2)·r², so
    η ≤ 1/(1 + b·exp(c·r²)) with c = m/(2a), and that is attained.

    Parameters
    ----------
    m : float
        Strong convexity of the losses.
    G, L : float
        ‖∇f_t(θ)‖ ≤ G + L·‖θ − ω*_t‖ in every round. The sharp constants are attained if L ≥ m.
    a, b : float
        Parameters of LEARN.
    B : float
        The largest loss of a clean round.
    sharp : bool, default False
        Whether to return the suprema themselves instead of the paper's bounds on them.

    Returns
    -------
    Constants
        As printed: ψ = G + L·φ, φ = max(m/2a, 4a²/m²)/b, κ = max(m/2a, 2a/m)/b, ν = max(a, 1/a)/b, ξ = 1 + b·exp(B/a).
        Sharp, with W Lambert's function and z = ½ + W(e^(−½)/2b): φ = √(z/c)·(2z − 1)/(2z), κ = W(1/(e·b))/c,
        ν = a·W(1/(e·b)), and ψ the maximum of (G + L·r)/(1 + b·exp(c·r²)), which is L·φ where G = 0.

    Examples
    --------
    >>> round(constants(1e-4, 0.0, 1.0, 10.0, 10.0, 1.0).phi)
    4000000000
    >>> round(constants(1e-4, 0.0, 1.0, 10.0, 10.0, 1.0, sharp=True).phi, 1)
    18.1

    References
    ----------
    Barik, Krishna and Tan, Section 3. docs/notes-on-the-paper.md derives the suprema, and proves the printed constants,
    which come from a lemma that is false as stated.
    """
    m, a, b = (check("constants", name, value, SCALE) for name, value in {"m": m, "a": a, "b": b}.items())
    G, L, B = (check("constants", name, value, NONNEGATIVE) for name, value in {"G": G, "L": L, "B": B}.items())
    xi = 1.0 + math.exp(min(math.log(b) + B / a, 709.7))
    c = m / (2.0 * a)
    if sharp:
        phi, kappa = _largest_distance(b) / math.sqrt(c), _lambert_w(1.0 / (math.e * b)) / c
        psi, nu = _largest_gradient(G, L, b, c), a * _lambert_w(1.0 / (math.e * b))
    else:
        phi, kappa = max(c, 1.0 / c / c) / b, max(c, 1.0 / c) / b
        psi, nu = G + L * min(phi, LARGEST), max(a, 1.0 / a) / b
    return Constants(*(min(value, LARGEST) for value in (psi, phi, kappa, nu, xi)))


def _lambert_w(x: float) -> float:
    from scipy.special import lambertw

    return float(lambertw(x).real)


def _largest_distance(b: float) -> float:
    """max over r of r/(1 + b·exp(r²))."""
    # With z = r², the maximum has 2z·b·e^z = 1 + b·e^z. In v = z − ½ that is v·e^v = e^(−½)/(2b), and η there is v/z.
    v = _lambert_w(math.exp(-0.5) / (2.0 * b))
    return v / math.sqrt(0.5 + v)


def _largest_gradient(G: float, L: float, b: float, c: float) -> float:
    """max over r of (G + L·r)/(1 + b·exp(c·r²)); its logarithm is concave in r, so its slope has one root."""
    from scipy.optimize import brentq
    from scipy.special import expit

    if L == 0.0:
        return G / (1.0 + b)
    offset, reach = G / L * math.sqrt(c), math.sqrt(0.5 + _lambert_w(math.exp(-0.5) / (2.0 * b)))

    def slope(r: float) -> float:
        return 1.0 - (offset + r) * 2.0 * r * float(expit(math.log(b) + r * r))

    # Without G the maximum is at `reach`; the larger G is, the nearer it comes to 0.
    r = brentq(slope, 0.0, reach * (1.0 + 1e-9), xtol=1e-300, rtol=8.9e-16)
    return L / math.sqrt(c) * (offset + r) * float(expit(-math.log(b) - r * r))


@dataclass(frozen=True)
class Setting(Component):
    r"""The assumptions of the theorems about a game.

    Parameters
    ----------
    rounds, k : int
        T, the number of rounds, and how many of them are corrupted.
    m : float
        Strong convexity of the losses.
    G, L : float
        ‖∇f_t(θ)‖ ≤ G + L·‖θ − ω*_t‖ in every round, whatever was corrupted.
    B, B_all : float
        The largest loss of a clean round, and of any round, at the actions that were played.
    D : float
        ‖θ‖ ≤ D for every action and minimizer.
    path, path_all : float
        V_T, the path length of the minimizers of the uncorrupted records, and that of the records as they were played.
    deviation : float
        δ, the farthest that corruption moved the minimizer of a round.
    comparator : float
        𝔇, the length of the longest minimizer of an uncorrupted record.
    gradient : float
        G(S), the longest gradient of a clean round at the action that was played.

    Examples
    --------
    >>> Setting(rounds=100, k=5, m=0.1, L=2.0, D=1.0).constants(a=1.0, b=1.0, sharp=True).kappa
    5.56929...
    """

    rounds: Annotated[int, AT_LEAST_ONE]
    m: NonNegative
    k: Annotated[int, COUNT] = 0
    G: NonNegative = 0.0
    L: NonNegative = 0.0
    B: NonNegative = 0.0
    B_all: NonNegative = 0.0
    D: NonNegative = 0.0
    path: NonNegative = 0.0
    path_all: NonNegative = 0.0
    deviation: NonNegative = 0.0
    comparator: NonNegative = 0.0
    gradient: NonNegative = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k > self.rounds:
            raise bad_parameter("Setting", "k", f"at most the {self.rounds} rounds", self.k)

    def constants(self, a: float, b: float, sharp: bool = False, everywhere: bool = False) -> Constants:
        """Return the `constants` of LEARN at (a, b), `sharp` or printed; if `everywhere`, ξ covers all rounds."""
        return constants(self.m, self.G, self.L, a, b, self.B_all if everywhere else self.B, sharp)


def estimate(trace: Trace, stream: Stream, learner: Descent) -> Setting:
    r"""Measure the assumptions of the theorems on a game: each number as small as the game allows, and m as large.

    Parameters
    ----------
    trace, stream, learner
        As in `certify`.

    Returns
    -------
    Setting
        The smallest setting that covers the game.

    Notes
    -----
    m is the loss's l2: the loss of one record is constant in the directions orthogonal to it. ∇f changes by at most
    jump·‖x‖ + (curvature·‖x‖² + l2)·‖θ − ω‖, which gives G and, with the longest record, L. D is the radius of the
    smallest ball around 0 that contains every action and minimizer. Rows that were skipped do not count.

    Examples
    --------
    >>> import redescend as rd
    >>> stream = rd.streams.ridge(200, seed=0, dim=3)
    >>> learner = rd.Learn(3, loss=rd.losses.Squared(l2=0.1), a=1.0, b=1.0, step=rd.steps.Horizon(200))
    >>> setting = estimate(rd.play(learner, stream, keep_actions=True), stream, learner)
    >>> setting.m, setting.G, setting.k
    (0.1, 0.0, 0)
    """
    return make_setting(measure_game(trace, stream, learner), learner)


def make_setting(game: Measurements, learner: Descent) -> Setting:
    """Return the setting of a measured game."""
    loss = learner.loss
    assert isinstance(loss, LinearLoss)
    longest = float(game.record.max())
    with np.errstate(over="ignore"):
        path, path_all = (float(min(moves.sum(), LARGEST)) for moves in (game.path, game.path_all))
    return Setting(
        rounds=len(game.clean),
        m=loss.l2,
        k=int(np.count_nonzero(~game.clean)),
        G=float(game.rest.max()),
        L=float(min(loss.l2 + curvature(loss.kind) * longest * longest, LARGEST)),
        B=float(game.losses[game.clean].max(initial=0.0)),
        B_all=float(game.losses.max(initial=0.0)),
        D=float(game.reach.max()),
        path=path,
        path_all=path_all,
        deviation=float(game.deviation.max()),
        comparator=float(game.comparator.max()),
        gradient=float(game.gradient[game.clean].max(initial=0.0)),
    )
