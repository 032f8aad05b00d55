r"""Convex losses of a linear prediction p = ⟨x, θ⟩, with an optional (l2/2)·‖θ‖².

Each loss is a function of the prediction: its value and its slope (a subgradient at kinks). The formulas take floats or
arrays, and the compiled rounds call the same functions. CONTRIBUTING shows how to add a loss.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, cast

import numpy as np

from redescend.losses.loss import ConvexSet, Loss
from redescend.numeric import LARGEST, Array, Values, choose, dot, norm, unknown_code
from redescend.parameters import Component, Interval, NonNegative

TINY = float(np.finfo(np.float64).tiny)
# How often the search along x is widened before the edge of the domain counts as reached.
DOUBLINGS = 60

SQUARED, HINGE, LOGISTIC, ABSOLUTE, EPSILON_INSENSITIVE, PINBALL = range(6)


def value(kind: int, c: float, p: Values, y: Values) -> Values:
    """Loss of the prediction p, without l2, of the loss with this code; c is its parameter."""
    if kind == SQUARED:
        return (p - y) * (p - y)
    if kind == HINGE:
        return np.maximum(0.0, 1.0 - y * p)
    if kind == LOGISTIC:
        z = -y * p
        return np.maximum(z, 0.0) + np.log1p(np.exp(-np.abs(z)))
    if kind == ABSOLUTE:
        return np.abs(p - y)
    if kind == EPSILON_INSENSITIVE:
        return np.maximum(0.0, np.abs(p - y) - c)
    if kind == PINBALL:
        return np.maximum(c * (y - p), (c - 1.0) * (y - p))
    return unknown_code(kind)


def slope(kind: int, c: float, p: Values, y: Values) -> Values:
    """Derivative of `value` in p; at a kink, the subgradient 0."""
    if kind == SQUARED:
        return 2.0 * (p - y)
    if kind == HINGE:
        return choose(y * p < 1.0, -y, 0.0)
    if kind == LOGISTIC:
        z = -y * p
        e = np.exp(-np.abs(z))
        return -y * choose(z >= 0.0, 1.0, e) / (1.0 + e)
    if kind == ABSOLUTE:
        return np.sign(p - y)
    if kind == EPSILON_INSENSITIVE:
        return choose(np.abs(p - y) > c, np.sign(p - y), 0.0)
    if kind == PINBALL:
        return choose(y > p, -c, choose(y < p, 1.0 - c, 0.0))
    return unknown_code(kind)


def curvature(kind: int) -> float:
    """The largest second derivative of `value` in p; 0 where the slope is piecewise constant."""
    if kind == SQUARED:
        return 2.0
    if kind == LOGISTIC:
        return 0.25
    if kind in (HINGE, ABSOLUTE, EPSILON_INSENSITIVE, PINBALL):
        return 0.0
    return unknown_code(kind)


def jump(kind: int) -> float:
    """The largest jump of the slope at a kink; 0 for a smooth loss."""
    if kind in (HINGE, PINBALL):
        return 1.0
    if kind in (ABSOLUTE, EPSILON_INSENSITIVE):
        return 2.0
    if kind in (SQUARED, LOGISTIC):
        return 0.0
    return unknown_code(kind)


class LinearLoss(Component, Loss):
    """φ(⟨x, θ⟩, y) + (l2/2)·‖θ‖²: the base class of compiled losses.

    Its minimizer over a convex set Θ lies on the curve μ ↦ Π_Θ(μ·x), where φ'(⟨x, θ⟩) + l2·μ crosses 0: one dimension,
    whatever the number of features.

    Parameters
    ----------
    l2 : float, default 0.0
        Strength of the ridge penalty of every loss.
    """

    l2: float
    kind: ClassVar[int]
    """The code of the loss in compiled rounds."""
    margin: ClassVar[bool] = False
    """Whether targets are labels −1 and +1."""
    default_parameters: ClassVar[tuple[float, ...]] = ()
    """Parameters of a loss that is given by name alone, such as ``loss="pinball"`` in scikit-learn."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Raise an error at once if a branch for the code of a new loss was forgotten."""
        super().__init_subclass__(**keywords)
        value(cls.kind, 0.5, 0.0, 1.0), slope(cls.kind, 0.5, 0.0, 1.0), curvature(cls.kind), jump(cls.kind)

    @property
    def setting(self) -> float:
        """The parameter, beside l2, that the compiled rounds get; 0 if the loss has none."""
        return next((number for name, number in vars(self).items() if name != "l2"), 0.0)

    def of_prediction(self, p: Values, y: Values) -> Any:
        """Return φ(p, y) of predictions p and targets y, floats or arrays."""
        with np.errstate(over="ignore"):
            return np.minimum(value(self.kind, self.setting, p, y), LARGEST)

    def slope(self, p: Values, y: Values) -> Any:
        """Return the derivative of φ in the predictions p, at targets y, floats or arrays."""
        with np.errstate(over="ignore", under="ignore"):
            return np.clip(slope(self.kind, self.setting, p, y), -LARGEST, LARGEST)

    def value(self, theta: Any, x: Any, y: float) -> float:
        theta, x = np.asarray(theta), np.asarray(x)
        with np.errstate(over="ignore"):
            ridge = 0.5 * self.l2 * np.float64(norm(theta)) ** 2 if self.l2 else 0.0
            return float(min(self.of_prediction(dot(x, theta), y) + ridge, LARGEST))

    def gradient(self, theta: Any, x: Any, y: float) -> Array:
        theta, x = np.asarray(theta), np.asarray(x)
        with np.errstate(over="ignore"):
            pull, ridge = self.slope(dot(x, theta), y) * x, self.l2 * theta
            return np.clip(np.clip(pull, -LARGEST, LARGEST) + np.clip(ridge, -LARGEST, LARGEST), -LARGEST, LARGEST)

    @abstractmethod
    def best_scale(self, xx: Values, y: Values) -> Any:
        """Return the μ whose θ = μ·x minimizes f over all θ, for targets y and records with ‖x‖² = xx > 0."""

    def minimum(self, x: Any, y: float, domain: ConvexSet | None = None) -> tuple[Array, float]:
        x = np.asarray(x, dtype=np.float64)
        y = float(y)
        size = norm(x)
        # In units in which x has length 1, the same problem with another l2: no square overflows.
        unit, ridge = (x / size, min(self.l2 / size / size, LARGEST)) if size > 0.0 else (x, self.l2)
        mu = float(replace(cast(Any, self), l2=ridge).best_scale(1.0, y)) if size > 0.0 else 0.0
        theta = mu / max(size, TINY) * unit
        if domain is not None:
            projected = domain.project(theta)
            inside = domain.radial or np.array_equal(projected, theta)
            theta = projected if inside else self._minimize_on_curve(x, y, domain)
        return theta, self.value(theta, x, y)

    def _minimize_on_curve(self, x: Array, y: float, domain: ConvexSet) -> Array:
        """Solve φ'(⟨x, Π(μx)⟩) + l2·μ = 0; the left side never falls as μ grows."""

        def excess(scale: float) -> float:
            return float(self.slope(dot(x, domain.project(scale * x)), y) + self.l2 * scale)

        ends: list[float] = []
        for sign in (-1.0, 1.0):
            end = sign / max(norm(x), 1e-150)
            for _ in range(DOUBLINGS):
                if sign * excess(end) >= 0.0:
                    break
                end *= 2.0
            else:
                return domain.project(end * x)
            ends.append(end)
        from scipy.optimize import bisect

        root = bisect(excess, ends[0], ends[1], xtol=1e-300, rtol=4 * np.finfo(float).eps, maxiter=2000)
        near = [domain.project(scale * x) for scale in (root * (1 - 1e-15), root, root * (1 + 1e-15))]
        return min(near, key=lambda theta: self.value(theta, x, y))


