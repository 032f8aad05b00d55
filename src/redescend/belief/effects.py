"""The effect of the features on the scale of residuals, fitted to all records of a table at once.

The likelihood is that of the scale along a stream, see `kernels.belief.scale`: a residual of size r with the scale s has
the log-likelihood -ln s - ln(1 + (r/s)²), which outliers change little. Effects along a stream are found by small steps,
and stay noisy in tables of some thousand records; here they are the maximum, shrunk.
"""

from __future__ import annotations

import numpy as np

from redescend.numeric import Array

RIDGE = 100.0
"""Prior records whose scale does not depend on the features."""

TRUSTED = 0.75
"""The share of the effects that is used. Errors do not grow with the noise as clean residuals do, so that a smaller share
ranks errors of one size better, and a larger one errors in proportion to the target."""

WIDEST, MOST_RECORDS = 300, 1 << 13
"""In wider tables effects are left as they were learned; of longer ones, records from all over are used."""

ITERATIONS = 30


def fit_effects(standard: Array, logs: Array) -> tuple[float, Array]:
    """Fit the level and the effects of features to the scale of residuals.

    Each iteration maximises a quadratic lower bound of the likelihood, whose curvature is the same in all iterations.

    Parameters
    ----------
    standard : array of floats, shape (rows, features)
        Standardised features.
    logs : array of floats, shape (rows,)
        Logarithms of the sizes of residuals.

    Returns
    -------
    level : float
        The logarithm of the scale where all features have their means.
    effects : array of floats, shape (features,)
        What a feature adds to it, in its standard deviation.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> x = random.normal(size=(5000, 1))
    >>> level, effects = fit_effects(x, np.log(np.abs(np.exp(0.5 * x[:, 0]) * random.normal(size=5000))))
    >>> bool(abs(effects[0] / TRUSTED - 0.5) < 0.05)
    True
    """
    some = np.linspace(0, len(logs) - 1, min(len(logs), MOST_RECORDS)).astype(np.int64)
    table, logs = np.column_stack([standard[some], np.ones(len(some))]), logs[some]
    prior = np.append(np.full(standard.shape[1], RIDGE), 1e-9)
    inverse = np.linalg.inv(table.T @ table + np.diag(prior))
    found = np.append(np.zeros(standard.shape[1]), np.median(logs))
    for _ in range(ITERATIONS):
        pull = np.tanh(np.clip(logs - table @ found, -350.0, 350.0))
        found += inverse @ (table.T @ pull - prior * found)
    return float(found[-1]), TRUSTED * found[:-1]
