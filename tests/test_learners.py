"""Learners against the reference, in every combination of words; precision, and what holds in every round."""

from __future__ import annotations

import inspect
from itertools import cycle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import redescend as rd
from redescend import domains, gates, losses, steps, transforms
from tests import reference
from tests.catalogue import DIM, DOMAINS, GATES, LINEAR_LOSSES, PLAIN_DOMAINS, STEPS, TRANSFORMS, name_of
from tests.games import sample

PLAIN = {"loss": losses.Squared(), "gate": gates.Always(), "step": steps.Constant(0.1), "domain": domains.Reals()}
LEARN = gates.Robust(transforms.Learn(a=0.5, b=0.1))
# A long step along a short gradient is chaotic: it amplifies a rounding error 1e8 times in a hundred rounds.
CHAOTIC = steps.Normalised(steps.AdaptiveNorm(scale=0.5))
CALM_STEPS = [*[step for step in STEPS if step != CHAOTIC], steps.Normalised(steps.AdaptiveNorm(scale=0.01))]
REPRODUCIBLE = settings(deadline=None, derandomize=True)


def assert_close(found: Any, expected: Any, tolerance: float = 1e-10) -> None:
    """Rounding errors are relative to the largest number around, and steps this small do not amplify them."""
    expected = np.asarray(expected)
    np.testing.assert_allclose(
        found, expected, rtol=tolerance, atol=tolerance * np.max(np.abs(expected), initial=1e-300)
    )


def by_play(learner: rd.Learner, X: np.ndarray, y: np.ndarray) -> reference.Game:
    trace = rd.play(learner, rd.Stream(X, y), keep_actions=True)
    return reference.Game(trace.actions, trace.losses, trace.weights, trace.theta)


def by_update(learner: rd.Learner, X: np.ndarray, y: np.ndarray) -> reference.Game:
    actions, rounds = [], []
    for x, target in zip(X, y, strict=True):
        actions.append(learner.theta)
        rounds.append(learner.update(x, target))
    return reference.Game(np.array(actions), *np.transpose(rounds), learner.theta)


def assert_as_reference(X: np.ndarray, y: np.ndarray, start: Any = None, **changed: Any) -> None:
    words = {**PLAIN, **changed}
    expected = reference.play(X, y, start=start, **words)
    for way in (by_play, by_update):
        found = way(rd.Descent(X.shape[1], start=start, **words), X, y)
        for part in ("actions", "losses", "weights", "theta"):
            assert_close(getattr(found, part), getattr(expected, part))


# --- against the reference: every pair of words, then whole sentences ---


TYPICAL_LOSSES = [loss for loss in LINEAR_LOSSES if loss.l2 != 1e-4]


@pytest.mark.parametrize(("loss", "domain"), sample(TYPICAL_LOSSES, DOMAINS, every=5), ids=name_of)
def test_every_loss_on_every_domain(loss, domain):
    X, y = reference.records_for(loss, 40, DIM, seed=1)
    assert_as_reference(X, y, loss=loss, gate=LEARN, step=steps.Constant(0.2), domain=domain)


@pytest.mark.parametrize(("gate", "step"), sample(GATES, CALM_STEPS, every=5), ids=name_of)
def test_every_gate_with_every_step(gate, step):
    X, y = reference.records(100, DIM, seed=2)
    assert_as_reference(X, y, loss=losses.Squared(l2=0.1), gate=gate, step=step)


@pytest.mark.parametrize(("gate", "loss"), sample(GATES, TYPICAL_LOSSES, every=5), ids=name_of)
def test_every_gate_on_every_loss(gate, loss):
    X, y = reference.records_for(loss, 60, DIM, seed=3)
    assert_as_reference(X, y, loss=loss, gate=gate, domain=domains.Ball(0.7))


@pytest.mark.parametrize("dim", [1, 2, 7, 100, 499, 500, 600])
@pytest.mark.parametrize("domain", [domains.Reals(), domains.Ball(0.5), domains.Box(-0.05, 0.1)], ids=name_of)
@pytest.mark.parametrize("gate", [gates.Always(), LEARN, gates.TopK(12), gates.Clip(window=31)], ids=name_of)
def test_every_form_of_the_loop(dim, domain, gate):
    """Narrow and wide rows, past the refresh of the norm after 256 rounds."""
    X, y = reference.records(300, dim, seed=dim)
    assert_as_reference(X, y, loss=losses.Squared(l2=0.3), gate=gate, domain=domain, step=steps.Anytime())


