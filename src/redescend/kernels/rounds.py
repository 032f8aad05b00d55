"""One round in scalars: everything that needs ⟨x, θ⟩, ‖x‖² and ‖θ‖² but not the vectors.

The sentence θ ← Π(θ − α·w·∇f) is θ ← keep·θ − move·x, because ∇f = slope·x + l2·θ.
"""

from __future__ import annotations

import numpy as np

from redescend import gates, losses, steps
from redescend.kernels import layout
from redescend.kernels.compiler import inlined
from redescend.kernels.layout import Settings
from redescend.numeric import LARGEST, Array


@inlined
def settings_of(numbers: Array) -> Settings:
    return Settings(
        int(numbers[layout.LOSS]),
        numbers[layout.LOSS_C],
        numbers[layout.L2],
        numbers[layout.MARGIN] != 0.0,
        int(numbers[layout.GATE]),
        int(numbers[layout.TRANSFORM]),
        numbers[layout.GATE_C],
        numbers[layout.GATE_B],
        int(numbers[layout.STEP]),
        numbers[layout.SCALE],
        numbers[layout.NORMALISED],
        numbers[layout.RADIUS2],
    )


@inlined
def memory_of(numbers: Array) -> Array:
    return numbers[int(numbers[layout.MEMORY]) :]


@inlined
def playable(s: Settings, p: float, xx: float, target: float, tt: float, total: float) -> bool:
    """Whether everything is finite, and the label is one if the loss needs one."""
    return abs(p) + xx + abs(target) + tt + total < np.inf and (not s.margin or target * target == 1.0)


@inlined
def decide(
    s: Settings, memory: Array, t: int, total: float, p: float, xx: float, tt: float, y: float
) -> tuple[float, float, float, float, float, float]:
    """Loss, weight, gradient length, Σw²‖∇f‖², keep and move of round t (from 0). Changes nothing."""
    f = min(losses.value(s.loss, s.loss_c, p, y) + 0.5 * s.l2 * tt, LARGEST)
    slope = losses.slope(s.loss, s.loss_c, p, y)
    gg = max(slope * slope * xx + 2.0 * slope * s.l2 * p + s.l2 * s.l2 * tt, 0.0)
    length = np.sqrt(gg)
    weight = gates.believe(s.gate, s.transform, s.gate_c, s.gate_b, memory, t, f, length)
    total = total + weight * weight * gg
    rate = steps.size(s.step, s.scale, s.normalised, t + 1.0, total, length) * weight
    return f, weight, length, total, 1.0 - rate * s.l2, rate * slope
