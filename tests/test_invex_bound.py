"""The theorem of Algorithm 3: its formula, its corollary, its assumptions, and that it holds on random games."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import redescend as rd
from redescend import gates, invex, losses, steps, transforms
from redescend.bounds import invex as bounds
from redescend.errors import DataError, ParameterError
from tests import reference_invex as reference
from tests.games import REPRODUCIBLE
from tests.refusals import refusal

GAMES, FEWER = (settings(REPRODUCIBLE, max_examples=count) for count in (150, 60))
ROUNDING = 1e-9


def test_the_right_hand_side_is_that_of_the_statement():
    generator = np.random.default_rng(0)
    for rounds in (1, 7):
        row = {name: generator.exponential(size=rounds) for name in ("path", "gradients", "steps")}
        gammas = {f"gamma{i}": generator.exponential(size=rounds) for i in (1, 2, 3, 4)}
        distances = generator.exponential(size=rounds + 1)
        found = bounds.dynamic_regret(distances, *row.values(), diameter=2.5, **gammas)
        # a sum of a few dozen terms in another order
        assert found == pytest.approx(reference.theorem(distances, *row.values(), 2.5, *gammas.values()), rel=1e-12)


def test_the_corollary_is_the_least_over_constant_steps():
    setting = {"diameter": 3.0, "path": 1.7, "gradient": 2.0, "gamma3": 50.0, "gamma12": 3.0, "gamma4": 4.0}
    promised, step = bounds.constant_step(**setting)

    def total(alpha):
        return 4.0 * ((3.0**2 + 3.0 * 3.0 * 1.7) / (2 * alpha) + 0.5 * alpha * 2.0**2 * 50.0)

    assert promised == pytest.approx(total(step), rel=1e-14)
    assert total(step) < min(total(0.99 * step), total(1.01 * step))
    # normalised descent in a ball of radius ρ: K·√(T(4ρ² + 6ρV))
    normalised = bounds.constant_step(diameter=2 * 0.7, path=1.1, gradient=1.0, gamma3=30.0, gamma4=5.0)
    assert normalised.bound == pytest.approx(5.0 * np.sqrt(30 * (4 * 0.7**2 + 6 * 0.7 * 1.1)), rel=1e-14)


def test_the_printed_argument_of_the_corollary_fails_and_the_repaired_one_does_not():
    # The distance falls where γ₄ is 5 and grows where it is 1. No comparator moves; every gradient has length 1.
    rounds, alpha, top = 100, 0.1, 5.0
    distances = np.tile([1.0, 0.9], rounds // 2 + 1)[: rounds + 1]
    nearer = distances[:-1] ** 2 - distances[1:] ** 2
    gamma4 = np.where(nearer > 0.0, top, 1.0)
    assert np.sum(gamma4 * nearer) > top * distances[0] ** 2
    # The most that each round may have lost. Where it is negative no game plays it: its regret would be at least 0.
    most = gamma4 * (nearer / (2 * alpha) + alpha / 2)
    assert most.sum() > bounds.constant_step(diameter=1.0, path=0.0, gradient=1.0, gamma3=rounds, gamma4=top).bound
    assert most.min() < 0.0
    # Games whose every round may be played: steps back are then as short as the gradients allow.
    generator = np.random.default_rng(0)
    for _ in range(200):
        gamma4 = generator.uniform(1.0, top, size=rounds)
        squares, lost = [1.0], []
        for gamma in gamma4:
            squares.append(generator.uniform(0.0, min(1.0, squares[-1] + alpha**2)))
            lost.append(gamma * ((squares[-2] - squares[-1]) / (2 * alpha) + alpha / 2))
        assert min(lost) >= -ROUNDING
        assert sum(lost) <= gamma4.max() * (1.0 / (2 * alpha) + rounds * alpha / 2) + ROUNDING


def space_of(kind):
    return {"flat": invex.Euclidean(2), "sheet": invex.Hyperboloid(2), "matrices": invex.SPD(2)}[kind]


@GAMES
@given(
    kind=st.sampled_from(["flat", "sheet", "matrices"]),
    gate=st.sampled_from(["always", "learn", "huber", "oracle", "top-k"]),
    step=st.sampled_from(["constant", "anytime", "strong", "normalised", "travelled"]),
    stack=st.booleans(),
    ball=st.booleans(),
    rounds=st.integers(1, 12),
    spread=st.floats(0.05, 2.0),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_theorem_holds_on_random_games_of_squared_distances(kind, gate, step, stack, ball, rounds, spread, seed):
    generator, space = np.random.default_rng(seed), space_of(kind)
    records = [space.random(generator, spread) for _ in range(rounds)]
    domain = invex.GeodesicBall(space, 2.0 * spread) if ball else None
    comparators = [space.random(generator, spread) for _ in range(rounds)]
    if domain:
        comparators = [domain.project(u) for u in comparators]
    if stack:
        records = [np.stack([record, space.random(generator, spread)]) for record in records]
    gates_of = {
        "always": gates.Always(),
        "learn": gates.Robust(transforms.Learn(a=spread**2, b=0.1)),
        "huber": gates.Robust(transforms.Huber(spread)),
        "oracle": gates.Oracle(generator.random(rounds) < 0.7),
        "top-k": gates.TopK(2),
    }
    steps_of = {
        "constant": steps.Constant(float(generator.uniform(0.05, 1.2))),
        "anytime": steps.Anytime(0.5),
        "strong": steps.StronglyConvex(1.0),
        "normalised": steps.Normalised(steps.Constant(0.3 * spread)),
        "travelled": steps.AdaptiveNorm(spread),
    }
    loss = invex.SquaredDistance(space)
    learner = invex.ManifoldDescent(loss, gate=gates_of[gate], step=steps_of[step], domain=domain)
    run = invex.play(learner, records, comparators)
    assert run.regret <= run.bound + ROUNDING * (1.0 + abs(run.bound))


@FEWER
@given(
    gate=st.sampled_from([gates.Always(), gates.Robust(transforms.Learn(a=1.0, b=0.1)), gates.TopK(1)]),
    kind=st.sampled_from(["flat", "sheet", "matrices"]),
    rounds=st.integers(1, 10),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_theorem_holds_for_running_means(gate, kind, rounds, seed):
    generator, space = np.random.default_rng(seed), space_of(kind)
    records = [space.random(generator) for _ in range(rounds)]
    run = invex.play(invex.FrechetMean(space, gate=gate), records, records)
    assert run.regret <= run.bound + ROUNDING * (1.0 + abs(run.bound))
    assert run.compared.max() < 1e-20


@GAMES
@given(
    make=st.sampled_from([invex.quartic, invex.crease]),
    radius=st.floats(0.1, 3.0),
    rounds=st.integers(1, 15),
    seed=st.integers(0, 2**32 - 1),
)
def test_normalised_descent_keeps_its_corrected_bound(make, radius, rounds, seed):
    generator, loss = np.random.default_rng(seed), make(radius)
    ball = invex.GeodesicBall(loss.space, radius)
    minimizers = [ball.project(radius * generator.normal(size=2)) for _ in range(rounds)]
    path = sum(np.linalg.norm(a - b) for a, b in pairwise(minimizers))
    promised, alpha = bounds.constant_step(
        diameter=2.0 * radius, path=path, gradient=1.0, gamma3=float(rounds), gamma4=loss.K
    )
    learner = invex.ManifoldDescent(loss, step=steps.Normalised(steps.Constant(alpha)), domain=ball)
    run = invex.play(learner, minimizers, minimizers)
    assert run.regret <= run.bound * (1 + ROUNDING) + ROUNDING
    assert run.regret <= promised * (1 + ROUNDING)
    moved = run.gradients > 0.0
    np.testing.assert_allclose(run.gamma4[moved], loss.K, rtol=1e-12)
    np.testing.assert_allclose((run.gamma3 * run.gradients**2)[moved], 1.0, rtol=1e-12)
    np.testing.assert_allclose(run.steps[moved], alpha, rtol=1e-12)


@FEWER
@given(rounds=st.integers(1, 12), seed=st.integers(0, 2**32 - 1))
def test_operator_scaling_keeps_the_bound_that_its_steepest_slope_promises(rounds, seed):
    generator, space = np.random.default_rng(seed), invex.SPD(3)
    loss, radius = invex.OperatorScaling(space), 2.0
    ball = invex.GeodesicBall(space, radius)
    u = ball.project(space.random(generator))
    bent = space.distortion(2 * radius)
    promised, alpha = bounds.constant_step(diameter=2 * radius, path=0.0, gradient=loss.steepest, gamma3=rounds * bent)
    learner = invex.ManifoldDescent(loss, step=steps.Constant(alpha), domain=ball)
    run = invex.play(learner, generator.normal(size=(rounds, 2, 3, 3)), [u] * rounds)
    assert run.gradients.max() <= loss.steepest * (1 + ROUNDING)
    assert run.regret <= run.bound + ROUNDING
    assert run.bound <= promised * (1 + ROUNDING)


def drawn(kind):
    flat, sheet, matrices = invex.Euclidean(3), invex.Hyperboloid(3), invex.SPD(3)
    plane = invex.Euclidean(2)

    def points(space):
        return lambda generator: (space.random(generator), space.random(generator))

    def same(generator):
        point = plane.random(generator, 0.5)
        return point, point

    return {
        "flat": (invex.SquaredDistance(flat), points(flat)),
        "sheet": (invex.SquaredDistance(sheet), points(sheet)),
        "matrices": (invex.SquaredDistance(matrices), points(matrices)),
        "scaling": (
            invex.OperatorScaling(matrices),
            lambda generator: (generator.normal(size=(2, 3, 3)), matrices.random(generator)),
        ),
        "quartic": (invex.quartic(10.0), same),
        "crease": (invex.crease(10.0), same),
    }[kind]


@pytest.mark.parametrize("kind", ["flat", "sheet", "matrices", "scaling", "quartic", "crease"])
def test_the_assumptions_hold(kind):
    loss, draw = drawn(kind)
    assert min(invex.check_assumptions(loss, draw, trials=60, seed=3, spread=0.5)) > -ROUNDING


def test_a_space_with_too_little_distortion_is_found_out():
    class TooFlat(invex.Hyperboloid):
        curvature = -0.01

    space = TooFlat(3)
    slack = invex.check_assumptions(
        invex.SquaredDistance(space), lambda generator: (space.random(generator), space.random(generator))
    )
    assert slack.distortion < -0.01
    assert slack.law_of_cosines > -ROUNDING


@pytest.mark.parametrize("domain", [rd.domains.Reals(), rd.domains.Ball(0.5)])
@pytest.mark.parametrize("step", [steps.Anytime(0.1), steps.Normalised(steps.Constant(0.1)), steps.AdaptiveNorm()])
def test_euclidean_learn_is_learn_to_the_last_bit_and_keeps_the_bound(domain, step):
    stream = rd.adversaries.UniformResponse(0, 1).corrupt(rd.streams.ridge(60, seed=0, dim=4), k=10, seed=1)

    def make():
        return rd.Learn(4, loss=losses.Squared(l2=0.1), a=0.5, b=0.1, step=step, domain=domain)

    expected = rd.play(make(), stream, keep_actions=True)
    records = [(x, float(y)) for x, y in zip(stream.X, stream.y, strict=True)]
    comparators = [make().loss.minimum(x, y, domain)[0] for x, y in records]
    run = invex.play(invex.Flat(make()), records, comparators)
    np.testing.assert_array_equal(np.array(run.actions[:-1]), expected.actions)
    np.testing.assert_array_equal(run.actions[-1], expected.theta)
    np.testing.assert_array_equal(run.weights, expected.weights)
    assert run.regret <= run.bound
    assert run.regrets.min() > -ROUNDING


def test_refusals_name_what_is_wrong():
    assert "'diameter'" in refusal(ParameterError, bounds.dynamic_regret, [1, 0], [0], [1], 1, diameter=-1.0)
    assert "steps must be positive" in refusal(ParameterError, bounds.dynamic_regret, [1, 0], [0], [1], 0, diameter=1)
    assert "path must be 1" in refusal(ParameterError, bounds.dynamic_regret, [1, 0], [0, 1], [1], 1, diameter=1)
    flat = invex.FrechetMean(invex.Euclidean(1))
    assert "a comparator for each record" in refusal(DataError, invex.play, flat, [[1.0]], [])
    assert "flat space" in refusal(
        ParameterError, invex.Pseudoconvex, invex.SPD(2), np.sum, np.sign, degree=1.0, steepest=1.0
    )
