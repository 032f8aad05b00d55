"""The algorithms in their slowest and most obvious form: vectors, lists and bisection, straight from their statements.

Nothing here calls a formula of the package: a component is only asked for its settings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from redescend import domains, gates, losses, steps, transforms
from tests.catalogue import STATED

Vector = np.ndarray


def loss_pair(loss: losses.Loss) -> tuple[Callable[..., float], Callable[..., Vector]]:
    """f(θ; x, y) and a subgradient of it."""
    of_prediction, slope = STATED[type(loss)]
    l2 = loss.l2
    return (
        lambda theta, x, y: of_prediction(loss, x @ theta, y) + l2 / 2 * np.sum(theta**2),
        lambda theta, x, y: slope(loss, x @ theta, y) * x + l2 * theta,
    )


def transform_weight(transform: transforms.Transform) -> Callable[[float], float]:
    """h'(f), the derivative of the stated h, scaled to 1 at f = 0 for all but LEARN."""
    match transform:
        case transforms.Identity():
            return lambda f: 1.0
        case transforms.Learn(a=a, b=b):
            return lambda f: np.exp(-f / a) / (np.exp(-f / a) + b)
        case transforms.Huber(c=c):
            return lambda f: 1.0 if f <= c**2 else c / np.sqrt(f)
        case transforms.Cauchy(c=c):
            return lambda f: 1 / (1 + f / (2 * c**2))
        case transforms.Welsch(c=c):
            return lambda f: np.exp(-f / (2 * c**2))
        case transforms.GemanMcClure(c=c):
            return lambda f: 16 / (4 + f / c**2) ** 2
        case transforms.Tukey(c=c):
            return lambda f: (1 - f / c**2) ** 2 if f < c**2 else 0.0
        case transforms.Barron(alpha=alpha, c=c) if alpha == -np.inf:
            return lambda f: np.exp(-f / (2 * c**2))
        case transforms.Barron(alpha=alpha, c=c) if alpha == 2:
            return lambda f: 1.0
        case transforms.Barron(alpha=alpha, c=c):
            # 1 + z/β loses the digits of a small z, and a power of −10⁶ would show it
            return lambda f: float((np.longdouble(f) / (c**2 * (2 - alpha)) + 1) ** (alpha / 2 - 1))
    raise LookupError(transform)


def weigher(gate: gates.Gate) -> Callable[[int, float, float], float]:
    """The weight of round t = 1, 2, … with loss f and gradient length g; it remembers what it was shown."""
    match gate:
        case gates.Always():
            return lambda t, f, g: 1.0
        case gates.Robust(transform=transform):
            weight = transform_weight(transform)
            return lambda t, f, g: weight(f)
        case gates.Oracle(clean=clean):
            return lambda t, f, g: 1.0 if clean[t - 1] else 0.0
        case gates.TopK(k=k):
            largest = [0.0] * (k + 1)

            def top_k(t: int, f: float, g: float) -> float:
                if g > min(largest):
                    largest[largest.index(min(largest))] = g
                return 0.0 if g > 2 * min(largest) else 1.0

            return top_k
        case gates.Clip(quantile=q, window=window):
            lengths: list[float] = []

            def clip(t: int, f: float, g: float) -> float:
                before = lengths[-window:]
                lengths.append(g)
                return min(1.0, np.quantile(before, q, method="inverted_cdf") / g) if before and g > 0 else 1.0

            return clip
    raise LookupError(gate)


def step_size(step: steps.Step) -> Callable[[int, float, float], float]:
    """α_t, from t, Σ_{s≤t} w_s²‖∇f_s‖², and ‖∇f_t‖."""
    match step:
        case steps.Constant(alpha=alpha):
            return lambda t, total, g: alpha
        case steps.Horizon(rounds=rounds, scale=scale):
            return lambda t, total, g: scale / rounds**0.5
        case steps.Anytime(scale=scale):
            return lambda t, total, g: scale / t**0.5
        case steps.StronglyConvex(m=m):
            return lambda t, total, g: 1 / (m * t)
        case steps.AdaptiveNorm(scale=scale):
            return lambda t, total, g: scale / total**0.5 if total > 0 else 0.0
        case steps.Theorem(rounds=rounds, radius=D, path=V, psi=psi):
            return lambda t, total, g: ((4 * D**2 + 6 * D * V) / (psi**2 * rounds)) ** 0.5
        case steps.Normalised(step=inner):
            size = step_size(inner)
            return lambda t, total, g: size(t, total, g) / g if g > 0 else 0.0
    raise LookupError(step)


def meeting_point(excess: Callable[[float], float]) -> float:
    """Where a function that never rises, of a number of any sign, crosses 0: by doubling, then halving."""
    low, high = 0.0, 1.0
    while excess(high) > 0:
        high *= 2
    while excess(low) < 0:
        low = 2 * low - 1
    for _ in range(70):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return (low + high) / 2


