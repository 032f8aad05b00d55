"""Rows of non-zeros: first-order learning with θ = shrink·raw, so that l2 is one multiplication, whatever the width."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from redescend.kernels.compiler import compiled, inlined, uncounted
from redescend.kernels.descent import read_settings, view_memory
from redescend.kernels.layout import SparseTable
from redescend.kernels.tabular import dense
from redescend.kernels.tabular import standardize as scaling
from redescend.kernels.tabular.dense import SHRINK, SIZE2, TOUCHED, TRAVELLED, clip_to
from redescend.losses.linear import curvature
from redescend.numeric import Array

FADED, REFRESH = 1e-100, 8.0
"""When the factor is multiplied out; ‖θ‖² is computed again whenever all entries were touched this many times."""


class Buffers(NamedTuple):
    """One standardized row: features and values; features whose scale changed, and by which ratio; and other floats."""

    features: Array
    z: Array
    changed: Array
    ratios: Array
    work: Array


@inlined
def observe_and_standardize(
    rows: SparseTable, row: int, method: int, sample: Array, stats: Array, out: Buffers
) -> tuple[int, int, float]:
    """Update the running statistics and standardize a row, in one pass over its non-zeros.

    Returns how many features it has, how many of them changed their scale, and ‖z‖². Features are scaled but not
    centered: a median other than 0 would make every zero a non-zero.
    """
    count = events = 0
    norm2 = 0.0
    for a in range(rows.starts[row], rows.starts[row + 1]):
        j, value = rows.indices[a], rows.values[a]
        if method == scaling.SCALED:
            if value != 0.0 and scaling.observe(sample, stats, j, abs(value)):
                out.changed[events] = j
                out.ratios[events], _ = scaling.update_scale(sample, stats, j, int(stats[scaling.COUNT, j]), method)
                events += 1
            value *= stats[scaling.INVERSE, j]
        out.features[count], out.z[count] = j, value
        norm2 += value * value
        count += 1
    return count, events, norm2


@inlined
def reset_scale(models: Array, k: int, dim: int, width: int) -> None:
    """Multiply the factor out and compute ‖θ‖² again when they have lost digits."""
    shrink, size2, touched = models[k, width + SHRINK], models[k, width + SIZE2], models[k, width + TOUCHED]
    if shrink < FADED or not size2 >= 0.0 or touched > REFRESH * dim:
        for j in range(dim):
            models[k, j] *= shrink
        models[k, width + SHRINK], models[k, width + TOUCHED] = 1.0, 0.0
        models[k, width + SIZE2] = dense.squared_norm(models, k, dim)


@inlined
def rescale(model: Array, width: int, events: int, row: Buffers) -> None:
    """Rewrite a model in the new scales of features; its predictions stay the same."""
    shrink = model[width + SHRINK]
    for a in range(events):
        j, old = row.changed[a], model[row.changed[a]]
        model[j] = clip_to(old * row.ratios[a], dense.FARTHEST)
        model[width + SIZE2] += shrink * shrink * (model[j] * model[j] - old * old)


@inlined
def move(model: Array, dim: int, width: int, decision: Array, count: int, zz: float, row: Buffers) -> None:
    """Move a model as it was decided, θ ← keep·θ − move·z, where ‖z‖² without the intercept is `zz`."""
    keep, step, linear = decision[dense.KEEP], decision[dense.MOVE], decision[dense.LINEAR]
    shrink, tt = model[width + SHRINK], max(model[width + SIZE2], 0.0)
    model[width + TRAVELLED] = decision[dense.TRAVELLED_THEN]
    model[width + SIZE2] = keep * keep * tt - 2.0 * keep * step * linear + step * step * zz
    if keep == 0.0:
        for j in range(dim):
            model[j] = 0.0
        keep = 1.0
    model[width + SHRINK] = shrink * keep
    for a in range(count):
        model[row.features[a]] -= step * row.z[a] / (shrink * keep)
    if width > dim:
        model[dim] -= step
    model[width + TOUCHED] += count


@compiled
def learn(
    rows: SparseTable, state: dense.TableState, config: dense.DescentConfig, out: dense.TableOutcomes, buffers: Buffers
) -> int:
    """Learn from rows of non-zeros; see `dense.learn`. Nothing is averaged, and no predictions are written."""
    rows, buffers = SparseTable(*uncounted(rows)), Buffers(*uncounted(buffers))
    models, _, progress, sample, stats, target_sample, target_stats = uncounted(state)
    config, weights = dense.DescentConfig(*uncounted(config)), uncounted(out[0])
    dim, outputs, width = stats.shape[1], len(models), models.shape[1] - dense.SCALARS
    s, memory = read_settings(config.settings), view_memory(config.settings)
    follows_target = s.scale == 0.0 and curvature(s.loss) == 0.0
    constant = 1.0 if width > dim else 0.0
    decisions = np.empty((outputs, dense.DECISION))
    for row in range(len(rows.sample_weight)):
        if rows.sample_weight[row] <= 0.0:
            weights[:, row] = 0.0
            continue
        count, events, xx = observe_and_standardize(rows, row, config.method, sample, stats, buffers)
        xx += constant
        t = progress[dense.ROW_COUNT]
        dense.observe_number(xx, outputs, target_sample, target_stats)
        for k in range(outputs):
            model, y = models[k], rows.Y[k, row]
            reset_scale(models, k, dim, width)
            rescale(model, width, events, buffers)
            decisions[k, dense.WEIGHT] = -1.0
            if follows_target:
                dense.observe_number(y, k, target_sample, target_stats)
            if not (0.0 < xx < dense.LONGEST2 and abs(y) < dense.FARTHEST):
                continue
            linear = 0.0
            for a in range(count):
                linear += buffers.z[a] * model[buffers.features[a]]
            linear *= model[width + SHRINK]
            intercept = model[dim] if width > dim else 0.0
            tt, p = max(model[width + SIZE2], 0.0), linear + intercept
            record = dense.TableRecord(p, intercept, xx, tt, y, rows.sample_weight[row])
            decisions[k, dense.TRAVELLED_THEN], decisions[k, dense.LINEAR] = model[width + TRAVELLED], linear
            if not dense.decide(s, memory, t, target_stats, k, record, decisions):
                return row
        for k in range(outputs):
            weights[k, row] = max(decisions[k, dense.WEIGHT], 0.0)
            if decisions[k, dense.WEIGHT] < 0.0:
                continue
            move(models[k], dim, width, decisions[k], count, xx - constant, buffers)
        progress[dense.ROW_COUNT] += 1.0
    return len(rows.sample_weight)
