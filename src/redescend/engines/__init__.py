"""Linear models of several outputs that learn from tables row by row: what estimators and streams are made of."""

from redescend.engines.config import ModelConfig
from redescend.engines.engine import DescentEngine, Engine, Rounds
from redescend.engines.selftuning import SelfTuningEngine
from redescend.kernels.tabular.standardize import AS_THEY_ARE, CENTRED, SCALED, WITH_MISSING

__all__ = [
    "AS_THEY_ARE",
    "CENTRED",
    "SCALED",
    "WITH_MISSING",
    "DescentEngine",
    "Engine",
    "ModelConfig",
    "Rounds",
    "SelfTuningEngine",
]
