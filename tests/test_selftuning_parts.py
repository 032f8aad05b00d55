"""The parts of the self-tuning learner, each on its own against what it is said to be."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from redescend import losses, transforms
from redescend.kernels.layout import Rows
from redescend.kernels.selftuning import followers, layout, mixture, noise, second_order
from redescend.losses import likelihood
from redescend.numeric import Array
from tests import reference_selftuning
from tests.catalogue import name_of

RATES = np.array([0.01, 0.1, 0.33])
LOSSES = [losses.Squared(), losses.Absolute(), losses.EpsilonInsensitive(0.3), losses.Pinball(0.8)]


# --- the noise posterior ---


class Noise(NamedTuple):
    """The part of a state that is known of the noise."""

    cells: Array
    scalars: Array


def settings_of(loss: losses.LinearLoss, share: float = 0.0) -> layout.Settings:
    """Settings of a learner with every ingredient."""
    return layout.Settings(loss.kind, loss.setting, 0.0, loss.margin, share, True, True, True, True, True)


def state_of(thetas: Array) -> layout.State:
    """A state with a spread of 1 in which only these actions are known."""
    none, scalars = np.empty(0), np.zeros(layout.SCALARS)
    scalars[layout.SPREAD] = 1.0
    table = np.empty((0, 0))
    return layout.State(thetas, none, table, none, none, none, table, table, scalars)


def scratch_of(predictions: Array, gates: Array) -> layout.Scratch:
    return layout.Scratch(*[np.empty(0)] * 2, predictions, *[np.empty(0)] * 3, gates)


def prior_of(scales: int) -> Array:
    return np.full((scales, len(RATES)), 1.0 / (scales * len(RATES)))


def learned(loss: losses.LinearLoss, margins: Array, share: float, lowest: float, scales: int) -> tuple[Array, Array]:
    """The cells and the scalars after records with these residuals, or these margins."""
    prior, scalars = prior_of(scales), np.zeros(layout.SCALARS)
    cells, scalars[layout.LOWEST] = prior.copy(), lowest
    for r in margins:
        f = float(loss.of_prediction(r, 1.0 * loss.margin))
        size = noise.size_of(loss.kind, loss.margin, f, r, 1.0 * loss.margin)
        config = layout.Config(np.empty(0), prior, RATES)
        noise.learn_noise(settings_of(loss, share), f, size, Noise(cells, scalars), config)
    return cells, scalars


def densities(loss: losses.LinearLoss, r: float, s: Array) -> tuple[Array, Array]:
    f = loss.of_prediction(r, 1.0 * loss.margin)
    pairs = [likelihood.densities(loss.kind, loss.setting, f, r if loss.margin else abs(r), one, 1.0) for one in s]
    return np.array(pairs).T


@pytest.mark.parametrize("loss", [*LOSSES, losses.Logistic(), losses.Hinge()], ids=name_of)
def test_without_a_share_the_cells_are_bayes_posterior(loss):
    """Prior times the product of all likelihoods; residuals that no floating window has to follow."""
    margins = np.random.default_rng(1).normal(size=40)
    lowest, scales = (0.25, 9) if loss.margin else (2.0**-12, 24)
    cells, scalars = learned(loss, margins, 0.0, lowest, scales)
    s = lowest * 2.0 ** np.arange(scales)
    log = np.zeros((scales, len(RATES)))
    for r in margins:
        clean, outlier = densities(loss, r, s)
        log += np.log(np.outer(clean, 1.0 - RATES) + np.outer(outlier, RATES))
    expected = np.exp(log - log.max())
    np.testing.assert_allclose(cells, expected / expected.sum(), rtol=1e-9, atol=1e-300)
    assert scalars[layout.LOWEST] == lowest
    spread = np.exp(cells.sum(axis=1) @ np.log(s))
    assert scalars[layout.SPREAD] == pytest.approx(spread, rel=1e-9)


@pytest.mark.parametrize("share", [1e-5, 1e-2])
@pytest.mark.parametrize("loss", [losses.Squared(), losses.Hinge()], ids=name_of)
def test_every_cell_keeps_its_share(loss, share):
    cells, _ = learned(loss, np.random.default_rng(2).normal(size=200), share, 0.25, 9)
    assert cells.min() >= share / cells.size * (1.0 - 1e-9)
    assert cells.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("size", [1e-12, 1e-3, 1.0, 1e5, 1e12])
@pytest.mark.parametrize("loss", LOSSES[:2], ids=name_of)
def test_the_window_floats_to_the_residuals(loss, size):
    """From any start, within 200 records; a window holds 24 octaves, and its total stays 1."""
    residuals = size * np.random.default_rng(3).normal(size=200)
    cells, scalars = learned(loss, residuals, 1e-4, 2.0**-12, 24)
    assert cells.sum() == pytest.approx(1.0, abs=1e-12)
    octaves = np.log2(scalars[layout.LOWEST]) + 12
    assert octaves == pytest.approx(round(octaves), abs=1e-12)
    assert 0.3 < scalars[layout.SPREAD] / size < 3.0
    assert 8 <= np.argmax(cells.sum(axis=1)) <= 15


@pytest.mark.parametrize("mode", [0, 3, 7, 8, 15, 16, 23])
def test_the_window_moves_by_octaves_and_keeps_what_it_holds(mode):
    random = np.random.default_rng(4)
    cells, prior, scalars = random.random((24, 3)), prior_of(24), np.zeros(layout.SCALARS)
    cells /= cells.sum()
    scalars[layout.LOWEST] = 1.0
    before, move = cells.copy(), min(mode - 8, 0) + max(mode - 15, 0)
    noise.float_window(cells, prior, 1e-4, mode, scalars)
    assert scalars[layout.LOWEST] == 2.0**move
    assert cells.sum() == pytest.approx(1.0, abs=1e-12)
    both = np.arange(max(0, -move), min(24, 24 - move))
    ratio = cells[both] / before[both + move]
    np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-12)
    assert 8 <= mode - move <= 15


def gate_of_one_cell(loss: losses.LinearLoss, r: float, s: float, rate: float) -> float:
    """By a window in which one scale has all the mass."""
    clean, outlier = np.array([1.0 - rate, 0.0, 0.0]), np.array([rate, 0.0, 0.0])
    f = float(loss.of_prediction(r, 1.0 * loss.margin))
    size = r if loss.margin else abs(r)
    return noise.judge(settings_of(loss), f, size, s, clean, outlier, 0.0)[1]


@pytest.mark.parametrize("rate", [0.01, 0.33])
@pytest.mark.parametrize("s", [0.25, 1.0, 16.0])
@pytest.mark.parametrize("r", [0.0, 0.1, -0.9, 3.0, -40.0])
def test_a_cell_is_a_learn_loss(r, s, rate):
    """Squared: a = 2s² and b = ε/(1 − ε)·√(2π)/4, times s/|r| beyond s. Labels: a = s, b = ε/(1 − ε)·e^(−1/s)."""
    odds = rate / (1.0 - rate)
    learn = transforms.Learn(a=2.0 * s * s, b=odds * np.sqrt(2.0 * np.pi) / 4.0 * s / max(abs(r), s))
    assert gate_of_one_cell(losses.Squared(), r, s, rate) == pytest.approx(learn.weight(r * r), rel=1e-10, abs=1e-300)
    margin = -abs(r)
    learn = transforms.Learn(a=s, b=odds * np.exp(-1.0 / s))
    for loss in (losses.Hinge(), losses.Logistic()):
        assert gate_of_one_cell(loss, margin, s, rate) == pytest.approx(learn.weight(1.0 - margin), rel=1e-10)


@pytest.mark.parametrize("loss", [*LOSSES, losses.Logistic()], ids=name_of)
def test_the_gate_is_the_mean_of_the_cells_by_how_likely_they_found_the_record(loss):
    random = np.random.default_rng(5)
    cells, s = random.random((5, 3)), 0.5 * 2.0 ** np.arange(5)
    cells /= cells.sum()
    clean, outlier = np.empty(5), np.empty(5)
    rate = noise.masses(cells, RATES, clean, outlier)
    assert rate == pytest.approx(np.sum(cells * RATES), rel=1e-14)
    for r in (0.0, 0.7, -3.0):
        q, u = densities(loss, r, s)
        likely = cells * (np.outer(q, 1.0 - RATES) + np.outer(u, RATES))
        believed = np.outer(q, 1.0 - RATES) / (np.outer(q, 1.0 - RATES) + np.outer(u, RATES))
        f = float(loss.of_prediction(r, 1.0 * loss.margin))
        size = r if loss.margin else abs(r)
        log, gate = noise.judge(settings_of(loss), f, size, 0.5, clean, outlier, 0.0)
        paid = q
        if isinstance(loss, losses.Pinball):  # members are compared by what they pay
            paid = np.exp(-f / (2.0 * loss.quantile * (1.0 - loss.quantile) * s)) / (2.0 * s)
        compared = cells * (np.outer(paid, 1.0 - RATES) + np.outer(u, RATES))
        assert log == pytest.approx(np.log(compared.sum()), rel=1e-12, abs=1e-12)
        assert gate == pytest.approx(np.sum(likely * believed) / likely.sum(), rel=1e-12)


# --- the followers ---


def test_the_lower_median():
    random = np.random.default_rng(6)
    for count in range(1, 16):
        values = random.integers(0, 6, size=15).astype(float)
        assert followers.median(values, count) == sorted(values[:count])[(count - 1) // 2]


def test_what_is_typical_of_records_and_of_features():
    """As the reference says, with a feature that comes late, one that never does, and records that are far too long."""
    random = np.random.default_rng(7)
    X = random.normal(size=(120, 4)) * [1.0, 30.0, 0.01, 1.0]
    X[:50, 0], X[:, 3] = 0.0, 0.0
    X[::9] *= 1e3
    norms, squares, counts, scalars = np.zeros(layout.NORMS), np.zeros(4), np.zeros(4), np.zeros(layout.SCALARS)
    metric, expected = np.empty(4), reference_selftuning.Measure(4)
    for row, x in enumerate(X):
        typical, scaled, ready = followers.measure(X, row, x @ x, norms, squares, counts, scalars, metric)
        expected.see(x)
        one = np.where(expected.ready, 1.0 / (expected.long * expected.scale), 0.0)
        assert typical == pytest.approx(expected.typical, rel=1e-12)
        assert ready == expected.ready.sum()
        np.testing.assert_allclose(metric, one, rtol=1e-12)
        assert scaled == pytest.approx(np.sum(x * x * one), rel=1e-12)
    assert typical == pytest.approx(np.median(np.sum(X[-15:] ** 2, axis=1)), rel=1e-12)
    assert metric[3] == 0.0


@pytest.mark.parametrize("loss", [losses.Squared(), losses.Pinball(0.8), losses.Logistic()], ids=name_of)
def test_every_follower_goes_to_the_minimum_of_its_own_objective(loss):
    """f + ‖· − θ‖²/(2e), the norm weighed by the inverse of its metric, along the one direction in which f changes."""
    random = np.random.default_rng(8)
    X, y = random.normal(size=(1, 3)), 1.0 if loss.margin else 0.4
    thetas, metric = random.normal(size=(2 * layout.FOLLOWERS, 3)), np.array([0.5, 2.0, 0.0])
    before, gates = thetas.copy(), random.random(2 * layout.FOLLOWERS)
    x, norm2 = X[0], float(X[0] @ X[0])
    scaled = float(np.sum(x * x * metric))
    predictions = thetas @ x
    followers.follow(
        settings_of(loss),
        scratch_of(predictions, gates),
        Rows(X, np.array([y]), np.ones(1)),
        0,
        layout.Lengths(norm2, 2.0, scaled, scaled, 2.0),
        metric,
        state_of(thetas),
        0,
    )
    for i in range(2 * layout.FOLLOWERS):
        diagonal = i >= layout.FOLLOWERS
        direction, xx = (x * metric, scaled) if diagonal else (x, norm2)
        length = layout.LONGEST * layout.RATIO ** (i % layout.FOLLOWERS)
        e = length * gates[i] / max(2.0, xx)

        def objective(mu: float, p: float = predictions[i], xx: float = xx, e: float = e) -> float:
            return float(loss.of_prediction(p + mu * xx, y)) + mu * mu * xx / (2.0 * e)

        best = minimize_scalar(objective, bounds=(-50.0, 50.0), method="bounded", options={"xatol": 1e-12})
        np.testing.assert_allclose(thetas[i], before[i] + best.x * direction, atol=1e-6)


# --- the second-order follower ---


class Follower:
    """The second-order follower by itself: one place, features whose scales are known."""

    def __init__(self, dim: int, seed: int, typical: float = 1.0) -> None:
        self.random = np.random.default_rng(seed)
        self.dim, self.typical = dim, typical
        self.squares, self.counts = np.full(dim, 1.0 / dim), np.full(dim, 100.0)
        self.scalars, self.thetas = np.zeros(layout.SCALARS), np.zeros((1, dim))
        self.scalars[layout.SPREAD] = 1.0
        self.P = np.zeros((dim, dim))
        second_order.restart(self.P, self.squares, self.counts, typical, self.scalars)

    @property
    def curvature(self) -> Array:
        """P, mirrored."""
        return np.tril(self.P) + np.tril(self.P, -1).T

    def advance(self, loss: losses.LinearLoss, x: Array, y: float, gate: float = 1.0) -> None:
        prediction = float(self.thetas[0] @ x)
        now = scratch_of(np.array([prediction]), np.array([gate]))
        rows = Rows(x[None, :].copy(), np.array([y]), np.ones(1))
        state = state_of(self.thetas)._replace(squares=self.squares, counts=self.counts, scalars=self.scalars, P=self.P)
        second_order.advance(settings_of(loss), now, rows, 0, self.typical, state, np.empty(self.dim), 0)


def test_only_the_lower_triangle_is_read():
    random = np.random.default_rng(9)
    P, x, out = random.normal(size=(5, 5)), random.normal(size=(2, 5)), np.empty(5)
    whole = np.tril(P) + np.tril(P, -1).T
    assert second_order.times(P, x, 1, out) == pytest.approx(x[1] @ whole @ x[1], rel=1e-12)
    np.testing.assert_allclose(out, whole @ x[1], rtol=1e-12)


def forgotten(P: Array, x: Array, gate: float) -> Array:
    """What a believed round adds to P: a share of it, in the direction of its record."""
    return second_order.FORGETTING * gate * np.outer(P @ x, P @ x) / (x @ P @ x)


def test_it_is_least_squares_with_forgetting():
    """Each round minimises γ·(y − ⟨x, θ⟩)² + (θ − θ₀)'P⁻¹(θ − θ₀), by a dense system of equations."""
    one, T = Follower(4, seed=10), 300
    X, y = one.random.normal(size=(T, 4)), one.random.normal(size=T)
    gates = one.random.random(T)
    P, theta = one.curvature, np.zeros(4)
    for x, target, gate in zip(X, y, gates, strict=True):
        one.advance(losses.Squared(), x, target, gate)
        information = np.linalg.inv(P)
        theta = np.linalg.solve(information + gate * np.outer(x, x), information @ theta + gate * target * x)
        P = np.linalg.inv(information + gate * np.outer(x, x)) + forgotten(P, x, gate)
    # The floor under P, 1e-12 of what it begins with in each round, is not in the equations: P is 1e-4 of that by now.
    np.testing.assert_allclose(one.thetas[0], theta, rtol=0.0, atol=1e-6)
    np.testing.assert_allclose(one.curvature, P, rtol=0.0, atol=1e-5 * np.abs(one.P).max())
    assert (np.triu(one.P, 1) == 0.0).all()


