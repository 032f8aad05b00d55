"""First-order learning from a table: θ ← θ − α·w·∇f, for many outputs at once."""

from __future__ import annotations

import numpy as np

from redescend import gates, steps
from redescend.kernels.compiler import compiled, inlined, muladd, summing, uncounted
from redescend.kernels.descent.decision import memory_of, settings_of
from redescend.kernels.layout import Settings
from redescend.kernels.selftuning.followers import within
from redescend.kernels.tabular import standardize as unit
from redescend.losses import linear
from redescend.numeric import LARGEST, Array

# behind the raw action: θ = KEPT·raw, ‖θ‖² without the intercept (−1: to be taken anew), √Σw²‖∇f‖², entries touched
(KEPT, SIZE2, TRAVELLED, TOUCHED) = range(4)
LIVE = 4

# what is decided of a row for each output before any moves; a weight below 0: the output does not learn from it
(WEIGHT, TRAVELLED_THEN, KEEP, MOVE, LINEAR) = range(5)
DECISION = 5

FARTHEST, LONGEST2 = 1e100, 1e200
"""A model is not moved farther than this; a record longer than this is not learned from."""


@inlined
def fitting_times(s: Settings, scale: float, times: float, xx: float, paid: float, slope: float) -> float:
    """How often a record counts where the step is its own: once, or up to so often that the step just fits it."""
    if times <= 1.0 or slope == 0.0 or scale == 0.0:
        return times
    bend = linear.curvature(s.loss)
    fits = 1.0 / (bend * xx) if bend > 0.0 else paid / (slope * slope * xx)
    return max(1.0, min(times, fits / scale))


@inlined
def decide(
    s: Settings,
    memory: Array,
    t: float,
    scale: float,
    times: float,
    travelled: float,
    p: float,
    intercept: float,
    xx: float,
    tt: float,
    y: float,
) -> tuple[float, float, float, float]:
    """Weight, √Σw²‖∇f‖², keep and move of round t; l2 spares the intercept, and a record counts so many times."""
    paid, slope = linear.value(s.loss, s.loss_c, p, y), linear.slope(s.loss, s.loss_c, p, y)
    f = min(paid + 0.5 * s.l2 * tt, LARGEST)
    if s.scale == 0.0:
        times = fitting_times(s, scale, times, xx, paid, slope)
    length = np.sqrt(max(slope * slope * xx + 2.0 * slope * s.l2 * (p - intercept) + s.l2 * s.l2 * tt, 0.0))
    believed = gates.weigh(s.gate, s.transform, s.gate_c, s.gate_b, memory, int(t), f, length)
    weight = times * believed
    if s.step == steps.PER_TRAVELLED:
        travelled = np.hypot(travelled, weight * length)
    rate = steps.size(s.step, scale, s.normalised, t + 1.0, travelled, length) * weight
    return believed, travelled, max(1.0 - rate * s.l2, 0.0), rate * slope


@summing
def product(z: Array, states: Array, k: int, width: int) -> float:
    p = 0.0
    for j in range(width):
        p += z[0, j] * states[k, j]
    return p


@summing
def size2_of(states: Array, k: int, dim: int) -> float:
    """‖raw‖² without the intercept."""
    out = 0.0
    for j in range(dim):
        out += states[k, j] * states[k, j]
    return out


@inlined
def rebase(vector: Array, dim: int, ratios: Array, shifts: Array) -> None:
    """A model in new units; what it predicts stays the same."""
    for j in range(dim):
        if len(vector) > dim:
            vector[dim] = within(muladd(vector[j], shifts[j], vector[dim]), FARTHEST)
        vector[j] = within(vector[j] * ratios[j], FARTHEST)


@inlined
def follow_number(value: float, place: int, seen: Array, standing: Array) -> None:
    """Keep the median and the scale of a number that comes with every row: a target, or ‖z‖²."""
    if unit.observe(seen, standing, place, min(max(value, -FARTHEST), FARTHEST)):
        count = min(int(standing[unit.SEEN, place]), unit.SAMPLE)
        middle, scale = unit.middle_and_scale(seen[place, :count])
        standing[unit.CENTRE, place] = middle
        standing[unit.INVERSE, place] = scale if scale > 0.0 else max(abs(middle), unit.SMALLEST)


@inlined
def own_scale(s: Settings, k: int, t: float, xx: float, standing: Array) -> float:
    """The scale of a step that nobody gave: 1/(L·N·√(1 + t/N)), N the larger of ‖z‖² and its median, L the curvature.

    Such a step never passes the record that it learns from, and starts to shrink once there were as many rows as there
    are directions. A loss without curvature has slopes of 1 at most: for it 1/L is the scale of the target, and a
    record that is nearer than that may be passed.
    """
    outputs = standing.shape[1] - 1
    typical = max(standing[unit.CENTRE, outputs], unit.SMALLEST)
    bend = linear.curvature(s.loss)
    reach = 1.0 / bend if bend > 0.0 else (1.0 if s.margin else standing[unit.INVERSE, k])
    return reach / (max(typical, xx) * np.sqrt(1.0 + t / typical))


