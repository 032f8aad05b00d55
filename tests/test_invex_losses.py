"""Losses over a space: gradients against numerical slopes and pymanopt; learners against the plain statement."""

import numpy as np
import pytest

from redescend import gates, invex, steps, transforms
from redescend.errors import DataError, DivergenceError, MissingLabelError, ParameterError
from tests import reference_invex as reference
from tests.reference import same_state
from tests.refusals import refusal

GENERATOR = np.random.default_rng(2)
MATRICES, SHEET, LINE = invex.SPD(4), invex.Hyperboloid(4), invex.Euclidean(2)
LOSSES = {
    "matrices": (invex.SquaredDistance(MATRICES), MATRICES.random(GENERATOR)),
    "stack": (invex.SquaredDistance(MATRICES), np.stack([MATRICES.random(GENERATOR) for _ in range(3)])),
    "sheet": (invex.SquaredDistance(SHEET), SHEET.random(GENERATOR)),
    "scaling": (invex.OperatorScaling(MATRICES), 1e3 * GENERATOR.normal(size=(3, 4, 4))),
    "quartic": (invex.quartic(2.0), np.array([0.3, -0.2])),
    "crease": (invex.crease(2.0), np.array([0.3, -0.2])),
}


@pytest.mark.parametrize("name", LOSSES)
def test_the_gradient_is_the_slope_in_every_direction(name):
    loss, record = LOSSES[name]
    generator, space, h = np.random.default_rng(4), loss.space, 1e-5
    for _ in range(4):
        theta = space.random(generator, 0.5)
        direction = space.log(theta, space.random(generator, 0.5))
        slope = (
            loss.value(space.exp(theta, h * direction), record) - loss.value(space.exp(theta, -h * direction), record)
        ) / (2 * h)
        # a central difference: h² of curvature and 1e-16/h of rounding, in units of losses of about 10
        assert space.inner(theta, loss.at(theta, record).gradient, direction) == pytest.approx(
            slope, rel=1e-6, abs=1e-7
        )
        assert loss.at(theta, record).value == loss.value(theta, record)


def test_operator_scaling_is_its_formula_with_pymanopts_gradient():
    from pymanopt.manifolds import SymmetricPositiveDefinite  # imports PyTorch, if it is installed

    loss, record = LOSSES["scaling"]
    peer, x = SymmetricPositiveDefinite(4), MATRICES.random(np.random.default_rng(8))
    image = sum(a @ x @ a.T for a in record)
    plain = sum(a.T @ np.linalg.inv(image) @ a for a in record) - np.linalg.inv(x)
    # sums of a few dozen products of well-conditioned matrices
    assert loss.value(x, record) == pytest.approx(np.log(np.linalg.det(image)) - np.log(np.linalg.det(x)), rel=1e-12)
    np.testing.assert_allclose(
        loss.at(x, record).gradient, peer.euclidean_to_riemannian_gradient(x, plain), rtol=1e-9, atol=1e-11
    )
    # steepest where all of the trace is in one eigenvalue
    lone = np.zeros((4, 4, 4))
    lone[:, :, 0] = np.eye(4)
    lone[:, 0, 0] += 1e-9
    assert MATRICES.norm(np.eye(4), loss.at(np.eye(4), lone).gradient) == pytest.approx(loss.steepest, rel=1e-6)


