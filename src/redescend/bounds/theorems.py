"""The paper's theorems, one function each: the bound, its assumptions, and the step that it prescribes."""

from __future__ import annotations

from math import ceil, inf, log, log2, sqrt
from typing import NamedTuple

from redescend.bounds.setting import Setting
from redescend.numeric import LARGEST
from redescend.parameters import AT_LEAST_ONE, POSITIVE, Interval, check, check_instance


class Bound(NamedTuple):
    """The bound of a theorem.

    Attributes
    ----------
    value : float
        The regret is at most this.
    step : float
        The step, or the rate, that the theorem prescribes.
    assumptions : tuple of str
        What must hold for it.
    case : str
        Which of a theorem's cases applies.

    Examples
    --------
    >>> top_k(Setting(rounds=100, m=0.0, D=0.5, gradient=1.0)).assumptions[0]
    'every loss is convex'
    """

    value: float
    step: float
    assumptions: tuple[str, ...]
    case: str = ""


CONVEX = "every loss is m-strongly convex and not negative"
GRADIENTS = "‖∇f_t(θ)‖ ≤ G + L‖θ − ω*_t‖ in every round"
CLEAN_LOSSES = "clean losses are at most B at the actions played"
BOUNDED = "‖θ‖ ≤ D over the domain"
CONSTANT = "the step is constant"


def invex_dynamic(setting: Setting, a: float, b: float, sharp: bool = False, step: float | None = None) -> Bound:
    r"""Theorem 3.2: Σ over all rounds of g_t(θ_t) − g_t(ω*_t) ≤ ξ·ψ·√((4D² + 6D·V_T)·T), for LEARN in a bounded domain.

    Here ξ is for `B_all` of the setting, and V_T is its `path_all`.

    Parameters
    ----------
    setting : Setting
        The assumptions about the game.
    a, b : float
        Parameters of LEARN.
    sharp : bool, default False
        Whether to use the sharp constants instead of the printed ones.
    step : float, optional
        A constant step. Default: the one that the theorem prescribes.

    Returns
    -------
    Bound
        Of the invex dynamic regret.

    Examples
    --------
    >>> bound = invex_dynamic(Setting(rounds=100, m=1.0, L=1.0, D=1.0), a=1.0, b=1.0, sharp=True)
    >>> round(bound.value, 2), round(bound.step, 3)
    (15.72, 0.509)
    """
    c = check_instance("invex_dynamic", "setting", setting, Setting, "a Setting").constants(a, b, sharp, True)
    value, prescribed = _bound_descent(setting, c.psi, step, setting.path_all)
    assumptions = (CONVEX, GRADIENTS, "losses of all rounds are at most B_all", BOUNDED, CONSTANT)
    return Bound(_cap(c.xi * value), prescribed, assumptions)


def clean_dynamic(setting: Setting, a: float, b: float, sharp: bool = False, step: float | None = None) -> Bound:
    r"""Theorem 3.3: clean dynamic regret of LEARN in a bounded domain.

    It is at most ξ·(ψ·√((4D² + 6D·V_T)·T) + k·(G·φ + L·κ) + k·(G + L·φ)·δ) at the step it prescribes.

    Parameters
    ----------
    setting, a, b, sharp, step
        As in `invex_dynamic`.

    Returns
    -------
    Bound
        Of the clean dynamic regret.

    Examples
    --------
    >>> clean = clean_dynamic(Setting(rounds=100, m=1.0, L=1.0, D=1.0), a=1.0, b=1.0)
    >>> corrupted = clean_dynamic(Setting(rounds=100, k=10, m=1.0, L=1.0, D=1.0, deviation=2.0), a=1.0, b=1.0)
    >>> corrupted.value > clean.value
    True
    """
    c = check_instance("clean_dynamic", "setting", setting, Setting, "a Setting").constants(a, b, sharp)
    value, prescribed = _bound_descent(setting, c.psi, step, setting.path)
    G, L, delta = setting.G, setting.L, setting.deviation
    outliers = setting.k * _cap(G * c.phi + L * c.kappa + (G + L * c.phi) * delta)
    return Bound(_cap(c.xi * (value + outliers)), prescribed, (CONVEX, GRADIENTS, CLEAN_LOSSES, BOUNDED, CONSTANT))


