"""One round in scalars: everything that needs ⟨x, θ⟩, ‖x‖² and ‖θ‖² but not the vectors.

The update θ ← Π(θ − α·w·∇f) is θ ← Π(keep·θ − move·x), because ∇f = slope·x + l2·θ.
"""

from __future__ import annotations

import numpy as np

from redescend import gates, steps, transforms
from redescend.kernels import layout
from redescend.kernels.compiler import compiled, inlined
from redescend.kernels.layout import DescentSettings
from redescend.losses import linear
from redescend.numeric import LARGEST, Array

UNDERFLOW, CANCELLED = 1e-280, 1e-4


@inlined
def read_settings(config: Array) -> DescentSettings:
    """Read the settings from the array of a learner."""
    adaptive = config[layout.NORMALISED] != 0.0 or config[layout.STEP] == steps.PER_TRAVELLED
    needs_length = adaptive or gates.needs_length(int(config[layout.GATE]))
    return DescentSettings(
        int(config[layout.LOSS]),
        config[layout.LOSS_C],
        config[layout.L2],
        config[layout.MARGIN] != 0.0,
        int(config[layout.GATE]),
        int(config[layout.TRANSFORM]),
        config[layout.GATE_C],
        config[layout.GATE_B],
        int(config[layout.STEP]),
        config[layout.SCALE],
        config[layout.NORMALISED],
        config[layout.RADIUS2],
        needs_length,
    )


@inlined
def view_memory(config: Array) -> Array:
    """View the gate's memory in the array of a learner."""
    return config[int(config[layout.MEMORY]) :]


@inlined
def is_playable(s: DescentSettings, p: float, xx: float, target: float, length: float, move: float, tt: float) -> bool:
    """Check that everything is finite, and that the label is −1 or 1 if the loss needs one."""
    return abs(p) + xx + abs(target) + length + abs(move) + tt < np.inf and (not s.margin or target * target == 1.0)


@inlined
def penalised_loss(kind: int, c: float, l2: float, p: float, tt: float, y: float) -> float:
    """φ(p, y) + (l2/2)·‖θ‖², at most the largest float."""
    return min(linear.value(kind, c, p, y) + 0.5 * l2 * tt, LARGEST)


@inlined
def decide(
    s: DescentSettings, memory: Array, t: int, travelled: float, p: float, xx: float, tt: float, y: float
) -> tuple[float, float, float, float, float, float]:
    """Compute loss, weight, gradient length, √Σw²‖∇f‖², keep and move of round t (from 0), changing nothing.

    The length is NaN where it is needed but its square has lost its digits: such a round is not playable.
    """
    f = penalised_loss(s.loss, s.loss_c, s.l2, p, tt, y)
    slope = linear.slope(s.loss, s.loss_c, p, y)
    parts = slope * slope * xx + s.l2 * s.l2 * tt
    gg = max(parts + 2.0 * slope * s.l2 * p, 0.0)
    length = np.sqrt(gg)
    if s.needs_length and gg < UNDERFLOW + CANCELLED * parts and (slope != 0.0 or s.l2 * tt > 0.0):
        length = np.nan
    weight = gates.weigh(s.gate, s.transform, s.gate_c, s.gate_b, memory, t, f, length)
    if s.step == steps.PER_TRAVELLED:
        travelled = np.hypot(travelled, weight * length)
    rate = steps.size(s.step, s.scale, s.normalised, t + 1.0, travelled, length) * weight
    return f, weight, length, travelled, 1.0 - rate * s.l2, rate * slope


@compiled
def robust_slope(loss: int, setting: float, transform: int, c: float, b: float, p: float, y: float) -> float:
    """The derivative h'(φ)·φ' of a robust loss in the prediction p; NumPy takes ten times as long for one number."""
    f = penalised_loss(loss, setting, 0.0, p, 0.0, y)
    return transforms.weight(transform, c, b, f) * min(max(linear.slope(loss, setting, p, y), -LARGEST), LARGEST)
