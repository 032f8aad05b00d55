"""Tables: first-order learning for many outputs at once, θ ← θ − α·w·∇f, and predictions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from redescend import gates, steps
from redescend.kernels.compiler import compiled, inlined, kernel, muladd, seldom, shared, summing, uncounted
from redescend.kernels.descent import read_settings, view_memory
from redescend.kernels.layout import DescentSettings, Table
from redescend.kernels.tabular import standardize as scaling
from redescend.kernels.views import view
from redescend.losses import linear
from redescend.numeric import LARGEST, Array

# behind the raw action: θ = SHRINK·raw; ‖θ‖² without the intercept, −1 if not known; √Σw²‖∇f‖²; entries touched
(SHRINK, SIZE2, TRAVELLED, TOUCHED) = range(4)
SCALARS = 4

# the decision on a row for each output, before any model moves; a weight below 0: the output does not learn from it
(WEIGHT, TRAVELLED_THEN, KEEP, MOVE, LINEAR) = range(5)
DECISION = 5

ROW_COUNT, AVERAGE_FROM = range(2)
"""Progress of an engine: rows learned from, and the row from which models are averaged."""

FARTHEST, LONGEST2 = 1e100, 1e200
"""A model is not moved farther than this; a record longer than this is not learned from."""


class TableState(NamedTuple):
    """Everything that is learned, with the arrays of `standardize` for features, and for targets and ‖z‖² (descent)."""

    models: Array
    means: Array
    progress: Array
    sample: Array
    stats: Array
    target_sample: Array
    target_stats: Array


class DescentConfig(NamedTuple):
    """The settings of descent; rows that are `unchecked` may have numbers that are not finite."""

    method: int
    settings: Array
    unchecked: bool


class TableOutcomes(NamedTuple):
    """The gate's weights, and predictions unless that array is empty."""

    weights: Array
    predictions: Array


class TableRecord(NamedTuple):
    """One record as an output sees it: prediction, its intercept, ‖z‖², ‖θ‖² without intercept, target and weight."""

    prediction: float
    intercept: float
    xx: float
    tt: float
    y: float
    sample_weight: float


@inlined
def limit_sample_weight(s: DescentSettings, scale: float, record: TableRecord, paid: float, slope: float) -> float:
    """How often a record counts if the step is the default: once, or until the step fits the record exactly."""
    if record.sample_weight <= 1.0 or slope == 0.0 or scale == 0.0:
        return record.sample_weight
    bend = linear.curvature(s.loss)
    fits = 1.0 / (bend * record.xx) if bend > 0.0 else paid / (slope * slope * record.xx)
    return max(1.0, min(record.sample_weight, fits / scale))


@inlined
def default_step(s: DescentSettings, k: int, t: float, xx: float, stats: Array) -> float:
    """The scale of the default step: 1/(L·N·√(1 + t/N)), N the larger of ‖z‖² and its median, L the curvature.

    Such a step never overshoots the record that it learns from, and starts to shrink after as many rows as there are
    directions. A loss without curvature has slopes of at most 1: for it 1/L is the scale of the target, and a record
    that is nearer than that may be overshot.
    """
    outputs = stats.shape[1] - 1
    typical = max(stats[scaling.CENTRE, outputs], scaling.SMALLEST)
    bend = linear.curvature(s.loss)
    reach = 1.0 / bend if bend > 0.0 else (1.0 if s.margin else stats[scaling.INVERSE, k])
    return reach / (max(typical, xx) * np.sqrt(1.0 + t / typical))


@inlined
def decide(
    s: DescentSettings, memory: Array, t: float, stats: Array, k: int, record: TableRecord, decisions: Array
) -> bool:
    """Decide how output k moves in round t, and write that into row k; returns False if it would move too far.

    The gate's weight; √Σw²‖∇f‖², which is TRAVELLED_THEN before; and θ ← keep·θ − move·z. l2 spares the intercept.
    """
    p, xx, tt, travelled = record.prediction, record.xx, record.tt, decisions[k, TRAVELLED_THEN]
    scale = default_step(s, k, t, xx, stats) if s.scale == 0.0 else s.scale
    paid, slope = linear.value(s.loss, s.loss_c, p, record.y), linear.slope(s.loss, s.loss_c, p, record.y)
    f = min(paid + 0.5 * s.l2 * tt, LARGEST)
    count = limit_sample_weight(s, scale, record, paid, slope) if s.scale == 0.0 else record.sample_weight
    pull = 2.0 * slope * s.l2 * (p - record.intercept)
    length = np.sqrt(max(slope * slope * xx + pull + s.l2 * s.l2 * tt, 0.0))
    weight = gates.weigh(s.gate, s.transform, s.gate_c, s.gate_b, memory, int(t), f, length)
    if s.step == steps.PER_TRAVELLED:
        travelled = np.hypot(travelled, count * weight * length)
    rate = steps.size(s.step, scale, s.normalised, t + 1.0, travelled, length) * (count * weight)
    decisions[k, WEIGHT], decisions[k, TRAVELLED_THEN] = weight, travelled
    decisions[k, KEEP], decisions[k, MOVE] = max(1.0 - rate * s.l2, 0.0), rate * slope
    return abs(p) < FARTHEST and abs(rate * slope) * np.sqrt(xx) < FARTHEST and travelled < np.inf


@summing
def inner_product(z: Array, models: Array, k: int, width: int) -> float:
    p = 0.0
    for j in range(width):
        p += z[0, j] * models[k, j]
    return p


@summing
def squared_norm(models: Array, k: int, dim: int) -> float:
    """‖raw‖² without the intercept."""
    out = 0.0
    for j in range(dim):
        out += models[k, j] * models[k, j]
    return out


