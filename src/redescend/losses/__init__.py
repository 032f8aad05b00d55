"""Convex losses: of a linear prediction, compiled; and any other, in Python."""

from redescend.losses.base import Loss
from redescend.losses.custom import Custom
from redescend.losses.linear import (
    Absolute,
    EpsilonInsensitive,
    Hinge,
    LinearLoss,
    Logistic,
    Pinball,
    Squared,
)

__all__ = [
    "Absolute",
    "Custom",
    "EpsilonInsensitive",
    "Hinge",
    "LinearLoss",
    "Logistic",
    "Loss",
    "Pinball",
    "Squared",
]
