"""The loop over records: each is judged by what was learned from those before it, and then learned from."""

from __future__ import annotations

import numpy as np

from redescend.kernels.belief.cells import find_cell, interpolate
from redescend.kernels.belief.hypotheses import combine, filter_lost, filter_stuck, sigmoid, smooth_lost, spread_stuck
from redescend.kernels.belief.layout import (
    ABOVE,
    ADJUSTED,
    ALL,
    BELOW,
    COUNTED,
    DECAYS,
    DUE,
    FALSE_ALARMS,
    FINAL_ITERATIONS,
    GROWTH,
    HIGHER,
    HUGE,
    INCREMENT,
    ITERATIONS,
    LAST,
    LEARN_RATE,
    LEVEL,
    LONGEST,
    LOST,
    LOWER,
    MEAN,
    OUTLIERS,
    QUICK,
    RECENT,
    ROUNDS,
    SHORTEST,
    STEADY,
    THRESHOLD,
    UNIT,
    WARM,
    Outputs,
    State,
    Tables,
)
from redescend.kernels.belief.mixture import find_quantiles, find_threshold, fit_densities
from redescend.kernels.belief.scale import (
    find_effect,
    learn_scale,
    log_scale,
    read_record,
    remember_features,
    standardize,
)
from redescend.kernels.compiler import compiled, inlined
from redescend.numeric import Array


@inlined
def power_of_two(size: float) -> float:
    """The largest power of 2 that is no larger: dividing by it is exact."""
    return 2.0 ** np.floor(np.log2(size))


