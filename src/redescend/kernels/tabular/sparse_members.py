"""What the members of a sparse self-tuning learner do with a row of non-zeros: predict, measure it, follow it."""

from __future__ import annotations

import numpy as np

from redescend.kernels.compiler import inlined
from redescend.kernels.selftuning import layout
from redescend.kernels.selftuning.followers import median, within
from redescend.kernels.selftuning.layout import Scratch, Settings
from redescend.kernels.selftuning.novelty import age, follow_size, longer_by, part_of, share_of, stands_out
from redescend.kernels.tabular.sparse_layout import KNOWN, Output
from redescend.losses import likelihood
from redescend.numeric import Array

FOLLOWERS, MEMORY, READY = layout.FOLLOWERS, layout.MEMORY, layout.READY


@inlined
def catch_up(out: Output, j: int, seen: float) -> None:
    """Count the rounds in which a known feature was 0: means of squares that fade as in `followers.measure`."""
    zeros = seen - out.measured[j]
    if zeros > 0.0 and out.counts[j] >= READY:
        short = min(zeros, MEMORY - out.counts[j])
        out.squares[j] *= out.counts[j] / (out.counts[j] + short) * (1.0 - 1.0 / MEMORY) ** (zeros - short)
        out.counts[j] += short
    out.measured[j] = seen


@inlined
def measure(out: Output, features: Array, z: Array, count: int, norm2: float, metric: Array) -> tuple[float, float]:
    """Follow the scale of records and of features; the typical ‖x‖² and Σ x_j²·metric_j."""
    seen = int(out.scalars[layout.SEEN])
    out.norms[seen % layout.NORMS] = norm2
    out.scalars[layout.SEEN] = seen + 1.0
    typical = median(out.norms, min(seen + 1, layout.NORMS))
    inverse, scaled = 1.0 / max(typical, norm2), 0.0
    for a in range(count):
        j, share = features[a], z[a] * z[a] * inverse
        catch_up(out, j, float(seen))
        before = out.counts[j]
        if share > 0.0 or before >= READY:
            out.counts[j] = min(before + 1.0, MEMORY)
            out.squares[j] += (share - out.squares[j]) / out.counts[j]
        out.measured[j] = seen + 1.0
        metric[a] = 0.0
        if out.counts[j] >= READY:
            out.counters[KNOWN] += 1.0 if before < READY else 0.0
            one = 1.0 / max(out.squares[j], layout.RESOLUTION)
            metric[a] = inverse * one
            scaled += share * one
    return typical, scaled


@inlined
def look(
    out: Output, features: Array, z: Array, count: int, norm2: float, typical: float, scaled: float, metric: Array
) -> tuple[bool, float, float, float]:
    """Whether anything in the record is not known for good; and what is new in it, see `news.look`."""
    unknown, new, present, wide = False, 0.0, 0.0, 0.0
    for a in range(count):
        unknown = unknown or (z[a] != 0.0 and out.newness[features[a]] > 0.0)
    if not unknown:
        return False, 0.0, 0.0, scaled
    for a in range(count):
        part = part_of(z[a] * z[a], metric[a])
        more = part * stands_out(out.newness[features[a]], out.scalars)
        present += part
        new += more
        wide += more * out.sizes[features[a]]
    if new == 0.0:
        return True, 0.0, 0.0, scaled
    for a in range(count):
        extra = longer_by(out.newness[features[a]], new / present, metric[a], out.scalars)
        metric[a] += extra
        scaled += extra * z[a] * z[a]
    return True, share_of(new, present, typical, norm2), wide / new, scaled


@inlined
def grow_old(out: Output, features: Array, z: Array, count: int, fits: float, size: float, metric: Array) -> None:
    for a in range(count):
        j, part = features[a], part_of(z[a] * z[a], metric[a])
        if part > 0.0:
            out.newness[j] = age(out.newness[j], fits, part)
            out.sizes[j] = follow_size(out.sizes[j], size, part)