def _bound_descent(setting: Setting, longest: float, step: float | None, path: float) -> tuple[float, float]:
    """(4D² + 6D·V_T)/(2α) + (α/2)·T times the square of the longest pull, and the α that makes it least."""
    reach, longest = setting.D * (4.0 * setting.D + 6.0 * path), max(longest, 1e-300)
    best = sqrt(reach / setting.rounds) / longest
    alpha = best if step is None else check("bounds", "step", step, POSITIVE)
    # At the best step both parts are the same; D = 0 leaves nothing to lose.
    if alpha in (0.0, best):
        return longest * sqrt(reach) * sqrt(setting.rounds), best
    return reach / (2.0 * alpha) + 0.5 * (alpha * longest) * longest * setting.rounds, best


def expert(setting: Setting, a: float, b: float, experts: int, sharp: bool = False) -> Bound:
    r"""The expert lemma: clean loss of Algorithm 2 beyond any of its N experts ≤ ξ·(k·ν + ν·√(T·ln N/2)).

    `step` of the result is the rate β = √(8·ln N/(T·ν²)). The printed proof has two gaps, and the lemma is false as
    stated: docs/notes-on-the-paper.md has a counter-example, and a weighted inequality that is true.

    Parameters
    ----------
    setting, a, b, sharp
        As in `invex_dynamic`.
    experts : int
        N, the number of experts.

    Returns
    -------
    Bound
        Of the regret against an expert.

    Examples
    --------
    >>> round(expert(Setting(rounds=100, m=1.0), a=1.0, b=1.0, experts=8).value, 2)
    20.39
    """
    c = check_instance("expert", "setting", setting, Setting, "a Setting").constants(a, b, sharp)
    entropy = log(check("expert", "experts", experts, AT_LEAST_ONE))
    rate = sqrt(8.0 * entropy / setting.rounds) / c.nu
    value = c.xi * c.nu * (setting.k + sqrt(setting.rounds * entropy / 2.0))
    return Bound(_cap(value), rate, ("every loss is convex and not negative", CLEAN_LOSSES), case="not proved")


def clean_dynamic_unbounded(
    setting: Setting, a: float, b: float, epsilon: float, a_max: float, sharp: bool = False, printed: bool = False
) -> Bound:
    r"""The formal version of Theorem 3.5: clean dynamic regret of Algorithm 2 without a domain, in five cases.

    Which case applies depends on 𝔇, the longest minimizer, and on α* = √((32𝔇² + 24𝔇·V_T)/(T·ψ²)); `case` names it.

    Parameters
    ----------
    setting : Setting
        B must bound the clean losses of every expert, not only those of the actions that were played.
    a, b, sharp
        As in `invex_dynamic`.
    epsilon, a_max : float
        Parameters of the grid of experts.
    printed : bool, default False
        As in the paper, where the large-comparator case drops L and the grid has T·log₂ a_max experts, not rounded up.

    Returns
    -------
    Bound
        `case` names the case that applies.

    Examples
    --------
    >>> setting = Setting(rounds=100, m=1.0, L=1.0, comparator=1.0)
    >>> clean_dynamic_unbounded(setting, a=1.0, b=1.0, epsilon=1.0, a_max=100.0).case
    'step below the grid'
    """
    c = check_instance("clean_dynamic_unbounded", "setting", setting, Setting, "a Setting").constants(a, b, sharp)
    epsilon = check("clean_dynamic_unbounded", "epsilon", epsilon, POSITIVE)
    a_max = check("clean_dynamic_unbounded", "a_max", a_max, Interval(2.0, inf, "left"))
    T, size, path = setting.rounds, setting.comparator, setting.path
    root, reach = sqrt(T), size * (16.0 * size + 12.0 * path)
    best = sqrt(2.0) * sqrt(reach / T) / max(c.psi, 1e-300)
    assumptions = (CONVEX, GRADIENTS, "every expert's clean losses are at most B", f"a_max ≥ {a_max / root:g}·√T")
    price = setting.G * c.phi + setting.L * c.kappa + c.psi * setting.deviation + c.nu
    outliers = setting.k * _cap(price)
    steps_tried = log2(a_max) if printed else ceil(log2(a_max))
    experts = c.nu * sqrt(T * log(max(T * steps_tried, 1.0)) / 2.0)
    # 2^T overflows, its logarithm does not.
    if size > 0.0 and log2(size) > log2(epsilon) + T - log2(T):
        gradient = setting.G + 2.0 * (1.0 if printed else setting.L) * size
        value = 2.0 * size * gradient * (log2(size) + log2(T) - log2(epsilon))
        return Bound(_cap(value), best, assumptions, "large comparator")
    if size < 2.0 * epsilon / T:
        case = "small comparator"
        value = 8.0 * epsilon * epsilon / (T * root) + root * (c.psi * c.psi) + 6.0 * epsilon * path / root
    elif best <= 2.0 / root:
        case = "step below the grid"
        value = 8.0 * size * size * root + c.psi * c.psi * root + c.psi * sqrt(2.0 * reach * T)
    elif best >= a_max / root:
        case, longest = "step above the grid", a_max / root
        value = reach / longest + 0.5 * c.psi * sqrt(2.0 * reach * T)
    else:
        case = "inside the grid"
        value = 3.0 * c.psi * sqrt(T * reach / 2.0)
    return Bound(_cap(c.xi * (value + outliers + experts)), best, assumptions, case)


