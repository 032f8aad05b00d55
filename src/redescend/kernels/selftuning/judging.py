"""Judging a record: the score of the posterior, what the noise learns, and the weights and gates of members.

A member is a forecaster with a scale of its own: of its residuals, or of its logits. Its weight is multiplied by its
density of the record.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

from redescend.kernels.compiler import part, shared
from redescend.kernels.selftuning.labels import label_gain, learn_flips, learn_length, stretch
from redescend.kernels.selftuning.layout import (
    AGE,
    CLEAN,
    COMMON,
    DOUBT,
    EVIDENCE,
    FAR,
    JUDGED_Y,
    LABELS,
    LEAD,
    MEMBERS,
    MIDDLE,
    MIRRORED,
    MODE,
    MOST_ODDS,
    NOISE,
    ODDS,
    ORIGIN,
    POSITIVE,
    POSTERIOR,
    QUANTILE,
    RATE,
    SEEN,
    SINCE,
    SPREAD,
    STRETCH,
    USUALLY_FLIPPED,
    Config,
    Loss,
    State,
    Work,
)
from redescend.kernels.selftuning.losses import score, sigmoid
from redescend.kernels.selftuning.noise import (
    EXACT,
    KAPPA,
    NORMAL,
    PATIENCE,
    compute_densities,
    compute_moments,
    exp_minus,
    learn_noise,
)
from redescend.numeric import Array

TIGHT = 9.0
"""The gate of a follower is one half at a residual of sqrt(TIGHT) of its own scales."""

OWN_WIDTH = 2.0
"""The width of the density of a member's residuals, in its own scales. A narrower one follows a change sooner, but lets
members that are lucky with some records take weight."""

REACTION = 0.15
"""The smallest gain of own scales."""

SCALE_LEAST, SCALE_MOST = 1e-40, 1e40

CALM = 3e-4
"""The smallest gain of the scale that all members share, and of that of the targets."""

NORMAL_SCALE = 2.67
"""The variance of normal residuals, in units of the squared scale that `adapt_scale` finds."""

ORDINARY = 9.0
"""A square beyond this many variances of targets is far outside the usual size."""

MIDDLE_GAIN = 0.01
"""The smallest gain of the middle of the noise. A quantile is not in the middle of the clean records: judged by their
distance from it, those on its far side would look like outliers."""

LOOSE = 100.0
"""A record counts one half for a quantile at a distance of sqrt(LOOSE) scales of all from the middle of the noise, and
for one of its followers at as many of its own: a tighter gate would take the far side of the quantile for outliers."""

MOST_BELIEVED = 0.98
"""A record is believed at most by this much when members of a quantile are weighed: after a start with many outliers,
which then seem clean, a member with much smaller residuals takes over."""

MOST_LOSS = 8.0
"""The largest loss that a member of a quantile is charged for a record, in units of the scale of all."""

PRICE = 2.0
"""The mode pays for its choice among many modes: its density has the factor 1 - PRICE/(t + 100)."""


@part
def noise_leader(scalar: Array) -> int:
    """The member whose residuals are the noise: the leader, but the posterior where the mode leads."""
    lead = int(scalar[LEAD])
    return POSTERIOR if lead == MODE else lead


@part
def _judge_residual(config: Config, y: float, w: float, leverage: float, c: float, state: State, work: Work) -> Any:
    loss, scalar, predictions, wide = config.loss, state.scalar, work.predictions, leverage / w
    lead, middle = noise_leader(scalar), scalar[MIDDLE]
    r, mirror = y - predictions[POSTERIOR] - middle, y + predictions[POSTERIOR] + middle
    compute_densities(r, mirror, wide, c, scalar, work)
    Z, clean, z1, z2 = compute_moments(r, mirror, state.cells, scalar, work)
    g, h = score(loss, y - predictions[POSTERIOR], c, z1 / Z, z2 / Z, clean / Z, state, work)
    weigh_change(y, r, y - predictions[ORIGIN], c, wide, clean / Z, scalar)
    if lead != POSTERIOR:
        r, mirror = y - predictions[lead] - middle, y + predictions[lead] + middle
        compute_densities(r, mirror, wide, 0.0, scalar, work)
        Z, clean, z1, z2 = compute_moments(r, mirror, state.cells, scalar, work)
    scalar[CLEAN] = min(clean / Z, 1.0)
    if abs(r) > EXACT * abs(y):
        learn_noise(r, mirror > r, wide, min(w, 1.0), state, work)
        if loss.family == QUANTILE:
            scalar[MIDDLE] += middle_gain(scalar) / max(wide, 1.0) * belief_in_quantile(r, wide, scalar) * r
    return g, h, weigh_residuals(loss, y, wide, max(4.0 / (scalar[AGE] + 8.0), REACTION), state, work)


@part
def slow_gain(scalar: Array) -> float:
    return max(2.0 / (scalar[SEEN] + 4.0), CALM)


@part
def middle_gain(scalar: Array) -> float:
    return max(2.0 / (scalar[SEEN] + 4.0), MIDDLE_GAIN)


@part
def normal_density(r: float, variance: float) -> float:
    i = 1.0 / variance
    return NORMAL * sqrt(i) * exp_minus(0.5 * r * r * i)


@part
def multiply_odds(factor: float, for_change: bool, wide: float, scalar: Array) -> None:
    """Multiply the odds of a change by the factor of a record, which may not speak for a change if that is False.

    Where the noise is not what the model takes it for, records often speak for a change without one: the factor is
    divided by its mean, if that is above 1. False alarms are forgotten in time.
    """
    odds = factor / max(scalar[EVIDENCE], 1.0)
    odds = odds if for_change else min(odds, 1.0)
    odds = scalar[ODDS] * (odds if wide <= 1.0 else odds ** (1.0 / wide))
    scalar[ODDS] = min(max(odds, 1.0), MOST_ODDS)
    scalar[SINCE] = scalar[SINCE] + 1.0 if odds > 1.0 else 0.0
    scalar[EVIDENCE] += slow_gain(scalar) / max(wide, 1.0) * (factor - scalar[EVIDENCE])
    scalar[DOUBT] = max(scalar[DOUBT] * (1.0 - 1.0 / PATIENCE), 1.0)


@part
def weigh_label_change(y: float, right: float, wide: float, scalar: Array) -> None:
    """Bayes' rule on the odds that the truth has changed, where `right` is the probability of the label without flips.

    After a change, only the share of the label among all is known.
    """
    usual, rate = scalar[POSITIVE] if y > 0.0 else 1.0 - scalar[POSITIVE], scalar[RATE]
    multiply_odds(usual / (rate + (1.0 - 2.0 * rate) * right), True, wide, scalar)


@part
def weigh_change(y: float, r: float, away: float, c: float, wide: float, clean: float, scalar: Array) -> None:
    """Bayes' rule on the odds that the truth has changed, so that only the usual size of targets is known.

    r is the residual of the posterior and `away` that of the origin. The scales of both are slow, because those of the
    noise follow a change in a few rounds, and `clean`, the probability of the record, is its weight in them. An outlier
    is as likely after a change as before it. A target far outside the usual size, or one that equals the one before it,
    such as that of a sensor that is stuck, is no evidence of a change.
    """
    noise, spread = wide * scalar[NOISE] ** 2, wide * scalar[SPREAD] ** 2
    variance = NORMAL_SCALE * noise + c
    changed = normal_density(away, NORMAL_SCALE * spread + c)
    outlier = scalar[RATE] * max(changed, KAPPA / max(abs(r), sqrt(variance)))
    other = outlier + scalar[MIRRORED] * (changed + normal_density(2.0 * y - r, variance))
    factor = (changed + other) / (normal_density(r, variance) + other)
    usual = y != scalar[JUDGED_Y] and away * away <= ORDINARY * NORMAL_SCALE * spread
    multiply_odds(factor, usual, wide, scalar)
    gain = clean * slow_gain(scalar) / max(wide, 1.0)
    scalar[SPREAD] = adapt_scale(scalar[SPREAD], away * away, spread, gain)
    if abs(r) > EXACT * abs(y):
        scalar[NOISE] = adapt_scale(scalar[NOISE], r * r, variance / NORMAL_SCALE, gain)
    scalar[JUDGED_Y] = y


@part
def clean_probability(loss: Loss, y: float, leverage: float, c: float, state: State, work: Work) -> float:
    """The probability that a record is clean, at the leader's prediction; nothing is learned."""
    if loss.family == LABELS:
        return _clean_label(y, leverage, c, state, work)
    lead = noise_leader(state.scalar)
    middle = state.scalar[MIDDLE]
    r, mirror = y - work.predictions[lead] - middle, y + work.predictions[lead] + middle
    compute_densities(r, mirror, leverage, c if lead == POSTERIOR else 0.0, state.scalar, work)
    Z, clean, _, _ = compute_moments(r, mirror, state.cells, state.scalar, work)
    return min(clean / Z, 1.0)


