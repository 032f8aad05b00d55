"""Losses against their printed formulas, their gradients against their values, their minima against a search."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from redescend.losses import Absolute, EpsilonInsensitive, Hinge, LinearLoss, Pinball, Squared
from redescend.numeric import LARGEST
from tests.catalogue import DIM, LINEAR_LOSSES, LOSSES, STATED, name_of, record

EPS = float(np.finfo(float).eps)
VECTORS = st.lists(st.floats(-10, 10), min_size=DIM, max_size=DIM).map(np.array)
SEEDS = st.integers(0, 2**32 - 1)


def stated(loss: Any, p: float, y: float) -> float:
    """φ(p, y) as the docstring states it."""
    return float(STATED[type(loss)][0](loss, p, y))


def kinks(loss: Any, y: float) -> list[float]:
    """The predictions at which φ has no derivative."""
    if isinstance(loss, Hinge):
        return [1.0 / y]
    if isinstance(loss, EpsilonInsensitive):
        return [y - loss.epsilon, y + loss.epsilon]
    return [y] if isinstance(loss, Absolute | Pinball) else []


@settings(max_examples=300)
@given(
    loss=st.sampled_from(LINEAR_LOSSES),
    theta=VECTORS,
    x=VECTORS,
    y=st.floats(-10, 10),
    sign=st.sampled_from([-1.0, 1.0]),
)
def test_value_is_the_printed_formula(loss, theta, x, y, sign):
    y = sign if loss.margin else y
    p = float(sum(Fraction(a) * Fraction(b) for a, b in zip(x, theta, strict=True)))
    square = float(sum(Fraction(entry) ** 2 for entry in theta))
    # ⟨x, θ⟩ of vectors of up to 10 is off by a few units in the last place of 300; the square by 2|y − p| of that
    slack = 8 * EPS * 300 * (1 + (2 * abs(y - p) if isinstance(loss, Squared) else 1))
    assert loss.value(theta, x, y) == pytest.approx(stated(loss, p, y) + loss.l2 / 2 * square, rel=8 * EPS, abs=slack)


@settings(max_examples=300)
@given(
    loss=st.sampled_from(LINEAR_LOSSES), p=st.floats(-50, 50), y=st.floats(-10, 10), sign=st.sampled_from([-1.0, 1.0])
)
def test_slope_is_the_derivative_away_from_kinks(loss, p, y, sign):
    y = sign if loss.margin else y
    reach = 1e-5
    assume(all(abs(p - kink) > 2 * reach for kink in kinks(loss, y)))
    quotient = (stated(loss, p + reach, y) - stated(loss, p - reach, y)) / (2 * reach)
    # the quotient is off by φ'''·reach²/6 and by the rounding of φ over reach
    rounding = 4 * EPS * (1 + abs(stated(loss, p, y)) + abs(p) + abs(y)) / reach
    assert loss.slope(p, y) == pytest.approx(quotient, abs=1e-10 + rounding)


@settings(max_examples=300)
@given(loss=st.sampled_from(LOSSES), seed=SEEDS)
def test_gradient_is_the_derivative_of_value(loss, seed):
    random = np.random.default_rng(seed)
    (x, y), theta = record(loss, random), random.normal(size=DIM)
    reach = 1e-5
    assume(all(abs(x @ theta - kink) > 1e-3 for kink in kinks(loss, y)))
    quotients = [
        (loss.value(theta + reach * axis, x, y) - loss.value(theta - reach * axis, x, y)) / (2 * reach)
        for axis in np.eye(DIM)
    ]
    size = 1 + loss.value(theta, x, y) + (x @ x) ** 2 * (1 + abs(x @ theta - y))  # third derivatives of a quartic
    np.testing.assert_allclose(loss.gradient(theta, x, y), quotients, rtol=1e-7, atol=1e-9 * size)


@settings(max_examples=300)
@given(loss=st.sampled_from(LOSSES), seed=SEEDS, at_kink=st.booleans(), distance=st.floats(1e-6, 1e2))
def test_subgradient_inequality_everywhere(loss, seed, at_kink, distance):
    """f(θ') ≥ f(θ) + ⟨g, θ' − θ⟩: convexity, and g is a subgradient also at kinks."""
    random = np.random.default_rng(seed)
    (x, y), theta = record(loss, random), random.normal(size=DIM)
    if at_kink and kinks(loss, y):
        theta += (random.choice(kinks(loss, y)) - x @ theta) / (x @ x) * x
    other = theta + distance * random.normal(size=DIM)
    here, there, gradient = loss.value(theta, x, y), loss.value(other, x, y), loss.gradient(theta, x, y)
    size = 1 + here + there + np.abs(gradient) @ np.abs(other - theta)
    assert there >= here + gradient @ (other - theta) - 1e-13 * size


@settings(max_examples=300)
@given(loss=st.sampled_from(LOSSES), seed=SEEDS, share=st.floats(0, 1))
def test_chords_lie_above(loss, seed, share):
    random = np.random.default_rng(seed)
    x, y = record(loss, random)
    left, right = 5 * random.normal(size=(2, DIM))
    chord = share * loss.value(left, x, y) + (1 - share) * loss.value(right, x, y)
    assert loss.value(share * left + (1 - share) * right, x, y) <= chord * (1 + 1e-12) + 1e-12


@pytest.mark.parametrize("loss", LINEAR_LOSSES, ids=name_of)
def test_at_a_kink_the_slope_is_zero(loss):
    for y in (-1.0, 1.0):
        for kink in kinks(loss, y):
            assert loss.slope(kink, y) == 0.0


def huge_records(loss: Any) -> Iterator[tuple[list[float], list[float], float]]:
    """Actions, records and targets whose products overflow, cancel, or vanish."""
    actions = [[1e308, 1e308], [-1e308, 1e308], [10.0, 0.0], [1e-308, 1e-308]]
    rows = [[1.0, 0.0], [1e308, 1e308], [1e308, -1e308], [10.0, -3.0], [1e-308, 0.0]]
    for theta, x, y in itertools.product(actions, rows, [1.0, -1.0, 1e308, -1e308]):
        yield theta, x, math.copysign(1.0, y) if loss.margin else y


@pytest.mark.parametrize("loss", LINEAR_LOSSES, ids=name_of)
class TestHugeAndSmall:
    def test_value_is_finite_without_a_warning(self, loss):
        for theta, x, y in huge_records(loss):
            assert 0.0 <= loss.value(theta, x, y) <= LARGEST, (theta, x, y)

    def test_gradient_is_finite_without_a_warning(self, loss):
        for theta, x, y in huge_records(loss):
            assert np.isfinite(loss.gradient(theta, x, y)).all(), (theta, x, y)

    def test_predictions_in_bulk(self, loss):
        p, y = np.array([[-1e308, 1e308, 0.0]]), np.array([[1.0], [-1.0]])
        value, slope = loss.of_prediction(p, y), loss.slope(p, y)
        assert value.shape == slope.shape == (2, 3)
        assert np.isfinite(value).all()
        assert np.isfinite(slope).all()
        for i, j in np.ndindex(2, 3):
            assert value[i, j] == loss.of_prediction(p[0, j], y[i, 0])
            assert slope[i, j] == loss.slope(p[0, j], y[i, 0])

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_both_precisions(self, loss, dtype):
        random = np.random.default_rng(5)
        x, y = record(loss, random)
        x, theta = x.astype(dtype), random.normal(size=DIM).astype(dtype)
        doubles = theta.astype(float), x.astype(float), y
        tolerance = 16 * float(np.finfo(dtype).eps)
        assert type(loss.value(theta, x, y)) is float
        assert loss.value(theta, x, y) == pytest.approx(loss.value(*doubles), rel=tolerance, abs=tolerance)
        np.testing.assert_allclose(
            loss.gradient(theta, x, y), loss.gradient(*doubles), rtol=tolerance, atol=8 * tolerance
        )

    def test_lists_are_taken_and_nothing_is_changed(self, loss):
        theta, x = np.array([0.5, -1.0]), np.array([2.0, 1.0])
        assert loss.value(theta.tolist(), x.tolist(), 1.0) == loss.value(theta, x, 1.0)
        np.testing.assert_array_equal(loss.gradient(theta.tolist(), x.tolist(), 1.0), loss.gradient(theta, x, 1.0))
        loss.minimum(x, 1.0)
        np.testing.assert_array_equal([theta, x], [[0.5, -1.0], [2.0, 1.0]])


def test_a_value_too_large_for_a_float_is_the_largest():
    assert Squared().value([1e200], [1.0], 0.0) == LARGEST
    assert Squared(l2=1.0).value([1e200], [0.0], 0.0) == LARGEST


def test_every_number_names_one_loss():
    kinds = {type(loss): loss.kind for loss in LINEAR_LOSSES}
    assert sorted(kinds.values()) == list(range(len(kinds)))
    assert all(issubclass(kind, LinearLoss) for kind in kinds)
