"""Streams with known errors, to compare beliefs with an oracle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from redescend.numeric import Array

DIM = 6
NOISES = ("normal", "laplace", "t3", "t2", "skewed", "heteroscedastic")
ERRORS = (
    "shift", "wide", "slight", "uniform", "sign", "tenfold", "thousandfold", "zero", "sentinel", "shuffled", "features",
    "stuck",
)  # fmt: skip
CHANGES = ("still", "drift", "jump", "louder")
SHARES = (0.01, 0.05, 0.1, 0.25)


@dataclass(frozen=True)
class Case:
    """A stream and which records are clean; of synthetic ones also the true standardized residuals and scales."""

    name: str
    X: Array
    y: Array
    clean: Array
    true_residuals: Array | None = None
    true_scale: Array | None = None
    error: str = "none"
    share: float = 0.0


@dataclass(frozen=True)
class Recipe:
    """How a synthetic stream is made; the seed draws the constants, another one the records."""

    noise: str
    error: str
    share: float
    rounds: int
    seed: int
    change: str = "still"

    @property
    def name(self) -> str:
        return f"{self.noise}, {self.error} {self.share:.0%}, {self.change}, {self.rounds}"

    def make(self, sample: int = 0, rounds: int = 0) -> Case:
        """Draw the stream; other samples have the same constants."""
        constants = np.random.default_rng([self.seed, 1])
        rng = np.random.default_rng([self.seed, 2, sample])
        rounds = rounds or self.rounds
        theta, unit = constants.normal(size=DIM) * 2.0, 10.0 ** constants.uniform(-3, 3)
        size, steepness, bend = constants.uniform(7, 20), constants.uniform(0.3, 0.8), constants.normal(size=DIM)
        theta[-1] = constants.choice([0.0, 20.0])
        X = np.column_stack([rng.normal(size=(rounds, DIM - 1)), np.ones(rounds)])
        place = np.linspace(0.0, 1.0, rounds)
        path = np.tile(theta, (rounds, 1))
        if self.change == "drift":
            path += np.outer(np.sin(2 * np.pi * place), bend)
        elif self.change == "jump":
            path += np.outer(np.floor(3 * place), bend)
        scale = np.exp(steepness * X[:, 0]) if self.noise == "heteroscedastic" else np.ones(rounds)
        if self.change == "louder":
            scale = scale * np.where(place > 0.6, 4.0, 1.0)
        mean = (X * path).sum(axis=1)
        y = mean + scale * draw_noise(self.noise, rng, rounds)
        clean = np.ones(rounds, bool)
        if self.error != "none":
            clean = draw_rows(self.error, self.share, rng, rounds)
            X, y = spoil(self.error, X, y, clean, size, rng)
        residuals = (y - (X * path).sum(axis=1)) / scale
        return Case(self.name, X, y * unit, clean, residuals, scale * unit, self.error, self.share)


def draw_noise(kind: str, rng: np.random.Generator, rounds: int) -> Array:
    """Noise whose middle half is about as wide as that of a standard normal variable."""
    if kind == "laplace":
        return rng.laplace(size=rounds)
    if kind in ("t2", "t3"):
        return rng.standard_t(int(kind[1]), size=rounds)
    if kind == "skewed":
        return 1.2 * (rng.gamma(2.0, size=rounds) - 2.0) / np.sqrt(2.0)
    return rng.normal(size=rounds)


def draw_rows(error: str, share: float, rng: np.random.Generator, rounds: int) -> Array:
    """Which rows stay clean; a sensor is stuck for runs of 30."""
    if error != "stuck":
        return rng.random(rounds) >= share
    starts = rng.random(rounds) < share / 30
    starts[0] = False
    return ~(np.convolve(starts, np.ones(30))[:rounds] > 0)


def spoil(
    error: str, X: Array, y: Array, clean: Array, size: float, rng: np.random.Generator, unit: float = 1.0
) -> tuple[Array, Array]:
    """Replace the records that are not clean; `unit` is the noise scale, and `size` the size of errors in this unit."""
    X, y, bad = X.copy(), y.copy(), np.flatnonzero(~clean)
    k = len(bad)
    if error == "shift":
        y[bad] += size * unit
    elif error == "wide":
        y[bad] += 1.5 * size * unit * rng.normal(size=k)
    elif error == "slight":
        y[bad] += 6.0 * unit * rng.normal(size=k)
    elif error == "uniform":
        low, high = np.quantile(y, [0.01, 0.99])
        y[bad] = rng.uniform(1.5 * low - 0.5 * high, 1.5 * high - 0.5 * low, size=k)
    elif error == "sign":
        y[bad] *= -1.0
    elif error == "tenfold":
        y[bad] *= 10.0
    elif error == "thousandfold":
        y[bad] *= 1000.0
    elif error == "zero":
        y[bad] = 0.0
    elif error == "sentinel":
        y[bad] = -999.0 * unit
    elif error == "shuffled":
        y[bad] = rng.permutation(y)[:k]
    elif error == "features":
        X[bad, int(rng.integers(max(X.shape[1] - 1, 1)))] = size / 2 * rng.normal(size=k)
    elif error == "stuck":
        for row in bad:
            y[row] = y[row - 1]
    return X, y


def synthetic(split: str) -> Iterator[Recipe]:
    """Every noise with every error; shares, lengths and changes alternate. Splits differ in all constants."""
    offset = {"tune": 0, "held": 1}[split]
    seed = 5000 * offset
    for i, noise in enumerate(NOISES):
        for j, error in enumerate(ERRORS):
            seed += 1
            turn = i + j + offset
            rounds = 500 if (2 * i + j) % 6 == offset else 5000
            change = CHANGES[(i + j // 4) % 4] if (i + j) % 3 == offset else "still"
            yield Recipe(noise, error, SHARES[turn % 4], rounds, seed, change)
        for rounds, change in ((500, "still"), (5000, CHANGES[(i + offset) % 4]), (5000, "still")):
            seed += 1
            yield Recipe(noise, "none", 0.0, rounds, seed, change)
        seed += 1
        yield Recipe(noise, ERRORS[(5 * i + offset) % 12], SHARES[(i + offset) % 4], 50_000, seed, CHANGES[i % 4])