@part
def _clean_label(y: float, leverage: float, c: float, state: State, work: Work) -> float:
    lead, rate = int(state.scalar[LEAD]), state.scalar[RATE]
    k = logit_length(lead, c / leverage, state)
    return right_probability(sigmoid(y * work.predictions[lead] * k / sqrt(leverage)), rate)


@part
def belief_in_quantile(r: float, wide: float, scalar: Array) -> float:
    """How far a record counts for the middle of the noise and the members of a quantile, r from that middle.

    At the start, when outliers still seem clean, only the scale of all tells them apart.
    """
    width = LOOSE * wide * scalar[COMMON] ** 2
    return scalar[CLEAN] * width / (r * r + width)


@part
def judged_residual(loss: Loss, r: float) -> float:
    """The residual that members are judged by: only its loss tells a quantile from the median."""
    if loss.family != QUANTILE:
        return r
    return 2.0 * r * (loss.setting if r > 0.0 else 1.0 - loss.setting)


@part
def adapt_scale(scale: float, r2: float, s2: float, gain: float) -> float:
    return min(max(scale * (1.0 + gain * (r2 - s2) / (r2 + s2)), SCALE_LEAST), SCALE_MOST)


@part
def residual_density(r2: float, s: float, u: float) -> float:
    """2 pi times the density of a residual: the mean of Student's t3, of this width over sqrt(3), and Cauchy's."""
    width = OWN_WIDTH * s
    tail = r2 + width * width
    return 2.0 * width / tail * (width / tail * width) + u / (r2 + u * u)


