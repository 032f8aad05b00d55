"""Small games drawn at random: streams, losses, domains, adversaries and learners of every kind that descends."""

from __future__ import annotations

from typing import Any

import numpy as np

import redescend as rd
from redescend import adversaries, domains, losses, steps, transforms


def loss_of(rng: np.random.Generator, l2: float) -> losses.LinearLoss:
    kinds: list[Any] = [
        losses.Squared(l2=l2),
        losses.Hinge(l2=l2),
        losses.Logistic(l2=l2),
        losses.Absolute(l2=l2),
        losses.EpsilonInsensitive(0.3, l2=l2),
        losses.Pinball(0.8, l2=l2),
    ]
    return kinds[rng.integers(len(kinds))]


def stream_of(rng: np.random.Generator, loss: losses.LinearLoss, rounds: int, dim: int) -> rd.Stream:
    """Records on any scale, around a truth that may move; up to half of them corrupted."""
    X = rng.normal(size=(rounds, dim)) * 10.0 ** rng.uniform(-1, 1)
    truth = np.cumsum(rng.normal(size=(rounds, dim)) * 10.0 ** rng.uniform(-3, 0), axis=0) + rng.normal(size=dim)
    y = np.einsum("ij,ij->i", X, truth) + 0.1 * rng.normal(size=rounds)
    if loss.margin:
        y = np.where(y > 0, 1.0, -1.0)
    stream = rd.Stream(X, y, truth=truth)
    k, when = int(rng.integers(0, rounds // 2 + 1)), ("random", "first", "last", "burst")[rng.integers(4)]
    size = 10.0 ** rng.uniform(-1, 3)
    tampering: list[Any] = [adversaries.ScaleFeatures(size), adversaries.ReplaceRecord(size)]
    tampering += [adversaries.LabelFlip()] if loss.margin else [adversaries.ShiftResponse(size)]
    return tampering[rng.integers(len(tampering))].corrupt(stream, k, seed=int(rng.integers(1 << 31)), when=when)


def domain_of(rng: np.random.Generator, dim: int) -> domains.Domain:
    size = 10.0 ** rng.uniform(-1, 1)
    kinds = [domains.Reals(), domains.Ball(size), domains.Box(-size, 0.5 * size), domains.L1Ball(size)]
    if dim > 1:
        kinds.append(domains.Simplex(size))
    return kinds[rng.choice(len(kinds), p=np.array([4, 4, *[1] * (len(kinds) - 2)]) / (6 + len(kinds)))]


def step_of(rng: np.random.Generator) -> steps.Step:
    scale = 10.0 ** rng.uniform(-3, 0)
    kinds: list[steps.Step] = [
        steps.Constant(scale),
        steps.Anytime(scale),
        steps.AdaptiveNorm(scale),
        steps.StronglyConvex(1.0 / scale),
        steps.Normalised(steps.Constant(scale)),
    ]
    return kinds[rng.integers(len(kinds))]


def learner_of(
    rng: np.random.Generator, loss: losses.LinearLoss, stream: rd.Stream, domain: domains.Domain
) -> rd.Descent:
    """Any gate, any step."""
    common: dict[str, Any] = {"loss": loss, "step": step_of(rng), "domain": domain}
    a, b, dim = 10.0 ** rng.uniform(-1, 2), 10.0 ** rng.uniform(-2, 1), stream.dim
    kinds: list[Any] = [
        lambda: rd.OGD(dim, **common),
        lambda: rd.Learn(dim, a=a, b=b, **common),
        lambda: rd.TopK(dim, k=stream.corrupted, **common),
        lambda: rd.Robust(dim, transform=transforms.Cauchy(a), **common),
        lambda: rd.Oracle(dim, clean=stream.clean, **common),
        lambda: rd.ClippedOGD(dim, **common),
    ]
    return kinds[rng.integers(len(kinds))]()
