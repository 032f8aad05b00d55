r"""What the self-tuning learner needs of a loss: two densities, an implicit step, and the information of a record.

A clean record at scale s has a density that falls as the loss grows; an outlier has one that falls like 1/|r|, the same
under every s (one that is flat would drive s to 0). A label is clean with probability σ(m/s) at the margin m, and
flipped with σ(−m/s). To add a loss: write its branch in `densities`, in `implicit_move` (or in `steepness` and
`beyond_kink`, if it grows linearly), and in `information`.
"""

from __future__ import annotations

import numpy as np

from redescend.errors import ParameterError
from redescend.losses.linear import ABSOLUTE, EPSILON_INSENSITIVE, HINGE, LOGISTIC, PINBALL, SQUARED, LinearLoss
from redescend.numeric import choose, unknown_code
from redescend.parameters import bad_parameter

NORMAL = 0.3989422804014327
"""1/√(2π)."""

OUTLIER = 0.25
"""The density of an outlier is this share of 1/|r|, or of 1/s where |r| is less."""

ROOT_STEPS, ROOT_FOUND = 200, 1e-13


def check_likelihood(owner: str, loss: LinearLoss) -> None:
    """Raise an error if the loss has no branches here, as self-tuning needs."""
    kind, c = loss.kind, loss.setting
    try:
        densities(kind, c, 1.0, 1.0, 1.0, 1.0), implicit_move(kind, c, 1.0, 2.0, 1.0, 1.0, 1.0)
        information(kind, c, 0.5, 1.0)
    except ParameterError:
        raise bad_parameter(owner, "loss", "a loss with a likelihood in losses/likelihood.py", loss) from None


def sigmoid(z: float) -> float:
    """1/(1 + e^−z), to all its digits on both sides."""
    e = np.exp(-np.abs(z))
    return choose(z >= 0.0, 1.0, e) / (1.0 + e)


def densities(kind: int, c: float, f: float, size: float, s: float, unit: float) -> tuple[float, float]:
    """Densities of a clean record and of an outlier at scale s, times `unit`.

    f is the loss, and `size` the residual |r| (for the squared loss √f). For labels the size is the margin.
    """
    if kind in (HINGE, LOGISTIC):
        clean = sigmoid(size / s)
        return clean, 1.0 - clean
    if kind == SQUARED:
        z = size / s
        return NORMAL * np.exp(-0.5 * z * z) * unit / s, OUTLIER * unit / max(size, s)
    if kind == PINBALL:
        # A record far on the steep side may be clean: the distance tells an outlier, the loss does not.
        return 0.5 * np.exp(-size / s) * unit / s, OUTLIER * unit / max(size, s)
    if kind in (ABSOLUTE, EPSILON_INSENSITIVE):
        width = s + c if kind == EPSILON_INSENSITIVE else s
        return 0.5 * np.exp(-f / s) * unit / width, OUTLIER * unit / max(size, width)
    return unknown_code(kind), np.nan


def member_density(kind: int, c: float, f: float, s: float, unit: float, clean: float) -> float:
    """The density that members are compared by: that of a clean record, but for a quantile one of its loss.

    Only its loss tells a quantile τ from the median; its scale is 2τ(1 − τ) times that of residuals.
    """
    return 0.5 * np.exp(-f / (2.0 * c * (1.0 - c) * s)) * unit / s if kind == PINBALL else clean


def logistic_pull(m: float, a: float) -> float:
    """σ(−z) where z = m + a·σ(−z): the pull of a label on its margin m in an implicit step of size a.

    By Newton's method inside the bracket [m, m + a].
    """
    low, high = m, m + a
    z = m + a * sigmoid(-m) / (1.0 + 0.25 * a)
    last = a
    for _ in range(ROOT_STEPS):
        pull = sigmoid(-z)
        over = z - m - a * pull
        if over > 0.0:
            high = z
        else:
            low = z
        better = z - over / (1.0 + a * pull * (1.0 - pull))
        if np.abs(better - z) <= ROOT_FOUND * (1.0 + np.abs(z)):
            break
        # Newton may creep from side to side: a step that is not half as long as the last is replaced by a bisection.
        if not (low < better < high and np.abs(better - z) <= 0.5 * last):
            better = 0.5 * (low + high)
        last = np.abs(better - z)
        z = better
    return sigmoid(-z)


def steepness(kind: int, c: float, r: float) -> float:
    """|φ'| of a loss that grows linearly, at the residual r = prediction − target."""
    if kind == PINBALL:
        return 1.0 - c if r > 0.0 else c
    return 1.0


def beyond_kink(kind: int, c: float, r: float) -> float:
    """How far the residual is from where a loss that grows linearly is 0."""
    return max(0.0, np.abs(r) - c) if kind == EPSILON_INSENSITIVE else np.abs(r)


def implicit_move(kind: int, c: float, p: float, y: float, e: float, xx: float, spread: float) -> float:
    """The μ with θ + μ·x the minimiser of f + ‖·−θ‖²/(2e), for ‖x‖² = xx; hinge moves as the logistic loss does.

    Losses that grow linearly move by e·spread·|φ'|, in the units of the target, and at most to where they are 0.
    """
    r = p - y
    if kind == SQUARED:
        return -r * (2.0 * e / (1.0 + 2.0 * e * xx))
    if kind in (HINGE, LOGISTIC):
        return e * logistic_pull(y * p, e * xx) * y
    if kind in (ABSOLUTE, EPSILON_INSENSITIVE, PINBALL):
        return -np.sign(r) * min(e * spread * steepness(kind, c, r), beyond_kink(kind, c, r) / xx)
    return unknown_code(kind)


def information(kind: int, c: float, pull: float, spread: float) -> float:
    """The curvature that a record adds to a second-order follower, in units of its gate.

    For labels `pull` is σ(−z) at the new margin z; losses that grow linearly have the Fisher information of their
    density.
    """
    if kind == SQUARED:
        return 1.0
    if kind in (HINGE, LOGISTIC):
        return pull * (1.0 - pull)
    if kind == PINBALL:
        return c * (1.0 - c)
    if kind in (ABSOLUTE, EPSILON_INSENSITIVE):
        return spread / (spread + c) if kind == EPSILON_INSENSITIVE else 1.0
    return unknown_code(kind)