@part
def weigh_residuals(loss: Loss, y: float, wide: float, gain: float, state: State, work: Work) -> float:
    """Multiply weights by densities and adapt scales, where residuals are not exact; returns the sum of weights.

    The density of a clean record is the mean of two, with the member's own scale and with one that all share. That
    with the own scale falls faster: with Cauchy's, members that are wild in a burst of outliers kept their weight. The
    density of an outlier is Cauchy's, as wide as far outliers are: without it, two of them near 0 gave the origin the
    weight of a model that fits all others. Mirrored records count as far as they are usual, so that a model with the
    wrong sign does not keep its weight. As far as a record is believed, members of a quantile have exponential weights
    of its loss instead: a density that is symmetric prefers models nearer to the median.
    """
    predictions, weight, scale, scalar = work.predictions, state.weight, state.scale, state.scalar
    lead, b, common = int(scalar[LEAD]), min(scalar[MIRRORED], scalar[USUALLY_FLIPPED]), scalar[COMMON]
    total, root, a, far = 0.0, sqrt(wide), scalar[RATE], scalar[FAR]
    u = common * root
    believed = MOST_BELIEVED * belief_in_quantile(y - predictions[lead] - scalar[MIDDLE], wide, scalar)
    for i in range(MEMBERS):
        r, s = judged_residual(loss, y - predictions[i]), scale[i] * root
        r2, s2 = r * r, s * s
        work.gate[i] = TIGHT * s2 / (r2 + TIGHT * s2)
        density = (1.0 - a - b) * residual_density(r2, s, u) + 2.0 * a * far / (r2 + far * far)
        if loss.family == QUANTILE:
            work.gate[i] = LOOSE * s2 / (r2 + LOOSE * s2)
            density = believed * exp_minus(min(abs(r) / u, MOST_LOSS)) + (1.0 - believed) * u * density
        elif b > 1e-6:
            density += b * residual_density((y + predictions[i]) ** 2, s, u)
        if i == MODE:
            density *= 1.0 - PRICE / (scalar[SEEN] + 100.0)
        weight[i] *= density if wide <= 1.0 else density ** (1.0 / wide)
        total += weight[i]
        if abs(y - predictions[i]) > EXACT * abs(y):
            scale[i] = adapt_scale(scale[i], r2, s2, gain / max(wide, 1.0))
    if abs(y - predictions[lead]) > EXACT * abs(y):
        r = y - predictions[lead] - scalar[MIDDLE]
        scalar[COMMON] = adapt_scale(common, r * r, u * u, slow_gain(scalar) / max(wide, 1.0))
    return total


