"""Engines: models of several outputs that learn from tables row by row, for estimators and streams."""

from redescend.engines.config import ModelConfig
from redescend.engines.descent import DescentEngine
from redescend.engines.engine import Engine, RowOutcomes, Shape
from redescend.engines.nonlinear import NonlinearEngine
from redescend.engines.selftuning import SelfTuningEngine

__all__ = ["DescentEngine", "Engine", "ModelConfig", "NonlinearEngine", "RowOutcomes", "SelfTuningEngine", "Shape"]
