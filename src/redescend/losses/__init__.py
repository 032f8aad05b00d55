"""Convex losses: those of a linear prediction, which are compiled, and `Custom` for any other, played in Python."""

from redescend.losses.linear import Absolute, EpsilonInsensitive, Hinge, LinearLoss, Logistic, Pinball, Squared
from redescend.losses.loss import Custom, Loss

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
