"""Games that several claims play."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import ceil, log2, sqrt
from typing import Any

import numpy as np

import redescend as rd

LOSS = rd.losses.Squared(l2=0.5)
RADIUS = 1.0


def regression(rounds: int, k: int) -> rd.Stream:
    """Records of three features and unit length; in k of them the response is anything between −3 and 3."""
    clean = rd.streams.ridge(rounds, seed=0, dim=3)
    clean = rd.Stream(clean.X / np.linalg.norm(clean.X, axis=1, keepdims=True), clean.y)
    return rd.adversaries.UniformResponse(-3.0, 3.0).corrupt(clean, k=k, seed=1)


def labels(rounds: int, k: int) -> rd.Stream:
    """Records of unit length with labels −1 and +1, k of them flipped and five times as long."""
    clean = rd.streams.svm(rounds, seed=0)
    clean = rd.Stream(clean.X / np.linalg.norm(clean.X, axis=1, keepdims=True), clean.y)
    X, y = clean.X.copy(), clean.y.copy()
    rows = np.sort(np.random.default_rng(1).choice(rounds, k, replace=False))
    X[rows], y[rows] = 5.0 * X[rows], -y[rows]
    clean_rows = np.ones(rounds, dtype=bool)
    clean_rows[rows] = False
    return rd.Stream(X, y, clean_rows, originals=rd.Originals(rows, clean.X[rows], clean.y[rows]))


def play_at_prescribed_step(
    learner: Callable[[rd.steps.Step], Any],
    stream: rd.Stream,
    theorem: Callable[[rd.bounds.Setting], rd.bounds.Bound],
    **known: float,
) -> tuple[rd.Trace, rd.bounds.Bound]:
    """Play at the step that a theorem prescribes, and return the game and its bound.

    `known` are assumptions that are known in advance. m, G, L, V_T and δ depend only on the stream: a first game at any
    step measures them. The second game measures B, on which the step does not depend.
    """
    step: rd.steps.Step = rd.steps.Horizon(len(stream))
    for _ in range(2):
        player = learner(step)
        trace = rd.play(player, stream, keep_actions=True)
        bound = theorem(replace(rd.bounds.estimate(trace, stream, player), **known))
        step = rd.steps.Constant(bound.step)
    return trace, bound


EXPERT_LOSS = rd.losses.Squared()
"""The loss of Algorithm 2 here, on records with x = 1: f = (θ − y)², so m = L = 2 and G = 0. LEARN has a = b = 1."""


def one_step(rounds: int, first: float) -> rd.Stream:
    """A clean stream in one dimension: y is `first` in the first round, and 0 from then on."""
    y = np.zeros(rounds)
    y[0] = first
    return rd.Stream(np.ones((rounds, 1)), y)


def waves(rounds: int, k: int) -> rd.Stream:
    """A slow wave in one dimension, k of its records anywhere between −5 and 5."""
    clean = rd.Stream(np.ones((rounds, 1)), 0.3 * np.sin(np.arange(rounds) / 20.0))
    return rd.adversaries.UniformResponse(-5.0, 5.0).corrupt(clean, k=k, seed=0)


STREAMS = {
    "one step": partial(one_step, 300, 0.2),
    "waves": partial(waves, 300, 0),
    "corrupted waves": partial(waves, 300, 30),
}
"""Short enough to play every expert of Algorithm 2 alone."""


def play_with_experts(stream: rd.Stream, reach: float) -> tuple[rd.LearnWithExperts, rd.Trace]:
    """Play Algorithm 2 as printed on a stream, with A_max = reach·√T."""
    rounds = len(stream)
    learner = rd.LearnWithExperts(
        1, loss=EXPERT_LOSS, a=1.0, b=1.0, rounds=rounds, epsilon=1.0, a_max=reach * sqrt(rounds)
    )
    return learner, rd.play(learner, stream)


def count_experts(learner: rd.LearnWithExperts) -> int:
    """Return N of Algorithm 2: every radius with every step."""
    return int(learner.horizon) * ceil(log2(learner.a_max))


def make_expert_setting(stream: rd.Stream, B: float) -> rd.bounds.Setting:
    """Return the setting of a stream with x = 1, where the minimizer of a round is its y."""
    nature = stream.uncorrupted().y
    return rd.bounds.Setting(
        rounds=len(stream),
        k=stream.corrupted,
        m=2.0,
        L=2.0,
        B=B,
        path=float(np.abs(np.diff(nature)).sum()),
        comparator=float(np.abs(nature).max()),
        deviation=float(np.abs(stream.y - nature).max()),
    )


def play_experts(learner: rd.LearnWithExperts, stream: rd.Stream) -> np.ndarray:
    """Play each distinct expert alone and return its losses: shape (experts, rounds)."""
    return np.array([rd.play(learner.alone(expert), stream).losses for expert in learner.experts])
