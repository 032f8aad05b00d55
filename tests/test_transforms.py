"""Transforms against their statements in exact arithmetic, from f = 0 to the largest float."""

from __future__ import annotations

import decimal
import itertools
import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from redescend import transforms
from redescend.errors import ParameterError
from redescend.transforms import Barron, Cauchy, GemanMcClure, Huber, Identity, Learn, Transform, Tukey, Welsch
from tests.catalogue import LINEAR_LOSSES, TRANSFORMS

EPS = float(np.finfo(float).eps)
TINY = float(np.finfo(float).tiny)
SCALED = [Huber, Cauchy, Welsch, GemanMcClure, Tukey]
SCALES = [1e-100, 1e-75, 1e-3, 1.0, 1e3, 1e75, 1e100]

EXACT = decimal.Context(prec=100, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[decimal.InvalidOperation])


def log1p(x: Decimal) -> Decimal:
    """log(1 + x); below 1e-25 by its series, whose first four terms give 100 digits."""
    return (1 + x).ln() if abs(x) > Decimal("1e-25") else x - x**2 / 2 + x**3 / 3 - x**4 / 4


def expm1(x: Decimal) -> Decimal:
    """exp(x) − 1, by its series likewise."""
    return x.exp() - 1 if abs(x) > Decimal("1e-25") else x + x**2 / 2 + x**3 / 6 + x**4 / 24


def exact_value(transform: Transform, f: Decimal) -> Decimal:
    """h(f) as its docstring states it."""
    if isinstance(transform, Identity):
        return f
    if isinstance(transform, Learn):
        a, b = Decimal(transform.a), Decimal(transform.b)
        return -a * ((-f / a).exp() + b).ln()
    c2 = Decimal(transform.c) ** 2  # type: ignore[attr-defined]
    alpha = transform.alpha if isinstance(transform, Barron) else None
    if isinstance(transform, Huber):
        return f if f <= c2 else 2 * (c2 * f).sqrt() - c2
    if isinstance(transform, Cauchy) or alpha == 0.0:
        return 2 * c2 * log1p(f / (2 * c2))
    if isinstance(transform, Welsch) or alpha == -math.inf:
        return -2 * c2 * expm1(-f / (2 * c2))
    if isinstance(transform, GemanMcClure):
        return f / (1 + f / (4 * c2))
    if isinstance(transform, Tukey):
        z = min(f / c2, Decimal(1))
        return c2 * (z - z**2 + z**3 / 3)
    assert alpha is not None
    if alpha == 2.0:
        return f
    power, beta = Decimal(alpha) / 2, 2 - Decimal(alpha)
    return c2 * beta / power * expm1(power * log1p(f / (beta * c2)))


def exact_weight(transform: Transform, f: Decimal) -> Decimal:
    """h'(f), differentiated by hand; `test_value_and_weight_agree` watches over the hand."""
    if isinstance(transform, Identity):
        return Decimal(1)
    if isinstance(transform, Learn):
        open_ = (-f / Decimal(transform.a)).exp()
        return open_ / (open_ + Decimal(transform.b))
    c2 = Decimal(transform.c) ** 2  # type: ignore[attr-defined]
    alpha = transform.alpha if isinstance(transform, Barron) else None
    if isinstance(transform, Huber):
        return min(Decimal(1), (c2 / f).sqrt()) if f else Decimal(1)
    if isinstance(transform, Cauchy):
        return 1 / (1 + f / (2 * c2))
    if isinstance(transform, Welsch) or alpha == -math.inf:
        return (-f / (2 * c2)).exp()
    if isinstance(transform, GemanMcClure):
        return 1 / (1 + f / (4 * c2)) ** 2
    if isinstance(transform, Tukey):
        return (1 - min(f / c2, Decimal(1))) ** 2
    assert alpha is not None
    if alpha == 2.0:
        return Decimal(1)
    beta = 2 - Decimal(alpha)
    return (-beta / 2 * log1p(f / (beta * c2))).exp()


def learn_settings() -> list[Learn]:
    grid = [(a, b) for a in (1e-100, 1e-3, 1.0, 1e4, 1e100) for b in (1e-200, 1e-3, 0.9, 1.0, 10.0, 1e200)]
    return [Learn(a, b) for a, b in grid]


