r"""Concave, increasing transforms h of a convex loss f, and their weights h'.

A robust loss is g = h(f), and its gradient is h'(f)·∇f: h'(f) is the weight of the round. Every transform goes with
every loss. All but LEARN are scaled so that h(f) ≈ f near 0 (weight 1 there), and their c is in units of a residual: on
f = r² they are the usual robust losses, up to that factor.

The formulas take a float or an array, and the compiled rounds call the same functions. CONTRIBUTING shows how to add a
transform.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from redescend.numeric import Values, choose, log1p_ratio, one_like, unknown_code
from redescend.parameters import SCALE, Component, Interval, Scale, bad_parameter, check

# Below this share of its scale a transform is f to the last digit; below this α Barron's is Welsch's.
TINY, FLAT = 1e-17, -1e22
# b = exp(−threshold/softness) stays within its range.
SHARPEST = 460.0

IDENTITY, LEARN, HUBER, CAUCHY, WELSCH, GEMAN_MCCLURE, TUKEY, BARRON = range(8)


def learn_value(f: Values, a: float, b: float) -> Values:
    u = f / a
    closing = u + np.log(b) > 0.0
    # log(e^-u + b) with the larger of the two terms taken out, so that neither 0 nor infinity is met
    return choose(closing, -a * np.log(b) - a * np.log1p(np.exp(-u) / b), f - a * np.log1p(b * np.exp(u)))


def learn_weight(f: Values, a: float, b: float) -> Values:
    return 1.0 / (1.0 + b * np.exp(f / a))


def learn_rise(f: Values, a: float, b: float) -> Values:
    """h(f) − h(0), between 0 and a·ln(1 + 1/b), to full precision."""
    return -a * np.log1p(np.expm1(-f / a) / (1.0 + b))


def cauchy_value(f: Values, c: float) -> Values:
    s = 2.0 * c * c
    return choose(f < TINY * s, f, s * log1p_ratio(f, s))


def welsch_value(f: Values, c: float) -> Values:
    s = 2.0 * c * c
    return choose(f < TINY * s, f, -s * np.expm1(-f / s))


def welsch_weight(f: Values, c: float) -> Values:
    return np.exp(-f / (2.0 * c * c))


def barron_value(f: Values, alpha: float, c: float) -> Values:
    if alpha == 2.0:
        return f + 0.0
    if alpha < FLAT:
        return welsch_value(f, c)
    if abs(alpha) < 1e-19:
        return cauchy_value(f, c)
    beta = 2.0 - alpha
    s = beta * c * c
    power = 0.5 * alpha * log1p_ratio(f, s)
    # Near α = 2 the power itself may overflow where its product with s does not.
    large = np.exp(np.minimum(power + np.log(s), 709.7)) / alpha
    return choose(f < TINY * c * c, f, choose(power > 700.0, 2.0 * large, 2.0 * s * (np.expm1(power) / alpha)))


def barron_weight(f: Values, alpha: float, c: float) -> Values:
    if alpha == 2.0:
        return one_like(f)
    if alpha < FLAT:
        return welsch_weight(f, c)
    beta = 2.0 - alpha
    return np.exp(-0.5 * beta * log1p_ratio(f, beta * c * c))


def value(kind: int, c: float, b: float, f: Values) -> Values:
    """h(f) of the transform with this code; c and b are its parameters."""
    if kind == LEARN:
        return learn_value(f, c, b)
    if kind == HUBER:
        return choose(f <= c * c, f, c * (2.0 * np.sqrt(f) - c))
    if kind == CAUCHY:
        return cauchy_value(f, c)
    if kind == WELSCH:
        return welsch_value(f, c)
    if kind == GEMAN_MCCLURE:
        s = 4.0 * c * c
        return choose(f < s, f / (1.0 + f / s), s / (1.0 + s / np.maximum(f, s)))
    if kind == TUKEY:
        z = np.minimum(f / (c * c), 1.0)
        return np.minimum(f, c * c) * (1.0 - z + z * z / 3.0)
    if kind == BARRON:
        return barron_value(f, b, c)
    if kind == IDENTITY:
        return f + 0.0
    return unknown_code(kind)


def weight(kind: int, c: float, b: float, f: Values) -> Values:
    """h'(f) of the transform with this code, in [0, 1]."""
    if kind == LEARN:
        return learn_weight(f, c, b)
    if kind == HUBER:
        return choose(f <= c * c, 1.0, c / np.sqrt(np.maximum(f, c * c)))
    if kind == CAUCHY:
        return 1.0 / (1.0 + f / (2.0 * c * c))
    if kind == WELSCH:
        return welsch_weight(f, c)
    if kind == GEMAN_MCCLURE:
        root = 1.0 / (1.0 + f / (4.0 * c * c))
        return root * root
    if kind == TUKEY:
        rest = 1.0 - np.minimum(f / (c * c), 1.0)
        return rest * rest
    if kind == BARRON:
        return barron_weight(f, b, c)
    if kind == IDENTITY:
        return one_like(f)
    return unknown_code(kind)


