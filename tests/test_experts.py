"""LEARN with experts and its peers against every expert of the grid by itself; the grid, the horizon, the state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import redescend as rd
from redescend import domains, errors, losses
from tests import reference_experts
from tests.catalogue import name_of
from tests.expert_games import LOSSES, PAPER, outliers
from tests.games import sample

PATTERNS = ["none", "random", "burst", "first"]


def assert_as_every_expert(X: np.ndarray, y: np.ndarray, **settings: Any) -> None:
    expected = reference_experts.learn_with_experts(X, y, **settings)
    size = max(np.abs(expected.actions).max(), 1e-300)
    chaos = np.abs(reference_experts.reordered(X, y, **settings) - expected.actions).max() / size
    learner = rd.LearnWithExperts(X.shape[1], **settings)
    trace = rd.play(learner, rd.Stream(X, y), keep_actions=True)
    assert np.abs(trace.actions - expected.actions).max() <= (1e-9 + 100.0 * chaos) * size


GAMES = sample(LOSSES, PATTERNS, [1e-3, 1.0, 1e3], [2.0, 3.7, 8.0], every=7)


@pytest.mark.parametrize(("loss", "pattern", "epsilon", "a_max"), GAMES, ids=str)
def test_the_lazy_grid_is_the_whole_grid(loss, pattern, epsilon, a_max):
    X, y = outliers(pattern, loss, 60, 3, seed=1)
    assert_as_every_expert(X, y, loss=loss, rounds=60, epsilon=epsilon, a_max=a_max, **PAPER)


@pytest.mark.parametrize("dim", [1, 2, 7, 30])
@pytest.mark.parametrize("rounds", [1, 2, 5, 300])
@pytest.mark.parametrize("loss", LOSSES[:2], ids=name_of)
def test_games_of_every_length_and_width(loss, rounds, dim):
    X, y = outliers("random", loss, rounds, dim, seed=2)
    assert_as_every_expert(X, y, loss=loss, rounds=rounds, a_max=4.0 if dim < 30 else 2.0, **PAPER)


def test_calm_steps_agree_to_rounding_errors():
    """Where nothing is chaotic, the tolerance is 1e-9 and not what a reordering leaves."""
    for loss in LOSSES:
        X, y = outliers("random", loss, 300, 3, seed=3)
        settings = {"loss": loss, "rounds": 300, "a_max": 2.0, **PAPER}
        expected = reference_experts.learn_with_experts(X, y, **settings).actions
        chaos = np.abs(reference_experts.reordered(X, y, **settings) - expected).max()
        trace = rd.play(rd.LearnWithExperts(3, **settings), rd.Stream(X, y), keep_actions=True)
        assert chaos <= 1e-11
        np.testing.assert_allclose(trace.actions, expected, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=name_of)
def test_the_paper_s_own_grid(loss):
    """A_max = 2√T: chaotic on some losses, and then as close as the reference is to itself."""
    X, y = outliers("random", loss, 120, 4, seed=4)
    assert_as_every_expert(X, y, loss=loss, rounds=120, a=10.0, b=10.0)


@pytest.mark.parametrize(
    "domain", [domains.Ball(0.4), domains.Box(-0.2, 0.5), domains.L1Ball(0.6), domains.Box(0.0, 1.0)], ids=name_of
)
@pytest.mark.parametrize("loss", LOSSES[:2], ids=name_of)
def test_experts_stay_in_the_base_domain(loss, domain):
    X, y = outliers("random", loss, 20, 3, seed=5)
    settings = {"loss": loss, "rounds": 20, "a_max": 4.0, "domain": domain, **PAPER}
    expected = reference_experts.learn_with_experts(X, y, **settings)
    learner = rd.LearnWithExperts(3, **settings)
    trace = rd.play(learner, rd.Stream(X, y), keep_actions=True)
    np.testing.assert_allclose(trace.actions, expected.actions, atol=1e-9)
    assert all(domain.contains(expert.theta) for expert in learner.experts)


def test_the_experts_that_differ_stand_for_all_of_them():
    X, y = outliers("random", LOSSES[0], 60, 3, seed=6)
    settings = {"loss": LOSSES[0], "rounds": 60, "a_max": 8.0, **PAPER}
    every = reference_experts.learn_with_experts(X, y, **settings)
    learner = rd.LearnWithExperts(3, **settings)
    rd.play(learner, rd.Stream(X, y))
    seen = 0
    for expert in learner.experts:
        members = np.isclose(every.steps, expert.step, rtol=1e-12)
        members &= (every.radii > expert.radius * 0.999) & (every.radii < 2.0**expert.highest / 60 * 1.001)
        seen += members.sum()
        assert members.sum() == expert.highest - expert.lowest + 1
        np.testing.assert_allclose(every.thetas[members], np.tile(expert.theta, (members.sum(), 1)), atol=1e-9)
        np.testing.assert_allclose(every.weights[members].sum(), expert.weight, rtol=1e-9)
    assert seen == len(every.steps)
    assert learner.distinct < len(every.steps) / 3


def test_a_single_expert_is_learn_in_a_ball():
    """What an expert does by itself is Algorithm 1 with its step and its ball."""
    X, y = outliers("random", LOSSES[0], 200, 3, seed=7)
    learner = rd.LearnWithExperts(3, loss=LOSSES[0], rounds=200, a_max=4.0, **PAPER)
    rd.play(learner, rd.Stream(X, y))
    for expert in learner.experts:
        alone = learner.alone(expert)
        rd.play(alone, rd.Stream(X, y))
        np.testing.assert_allclose(alone.theta, expert.theta, rtol=1e-9, atol=1e-12)


def test_radii_that_no_float_holds():
    """2^T is beyond every float: those experts are there, and have never met their balls."""
    stream = rd.streams.ridge(5000, seed=0, dim=5)
    learner = rd.LearnWithExperts(5, loss=LOSSES[0], a=10.0, b=10.0, rounds=5000)
    rd.play(learner, stream)
    assert max(expert.highest for expert in learner.experts) == 5000
    assert sum(expert.highest - expert.lowest + 1 for expert in learner.experts) == 5000 * 8
    assert all(np.linalg.norm(expert.theta) <= expert.radius * (1 + 1e-12) for expert in learner.experts)


# --- the robust experts ---


ROBUST = sample(
    [*LOSSES, losses.EpsilonInsensitive(0.3, l2=0.1)],
    PATTERNS,
    [PAPER, {"a": 10.0, "b": 10.0}, {"a": 0.1, "b": 1e-4}],
    every=5,
)


@pytest.mark.parametrize(("loss", "pattern", "constants"), ROBUST, ids=str)
def test_robust_experts_as_stated(loss, pattern, constants):
    X, y = outliers(pattern, loss, 150, 4, seed=12)
    X[5], y[0] = 0.0, 0.0 if not loss.margin else y[0]
    expected = reference_experts.robust(X, y, loss=loss, **constants)
    other = reference_experts.robust(X * (1 + 2e-16), y, loss=loss, **constants)
    chaos = np.abs(other.actions - expected.actions).max() / np.abs(expected.actions).max()
    learner = rd.LearnWithExperts(4, loss=loss, meta="robust", **constants)
    trace = rd.play(learner, rd.Stream(X, y), keep_actions=True)
    assert chaos < 1e-7
    # Where all experts have lost nearly everything, what they differ by has nine digits left.
    tolerance = ((1e-9 if constants["a"] > 1.0 else 1e-7) + 100.0 * chaos) * np.abs(expected.actions).max()
    np.testing.assert_allclose(trace.actions, expected.actions, rtol=0.0, atol=tolerance)


@pytest.mark.parametrize("domain", [domains.Ball(0.4), domains.Box(-0.2, 0.5)], ids=name_of)
def test_robust_experts_in_a_domain(domain):
    X, y = outliers("random", LOSSES[0], 60, 3, seed=13)
    expected = reference_experts.robust(X, y, loss=LOSSES[0], domain=domain, **PAPER)
    learner = rd.LearnWithExperts(3, loss=LOSSES[0], meta="robust", domain=domain, **PAPER)
    trace = rd.play(learner, rd.Stream(X, y), keep_actions=True)
    np.testing.assert_allclose(trace.actions, expected.actions, atol=1e-9)
    assert all(domain.contains(action) for action in trace.actions)


@pytest.mark.parametrize("unit", [1e-6, 1e4])
@pytest.mark.parametrize("loss", [losses.Squared(), losses.Absolute(), losses.Hinge()], ids=name_of)
def test_robust_experts_do_not_depend_on_units(loss, unit):
    """Features in other units change no loss; nor do targets, if a is given in the units of the loss."""
    X, y = outliers("random", loss, 400, 3, seed=14)
    plain = rd.play(rd.LearnWithExperts(3, loss=loss, meta="robust", **PAPER), rd.Stream(X, y))
    scaled = rd.play(rd.LearnWithExperts(3, loss=loss, meta="robust", **PAPER), rd.Stream(unit * X, y))
    np.testing.assert_allclose(scaled.losses, plain.losses, rtol=1e-6, atol=1e-9)
    if not loss.margin:
        power = 2 if isinstance(loss, losses.Squared) else 1
        learner = rd.LearnWithExperts(3, loss=loss, meta="robust", a=PAPER["a"] * unit**power, b=PAPER["b"])
        other = rd.play(learner, rd.Stream(X, unit * y))
        np.testing.assert_allclose(other.losses / unit**power, plain.losses, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(other.weights, plain.weights, rtol=1e-6, atol=1e-9)


EXTREMES = (
    [losses.Squared(l2=0.1), losses.Absolute(), losses.Logistic()],
    ["x", "y", "both", "all"],
    [1e-300, 1e-160, 1e100, 1e160, 1e250, 1e307],
    [1e-100, 1.0, 1e100],
)


@pytest.mark.parametrize(("loss", "where", "size", "a"), sample(*EXTREMES, every=5), ids=str)
def test_no_record_makes_robust_experts_stop_or_stop_being_finite(loss, where, size, a):
    learner = rd.LearnWithExperts(2, loss=loss, a=a, b=0.1, meta="robust")
    random = np.random.default_rng(15)
    for t in range(30):
        x, y = random.normal(size=2), random.choice([-1.0, 1.0])
        if where == "all" or t % 7 == 3:
            x = x * size if where != "y" else x
            y = y * size if where != "x" and not loss.margin else y
        round_ = learner.update(x, y)
        assert np.isfinite(round_).all()
        assert np.isfinite(learner.theta).all()
        assert abs(sum(expert.weight for expert in learner.experts) - 1.0) < 1e-9


@pytest.mark.parametrize("problem", ["ridge", "svm"])
def test_robust_experts_beat_the_best_of_the_grid(problem):
    """At most 1.25 times the best expert of the paper's grid, and never worse than LEARN at the paper's step."""
    from redescend.experiments import problems

    game = problems.svm(4_000) if problem == "svm" else problems.ridge(8_000, dim=30)
    for stream in game.streams(seed=16).values():
        common = {"loss": game.loss, "a": game.a, "b": game.b}

        def final(learner: rd.Learner, stream: rd.Stream = stream) -> float:
            try:
                return rd.regret.clean_dynamic(rd.play(learner, stream), stream, game.loss)[-1]
            except errors.DivergenceError:
                return np.inf

        found = final(rd.LearnWithExperts(game.dim, meta="robust", **common))
        grid = rd.LearnWithExperts(game.dim, rounds=len(stream), **common)
        paper = final(grid)
        best = min(final(grid.alone(expert)) for expert in grid.experts)
        assert found <= 1.25 * best
        assert found <= final(game.learners(stream)["LEARN"])
        assert paper > 1.25 * best


@pytest.mark.parametrize("case", range(20))
def test_adaptive_weights_keep_their_promise(case):
    """The two inequalities that docs/experts.md proves, on games with outliers of every size."""
    random = np.random.default_rng([17, case])
    X, y = random.normal(size=(300, 2)), random.normal(size=300)
    y[random.random(300) < 0.3] *= 10.0 ** random.uniform(-3, 6)
    a, b = 10.0 ** random.uniform(-2, 2), 10.0 ** random.uniform(-3, 1)
    meta: list[reference_experts.Meta] = []
    reference_experts.robust(X, y, loss=losses.Squared(), a=a, b=b, meta=meta)
    lost, gap = np.array([round_.lost for round_ in meta]), meta[-1].gap
    T, K = lost.shape
    span = a * np.log1p(1.0 / b)
    assert lost.min() >= -1e-12 * span
    assert lost.max() <= span * (1 + 1e-12)
    spread = np.ptp(lost, axis=1).max()
    assert gap <= spread * (0.5 * np.sqrt(T * np.log(K)) + 2 / 3 * np.log(K) + 2)
    played = sum(round_.weights @ round_.lost for round_ in meta)
    static = lost.sum(axis=0).min()
    assert played <= static + gap * (2 + np.log(T + 1) / np.log(K))
    cut = T // 2
    tracked = lost[:cut].sum(axis=0).min() + lost[cut:].sum(axis=0).min()
    assert played <= tracked + gap * (2 + (np.log(T + 1) + np.log(K * (T + 1))) / np.log(K))


# --- the peers ---


@pytest.mark.parametrize("domain", [domains.Ball(0.8), domains.Box([-1.0, -0.2, 0.0], [0.5, 1.0, 0.7])], ids=name_of)
@pytest.mark.parametrize("loss", LOSSES, ids=name_of)
def test_ader(loss, domain):
    X, y = outliers("burst", loss, 80, 3, seed=8)
    settings = {"loss": loss, "domain": domain, "rounds": 80, "gradient": 9.0, "span": 20.0}
    learner = rd.Ader(3, **settings)
    trace = rd.play(learner, rd.Stream(X, y), keep_actions=True)
    expected = reference_experts.ader(X, y, **settings)
    np.testing.assert_allclose(trace.actions, expected.actions, atol=1e-10)
    np.testing.assert_allclose([expert.weight for expert in learner.experts], expected.weights, rtol=1e-9)
    assert (trace.weights == 1.0).all()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 30.0])
@pytest.mark.parametrize(
    ("loss", "curvature"), [(LOSSES[0], 2.0), (LOSSES[1], 0.0), (LOSSES[2], 0.25), (LOSSES[3], 0.0)], ids=str
)
def test_jacobsen_and_cutkosky(loss, curvature, epsilon):
    X, y = outliers("first", loss, 40, 3, seed=9)
    X, y = X / 4.0, y / np.abs(y).max()
    settings = {"loss": loss, "rounds": 40, "gradient": 1.5, "smoothness": 2.0, "epsilon": epsilon}
    learner = rd.JacobsenCutkosky(3, **settings)
    trace = rd.play(learner, rd.Stream(X, y), keep_actions=True)
    expected = reference_experts.jacobsen_cutkosky(X, y, curvature=curvature, **settings).actions
    np.testing.assert_allclose(trace.actions, expected, rtol=1e-8, atol=1e-10 * np.abs(expected).max())