NEAR_LIMITS = [-1e300, -1e12, -2.0 - 1e-9, -2.0, -2.0 + 1e-9, -1e-9, -1e-300, 1e-300, 1e-9, 1.0, 1.999, 2.0 - 1e-12]

EVERY_SETTING = [
    Identity(),
    *learn_settings(),
    *[kind(c) for kind in SCALED for c in SCALES],
    *[Barron(alpha, c) for alpha in (-math.inf, 0.0, 2.0, *NEAR_LIMITS) for c in (1e-100, 1.0, 1e100)],
]


def losses_to_try(transform: Transform) -> list[float]:
    """From the smallest to the largest, and around the scale of the transform itself."""
    unit = transform.a if isinstance(transform, Learn) else getattr(transform, "c", 1.0) ** 2
    around = [unit * factor for factor in (1e-8, 0.3, 1.0, 2.0, 30.0, 600.0, 710.0, 1e6)]
    return sorted({0.0, 1e-300, 1e-100, 1e-20, 1.0, 1e20, 1e100, 1e200, 1e308, *around})


def mistakes(transform: Transform, method: str, exact: object) -> list[str]:
    """Where it is not exact; an exponent of up to 745 is rounded to 745·2⁻⁵³, so that no exp is better than 1e-13."""
    slack = 1e-30 if method == "weight" else TINY  # Tukey's last steps cancel, far below any use
    if isinstance(transform, Learn) and method == "value":
        slack += (
            8 * EPS * transform.a * (1 + abs(math.log(transform.b)))
        )  # h crosses 0 there: two terms of this size cancel
    wrong = []
    for f in losses_to_try(transform):
        with decimal.localcontext(EXACT):
            expected = float(exact(transform, Decimal(f)))  # type: ignore[operator]
        got = getattr(transform, method)(f)
        small = f <= (transform.a if isinstance(transform, Learn) else getattr(transform, "c", 1.0) ** 2)
        if not abs(got - expected) <= (16 * EPS if small else 4e-13) * abs(expected) + slack:
            wrong.append(f"{transform}.{method}({f}) = {got}, not {expected}")
    return wrong


def test_value_is_the_printed_formula():
    assert [wrong for transform in EVERY_SETTING for wrong in mistakes(transform, "value", exact_value)] == []


def test_weight_is_the_derivative_of_the_printed_formula():
    assert [wrong for transform in EVERY_SETTING for wrong in mistakes(transform, "weight", exact_weight)] == []


@settings(max_examples=300)
@given(transform=st.sampled_from(TRANSFORMS), f=st.floats(1e-3, 1e3))
def test_value_and_weight_agree(transform, f):
    c2 = getattr(transform, "c", 1.0) ** 2
    assume(abs(f - c2) > 1e-3 * f)  # the second derivative jumps there
    reach = 1e-4 * min(f, c2)
    slope = (transform.value(f + reach) - transform.value(f - reach)) / (2 * reach)
    # a central difference is off by h'''·reach²/6, and rounding by eps·h/reach
    rounding = 4 * EPS * (abs(transform.value(f)) + f + getattr(transform, "a", 0.0)) / reach
    assert slope == pytest.approx(transform.weight(f), rel=1e-6, abs=1e-8 + rounding)


def test_finite_bounded_increasing_and_concave_from_zero_to_the_largest_float():
    f = np.concatenate([[0.0, 5e-324], np.logspace(-300, 308, 1217), [np.finfo(float).max]])
    for transform in EVERY_SETTING:
        value, weight = transform.value(f), transform.weight(f)
        assert np.isfinite(value).all(), transform
        assert ((weight >= 0.0) & (weight <= 1.0)).all(), transform
        # neighbors are 3 times apart: only where h is flat can rounding, a few units in the last place, show
        assert (np.diff(value) >= -1e-12 * np.abs(value[:-1])).all(), transform
        assert (np.diff(weight) <= 1e-12 * weight[:-1]).all(), transform
        assert (value * (1 - 8 * EPS) <= f + TINY).all(), transform


@settings(max_examples=300)
@given(transform=st.sampled_from(TRANSFORMS), left=st.floats(0, 1e6), right=st.floats(0, 1e6), share=st.floats(0, 1))
def test_chords_lie_below(transform, left, right, share):
    chord = share * transform.value(left) + (1 - share) * transform.value(right)
    size = max(left, right) + getattr(transform, "a", 0.0)
    assert transform.value(share * left + (1 - share) * right) >= chord - 1e-14 * size - TINY


