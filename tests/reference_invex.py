"""Hyperbolic space and the theorem of Algorithm 3, written from their definitions: slow and obvious."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np

DIGITS = 60


def hyperbolic_distance(p, q) -> float:
    """arccosh(−⟨p, q⟩_L) of the free coordinates, with sixty digits."""
    with localcontext() as context:
        context.prec = DIGITS
        x, y = ([Decimal(float(value)) for value in point[1:]] for point in (p, q))
        first, second = ((1 + sum(v * v for v in point)).sqrt() for point in (x, y))
        cosh = first * second - sum(u * v for u, v in zip(x, y, strict=True))
        return float((cosh + (cosh * cosh - 1).sqrt()).ln())


def hyperbolic_exp(p, u) -> np.ndarray:
    """cosh‖u‖·p + sinh‖u‖·u/‖u‖, with sixty digits; u must not be 0."""
    with localcontext() as context:
        context.prec = DIGITS
        x, v = ([Decimal(float(value)) for value in row[1:]] for row in (p, u))
        height = (1 + sum(value * value for value in x)).sqrt()
        up = sum(a * b for a, b in zip(x, v, strict=True)) / height
        length = (sum(value * value for value in v) - up * up).sqrt()
        cosh, sinh = (length.exp() + (-length).exp()) / 2, (length.exp() - (-length).exp()) / 2
        free = [cosh * a + sinh / length * b for a, b in zip(x, v, strict=True)]
        return np.array([float((1 + sum(value * value for value in free)).sqrt()), *map(float, free)])


def poincare(p) -> np.ndarray:
    """The isometry to the ball: the free coordinates over 1 + x₀."""
    return p[1:] / (1.0 + p[0])


def theorem(distances, path, gradients, steps, diameter, gamma1, gamma2, gamma3, gamma4) -> float:
    total = 0.0
    for t in range(len(path)):
        total += gamma4[t] * (distances[t] ** 2 - distances[t + 1] ** 2) / (2 * steps[t])
        total += 0.5 * steps[t] * gamma4[t] * gamma3[t] * gradients[t] ** 2
        total += diameter * gamma4[t] * (gamma1[t] + 2 * gamma2[t]) * path[t] / (2 * steps[t])
    return total


def running_mean(space, records, weights):
    """θ moves w/Σw of the way to each record, by exp and log."""
    theta, total, played = space.origin, 0.0, []
    for record, weight in zip(records, weights, strict=True):
        played.append(theta)
        total += weight
        if weight:
            theta = space.exp(theta, weight / total * space.log(theta, record))
    return [*played, theta]