@inlined
def settle(states: Array, k: int, dim: int, width: int) -> None:
    """Multiply the action out, but for the intercept, which is never in parts."""
    if states[k, width + KEPT] != 1.0:
        for j in range(dim):
            states[k, j] *= states[k, width + KEPT]
        states[k, width + KEPT] = 1.0
    states[k, width + SIZE2] = -1.0


@compiled
def learn(
    X: Array,
    Y: Array,
    times: Array,
    standard: int,
    sample: Array,
    units: Array,
    seen: Array,
    standing: Array,
    states: Array,
    numbers: Array,
    means: Array,
    clock: Array,
    believed: Array,
    predicted: Array,
    work: Array,
    unseen: bool,
) -> int:
    """Learn from the rows of X for every row of Y; returns how many were, before one that would move a model too far.

    A step whose scale is 0 is its own. The clock is how many rows were learned from, and after how many of them means
    are taken. Of rows that nobody has looked at, −1 is returned as soon as one may not be finite.
    """
    X = uncounted(X)
    Y = uncounted(Y)
    times = uncounted(times)
    sample = uncounted(sample)
    units = uncounted(units)
    seen = uncounted(seen)
    standing = uncounted(standing)
    states = uncounted(states)
    numbers = uncounted(numbers)
    means = uncounted(means)
    clock = uncounted(clock)
    believed = uncounted(believed)
    predicted = uncounted(predicted)
    rows, dim = X.shape
    outputs, width = len(states), states.shape[1] - LIVE
    penalised = min(dim, width)
    s, memory = settings_of(numbers), memory_of(numbers)
    own = s.scale == 0.0
    work = uncounted(work)
    z, ratios, shifts = work[:width].reshape(1, width), work[width : width + dim], work[width + dim :]
    bent = linear.curvature(s.loss) > 0.0
    decisions = np.empty((outputs, DECISION))
    for k in range(outputs):
        settle(states, k, dim, width)
    for row in range(rows):
        if times[row] <= 0.0:
            believed[:, row] = 0.0
            continue
        if unit.observe_row(X, row, standard, sample, units, ratios, shifts):
            for k in range(outputs):
                rebase(states[k, :width], dim, ratios, shifts)
                if len(means):
                    rebase(means[k], dim, ratios, shifts)
        xx = unit.standardise(X, row, standard, units, z, 0)
        if unseen and not xx < np.inf:
            return -1
        follow_number(xx, outputs, seen, standing)
        for k in range(outputs):
            y = Y[k, row]
            if unseen and not abs(y) < np.inf:
                return -1
            if own and not bent:
                follow_number(y, k, seen, standing)
            decisions[k, WEIGHT] = -1.0
            p, tt = product(z, states, k, width), size2_of(states, k, penalised) if s.l2 > 0.0 else 0.0
            if predicted.size:
                predicted[k, row] = p
            if not (0.0 < xx < LONGEST2 and abs(y) < FARTHEST):
                continue
            intercept = states[k, dim] if width > dim else 0.0
            scale = own_scale(s, k, clock[0], xx, standing) if own else s.scale
            weight, travelled, keep, move = decide(
                s, memory, clock[0], scale, times[row], states[k, width + TRAVELLED], p, intercept, xx, tt, y
            )
            if not (abs(p) < FARTHEST and abs(move) * np.sqrt(xx) < FARTHEST and travelled < np.inf):
                return row
            decisions[k, WEIGHT], decisions[k, TRAVELLED_THEN] = weight, travelled
            decisions[k, KEEP], decisions[k, MOVE] = keep, move
        for k in range(outputs):
            believed[k, row] = max(decisions[k, WEIGHT], 0.0)
            if decisions[k, WEIGHT] < 0.0:
                continue
            keep, move = decisions[k, KEEP], decisions[k, MOVE]
            states[k, width + TRAVELLED] = decisions[k, TRAVELLED_THEN]
            if len(means) and clock[0] >= clock[1]:
                for j in range(width):
                    means[k, j] += (states[k, j] - means[k, j]) / (clock[0] - clock[1] + 1.0)
            for j in range(penalised):
                states[k, j] = muladd(keep, states[k, j], -(move * z[0, j]))
            for j in range(penalised, width):
                states[k, j] -= move * z[0, j]
        clock[0] += 1.0
    return rows
