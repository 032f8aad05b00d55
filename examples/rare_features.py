"""Does the self-tuning learner learn rare features with large effects, or treat them as outliers?

python examples/rare_features.py [draws]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Literal

import numpy as np

import redescend as rd

Drawn = tuple[rd.Stream, np.ndarray]


def make_levels(count: int, others: int, wrong: float, seed: int, rounds: int = 10_000) -> Drawn:
    """A category whose levels have effects of fifty times the noise, with other features and wrong targets."""
    random = np.random.default_rng(seed)
    X = np.hstack([np.eye(count)[random.integers(count, size=rounds)], random.normal(size=(rounds, others))])
    truth = np.concatenate([50.0 * random.normal(size=count), random.normal(size=others)])
    return corrupt(X, truth, 150.0, wrong, random)


def make_switch(share: float, wrong: float, seed: int, rounds: int = 10_000) -> Drawn:
    """A switch that is rarely on, with an effect of fifty times the noise, and twenty other features."""
    random = np.random.default_rng(seed)
    X = np.hstack([random.normal(size=(rounds, 20)), random.random((rounds, 1)) < share])
    return corrupt(X, np.append(random.normal(size=20), 50.0), 100.0, wrong, random)


def corrupt(X: np.ndarray, truth: np.ndarray, wide: float, wrong: float, random: np.random.Generator) -> Drawn:
    X, truth = np.column_stack([X, np.ones(len(X))]), np.append(truth, 3.0)
    signal, out = X @ truth, random.random(len(X)) < wrong
    noisy = signal + random.normal(size=len(X))
    return rd.Stream(X, np.where(out, random.uniform(-wide, wide, size=len(X)), noisy)), signal


def is_found(drawn: Drawn, order: Literal[1, 2]) -> bool:
    """Whether more than nine tenths of the variance is explained after the last record."""
    stream, signal = drawn
    learner = rd.SelfTuning(stream.dim, loss=rd.losses.Squared(), order=order)
    rd.play(learner, stream)
    late = slice(len(stream.y) // 2, None)
    return bool(np.mean((stream.X[late] @ learner.theta - signal[late]) ** 2) < 0.1 * np.var(signal[late]))


STREAMS: dict[str, Callable[[int], Drawn]] = {
    "10 levels": lambda seed: make_levels(10, 0, 0.0, seed),
    "20 levels": lambda seed: make_levels(20, 0, 0.0, seed),
    "20 levels and 10 other features": lambda seed: make_levels(20, 10, 0.0, seed),
    "10 levels, a tenth wrong": lambda seed: make_levels(10, 5, 0.1, seed),
    "20 levels, a quarter wrong": lambda seed: make_levels(20, 10, 0.25, seed),
    "a switch in 2 % of the records": lambda seed: make_switch(0.02, 0.0, seed),
    "a switch in 2 %, a tenth wrong": lambda seed: make_switch(0.02, 0.1, seed),
    "a switch in 0.5 %, a tenth wrong": lambda seed: make_switch(0.005, 0.1, seed, rounds=20_000),
}


def main(draws: int) -> None:
    print(f"found in how many of {draws} draws: order 1, order 2")
    for name, draw in STREAMS.items():
        counts = [
            sum(is_found(draw(seed), 1) for seed in range(draws)),
            sum(is_found(draw(seed), 2) for seed in range(draws)),
        ]
        print(f"{name:34}", *(f"{count:4}" for count in counts), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 12)
