"""One round: predict a record, judge it, and learn from it."""

from __future__ import annotations

from redescend.kernels.compiler import part, shared
from redescend.kernels.selftuning.covariance import centre, multiply, reset
from redescend.kernels.selftuning.imputation import impute_row
from redescend.kernels.selftuning.judging import judge, mean_logit
from redescend.kernels.selftuning.layout import (
    AGE,
    BOTTOM,
    CHECKSUM,
    CLEAN,
    COMMON,
    CONSTANT,
    COUNT,
    CREDIT,
    FEW,
    FULL,
    KNOWN,
    LABELS,
    LAST,
    LAST_Y,
    LEVEL,
    LIGHTEST,
    MEAN,
    MEMBERS,
    PRIOR,
    SEEN,
    SQUARE,
    STREAK,
    TARGET,
    TOP,
    TYPICAL,
    UNIT,
    VARIANCE,
    Config,
    Covariance,
    Loss,
    State,
    Work,
    longest_logit,
    ring_size,
    widen_range,
)
from redescend.kernels.selftuning.members import move_followers, move_posterior, renew_members, share_weights
from redescend.kernels.selftuning.prior import withdraw
from redescend.kernels.selftuning.restarts import recover
from redescend.kernels.selftuning.start import add_features, begin
from redescend.kernels.selftuning.units import (
    LEAST,
    checksum,
    cut,
    fits_level,
    in_unit,
    power_of_two,
    take_units,
    to_units,
)
from redescend.numeric import Array

MEMORY = 1000.0
"""Records over which means and mean squares of features run."""

RECENT = 0.02
"""The smallest gain with which the mean variance of predictions follows."""

LONG = 4.0
"""A record is long beyond LONG typical lengths."""


@shared
def predict_members(x: Array, state: State, out: Array) -> None:
    for i in range(MEMBERS):
        total = 0.0
        for j in range(len(x)):
            total += state.theta[i, j] * x[j]
        out[i] = total


@shared
def compute_variance(config: Config, state: State, work: Work) -> float:
    """Centre the record, and return the variance of its prediction x'P x; P x is in `work`."""
    centre(config.covariance, work.x, state, work.centred)
    c = multiply(config.covariance, state.P, work.centred, work.Px)
    if not c >= 0.0:  # rounding errors: P is not positive any more
        reset(config.covariance, state.P, state.feature[PRIOR], 1.0)
        c = multiply(config.covariance, state.P, work.centred, work.Px)
    return c


@part
def has_new_features(state: State, work: Work) -> bool:
    """Whether a feature that always had the same value, such as 0, has another one."""
    new = 0
    for j in range(len(work.x)):
        new += (state.feature[SQUARE, j] == 0.0) & (work.centred[j] != 0.0)
    return new > 0


@shared
def measure_length(state: State, work: Work) -> float:
    """The length of a record: the mean over features that are not 0 of x_j² over the mean square of the feature."""
    total = count = 0.0
    for j in range(len(work.x)):
        if work.centred[j] != 0.0 and state.feature[SQUARE, j] > 0.0:
            total += work.centred[j] * work.centred[j] / state.feature[SQUARE, j]
            count += 1.0
    return total / max(count, 1.0)


@part
def measure_leverage(config: Config, state: State, work: Work) -> float:
    """How many times a record is longer than what is typical, at least 1; updates the statistics of features."""
    feature, scalar, x, length = state.feature, state.scalar, work.x, measure_length(state, work)
    follow_length(length, scalar)
    # A record counts at most its typical length.
    cap, touched = min(1.0, scalar[TYPICAL] / length) if length > 0.0 else 1.0, 0.0
    counted = work.centred if config.covariance.order == FULL and config.loss.family == LABELS else x
    for j in range(len(x)):
        present = 1.0 if counted[j] != 0.0 else 0.0
        touched += present
        feature[COUNT, j] += present
        square = work.centred[j] * work.centred[j]
        if square > 0.0:
            near = 1.0 / min(max(feature[COUNT, j], 1.0), MEMORY)
            feature[SQUARE, j] = max(feature[SQUARE, j] + (square * cap - feature[SQUARE, j]) * near, 1e-50)
    scalar[CREDIT] += touched
    update_means(config.covariance, x, cap, config.missing, state)
    return leverage_of(length, state)


