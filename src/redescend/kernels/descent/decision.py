"""One round in scalars: everything that needs ⟨x, θ⟩, ‖x‖² and ‖θ‖² but not the vectors.

The sentence θ ← Π(θ − α·w·∇f) is θ ← keep·θ − move·x, because ∇f = slope·x + l2·θ.
"""

from __future__ import annotations

import numpy as np

from redescend import gates, steps
from redescend.kernels import layout
from redescend.kernels.compiler import inlined
from redescend.kernels.layout import Settings
from redescend.losses import linear
from redescend.numeric import LARGEST, Array

UNDERFLOW, CANCELLED = 1e-280, 1e-4


@inlined
def settings_of(numbers: Array) -> Settings:
    adaptive = numbers[layout.NORMALISED] != 0.0 or numbers[layout.STEP] == steps.PER_TRAVELLED
    needs_length = adaptive or gates.needs_length(int(numbers[layout.GATE]))
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
        needs_length,
    )


@inlined
def memory_of(numbers: Array) -> Array:
    return numbers[int(numbers[layout.MEMORY]) :]


@inlined
def playable(s: Settings, p: float, xx: float, target: float, length: float, move: float, tt: float) -> bool:
    """Whether everything is finite, and the label is one if the loss needs one."""
    return abs(p) + xx + abs(target) + length + abs(move) + tt < np.inf and (not s.margin or target * target == 1.0)


@inlined
def decide(
    s: Settings, memory: Array, t: int, travelled: float, p: float, xx: float, tt: float, y: float
) -> tuple[float, float, float, float, float, float]:
    """Loss, weight, gradient length, √Σw²‖∇f‖², keep and move of round t (from 0). Changes nothing.

    The length is NaN where it is needed but its square has lost its digits: such a round is not playable.
    """
    f = min(linear.value(s.loss, s.loss_c, p, y) + 0.5 * s.l2 * tt, LARGEST)
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
