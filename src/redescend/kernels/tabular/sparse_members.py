"""The members of a sparse self-tuning learner: their state, what they do with a row of non-zeros, and their copies.

The state of an output is one row of floats. Models are stored feature by feature, with what is known of the feature
behind them: a non-zero touches one place in memory. They are stored up to a factor for each member, `kept`, but for the
intercept: l2 is one multiplication a member. A follower that takes over the leader's model every other round copies
only what was touched since it last did: `trail` are the features touched last, `partner` is the member it copied, and
`since` how long the trail was then.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from redescend.kernels.compiler import compiled, inlined
from redescend.kernels.selftuning import layout
from redescend.kernels.selftuning.followers import median, within
from redescend.kernels.selftuning.layout import FOLLOWERS, MEMORY, READY, Lengths, Scratch, Settings
from redescend.kernels.selftuning.novelty import age, follow_size, longer_by, part_of, share_of, stands_out
from redescend.losses import likelihood
from redescend.numeric import Array

# features whose scale is known; entries touched so far, and when products were last computed from scratch
(KNOWN, TOUCHED, REFRESHED) = range(3)
COUNTERS = 3

NOBODY = -1.0
FADED, REFRESH = 1e-100, 32.0
"""When factors are multiplied out; products are computed again whenever all entries were touched this many times."""


class Output(NamedTuple):
    """The parts of one output's state."""

    thetas: Array
    weights: Array
    cells: Array
    norms: Array
    squares: Array
    counts: Array
    newness: Array
    sizes: Array
    measured: Array
    trail: Array
    kept: Array
    products: Array
    partner: Array
    since: Array
    counters: Array
    scalars: Array


class SparseRecord(NamedTuple):
    """One standardized row: its features and values, how many there are, ‖z‖², the metric, and the penalised features.

    The intercept, if any, is feature `dim`.
    """

    features: Array
    z: Array
    length: int
    norm2: float
    metric: Array
    dim: int


def length(width: int, dim: int, members: int, scales: int, rates: int) -> int:
    """The number of floats in the state of an output."""
    features = width * (members + 5) + dim
    return features + members * (members + 4) + scales * rates + layout.NORMS + COUNTERS + layout.SCALARS


def split(state: Array, width: int, dim: int, members: int, scales: int, rates: int) -> Output:
    """The parts of a state, in the order of `Output`; views."""
    a = width * (members + 5)
    b = a + members
    c = b + scales * rates
    d = c + layout.NORMS
    f = d + dim
    g = f + members
    h = g + members * members
    i = h + 2 * members
    features = state[:a].reshape(width, members + 5)
    return Output(
        features[:, :members],
        state[a:b],
        state[b:c].reshape(scales, rates),
        state[c:d],
        features[:, members],
        features[:, members + 1],
        features[:, members + 2],
        features[:, members + 3],
        features[:, members + 4],
        state[d:f],
        state[f:g],
        state[g:h].reshape(members, members),
        state[h : h + members],
        state[h + members : i],
        state[i : i + COUNTERS],
        state[i + COUNTERS :],
    )


split_output = inlined(split)


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
def measure(out: Output, rec: SparseRecord) -> tuple[float, float]:
    """Follow the scale of records and of features; the typical ‖x‖² and Σ x_j²·metric_j."""
    features, z, count, norm2, metric, _ = rec
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
def look(out: Output, rec: SparseRecord, typical: float, scaled: float) -> tuple[bool, float, float, float]:
    """Whether anything in the record is not known for good; and what is new in it, see `novelty.look`."""
    features, z, count, norm2, metric, _ = rec
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
def grow_old(out: Output, rec: SparseRecord, fits: float, size: float) -> None:
    features, z, count, _, metric, _ = rec
    for a in range(count):
        j, part = features[a], part_of(z[a] * z[a], metric[a])
        if part > 0.0:
            out.newness[j] = age(out.newness[j], fits, part)
            out.sizes[j] = follow_size(out.sizes[j], size, part)


