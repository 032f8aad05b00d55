"""Spaces of Algorithm 3: against pymanopt, against sixty digits, near 0, far away, and after many steps."""

import numpy as np
import pytest

from redescend import invex
from redescend.errors import DataError
from tests import reference_invex as reference
from tests.refusals import refusal

SPACES = [invex.Euclidean(4), invex.Hyperboloid(3), invex.Hyperboloid(40), invex.SPD(1), invex.SPD(5)]
every_space = pytest.mark.parametrize("space", SPACES, ids=str)


def pairs(space, count=8, spread=0.7):
    generator = np.random.default_rng(7)
    return [(space.random(generator, spread), space.random(generator, spread)) for _ in range(count)]


def direction(space, p, generator):
    return space.log(p, space.random(generator, 0.5))


def test_matrices_are_those_of_pymanopt():
    from pymanopt.manifolds import SymmetricPositiveDefinite  # imports PyTorch, if it is installed

    space, peer = invex.SPD(5), SymmetricPositiveDefinite(5)
    for p, q in pairs(space):
        u = peer.log(p, q)
        # two ways of a few hundred operations on matrices with a condition of at most 1e3: a thousand roundings
        np.testing.assert_allclose(space.log(p, q), u, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(space.exp(p, 0.3 * u), peer.exp(p, 0.3 * u), rtol=1e-11, atol=1e-11)
        assert space.distance(p, q) == pytest.approx(peer.dist(p, q), rel=1e-12)
        assert space.inner(p, u, q) == pytest.approx(peer.inner_product(p, u, q), rel=1e-11)


def test_the_hyperboloid_is_the_poincare_ball_of_pymanopt():
    from pymanopt.manifolds import PoincareBall  # imports PyTorch, if it is installed

    space, peer = invex.Hyperboloid(3), PoincareBall(3)
    for p, q in pairs(space):
        a, b = reference.poincare(p), reference.poincare(q)
        # the ball loses digits near its rim: points here are within 1 − 1e-3 of it
        assert space.distance(p, q) == pytest.approx(peer.dist(a, b), rel=1e-10)
        np.testing.assert_allclose(
            reference.poincare(space.between(p, q, 0.3)), peer.exp(a, 0.3 * peer.log(a, b)), rtol=1e-9, atol=1e-10
        )


@pytest.mark.parametrize("near", [1.0, 1e-3, 1e-9, 1e-14])
def test_hyperbolic_distances_are_exact_also_near_0(near):
    space, generator = invex.Hyperboloid(5), np.random.default_rng(3)
    for _ in range(5):
        p = space.random(generator, 0.8)
        q = space.lift(p[1:] + near * generator.normal(size=5))
        # x₀ is rounded, and a distance has p₀² times the relative error of the coordinates: p₀ is below 10
        assert space.distance(p, q) == pytest.approx(reference.hyperbolic_distance(p, q), rel=1e-13)
        u = near * direction(space, p, generator)
        np.testing.assert_allclose(space.exp(p, u), reference.hyperbolic_exp(p, u), rtol=1e-13, atol=1e-13)


@every_space
def test_near_points_keep_their_digits(space):
    generator = np.random.default_rng(5)
    p = space.random(generator, 0.3)
    u = direction(space, p, generator)
    lengths = [space.distance(p, space.exp(p, small * u)) / small for small in (1e-2, 1e-4, 1e-6)]
    # the moved point is rounded to 1e-16, which is 1e-10 of the smallest move
    np.testing.assert_allclose(lengths, space.norm(p, u), rtol=1e-8)
    assert space.distance(p, p) == 0.0


@every_space
def test_geometry_is_consistent(space):
    for p, q in pairs(space):
        u = space.log(p, q)
        distance = space.distance(p, q)
        # each is a second way to the same number, of a few dozen operations
        assert space.norm(p, u) == pytest.approx(distance, rel=1e-10)
        assert space.distance(q, p) == pytest.approx(distance, rel=1e-10)
        np.testing.assert_allclose(space.exp(p, u), q, rtol=1e-9, atol=1e-9)
        third = space.between(p, q, 1 / 3)
        np.testing.assert_allclose(third, space.exp(p, u / 3), rtol=1e-9, atol=1e-9)
        assert space.distance(p, third) == pytest.approx(distance / 3, rel=1e-9)
        ball = invex.GeodesicBall(space, distance / 2, p)
        inside = ball.project(q)
        assert space.distance(p, inside) == pytest.approx(distance / 2, rel=1e-9)
        assert ball.project(third) is third


@every_space
def test_points_stay_on_the_manifold(space):
    generator = np.random.default_rng(11)
    records = [space.random(generator, 0.4) for _ in range(50)]
    theta = space.origin
    for step in range(4_000):
        theta = space.between(theta, records[step % 50], 0.3)
    np.testing.assert_allclose(space.check("theta", theta), theta, rtol=1e-14)
    ball = [space.distance(space.origin, record) for record in records]
    assert space.distance(space.origin, theta) <= max(ball)


@pytest.mark.parametrize("far", [1e-130, 1e-30, 1e30, 1e130])
def test_far_points_are_finite(far):
    matrices, sheet, line = invex.SPD(3), invex.Hyperboloid(3), invex.Euclidean(3)
    generator = np.random.default_rng(1)
    p = matrices.random(generator)
    for space, q in ((matrices, far * p), (sheet, sheet.lift([far, 0.0, 1.0])), (line, np.full(3, far))):
        start = space.random(generator)
        assert np.isfinite(space.distance(start, q))
        middle = space.between(start, q, 0.5)
        space.check("the middle", middle)
        assert space.distance(start, middle) == pytest.approx(space.distance(start, q) / 2, rel=1e-6)
    # a matrix and its multiple: √n·|ln factor|, exactly
    assert matrices.distance(p, far * p) == pytest.approx(np.sqrt(3.0) * abs(np.log(far)), rel=1e-13)


@pytest.mark.parametrize(
    ("space", "point", "said"),
    [
        (invex.SPD(2), np.diag([1.0, -1.0]), "positive definite"),
        (invex.SPD(2), np.ones((2, 2)), "positive definite"),
        (invex.SPD(2), [[1.0, 0.5], [0.0, 1.0]], "symmetric"),
        (invex.SPD(2), np.full((2, 2), np.nan), "finite"),
        (invex.SPD(2), np.eye(3), "(2, 2)"),
        (invex.SPD(2), 1e200 * np.eye(2), "1e+140"),
        (invex.Hyperboloid(2), [1.0, 1.0, 0.0], "hyperboloid"),
        (invex.Hyperboloid(2), [1e200, 1e200, 0.0], "1e+150"),
        (invex.Euclidean(2), ["a", "b"], "floats"),
        (invex.Euclidean(2), [np.inf, 0.0], "finite"),
    ],
)
def test_what_is_no_point_is_refused(space, point, said):
    assert said in refusal(DataError, space.check, "The record", point)


def test_distortion_is_x_coth_x():
    # the sectional curvature of SPD is −½ at least: [X, Y] is never longer than √2·|X||Y|
    assert invex.SPD(5).distortion(2.0) == pytest.approx(np.sqrt(2.0) / np.tanh(np.sqrt(2.0)), rel=1e-15)
    assert invex.Hyperboloid(2).distortion(1e-5) == pytest.approx(1.0 + 1e-10 / 3.0, rel=1e-15)
    assert invex.Euclidean(2).distortion(1e9) == 1.0
