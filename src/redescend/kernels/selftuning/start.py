"""The start: at records 1, 2, 4, 8, 16 and, with numbers at order 2, 32 everything begins again, from better units.

What is known of the noise is kept the last time, so that the first records are judged by it.
"""

from __future__ import annotations

from typing import Any

from redescend.kernels.compiler import part, rare, shared
from redescend.kernels.selftuning.covariance import deviation, open_feature, reset
from redescend.kernels.selftuning.judging import SCALE_LEAST, SCALE_MOST
from redescend.kernels.selftuning.layout import (
    AGE,
    BOTTOM,
    CENTRE,
    CLEAN,
    COMMON,
    CONSTANT,
    COUNT,
    CREDIT,
    CURVATURE,
    DOUBT,
    DUE,
    EVIDENCE,
    FAR,
    FEW,
    FLIPS,
    FULL,
    INFORMATION,
    KNOWN,
    LABEL_PRIOR,
    LABELS,
    LAST,
    LEAD,
    LEVEL,
    LOW,
    MEAN,
    MEMBERS,
    MIDDLE,
    NEAR,
    NOISE,
    ODDS,
    ORIGIN,
    OUT,
    POSITIVE,
    PRIOR,
    RATE,
    RING,
    SCALES,
    SEEN,
    SINCE,
    SIZE,
    SMALLEST,
    SPREAD,
    SQUARE,
    STORED_AGE,
    STREAK,
    STRETCH,
    TARGET,
    TOP,
    TYPICAL,
    UNIT,
    USUALLY_FLIPPED,
    VARIANCE,
    Config,
    Loss,
    State,
    Work,
    ring_size,
)
from redescend.kernels.selftuning.members import first_weight
from redescend.kernels.selftuning.noise import NEAR_START, forget_scales, reset_mirrors
from redescend.kernels.selftuning.prior import LABEL_CONSTANT, OPEN_START, new_variance, prior_variance
from redescend.kernels.selftuning.units import (
    LEAST,
    cut,
    first_median,
    fits_level,
    in_unit,
    least_median,
    power_of_two,
    upper_median,
)
from redescend.numeric import Array

RATE_START = 0.15
"""The share of outliers before anything was seen."""

FIRST_SNAPSHOT = 62.0


@rare
def typical_unit(column: int, count: int, unit: float, ring: Array, values: Array) -> float:
    """The power of two near the median of the stored values that are not 0, or the unit so far if there is none."""
    n = 0
    for i in range(count):
        if abs(ring[i, column]) >= LEAST:
            values[n] = abs(ring[i, column])
            n += 1
    return power_of_two(upper_median(values, n)) if n else unit


@rare
def choose_units(labels: bool, count: int, state: State, values: Array) -> None:
    """Units of all features that have one, and of the target. A few absurd values among the first do not matter."""
    unit, ring = state.feature[UNIT], state.ring
    if not labels:
        state.scalar[TARGET] = typical_unit(0, count, state.scalar[TARGET], ring, values)
    for j in range(len(unit)):
        if unit[j] > 0.0:
            unit[j] = typical_unit(2 + j, count, unit[j], ring, values)


@part
def measure_targets(loss: Loss, targets: Array, count: int, constant: int, values: Array) -> Any:
    """The origin of the targets, which is 0 without a constant feature, and their typical distance from it."""
    if loss.family == LABELS:
        return 0.0, 1.0
    for i in range(count):
        values[i] = targets[i]
    origin, n = least_median(values, count) if constant >= 0 else 0.0, 0
    for i in range(count):
        if targets[i] != origin:
            values[n] = abs(targets[i] - origin)
            n += 1
    return origin, least_median(values, n) if n else max(abs(origin), SMALLEST)