@dataclass(frozen=True)
class Squared(LinearLoss):
    r"""(y − ⟨x, θ⟩)² + (l2/2)·‖θ‖², without ½ on the square, as in the paper.

    Examples
    --------
    >>> Squared().value([1.0, 0.0], [2.0, 5.0], 3.0)
    1.0
    >>> Squared(l2=2.0).minimum([1.0, 0.0], 2.0)
    (array([1., 0.]), 2.0)
    """

    l2: NonNegative = 0.0
    kind: ClassVar[int] = SQUARED

    def best_scale(self, xx: Values, y: Values) -> Any:
        return y / (xx + 0.5 * self.l2)


@dataclass(frozen=True)
class Hinge(LinearLoss):
    r"""max(0, 1 − y⟨x, θ⟩) + (l2/2)·‖θ‖², labels −1 and +1.

    Examples
    --------
    >>> Hinge().value([0.5], [1.0], -1.0)
    1.5
    >>> Hinge(l2=1.0).minimum([2.0], 1.0)
    (array([0.5]), 0.125)
    """

    l2: NonNegative = 0.0
    kind: ClassVar[int] = HINGE
    margin: ClassVar[bool] = True

    def best_scale(self, xx: Values, y: Values) -> Any:
        return y * _cap_scale(1.0 / xx, 1.0, self.l2)