@pytest.mark.parametrize("space", [MATRICES, SHEET, LINE], ids=str)
def test_running_means_are_the_statement_and_the_batch_mean_is_at_rest(space):
    generator = np.random.default_rng(6)
    records = [space.random(generator, 0.6) for _ in range(30)]
    clean = generator.random(30) < 0.8
    expected = reference.running_mean(space, records, clean.astype(float))
    oracle = invex.FrechetMean(space, gate=gates.Oracle(clean))
    descent = invex.ManifoldDescent(invex.SquaredDistance(space), step=steps.StronglyConvex(1.0))
    plain = invex.FrechetMean(space)
    for t, record in enumerate(records):
        # thirty geodesic steps, each with the rounding of one exp and one log
        np.testing.assert_allclose(oracle.theta, expected[t], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(descent.theta, plain.theta, rtol=1e-9, atol=1e-9)
        assert oracle.update(record).weight == clean[t]
        assert descent.update(record).loss == pytest.approx(plain.update(record).loss, rel=1e-9)
    mean = invex.frechet_mean(space, records)
    pull = sum(space.log(mean, record) for record in records)
    assert space.norm(mean, pull) < 1e-11 * len(records)
    assert "no label for round 31" in refusal(MissingLabelError, oracle.update, records[0])


def test_learn_on_a_manifold_weighs_by_the_paper():
    mean = invex.FrechetMean(MATRICES, gate=gates.Robust(transforms.Learn(a=2.0, b=0.3)))
    record = MATRICES.random(np.random.default_rng(9))
    f = 0.5 * MATRICES.distance(MATRICES.origin, record) ** 2
    played = mean.update(record)
    # one exponential of a distance that is exact to a few roundings
    assert played == pytest.approx((f, 1.0 / (1.0 + 0.3 * np.exp(f / 2.0))), rel=1e-12)


LEARNERS = {
    "descent": lambda: invex.ManifoldDescent(
        invex.SquaredDistance(MATRICES), step=steps.AdaptiveNorm(), gate=gates.TopK(2)
    ),
    "mean": lambda: invex.FrechetMean(MATRICES, gate=gates.Clip()),
    "robust": lambda: invex.RobustFrechetMean(MATRICES),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_a_restored_learner_goes_on_bit_by_bit(name):
    generator = np.random.default_rng(10)
    records = [MATRICES.random(generator, 0.3) for _ in range(16)]
    first, second = LEARNERS[name](), LEARNERS[name]()
    assert same_state(second.state(), first.state())
    for record in records[:8]:
        first.update(record)
    state = first.state()
    second.restore(state)
    for record in records[8:]:
        assert first.update(record) == second.update(record)
    np.testing.assert_array_equal(first.theta, second.theta)
    assert first.rounds == second.rounds == 16
    assert "keys" in refusal(DataError, second.restore, {})
    assert "belongs to" in refusal(DataError, second.restore, {**state, "learner": "another"})
    for part, value in state.items():
        if isinstance(value, np.ndarray):
            assert "state" in refusal(DataError, second.restore, {**state, part: np.full(value.shape, np.nan)})


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("bad", [np.full((4, 4), np.nan), np.zeros((4, 4)), np.eye(3), "text", 1e300 * np.eye(4)])
def test_a_bad_record_changes_nothing(name, bad):
    learner = LEARNERS[name]()
    learner.update(2.0 * np.eye(4))
    before = learner.state()
    refusal(DataError, learner.update, bad)
    assert same_state(learner.state(), before)


def test_a_step_that_is_too_long_is_said_and_not_taken():
    learner = invex.ManifoldDescent(invex.SquaredDistance(MATRICES), step=steps.Constant(1e3))
    message = refusal(DivergenceError, learner.update, 100.0 * np.eye(4))
    assert "smaller step" in message
    np.testing.assert_array_equal(learner.theta, np.eye(4))
    far = invex.ManifoldDescent(invex.SquaredDistance(SHEET), step=steps.Constant(1e3))
    assert "smaller step" in refusal(DivergenceError, far.update, SHEET.lift([50.0, 0.0, 0.0, 0.0]))


def test_settings_are_checked_in_one_sentence():
    loss = invex.SquaredDistance(LINE)
    for message in (
        refusal(ParameterError, invex.SPD, 0),
        refusal(ParameterError, invex.SquaredDistance, 3),
        refusal(ParameterError, invex.OperatorScaling, LINE),
        refusal(ParameterError, invex.ManifoldDescent, loss, step=0.1),
        refusal(ParameterError, invex.ManifoldDescent, loss, step=steps.Anytime(), gate=1),
        refusal(ParameterError, invex.ManifoldDescent, loss, step=steps.Anytime(), domain=1),
        refusal(ParameterError, invex.RobustFrechetMean, "SPD"),
        refusal(ParameterError, invex.GeodesicBall, LINE, -1.0),
        refusal(ParameterError, invex.quartic, 0.0),
        refusal(ParameterError, invex.Flat, loss),
    ):
        assert "must be" in message
        assert "Got" in message
    assert "full rank" in refusal(DataError, invex.OperatorScaling(MATRICES).check, np.zeros((2, 4, 4)))
    assert "at least one" in refusal(DataError, loss.check, np.zeros((0, 2)))
