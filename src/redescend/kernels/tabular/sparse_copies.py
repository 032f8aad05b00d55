"""Copies between the members of a sparse self-tuning learner, at the cost of what differs between them."""

from __future__ import annotations

import numpy as np

from redescend.kernels.compiler import compiled, inlined
from redescend.kernels.tabular.sparse_layout import REFRESHED, TOUCHED, Output
from redescend.numeric import Array

NOBODY = -1.0
FADED, REFRESH = 1e-100, 32.0
"""When factors are multiplied out; products are taken anew whenever so many times all entries were touched."""


@inlined
def note(out: Output, features: Array, count: int) -> None:
    """Write down which features this round touched."""
    touched, room = int(out.counters[TOUCHED]), len(out.trail)
    for a in range(count):
        out.trail[(touched + a) % room] = features[a]
    out.counters[TOUCHED] = touched + count


@inlined
def forget(out: Output, member: int) -> None:
    """Nobody is a copy of this member any more."""
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
def take_over(out: Output, dim: int, member: int, leader: int) -> None:
    """A member becomes what the leader is."""
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
    forget(out, member)
    out.partner[member], out.since[member] = leader, touched


@compiled
def mean_of(out: Output, dim: int) -> Array:
    """The mean of all members."""
    mean = np.zeros(len(out.thetas))
    for j in range(len(mean)):
        for i in range(len(out.weights)):
            factor = out.kept[i] if j < dim else 1.0
            mean[j] += out.weights[i] * factor * out.thetas[j, i]
    return mean


@compiled
def keep_mean(out: Output, dim: int, place: int, mean: Array) -> None:
    """The member at this place becomes a mean that was played."""
    forget(out, place)
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
    """Multiply the factors out, and take the products of all members anew."""
    members = len(out.kept)
    for i in range(members):
        for j in range(dim):
            out.thetas[j, i] *= out.kept[i]
        out.kept[i] = 1.0
        forget(out, i)
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
def stale(out: Output, dim: int) -> bool:
    """Whether digits may have been lost: a factor has all but vanished, or enough was touched to pay for a refresh."""
    if out.counters[TOUCHED] - out.counters[REFRESHED] > REFRESH * dim:
        return True
    return np.min(out.kept) < FADED
