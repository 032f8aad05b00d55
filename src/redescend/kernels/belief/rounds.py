"""The loop over records: each is judged by what was learned from those before it, and then learned from."""

from __future__ import annotations

import numpy as np

from redescend.kernels.belief.cells import find_cell, interpolate
from redescend.kernels.belief.hypotheses import (
    combine,
    filter_lost,
    filter_stuck,
    is_natural,
    learn_point,
    no_evidence,
    sigmoid,
    smooth_lost,
    spread_stuck,
)
from redescend.kernels.belief.layout import (
    ABOVE,
    ADJUSTED,
    AGE,
    ALL,
    BELOW,
    COUNTED,
    DECAYS,
    DUE,
    HIGHER,
    HUGE,
    INCREMENT,
    LAST,
    LEARN_RATE,
    LEVEL,
    LOST,
    LOWER,
    MEAN,
    NEAREST,
    NEGATIVE,
    OUTLIERS,
    POSITIVE,
    QUICK,
    RECENT,
    ROUNDS,
    STEADY,
    THRESHOLD,
    TOTAL,
    UNIT,
    WARM,
    YOUNG,
    Outputs,
    Records,
    State,
)
from redescend.kernels.belief.scale import (
    find_effect,
    learn_grid,
    learn_scale,
    learn_spread,
    log_scale,
    log_width,
    raise_scales,
    read_record,
    remember_features,
    standardize,
)
from redescend.kernels.compiler import kernel, part
from redescend.kernels.views import view
from redescend.numeric import Array


@part
def start_scale(size: float, numbers: Array) -> None:
    """Take the first residual for the scale, and a power of 2 near it, by which division is exact, for the unit."""
    numbers[UNIT] = 2.0 ** np.floor(np.log2(min(max(size, 1e-300), 1e300)))
    first = np.log(min(size / numbers[UNIT], HUGE))
    numbers[STEADY] = numbers[ADJUSTED] = numbers[QUICK] = first


@part
def divide_gap(target: float, prediction: float, unit: float) -> float:
    """The residual in its unit, a power of 2. The gap or the gap in its unit may overflow, but not both."""
    gap = target - prediction
    residual = gap / unit if abs(gap) < np.inf else target / unit - prediction / unit
    return min(max(residual, -HUGE), HUGE)


@part
def count_residual(sign: int, size: float, age: float, shared: Array, counts: Array) -> None:
    """Add a residual to both histograms; the recent one forgets, by counting later records more."""
    if age < YOUNG <= shared[COUNTED]:
        return
    shared[COUNTED] += 1.0
    most, least = DECAYS
    shared[INCREMENT] /= 1.0 - min(max(1.0 / shared[COUNTED], least), most)
    cell = find_cell(size)
    counts[RECENT, sign, cell] += shared[INCREMENT]
    if shared[TOTAL] >= WARM:
        counts[ALL, sign, cell] += 1.0


@part
def correct_ends(below: bool, above: bool, numbers: Array) -> None:
    """Learn how far the interval has to reach from whether a clean record was outside of it."""
    tail = 0.5 * (1.0 - LEVEL)
    numbers[LOWER] = max(numbers[LOWER] + LEARN_RATE * ((1.0 if below else 0.0) - tail), NEAREST)
    numbers[HIGHER] = max(numbers[HIGHER] + LEARN_RATE * ((1.0 if above else 0.0) - tail), NEAREST)


@part
def limit_to_sign(low: float, high: float, numbers: Array) -> tuple[float, float]:
    """The ends of an interval, without the side of 0 on which no target was believed, if it has another one."""
    if numbers[ROUNDS] >= YOUNG and numbers[NEGATIVE] != numbers[POSITIVE] and low < 0.0 < high:
        if numbers[NEGATIVE] > 0.0:
            high = 0.0
        else:
            low = 0.0
    return low, high