@dataclass(frozen=True)
class Transform(Component):
    """Base class of transforms: h and h' of a float or an array, computed in double precision."""

    kind: ClassVar[int]
    """The code of the transform in compiled rounds."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Raise an error at once if a branch for the code of a new transform was forgotten."""
        super().__init_subclass__(**keywords)
        if hasattr(cls, "kind"):
            value(cls.kind, 1.0, 1.0, 0.5), weight(cls.kind, 1.0, 1.0, 0.5)

    @property
    def settings(self) -> tuple[float, float]:
        """The two parameters that the compiled rounds get."""
        return 1.0, 1.0

    def value(self, f: Values) -> Any:
        """Return h(f), of the float type of f."""
        return self._evaluate(value, f)

    def weight(self, f: Values) -> Any:
        """Return h'(f), of the float type of f."""
        return self._evaluate(weight, f)

    def _evaluate(self, formula: Any, f: Values) -> Any:
        losses = np.asarray(f)
        dtype = losses.dtype if losses.dtype.kind == "f" else np.dtype(np.float64)
        with np.errstate(all="ignore"):
            out = np.asarray(formula(self.kind, *self.settings, losses.astype(np.float64)), dtype=np.float64)
        return out.astype(dtype)[()] if dtype != np.float64 or losses.ndim else float(out)


class Identity(Transform):
    r"""No transform: h(f) = f, with weight 1.

    Examples
    --------
    >>> Identity().weight(1e308)
    1.0
    """

    kind: ClassVar[int] = IDENTITY


@dataclass(frozen=True)
class Learn(Transform):
    r"""The LEARN loss: h(f) = −a·log(exp(−f/a) + b).

    The weight is a logistic switch, w = 1/(1 + b·exp(f/a)). On a negative log-likelihood with a = 1 it is the
    probability that the record came from the clean component of a mixture. It keeps the paper's scale: the weight at 0
    is 1/(1 + b).

    Parameters
    ----------
    a : float
        Loss scale at which the gate closes: how soft the switch is, in units of f.
    b : float
        Odds of an outlier at f = 0. The weight is ½ at f = −a·ln b.

    Examples
    --------
    >>> Learn(a=2.0, b=1.0).weight(0.0)
    0.5
    >>> Learn.from_threshold(9.0, softness=1.0).weight(9.0)
    0.5

    References
    ----------
    Barik, Krishna and Tan, LEARN: an invex loss for outlier oblivious robust online optimization, equation (1).
    """

    a: Scale
    b: Annotated[float, Interval(1e-200, 1e200)]
    kind: ClassVar[int] = LEARN

    @property
    def settings(self) -> tuple[float, float]:
        return self.a, self.b

    @classmethod
    def from_threshold(cls, threshold: float, softness: float) -> Learn:
        """Return the transform whose weight is ½ at f = threshold: a = softness, b = exp(−threshold/softness)."""
        threshold = check("Learn.from_threshold", "threshold", threshold, Interval(-np.inf, np.inf, "neither"))
        softness = check("Learn.from_threshold", "softness", softness, SCALE)
        if abs(threshold) > SHARPEST * softness:
            rule = f"at least |threshold|/{SHARPEST:g}"
            raise bad_parameter("Learn.from_threshold", "softness", rule, softness)
        return cls(a=softness, b=float(np.exp(-threshold / softness)))


@dataclass(frozen=True)
class ScaledTransform(Transform):
    """Base class of transforms with only a scale.

    Parameters
    ----------
    c : float
        Residual scale: residuals well above it count as outliers.
    """

    kind: ClassVar[int]
    c: Scale

    @property
    def settings(self) -> tuple[float, float]:
        return self.c, 1.0


class Huber(ScaledTransform):
    r"""h(f) = f up to c², then 2c√f − c²: the square turns into the absolute value at a residual of c.

    Examples
    --------
    >>> Huber(1.0).weight(4.0)
    0.5
    """

    kind: ClassVar[int] = HUBER


class Cauchy(ScaledTransform):
    r"""h(f) = 2c²·log(1 + f/2c²). The weight is ½ at a residual of √2·c.

    Examples
    --------
    >>> Cauchy(1.0).weight(2.0)
    0.5
    """

    kind: ClassVar[int] = CAUCHY


class Welsch(ScaledTransform):
    r"""h(f) = 2c²·(1 − exp(−f/2c²)). The weight is 1/e at a residual of √2·c.

    Examples
    --------
    >>> Welsch(1.0).weight(0.0)
    1.0
    """

    kind: ClassVar[int] = WELSCH


class GemanMcClure(ScaledTransform):
    r"""h(f) = f/(1 + f/4c²). The weight is ¼ at a residual of 2c.

    Examples
    --------
    >>> GemanMcClure(1.0).weight(4.0)
    0.25
    """

    kind: ClassVar[int] = GEMAN_MCCLURE


class Tukey(ScaledTransform):
    r"""Tukey's biweight: h(f) = (c²/3)(1 − (1 − f/c²)³) up to f = c², then constant: weight 0 from a residual of c on.

    Examples
    --------
    >>> Tukey(2.0).weight(2.0), Tukey(2.0).weight(1e308)
    (0.25, 0.0)
    """

    kind: ClassVar[int] = TUKEY


@dataclass(frozen=True)
class Barron(Transform):
    r"""Barron's family, h(f) = 2c²·(β/α)·((f/βc² + 1)^{α/2} − 1) with β = 2 − α, and its limits.

    α = 2 is the identity, 0 is Cauchy, −2 is Geman-McClure and −∞ is Welsch. Above 2, h is not concave.

    Parameters
    ----------
    alpha : float
        Shape, at most 2: the smaller, the less outliers count.
    c : float
        Residual scale at which the loss stops being quadratic.

    Examples
    --------
    >>> Barron(alpha=-2.0, c=1.0).weight(4.0)
    0.25

    References
    ----------
    Barron, A general and adaptive robust loss function, CVPR 2019.
    """

    alpha: Annotated[float, Interval(-np.inf, 2.0)]
    c: Scale
    kind: ClassVar[int] = BARRON

    @property
    def settings(self) -> tuple[float, float]:
        return self.c, self.alpha
