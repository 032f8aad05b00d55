"""The noise posterior: cells (scale s, outlier rate ε) with Bayes weights. Each cell is a LEARN loss.

A cell believes that a record is clean with probability (1 − ε)·q/((1 − ε)·q + ε·u), where q and u are the densities of
a clean record and of an outlier: that is LEARN's weight with an a and a b of its own. The gate is their mean.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from redescend.kernels.compiler import inlined, summing
from redescend.kernels.selftuning.layout import LOWEST, SPREAD, Config, Settings
from redescend.losses import likelihood
from redescend.losses.linear import SQUARED
from redescend.numeric import Array

USUAL = 6
"""Rates of outliers that there usually are: a loop of known length is several times faster."""

KNOWN = (0.0, 0.0)
"""The novelty of a record in which nothing is new."""

WIDER = 1.5
"""The scale of residuals with what is new, in units of their median size."""


@inlined
def size_of(kind: int, labels: bool, f: float, p: float, y: float) -> float:
    """What a density looks at: √f, |r|, or the margin of a label."""
    if labels:
        return y * p
    return np.sqrt(f) if kind == SQUARED else abs(p - y)


@summing
def split(cells: Array, i: int, rates: Array, count: int) -> tuple[float, float]:
    """How much the cells of a scale believe in, and in outliers."""
    total = bad = 0.0
    for j in range(count):
        total += cells[i, j]
        bad += cells[i, j] * rates[j]
    return total, bad


@inlined
def masses(cells: Array, rates: Array, clean: Array, outlier: Array) -> float:
    """How much each scale says of clean records and of outliers; returns the rate of outliers."""
    rate, usual = 0.0, len(rates) == USUAL
    for i in range(len(clean)):
        total, bad = split(cells, i, rates, USUAL) if usual else split(cells, i, rates, len(rates))
        clean[i] = total - bad
        outlier[i] = bad
        rate += bad
    return rate


@inlined
def widest(i: int, scales: int, s: float, size: float, labels: bool) -> float:
    """The top scale stands for all that are larger: no residual is beyond it, so that the gate always opens again."""
    return max(s, size) if i == scales - 1 and not labels else s


@inlined
def densities(
    kind: int, c: float, f: float, size: float, s: float, unit: float, new: float, wide: float
) -> tuple[float, float]:
    """Of a clean record and of an outlier, where a share of the record is new, and residuals with that are wide."""
    clean, outlier = likelihood.densities(kind, c, f, size, s, unit)
    if new > 0.0:
        width = max(s, WIDER * wide if wide > 0.0 else size)
        clean += new * (likelihood.densities(kind, c, f, size, width, unit)[0] - clean)
    return clean, outlier


@inlined
def judge(
    s: Settings,
    f: float,
    size: float,
    lowest: float,
    clean: Array,
    outlier: Array,
    least: float,
    novelty: tuple[float, float] = KNOWN,
) -> tuple[float, float]:
    """Log-likelihood of a record and the probability that it is clean, by the scales with at least this mass.

    `novelty` is the share of the record that is new and the size of residuals with what is new.
    """
    unit = 1.0 if s.labels else max(size, lowest)
    believed = total = likely = 0.0
    scale = lowest
    for i in range(len(clean)):
        if clean[i] + outlier[i] >= least:
            widened = widest(i, len(clean), scale, size, s.labels)
            q, u = densities(s.kind, s.c, f, size, widened, unit, *novelty)
            believed += clean[i] * q
            total += clean[i] * q + outlier[i] * u
            likely += clean[i] * likelihood.member_density(s.kind, s.c, f, scale, unit, q) + outlier[i] * u
        scale *= 2.0
    return np.log(likely / unit), believed / total


@inlined
def exponentiate(logs: Array) -> float:
    """Logarithms to masses, the largest of which is 1; returns their sum."""
    top = np.max(logs)
    total = 0.0
    for i in range(logs.shape[0]):
        for j in range(logs.shape[1]):
            logs[i, j] = np.exp(logs[i, j] - top)
            total += logs[i, j]
    return total


@summing
def multiply(cells: Array, i: int, rates: Array, q: float, u: float, count: int) -> float:
    """Bayes' rule for the cells of a scale; returns their sum."""
    total = 0.0
    for j in range(count):
        cells[i, j] *= q + rates[j] * (u - q)
        total += cells[i, j]
    return total


@summing
def give_share(cells: Array, i: int, prior: Array, kept: float, share: float, count: int) -> float:
    """A share of the prior for the cells of a scale; returns their sum."""
    mass = 0.0
    for j in range(count):
        cells[i, j] = kept * cells[i, j] + share * prior[i, j]
        mass += cells[i, j]
    return mass


@inlined
def learn_noise(
    s: Settings,
    f: float,
    size: float,
    state: Any,
    config: Config,
    times: float = 1.0,
    novelty: tuple[float, float] = KNOWN,
) -> None:
    """Bayes' rule on the cells, as if the record had come `times`; a share of the prior; ŝ = exp(Σπ·ln s)."""
    cells, prior, rates, scalars, share = state.cells, config.prior, config.rates, state.scalars, s.share
    scales, count = cells.shape
    lowest, usual = scalars[LOWEST], count == USUAL
    unit = 1.0 if s.labels else max(size, lowest)
    total, scale = 0.0, lowest
    for i in range(scales):
        q, u = densities(s.kind, s.c, f, size, widest(i, scales, scale, size, s.labels), unit, *novelty)
        if times != 1.0:
            for j in range(count):
                cells[i, j] = np.log(cells[i, j]) + times * np.log((1.0 - rates[j]) * q + rates[j] * u)
        else:
            total += multiply(cells, i, rates, q, u, USUAL) if usual else multiply(cells, i, rates, q, u, count)
        scale *= 2.0
    if times != 1.0:
        total = exponentiate(cells)
    largest, mode, mean, kept = -1.0, 0, 0.0, (1.0 - share) / total
    for i in range(scales):
        if usual:
            mass = give_share(cells, i, prior, kept, share, USUAL)
        else:
            mass = give_share(cells, i, prior, kept, share, count)
        mean += mass * i
        if mass > largest:
            largest, mode = mass, i
    scalars[SPREAD] = lowest * 2.0**mean
    if not s.labels:
        float_window(cells, prior, share, mode, scalars)


@inlined
def float_window(cells: Array, prior: Array, share: float, mode: int, scalars: Array) -> None:
    """Keep the likeliest scale in the middle third of the window, by octaves."""
    scales, count = cells.shape
    third = scales // 3
    move = min(mode - third, 0) + max(mode - (scales - 1 - third), 0)
    lowest = scalars[LOWEST] * 2.0**move
    if move == 0 or not 1e-280 < lowest < 1e280:
        return
    old = cells.copy()
    total = 0.0
    for i in range(scales):
        for j in range(count):
            cells[i, j] = old[i + move, j] if 0 <= i + move < scales else share * prior[i, j]
            total += cells[i, j]
    for i in range(scales):
        for j in range(count):
            cells[i, j] /= total
    scalars[LOWEST] = lowest