@part
def follow_length(length: float, scalar: Array) -> None:
    """The typical length, a multiplicative median, which hurries after many records in a row on the same side of it."""
    streak, longer = scalar[STREAK], length > scalar[TYPICAL]
    scalar[STREAK] = streak = max(streak, 0.0) + 1.0 if longer else min(streak, 0.0) - 1.0
    up = 1.0 + max(2.0 / (scalar[SEEN] + 1.0), 0.02) * 2.0 ** min(max(abs(streak) - 8.0, 0.0), 6.0)
    if length > 0.0:
        typical = scalar[TYPICAL] * up if longer else scalar[TYPICAL] / up
        scalar[TYPICAL] = min(max(typical, 1e-60), 1e60)


@part
def leverage_of(length: float, state: State) -> float:
    return max(1.0, length / (LONG * state.scalar[TYPICAL]))


@part
def update_means(covariance: Covariance, x: Array, cap: float, missing: int, state: State) -> None:
    """Means of features: at order 1 where they are not 0; at order 2, where missing values take them, of all values."""
    mean, count = state.feature[MEAN], state.feature[COUNT]
    if covariance.order != FULL:
        for j in range(len(x)):
            if x[j] != 0.0:
                mean[j] += (x[j] - mean[j]) * cap / min(count[j] + FEW, MEMORY)
    elif missing:
        near = cap / min(state.scalar[SEEN] + FEW, MEMORY)
        for j in range(len(x)):
            mean[j] += (x[j] - mean[j]) * near


@part
def learn_record(y: float, w: float, c: float, config: Config, state: State, work: Work) -> None:
    """Everything that a record teaches; it, its predictions and its variance are in `work`."""
    scalar = state.scalar
    scalar[SEEN] += 1.0
    scalar[AGE] += 1.0
    leverage = measure_leverage(config, state, work)
    scalar[VARIANCE] += (c / leverage - scalar[VARIANCE]) * max(1.0 / scalar[AGE], RECENT)
    g, h, total = judge(config, y, w, leverage, c, state, work)
    counts = min(w, 1.0)
    move_posterior(y, g, h, c, counts, config, state, work)
    move_followers(y, c, counts, config, state, work)
    renew_members(share_weights(total, config, state), config, state, work)


@part
def combine(loss: Loss, values: Array, state: State) -> float:
    """What the mean of the members predicts, in the unit of the target, from a value of each."""
    if loss.family == LABELS:
        return mean_logit(values, state) * state.scalar[COMMON]
    total = 0.0
    for i in range(MEMBERS):
        total += state.played[i] * values[i]
    return total * state.scalar[TARGET]


@part
def clip(loss: Loss, prediction: float, scalar: Array) -> float:
    """Keep a number within the range of clean targets, widened, and a logit within what labels so far can tell."""
    if loss.family == LABELS:
        most = longest_logit(scalar[SEEN], scalar[COMMON])
        return min(max(prediction, -most), most)
    low, high = widen_range(scalar[BOTTOM], scalar[TOP])
    return min(max(prediction, scalar[TARGET] * low), scalar[TARGET] * high)