@shared
def begin_noise(loss: Loss, size: float, state: State) -> None:
    """The prior of the noise: of shares of flipped labels, or of scales, outliers and mirrored records."""
    cells, scalar = state.cells, state.scalar
    if loss.family == LABELS:
        scalar[RATE] = 0.0
        for n in range(len(LABEL_PRIOR)):
            cells[n] = LABEL_PRIOR[n]
            scalar[RATE] += FLIPS[n % len(FLIPS)] * LABEL_PRIOR[n]
        return
    for k in range(SCALES):
        cells[k] = 1.0 / SCALES
    reset_mirrors(cells, scalar)
    scalar[LOW], scalar[RATE] = size * 2.0 ** (-SCALES // 2), RATE_START
    scalar[FAR], scalar[NEAR] = size, NEAR_START


@rare
def least_value(j: int, count: int, state: State) -> float:
    """The value of a feature, in its unit, that is nearest to 0 in the stored records."""
    unit, ring = state.feature[UNIT, j], state.ring
    least = in_unit(ring[0, 2 + j], unit)
    for i in range(1, count):
        value = in_unit(ring[i, 2 + j], unit)
        if abs(value) < abs(least):
            least = value
    return least


@rare
def find_constant(labels: bool, count: int, state: State) -> int:
    """The last feature that has the same value other than 0 in most of several records, and fits in all; or -1.

    The intercept of numbers is constant in a single record, too.
    """
    constant = -1
    for j in range(state.feature.shape[1]):
        several = 0 if j == state.scalar[CONSTANT] and not labels else 2
        level, same, fits = least_value(j, count, state), 0, True
        for i in range(count):
            value = in_unit(state.ring[i, 2 + j], state.feature[UNIT, j])
            same += value == level
            fits &= fits_level(value, level)
        if fits and level != 0.0 and 2 * same > max(count, several):
            constant = j
    return constant


@rare
def measure_feature(j: int, count: int, prior: float, config: Config, state: State, values: Array) -> None:
    """Centre, mean, mean square and prior variance of a feature in the stored records.

    A feature that always has the same value has no mean square, until it has another one.
    """
    feature, ring, constant = state.feature, state.ring, int(state.scalar[CONSTANT])
    full, present, n, m = config.covariance.order == FULL, 0, 0, 0
    for i in range(count):
        value = in_unit(ring[i, 2 + j], feature[UNIT, j])
        present += value == value
        if value == value and value != 0.0:
            values[n] = value
            n += 1
    middle = first_median(values, n) if n else 0.0
    feature[CENTRE, j] = centre = middle if constant >= 0 and j != constant and 2 * n > present else 0.0
    feature[MEAN, j] = middle * n / present if full and n else middle
    for i in range(count):
        away = deviation(in_unit(ring[i, 2 + j], feature[UNIT, j]), centre)
        if away != 0.0:
            values[m] = away * away
            m += 1
    feature[COUNT, j] = m if full and config.loss.family == LABELS else n
    feature[SQUARE, j] = max(2.0 * upper_median(values, m), SMALLEST) if m else 0.0
    if config.loss.family == LABELS:
        prior = LABEL_CONSTANT * state.scalar[KNOWN] if j == constant else prior
    elif 2 * m < count:  # a feature that is mostly 0 may be rare and right
        prior = OPEN_START * state.scalar[SIZE] ** 2
    feature[PRIOR, j] = prior / (state.scalar[KNOWN] * feature[SQUARE, j] * (m / count)) if m else 0.0


@rare
def begin(config: Config, state: State, work: Work) -> None:
    """Forget everything but the stored records, and measure features and targets in them."""
    theta, scalar, ring, values = state.theta, state.scalar, state.ring, work.clean
    dim, count = theta.shape[1], min(int(scalar[LAST]), ring_size(config.covariance))
    unit = scalar[TARGET]
    choose_units(config.loss.family == LABELS, count, state, values)
    constant = find_constant(config.loss.family == LABELS, count, state)
    level = least_value(constant, count, state) if constant >= 0 else 0.0
    for i in range(count):
        work.outlier[i] = cut(ring[i, 0] / scalar[TARGET])
    origin, size = measure_targets(config.loss, work.outlier, count, constant, values)
    for i in range(MEMBERS):
        for j in range(dim):
            theta[i, j] = 0.0
        if constant >= 0:
            theta[i, constant] = origin / level
        state.weight[i], state.played[i] = first_weight(config.loss, i), 1.0 if i == ORIGIN else 0.0
        state.scale[i] = size
    scalar[SEEN] = scalar[AGE] = scalar[STORED_AGE] = scalar[LEAD] = scalar[OUT] = scalar[CREDIT] = 0.0
    scalar[TYPICAL], scalar[STREAK], scalar[USUALLY_FLIPPED], scalar[POSITIVE] = 1.0, 0.0, 0.0, 0.5
    scalar[CONSTANT], scalar[DUE], scalar[SIZE], scalar[CLEAN] = constant, FIRST_SNAPSHOT, size, 1.0
    scalar[LEVEL] = level
    scalar[BOTTOM], scalar[TOP] = origin - size, origin + size
    if count >= FEW:  # predictions have no sign that no stored target has
        lowest = highest = 0.0
        for i in range(count):
            lowest, highest = min(lowest, work.outlier[i]), max(highest, work.outlier[i])
        scalar[BOTTOM] = max(scalar[BOTTOM], 0.0) if lowest == 0.0 else scalar[BOTTOM]
        scalar[TOP] = min(scalar[TOP], 0.0) if highest == 0.0 else scalar[TOP]
    scalar[COMMON], scalar[VARIANCE], scalar[STRETCH] = size, 0.0, 1.0
    scalar[INFORMATION] = scalar[CURVATURE] = scalar[MIDDLE] = 0.0
    scalar[ODDS], scalar[SINCE], scalar[DOUBT], scalar[EVIDENCE] = 1.0, 0.0, 1.0, 1.0
    scalar[SPREAD] = scalar[NOISE] = size
    if count < RING:
        begin_noise(config.loss, size, state)
    else:
        scalar[LOW] = min(max(scalar[LOW] * unit / scalar[TARGET], SCALE_LEAST), SCALE_MOST)
        scalar[FAR] = min(max(scalar[FAR] * unit / scalar[TARGET], SCALE_LEAST), SCALE_MOST)
        forget_scales(state.cells)
    prior = prior_variance(config, scalar[KNOWN]) * size * size
    for j in range(dim):
        measure_feature(j, count, prior, config, state, values)
    reset(config.covariance, state.P, state.feature[PRIOR], 1.0)


@rare
def add_features(config: Config, state: State, work: Work) -> None:
    """Squares and prior variances of features that have their first value, or their first other one."""
    feature, scalar = state.feature, state.scalar
    prior, often = new_variance(config, scalar[KNOWN]), max(1.0 / (scalar[SEEN] + 1.0), 1.0 / FEW)
    for j in range(len(work.x)):
        if feature[SQUARE, j] == 0.0 and work.centred[j] != 0.0:
            square = max(work.centred[j] * work.centred[j], SMALLEST)
            feature[SQUARE, j] = square
            if config.covariance.order != FULL:
                feature[MEAN, j] = work.x[j]
            feature[PRIOR, j] = prior * scalar[SIZE] ** 2 / (scalar[KNOWN] * square * often)
            open_feature(config.covariance, state.P, j, feature[PRIOR, j])
            open_feature(config.covariance, state.stored, j, feature[PRIOR, j])