def test_nothing_is_forgotten_where_nothing_is_seen():
    """Ten thousand records in one direction: what is known of the other stays, but for the floor of 1e-12 a round."""
    one = Follower(2, seed=20)
    before = one.P[1, 1]
    for _ in range(10_000):
        one.advance(losses.Squared(), np.array([1.0, 0.0]), 1.0)
    assert before <= one.P[1, 1] <= before * (1.0 + 1e-7)
    assert 0.0 < one.P[0, 0] < 1e-2 * before


def test_records_that_came_while_the_spread_was_wide_count_less():
    """A spread a tenth as wide: a hundred times the weight; never more than a million times."""
    for narrow, times in ((0.1, 100.0), (1e-9, second_order.SHARPEST)):
        one, x = Follower(2, seed=11), np.array([1.0, -0.5])
        one.scalars[layout.SPREAD] = narrow
        P = one.curvature
        one.advance(losses.Squared(), x, 2.0)
        expected = np.linalg.inv(np.linalg.inv(P) + times * np.outer(x, x)) @ (times * 2.0 * x)
        np.testing.assert_allclose(one.thetas[0], expected, rtol=1e-6)


@pytest.mark.parametrize("y", [-1.0, 1.0])
@pytest.mark.parametrize("gate", [0.2, 1.0])
def test_a_label_moves_it_to_the_minimum(gate, y):
    """γ·ln(1 + e^(−y⟨x, θ⟩)) + ½(θ − θ₀)'P⁻¹(θ − θ₀), and P⁻¹ grows by the curvature there."""
    one = Follower(3, seed=12)
    for _ in range(5):
        one.advance(losses.Logistic(), one.random.normal(size=3), y)
    before, P, x = one.thetas[0].copy(), one.curvature, one.random.normal(size=3)
    one.advance(losses.Hinge(), x, y, gate)
    t, p = x @ P @ x, before @ x

    def objective(mu: float) -> float:
        return gate * np.logaddexp(0.0, -y * (p + mu * t)) + mu * mu * t / 2.0

    best = minimize_scalar(objective, bounds=(-2.0, 2.0), method="bounded", options={"xatol": 1e-12})
    np.testing.assert_allclose(one.thetas[0], before + best.x * P @ x, atol=1e-6 * np.abs(P @ x).max())
    miss = 1.0 / (1.0 + np.exp(y * (one.thetas[0] @ x)))
    expected = np.linalg.inv(np.linalg.inv(P) + gate * miss * (1.0 - miss) * np.outer(x, x))
    np.testing.assert_allclose(one.curvature, expected + forgotten(P, x, gate), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("y", "steep"), [(50.0, 0.8), (-50.0, 0.2)])
