"""The squared loss paid on clean rounds: the forecaster against its definition, the theorem, and both lower bounds."""

from __future__ import annotations

import numpy as np
import pytest

import redescend as rd
from redescend.bounds import PaidLoss, forecast, paid_loss
from redescend.experiments.suite import choose_settings, make_game


def slow_forecast(X, y, bound, l2):
    """Every prediction from its definition, by solving the normal equations anew."""
    clipped, out = np.clip(y, -bound, bound), []
    for t in range(len(y)):
        A = l2 * np.eye(X.shape[1]) + X[: t + 1].T @ X[: t + 1]
        out.append(np.clip(X[t] @ np.linalg.solve(A, X[:t].T @ clipped[:t]), -bound, bound))
    return np.array(out)


def corrupted_stream(rng, rounds=150, dim=4):
    """Clean targets within ±3, and outliers of every size, in x as well as in y."""
    X = rng.normal(size=(rounds, dim))
    y = np.clip(X @ rng.normal(size=dim) + 0.5 * rng.normal(size=rounds), -3, 3)
    clean = rng.random(rounds) > rng.choice([0.0, 0.2, 0.5])
    wrong = ~clean
    y[wrong] = rng.choice([-1.0, 1.0], size=wrong.sum()) * 10.0 ** rng.uniform(-1, 6, size=wrong.sum())
    X[wrong & (rng.random(rounds) < 0.3)] *= 20
    return rd.Stream(X, y, clean)


@pytest.mark.parametrize("l2", [0.1, 1.0, 30.0])
def test_the_forecaster_is_its_definition(l2):
    stream = corrupted_stream(np.random.default_rng(int(10 * l2)))
    slow = slow_forecast(stream.X, stream.y, 3.0, l2)
    np.testing.assert_allclose(forecast(stream, 3.0, l2), slow, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_the_theorem(seed):
    rng = np.random.default_rng(seed)
    stream, l2 = corrupted_stream(rng), 10.0 ** rng.uniform(-2, 2)
    paid = paid_loss(forecast(stream, 3.0, l2), stream, bound=3.0, l2=l2)
    assert paid.holds
    # Without clipping it would not hold: the theorem is about what clipping buys.
    if not stream.clean.all():
        naive = slow_forecast(stream.X, stream.y, np.inf, l2)
        assert not paid_loss(naive, stream, bound=3.0, l2=l2).holds


def test_every_part_is_what_its_definition_says():
    stream = corrupted_stream(np.random.default_rng(5))
    paid, X, y, clean = paid_loss(np.zeros(len(stream)), stream, l2=2.0), stream.X, stream.y, stream.clean
    u = np.linalg.solve(X[clean].T @ X[clean] + 2.0 * np.eye(4), X[clean].T @ y[clean])
    Y = abs(y[clean]).max()
    assert paid.measured == pytest.approx(sum(y[t] ** 2 - (X[t] @ u - y[t]) ** 2 for t in np.flatnonzero(clean)))
    assert paid.comparator == pytest.approx(2.0 * sum(u**2))
    assert paid.information == pytest.approx(Y**2 * np.log(np.linalg.eigvalsh(np.eye(4) + X.T @ X / 2.0)).sum())
    assert paid.outliers == pytest.approx(sum((abs(X[t] @ u) + Y) ** 2 for t in np.flatnonzero(~clean)))


PLAYERS = {
    "forecast": lambda stream: forecast(stream, 1.0),
    "self-tuning": lambda stream: rd.play(rd.SelfTuning(1, loss=rd.losses.Squared()), stream).predictions,
    "OGD": lambda stream: rd.play(rd.OGD(1, loss=rd.losses.Squared(), step=rd.steps.Anytime(0.5)), stream).predictions,
}


@pytest.mark.parametrize("player", PLAYERS)
def test_corrupted_rounds_cost_every_player_something(player):
    """The adversary of the lower bound: 2k targets of ±1 against the sign of the prediction cost at least k."""
    k, y = 12, np.empty(0)
    for _ in range(2 * k):
        ahead = rd.Stream(np.ones((len(y) + 1, 1)), np.append(y, 0.0))
        y = np.append(y, -1.0 if PLAYERS[player](ahead)[-1] >= 0 else 1.0)
    sign = 1.0 if (y > 0).sum() >= k else -1.0
    stream = rd.Stream(np.ones((2 * k, 1)), y, y == sign)
    assert stream.corrupted <= k
    regret = ((PLAYERS[player](stream) - y) ** 2)[stream.clean].sum()  # the comparator ±1 pays nothing
    assert regret >= k


def test_without_the_range_a_few_corrupted_rounds_cost_any_amount():
    """A player that learns a new level M from k records pays M²/4 if those were wrong."""
    for M in (1e3, 1e6):
        level = np.full(200, M)
        predictions = PLAYERS["self-tuning"](rd.Stream(np.ones((200, 1)), level))
        learned = int(np.argmax(predictions > M / 2))
        assert 0 < learned < 100
        y = np.append(level[:learned], 0.0)
        again = PLAYERS["self-tuning"](rd.Stream(np.ones((learned + 1, 1)), y))
        assert (again[-1] - 0.0) ** 2 > M**2 / 4


@pytest.mark.parametrize("order", [1, 2])
def test_self_tuning_stays_within_the_bound_on_the_suite(order):
    games = [make_game(setting, 300, (0, place)) for place, setting in enumerate(choose_settings(0, quick=True))]
    for stream in (game.stream for game in games if game.setting.task == "regression"):
        learner = rd.SelfTuning(stream.dim, loss=rd.losses.Squared(), order=order)
        paid = paid_loss(rd.play(learner, stream).predictions, stream, l2=float(np.mean(stream.X**2)))
        assert paid.holds


def test_bad_input():
    stream = rd.Stream([[1.0], [1.0]], [1.0, 2.0])
    with pytest.raises(rd.errors.DataError, match="one value for each of 2 rounds"):
        paid_loss([1.0], stream)
    with pytest.raises(rd.errors.DataError, match=r"at least the largest clean target, 2\.0"):
        paid_loss([1.0, 1.0], stream, bound=1.0)
    with pytest.raises(rd.errors.ParameterError, match="bound"):
        forecast(stream, -1.0)
    assert not PaidLoss(3.0, 1.0, 1.0, 0.5).holds
