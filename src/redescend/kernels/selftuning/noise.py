"""The noise of regression: a lattice of scales with Bayes weights, and the shares of outliers and of mirrored records.

With p the prediction, c its variance and S = wide·s² + c, a record y is

    clean       N(y; p, S)
    mirrored    N(y; -p, S), its sign is wrong
    an outlier  KAPPA/max(|y - p|, sqrt S) if it is near,
                FAR_KAPPA/max(|y - p|, EDGE far) if not, but at most KAPPA/sqrt S
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from redescend.kernels.compiler import part, rare, shared
from redescend.kernels.selftuning.layout import (
    FAR,
    LOW,
    MIRROR_PRIOR,
    MIRRORED,
    MIRRORS,
    NEAR,
    RATE,
    SCALES,
    SEEN,
    USUALLY_FLIPPED,
    WIDENED,
    State,
    Work,
)
from redescend.numeric import Array

NORMAL = 0.3989422804014327
"""1/sqrt(2 pi)."""

KAPPA = 0.125
"""The density of a near outlier has mass 1 over 1/(2 KAPPA) = 4 e-folds of |r|."""

FAR_KAPPA, EDGE = 0.5, 2.0
"""That of a far one has mass 1 over one e-fold, and is constant up to EDGE times the typical size of far outliers."""

NEAR_START, NEAR_LEAST, FAR_GAIN = 0.5, 0.02, 0.01
"""The share of near outliers at the start; the smallest share of each kind; the smallest gain of size and share."""

RATE_LEAST, RATE_MOST = 0.02, 0.45
RATE_PRIOR, RATE_GAIN = 20.0, 5e-4
"""Records behind the first shares of outliers, and the smallest gain with which the share follows."""

PATIENCE = 1000.0
"""A round shares 1/(PATIENCE + t) of the weight among all members, and a tenth of that among scales."""

EXACT = 3e-14
"""Residuals below this part of the target are rounding errors, which tell nothing about the noise."""

MAJORITY = 0.43
"""If more records than this seem mirrored, the model has the wrong sign, and the share starts again."""

OCTAVE = 4.0 ** np.arange(SCALES)


@part
def exp_minus(a: float) -> float:
    """exp(-a) of 0 <= a <= 80 to 3e-9, (Taylor of exp(-a/128))^128, without a branch; beyond, 80/a exp(-80).

    It has to fall: times a residual of 1e20, a constant exp(-80) would still be large beside the density of outliers.
    """
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
    return e * e * (80.0 / max(a, 80.0))


@shared
def compute_densities(r: float, mirror: float, wide: float, c: float, scalar: Array, work: Work) -> None:
    """Densities of a clean record, an outlier and a mirrored record, and 1/S, for every scale."""
    size, v, near = max(abs(r), 1e-300), wide * scalar[LOW] * scalar[LOW], scalar[NEAR]
    far, most = (1.0 - near) * FAR_KAPPA / max(size, EDGE * scalar[FAR]), (1.0 - near) * KAPPA
    for k in range(SCALES):
        S = v * OCTAVE[k] + c
        if k == SCALES - 1:
            S = max(S, r * r)  # the widest scale stands for all that are wider
        i = 1.0 / S
        root = sqrt(i)
        work.clean[k] = NORMAL * root * exp_minus(0.5 * r * r * i)
        work.far[k] = min(far, most * root)
        work.outlier[k] = near * KAPPA * min(1.0 / size, root) + work.far[k]
        work.mirror[k] = NORMAL * root * exp_minus(0.5 * mirror * mirror * i)
        work.inverse[k] = i


@shared
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
def learn_noise(r: float, up: bool, wide: float, counts: float, state: State, work: Work) -> None:
    """Bayes' rule on the scales, whose window slides by maximum likelihood; online EM on the outliers.

    The densities are in `work`; `up` tells whether the prediction is above 0. The record counts at most once.
    """
    cells, scalar = state.cells, state.scalar
    total = score = clean = plain = mirror = away = 0.0
    v, a, b, t = wide * scalar[LOW] * scalar[LOW], scalar[RATE], scalar[MIRRORED], scalar[SEEN]
    for k in range(SCALES):
        i, q, m = work.inverse[k], work.clean[k] * cells[k], work.mirror[k] * cells[k]
        plain += q
        mirror += m
        q, m = (1.0 - a - b) * q, b * m
        score += q * (r * r * i - 1.0) * v * OCTAVE[k] * i
        total += q + m + a * work.outlier[k] * cells[k]
        clean += q
        away += a * work.far[k] * cells[k]
    drift = 0.1 / (PATIENCE + t)
    keep, share = (1.0 - drift) / total, drift / SCALES
    for k in range(SCALES):
        likelihood = (1.0 - a - b) * work.clean[k] + b * work.mirror[k] + a * work.outlier[k]
        cells[k] = (1.0 - counts) * cells[k] + counts * (keep * likelihood * cells[k] + share)
    low = scalar[LOW] * (1.0 + counts * min(max(0.5 * score / total * max(1.0 / (t + 10.0), 1e-3), -0.1), 0.1))
    scalar[LOW] = min(max(low, 1e-40), 1e40)
    gain = counts * max(1.0 / (t + RATE_PRIOR), RATE_GAIN)
    outlier = (total - clean - b * mirror) / total
    learn_outliers(r, wide, outlier, away / total, scalar)
    rate = a + gain * (outlier - a)
    mass, at = 0.0, SCALES + (len(MIRRORS) if up else 0)
    for n in range(len(MIRRORS)):  # Z is linear in the share of mirrored records
        posterior = cells[at + n] * (max(total + (MIRRORS[n] - b) * (mirror - plain), 0.0) / total)
        cells[at + n] = (1.0 - counts) * cells[at + n] + counts * posterior
        mass += cells[at + n]
    for n in range(len(MIRRORS)):
        cells[at + n] = (1.0 - drift) * cells[at + n] / mass + drift * MIRROR_PRIOR[n]
    scalar[MIRRORED] = mirrored_share(cells)
    if scalar[MIRRORED] > MAJORITY:
        reset_mirrors(cells, scalar)
    scalar[USUALLY_FLIPPED] += gain * (min(b * mirror / total, 1.0) - scalar[USUALLY_FLIPPED])
    scalar[RATE] = min(max(rate, RATE_LEAST), RATE_MOST - scalar[MIRRORED])
    if t < 64.0 or t % 8.0 == 0.0:
        move_window(cells, scalar)


@part
def learn_outliers(r: float, wide: float, outlier: float, away: float, scalar: Array) -> None:
    """Online EM on the share of near outliers and the size of far ones.

    `outlier` and `away` are the probabilities that the record is an outlier and a far one.
    """
    near, far2 = scalar[NEAR], scalar[FAR] * scalar[FAR]
    gain = max(1.0 / (scalar[RATE] * scalar[SEEN] + 8.0), FAR_GAIN) / max(wide, 1.0)
    near += gain * (outlier - away - near * outlier)
    scalar[NEAR] = min(max(near, NEAR_LEAST), 1.0 - NEAR_LEAST)
    scalar[FAR] *= 1.0 + 2.0 * gain * away * (r * r - far2) / (r * r + far2)
    scalar[FAR] = min(max(scalar[FAR], 1e-40), 1e40)


@part
def mirrored_share(cells: Array) -> float:
    """The share of mirrored records, the smaller one of those below and above 0.

    Targets that are all above 0 look mirrored only where predictions are below 0.
    """
    below = above = 0.0
    for n in range(len(MIRRORS)):
        below += MIRRORS[n] * cells[SCALES + n]
        above += MIRRORS[n] * cells[SCALES + len(MIRRORS) + n]
    return min(below, above)


@rare
def reset_mirrors(cells: Array, scalar: Array) -> None:
    """Start again with the prior of mirrored records."""
    for n in range(len(MIRRORS)):
        cells[SCALES + n] = cells[SCALES + len(MIRRORS) + n] = MIRROR_PRIOR[n]
    scalar[MIRRORED], scalar[WIDENED] = mirrored_share(cells), 0.0


@rare
def forget_scales(cells: Array) -> None:
    """Forget half of what is known of the scale."""
    for k in range(SCALES):
        cells[k] = 0.5 * cells[k] + 0.5 / SCALES


@rare
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
        scalar[LOW] *= 2.0 ** float(move)