def test_zero():
    for transform in EVERY_SETTING:
        learn = isinstance(transform, Learn)
        weight = 1 / (1 + transform.b) if learn else 1.0
        value = -transform.a * math.log1p(transform.b) if learn else 0.0
        assert transform.weight(0.0) == pytest.approx(weight, rel=4 * EPS if learn else 0.0, abs=0.0), transform
        assert transform.value(0.0) == pytest.approx(value, rel=4 * EPS if learn else 0.0, abs=0.0), transform


@pytest.mark.parametrize("method", ["value", "weight"])
@pytest.mark.parametrize("transform", {type(one): one for one in TRANSFORMS}.values(), ids=repr)
def test_shapes_and_precisions(transform, method):
    """A number gives a float; an array keeps its shape and precision; whole numbers are taken as doubles."""
    formula = getattr(transform, method)
    results = [formula(f) for f in (2, 2.0, np.float64(2.0), np.int64(2), np.array(2.0))]
    assert [type(result) for result in results] == [float] * 5
    assert len(set(results)) == 1
    for dtype, shape in itertools.product([np.float32, np.float64], [(0,), (5,), (2, 3), (1, 0, 2)]):
        f = np.random.default_rng(3).exponential(size=shape).astype(dtype)
        before = f.copy()
        out = formula(f)
        assert (out.shape, out.dtype) == (shape, dtype)
        # the same formula in double precision, rounded once
        each = np.array([formula(float(entry)) for entry in f.flat]).reshape(shape)
        np.testing.assert_allclose(out, each, rtol=2 * float(np.finfo(dtype).eps), atol=2 * float(np.finfo(dtype).tiny))
        np.testing.assert_array_equal(f, before)
        assert not np.shares_memory(out, f)
    for single in (np.float32(2.0), np.array(2.0, np.float32), np.finfo(np.float32).max):
        assert formula(single).dtype == np.float32
        assert np.isfinite(formula(single))
    np.testing.assert_array_equal(formula([0, 1, 4]), formula(np.array([0.0, 1.0, 4.0])))


ANY_F = st.floats(0, 1e6)


@pytest.mark.parametrize("make", [*SCALED, *[lambda c, alpha=alpha: Barron(alpha, c) for alpha in (-9.0, 0.0, 1.0)]])
@given(f=ANY_F, c=st.floats(1e-3, 1e3), power=st.integers(-20, 20))
def test_residuals_in_another_unit(make, f, c, power):
    """h_c(s²f) = s²·h_{c/s}(f), to the bit where s is a power of two."""
    assume(f == 0.0 or f > 1e-200)
    s = 2.0**power
    assert make(c).value(s * s * f) == s * s * make(c / s).value(f)
    assert make(c).weight(s * s * f) == make(c / s).weight(f)


@given(f=ANY_F, a=st.floats(1e-3, 1e3), b=st.floats(1e-9, 1e9), power=st.integers(-20, 20))
def test_losses_in_another_unit_for_learn(f, a, b, power):
    """h_{a,b}(s·f) = s·h_{a/s,b}(f), to the bit where s is a power of two."""
    assume(f == 0.0 or f > 1e-200)
    s = 2.0**power
    assert Learn(a, b).value(s * f) == s * Learn(a / s, b).value(f)
    assert Learn(a, b).weight(s * f) == Learn(a / s, b).weight(f)


@pytest.mark.parametrize(
    ("alpha", "limit"),
    [(2.0, lambda c: Identity()), (0.0, Cauchy), (-2.0, GemanMcClure), (-math.inf, Welsch)],
    ids=["identity", "Cauchy", "Geman-McClure", "Welsch"],
)
@pytest.mark.parametrize("c", [0.01, 1.0, 300.0])
def test_barron_contains_the_others(alpha, limit, c):
    f = np.concatenate([[0.0], np.logspace(-12, 4, 60)]) * c * c
    for method in ("value", "weight"):
        expected = getattr(limit(c), method)(f)
        np.testing.assert_allclose(getattr(Barron(alpha, c), method)(f), expected, rtol=1e-12, atol=1e-300)
        for near in (alpha - 1e-9, alpha + 1e-9) if math.isfinite(alpha) else (-1e12,):
            if near <= 2.0:
                # h and h' are smooth in α: 1e-9 away they differ by about 1e-9·ln²(1 + f/c²); −1e12 is as near −∞
                out = getattr(Barron(near, c), method)(f)
                np.testing.assert_allclose(out, expected, rtol=1e-6, atol=1e-9 * expected.max())