@compiled
def fit_recent(state: State, tables: Tables) -> None:
    """Fit the densities to recent records, and what follows from them."""
    numbers, counts = state.numbers, state.counts[RECENT]
    counts /= numbers[INCREMENT]
    numbers[INCREMENT] = 1.0
    numbers[OUTLIERS] = fit_densities(
        counts, tables, ITERATIONS, state.scales, state.outliers, state.clean, state.log_odds
    )
    numbers[THRESHOLD] = find_threshold(state.clean, state.log_odds, counts, FALSE_ALARMS)
    numbers[BELOW], numbers[ABOVE] = find_quantiles(state.clean, counts, tables.edges, LEVEL)
    rounds = numbers[ROUNDS]
    numbers[DUE] = rounds + min(max(SHORTEST, rounds // GROWTH), LONGEST)


@inlined
def count_residual(sign: int, size: float, state: State) -> None:
    """Add a residual to both histograms; the recent one forgets, by counting later records more."""
    numbers = state.numbers
    numbers[COUNTED] += 1.0
    most, least = DECAYS
    numbers[INCREMENT] /= 1.0 - min(max(1.0 / numbers[COUNTED], least), most)
    cell = find_cell(size)
    state.counts[RECENT, sign, cell] += numbers[INCREMENT]
    if numbers[ROUNDS] >= WARM:
        state.counts[ALL, sign, cell] += 1.0


@inlined
def judge_one(
    residual: float, scale: float, tie: bool, repeated: bool, state: State, tables: Tables
) -> tuple[float, float]:
    """The log-odds that a record is clean, and the probability that its sensor is stuck."""
    numbers = state.numbers
    sign = 1 if residual > 0.0 else 0
    plain = interpolate(min(abs(residual) / scale, HUGE), state.log_odds[sign], tables.centers)
    numbers[LOST] = filter_lost(numbers[LOST], plain, numbers[OUTLIERS])
    stuck = filter_stuck(tie, tie and repeated, numbers)
    return combine(plain, numbers[LOST], numbers[OUTLIERS], stuck), stuck


@compiled
def judge_rows(X: Array, predictions: Array, targets: Array, state: State, tables: Tables, out: Outputs) -> None:
    """Judge every record, and then learn from it."""
    numbers, features = state.numbers, state.features
    record, standard = np.empty(features.shape[1]), np.empty(features.shape[1])
    for t in range(len(targets)):
        prediction, target = predictions[t], targets[t]
        rounds = numbers[ROUNDS]
        started = numbers[UNIT] > 0.0
        if not started and target != prediction:
            numbers[UNIT] = power_of_two(min(max(abs(target - prediction), 1e-300), 1e300))
            first = np.log(min(abs(target - prediction), HUGE * numbers[UNIT]) / numbers[UNIT])
            numbers[STEADY] = numbers[ADJUSTED] = numbers[QUICK] = first
        unit = numbers[UNIT] if numbers[UNIT] > 0.0 else 1.0
        residual = min(max(target / unit - prediction / unit, -HUGE), HUGE)
        read_record(X[t], prediction, features[MEAN], record)
        standardize(record, rounds, features, standard)
        repeated = remember_features(record, rounds, features)
        tie = rounds > 0.0 and target == numbers[LAST]
        effect = find_effect(standard, features)
        scale = np.exp(log_scale(numbers, effect))
        log_odds, stuck = judge_one(residual, scale, tie, repeated, state, tables)
        low = prediction - numbers[BELOW] * np.exp(numbers[LOWER]) * scale * unit
        high = prediction + numbers[ABOVE] * np.exp(numbers[HIGHER]) * scale * unit
        clean = sigmoid(log_odds)
        out.clean_log_odds[t], out.low[t], out.high[t] = log_odds, low, high
        out.scale[t], out.stuck[t], out.suspect[t] = scale * unit, stuck, clean <= numbers[THRESHOLD]
        tail = 0.5 * (1.0 - LEVEL)
        numbers[LOWER] += LEARN_RATE * clean * ((1.0 if target < low else 0.0) - tail)
        numbers[HIGHER] += LEARN_RATE * clean * ((1.0 if target > high else 0.0) - tail)
        numbers[LAST] = target
        # The first residual is the first scale. A repeated record and a residual of 0 say nothing about scales.
        if started and not (tie and repeated) and residual != 0.0:
            count_residual(1 if residual > 0.0 else 0, abs(residual) / scale, state)
            learn_scale(abs(residual), standard, effect, numbers, features)
        numbers[ROUNDS] = rounds + 1.0
        if numbers[ROUNDS] >= numbers[DUE]:
            fit_recent(state, tables)


@compiled
def find_scales(X: Array, predictions: Array, state: State) -> Array:
    """The scale of the residual of every record; nothing is learned."""
    out = np.empty(len(predictions))
    record, standard = np.empty(state.features.shape[1]), np.empty(state.features.shape[1])
    unit = state.numbers[UNIT] if state.numbers[UNIT] > 0.0 else 1.0
    for t in range(len(predictions)):
        read_record(X[t], predictions[t], state.features[MEAN], record)
        standardize(record, state.numbers[ROUNDS], state.features, standard)
        out[t] = unit * np.exp(log_scale(state.numbers, find_effect(standard, state.features)))
    return out


@compiled
def look_up(residuals: Array, scales: Array, log_odds: Array, centers: Array) -> Array:
    """The log-odds that records with these residuals are clean, from a table by sign and cell."""
    out = np.empty(len(residuals))
    for t in range(len(residuals)):
        sign = 1 if residuals[t] > 0.0 else 0
        out[t] = interpolate(min(abs(residuals[t]) / scales[t], HUGE), log_odds[sign], centers)
    return out


@compiled
def find_widths(state: State, edges: Array, level: float) -> tuple[float, float]:
    """How far an interval of this level reaches below and above a prediction, in scales."""
    low, high = find_quantiles(state.clean, state.counts[RECENT], edges, level)
    return low * np.exp(state.numbers[LOWER]), high * np.exp(state.numbers[HIGHER])


@compiled
def fit_all(state: State, tables: Tables) -> tuple[Array, float]:
    """Fit the densities to the histogram of all records; returns a table of log-odds and the share of outliers."""
    scales, shares = state.scales.copy(), state.outliers.copy()
    clean, log_odds = np.empty_like(state.clean), np.empty_like(state.log_odds)
    outliers = fit_densities(state.counts[ALL], tables, FINAL_ITERATIONS, scales, shares, clean, log_odds)
    return log_odds, outliers


@compiled
def combine_all(log_odds: Array, targets: Array, stuck: Array, outliers: float) -> tuple[Array, Array]:
    """The final log-odds of every record, and the final probability that its sensor was stuck."""
    lost, held = smooth_lost(log_odds, outliers), spread_stuck(targets, stuck)
    out = np.empty(len(log_odds))
    for t in range(len(out)):
        out[t] = combine(log_odds[t], lost[t], outliers, held[t])
    return out, held