def test_a_quantile_moves_it_by_its_slope_and_never_beyond_the_target(y, steep):
    loss, x = losses.Pinball(0.8), np.array([1.0, 0.3, -0.2])
    one = Follower(3, seed=13)
    P, information = one.curvature, 0.8 * 0.2
    t = x @ P @ x
    one.advance(loss, x, y)
    np.testing.assert_allclose(one.thetas[0], np.sign(y) * steep / (1.0 + information * t) * P @ x, rtol=1e-12)
    expected = np.linalg.inv(np.linalg.inv(P) + information * np.outer(x, x))
    np.testing.assert_allclose(one.curvature, expected + forgotten(P, x, 1.0), rtol=1e-6, atol=1e-9)
    near = Follower(3, seed=13)
    near.advance(loss, x, 1e-3 * np.sign(y))
    assert near.thetas[0] @ x == pytest.approx(1e-3 * np.sign(y), rel=1e-12)


# --- the kept ---


def test_the_slots_take_the_mean_in_turn():
    members = 6
    thetas, scalars = np.zeros((members, 2)), np.zeros(layout.SCALARS)
    weights = np.array([0.4, 0.3, 0.2, 0.1, 0.0, 0.0])
    scalars[layout.DUE] = layout.FIRST_SNAPSHOT
    due = []
    for i, place in enumerate([4, 5, 4, 5]):
        mean = np.array([i + 1.0, -i])
        others = thetas.copy()
        mixture.take_snapshot(thetas, weights, float(np.sum(weights > 0.0)), mean, scalars)
        np.testing.assert_array_equal(thetas[place], mean)
        others[place] = mean
        np.testing.assert_array_equal(thetas, others)
        assert weights.sum() == pytest.approx(1.0, abs=1e-14)
        due.append(scalars[layout.DUE])
    assert due == [78.0, 98.0, 123.0, 154.0]
    np.testing.assert_allclose(weights[:4] / weights[0], [1.0, 0.75, 0.5, 0.25], rtol=1e-14)
    assert weights[4] == pytest.approx(layout.SHARE / 5.0, rel=2.0 * layout.SHARE)


