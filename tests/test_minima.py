"""The minimizer of one record, over all of space and over every domain; and losses that users bring."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

from redescend.domains import Ball, Box, Intersection, Reals, Simplex
from redescend.errors import DataError
from redescend.losses import Custom, Hinge, Logistic, Loss, Pinball, Squared
from redescend.numeric import LARGEST
from tests.catalogue import (
    DIM,
    DOMAINS,
    INTERSECTIONS,
    LINEAR_LOSSES,
    bounded,
    name_of,
    quartic_gradient,
    quartic_value,
    record,
)

EPS = float(np.finfo(float).eps)
TINY = float(np.finfo(float).tiny)
VECTORS = st.lists(st.floats(-10, 10), min_size=DIM, max_size=DIM).map(np.array)
SEEDS = st.integers(0, 2**32 - 1)
BOUNDED = [domain for domain in DOMAINS if bounded(domain)]
PLAIN = [domain for domain in BOUNDED if domain not in INTERSECTIONS]
STEEP = [loss for loss in LINEAR_LOSSES if loss.l2 > 1.0]


def improvable(loss: Loss, x: np.ndarray, y: float, theta: np.ndarray, others: np.ndarray, slack: float) -> bool:
    return any(loss.value(other, x, y) < loss.value(theta, x, y) - slack for other in others)


def check_minimum_over(loss: Loss, domain: Any) -> None:
    """The minimizer is a member, and no other member is better."""
    random = np.random.default_rng(7)
    members = np.array([domain.project(point) for point in 2 * random.normal(size=(20, DIM))])
    for _ in range(1 if isinstance(domain, Intersection) else 2):
        x, y = record(loss, random)
        theta, value = loss.minimum(x, y, domain)
        assert domain.contains(theta)
        assert value == loss.value(theta, x, y)
        # between a member and the minimizer all are members
        nearby = [theta + share * (members - theta) for share in (1.0, 1e-2, 1e-5)]
        assert not improvable(loss, x, y, theta, np.vstack(nearby), 1e-13 * (1 + y * y))


@pytest.mark.parametrize("domain", INTERSECTIONS, ids=name_of)
@pytest.mark.parametrize("loss", [Squared(2.5), Pinball(0.9, 2.5)], ids=name_of)
def test_minimum_over_an_intersection(loss, domain):
    check_minimum_over(loss, domain)


@pytest.mark.parametrize("loss", [Squared(), pytest.param(Hinge(), marks=pytest.mark.soak)], ids=name_of)
def test_minimum_over_an_intersection_without_ridge(loss):
    check_minimum_over(loss, Intersection(Simplex(), Box(0.1, 0.6)))


@pytest.mark.parametrize("loss", LINEAR_LOSSES, ids=name_of)
class TestMinimum:
    @settings(max_examples=15)
    @given(seed=SEEDS, scale=st.sampled_from([1e-3, 1.0, 1e3]))
    def test_no_other_action_is_better(self, loss, seed, scale):
        random = np.random.default_rng(seed)
        x, y = record(loss, random)
        theta, value = loss.minimum(scale * x, y)
        assert value == loss.value(theta, scale * x, y)
        others = theta + np.logspace(-8, 2, 30)[:, None] * random.normal(size=(30, DIM)) / scale
        slack = 8 * EPS * (1 + y * y + value)
        assert not improvable(loss, scale * x, y, theta, np.vstack([others, np.zeros(DIM), 1.001 * theta]), slack)

    def test_a_general_solver_finds_nothing_better(self, loss):
        random = np.random.default_rng(6)
        for _ in range(2):
            x, y = record(loss, random)
            _, value = loss.minimum(x, y)
            top = 3 * max(1.0, abs(y)) / (x @ x)
            along = minimize_scalar(lambda mu: loss.value(mu * x, x, y), (-top, top), options={"xtol": 1e-12})  # noqa: B023
            found = minimize(lambda theta: loss.value(theta, x, y), np.zeros(DIM), method="Nelder-Mead")  # noqa: B023
            assert value <= min(along.fun, found.fun) + 1e-12
            if loss.l2 > 0.0:
                assert value == pytest.approx(along.fun, rel=1e-9, abs=1e-9)

    def test_a_record_without_features_is_best_met_by_zero(self, loss):
        for domain in (None, Reals(), Ball(1.0)):
            theta, value = loss.minimum(np.zeros(DIM), 1.0, domain)
            np.testing.assert_array_equal(theta, np.zeros(DIM))
            assert value == pytest.approx(float(loss.of_prediction(0.0, 1.0)), rel=4 * EPS)

    def test_a_target_of_zero_is_met_by_zero(self, loss):
        if not loss.margin:
            theta, value = loss.minimum(np.ones(DIM), 0.0)
            np.testing.assert_array_equal(theta, np.zeros(DIM))
            assert value == 0.0

    @pytest.mark.parametrize("scale", [1e-250, 1e-165, 1e-150, 1e-60, 1e60, 1e150, 1e165, 1e250])
    def test_records_of_any_size(self, loss, scale):
        """A record s times as large, with l2·s², has a minimizer s times as small and the same minimum."""
        x = np.array([3.0, -4.0]) * scale
        theta, value = loss.minimum(x, 1.0)
        assert np.isfinite(theta).all()
        bare = type(loss)(**{**vars(loss), "l2": 0.0})
        bound = 1e-12 if loss.l2 == 0.0 else bare.value(np.zeros(2), x, 1.0) * (1 + 8 * EPS)
        assert value <= bound
        if loss.l2 > 0.0 and scale > 1.0:
            assert value <= 1e-12, "a tiny action meets the record, and costs nothing"

    @pytest.mark.parametrize("domain", PLAIN, ids=name_of)
    def test_over_a_domain(self, loss, domain):
        check_minimum_over(loss, domain)

    def test_over_a_domain_that_holds_the_free_minimizer(self, loss):
        x, y = np.array([0.6, -0.8, 0.0]), 1.0
        free, value = loss.minimum(x, y)
        for domain in (None, Reals(), Ball(1e4)):
            theta, there = loss.minimum(x, y, domain)
            np.testing.assert_array_equal(theta, free)
            assert there == value


def projected_descent(loss: Any, x: np.ndarray, y: float, domain: Any) -> tuple[float, float]:
    """Where descent with steps 2/(l2·(t + 1)) and weights ∝ t ends, and how far above the minimum that can be.

    The bound is 2G²/(l2·(T + 1)), G the longest subgradient met: Lacoste-Julien, Schmidt and Bach, 2012.
    """
    theta, mean, longest, rounds = domain.project(np.zeros(DIM)), np.zeros(DIM), 0.0, 400
    for t in range(1, rounds + 1):
        mean += 2 * t / (rounds * (rounds + 1)) * theta
        gradient = loss.gradient(theta, x, y)
        longest = max(longest, float(np.linalg.norm(gradient)))
        theta = domain.project(theta - 2 * gradient / (loss.l2 * (t + 1)))
    return loss.value(mean, x, y), 2 * longest**2 / (loss.l2 * (rounds + 1))


@pytest.mark.parametrize("domain", PLAIN, ids=name_of)
@pytest.mark.parametrize("loss", STEEP, ids=name_of)
def test_over_a_domain_a_long_descent_comes_as_near_as_its_theorem_says(loss, domain):
    x, y = record(loss, np.random.default_rng(8))
    lowest = loss.minimum(x, y, domain)[1]
    reached, bound = projected_descent(loss, x, y, domain)
    assert lowest <= reached + 1e-12 * (1 + y * y)
    assert reached - lowest <= bound


@given(
    x=VECTORS,
    y=st.floats(-1e3, 1e3).filter(lambda y: y == 0.0 or abs(y) > 1e-100),
    l2=st.sampled_from([0.0, 1e-4, 1.0, 1e6]),
)
def test_squared_in_closed_form(x, y, l2):
    """θ = 2y·x/(l2 + 2‖x‖²), and l2·y²/(l2 + 2‖x‖²) there."""
    xx = float(sum(Fraction(entry) ** 2 for entry in x))
    assume(xx > 1e-100)
    theta, value = Squared(l2).minimum(x, y)
    exact = [float(2 * Fraction(y) * Fraction(entry) / (Fraction(l2) + 2 * Fraction(xx))) for entry in x]
    np.testing.assert_allclose(theta, exact, rtol=16 * EPS, atol=TINY)
    # without l2 the residual is the rounding of ⟨x, θ⟩, squared
    assert value == pytest.approx(l2 * y * y / (l2 + 2 * xx), rel=64 * EPS, abs=(16 * EPS * y) ** 2 + TINY)


@given(x=VECTORS, y=st.sampled_from([-1.0, 1.0]), l2=st.sampled_from([0.0, 1e-4, 1.0, 1e6]))
def test_hinge_in_closed_form(x, y, l2):
    """θ = s·y·x with s = min(1/‖x‖², 1/l2)."""
    xx = float(sum(Fraction(entry) ** 2 for entry in x))
    assume(xx > 1e-100)
    s = min(1 / xx, 1 / l2) if l2 else 1 / xx
    theta, value = Hinge(l2).minimum(x, y)
    np.testing.assert_allclose(theta, s * y * x, rtol=16 * EPS, atol=TINY)
    assert value == pytest.approx(max(0.0, 1 - s * xx) + l2 / 2 * s * s * xx, rel=64 * EPS, abs=16 * EPS)


@given(size=st.floats(1e-60, 1e60), l2=st.floats(1e-60, 1e60), y=st.sampled_from([-1.0, 1.0]))
def test_logistic_minimum_balances_pull_and_ridge(size, l2, y):
    """At θ = μ·x the pull 1/(1 + e^{|μ|·xx}) equals l2·|μ|, in logarithms so that neither is lost."""
    theta, _ = Logistic(l2).minimum([size], y)
    mu = abs(theta[0]) / size
    margin = mu * size * size
    assert math.copysign(1.0, theta[0]) == y
    soft = margin + math.log1p(math.exp(-margin))
    # as far as a double can tell: a rounding of μ moves either side by (1 + margin)·eps
    assert math.log(l2) + math.log(mu) == pytest.approx(-soft, abs=64 * EPS * (1 + margin + 300))


def test_logistic_without_ridge_reaches_zero():
    assert Logistic().minimum([0.3, -4.0], -1.0)[1] == 0.0


class TestCustom:
    quartic = Custom(quartic_value, quartic_gradient)

    def test_gives_what_its_functions_give(self):
        theta, x = np.array([1.0, 2.0, 0.0]), np.array([0.5, 1.0, -1.0])
        assert self.quartic.value(theta, x, 3.0) == quartic_value(theta, x, 3.0)
        np.testing.assert_array_equal(self.quartic.gradient(theta, x, 3.0), quartic_gradient(theta, x, 3.0))
        assert self.quartic.value(theta.tolist(), x.tolist(), 3.0) == quartic_value(theta, x, 3.0)

    @pytest.mark.parametrize("returned", [math.nan, -1e-9, -math.inf])
    def test_a_value_that_is_no_loss_is_refused(self, returned):
        loss = Custom(lambda theta, x, y: returned, quartic_gradient)
        with pytest.raises(DataError, match=r"^The value function of Custom must return .* Got \S+ instead\.$"):
            loss.value([1.0], [1.0], 0.0)

    @pytest.mark.parametrize("returned", [1.0, [1.0], np.ones((1, 2)), np.ones(3)])
    def test_a_gradient_of_another_shape_is_refused(self, returned):
        loss = Custom(quartic_value, lambda theta, x, y: returned)
        with pytest.raises(DataError, match=r"^The gradient function of Custom must return .* Got \(.*\) instead\.$"):
            loss.gradient([1.0, 2.0], [1.0, 1.0], 0.0)

    def test_an_infinite_value_is_the_largest(self):
        assert Custom(lambda theta, x, y: math.inf, quartic_gradient).value([1.0], [1.0], 0.0) == LARGEST
        cube = Custom(lambda theta, x, y: abs(theta[0]) ** 3, quartic_gradient)
        assert cube.value(np.array([1e200]), [1.0], 0.0) == LARGEST

    def test_minimum_of_a_written_out_loss_is_that_loss_s(self):
        ridge = Squared(l2=0.7)
        custom = Custom(ridge.value, ridge.gradient)
        random = np.random.default_rng(9)
        for domain in (None, *PLAIN):
            x, y = record(ridge, random)
            theta, value = custom.minimum(x, y, domain)
            expected, lowest = ridge.minimum(x, y, domain)
            # the solver stops at a gradient of 1e-5
            np.testing.assert_allclose(theta, expected, rtol=0, atol=2e-5)
            assert value == pytest.approx(lowest, rel=1e-8, abs=1e-9)

    @pytest.mark.parametrize("domain", [None, *BOUNDED], ids=name_of)
    def test_minimum_is_where_nothing_near_is_better(self, domain):
        random = np.random.default_rng(10)
        x, y = record(self.quartic, random)
        theta, value = self.quartic.minimum(x, y, domain)
        others = theta + np.logspace(-5, 1, 60)[:, None] * random.normal(size=(60, DIM))
        if domain is not None:
            assert domain.contains(theta)
            others = np.array([domain.project(other) for other in others])
        assert value == self.quartic.value(theta, x, y)
        assert not improvable(self.quartic, x, y, theta, others, 1e-9 * (1 + value))


@pytest.mark.parametrize("domain", [None, Box(-0.2, 0.2), Ball(0.3)], ids=str)
@pytest.mark.parametrize("loss", LINEAR_LOSSES[::3], ids=name_of)
def test_a_loss_that_a_user_brings_has_the_same_minimum(loss, domain):
    """Kinks and all: a search that stops at its start would give a regret below 0."""
    random = np.random.default_rng(3)
    brought = Custom(loss.value, loss.gradient)
    for _ in range(2):
        x, y = record(loss, random)
        np.testing.assert_allclose(
            brought.minimum(x, y, domain)[1], loss.minimum(x, y, domain)[1], rtol=1e-6, atol=1e-6
        )