@dataclass(frozen=True)
class Logistic(LinearLoss):
    r"""log(1 + exp(−y⟨x, θ⟩)) + (l2/2)·‖θ‖², labels −1 and +1.

    Without l2 no action attains the infimum 0, and `minimum` returns the nearest one at which the loss rounds to 0.

    Examples
    --------
    >>> round(Logistic().value([0.0], [1.0], 1.0), 6)
    0.693147
    """

    l2: NonNegative = 0.0
    kind: ClassVar[int] = LOGISTIC
    margin: ClassVar[bool] = True

    def best_scale(self, xx: Values, y: Values) -> Any:
        if self.l2 == 0.0:
            return y * 746.0 / xx
        # With v = |μ|·xx: v·(1 + e^v) = xx/l2. In q = ln v the left side is convex, so Newton falls to the root.
        target = np.log(xx) - np.log(self.l2)
        q = np.minimum(target - np.log(2.0), np.log(np.maximum(target, 1.0)))
        for _ in range(60):
            v = np.exp(q)
            soft = v + np.log1p(np.exp(-v))
            step = (q + soft - target) / (1.0 + v / (1.0 + np.exp(-v)))
            q = q - step
            if np.all(np.abs(step) <= 1e-16 * np.maximum(1.0, np.abs(q))):
                break
        return y * np.exp(q) / xx


@dataclass(frozen=True)
class Absolute(LinearLoss):
    r"""|y − ⟨x, θ⟩| + (l2/2)·‖θ‖².

    Examples
    --------
    >>> Absolute().value([1.0], [2.0], 5.0)
    3.0
    """

    l2: NonNegative = 0.0
    kind: ClassVar[int] = ABSOLUTE

    def best_scale(self, xx: Values, y: Values) -> Any:
        return np.sign(y) * _cap_scale(np.abs(y) / xx, 1.0, self.l2)


@dataclass(frozen=True)
class EpsilonInsensitive(LinearLoss):
    r"""max(0, |y − ⟨x, θ⟩| − epsilon) + (l2/2)·‖θ‖².

    Parameters
    ----------
    epsilon : float
        The size up to which residuals cost nothing.

    Examples
    --------
    >>> EpsilonInsensitive(0.5).value([1.0], [2.0], 5.0)
    2.5
    """

    epsilon: NonNegative
    l2: NonNegative = 0.0
    kind: ClassVar[int] = EPSILON_INSENSITIVE
    default_parameters: ClassVar[tuple[float, ...]] = (0.1,)

    def best_scale(self, xx: Values, y: Values) -> Any:
        return np.sign(y) * _cap_scale(np.maximum(np.abs(y) - self.epsilon, 0.0) / xx, 1.0, self.l2)


@dataclass(frozen=True)
class Pinball(LinearLoss):
    r"""q·r where the residual r = y − ⟨x, θ⟩ ≥ 0, (q − 1)·r where it is negative, + (l2/2)·‖θ‖².

    Its constant minimizer over a stream is the q-quantile of y.

    Parameters
    ----------
    quantile : float
        The quantile q to predict, between 0 and 1.

    Examples
    --------
    >>> Pinball(0.75).value([1.0], [0.0], 2.0), Pinball(0.75).value([1.0], [0.0], -2.0)
    (1.5, 0.5)
    """

    quantile: Annotated[float, Interval(0, 1, "neither")]
    l2: NonNegative = 0.0
    kind: ClassVar[int] = PINBALL
    default_parameters: ClassVar[tuple[float, ...]] = (0.5,)

    def best_scale(self, xx: Values, y: Values) -> Any:
        pull = np.where(np.asarray(y) > 0.0, self.quantile, 1.0 - self.quantile)
        return np.sign(y) * _cap_scale(np.abs(y) / xx, pull, self.l2)


def _cap_scale(scale: Values, pull: Values, l2: float) -> Any:
    """The minimizer of a loss of slope `pull` with a kink at `scale`, which l2 may stop earlier."""
    return np.minimum(scale, pull / l2) if l2 > 0.0 else scale
