"""How much of the information in clean records is used: ``python -m benchmarks.efficiency``, a few minutes.

On stationary streams, the figure is ‖θ − θ*‖² relative to least squares on the clean rows, which knows the wrong ones:
the ratio of the means over all seeds, because a ratio of a single seed is large where least squares is lucky.
A breakdown point is the largest share of wrong records with a ratio below 10. On real tables, the figure is the median
absolute error of predictions before learning, relative to least squares refitted on the clean rows of the past. After a
jump, it is the sum of (⟨x, θ⟩ − ⟨x, θ*⟩)² over the clean rows, relative to a learner that starts at the jump. In a
drift, it is relative to least squares on the clean rows that forgets, with the best forgetting in hindsight.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numba import njit
from rich.console import Console
from rich.table import Table

import redescend as rd
from benchmarks.belief_tables import TABLES, load
from redescend.numeric import Array

BROKEN = 10.0
"""A learner has broken down beyond this ratio to least squares on the clean rows."""

SHARES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
REFIT = 100
"""Rows between two refits of least squares on a real table."""


class Game(NamedTuple):
    """A stream whose clean rows follow y = ⟨x, θ⟩ + noise."""

    X: Array
    y: Array
    clean: Array
    theta: Array


def make_game(kind: str, rounds: int, dim: int, share: float, seed: int) -> Game:
    """Standard normal features, signal and noise of variance 1, and a share of records that are wrong."""
    rng = np.random.default_rng([seed, rounds, dim])
    theta = rng.standard_normal(dim)
    theta /= np.linalg.norm(theta)
    X = rng.standard_normal((rounds, dim))
    signal = X @ theta
    y = signal + rng.standard_normal(rounds)
    wrong = rng.random(rounds) < share
    other = rng.standard_normal(rounds)
    spoiled: dict[str, Callable[[], Array]] = {
        "spread": lambda: 10.0 * other,
        "constant": lambda: y + 1000.0,
        "one-sided": lambda: y + 10.0 * np.abs(other),
        "sign flips": lambda: y - 2.0 * signal,
        "leverage": lambda: y,
        "slow drift": lambda: y + np.linspace(0.0, 20.0, rounds),
    }
    y = np.where(wrong, spoiled[kind](), y)
    if kind == "leverage":
        X = np.where(wrong[:, None], 100.0 * X, X)
    return Game(X, y, ~wrong, theta)


def error(theta: Array, game: Game) -> float:
    return float(np.sum((theta - game.theta) ** 2))


def least_squares(game: Game) -> Array:
    """Least squares on the clean rows."""
    return np.asarray(np.linalg.lstsq(game.X[game.clean], game.y[game.clean], rcond=None)[0])


def self_tuning(order: int, game: Game) -> Array:
    learner = rd.SelfTuning(game.X.shape[1], loss=rd.losses.Squared(), order=order)  # type: ignore[arg-type]
    return rd.play(learner, rd.Stream(game.X, game.y)).theta


@njit(cache=False)  # type: ignore[untyped-decorator]
def averaged_sgd(X: Array, y: Array, scale: float) -> Array:
    """Stochastic gradient descent on |y − ⟨x, θ⟩| with steps scale/√t; the mean of its second half."""
    rounds, dim = X.shape
    theta, mean = np.zeros(dim), np.zeros(dim)
    for t in range(rounds):
        step = scale / np.sqrt(t + 1.0) * np.sign(y[t] - X[t] @ theta)
        theta += step * X[t]
        if 2 * t >= rounds:
            mean += (theta - mean) / (t - rounds // 2 + 1.0)
    return mean


def best_sgd(game: Game) -> Array:
    """Averaged SGD with the step that is best in hindsight."""
    runs = [averaged_sgd(game.X, game.y, scale) for scale in 2.0 ** np.arange(-8.0, 3.0)]
    return min(runs, key=partial(error, game=game))


WRONG: dict[str, Callable[[Array, Array], tuple[Array, Array]]] = {
    "spread": lambda y, p: (np.exp(-0.5 * (y / 10.0) ** 2) / 10.0, p),
    "constant": lambda y, p: (np.exp(-0.5 * (y - 1000.0 - p) ** 2), y - 1000.0),
    "sign flips": lambda y, p: (np.exp(-0.5 * (y + p) ** 2), -y),
}
"""The density of wrong targets with these predictions, and what they say about the signal."""

EM_ITERATIONS = 100


def maximum_likelihood(kind: str, share: float, game: Game) -> Array:
    """The most likely model if the share of wrong records and all densities are known, by EM from the truth."""
    theta, factor = game.theta, np.linalg.pinv(game.X)
    for _ in range(EM_ITERATIONS):
        p = game.X @ theta
        wrong, told = WRONG[kind](game.y, p)
        good = (1.0 - share) * np.exp(-0.5 * (game.y - p) ** 2)
        weight = good / np.maximum(good + share * wrong, np.finfo(float).tiny)
        theta = factor @ (weight * game.y + (1.0 - weight) * told)
    return theta


PLAYERS: dict[str, Callable[[Game], Array]] = {
    "order 1": partial(self_tuning, 1),
    "order 2": partial(self_tuning, 2),
    "averaged SGD on |y − p|, best step": best_sgd,
}


class Errors(NamedTuple):
    """‖θ − θ*‖² for each seed."""

    learned: Array
    least_squares: Array

    @property
    def ratios(self) -> Array:
        return self.learned / self.least_squares

    @property
    def ratio_of_means(self) -> float:
        return float(self.learned.mean() / self.least_squares.mean())


def errors(
    kind: str, rounds: int, dim: int, share: float, seeds: range, players: dict[str, Callable[[Game], Array]] = PLAYERS
) -> dict[str, Errors]:
    """The errors of every player."""
    games = [make_game(kind, rounds, dim, share, seed) for seed in seeds]
    yardsticks = np.array([error(least_squares(game), game) for game in games])
    return {
        name: Errors(np.array([error(player(game), game) for game in games]), yardsticks)
        for name, player in players.items()
    }


SETTINGS: dict[str, tuple[str, int, int, float]] = {
    "10 % N(0, 10²), n = 2·10⁵, d = 20": ("spread", 200_000, 20, 0.1),
    "none wrong, n = 2·10⁴, d = 10": ("spread", 20_000, 10, 0.0),
    "45 % N(0, 10²), n = 2·10⁴, d = 10": ("spread", 20_000, 10, 0.45),
    "40 % at +1000, n = 2·10⁴, d = 10": ("constant", 20_000, 10, 0.4),
    "30 % with the sign of the signal flipped": ("sign flips", 20_000, 10, 0.3),
}


def efficiency_table(seeds: range) -> Table:
    words = "ratio of means (mean ratio, worst)"
    bound = "maximum likelihood, all densities known"
    table = Table(words, *PLAYERS, bound, title="‖θ − θ*‖² over least squares on the clean rows")
    for title, (kind, rounds, dim, share) in SETTINGS.items():
        players = PLAYERS | {bound: partial(maximum_likelihood, kind, share)}
        found = errors(kind, rounds, dim, share, seeds, players).values()
        cells = [f"{e.ratio_of_means:.2f} ({np.mean(e.ratios):.2f}, {max(e.ratios):.2f})" for e in found]
        table.add_row(title, *cells)
    return table


def breakdown_table(seeds: range) -> Table:
    """The largest share up to which the median over seeds stays below `BROKEN`."""
    table = Table("wrong records", *PLAYERS, title=f"Breakdown: largest share with a median ratio below {BROKEN:g}")
    for kind in ("spread", "constant", "one-sided", "leverage", "sign flips", "slow drift"):
        held = dict.fromkeys(PLAYERS, 0.0)
        holding = set(PLAYERS)
        for share in SHARES:
            found = errors(kind, 20_000, 10, share, seeds)
            holding = {name for name in holding if np.median(found[name].ratios) < BROKEN}
            held |= dict.fromkeys(holding, share)
            if not holding:
                break
        table.add_row(kind, *(f"{100 * share:.0f} %" for share in held.values()))
    return table


def jump_cost(dim: int, noise: float, share: float, seed: int) -> tuple[float, float]:
    """The squared error after a jump to an independent truth, halfway in 3,000 rounds, and that of a fresh learner."""
    rng = np.random.default_rng([seed, dim, 7])
    X, half = rng.standard_normal((3000, dim)), 1500
    before, after = (direction / np.linalg.norm(direction) for direction in rng.standard_normal((2, dim)))
    signal = np.concatenate([X[:half] @ before, X[half:] @ after])
    y = signal + noise * rng.standard_normal(len(X))
    wrong = rng.random(len(X)) < share
    y = np.where(wrong, 10.0 * rng.standard_normal(len(X)), y)

    def cost(first: int) -> float:
        learner = rd.SelfTuning(dim, loss=rd.losses.Squared(), order=2)
        predictions = rd.play(learner, rd.Stream(X[first:], y[first:])).predictions
        return float(np.sum((predictions[half - first :] - signal[half:])[~wrong[half:]] ** 2))

    return cost(0), cost(half)


def jump_table(seeds: range) -> Table:
    """The ratio of the mean costs, at order 2."""
    shares = (0.0, 0.1, 0.3)
    table = Table(
        "d, noise", *(f"{share:.0%} N(0, 10²)" for share in shares), title="Cost of a jump over a fresh start"
    )
    for noise in (1.0, 0.1):
        for dim in (5, 20, 50):
            costs = np.array([[jump_cost(dim, noise, share, seed) for seed in seeds] for share in shares])
            ratios = costs[..., 0].mean(axis=1) / costs[..., 1].mean(axis=1)
            table.add_row(f"{dim}, {noise:g}", *(f"{ratio:.2f}" for ratio in ratios))
    return table


@njit(cache=False)  # type: ignore[untyped-decorator]
def forgetting(X: Array, y: Array, clean: Array, kept: float) -> Array:
    """Predictions of recursive least squares on the clean rows, which keeps this part of what it knows in a round."""
    rounds, dim = X.shape
    P, theta, predictions = 10.0 * np.eye(dim), np.zeros(dim), np.zeros(rounds)
    for t in range(rounds):
        x = X[t]
        predictions[t] = x @ theta
        if clean[t]:
            P /= kept
            Px = P @ x
            scale = 1.0 / (1.0 + x @ Px)
            theta += scale * (y[t] - predictions[t]) * Px
            P -= scale * np.outer(Px, Px)  # stays symmetric, or rounding errors would grow without limit
    return predictions


KEPT = (1.0, 0.9995, 0.999, 0.998, 0.995, 0.99, 0.98, 0.95, 0.9)


def drift_cost(order: int, kind: str, rate: float, dim: int, share: float, seed: int) -> tuple[float, float]:
    """The mean squared error on clean rows, and that of least squares with the best forgetting in hindsight."""
    rng, rounds = np.random.default_rng([seed, dim]), 6000
    X, first, other = rng.standard_normal((rounds, dim)), rng.standard_normal(dim), rng.standard_normal(dim)
    first /= np.linalg.norm(first)
    if kind == "random walk":
        theta = first + rate * np.cumsum(rng.standard_normal((rounds, dim)), axis=0) / np.sqrt(dim)
    else:
        other -= (other @ first) * first
        angle = rate * np.arange(rounds)[:, None]
        theta = np.cos(angle) * first + np.sin(angle) * other / np.linalg.norm(other)
    signal, wrong = np.sum(X * theta, axis=1), rng.random(rounds) < share
    y = np.where(wrong, 10.0 * rng.standard_normal(rounds), signal + rng.standard_normal(rounds))
    learner = rd.SelfTuning(dim, loss=rd.losses.Squared(), order=order)  # type: ignore[arg-type]
    counted = ~wrong & (np.arange(rounds) >= 100)

    def cost(predictions: Array) -> float:
        return float(np.mean((predictions - signal)[counted] ** 2))

    return cost(rd.play(learner, rd.Stream(X, y)).predictions), min(cost(forgetting(X, y, ~wrong, k)) for k in KEPT)


def drift_table(seeds: range) -> Table:
    """The ratio of the mean costs, with 10 % wrong records."""
    table = Table("truth", *(f"order {order}, d = {d}" for order in (1, 2) for d in (3, 10, 30)))
    table.title = "Cost of a drift over least squares with the best forgetting; 10 % N(0, 10²)"
    for kind, rates in (("random walk", (0.003, 0.01, 0.03)), ("rotation", (0.0003, 0.001, 0.003, 0.01))):
        for rate in rates:
            cells = []
            for order in (1, 2):
                for dim in (3, 10, 30):
                    costs = np.array([drift_cost(order, kind, rate, dim, 0.1, seed) for seed in seeds])
                    cells.append(f"{costs[:, 0].mean() / costs[:, 1].mean():.2f}")
            table.add_row(f"{kind}, {rate:g}", *cells)
    return table


def refitted(X: Array, y: Array, clean: Array) -> Array:
    """Predictions of least squares on all clean rows of the past, refitted every `REFIT` rows."""
    width = X.shape[1]
    gram, products = 1e-9 * np.eye(width), np.zeros(width)
    predictions = np.empty(len(y))
    for start in range(0, len(y), REFIT):
        rows = slice(start, start + REFIT)
        predictions[rows] = X[rows] @ np.linalg.lstsq(gram, products, rcond=None)[0]
        good = X[rows][clean[rows]]
        gram += good.T @ good
        products += good.T @ y[rows][clean[rows]]
    return predictions


def real_rows(split: str, share: float) -> Iterator[tuple[str, float]]:
    """For every table, as it is ordered and shuffled, the median error over that of the refitted least squares."""
    for i, entry in enumerate(TABLES[split]):
        X, y = load(entry)
        for shuffled in (False, True):
            rng = np.random.default_rng([i, shuffled])
            order = rng.permutation(len(y)) if shuffled else np.arange(len(y))
            clean = rng.random(len(y)) >= share
            spread = np.subtract(*np.quantile(y, [0.75, 0.25]))
            values = np.where(clean, y[order], y[order] + rng.choice([-10.0, 10.0], len(y)) * max(spread, 1e-12))
            learner = rd.SelfTuning(X.shape[1], loss=rd.losses.Squared(), order=2)
            predictions = rd.play(learner, rd.Stream(X[order], values)).predictions
            rows = clean & (np.arange(len(y)) >= REFIT)
            errors = [np.median(np.abs(p - values)[rows]) for p in (predictions, refitted(X[order], values, clean))]
            yield f"{entry.name}{', shuffled' if shuffled else ''}", float(errors[0] / errors[1])


def real_table(split: str) -> Table:
    table = Table(
        "table", "none wrong", "10 % wrong", title=f"Median error over refitted least squares, tables '{split}'"
    )
    columns = [list(real_rows(split, share)) for share in (0.0, 0.1)]
    for (name, clean), (_, wrong) in zip(*columns, strict=True):
        table.add_row(name, f"{clean:.3f}", f"{wrong:.3f}")
    means = [np.exp(np.mean([np.log(ratio) for _, ratio in column])) for column in columns]
    table.add_row("geometric mean", *(f"{value:.3f}" for value in means))
    return table


SECTIONS: dict[str, Callable[[range], Table]] = {
    "efficiency": efficiency_table,
    "breakdown": breakdown_table,
    "jump": jump_table,
    "drift": drift_table,
    "real": lambda seeds: real_table("tune"),
    "held": lambda seeds: real_table("held"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="How much of the information in clean records is used.")
    parser.add_argument("sections", nargs="*", choices=[[], *SECTIONS], help="all by default")
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    console = Console(width=None)
    progress = Console(stderr=True)
    for name in arguments.sections or SECTIONS:
        progress.print(f"{name} …", style="dim")
        console.print(SECTIONS[name](seeds))


if __name__ == "__main__":
    main()