@kernel
def judge_rows(records: Records, first: int, state: State, centers: Array, out: Outputs, work: Array) -> int:
    """Judge records, beginning with the one at `first`, and learn from them, until densities have to be fitted.

    `work` has two rows for the features. Returns the place of the next record.
    """
    records, state, centers, out, work = view((records, state, centers, out, work))
    shared, record, standard = state.shared, work[0], work[1]
    for t in range(first, len(records.targets)):
        numbers, features = state.numbers[records.places[t]], state.features[records.places[t]]
        prediction, target = records.predictions[t], records.targets[t]
        rounds = numbers[ROUNDS]
        started = numbers[UNIT] > 0.0
        if not started and target != prediction:
            start_scale(abs(target - prediction), numbers)
        unit = numbers[UNIT] if numbers[UNIT] > 0.0 else 1.0
        residual = divide_gap(target, prediction, unit)
        smallest = raise_scales(numbers)
        size, sign = max(abs(residual), smallest), 1 if residual > 0.0 else 0
        read_record(records.X[t], prediction, features[MEAN], record)
        standardize(record, rounds, features, standard)
        copy = remember_features(record, rounds, features) and target == numbers[LAST]
        stuck = filter_stuck(rounds > 0.0 and target == numbers[LAST], copy, numbers, shared)
        effect = find_effect(standard, features)
        scale, width = np.exp(log_scale(numbers, effect)), np.exp(log_width(numbers, effect))
        plain = interpolate(min(size / scale, HUGE), state.log_odds[sign], centers)
        natural = is_natural(target, features[MEAN, features.shape[1] - 1], numbers)
        if natural:
            plain = max(plain, no_evidence(shared[OUTLIERS]))
        numbers[LOST] = filter_lost(numbers[LOST], plain, shared[OUTLIERS])
        log_odds = combine(plain, numbers[LOST], shared[OUTLIERS], stuck)
        low = prediction - shared[BELOW] * np.exp(numbers[LOWER]) * width * unit
        high = prediction + shared[ABOVE] * np.exp(numbers[HIGHER]) * width * unit
        clean = sigmoid(log_odds)
        out.clean_log_odds[t] = log_odds
        out.low[t], out.high[t] = limit_to_sign(low, high, numbers)
        out.scale[t], out.stuck[t], out.suspect[t] = scale * unit, stuck, clean <= shared[THRESHOLD]
        if log_odds > 0.0:
            correct_ends(target < low, target > high, numbers)
            if target != 0.0:
                numbers[POSITIVE if target > 0.0 else NEGATIVE] = 1.0
        if rounds > 0.0:
            learn_grid(target, numbers)
            learn_spread(target, numbers)
            if not copy:
                learn_point(target, record[len(record) - 1], numbers)
        numbers[LAST] = target
        # The first residual is the first scale. A repeated record, a target at a point mass and a size of 0 say nothing
        # about scales.
        if started and not copy and not natural and size > 0.0:
            count_residual(sign, size / scale, numbers[AGE], shared, state.counts)
            learn_scale(size, standard, effect, numbers, features)
        numbers[ROUNDS] = rounds + 1.0
        shared[TOTAL] += 1.0
        if shared[TOTAL] >= shared[DUE]:
            return t + 1
    return len(records.targets)


@kernel
def find_scales(records: Records, state: State, work: Array, out: Array) -> None:
    """Write the scale of every residual, and the ends of intervals below and above per quantile; nothing is learned.

    `work` has a row for the features, and at least one for standardised features, those of the last records. `out` has
    three rows for the records.
    """
    records, state, work, out = view((records, state, work, out))
    record = work[0]
    for t in range(len(records.targets)):
        standard = work[1 + t % (len(work) - 1)]
        numbers, features = state.numbers[records.places[t]], state.features[records.places[t]]
        read_record(records.X[t], records.predictions[t], features[MEAN], record)
        standardize(record, numbers[ROUNDS], features, standard)
        effect = find_effect(standard, features)
        scale, width = np.exp(log_scale(numbers, effect)), np.exp(log_width(numbers, effect))
        unit = numbers[UNIT] if numbers[UNIT] > 0.0 else 1.0
        out[0, t], out[1, t] = scale * unit, np.exp(numbers[LOWER]) * width * unit
        out[2, t] = np.exp(numbers[HIGHER]) * width * unit


@kernel
def limit_to_signs(low: Array, high: Array, places: Array, state: State) -> None:
    """Limit intervals to the side of 0 on which targets were believed."""
    low, high, places, state = view((low, high, places, state))
    for t in range(len(low)):
        low[t], high[t] = limit_to_sign(low[t], high[t], state.numbers[places[t]])


@kernel
def look_up(residuals: Array, scales: Array, log_odds: Array, centers: Array, out: Array) -> None:
    """Write the log-odds that records with these residuals are clean, from a table by sign and cell."""
    residuals, scales, log_odds, centers, out = view((residuals, scales, log_odds, centers, out))
    for t in range(len(residuals)):
        sign = 1 if residuals[t] > 0.0 else 0
        out[t] = interpolate(min(abs(residuals[t]) / scales[t], HUGE), log_odds[sign], centers)


@kernel
def excuse_points(records: Records, state: State, outliers: float, log_odds: Array) -> None:
    """Replace the log-odds of records at natural point masses by those of a record without a residual, if lower."""
    records, state, log_odds = view((records, state, log_odds))
    for t in range(len(records.targets)):
        numbers, features = state.numbers[records.places[t]], state.features[records.places[t]]
        if is_natural(records.targets[t], features[MEAN, features.shape[1] - 1], numbers):
            log_odds[t] = max(log_odds[t], no_evidence(outliers))


@kernel
def combine_all(log_odds: Array, targets: Array, stuck: Array, outliers: float) -> None:
    """Replace the log-odds of all records of one key, and the probability that its sensor was stuck, by the final ones.

    `log_odds` has a second row for the work.
    """
    log_odds, targets, stuck = view((log_odds, targets, stuck))
    lost = log_odds[1]
    smooth_lost(log_odds[0], outliers, lost)
    spread_stuck(targets, stuck)
    for t in range(len(targets)):
        log_odds[0, t] = combine(log_odds[0, t], lost[t], outliers, stuck[t])