@settings(REPRODUCIBLE, max_examples=100)
@given(
    loss=st.sampled_from(LINEAR_LOSSES),
    gate=st.sampled_from(GATES),
    step=st.sampled_from(CALM_STEPS),
    domain=st.sampled_from(PLAIN_DOMAINS),
    direction=st.none() | st.tuples(*[st.floats(-1, 1)] * DIM),
    seed=st.integers(0, 10_000),
)
def test_whole_sentences(loss, gate, step, domain, direction, seed):
    X, y = reference.records_for(loss, 40, DIM, seed)
    start = None if direction is None else reference.project(domain, np.array(direction))
    assert_as_reference(X, y, start=start, loss=loss, gate=gate, step=step, domain=domain)


TOLD = np.random.default_rng(5).random(80) < 0.7
RECIPES = {
    "OGD": (rd.OGD, {}, gates.Always()),
    "Learn": (rd.Learn, {"a": 0.5, "b": 0.1}, gates.Robust(transforms.Learn(0.5, 0.1))),
    "TopK": (rd.TopK, {"k": 9}, gates.TopK(9)),
    "Oracle": (rd.Oracle, {"clean": TOLD}, gates.Oracle(TOLD)),
    "ClippedOGD": (rd.ClippedOGD, {}, gates.Clip(quantile=0.5, window=101)),
    "ClippedOGD(0.9)": (rd.ClippedOGD, {"quantile": 0.9, "window": 11}, gates.Clip(quantile=0.9, window=11)),
    "NormalisedOGD": (rd.NormalisedOGD, {}, gates.Always()),
    **{
        f"Robust({transform})": (rd.Robust, {"transform": transform}, gates.Robust(transform))
        for transform in TRANSFORMS
    },
}


ON_DOMAINS = list(zip(RECIPES, cycle([domains.Ball(0.7), domains.Simplex()]), strict=False))


@pytest.mark.parametrize(("name", "domain"), ON_DOMAINS, ids=name_of)
def test_recipes_are_what_they_say(name, domain):
    recipe, own, gate = RECIPES[name]
    X, y = reference.records(80, DIM, seed=6)
    common = {"loss": losses.Absolute(l2=0.2), "step": steps.Anytime(), "domain": domain}
    trace = rd.play(recipe(DIM, **own, **common), rd.Stream(X, y), keep_actions=True)
    if recipe is rd.NormalisedOGD:
        common["step"] = steps.Normalised(common["step"])
    expected = reference.play(X, y, gate=gate, **common)
    assert_close(trace.actions, expected.actions)
    assert_close(trace.losses, expected.losses)
    assert_close(trace.weights, expected.weights)


WITH_MEMORY = [gate for gate in GATES if not isinstance(gate, gates.Robust)]


@pytest.mark.parametrize(("gate", "domain"), sample([*WITH_MEMORY, LEARN], DOMAINS, every=5), ids=name_of)
def test_custom_loss_plays_like_the_compiled_one(gate, domain):
    custom = losses.Custom(lambda theta, x, y: (y - x @ theta) ** 2, lambda theta, x, y: -2 * (y - x @ theta) * x)
    X, y = reference.records(60, DIM, seed=7)
    words = {"gate": gate, "step": steps.AdaptiveNorm(), "domain": domain}
    ours, theirs = (
        rd.play(rd.Descent(DIM, loss=loss, **words), rd.Stream(X, y), keep_actions=True)
        for loss in (custom, losses.Squared())
    )
    assert_close(ours.actions, theirs.actions)
    assert_close(ours.losses, theirs.losses)
    assert_close(ours.weights, theirs.weights)


# --- the norm that is kept from round to round ---


def assert_losses_are_those_of_the_actions(
    trace: rd.Trace, X: np.ndarray, y: np.ndarray, l2: float, rtol: float
) -> None:
    actions = trace.actions.astype(np.float64)
    residuals = np.sum(X * actions, axis=1) - y
    expected = residuals**2 + l2 / 2 * np.sum(actions**2, axis=1)
    np.testing.assert_allclose(trace.losses, expected, rtol=rtol)