@part
def logit_length(i: int, c: float, state: State) -> float:
    """The length of a member's logit; the posterior's is shorter where its variance c is large."""
    return state.scale[i] if i != POSTERIOR else state.scalar[STRETCH] / sqrt(1.0 + pi / 8.0 * c)


@part
def mean_logit(values: Array, state: State) -> float:
    """The mean of the members' logits, from a value of each."""
    total = state.played[POSTERIOR] * (state.scalar[STRETCH] - 1.0) * state.scale[POSTERIOR] * values[POSTERIOR]
    for i in range(MEMBERS):
        total += state.played[i] * state.scale[i] * values[i]
    return total


@part
def right_probability(q: float, rate: float) -> float:
    """The probability that a label is not flipped, where q is that of the label without flips."""
    return min((1.0 - rate) * q / (rate + (1.0 - 2.0 * rate) * q), 1.0)


@shared
def _judge_label(loss: Loss, y: float, w: float, leverage: float, c: float, state: State, work: Work) -> Any:
    scalar, predictions, scale, weight = state.scalar, work.predictions, state.scale, state.weight
    lead, rate, long, played = int(scalar[LEAD]), scalar[RATE], sqrt(leverage), mean_logit(predictions, state)
    k = 1.0 / sqrt(1.0 + pi / 8.0 * c / leverage)
    q = sigmoid(y * predictions[POSTERIOR] / long * k)
    slope, Z = (1.0 - 2.0 * rate) * q * (1.0 - q) * k, rate + (1.0 - 2.0 * rate) * q
    g, h = y * slope / Z / long, ((slope / Z) ** 2 - slope * (1.0 - 2.0 * q) * k / Z) / leverage
    counts = min(w, 1.0)
    scale[POSTERIOR] += 0.03 * counts * (k - scale[POSTERIOR])
    m = y * predictions[lead] * logit_length(lead, c / leverage, state) / long
    scalar[CLEAN] = right_probability(sigmoid(m), rate)
    own = y * predictions[POSTERIOR] * logit_length(POSTERIOR, c / leverage, state) / long
    weigh_label_change(y, sigmoid(own), leverage / w, scalar)
    scalar[POSITIVE] += counts * ((1.0 if y > 0.0 else 0.0) - scalar[POSITIVE]) / min(scalar[SEEN] + 10.0, 1000.0)
    learn_length(loss, y * played / long, counts, scalar)
    learn_flips(m / scalar[STRETCH] if lead == POSTERIOR else m, counts, state)
    rate, gain, total = scalar[RATE], counts * label_gain(scalar), 0.0
    for i in range(MEMBERS):
        if weight[i] > 0.0:
            m = y * predictions[i] * logit_length(i, c / leverage, state) / long
            q = sigmoid(m)
            Z = rate + (1.0 - 2.0 * rate) * q
            work.gate[i] = (1.0 - rate) * q / Z
            weight[i] *= Z if counts == 1.0 else Z**counts
            total += weight[i]
            if i != POSTERIOR:
                scale[i] = stretch(scale[i], gain * m * (1.0 - 2.0 * rate) * q * (1.0 - q) / Z)
    times = w / (1.0 + (w - 1.0) * max(h * c, 0.0))  # w records like this one move the posterior this many times as far
    return g * times, h * times, total


@part
def judge(config: Config, y: float, w: float, leverage: float, c: float, state: State, work: Work) -> Any:
    """g and h of the posterior, and the sum of the members' new weights; gates are written to `work`."""
    if config.loss.family == LABELS:
        return _judge_label(config.loss, y, w, leverage, c, state, work)
    return _judge_residual(config, y, w, leverage, c, state, work)
