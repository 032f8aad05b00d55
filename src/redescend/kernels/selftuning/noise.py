"""The noise of regression: a lattice of scales with Bayes weights, and the shares of outliers and of mirrored records.

With p the prediction, c its variance and S = wide·s² + c, a record y is

    clean       N(y; p, S)
    mirrored    N(y; -p, S), its sign is wrong
    an outlier  KAPPA/max(|y - p|, sqrt S)
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from redescend.kernels.compiler import part
from redescend.kernels.selftuning.layout import (
    FLIPPED,
    LOW,
    MIRROR_PRIOR,
    MIRRORED,
    MIRRORS,
    RATE,
    SCALES,
    SEEN,
    USUALLY_FLIPPED,
    State,
    Work,
)
from redescend.numeric import Array

NORMAL = 0.3989422804014327
"""1/sqrt(2 pi)."""

KAPPA = 0.125
"""The density of an outlier has mass 1 over 1/(2 KAPPA) = 4 e-folds of |r|."""

RATE_LEAST, RATE_MOST = 0.02, 0.45
RATE_PRIOR, RATE_GAIN = 20.0, 5e-4
"""Records behind the first shares of outliers, and the smallest gain with which the share follows."""

PATIENCE = 1000.0
"""A round shares 1/(PATIENCE + t) of the weight among all members, and a tenth of that among scales."""

FLIPPED_GAIN = 0.03
"""The gain with which the recent share of mirrored records follows."""

EXACT = 3e-14
"""Residuals below this part of the target are rounding errors, which tell nothing about the noise."""

OCTAVE = 4.0 ** np.arange(SCALES)


@part
def exp_minus(a: float) -> float:
    """exp(-a) of 0 <= a to 3e-9, and at least exp(-80): (Taylor of exp(-a/128))^128, without a branch."""
    b = min(a, 80.0) * (-1.0 / 128.0)
    e = 1.0 + b * (
        1.0 + b * (0.5 + b * (1 / 6 + b * (1 / 24 + b * (1 / 120 + b * (1 / 720 + b * (1 / 5040 + b * (1 / 40320)))))))
    )
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    return e * e


@part
def compute_densities(r: float, mirror: float, wide: float, c: float, low: float, work: Work) -> None:
    """Densities of a clean record, an outlier and a mirrored record, and 1/S, for every scale."""
    size, v = max(abs(r), 1e-300), wide * low * low
    for k in range(SCALES):
        S = v * OCTAVE[k] + c
        if k == SCALES - 1:
            S = max(S, r * r)  # the widest scale stands for all that are wider
        i = 1.0 / S
        root = sqrt(i)
        work.clean[k] = NORMAL * root * exp_minus(0.5 * r * r * i)
        work.outlier[k] = KAPPA * min(1.0 / size, root)
        work.mirror[k] = NORMAL * root * exp_minus(0.5 * mirror * mirror * i)
        work.inverse[k] = i


@part
def compute_moments(
    r: float, mirror: float, cells: Array, scalar: Array, work: Work
) -> tuple[float, float, float, float]:
    """The density Z of the record, its clean part, and its first two derivatives in the prediction."""
    a, b = scalar[RATE], scalar[MIRRORED]
    q = m = u = z1 = z2 = 0.0
    for k in range(SCALES):
        i = work.inverse[k]
        qk, mk = cells[k] * work.clean[k], cells[k] * work.mirror[k]
        q += qk
        m += mk
        u += cells[k] * work.outlier[k]
        qk, mk = (1.0 - a - b) * i * qk, b * i * mk
        z1 += qk * r - mk * mirror
        z2 += qk * (r * r * i - 1.0) + mk * (mirror * mirror * i - 1.0)
    q, m = (1.0 - a - b) * q, b * m
    return q + m + a * u, q, z1, z2


@part
def learn_noise(r: float, wide: float, state: State, work: Work) -> None:
    """Bayes' rule on the scales, whose window slides by maximum likelihood; online EM on the share of outliers.

    The densities are in `work`.
    """
    cells, scalar = state.cells, state.scalar
    total = score = clean = plain = mirror = 0.0
    v, a, b, t = wide * scalar[LOW] * scalar[LOW], scalar[RATE], scalar[MIRRORED], scalar[SEEN]
    for k in range(SCALES):
        i, q, m = work.inverse[k], work.clean[k] * cells[k], work.mirror[k] * cells[k]
        plain += q
        mirror += m
        q, m = (1.0 - a - b) * q, b * m
        score += q * (r * r * i - 1.0) * v * OCTAVE[k] * i
        total += q + m + a * work.outlier[k] * cells[k]
        clean += q
    drift = 0.1 / (PATIENCE + t)
    keep, share = (1.0 - drift) / total, drift / SCALES
    for k in range(SCALES):
        likelihood = (1.0 - a - b) * work.clean[k] + b * work.mirror[k] + a * work.outlier[k]
        cells[k] = keep * likelihood * cells[k] + share
    low = scalar[LOW] * (1.0 + min(max(0.5 * score / total * max(1.0 / (t + 10.0), 1e-3), -0.1), 0.1))
    scalar[LOW] = min(max(low, 1e-40), 1e40)
    gain = max(1.0 / (t + RATE_PRIOR), RATE_GAIN)
    rate = a + gain * ((total - clean - b * mirror) / total - a)
    mass = mean = 0.0
    for n in range(len(MIRRORS)):  # Z is linear in the share of mirrored records
        cells[SCALES + n] *= max(total + (MIRRORS[n] - b) * (mirror - plain), 0.0) / total
        mass += cells[SCALES + n]
    for n in range(len(MIRRORS)):
        cells[SCALES + n] = (1.0 - drift) * cells[SCALES + n] / mass + drift * MIRROR_PRIOR[n]
        mean += cells[SCALES + n] * MIRRORS[n]
    scalar[MIRRORED] = mean
    flipped = min(b * mirror / total, 1.0)
    scalar[FLIPPED] += FLIPPED_GAIN / max(wide, 1.0) * (flipped - scalar[FLIPPED])
    scalar[USUALLY_FLIPPED] += gain * (flipped - scalar[USUALLY_FLIPPED])
    scalar[RATE] = min(max(rate, RATE_LEAST), RATE_MOST - mean)
    if t < 64.0 or t % 8.0 == 0.0:
        move_window(cells, scalar)


@part
def reset_mirrors(cells: Array, scalar: Array) -> None:
    """Start again with the prior of mirrored records."""
    scalar[MIRRORED] = scalar[FLIPPED] = 0.0
    for n in range(len(MIRRORS)):
        cells[SCALES + n] = MIRROR_PRIOR[n]
        scalar[MIRRORED] += MIRRORS[n] * MIRROR_PRIOR[n]


@part
def move_window(cells: Array, scalar: Array) -> None:
    """Shift the window of scales so that a third of its octaves stays on each side of its mode."""
    mode, third = 0, SCALES // 3
    for k in range(SCALES):
        if cells[k] > cells[mode]:
            mode = k
    move = min(mode - third, 0) + max(mode - (SCALES - 1 - third), 0)
    if move != 0:
        for n in range(SCALES):
            k = n if move > 0 else SCALES - 1 - n
            cells[k] = cells[k + move] if 0 <= k + move < SCALES else 1e-9
        scalar[LOW] *= 2.0**move
