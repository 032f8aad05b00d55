"""A value that many targets have exactly: zero incomes, balances or rainfall, top-coded prices.

Such a point mass is natural where it is at the edge of what is predicted: records have it where predictions are near
it or beyond it, as if targets were cut off there. A residual then says nothing against them. Wrong targets that are all
equal, such as a code for a missing value, come with any prediction, and are not as many.
"""

from __future__ import annotations

from redescend.kernels.belief.layout import (
    COMMON_POINT,
    FEWEST,
    HITS,
    LAST,
    NEARER,
    POINT,
    POINT_LEVEL,
    RARE_POINT,
    SINCE,
)
from redescend.kernels.compiler import part
from redescend.numeric import Array


@part
def is_natural(target: float, mean: float, numbers: Array) -> bool:
    """Whether a target is at a natural point mass; `mean` is that of all predictions."""
    if target != numbers[POINT] or numbers[HITS] < max(FEWEST, RARE_POINT * numbers[SINCE]):
        return False
    if numbers[HITS] >= COMMON_POINT * numbers[SINCE]:
        return True
    side = 1.0 if mean > target else -1.0
    return side * (numbers[POINT_LEVEL] - target) < NEARER * abs(mean - target)


@part
def learn_point(target: float, prediction: float, numbers: Array) -> None:
    """Count a target at the point, or take a target that was repeated for the point, if the one so far is rare.

    A run of equal targets counts once: a sensor that is stuck makes no point mass.
    """
    if target == numbers[LAST]:
        if target != numbers[POINT] and numbers[HITS] <= RARE_POINT * numbers[SINCE]:
            numbers[POINT], numbers[POINT_LEVEL] = target, prediction
            numbers[HITS] = numbers[SINCE] = 1.0
        return
    numbers[SINCE] += 1.0
    if target == numbers[POINT]:
        numbers[HITS] += 1.0
        numbers[POINT_LEVEL] += (prediction - numbers[POINT_LEVEL]) / numbers[HITS]