@given(threshold=st.floats(-450, 450), softness=st.floats(1e-3, 1e3))
def test_from_threshold_is_half_open_there(threshold, softness):
    threshold *= softness
    gate = Learn.from_threshold(threshold, softness)
    assert gate.a == softness
    assert -gate.a * math.log(gate.b) == pytest.approx(threshold, rel=1e-12, abs=1e-12 * softness)
    # e^{−u}·e^{u} with both rounded: a few units in the last place, whatever u
    assert gate.weight(threshold) == pytest.approx(0.5, rel=8 * EPS)


def test_from_threshold_says_what_is_wrong():
    for wrong in ({"threshold": math.nan, "softness": 1.0}, {"threshold": 1.0, "softness": 0.0}):
        with pytest.raises(ParameterError, match=r"^The '\w+' parameter of Learn.from_threshold must be .* instead\.$"):
            Learn.from_threshold(**wrong)
    with pytest.raises(ParameterError, match=r"^The '\w+' parameter of Learn\S* must be .* instead\.$"):
        Learn.from_threshold(1e4, softness=1.0)


def test_learn_is_the_switch_of_the_paper():
    """The three readings of equation (1): −a·log(e^{−f/a} + b), a logistic switch, and a softplus."""
    a, b = 3.0, 0.02
    half = -a * math.log(b)
    for f in np.linspace(0.0, 40.0, 81):
        assert Learn(a, b).value(f) == pytest.approx(-a * math.log(math.exp(-f / a) + b), rel=1e-13, abs=1e-13)
        assert Learn(a, b).value(f) == pytest.approx(
            half - a * math.log1p(math.exp((half - f) / a)), rel=1e-12, abs=1e-12
        )
        assert Learn(a, b).weight(f) == pytest.approx(1 / (1 + math.exp((f - half) / a)), rel=1e-13)


def test_tukey_is_shut_beyond_c():
    assert Tukey(2.0).weight(4.0) == 0.0
    assert Tukey(2.0).weight(math.nextafter(4.0, 0.0)) >= 0.0
    assert Tukey(2.0).value(4.0) == Tukey(2.0).value(1e308) == pytest.approx(4.0 / 3.0, rel=4 * EPS)


@settings(max_examples=300, suppress_health_check=[HealthCheck.filter_too_much])
@given(
    transform=st.sampled_from(TRANSFORMS),
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from(LINEAR_LOSSES),
    distance=st.floats(1e-3, 3.0),
)
def test_robust_losses_are_invex(transform, seed, loss, distance):
    """g(θ') ≥ g(θ) + ⟨∇g(θ), (θ' − θ)/η⟩ at the minimizer θ' of f, with η the weight at θ: the paper's lemma."""
    random = np.random.default_rng(seed)
    x = random.normal(size=3)
    y = random.choice([-1.0, 1.0]) if loss.margin else random.normal() * 3
    best, lowest = loss.minimum(x, y)
    theta = best + distance * random.normal(size=3)
    f, gradient = loss.value(theta, x, y), loss.gradient(theta, x, y)
    eta = transform.weight(f)
    assume(eta > 1e-250)  # where Tukey is shut for good g is flat, so that no ζ will do
    direction = (best - theta) / eta
    size = 1 + f + np.abs(best - theta) @ np.abs(gradient) + abs(transform.value(f))
    assert transform.value(lowest) >= transform.value(f) + (eta * gradient) @ direction - 1e-12 * size


def test_every_number_names_one_transform():
    kinds = [kind.kind for kind in (Identity, Learn, *SCALED, Barron)]
    assert sorted(kinds) == list(range(len(kinds)))
    for transform in TRANSFORMS:
        assert transforms.value(transform.kind, *transform.settings, np.float64(2.0)) == transform.value(2.0)
        assert transforms.weight(transform.kind, *transform.settings, np.float64(2.0)) == transform.weight(2.0)