# In single precision a product of 20 terms is off by about 1e-6 of its size, a loss by a few times that;
# a norm that was never taken anew would be off by 6e-3 after as many rounds.
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-9), (np.float32, 1e-4)])
@pytest.mark.parametrize("domain", [domains.Reals(), domains.Ball(1.0)], ids=name_of)
def test_norm_does_not_drift(dtype, rtol, domain):
    rounds, dim, l2 = 100_000, 20, 2.0
    random = np.random.default_rng(8)
    X = random.standard_normal((rounds, dim)).astype(dtype)
    y = X @ np.full(dim, 0.5, dtype) + 3.0
    learner = rd.OGD(dim, loss=losses.Squared(l2=l2), step=steps.Constant(0.01), domain=domain)
    trace = rd.play(learner, rd.Stream(X, y), keep_actions=True)
    assert_losses_are_those_of_the_actions(trace, X.astype(np.float64), y.astype(np.float64), l2, rtol)


@pytest.mark.parametrize("fall", [0.35, 0.45, 0.25, 0.499])
@pytest.mark.parametrize("dim", [1, 2, 5, 600])
def test_norm_keeps_its_digits_when_the_action_falls(dim, fall):
    """From 1e8 to about 1, in one jump or many: what is left is far below the rounding errors of where it came from."""
    rounds, l2 = 40 * min(dim, 5), 0.1
    X = np.zeros((rounds, dim))
    X[np.arange(rounds), np.arange(rounds) % min(dim, 5)] = 1.0
    y = np.ones(rounds)
    start = np.where(np.arange(dim) < 5, 1e8, 0.0)
    learner = rd.OGD(dim, loss=losses.Squared(l2=l2), step=steps.Constant(fall), start=start)
    trace = rd.play(learner, rd.Stream(X, y), keep_actions=True)
    assert np.max(np.abs(trace.theta)) < 2.0
    assert_losses_are_those_of_the_actions(trace, X, y, l2, rtol=1e-9)


@settings(REPRODUCIBLE, max_examples=60)
@given(offset=st.floats(-17, 0), target=st.floats(-3, 3), feature=st.floats(0.1, 3), below=st.booleans())
def test_normalised_step_never_goes_further_than_it_says(offset, target, feature, below):
    """Near the minimizer of a record the two parts of its gradient cancel, and its length must not be read off them."""
    loss = losses.Squared(l2=1.0)
    best, _ = loss.minimum([feature], target)
    start = best * (1.0 + (-1.0 if below else 1.0) * 10.0**offset)
    learner = rd.NormalisedOGD(1, loss=loss, step=steps.Constant(0.5), start=start)
    learner.update([feature], target)
    assert abs(learner.theta.item() - start.item()) <= 0.5 * (1 + 1e-6)


# --- precision ---

SINGLE = [
    pytest.param(loss, gate, domain, id=f"{name_of(loss)}-{name_of(gate)}-{name_of(domain)}")
    for loss in (losses.Squared(l2=0.1), losses.Logistic())
    for gate in (gates.Always(), LEARN, gates.Clip())
    for domain in (domains.Reals(), domains.Ball(0.7), domains.Simplex())
]


@pytest.mark.parametrize("dim", [3, 600])
@pytest.mark.parametrize(("loss", "gate", "domain"), SINGLE)
def test_single_precision_stays_single_and_close(loss, gate, domain, dim):
    """Each of 100 rounds adds an error of about 1e-7·√dim, and a contracting step does not amplify it."""
    X, y = reference.records_for(loss, 100, dim, seed=9)
    X = X.astype(np.float32)
    words = {"loss": loss, "gate": gate, "step": steps.Anytime(), "domain": domain}
    learner = rd.Descent(dim, **words)
    trace = rd.play(learner, rd.Stream(X, y), keep_actions=True)
    assert learner.dtype == trace.theta.dtype == trace.actions.dtype == learner.theta.dtype == np.float32
    assert trace.losses.dtype == trace.weights.dtype == np.float64
    expected = reference.play(X, y, **words)
    assert_close(trace.actions, expected.actions, 1e-4)
    assert_close(trace.weights, expected.weights, 1e-4)


def first_play(learner: rd.Learner, X: np.ndarray, y: np.ndarray) -> None:
    rd.play(learner, rd.Stream(X, y))


def first_update(learner: rd.Learner, X: np.ndarray, y: np.ndarray) -> None:
    learner.update(X[0], y[0])


