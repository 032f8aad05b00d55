r"""Algorithm 3: online invex optimization beyond the Euclidean case.

In each round the algorithm plays θ, observes an invex loss, and makes a first-order update. `play` runs that loop and
computes the theorem's bound. An instance is a space, a loss over it, and an update.

>>> import numpy as np
>>> from redescend import invex
>>> space, generator = invex.SPD(5), np.random.default_rng(0)
>>> mean = invex.RobustFrechetMean(space)
>>> for covariance in (space.random(generator, 0.1) for _ in range(100)):
...     played = mean.update(covariance)
>>> space.distance(mean.theta, space.origin) < 0.1
True
"""

from redescend.invex.frechet import FrechetMean, RobustFrechetMean, frechet_mean
from redescend.invex.game import InvexTrace, Slack, check_assumptions, play
from redescend.invex.losses import (
    InvexLoss,
    OperatorScaling,
    Pseudoconvex,
    SquaredDistance,
    ValueAndGradient,
    crease,
    quartic,
)
from redescend.invex.manifold_descent import FirstOrder, Flat, ManifoldDescent, Move
from redescend.invex.manifolds import SPD, Hyperboloid
from redescend.invex.space import Euclidean, GeodesicBall, Space

__all__ = [
    "SPD",
    "Euclidean",
    "FirstOrder",
    "Flat",
    "FrechetMean",
    "GeodesicBall",
    "Hyperboloid",
    "InvexLoss",
    "InvexTrace",
    "ManifoldDescent",
    "Move",
    "OperatorScaling",
    "Pseudoconvex",
    "RobustFrechetMean",
    "Slack",
    "Space",
    "SquaredDistance",
    "ValueAndGradient",
    "check_assumptions",
    "crease",
    "frechet_mean",
    "play",
    "quartic",
]
