r"""Adversaries: which rounds are corrupted, and how.

The corrupted stream keeps the original records, so that regret can be measured against them.

>>> from redescend import streams
>>> UniformResponse(0, 1).corrupt(streams.ridge(100, seed=0, dim=3), k=10, seed=1, when="burst")
Stream(100 rounds, 3 features, 10 corrupted)
"""

from redescend.adversaries.adaptive import Adaptive
from redescend.adversaries.oblivious import (
    Adversary,
    LabelFlip,
    ReplaceFeatures,
    ReplaceRecord,
    ReplaceResponse,
    ScaleFeatures,
    ScaleResponse,
    ShiftResponse,
    UniformResponse,
    chosen_rounds,
)

__all__ = [
    "Adaptive",
    "Adversary",
    "LabelFlip",
    "ReplaceFeatures",
    "ReplaceRecord",
    "ReplaceResponse",
    "ScaleFeatures",
    "ScaleResponse",
    "ShiftResponse",
    "UniformResponse",
    "chosen_rounds",
]
