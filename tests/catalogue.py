"""One or more instances of every loss, transform, domain, step and gate: what conformance tests run over.

A new public class without a row here fails `tests/test_parameters.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

import redescend as rd
from redescend import domains, gates, losses, steps, transforms

DIM = 3
"""The number of features that the domains with bounds of their own are made for."""


def quartic_value(theta: Any, x: Any, y: float) -> float:
    return float((x @ theta - y) ** 4 + 0.5 * theta @ theta)


def quartic_gradient(theta: Any, x: Any, y: float) -> Any:
    return 4.0 * (x @ theta - y) ** 3 * x + theta


# φ(p, y) and its slope, as the docstring of the loss states them: written a second time, independently of the package.
STATED: dict[type, tuple[Any, Any]] = {
    losses.Squared: (lambda loss, p, y: (y - p) ** 2, lambda loss, p, y: 2 * (p - y)),
    losses.Hinge: (lambda loss, p, y: max(0.0, 1 - y * p), lambda loss, p, y: -y if y * p < 1 else 0.0),
    losses.Logistic: (lambda loss, p, y: np.logaddexp(0.0, -y * p), lambda loss, p, y: -y / (1 + np.exp(y * p))),
    losses.Absolute: (lambda loss, p, y: abs(y - p), lambda loss, p, y: np.sign(p - y)),
    losses.EpsilonInsensitive: (
        lambda loss, p, y: max(0.0, abs(y - p) - loss.epsilon),
        lambda loss, p, y: np.sign(p - y) if abs(y - p) > loss.epsilon else 0.0,
    ),
    losses.Pinball: (
        lambda loss, p, y: loss.quantile * (y - p) if y >= p else (1 - loss.quantile) * (p - y),
        lambda loss, p, y: -loss.quantile if y > p else 1 - loss.quantile if y < p else 0.0,
    ),
}

LINEAR_LOSSES = [
    kind(*settings, l2=l2)
    for kind, *settings in [
        (losses.Squared,),
        (losses.Hinge,),
        (losses.Logistic,),
        (losses.Absolute,),
        (losses.EpsilonInsensitive, 0.5),
        (losses.EpsilonInsensitive, 0.0),
        (losses.Pinball, 0.5),
        (losses.Pinball, 0.9),
    ]
    for l2 in (0.0, 1e-4, 2.5)
]

LOSSES = [*LINEAR_LOSSES, losses.Custom(quartic_value, quartic_gradient)]

TRANSFORMS = [
    transforms.Identity(),
    transforms.Learn(a=10.0, b=10.0),
    transforms.Learn(a=0.3, b=1e-3),
    transforms.Learn(a=1e4, b=10.0),
    *[
        kind(c)
        for kind in (transforms.Huber, transforms.Cauchy, transforms.Welsch, transforms.GemanMcClure, transforms.Tukey)
        for c in (0.1, 1.0, 7.0)
    ],
    *[transforms.Barron(alpha, c=1.5) for alpha in (-np.inf, -1e6, -4.0, -2.0, -0.5, 0.0, 0.5, 1.0, 1.9, 2.0)],
]

PLAIN_DOMAINS = [
    domains.Reals(),
    domains.Ball(0.7),
    domains.Box(-0.5, 0.8),
    domains.Box([-1.0, 0.1, -np.inf], [0.2, 0.1, 3.0]),
    domains.L1Ball(0.9),
    domains.Simplex(),
    domains.Simplex(total=2.5),
]

INTERSECTIONS = [
    domains.Intersection(domains.Ball(1.0), domains.Box(-0.3, 0.9)),
    domains.Intersection(domains.L1Ball(1.2), domains.Ball(1.0)),
    domains.Intersection(domains.Simplex(), domains.Box(0.1, 0.6)),
    domains.Intersection(domains.Ball(1.5), domains.L1Ball(2.0), domains.Box(0.0, 1.2)),
]

DOMAINS = [*PLAIN_DOMAINS, *INTERSECTIONS]

PLAIN_STEPS = [
    steps.Constant(0.1),
    steps.Horizon(rounds=400, scale=2.0),
    steps.Anytime(scale=0.5),
    steps.StronglyConvex(m=0.25),
    steps.AdaptiveNorm(scale=0.5),
    steps.Theorem(rounds=100, radius=1.0, path=2.0, psi=3.0),
]

STEPS = [*PLAIN_STEPS, *[steps.Normalised(step) for step in PLAIN_STEPS]]

GATES = [
    gates.Always(),
    *[gates.Robust(transform) for transform in TRANSFORMS],
    *[gates.TopK(k) for k in (0, 1, 2, 5, 300)],
    gates.Oracle(np.random.default_rng(0).random(200) < 0.8),
    gates.Clip(),
    gates.Clip(quantile=0.9, window=7),
    gates.Clip(quantile=1.0, window=1),
]

_STEP = {"step": steps.Anytime(0.3)}
LEARNERS: dict[str, Callable[[losses.Loss], rd.Learner]] = {
    "Descent": lambda loss: rd.Descent(DIM, loss=loss, gate=gates.Clip(), domain=domains.Box(-2.0, 2.0), **_STEP),
    "OGD": lambda loss: rd.OGD(DIM, loss=loss, **_STEP),
    "Learn": lambda loss: rd.Learn(DIM, loss=loss, a=1.0, b=0.1, domain=domains.Ball(2.0), **_STEP),
    "Robust": lambda loss: rd.Robust(DIM, loss=loss, transform=transforms.Huber(1.0), **_STEP),
    "TopK": lambda loss: rd.TopK(DIM, loss=loss, k=5, **_STEP),
    "Oracle": lambda loss: rd.Oracle(DIM, loss=loss, clean=np.arange(200) % 3 > 0, **_STEP),
    "NormalisedOGD": lambda loss: rd.NormalisedOGD(DIM, loss=loss, **_STEP),
    "ClippedOGD": lambda loss: rd.ClippedOGD(DIM, loss=loss, **_STEP),
    "LearnWithExperts": lambda loss: rd.LearnWithExperts(DIM, loss=loss, a=1.0, b=0.1, rounds=200),
    "LearnWithExperts robust": lambda loss: rd.LearnWithExperts(DIM, loss=loss, a=1.0, b=0.1, meta="robust"),
    "Ader": lambda loss: rd.Ader(DIM, loss=loss, domain=domains.Ball(1.0), rounds=200, gradient=30.0, span=30.0),
    "JacobsenCutkosky": lambda loss: rd.JacobsenCutkosky(DIM, loss=loss, rounds=200, gradient=30.0, smoothness=30.0),
    "SelfTuning": lambda loss: rd.SelfTuning(DIM, loss=loss),
    "SelfTuning order 2": lambda loss: rd.SelfTuning(DIM, loss=loss, order=2),
}
"""A fresh learner of every kind for a loss, for at least 200 rounds."""

CATALOGUE: dict[ModuleType, list[Any]] = {
    losses: LOSSES,
    transforms: TRANSFORMS,
    domains: DOMAINS,
    steps: STEPS,
    gates: GATES,
}

BASES = {
    losses: losses.Loss,
    transforms: transforms.Transform,
    domains: domains.Domain,
    steps: steps.Step,
    gates: gates.Gate,
}


def public_classes(module: ModuleType) -> list[type]:
    """Every class of the module that a user can make an instance of."""
    base = BASES[module]
    abstract = (base, losses.LinearLoss, transforms.ScaledTransform, domains.NormBall)
    return [
        member
        for name, member in vars(module).items()
        if inspect.isclass(member)
        and issubclass(member, base)
        and member.__module__.startswith(module.__name__)
        and member not in abstract
        and not name.startswith("_")
    ]


def bounded(domain: domains.Domain) -> bool:
    """Whether the domain is a bounded set of DIM features."""
    return all(np.abs(domain.project(np.full(DIM, far))).max() < 1e3 for far in (-1e6, 1e6))


def name_of(component: Any) -> str:
    """What a test is called by."""
    return repr(component) if not isinstance(component, losses.Custom) else "Custom"


def target(loss: Any, random: np.random.Generator) -> float:
    labels = isinstance(loss, losses.LinearLoss) and loss.margin
    return float(random.choice([-1.0, 1.0])) if labels else float(3 * random.normal())


def record(loss: Any, random: np.random.Generator) -> tuple[np.ndarray, float]:
    return random.normal(size=DIM), target(loss, random)