@inlined
def clip_to(value: float, limit: float) -> float:
    return min(max(value, -limit), limit)


@seldom
def rescale_model(vector: Array, dim: int, ratios: Array, shifts: Array) -> None:
    """Rewrite a model in new scales; its predictions stay the same."""
    for j in range(dim):
        if len(vector) > dim:
            vector[dim] = clip_to(muladd(vector[j], shifts[j], vector[dim]), FARTHEST)
        vector[j] = clip_to(vector[j] * ratios[j], FARTHEST)


@inlined
def observe_number(value: float, place: int, sample: Array, stats: Array) -> None:
    """Follow the median and the scale of a number that comes with every row: a target, or ‖z‖²."""
    if scaling.observe(sample, stats, place, min(max(value, -FARTHEST), FARTHEST)):
        count = min(int(stats[scaling.COUNT, place]), scaling.SAMPLE)
        middle, scale = scaling.median_and_scale(sample[place, :count])
        stats[scaling.CENTRE, place] = middle
        stats[scaling.INVERSE, place] = scale if scale > 0.0 else max(abs(middle), scaling.SMALLEST)


@seldom
def multiply_out(models: Array, k: int, dim: int, width: int) -> None:
    """Make SHRINK 1; the intercept is never multiplied by it."""
    if models[k, width + SHRINK] != 1.0:
        for j in range(dim):
            models[k, j] *= models[k, width + SHRINK]
        models[k, width + SHRINK] = 1.0
    models[k, width + SIZE2] = -1.0


@compiled
def learn(rows: Table, state: TableState, config: DescentConfig, out: TableOutcomes, work: Array) -> int:
    """Learn from the rows; returns how many were learned from before one that would move a model too far.

    A step with scale 0 is the default one. Returns −1 as soon as an unchecked row may not be finite. The tuples may be
    plain ones, whose types Numba finds out faster when it is called from Python.
    """
    X, Y, sample_weight = uncounted(rows)
    models, means, progress, sample, stats, target_sample, target_stats = uncounted(state)
    config, out, work = DescentConfig(*uncounted(config)), TableOutcomes(*uncounted(out)), uncounted(work)
    dim, outputs, width = X.shape[1], len(models), models.shape[1] - SCALARS
    penalised = min(dim, width)
    s, memory = read_settings(config.settings), view_memory(config.settings)
    z, ratios, shifts = work[:width].reshape(1, width), work[width : width + dim], work[width + dim :]
    follows_target = s.scale == 0.0 and linear.curvature(s.loss) == 0.0
    decisions = np.empty((outputs, DECISION))
    for k in range(outputs):
        multiply_out(models, k, dim, width)
    for row in range(len(X)):
        if sample_weight[row] <= 0.0:
            out.weights[:, row] = 0.0
            continue
        if scaling.observe_row(X, row, config.method, sample, stats, ratios, shifts):
            for k in range(outputs):
                rescale_model(models[k, :width], dim, ratios, shifts)
                if len(means):
                    rescale_model(means[k], dim, ratios, shifts)
        xx, t = scaling.standardize_row(X, row, config.method, stats, z, 0), progress[ROW_COUNT]
        if config.unchecked and not xx < np.inf:
            return -1
        observe_number(xx, outputs, target_sample, target_stats)
        for k in range(outputs):
            y = Y[k, row]
            if config.unchecked and not abs(y) < np.inf:
                return -1
            if follows_target:
                observe_number(y, k, target_sample, target_stats)
            decisions[k, WEIGHT] = -1.0
            p, tt = inner_product(z, models, k, width), squared_norm(models, k, penalised) if s.l2 > 0.0 else 0.0
            if out.predictions.size:
                out.predictions[k, row] = p
            if not (0.0 < xx < LONGEST2 and abs(y) < FARTHEST):
                continue
            record = TableRecord(p, models[k, dim] if width > dim else 0.0, xx, tt, y, sample_weight[row])
            decisions[k, TRAVELLED_THEN] = models[k, width + TRAVELLED]
            if not decide(s, memory, t, target_stats, k, record, decisions):
                return row
        for k in range(outputs):
            out.weights[k, row] = max(decisions[k, WEIGHT], 0.0)
            if decisions[k, WEIGHT] < 0.0:
                continue
            keep, move = decisions[k, KEEP], decisions[k, MOVE]
            models[k, width + TRAVELLED] = decisions[k, TRAVELLED_THEN]
            if len(means) and t >= progress[AVERAGE_FROM]:
                for j in range(width):
                    means[k, j] += (models[k, j] - means[k, j]) / (t - progress[AVERAGE_FROM] + 1.0)
            for j in range(penalised):
                models[k, j] = muladd(keep, models[k, j], -(move * z[0, j]))
            for j in range(penalised, width):
                models[k, j] -= move * z[0, j]
        progress[ROW_COUNT] += 1.0
    return len(X)


@shared
def predict_row(x: Array, coefficients: Array, medians: Array) -> float:
    total = 0.0
    for j in range(len(x)):
        total += coefficients[j] * scaling.impute(x[j], medians[j])
    return total


@kernel
def predict(X: Array, coefficients: Array, intercepts: Array, medians: Array, out: Array) -> None:
    """Write finite predictions of every output for every row, with medians in place of NaN.

    Each has the same bits whatever other rows are in the table.
    """
    X, coefficients, intercepts, medians, out = view((X, coefficients, intercepts, medians, out))
    for k in range(len(coefficients)):
        for row in range(len(X)):
            p = predict_row(X[row], coefficients[k], medians) + intercepts[k]
            out[k, row] = min(max(p, -LARGEST), LARGEST) if p == p else 0.0
