"""Linear models of several outputs that learn from tables row by row: what estimators and streams are made of."""

from redescend.engines.config import ModelConfig
from redescend.engines.engine import DescentEngine, Engine, RowOutcomes, read_shape
from redescend.engines.selftuning import SelfTuningEngine
from redescend.kernels.tabular.standardize import CENTRED, SCALED, UNSCALED, WITH_MISSING

__all__ = [
    "CENTRED",
    "SCALED",
    "UNSCALED",
    "WITH_MISSING",
    "DescentEngine",
    "Engine",
    "ModelConfig",
    "RowOutcomes",
    "SelfTuningEngine",
    "read_shape",
]