@inlined
def predict(out: Output, rec: SparseRecord, now: Scratch) -> float:
    """Write the prediction of every member; returns that of their mean."""
    features, z, count, _, _, dim = rec
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
def update_products(out: Output, rec: SparseRecord, keeps: Array, moves: Array) -> None:
    """The products of members once each was multiplied by its `keep` and moved along the record, in its own metric."""
    features, z, count, _, metric, dim = rec
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
    s: Settings, out: Output, rec: SparseRecord, y: float, lengths: Lengths, now: Scratch, keeps: Array, moves: Array
) -> None:
    """One implicit step of every follower; see `followers.follow`."""
    features, z, count, norm2, metric, dim = rec
    _, typical, scaled, longer, ready = lengths
    length, spread = layout.LONGEST, out.scalars[layout.SPREAD]
    keeps[:], moves[:] = 1.0, 0.0
    for k in range(FOLLOWERS):
        e = length * now.gates[k] / max(typical, norm2)
        moves[k] = likelihood.implicit_move(s.kind, s.c, now.predictions[k], y, e, norm2, spread)
        keeps[k] = 1.0 / (1.0 + s.l2 * e)
        if scaled > 0.0:
            i = FOLLOWERS + k
            e = length * now.gates[i] / max(ready, scaled)
            moves[i] = likelihood.implicit_move(s.kind, s.c, now.predictions[i], y, e, longer, spread)
            keeps[i] = 1.0 / (1.0 + s.l2 * e)
        length *= layout.RATIO
    for i in range(2 * FOLLOWERS):
        moves[i] = within(moves[i], layout.HUGE)
    if s.l2 > 0.0:
        update_products(out, rec, keeps, moves)
    for i in range(2 * FOLLOWERS):
        out.kept[i] *= keeps[i]
    for a in range(count):
        j = features[a]
        for i in range(2 * FOLLOWERS):
            factor = out.kept[i] if j < dim else 1.0
            move = moves[i] * z[a] * (metric[a] if i >= FOLLOWERS else 1.0)
            out.thetas[j, i] = within(factor * out.thetas[j, i] + move, layout.FARTHEST) / factor


@inlined
def record_touched(out: Output, features: Array, count: int) -> None:
    """Append the features of this round to the trail."""
    touched, room = int(out.counters[TOUCHED]), len(out.trail)
    for a in range(count):
        out.trail[(touched + a) % room] = features[a]
    out.counters[TOUCHED] = touched + count


@inlined
def forget_copies(out: Output, member: int) -> None:
    """Forget all copies of this member."""
    out.partner[member] = NOBODY
    for i in range(len(out.partner)):
        if out.partner[i] == member:
            out.partner[i] = NOBODY


@inlined
def alike_since(out: Output, member: int, other: int) -> float:
    """How long the trail was when the two, or what both are copies of, were the same; −1 if that is not known."""
    if out.partner[member] == other:
        return out.since[member]
    if out.partner[other] == member:
        return out.since[other]
    if out.partner[member] == out.partner[other] != NOBODY:
        return min(out.since[member], out.since[other])
    return NOBODY


@inlined
def copy_leader(out: Output, dim: int, member: int, leader: int) -> None:
    """Set a member to the leader."""
    thetas, touched, room = out.thetas, int(out.counters[TOUCHED]), len(out.trail)
    since = alike_since(out, member, leader)
    if since >= 0.0 and touched - since < room:
        for step in range(int(since), touched):
            j = int(out.trail[step % room])
            thetas[j, member] = thetas[j, leader]
    else:
        for j in range(dim):
            thetas[j, member] = thetas[j, leader]
    if len(thetas) > dim:
        thetas[dim, member] = thetas[dim, leader]
    out.kept[member] = out.kept[leader]
    for i in range(len(out.kept)):
        out.products[member, i] = out.products[i, member] = out.products[leader, i]
    out.products[member, member] = out.products[leader, leader]
    forget_copies(out, member)
    out.partner[member], out.since[member] = leader, touched


@compiled
def mean_model(out: Output, dim: int) -> Array:
    """The weighted mean of all members."""
    mean = np.zeros(len(out.thetas))
    for j in range(len(mean)):
        for i in range(len(out.weights)):
            factor = out.kept[i] if j < dim else 1.0
            mean[j] += out.weights[i] * factor * out.thetas[j, i]
    return mean


@compiled
def take_snapshot(out: Output, dim: int, place: int, mean: Array) -> None:
    """Set the member at this place to a mean that was played."""
    forget_copies(out, place)
    for j in range(len(mean)):
        out.thetas[j, place] = mean[j]
    out.kept[place] = 1.0
    for i in range(len(out.kept)):
        product = 0.0
        for j in range(dim):
            product += mean[j] * out.kept[i] * out.thetas[j, i]
        out.products[place, i] = out.products[i, place] = product


@compiled
def refresh(out: Output, dim: int) -> None:
    """Multiply the factors out, and compute the products of all members from scratch."""
    members = len(out.kept)
    for i in range(members):
        for j in range(dim):
            out.thetas[j, i] *= out.kept[i]
        out.kept[i] = 1.0
        forget_copies(out, i)
    out.products[:] = 0.0
    for j in range(dim):
        for i in range(members):
            for k in range(i + 1):
                out.products[i, k] += out.thetas[j, i] * out.thetas[j, k]
    for i in range(members):
        for k in range(i):
            out.products[k, i] = out.products[i, k]
    out.counters[REFRESHED] = out.counters[TOUCHED]


@inlined
def is_stale(out: Output, dim: int) -> bool:
    """Whether digits may have been lost: a factor has all but vanished, or enough was touched to pay for a refresh."""
    if out.counters[TOUCHED] - out.counters[REFRESHED] > REFRESH * dim:
        return True
    return np.min(out.kept) < FADED
