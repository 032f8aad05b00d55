r"""Who spoils a stream: what is corrupted, and when.

An adversary says what a corrupted record becomes; ``when`` says which rounds it gets. The result remembers the
records as they were, so that regret can be counted against nature.

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
)
from redescend.adversaries.rounds import chosen_rounds

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
