"""What a record says, in scalars: how likely it is to be clean, how noisy the stream is, and which member is right."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from redescend.kernels.compiler import inlined
from redescend.kernels.selftuning import layout
from redescend.kernels.selftuning.layout import Config, Record, Scratch, Settings
from redescend.kernels.selftuning.mixture import leader_of, reweigh
from redescend.kernels.selftuning.noise import judge, learn_noise, masses, size_of
from redescend.losses import linear
from redescend.numeric import Array

# Losses beyond this are not told apart.
WORST = layout.FARTHEST**2
# Records between these lengths are learned from; and the smallest scale that residuals can begin with.
SHORTEST2, LONGEST2, SMALLEST = 1e-200, 1e200, 1e-260


class Verdict(NamedTuple):
    """How likely a record is to be clean, and how likely were nothing in it new; its residual; and who leads now."""

    believed: float
    fits: float
    size: float
    leader: int


@inlined
def playable(s: Settings, norm2: float, target: float) -> bool:
    return (norm2 < LONGEST2 and abs(target) < layout.FARTHEST) and not (s.labels and target * target != 1.0)


@inlined
def paid_for(s: Settings, p: float, target: float, factor: float, size2: float) -> float:
    return min(linear.value(s.kind, s.c, factor * p, target) + 0.5 * s.l2 * factor * factor * size2, WORST)


@inlined
def begin(s: Settings, norm2: float, f: float, size: float, scales: int, scalars: Array) -> bool:
    """Whether there is anything to learn from; the first residual says where the window of scales begins."""
    if norm2 < SHORTEST2 or (scalars[layout.LOWEST] == 0.0 and f == 0.0):
        return False
    if scalars[layout.LOWEST] == 0.0:
        scalars[layout.SPREAD] = max(size, SMALLEST)
        scalars[layout.LOWEST] = scalars[layout.SPREAD] * 2.0 ** (-scales // 2)
    return True


@inlined
def weigh(
    s: Settings, now: Scratch, state: Any, config: Config, r: Record, active: float, novelty: tuple[float, float]
) -> Verdict:
    """Judge the record at every member (labels: at the action), learn its noise, and reweigh the members.

    The record counts `times`: its likelihood is taken to that power, and steps are that many times as long.
    The verdict is the leader's, whose noise it is. Any state with weights, cells and scalars will do.
    """
    weights, f, size = state.weights, r.f, r.size
    rate, lowest = masses(state.cells, config.rates, now.clean, now.outlier), state.scalars[layout.LOWEST]
    leader, gate, believed = leader_of(weights), 1.0, 1.0
    if s.labels:
        _, gate = judge(s, f, size, lowest, now.clean, now.outlier, 0.0)
        believed = gate
    for i in range(len(weights)):
        now.gates[i] = gate
        if weights[i] > 0.0:
            now.paid[i] = paid_for(s, now.predictions[i], r.target, r.factor, now.sizes2[i])
            if s.labels:
                now.logs[i] = np.log(rate + (1.0 - 2.0 * rate) * np.exp(-now.paid[i]))
            else:
                own = size_of(s.kind, s.labels, now.paid[i], now.predictions[i], r.target)
                now.logs[i], now.gates[i] = judge(s, now.paid[i], own, lowest, now.clean, now.outlier, s.share, novelty)
                if i == leader:
                    believed = now.gates[i]
        if not s.gated:
            now.gates[i] = 1.0
        now.gates[i] *= r.times
    if not s.labels:
        # The leader's residuals are what clean records look like; the mean's are wider while members disagree.
        f = now.paid[leader]
        size = size_of(s.kind, s.labels, f, now.predictions[leader], r.target)
    fits = believed
    if novelty[0] > 0.0:
        _, fits = judge(s, f, size, lowest, now.clean, now.outlier, s.share)
    if s.labels or f > 0.0:
        learn_noise(s, f, size, state, config, r.times, novelty)
    return Verdict(believed, fits, size, reweigh(weights, now.logs, r.power * r.times, active))
