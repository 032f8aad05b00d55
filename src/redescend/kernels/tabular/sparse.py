"""First-order learning from rows of non-zeros: θ = kept·raw, so that l2 is one multiplication, whatever the width."""

from __future__ import annotations

import numpy as np

from redescend.kernels.compiler import compiled, inlined, uncounted
from redescend.kernels.descent.decision import memory_of, settings_of
from redescend.kernels.selftuning.followers import within
from redescend.kernels.tabular.dense import (
    DECISION,
    FARTHEST,
    KEEP,
    KEPT,
    LINEAR,
    LIVE,
    LONGEST2,
    MOVE,
    SIZE2,
    TOUCHED,
    TRAVELLED,
    TRAVELLED_THEN,
    WEIGHT,
    decide,
    follow_number,
    own_scale,
    size2_of,
)
from redescend.kernels.tabular.sparse_rows import gather
from redescend.losses.linear import curvature
from redescend.numeric import Array

FADED, REFRESH = 1e-100, 8.0
"""When `kept` is multiplied out; ‖θ‖² is taken anew whenever so many times all entries were touched."""


@inlined
def refresh(states: Array, k: int, dim: int, width: int) -> None:
    """Multiply `kept` out and take ‖θ‖² anew, when they have lost digits."""
    kept, size2, touched = states[k, width + KEPT], states[k, width + SIZE2], states[k, width + TOUCHED]
    if kept < FADED or not size2 >= 0.0 or touched > REFRESH * dim:
        for j in range(dim):
            states[k, j] *= kept
        states[k, width + KEPT], states[k, width + TOUCHED] = 1.0, 0.0
        states[k, width + SIZE2] = size2_of(states, k, dim)


@compiled
def learn(
    values: Array,
    indices: Array,
    starts: Array,
    dim: int,
    Y: Array,
    times: Array,
    standard: int,
    sample: Array,
    units: Array,
    seen: Array,
    standing: Array,
    states: Array,
    numbers: Array,
    clock: Array,
    believed: Array,
    work: Array,
    places: Array,
) -> int:
    """Learn from rows of non-zeros; see `descent.learn`."""
    values = uncounted(values)
    indices = uncounted(indices)
    starts = uncounted(starts)
    Y = uncounted(Y)
    times = uncounted(times)
    sample = uncounted(sample)
    units = uncounted(units)
    seen = uncounted(seen)
    standing = uncounted(standing)
    states = uncounted(states)
    numbers = uncounted(numbers)
    clock = uncounted(clock)
    believed = uncounted(believed)
    work = uncounted(work)
    places = uncounted(places)
    rows, outputs, width = len(starts) - 1, len(states), states.shape[1] - LIVE
    s, memory = settings_of(numbers), memory_of(numbers)
    own, most = s.scale == 0.0, len(places) // 2
    features, changed, z, ratios = places[:most], places[most:], work[:most], work[most:]
    bent = curvature(s.loss) > 0.0
    constant = 1.0 if width > dim else 0.0
    decisions = np.empty((outputs, DECISION))
    for row in range(rows):
        if times[row] <= 0.0:
            believed[:, row] = 0.0
            continue
        count, events, xx = gather(values, indices, starts, row, standard, sample, units, features, z, changed, ratios)
        xx += constant
        follow_number(xx, outputs, seen, standing)
        for k in range(outputs):
            state, y = states[k], Y[k, row]
            refresh(states, k, dim, width)
            kept = state[width + KEPT]
            for a in range(events):
                j, old = changed[a], state[changed[a]]
                state[j] = within(old * ratios[a], FARTHEST)
                state[width + SIZE2] += kept * kept * (state[j] * state[j] - old * old)
            decisions[k, WEIGHT] = -1.0
            if own and not bent:
                follow_number(y, k, seen, standing)
            if not (0.0 < xx < LONGEST2 and abs(y) < FARTHEST):
                continue
            linear = 0.0
            for a in range(count):
                linear += z[a] * state[features[a]]
            linear *= kept
            intercept = state[dim] if width > dim else 0.0
            tt, p = max(state[width + SIZE2], 0.0), linear + intercept
            scale = own_scale(s, k, clock[0], xx, standing) if own else s.scale
            weight, travelled, keep, move = decide(
                s, memory, clock[0], scale, times[row], state[width + TRAVELLED], p, intercept, xx, tt, y
            )
            if not (abs(p) < FARTHEST and abs(move) * np.sqrt(xx) < FARTHEST and travelled < np.inf):
                return row
            decisions[k, WEIGHT], decisions[k, TRAVELLED_THEN] = weight, travelled
            decisions[k, KEEP], decisions[k, MOVE], decisions[k, LINEAR] = keep, move, linear
        for k in range(outputs):
            believed[k, row] = max(decisions[k, WEIGHT], 0.0)
            if decisions[k, WEIGHT] < 0.0:
                continue
            state, keep, move, linear = states[k], decisions[k, KEEP], decisions[k, MOVE], decisions[k, LINEAR]
            kept, tt = state[width + KEPT], max(state[width + SIZE2], 0.0)
            state[width + TRAVELLED] = decisions[k, TRAVELLED_THEN]
            state[width + SIZE2] = keep * keep * tt - 2.0 * keep * move * linear + move * move * (xx - constant)
            if keep == 0.0:
                for j in range(dim):
                    state[j] = 0.0
                keep = 1.0
            state[width + KEPT] = kept * keep
            for a in range(count):
                state[features[a]] -= move * z[a] / (kept * keep)
            if width > dim:
                state[dim] -= move
            state[width + TOUCHED] += count
        clock[0] += 1.0
    return rows