@pytest.mark.parametrize(("weight", "taken"), [(0.4, True), (0.5, True), (0.51, False), (0.99, False)])
def test_a_slot_that_leads_is_kept(weight, taken):
    thetas, scalars = np.ones((4, 2)), np.zeros(layout.SCALARS)
    weights = np.array([1.0 - weight, 0.0, weight, 0.0])
    mixture.take_snapshot(thetas, weights, 2.0, np.zeros(2), scalars)
    assert (thetas[2] == (0.0 if taken else 1.0)).all()
    assert scalars[layout.SLOT] == 1.0


# --- the weights ---


@pytest.mark.parametrize("size", [0.01, 1.0, 30.0, 1e4])
@pytest.mark.parametrize("seed", range(5))
def test_weights_keep_up_with_the_best_sequence(seed, size):
    """Σ −ln Z_t ≤ Σ g_t(i_t) + ln n + S·ln(n/α) + (T − 1 − S)·ln(1/(1 − α)), for the best sequence with S switches.

    The best of all is found by dynamic programming. No member is said to gain more than `LUCK` on the leader.
    """
    random = np.random.default_rng([15, seed])
    n, T, share = 6, 200, layout.SHARE
    weights, mixed = np.full(n, 1.0 / n), 0.0
    stay, switch = -np.log(1.0 - share), np.log(n / share)
    best = np.full(n, np.log(n))
    for t in range(T):
        # Who is good changes every 50 rounds.
        logs = size * random.normal(size=n) - size * (np.arange(n) != (t // 50) % n)
        power = random.choice([1.0, 0.3])
        lost = -power * np.minimum(logs, logs[np.argmax(weights)] + np.log(mixture.LUCK))
        mixed -= np.log(np.sum(weights * np.exp(-(lost - lost.min())))) - lost.min()
        best = (np.minimum(best + stay, best.min() + switch) if t else best) + lost
        mixture.reweigh(weights, logs.copy(), power, float(n))
        assert weights.sum() == pytest.approx(1.0, abs=1e-12)
        assert weights.min() >= share / n
    assert mixed <= best.min() + 1e-9 * (1.0 + abs(best.min()))


def test_bayes_rule_with_a_share():
    weights, likelihood = np.array([0.5, 0.0, 0.3, 0.2]), np.array([0.1, 9.0, 0.4, 0.8])
    expected = weights * likelihood**0.5
    expected = (1.0 - layout.SHARE) * expected / expected.sum() + layout.SHARE / 3.0
    assert mixture.reweigh(weights, np.log(likelihood), 0.5, 3.0) == 2
    np.testing.assert_allclose(weights[[0, 2, 3]], expected[[0, 2, 3]], rtol=1e-14)
    assert weights[1] == 0.0


def test_one_lucky_round_does_not_make_a_leader():
    """A likelihood 1e9 times the leader's counts 30-fold; one that is as much smaller counts in full."""
    weights = np.array([0.98, 0.01, 0.01])
    assert mixture.reweigh(weights, np.log([1.0, 1e9, 1e-9]), 1.0, 3.0) == 0
    expected = np.array([0.98, 0.01 * mixture.LUCK, 0.01e-9])
    np.testing.assert_allclose(weights, 0.999 * expected / expected.sum() + 0.001 / 3.0, rtol=1e-12)


def test_likelihoods_beyond_all_floats_are_weighed():
    weights = np.full(3, 1.0 / 3.0)
    assert mixture.reweigh(weights, np.array([-1e5, -1e5 - 1.0, -3e5]), 1.0, 3.0) == 0
    assert weights[0] / weights[1] == pytest.approx(np.e, rel=1e-2)
    assert weights[2] == pytest.approx(layout.SHARE / 3.0, rel=1e-12)