@pytest.mark.parametrize("learn", [first_play, first_update])
@pytest.mark.parametrize("first", [np.float32, np.float64])
@pytest.mark.parametrize("given", [None, np.float32, "float64"])
def test_precision_is_that_of_the_first_records_unless_given(learn, first, given):
    X, y = reference.records(5, DIM, seed=10)
    learner = rd.OGD(DIM, loss=losses.Squared(), step=steps.Constant(0.1), start=[0.1, 0.2, 0.3], dtype=given)
    expected = np.dtype(first if given is None else given)
    learn(learner, X.astype(first), y)
    assert learner.theta.dtype == expected
    for later in (np.float32, np.float64):
        before, after = learner.state(), rd.OGD(DIM, loss=losses.Squared(), step=steps.Constant(0.1), dtype=expected)
        after.restore(before)
        learn(learner, X.astype(later), y)
        learn(after, X.astype(later).astype(expected), y)
        assert learner.theta.dtype == expected
        assert reference.same_state(learner.state(), after.state())


# --- what holds in every round ---

EVERY_GATE = st.sampled_from([gate for gate in GATES if not isinstance(gate, gates.Oracle)])


@settings(REPRODUCIBLE, max_examples=150)
@given(
    gate=EVERY_GATE,
    loss=st.sampled_from(LINEAR_LOSSES),
    domain=st.sampled_from(DOMAINS),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 10_000),
)
def test_weights_are_shares_and_actions_are_allowed(gate, loss, domain, dtype, seed):
    X, y = reference.records_for(loss, 40, DIM, seed)
    learner = rd.Descent(DIM, loss=loss, gate=gate, step=steps.Anytime(), domain=domain)
    trace = rd.play(learner, rd.Stream(X.astype(dtype), y), keep_actions=True)
    assert np.all((trace.weights >= 0) & (trace.weights <= 1))
    assert np.all(trace.losses >= 0)
    # rounded to single precision an action is off by 6e-8; its sums by a few times that
    tolerance = 1e-6 if dtype == np.float32 else 1e-9
    assert all(domain.contains(action, tolerance) for action in [*trace.actions, trace.theta])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dim", [DIM, 600])
@pytest.mark.parametrize("domain", [*PLAIN_DOMAINS[:3], *PLAIN_DOMAINS[4:], DOMAINS[-4]], ids=name_of)
@pytest.mark.parametrize("gate", [gates.Oracle(np.arange(300) % 3 == 0), gates.TopK(40)], ids=name_of)
def test_a_round_of_weight_zero_changes_nothing(gate, domain, dim, dtype):
    """To the last bit, also where the norm is taken anew and where the action is on the edge of its domain."""
    X, y = reference.records(300, dim, seed=11)
    learner = rd.Descent(dim, loss=losses.Squared(l2=0.1), gate=gate, step=steps.Constant(0.3), domain=domain)
    trace = rd.play(learner, rd.Stream(X.astype(dtype), y), keep_actions=True)
    after = np.vstack([trace.actions[1:], trace.theta])
    unmoved = trace.weights == 0
    assert 40 <= np.count_nonzero(unmoved) < 300
    np.testing.assert_array_equal(after[unmoved], trace.actions[unmoved])


def test_theta_is_a_copy():
    learner = rd.OGD(2, loss=losses.Squared(), step=steps.Constant(0.1), start=[1.0, 2.0])
    learner.theta[:] = np.nan
    learner.update([1.0, 1.0], 3.0)
    learner.theta[:] = np.nan
    np.testing.assert_array_equal(learner.theta, [1.0, 2.0])


def test_start_is_a_copy():
    start = np.array([1.0, 2.0])
    learner = rd.OGD(2, loss=losses.Squared(), step=steps.Constant(0.1), start=start)
    start[:] = 7.0
    np.testing.assert_array_equal(learner.theta, [1.0, 2.0])
    learner.update([1.0, 0.0], 3.0)
    np.testing.assert_array_equal(start, [7.0, 7.0])


@pytest.mark.parametrize("recipe", [rd.OGD, rd.Learn, rd.Robust, rd.TopK, rd.Oracle, rd.NormalisedOGD, rd.ClippedOGD])
def test_a_recipe_says_what_it_takes(recipe):
    named = list(inspect.signature(recipe).parameters)
    assert named[0] == "dim"
    assert {"loss", "step", "domain", "start", "dtype"} <= set(named)
    assert "gate" not in named