@part
def play(X: Array, row: int, y: float, w: float, config: Config, state: State, work: Work) -> tuple[float, float]:
    """Predict a row, and learn from it unless its weight is about 0; returns the prediction and its weight."""
    scalar, x = state.scalar, work.x
    learning = w >= LIGHTEST and (abs(y) >= LEAST or scalar[TARGET] > 0.0)
    new = to_units(X, row, state, x)
    if learning and new > 0:
        take_units(X, row, state)
        to_units(X, row, state, x)
        scalar[KNOWN] += new
    identity = checksum(x, work.code) if learning else 0.0
    if config.missing:
        impute_row(config.covariance, x, state)
    predict_members(x, state, work.predictions)
    prediction, labels = combine(config.loss, work.predictions, state), config.loss.family == LABELS
    if config.limited or not labels:
        prediction = clip(config.loss, prediction, scalar)
    if not learning:
        return prediction, 1.0
    if scalar[TARGET] == 0.0:
        scalar[TARGET] = 1.0 if labels else power_of_two(y)
    scaled = cut(y / scalar[TARGET])
    # A number like the one before it, with the same features, tells nothing: its residual is that of the other.
    repeated = new == 0 and not labels and identity == scalar[CHECKSUM] and scaled == scalar[LAST_Y]
    if identity == 0.0 or (repeated and scalar[LAST] > 1.0):
        return prediction, scalar[CLEAN] if repeated else 1.0
    scalar[CHECKSUM], scalar[LAST_Y] = identity, scaled
    learn_from(X, row, y, w, new, config, state, work)
    return prediction, scalar[CLEAN]


@part
def load_record(place: int, config: Config, state: State, work: Work) -> None:
    """Read a stored record in the present units, and predict it."""
    scalar, ring, x = state.scalar, state.ring, work.x
    for j in range(len(x)):
        x[j] = in_unit(ring[place, 2 + j], state.feature[UNIT, j])
    scalar[CHECKSUM], scalar[LAST_Y] = checksum(x, work.code), cut(ring[place, 0] / scalar[TARGET])
    if config.missing:
        impute_row(config.covariance, x, state)
    predict_members(x, state, work.predictions)


@part
def learn_from(X: Array, row: int, y: float, w: float, new: int, config: Config, state: State, work: Work) -> None:
    """Store a new record and learn from it, and again from those before it if everything begins or restarts."""
    scalar, ring, x, columns = state.scalar, state.ring, work.x, X.shape[1]
    scalar[LAST] += 1.0
    last, constant = int(scalar[LAST]), int(scalar[CONSTANT])
    # At order 2, records are stored after the start too, and learned again when the posterior restarts.
    relearns = config.covariance.order == FULL
    ring_count = ring_size(config.covariance)
    if last <= ring_count or relearns:
        place = (last - 1) % ring_count
        for j in range(columns):
            ring[place, 2 + j] = X[row, j]
        if len(x) > columns:
            ring[place, 2 + columns] = 1.0
        ring[place, 0], ring[place, 1] = y, w
    if constant >= 0 and not fits_level(x[constant], scalar[LEVEL]):
        scalar[CONSTANT] = -1.0
    at, again = last - 1, False
    if last <= (FEW if config.loss.family == LABELS else ring_count) and (last & (last - 1)) == 0:
        begin(config, state, work)
        # A single number is not learned from: it has no scale to be judged by, and would be believed however wrong.
        at, again = 1 if last == 1 and config.loss.family != LABELS else 0, True
    while at < last:
        if again:
            load_record(at % ring_count, config, state, work)
            w = ring[at % ring_count, 1]
        c = compute_variance(config, state, work)
        if has_new_features(state, work):
            add_features(config, state, work)
            c = compute_variance(config, state, work)
        learn_record(scalar[LAST_Y], w, c, config, state, work)
        at += 1
        if at == last:
            count = recover(config, state, work)
            if count > 0 and relearns:
                at, again = last - count, True
    if relearns and config.loss.family != LABELS:
        withdraw(config, state, work)
    if scalar[CLEAN] > 0.5:
        scalar[BOTTOM], scalar[TOP] = min(scalar[BOTTOM], scalar[LAST_Y]), max(scalar[TOP], scalar[LAST_Y])