def top_k(setting: Setting, step: float | None = None) -> Bound:
    r"""Appendix B: clean dynamic regret of OGD with the Top-k filter that knows k.

    At most 2·G(S)·√((Δ² + 3Δ·V_T)·T) + 2Δ·G(S)·k + 2Δ·G(S)·(k + 1), with Δ = 2D the diameter of the domain.

    Parameters
    ----------
    setting, step
        As in `invex_dynamic`.

    Returns
    -------
    Bound
        Its step is that of OGD.

    Examples
    --------
    >>> top_k(Setting(rounds=100, m=0.0, D=0.5, gradient=1.0)).value
    22.0
    """
    check_instance("top_k", "setting", setting, Setting, "a Setting")
    # A gradient that passes the filter is at most twice the longest clean one.
    value, prescribed = _bound_descent(setting, 2.0 * setting.gradient, step, setting.path)
    value += 2.0 * (2.0 * setting.D) * setting.gradient * (2 * setting.k + 1)
    return Bound(_cap(value), prescribed, ("every loss is convex", BOUNDED, "k is known to the filter", CONSTANT))


def normalised(setting: Setting, K: float | None = None, step: float | None = None) -> Bound:
    r"""Normalised OGD: clean dynamic regret ≤ K·(√(T·(4R² + 6R·V_T)) + 2R·k) with ‖θ‖ ≤ R.

    The losses are weakly pseudo-convex: f(θ) − f* ≤ K·⟨∇f(θ), θ − θ*⟩/‖∇f(θ)‖; convex ones are, with K the longest
    gradient. The published bound is half of what its proof gives, which is this with k = 0.

    Parameters
    ----------
    setting, step
        As in `invex_dynamic`.
    K : float, optional
        Constant of weak pseudo-convexity. Default: the longest clean gradient.

    Returns
    -------
    Bound
        Its step is the length of a move.

    Examples
    --------
    >>> normalised(Setting(rounds=100, m=0.0, D=1.0, gradient=1.0)).value
    20.0

    References
    ----------
    Gao, Li and Zhang, Online learning with non-convex losses and non-stationary regret, 2018.
    """
    check_instance("normalised", "setting", setting, Setting, "a Setting")
    slope = setting.gradient if K is None else check("normalised", "K", K, POSITIVE)
    value, prescribed = _bound_descent(setting, 1.0, step, setting.path)
    assumptions = ("clean losses are weakly pseudo-convex with K", BOUNDED, CONSTANT)
    return Bound(_cap(slope * (value + 2.0 * setting.D * setting.k)), prescribed, assumptions)


def _cap(value: float) -> float:
    return min(value, LARGEST)
