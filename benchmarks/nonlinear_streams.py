"""Streams for the benchmark of models with trees: real tables with errors, synthetic truths, and River's benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.belief_streams import spoil
from benchmarks.belief_tables import TABLES, load
from redescend.numeric import Array

KINDS = ("shift", "wide", "uniform", "tenfold", "shuffled", "features", "thousandfold", "sign")
FIRST = 5000
"""Number of rows that determine the size of errors."""

ROUNDS = 10_000

RIVER = {"ChickWeights": 23.11, "TrumpApproval": 0.269, "Bananas": 0.889, "Phishing": 0.914, "ImageSegments": 0.902}
"""River's best figure on each table of its own benchmark: mean absolute errors, then shares of right labels."""


@dataclass(frozen=True)
class Stream:
    """Records, which of them are clean, and the targets before errors."""

    name: str
    X: Array
    y: Array
    clean: Array
    truth: Array
    shuffled: bool = False
    share: float = 0.0

    def groups(self) -> tuple[str, ...]:
        """The groups that it is counted in."""
        return "all", "shuffled" if self.shuffled else "in order", f"{self.share:.0%}"


def real(split: str, place: int, shuffled: bool, share: float) -> Stream:
    """A real table, in its order or shuffled, with a share of errors of one kind; kinds alternate."""
    X, y = load(TABLES[split][place])
    if shuffled:
        order = np.random.default_rng([7, place]).permutation(len(y))
        X, y = X[order], y[order]
    random = np.random.default_rng([place, int(share * 100), shuffled, split == "held"])
    kind = KINDS[(place + 3 * (share > 0.1) + shuffled) % len(KINDS)]
    return spoil_table(TABLES[split][place].name, X, y, kind, shuffled, share, random)


def spoil_table(
    name: str, X: Array, y: Array, kind: str, shuffled: bool, share: float, random: np.random.Generator
) -> Stream:
    """A table, whose last column is a constant, with a share of errors of one kind."""
    clean = random.random(len(y)) >= share
    bad_X, bad_y = X, y
    if share > 0.0:
        some, targets = X[:FIRST], y[:FIRST]
        residuals = targets - some @ np.linalg.lstsq(some, targets, rcond=None)[0]
        unit = 1.48 * float(np.median(np.abs(residuals))) or float(np.std(y))
        bad_X, bad_y = spoil(kind, X, y, clean, random.uniform(7, 20), random, unit)
        clean = clean | ((bad_y == y) & (bad_X == X).all(axis=1))
    # Models have their own constant.
    return Stream(name, bad_X[:, :-1].copy(), bad_y, clean, y, shuffled, share)


def synthetic(share: float, seed: int = 5) -> Iterator[Stream]:
    """Known functions with noise: linear ones, Friedman's, steps, products, and drift."""
    random = np.random.default_rng(seed)
    normal = random.standard_normal
    place = np.arange(ROUNDS) / ROUNDS

    def friedman(dim: int) -> tuple[Array, Array]:
        X = random.random((ROUNDS, dim))
        f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
        return X, f

    def circuit() -> tuple[Array, Array, Array]:
        X = random.random((ROUNDS, 4)) * [100, 520 * np.pi, 1, 10] + [0, 40 * np.pi, 0, 1]
        return X, X[:, 0], X[:, 1] * X[:, 2] - 1 / (X[:, 1] * X[:, 3])

    for dim in (10, 50):
        X = normal((ROUNDS, dim))
        yield _noisy(f"linear, d = {dim}", X, X @ normal(dim), 1.0, share, random)
    for dim in (10, 100):
        yield _noisy(f"Friedman 1, d = {dim}", *friedman(dim), 1.0, share, random)
    X, a, b = circuit()
    yield _noisy("Friedman 2", X, np.hypot(a, b), 125.0, share, random)
    X, a, b = circuit()
    yield _noisy("Friedman 3", X, np.arctan(b / a), 0.1, share, random)
    X = normal((ROUNDS, 5))
    yield _noisy("steps", X, 3.0 * (X[:, 0] > 0) + 2.0 * (X[:, 1] > 0.5) * (X[:, 2] < 0), 0.3, share, random)
    X = normal((ROUNDS, 10))
    yield _noisy("product", X, X[:, 0] * X[:, 1], 0.3, share, random)
    X = normal((ROUNDS, 5))
    yield _noisy("drift", X, np.sin(2 * X[:, 0] + 2 * np.pi * place) + X[:, 1], 0.1, share, random)
    X, f = friedman(5)
    yield _noisy("jump", X, np.where(place < 0.5, f, -f), 1.0, share, random)


def _noisy(name: str, X: Array, f: Array, noise: float, share: float, random: Any) -> Stream:
    truth = f + noise * random.standard_normal(len(f))
    clean = random.random(len(f)) >= share
    return Stream(
        name, X, np.where(clean, truth, truth + 10 * truth.std() * random.standard_normal(len(f))), clean, truth
    )


def river_table(name: str) -> tuple[Array, Array]:
    """Features and targets of a table of River's benchmark."""
    records = list(getattr(import_module("river.datasets"), name)())
    X = np.array([[float(value) for value in x.values()] for x, _ in records])
    return X, np.array([y for _, y in records])
