"""What is new in a record: features that have hardly ever been believed.

A feature that is seldom there, such as a rare level of a category, may matter much. When it comes, the residual is as
large as its effect: to a gate that knows the other features well the record looks like an outlier, for ever. So a
record is judged by how much of it is new. Of a feature two numbers are kept: how new it is, 1 at first and less with
every record of it that fits; and the size of the residuals with it, a running median. A record of which the share ν is
new is clean with the density (1 − ν)·q + ν·q', where q' is that of residuals as wide as those of its new features.
Followers with a step for each feature make that of new ones longer: what is new explains what is left.

Nothing stands out while everything is new. So how new a feature is counts from how new the stream itself is.
"""

from __future__ import annotations

from redescend.kernels.compiler import inlined, summing
from redescend.kernels.selftuning.layout import NEW
from redescend.numeric import Array

NEWNESS, SIZE = range(2)
"""The rows of what is known of features."""

HALF, UNFIT = 0.5, 0.01
"""A record that fits makes its features this much less new; one that does not, a hundredth of it."""

SLOWLY = 0.25
"""The stream grows old this much slower than a feature that is in every record."""

KNOWN = 1e-6
"""What is less new than this is known, and remains so."""

LONGER = 16.0
"""The step of a new feature is this many times longer, and that of the others as it was."""

STEP = 0.4
"""By how much of itself the size of residuals with a feature moves to their median in one record."""


@inlined
def part_of(square: float, metric: float) -> float:
    """How much of a feature is in a record: x²/mean x², at most 1; 1 too while its scale is not known."""
    if square == 0.0:
        return 0.0
    return min(1.0, square * metric) if metric > 0.0 else 1.0


@inlined
def stands_out(newness: float, scalars: Array) -> float:
    """How much newer a feature is than the stream."""
    return max(newness - scalars[NEW], 0.0)


@inlined
def share_of(new: float, present: float, typical: float, norm2: float) -> float:
    """The share of a record that is new. Records that are too long are not only new: a scaled one stays an outlier."""
    return new / present * min(1.0, typical / norm2) ** 3 if present > 0.0 else 0.0


@inlined
def longer_by(newness: float, share: float, metric: float, scalars: Array) -> float:
    """What is added to the metric of a feature that is newer than the record as a whole."""
    return LONGER * max(stands_out(newness, scalars) - share, 0.0) * metric


@summing
def anything(X: Array, row: int, news: Array) -> bool:
    """Whether a feature of the record is not known for good."""
    total = 0.0
    for j in range(X.shape[1]):
        total += abs(X[row, j]) * news[NEWNESS, j]
    return total > 0.0


@inlined
def look(
    X: Array, row: int, norm2: float, typical: float, scaled: float, news: Array, scalars: Array, metric: Array
) -> tuple[float, float, float]:
    """The share ν of the record that is new, the size of residuals with it, and Σ x_j²·metric_j with longer steps.

    The metric of new features is made longer.
    """
    new = present = wide = 0.0
    for j in range(len(metric)):
        part = part_of(X[row, j] * X[row, j], metric[j])
        out = part * stands_out(news[NEWNESS, j], scalars)
        present += part
        new += out
        wide += out * news[SIZE, j]
    if new == 0.0:
        return 0.0, 0.0, scaled
    for j in range(len(metric)):
        more = longer_by(news[NEWNESS, j], new / present, metric[j], scalars)
        metric[j] += more
        scaled += more * X[row, j] * X[row, j]
    return share_of(new, present, typical, norm2), wide / new, scaled


@inlined
def age(newness: float, fits: float, part: float) -> float:
    """How new something is after a record with this part of it, believed so much."""
    newness *= 1.0 - HALF * (fits + UNFIT * (1.0 - fits)) * part
    return newness if newness > KNOWN else 0.0


@inlined
def follow_size(before: float, size: float, part: float) -> float:
    """The size of residuals with a feature, one step nearer to their median."""
    if before == 0.0:
        return size
    step = 1.0 + STEP * part
    return before * step if size > before else before / step


@inlined
def grow_old(X: Array, row: int, fits: float, size: float, metric: Array, news: Array) -> None:
    """After a record that was believed so much by what is known of it, with this residual."""
    for j in range(len(metric)):
        part = part_of(X[row, j] * X[row, j], metric[j])
        if part > 0.0:
            news[NEWNESS, j] = age(news[NEWNESS, j], fits, part)
            news[SIZE, j] = follow_size(news[SIZE, j], size, part)