@inlined
def predict(out: Output, dim: int, features: Array, z: Array, count: int, now: Scratch) -> float:
    """What every member says; returns what the mean says."""
    members, p = len(out.weights), 0.0
    for i in range(members):
        now.predictions[i] = 0.0
    for a in range(count):
        for i in range(members):
            factor = out.kept[i] if features[a] < dim else 1.0
            now.predictions[i] += z[a] * factor * out.thetas[features[a], i]
    for i in range(members):
        now.sizes2[i] = max(out.products[i, i], 0.0)
        now.predictions[i] = within(now.predictions[i], layout.FARTHEST) if out.weights[i] > 0.0 else 0.0
        p += out.weights[i] * now.predictions[i]
    return p


@inlined
def size2_of_mean(out: Output) -> float:
    size2 = 0.0
    for i in range(len(out.weights)):
        for k in range(len(out.weights)):
            size2 += out.weights[i] * out.weights[k] * out.products[i, k]
    return max(size2, 0.0)


@inlined
def multiply_on(
    out: Output, dim: int, features: Array, z: Array, metric: Array, count: int, keeps: Array, moves: Array
) -> None:
    """The products of members once each was multiplied by its `keep` and moved along the record, in its own metric."""
    members = len(out.weights)
    along = np.zeros((members, 2))
    plain = mixed = other2 = 0.0
    for a in range(count):
        j = features[a]
        if j < dim:
            other = z[a] * metric[a]
            plain += z[a] * z[a]
            mixed += z[a] * other
            other2 += other * other
            for i in range(members):
                theta = out.kept[i] * out.thetas[j, i]
                along[i, 0] += z[a] * theta
                along[i, 1] += other * theta
    squares = (plain, mixed, other2)
    for i in range(members):
        one = 1 if FOLLOWERS <= i < 2 * FOLLOWERS else 0
        for k in range(i + 1):
            two = 1 if FOLLOWERS <= k < 2 * FOLLOWERS else 0
            value = keeps[i] * keeps[k] * out.products[i, k] + moves[i] * moves[k] * squares[one + two]
            value += keeps[i] * moves[k] * along[i, two] + keeps[k] * moves[i] * along[k, one]
            out.products[i, k] = out.products[k, i] = value


@inlined
def follow(
    s: Settings,
    out: Output,
    dim: int,
    features: Array,
    z: Array,
    metric: Array,
    count: int,
    y: float,
    norm2: float,
    typical: float,
    scaled: float,
    longer: float,
    now: Scratch,
    keeps: Array,
    moves: Array,
) -> None:
    """One implicit step of every follower; see `followers.follow`."""
    length, spread = layout.LONGEST, out.scalars[layout.SPREAD]
    keeps[:], moves[:] = 1.0, 0.0
    for k in range(FOLLOWERS):
        e = length * now.gates[k] / max(typical, norm2)
        moves[k] = likelihood.implicit_move(s.kind, s.c, now.predictions[k], y, e, norm2, spread)
        keeps[k] = 1.0 / (1.0 + s.l2 * e)
        if scaled > 0.0:
            i = FOLLOWERS + k
            e = length * now.gates[i] / max(out.counters[KNOWN], scaled)
            moves[i] = likelihood.implicit_move(s.kind, s.c, now.predictions[i], y, e, longer, spread)
            keeps[i] = 1.0 / (1.0 + s.l2 * e)
        length *= layout.RATIO
    for i in range(2 * FOLLOWERS):
        moves[i] = within(moves[i], layout.HUGE)
    if s.l2 > 0.0:
        multiply_on(out, dim, features, z, metric, count, keeps, moves)
    for i in range(2 * FOLLOWERS):
        out.kept[i] *= keeps[i]
    for a in range(count):
        j = features[a]
        for i in range(2 * FOLLOWERS):
            factor = out.kept[i] if j < dim else 1.0
            move = moves[i] * z[a] * (metric[a] if i >= FOLLOWERS else 1.0)
            out.thetas[j, i] = within(factor * out.thetas[j, i] + move, layout.FARTHEST) / factor
