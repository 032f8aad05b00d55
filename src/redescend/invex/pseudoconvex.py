"""Two weakly pseudo-convex losses of the plane, by their names."""

from __future__ import annotations

import numpy as np

from redescend.invex.euclidean import Euclidean
from redescend.invex.losses import Pseudoconvex
from redescend.numeric import Array
from redescend.parameters import POSITIVE, check


def quartic(radius: float) -> Pseudoconvex:
    """F = (x₁² + x₂²)² + 10·(x₁² − x₂²)², homogeneous of degree 4 and not convex; for θ and c within `radius` of 0.

    Along a circle of radius r the slope is largest on the axes, 44·r³.
    """
    reach = 2.0 * check("quartic", "radius", radius, POSITIVE)
    return Pseudoconvex(Euclidean(2), _quartic, _quartic_gradient, degree=4.0, steepest=44.0 * reach**3)


def crease(radius: float) -> Pseudoconvex:
    """F = x₁² + |x₂|^{3/2}, of degree 3/2 at least, and not smooth at x₂ = 0; for θ and c within `radius` of 0.

    Along a circle of radius r the slope is at most √(4r² + 81/256).
    """
    reach = 2.0 * check("crease", "radius", radius, POSITIVE)
    steepest = float(np.sqrt(4.0 * reach**2 + 81.0 / 256.0))
    return Pseudoconvex(Euclidean(2), _crease, _crease_gradient, degree=1.5, steepest=steepest)


def _quartic(x: Array) -> float:
    return float((x @ x) ** 2 + 10.0 * (x[0] ** 2 - x[1] ** 2) ** 2)


def _quartic_gradient(x: Array) -> Array:
    return 4.0 * (x @ x) * x + 40.0 * (x[0] ** 2 - x[1] ** 2) * np.array([x[0], -x[1]])


def _crease(x: Array) -> float:
    return float(x[0] ** 2 + abs(x[1]) ** 1.5)


def _crease_gradient(x: Array) -> Array:
    return np.array([2.0 * x[0], 1.5 * np.sign(x[1]) * np.sqrt(abs(x[1]))])
