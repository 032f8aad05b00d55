"""Numbers too large or too small: a word, or finite numbers, and never anything else."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import redescend as rd
from redescend import domains, errors, gates, losses, steps
from redescend.streaming import StreamModel, fit_stream
from tests import reference
from tests.catalogue import GATES, name_of
from tests.refusals import DIMS, played, refusal, refused_unchanged


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("domain", [domains.Reals(), domains.Box(-np.inf, np.inf)], ids=name_of)
def test_divergence_is_told_and_the_last_action_kept(domain, dim, dtype):
    huge = float(np.finfo(dtype).max) ** 0.98
    X, y = np.full((6, dim), 0.5, dtype), np.ones(6)
    y[4] = huge
    X[4] *= huge
    for play in (played, lambda learner, X, y: [learner.update(*record) for record in zip(X, y, strict=True)]):
        learner = rd.OGD(dim, loss=losses.Squared(), step=steps.Constant(0.01), domain=domain)
        good = rd.OGD(dim, loss=losses.Squared(), step=steps.Constant(0.01), domain=domain)
        message = refusal(errors.DivergenceError, play, learner, X, y)
        assert message.startswith("Round 5: ")
        assert "Try a smaller step" in message
        played(good, X[:4], y[:4])
        np.testing.assert_array_equal(learner.theta, good.theta)
        assert learner.rounds == 4
        np.testing.assert_array_equal(played(learner, X[5:], y[5:]).theta, played(good, X[5:], y[5:]).theta)


@pytest.mark.parametrize("dim", DIMS)
def test_a_step_that_is_too_large_diverges_with_a_word(dim):
    X, y = reference.records(5000, dim, seed=6)
    learner = rd.OGD(dim, loss=losses.Squared(), step=steps.Constant(50.0))
    assert "Try a smaller step" in refusal(errors.DivergenceError, played, learner, X, y)
    assert np.isfinite(learner.theta).all()
    assert 0 < learner.rounds < 5000


@pytest.mark.parametrize("size", [1e200, 1e308, -1e308])
@pytest.mark.parametrize("part", ["x", "y", "both"])
@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("domain", [domains.Reals(), domains.Ball(0.5), domains.Simplex()], ids=name_of)
def test_huge_records_do_not_move_learn(domain, dim, part, size):
    X, y = reference.records(30, dim, seed=7)
    X[::3] = size if part != "y" else X[::3]
    y[::3] = -size if part != "x" else y[::3]
    start = domain.project(np.linspace(0.1, 0.2, dim))
    for step in (steps.Constant(0.1), steps.AdaptiveNorm(), steps.Normalised(steps.Anytime())):
        learner = rd.Learn(dim, loss=losses.Squared(), a=1.0, b=0.1, step=step, domain=domain, start=start)
        trace = played(learner, X, y, keep_actions=True)
        np.testing.assert_array_equal(trace.weights[::3], 0.0)
        assert np.isfinite(trace.losses).all()
        np.testing.assert_array_equal(trace.actions[::3][:-1], trace.actions[1::3][: len(trace.actions[::3]) - 1])
        assert np.isfinite(trace.actions).all()


MAGNITUDES = st.tuples(st.sampled_from([-1.0, 0.0, 1.0]), st.integers(-323, 308)).map(
    lambda number: number[0] * float(f"1e{number[1]}")
)
LOSSES = [losses.Squared(), losses.Squared(l2=1.0), losses.Absolute(l2=0.1), losses.Pinball(0.3)]
STEPS = [steps.Constant(0.1), steps.AdaptiveNorm(), steps.Normalised(steps.Constant(0.1))]
DOMAINS = [domains.Reals(), domains.Ball(1.0), domains.Box(-1.0, 1.0), domains.L1Ball(1.0), domains.Simplex()]


@settings(deadline=None, derandomize=True, max_examples=300)
@given(
    rows=st.lists(st.tuples(MAGNITUDES, MAGNITUDES, MAGNITUDES), min_size=1, max_size=8),
    gate=st.sampled_from([gate for gate in GATES if not isinstance(gate, gates.Oracle)]),
    loss=st.sampled_from(LOSSES),
    step=st.sampled_from(STEPS),
    domain=st.sampled_from(DOMAINS),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_any_magnitude_leaves_numbers_finite(rows, gate, loss, step, domain, dtype):
    """Either a word about divergence, or finite numbers, an allowed action, and no warning."""
    learner = rd.Descent(2, loss=loss, gate=gate, step=step, domain=domain, dtype=dtype)
    for *x, y in rows:
        if np.max(np.abs(x)) > np.finfo(dtype).max:
            assert "finite" in refused_unchanged(errors.DataError, learner, learner.update, x, y)
            continue
        try:
            lost, weight = learner.update(x, y)
        except errors.DivergenceError:
            lost, weight = 0.0, 0.0
        assert np.isfinite(lost)
        assert 0.0 <= weight <= 1.0
        assert np.isfinite(learner.theta).all()
        assert domain.contains(learner.theta, 1e-6 if dtype == np.float32 else 1e-9)
        assert all(np.isfinite(value).all() for name, value in learner.state().items() if name != "learner")


@pytest.mark.parametrize("size", [1e-300, 1e-170, 1e-100, 1e100, 1e150])
@pytest.mark.parametrize("domain", [domains.Reals(), domains.Box(-9.0, 9.0)], ids=name_of)
@pytest.mark.parametrize("step", [steps.AdaptiveNorm(), steps.Normalised(steps.Constant(1.0))], ids=name_of)
def test_steps_that_are_free_of_scale_move_by_one_whatever_the_record(step, domain, size):
    """The first move is scale·g/‖g‖, however long or short g is; the loss is the absolute one, so that g = ±x."""
    learner = rd.OGD(2, loss=losses.Absolute(), step=step, domain=domain)
    learner.update([3.0 * size, 4.0 * size], 1.0)
    np.testing.assert_allclose(learner.theta, [0.6, 0.8], rtol=1e-12)


@pytest.mark.parametrize("domain", [domains.Ball(1.0), domains.Box(-1.0, 1.0), domains.L1Ball(1.0), domains.Simplex()])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e12, 1e30])
def test_a_bounded_domain_never_diverges(domain, dtype, size):
    learner = rd.OGD(2, loss=losses.Squared(), step=steps.Constant(0.1), domain=domain, dtype=dtype)
    learner.update([size, -size], size)
    assert domain.contains(learner.theta, tolerance=1e-6)


@pytest.mark.parametrize("size", [1e-200, 1e-160, 1e160])
def test_records_at_the_ends_of_the_floats(size):
    """Where ‖x‖² has no digits left, the vectorised minima are still those of the loss."""
    random = np.random.default_rng(0)
    stream = rd.Stream(size * random.normal(size=(30, 3)), random.normal(size=30))
    loss = losses.Squared()
    trace = rd.play(rd.Robust(3, loss=loss, transform=rd.transforms.Tukey(1e-50), step=rd.steps.Anytime()), stream)
    least = sum(loss.minimum(x, y)[1] for x, y in zip(stream.X, stream.y, strict=True))
    np.testing.assert_allclose(rd.regret.clean_dynamic(trace, stream, loss)[-1], trace.losses.sum() - least, rtol=1e-12)
    assert np.isfinite(rd.regret.path_length(stream, loss)).all()


def test_what_was_learned_from_wild_units_can_be_restored():
    """A unit of 1e-33, found in one record, makes all others huge: mean squares are beyond that of any record."""
    data = b"a,y\n0.0,0.0\n0.0,0.0\n0.0,0.0\n0.0,0.0\n0.0,1.0\n8.584108736004386e-34,0.0\n1.0,0.0\n1.0,0.0"
    model, rounds = fit_stream(io.BytesIO(data), "y")
    rounds.run()
    StreamModel(**model.get_params()).restore(model.state())


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("unit", [1e-100, 1e-50, 1e50, 1e100])
def test_features_of_any_unit_are_learned_from(unit, order):
    """Squares of such numbers are no floats, and all weights were 0 then."""
    random = np.random.default_rng(0)
    X = random.normal(size=(1000, 3))
    y = X @ [1.0, 2.0, 3.0] + 0.1 * random.normal(size=1000)
    learner = rd.SelfTuning(3, loss=losses.Squared(), order=order)
    rd.play(learner, rd.Stream(unit * X, y))
    np.testing.assert_allclose(learner.theta * unit, [1.0, 2.0, 3.0], atol=0.05)
