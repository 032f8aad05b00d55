"""Hypotheses about several records: the model is lost, a sensor is stuck, or many targets have one value by nature.

After a jump of the stream, every record is an outlier to a model of the past. Outliers that come by chance seldom
follow each other, so a burst of them says that the model is lost. The price: a burst of errors is not found.

A value that many targets have exactly is a point mass: zero incomes, balances or rainfall, top-coded prices. It is
natural where it is at the edge of what is predicted: records have it where predictions are near it or beyond it, as if
targets were cut off there. A residual then says nothing against them. Wrong targets that are all equal, such as a code
for a missing value, come with any prediction, and are not as many.
"""

from __future__ import annotations

import numpy as np

from redescend.kernels.belief.layout import (
    COMMON_POINT,
    FEWEST,
    FIRST_CHANCES,
    FIRST_LOST,
    FIRST_TIES,
    HITS,
    LAST,
    LONGEST_RUN,
    LOSING,
    NEARER,
    NEXT_CHANCES,
    NEXT_TIES,
    POINT,
    POINT_LEVEL,
    RARE_POINT,
    RAREST,
    REPEATS,
    RUNS,
    SINCE,
    STAYING,
    STICKING,
    STUCK,
)
from redescend.kernels.compiler import part
from redescend.numeric import Array


@part
def sigmoid(log_odds: float) -> float:
    return 1.0 / (1.0 + np.exp(-log_odds))


@part
def no_evidence(outliers: float) -> float:
    """The log-odds of a record of which only the share of outliers is known."""
    share = min(max(outliers, RAREST), 0.5)
    return np.log(1.0 - share) - np.log(share)


@part
def filter_lost(lost: float, log_odds: float, outliers: float) -> float:
    """The probability that the model is lost, after another record."""
    before = STAYING * lost + LOSING * (1.0 - lost)
    odds = before * sigmoid(-log_odds) / max(outliers, RAREST)
    return odds / (odds + 1.0 - before)


@part
def combine(log_odds: float, lost: float, outliers: float, stuck: float) -> float:
    """The log-odds of a clean record: an outlier may be clean if the model is lost, and what is stuck is not clean."""
    share = max(outliers, RAREST)
    good = lost * (1.0 - share) + (1.0 - lost) * sigmoid(log_odds)
    bad = lost * share + (1.0 - lost) * sigmoid(-log_odds)
    return np.log(good * (1.0 - stuck)) - np.log(bad * (1.0 - stuck) + stuck)


@part
def filter_stuck(tie: bool, copy: bool, numbers: Array, shared: Array) -> float:
    """The probability that the sensor is stuck, after a record whose target equals the last one, or does not.

    A copy of the whole last record says nothing. Natural runs each have a probability of their own to continue: the
    longer one is, the likelier it continues.
    """
    if copy:
        return sigmoid(numbers[STUCK]) if numbers[REPEATS] > 0.0 else 0.0
    if tie:
        repeats = numbers[REPEATS]
        if repeats == 0.0:
            natural = shared[FIRST_TIES] / shared[FIRST_CHANCES]
            numbers[STUCK] = np.log(STICKING)
        else:
            natural = (RUNS * shared[NEXT_TIES] / shared[NEXT_CHANCES] + repeats) / (RUNS + repeats)
        numbers[STUCK] = min(numbers[STUCK] - np.log(natural), 36.0)
        numbers[REPEATS] = repeats + 1.0
        return sigmoid(numbers[STUCK])
    if numbers[REPEATS] > 0.0:
        natural = sigmoid(-numbers[STUCK])
        shared[FIRST_TIES] += natural
        shared[FIRST_CHANCES] += natural
        shared[NEXT_TIES] += natural * min(numbers[REPEATS] - 1.0, LONGEST_RUN - 1.0)
        shared[NEXT_CHANCES] += natural * min(numbers[REPEATS], LONGEST_RUN)
    else:
        shared[FIRST_CHANCES] += 1.0
    numbers[REPEATS] = 0.0
    return 0.0


@part
def smooth_lost(log_odds: Array, outliers: float, out: Array) -> None:
    """Write the probability that the model was lost at every record, from the records before and after it."""
    rows, lost = len(log_odds), FIRST_LOST
    for t in range(rows):
        lost = filter_lost(lost, log_odds[t], outliers)
        out[t] = lost
    if_lost = if_not = 0.5
    for t in range(rows - 1, -1, -1):
        joint = out[t] * if_lost
        out[t] = joint / (joint + (1.0 - out[t]) * if_not)
        ratio = sigmoid(-log_odds[t]) / max(outliers, RAREST)
        before = STAYING * ratio * if_lost + (1.0 - STAYING) * if_not
        before_not = LOSING * ratio * if_lost + (1.0 - LOSING) * if_not
        if_lost, if_not = before / (before + before_not), before_not / (before + before_not)


@part
def spread_stuck(targets: Array, stuck: Array) -> None:
    """Let what a run of equal targets says at its end hold for all its records but the first."""
    end = len(targets) - 1
    while end > 0:
        start, top = end, stuck[end]
        while start > 0 and targets[start - 1] == targets[start]:
            start -= 1
            top = max(top, stuck[start + 1])
        for t in range(start + 1, end + 1):
            stuck[t] = top
        end = start - 1


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
