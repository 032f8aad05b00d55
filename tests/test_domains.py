"""Projections: feasible, nearest, idempotent, never expanding, at every scale."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize

from redescend.domains import Ball, Box, Domain, Intersection, L1Ball, Reals, Simplex
from redescend.errors import ParameterError
from tests.catalogue import DIM, DOMAINS, INTERSECTIONS, name_of

POINTS = st.lists(st.floats(-5, 5), min_size=DIM, max_size=DIM).map(np.array)
SCALES = [1e-140, 1e-20, 1e-3, 1.0, 1e3, 1e20, 1e140]


def inside(domain: Domain, theta: np.ndarray, slack: float = 1e-12) -> bool:
    """Whether θ satisfies the inequalities that define the set."""
    if isinstance(domain, Intersection):
        return all(inside(part, theta, slack) for part in domain.parts)
    if isinstance(domain, Ball):
        return math.hypot(*theta) <= domain.radius * (1 + slack)
    if isinstance(domain, Box):
        return bool((theta >= domain.low - slack).all() and (theta <= domain.high + slack).all())
    if isinstance(domain, L1Ball):
        return math.fsum(np.abs(theta)) <= domain.radius * (1 + slack)
    if isinstance(domain, Simplex):
        return bool((theta >= 0.0).all()) and abs(math.fsum(theta) - domain.total) <= slack * domain.total
    return True


def members(domain: Domain, random: np.random.Generator, count: int = 400) -> np.ndarray:
    """Points of the set, many of them on its border and at its corners, drawn without any projection."""
    if isinstance(domain, Intersection):
        drawn = np.concatenate([members(part, random, 2 * count + 500) for part in domain.parts])
        kept = np.array([point for point in drawn if inside(domain, point)])
        # points between members are members
        share = random.random((count, 1))
        return share * random.choice(kept, count) + (1 - share) * random.choice(kept, count)
    depth = np.where(random.random((count, 1)) < 0.5, 1.0, random.random((count, 1)))
    if isinstance(domain, Ball):
        normal = random.normal(size=(count, DIM))
        return domain.radius * depth * normal / np.linalg.norm(normal, axis=1, keepdims=True)
    if isinstance(domain, Box):
        low, high = np.maximum(domain.low, -20.0), np.minimum(domain.high, 20.0)
        return low + (high - low) * np.clip(random.uniform(-0.5, 1.5, (count, DIM)), 0.0, 1.0)
    if isinstance(domain, L1Ball):
        return domain.radius * depth * random.dirichlet([0.4] * DIM, count) * random.choice([-1.0, 1.0], (count, DIM))
    if isinstance(domain, Simplex):
        return domain.total * random.dirichlet([0.4] * DIM, count)
    return 5 * random.normal(size=(count, DIM))


@pytest.mark.parametrize("domain", DOMAINS, ids=name_of)
class TestEveryDomain:
    @settings(max_examples=15)
    @given(theta=POINTS)
    def test_feasible_and_idempotent(self, domain, theta):
        point = domain.project(theta)
        assert inside(domain, point)
        assert domain.contains(point)
        np.testing.assert_allclose(domain.project(point), point, rtol=0, atol=2e-15)

    @settings(max_examples=15)
    @given(left=POINTS, right=POINTS)
    def test_never_expands(self, domain, left, right):
        moved = np.linalg.norm(domain.project(left) - domain.project(right))
        assert moved <= np.linalg.norm(left - right) + 1e-14

    def test_nearest(self, domain):
        """⟨θ − Πθ, z − Πθ⟩ ≤ 0 for every member z: the one property that only the nearest point has."""
        random = np.random.default_rng(1)
        z = members(domain, random)
        assert all(inside(domain, point) for point in z)
        for theta in 2 * random.normal(size=(12, DIM)):
            point = domain.project(theta)
            assert ((z - point) @ (theta - point)).max() <= 1e-12

    def test_members_stay(self, domain):
        for point in members(domain, np.random.default_rng(2), 20):
            assert domain.contains(point)
            np.testing.assert_allclose(domain.project(point), point, rtol=0, atol=1e-11)

    def test_no_two_members_are_further_apart_than_the_diameter(self, domain):
        z = members(domain, np.random.default_rng(3), 200)
        furthest = np.linalg.norm(z[:, None] - z[None], axis=2).max()
        assert furthest <= domain.diameter * (1 + 1e-12)
        if not isinstance(domain, Reals | Box | Intersection):
            assert furthest >= 0.9 * domain.diameter, "a ball's and a simplex's diameter is not only a bound"

    def test_takes_lists_and_returns_a_new_double_array(self, domain):
        given_point = np.array([0.3, 0.1, 0.6])
        point = domain.project(given_point)
        assert point.dtype == np.float64
        assert not np.shares_memory(point, given_point)
        np.testing.assert_array_equal(domain.project([0.3, 0.1, 0.6]), point)
        point[:] = 9.0
        np.testing.assert_array_equal(given_point, [0.3, 0.1, 0.6])

    def test_single_precision_is_projected_in_double(self, domain):
        theta = np.array([1.3, -0.7, 2.1], np.float32)
        np.testing.assert_array_equal(domain.project(theta), domain.project(theta.astype(float)))


def slow_simplex(theta: np.ndarray, total: float) -> np.ndarray:
    """θ − level, cut at 0, with the level found by halving: Σ max(θ − level, 0) falls from large to 0 as it grows."""
    low, high = theta.max() - 2 * total, theta.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(theta - middle, 0).sum() > total else (low, middle)
    return np.maximum(theta - high, 0.0)


def slow_l1_ball(theta: np.ndarray, radius: float) -> np.ndarray:
    """Soft thresholding, with the threshold found by a root finder."""
    if np.abs(theta).sum() <= radius:
        return theta
    level = brentq(lambda cut: np.maximum(np.abs(theta) - cut, 0).sum() - radius, 0.0, np.abs(theta).max(), xtol=1e-15)
    return np.sign(theta) * np.maximum(np.abs(theta) - level, 0.0)


@pytest.mark.parametrize(("kind", "slow"), [(Simplex, slow_simplex), (L1Ball, slow_l1_ball)])
@settings(max_examples=40)
@given(theta=st.lists(st.floats(-9, 9), min_size=1, max_size=12).map(np.array), size=st.floats(0.01, 30))
def test_simplex_and_l1_ball_against_a_search_for_the_threshold(kind, slow, theta, size):
    np.testing.assert_allclose(kind(size).project(theta), slow(theta, size), rtol=0, atol=1e-13)


def test_simplex_with_ties_and_one_feature():
    np.testing.assert_allclose(Simplex(1.0).project([2.0, 2.0, 2.0, -1.0]), [1 / 3, 1 / 3, 1 / 3, 0.0], rtol=1e-15)
    np.testing.assert_array_equal(Simplex(2.0).project([-7.0]), [2.0])
    np.testing.assert_array_equal(L1Ball(2.0).project([-7.0]), [-2.0])


def limits(part: Domain) -> list[dict[str, object]]:
    """A part as constraints that a general solver takes."""
    if isinstance(part, Ball):
        return [{"type": "ineq", "fun": lambda theta: part.radius**2 - theta @ theta}]
    if isinstance(part, L1Ball):
        signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * DIM)).reshape(DIM, -1).T
        return [{"type": "ineq", "fun": lambda theta: part.radius - signs @ theta}]
    if isinstance(part, Simplex):
        return [
            {"type": "eq", "fun": lambda theta: theta.sum() - part.total},
            {"type": "ineq", "fun": lambda theta: theta},
        ]
    assert isinstance(part, Box)
    return [{"type": "ineq", "fun": lambda theta: np.concatenate([theta - part.low, part.high - theta])}]


@pytest.mark.parametrize("domain", INTERSECTIONS, ids=name_of)
def test_intersection_against_a_general_solver(domain):
    constraints = [limit for part in domain.parts for limit in limits(part)]
    random = np.random.default_rng(4)
    for theta in 2 * random.normal(size=(4, DIM)):
        point = domain.project(theta)
        found = minimize(
            lambda z, theta=theta: (z - theta) @ (z - theta),
            members(domain, random, 1)[0],
            constraints=constraints,
            method="SLSQP",
            options={"ftol": 1e-13, "maxiter": 500},
        )
        assert inside(domain, found.x, 1e-7)
        # a quadratic is flat at its minimum: a solver that knows the distance to 1e-10 knows the point to 1e-5
        assert (point - theta) @ (point - theta) == pytest.approx(found.fun, rel=1e-7, abs=1e-9)
        np.testing.assert_allclose(point, found.x, rtol=0, atol=1e-5)


def test_intersection_of_one_is_that_one():
    theta = np.array([2.0, -1.0, 0.5])
    for domain in DOMAINS:
        if not isinstance(domain, Intersection):
            np.testing.assert_allclose(Intersection(domain).project(theta), domain.project(theta), rtol=1e-15)


def test_order_of_the_parts_does_not_matter():
    theta = np.array([2.0, -1.0, 0.5])
    for domain in INTERSECTIONS:
        turned = Intersection(*domain.parts[::-1])
        np.testing.assert_allclose(turned.project(theta), domain.project(theta), rtol=0, atol=1e-11)


@pytest.mark.parametrize("parts", [(Ball(1.0), Box(2.0, 3.0)), (Simplex(), L1Ball(0.5))], ids=name_of)
def test_sets_that_do_not_meet_are_refused_in_one_sentence(parts):
    with pytest.raises(
        ParameterError,
        match=r"^The parts of Intersection\(.*\) share no point, or too few to find; choose sets that overlap\.$",
    ):
        Intersection(*parts).project(np.array([0.3, 0.1, 0.2]))


@pytest.mark.parametrize("overlap", [0.1, 1e-2, 1e-3, 0.0])
def test_sets_that_hardly_meet_are_projected_on_or_refused(overlap):
    """Alternating projections creep where sets only touch; a point that is not in all of them is never given."""
    lens = Intersection(Box([1.0 - overlap, -5.0, -5.0], 9.0), Ball(1.0))
    rim = math.sqrt(1.0 - (1.0 - overlap) ** 2)
    if overlap >= 1e-2:
        np.testing.assert_allclose(lens.project([0.0, 0.5, 0.0]), [1.0 - overlap, rim, 0.0], atol=1e-9)
    else:
        with pytest.raises(ParameterError, match="too few to find"):
            lens.project([0.0, 0.5, 0.0])


def test_contains():
    assert Ball(1.0).contains([0.6, 0.8])
    assert not Ball(1.0).contains([0.6, 0.8001])
    assert Box(0.0, [1.0, 2.0]).contains([1.0, 0.0])
    assert not Box(0.0, [1.0, 2.0]).contains([1.1, 0.0])
    assert L1Ball(1.0).contains([-0.5, 0.5])
    assert not L1Ball(1.0).contains([-0.5, 0.5001])
    assert Simplex().contains([0.25, 0.75])
    assert not Simplex().contains([0.25, 0.5])
    assert not Simplex().contains([-0.25, 1.25])
    assert Reals().contains([1e308, -1e308])
    assert Intersection(Ball(1.0), Box(0.0, 1.0)).contains([0.5, 0.5])
    assert not Intersection(Ball(1.0), Box(0.0, 1.0)).contains([0.9, 0.9])


@pytest.mark.parametrize("scale", SCALES)
class TestScale:
    """The same picture in another unit is the same projection."""

    @pytest.mark.parametrize("kind", [Ball, L1Ball, Simplex])
    def test_projection_scales(self, kind, scale):
        theta = np.array([3.0, -4.0, 1.0])
        np.testing.assert_allclose(
            kind(2.0 * scale).project(theta * scale), kind(2.0).project(theta) * scale, rtol=1e-14, atol=1e-15 * scale
        )

    @pytest.mark.parametrize("kind", [Ball, L1Ball, Simplex])
    def test_contains_scales(self, kind, scale):
        corner = np.array([scale, 0.0, 0.0])
        assert kind(scale).contains(corner)
        assert not kind(scale).contains(corner * 1.001)

    def test_intersection_scales(self, scale):
        domain, theta = Intersection(Ball(scale), Box(-0.3 * scale, 0.9 * scale)), np.array([3.0, -4.0, 1.0])
        expected = Intersection(Ball(1.0), Box(-0.3, 0.9)).project(theta)
        np.testing.assert_allclose(domain.project(theta * scale), expected * scale, rtol=1e-12)


@pytest.mark.parametrize("far", [1e9, 1e17, 1e160, 1e300, 1.7e308])
@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        (Ball(1.0), [math.sqrt(0.5), -math.sqrt(0.5), 0.0]),
        (Ball(1e-140), [1e-140 * math.sqrt(0.5), -1e-140 * math.sqrt(0.5), 0.0]),
        (Box(-1.0, 2.0), [2.0, -1.0, 0.0]),
        (L1Ball(1.0), [0.5, -0.5, 0.0]),
        (Simplex(), [1.0, 0.0, 0.0]),
        (Intersection(Box(-9.0, 9.0), Simplex()), [1.0, 0.0, 0.0]),
    ],
    ids=name_of,
)
def test_from_very_far_away(domain, expected, far):
    np.testing.assert_allclose(domain.project([far, -far, 0.0]), expected, rtol=1e-12)


@pytest.mark.parametrize("far", [10.0, 1e2, 1e3, 1e6, 1e12])
def test_an_intersection_from_far_away(far):
    """From anywhere beyond 4 along this ray, the box binds two coordinates and the ball the third."""
    domain = Intersection(Ball(1.0), Box(-0.3, 0.9))
    nearest = [0.9, -0.3, math.sqrt(1.0 - 0.81 - 0.09)]
    np.testing.assert_allclose(domain.project(far * np.array([0.6, -0.8, 0.1])), nearest, rtol=1e-9)


def test_infinite_bounds_of_a_box_do_not_bind():
    np.testing.assert_array_equal(Box(-np.inf, [1.0, np.inf]).project([-1e308, 1e308]), [-1e308, 1e308])
    assert Box(0.0, [1.0, np.inf]).diameter == np.inf


def test_diameters():
    assert Reals().diameter == np.inf
    assert Ball(2.0).diameter == L1Ball(2.0).diameter == 4.0
    assert Simplex(2.0).diameter == pytest.approx(2 * math.sqrt(2))
    assert Box([0.0, 0.0], [3.0, 4.0]).diameter == 5.0
    assert Box(0.0, 1.0).diameter == np.inf, "the number of features is not known"
    assert Intersection(Ball(2.0), Simplex()).diameter == pytest.approx(math.sqrt(2))


def test_a_box_knows_how_many_features_it_has():
    with pytest.raises(ParameterError, match=r"^The 'low' parameter of Box must have one entry .* Got 2 instead\.$"):
        Box([0.0, 0.0], 1.0).project([1.0, 2.0, 3.0])


def test_a_box_keeps_its_own_bounds():
    low = np.array([0.0, 0.0])
    box = Box(low, 1.0)
    low[:] = 5.0
    np.testing.assert_array_equal(box.project([-1.0, -1.0]), [0.0, 0.0])