def pulled(domain: domains.Domain, theta: Vector, mu: float) -> Vector:
    """argmin ½‖z − θ‖² + μ·(what the set limits), up to a shift of μ; the projection meets the limit."""
    match domain:
        case domains.Ball():
            return theta / (1 + mu)
        case domains.L1Ball():
            return np.sign(theta) * np.maximum(np.abs(theta) - mu, 0)
        case domains.Simplex(total=total):
            return np.maximum(theta - np.max(theta) + total - mu, 0)
    raise LookupError(domain)


def excess(domain: domains.Domain, z: Vector) -> float:
    """By how much a point is beyond the limit of the set."""
    match domain:
        case domains.Ball(radius=radius):
            return float(np.sqrt(np.sum(z**2)) - radius)
        case domains.L1Ball(radius=radius):
            return float(np.sum(np.abs(z)) - radius)
        case domains.Simplex(total=total):
            return float(np.sum(z) - total)
    raise LookupError(domain)


def project(domain: domains.Domain, theta: Vector) -> Vector:
    """The nearest point of the set, or of an intersection of at most two limited sets and boxes around 0.

    By bisection on the multiplier of the limit. If the nearest point of one part is in the others, it is the nearest
    of all; if not, both limits are met, by a bisection within a bisection. The L1 ball goes inside: it shifts, and
    the ball then scales.
    """
    if isinstance(domain, domains.Ball):
        return theta * min(1.0, domain.radius / max(np.sqrt(np.sum(theta**2)), 1e-300))
    parts = domain.parts if isinstance(domain, domains.Intersection) else (domain,)
    boxes = [part for part in parts if isinstance(part, domains.Box)]
    limits = [part for part in parts if not isinstance(part, domains.Box | domains.Reals)]

    def cut(z: Vector) -> Vector:
        for box in boxes:
            z = np.clip(z, box.low, box.high)
        return z

    def on_limit(limit: domains.Domain, through: Callable[[Vector], Vector]) -> Vector:
        return through(pulled(limit, theta, meeting_point(lambda mu: excess(limit, through(pulled(limit, theta, mu))))))

    equal = [limit for limit in limits if isinstance(limit, domains.Simplex)]
    if not equal and all(excess(limit, cut(theta)) <= 0 for limit in limits):
        return cut(theta)
    for limit in [limit for limit in limits if limit in equal or excess(limit, cut(theta)) > 0]:
        z = on_limit(limit, cut)
        if all(other is limit or excess(other, z) <= 0 for other in limits):
            return z
    ball, l1_ball = sorted(limits, key=lambda limit: isinstance(limit, domains.L1Ball))

    def scaled(z: Vector) -> Vector:
        if excess(ball, cut(z)) <= 0:
            return cut(z)
        return cut(pulled(ball, z, meeting_point(lambda mu: excess(ball, cut(pulled(ball, z, mu))))))

    return on_limit(l1_ball, scaled)


@dataclass(frozen=True)
class Game:
    """What was played, lost and believed, and where it ended."""

    actions: Vector
    losses: Vector
    weights: Vector
    theta: Vector


def play(
    X: Vector,
    y: Vector,
    *,
    loss: losses.Loss,
    gate: gates.Gate,
    step: steps.Step,
    domain: domains.Domain,
    start: Any = None,
) -> Game:
    """θ ← Π(θ − α_t·w_t·∇f_t(θ)), in double precision."""
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    value, gradient = loss_pair(loss)
    weigh, size = weigher(gate), step_size(step)
    theta = project(domain, np.zeros(X.shape[1])) if start is None else np.array(start, dtype=float)
    total = 0.0
    actions, lost, weights = [], [], []
    for t, (x, target) in enumerate(zip(X, y, strict=True), start=1):
        f, g = value(theta, x, target), gradient(theta, x, target)
        length = float(np.sqrt(np.sum(g**2)))
        w = weigh(t, f, length)
        total += (w * length) ** 2
        actions.append(theta)
        lost.append(f)
        weights.append(w)
        theta = project(domain, theta - size(t, total, length) * w * g)
    return Game(np.array(actions), np.array(lost), np.array(weights), theta)


def records(rounds: int, dim: int, seed: int, labels: bool = False) -> tuple[Vector, Vector]:
    """Rows of about unit length, whatever their number of features, and targets of which one in ten is wrong by far."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((rounds, dim)) / np.sqrt(dim)
    y = X @ random.uniform(-2.0, 2.0, dim) + 0.1 * random.standard_normal(rounds)
    wrong = random.random(rounds) < 0.1
    if labels:
        return X, np.where((y > 0) ^ wrong, 1.0, -1.0)
    return X, np.where(wrong, random.uniform(-10.0, 10.0, rounds), y)


def records_for(loss: losses.Loss, rounds: int, dim: int, seed: int) -> tuple[Vector, Vector]:
    return records(rounds, dim, seed, labels=getattr(loss, "margin", False))


def same_state(left: dict[str, Any], right: dict[str, Any]) -> bool:
    """Whether two states are the same to the last bit and type."""
    return left.keys() == right.keys() and all(
        np.array_equal(left[key], right[key]) and np.asarray(left[key]).dtype == np.asarray(right[key]).dtype
        for key in left
    )
