"""The state of one output of the sparse self-tuning learner, one row of floats, and its parts.

Actions are kept feature by feature, with what is known of the feature behind them: a non-zero touches one place in
memory. They are kept up to a factor for each member, `kept`, but for the intercept: l2 is one multiplication a member.
A follower that takes the leader's action over every other round copies only what was touched since it last did: `trail`
are the features touched last, `partner` is whom it took over, and `since` how long the trail was then.
"""

from __future__ import annotations

from typing import NamedTuple

from redescend.kernels.compiler import inlined
from redescend.kernels.selftuning import layout
from redescend.numeric import Array

# features whose scale is known; how many entries were touched, and how many when products were last taken anew
(KNOWN, TOUCHED, REFRESHED) = range(3)
COUNTERS = 3


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


def length(width: int, dim: int, members: int, scales: int, rates: int) -> int:
    """How many floats there are."""
    features = width * (members + 5) + dim
    return features + members * (members + 4) + scales * rates + layout.NORMS + COUNTERS + layout.SCALARS


def parts(state: Array, width: int, dim: int, members: int, scales: int, rates: int) -> Output:
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


parts_of = inlined(parts)
