"""What a record says, in scalars: how likely it is to be clean, how noisy the stream is, and which member is right."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from redescend.kernels.compiler import inlined
from redescend.kernels.selftuning import layout
from redescend.kernels.selftuning.mixture import leader_of, reweigh
from redescend.kernels.selftuning.noise import judge, learn_noise, masses, size_of
from redescend.losses import linear
from redescend.numeric import Array

# Losses beyond this are not told apart.
WORST = layout.FARTHEST**2
# Records between these lengths are learned from; and the smallest scale that residuals can begin with.
SHORTEST2, LONGEST2, SMALLEST = 1e-200, 1e200, 1e-260


class Settings(NamedTuple):
    """What stays the same from round to round."""

    kind: int
    c: float
    l2: float
    labels: bool
    share: float
    gated: bool
    copying: bool
    tempered: bool
    warmed: bool
    curious: bool


class Scratch(NamedTuple):
    """Numbers of a round: of every scale, and of every member."""

    clean: Array
    outlier: Array
    predictions: Array
    sizes2: Array
    paid: Array
    logs: Array
    gates: Array


class Verdict(NamedTuple):
    """How likely a record is to be clean, and how likely were nothing in it new; its residual; and who leads now."""

    believed: float
    fits: float
    size: float
    leader: int


@inlined
def settings_of(numbers: Array) -> Settings:
    return Settings(
        int(numbers[layout.LOSS]),
        numbers[layout.LOSS_C],
        numbers[layout.L2],
        numbers[layout.LABELS] != 0.0,
        numbers[layout.SHARE_CELLS],
        numbers[layout.GATED] != 0.0,
        numbers[layout.COPYING] != 0.0,
        numbers[layout.TEMPERED] != 0.0,
        numbers[layout.WARMED] != 0.0,
        numbers[layout.CURIOUS] != 0.0,
    )


@inlined
def scratch_of(memory: Array, members: int, scales: int) -> Scratch:
    """The numbers of a round, in a row of 2·scales + 5·members floats."""
    at = 2 * scales
    return Scratch(
        memory[:scales],
        memory[scales:at],
        memory[at : at + members],
        memory[at + members : at + 2 * members],
        memory[at + 2 * members : at + 3 * members],
        memory[at + 3 * members : at + 4 * members],
        memory[at + 4 * members : at + 5 * members],
    )


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
    s: Settings,
    now: Scratch,
    f: float,
    size: float,
    target: float,
    factor: float,
    power: float,
    times: float,
    active: float,
    weights: Array,
    cells: Array,
    prior: Array,
    rates: Array,
    scalars: Array,
    new: float,
    wide: float,
) -> Verdict:
    """Judge the record at every member (labels: at the action), learn its noise, and reweigh the members.

    The record counts `times`: its likelihood is taken to that power, and steps are so many times as long.
    The verdict is the leader's, whose noise it is.
    """
    rate, lowest = masses(cells, rates, now.clean, now.outlier), scalars[layout.LOWEST]
    leader, gate, believed = leader_of(weights), 1.0, 1.0
    if s.labels:
        _, gate = judge(s.kind, s.c, f, size, lowest, now.clean, now.outlier, 0.0, s.labels)
        believed = gate
    for i in range(len(weights)):
        now.gates[i] = gate
        if weights[i] > 0.0:
            now.paid[i] = paid_for(s, now.predictions[i], target, factor, now.sizes2[i])
            if s.labels:
                now.logs[i] = np.log(rate + (1.0 - 2.0 * rate) * np.exp(-now.paid[i]))
            else:
                own = size_of(s.kind, s.labels, now.paid[i], now.predictions[i], target)
                now.logs[i], now.gates[i] = judge(
                    s.kind, s.c, now.paid[i], own, lowest, now.clean, now.outlier, s.share, s.labels, new, wide
                )
                if i == leader:
                    believed = now.gates[i]
        if not s.gated:
            now.gates[i] = 1.0
        now.gates[i] *= times
    if not s.labels:
        # The leader's residuals are what clean records look like; the mean's are wider while members disagree.
        f = now.paid[leader]
        size = size_of(s.kind, s.labels, f, now.predictions[leader], target)
    fits = believed
    if new > 0.0:
        _, fits = judge(s.kind, s.c, f, size, lowest, now.clean, now.outlier, s.share, s.labels)
    if s.labels or f > 0.0:
        learn_noise(s.kind, s.c, f, size, s.labels, s.share, cells, prior, rates, scalars, times, new, wide)
    return Verdict(believed, fits, size, reweigh(weights, now.logs, power * times, active))
