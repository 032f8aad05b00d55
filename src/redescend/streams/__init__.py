r"""Clean streams to play: seeded synthetic ones, and real ones.

`ridge` and `svm` are the paper's. `regression` and `classification` add drift, heavy-tailed noise and features of very
different scales; with one seed, streams that differ only in these are made of the same draws, so that any difference
between their games is due to that setting. `real.load` loads streams that come inside Python packages.

>>> regression(100, seed=0, dim=3, drift="jump", noise="student")
Stream(100 rounds, 3 features, 0 corrupted)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from redescend.game import Stream
from redescend.numeric import Array
from redescend.parameters import AT_LEAST_ONE, SCALE, Interval, bad_parameter, check, check_choice
from redescend.streams import real

__all__ = ["classification", "real", "regression", "ridge", "svm"]

DRIFTS = ("none", "jump", "rotation")
NOISES = ("gaussian", "student", "heteroscedastic")


def ridge(rounds: int, seed: Any, dim: int = 100) -> Stream:
    r"""Make the paper's online ridge regression: y = ⟨θ*, x⟩ + e.

    θ* is uniform on [−1, 1]^dim and scaled to unit length, x is standard normal, and e has variance 10⁻⁶.

    Parameters
    ----------
    rounds : int
        Number of rounds.
    seed : int or Generator
        Seed of the random numbers.
    dim : int, default 100
        Number of features.

    Returns
    -------
    Stream
        With its truth θ*.

    Examples
    --------
    >>> ridge(5, seed=0, dim=3)
    Stream(5 rounds, 3 features, 0 corrupted)
    """
    rounds, dim = _check_sizes("ridge", rounds, dim)
    random = np.random.default_rng(seed)
    truth = random.uniform(-1.0, 1.0, dim)
    truth /= np.linalg.norm(truth)
    X = random.standard_normal((rounds, dim))
    return Stream(X, X @ truth + 1e-3 * random.standard_normal(rounds), truth=truth)


def svm(rounds: int, seed: Any, dim: int = 2) -> Stream:
    r"""Make the paper's online classification: y = sign⟨θ*, x⟩.

    θ* is uniform on [1, 11]^dim, and the entries of x have variance 100. Where |⟨θ*, x⟩| ≤ 0.1, labels are flipped with
    probability 0.05.

    Parameters
    ----------
    rounds, seed
        As in `ridge`.
    dim : int, default 2
        Number of features.

    Returns
    -------
    Stream
        Labels −1 and +1, with the truth θ*.

    Examples
    --------
    >>> np.unique(svm(50, seed=0).y)
    array([-1.,  1.])
    """
    rounds, dim = _check_sizes("svm", rounds, dim)
    random = np.random.default_rng(seed)
    truth = random.uniform(1.0, 11.0, dim)
    X = 10.0 * random.standard_normal((rounds, dim))
    margin = X @ truth
    y = np.where(margin >= 0.0, 1.0, -1.0)
    flipped = (np.abs(margin) <= 0.1) & (random.random(rounds) < 0.05)
    return Stream(X, np.where(flipped, -y, y), truth=truth)


def regression(
    rounds: int,
    seed: Any,
    dim: int = 20,
    *,
    drift: str = "none",
    noise: str = "gaussian",
    noise_scale: float = 0.1,
    feature_scales: tuple[float, float] = (1.0, 1.0),
) -> Stream:
    r"""Make a regression stream: y = ⟨θ*_t, x⟩ + e, with a signal ⟨θ*_t, x⟩ of variance 1.

    Features are independent and normal, and θ* is a uniform direction in the standardized features.

    Parameters
    ----------
    rounds, seed
        As in `ridge`.
    dim : int, default 20
        Number of features.
    drift : "none", "jump" or "rotation", default "none"
        How the truth changes: not at all; to an independent one after half of the rounds; evenly, by half a turn.
    noise : "gaussian", "student" or "heteroscedastic", default "gaussian"
        e/noise_scale: standard normal; Student's t with 2 degrees of freedom, which has no variance; or normal with a
        standard deviation exp(z − 1) that depends on x, with z standard normal.
    noise_scale : float, default 0.1
        Scale of the noise; 0 for none.
    feature_scales : tuple of two floats, default (1.0, 1.0)
        Smallest and largest standard deviation of a feature; the others are evenly spaced between them on a log scale.

    Returns
    -------
    Stream
        Its truth is one action, or with drift one for each round.

    Examples
    --------
    >>> stream = regression(100, seed=0, dim=3, drift="rotation", feature_scales=(1e-3, 1e3))
    >>> stream.truth.shape, np.ptp(np.log10(stream.X.std(axis=0))).round()
    ((100, 3), np.float64(6.0))
    """
    options: Any = {"drift": drift, "noise": noise, "noise_scale": noise_scale, "feature_scales": feature_scales}
    X, response, truth = _draw_stream("regression", rounds, seed, dim, **options)
    return Stream(X, response, truth=truth)


def classification(rounds: int, seed: Any, dim: int = 20, **options: Any) -> Stream:
    r"""Make a classification stream: y = sign(⟨θ*_t, x⟩ + e), the sign of the response of `regression`.

    Labels are wrong near the boundary with Gaussian noise, far from it too with Student's, and more often in one part
    of the space with heteroscedastic noise. With noise_scale = 0 the classes are separable.

    Parameters
    ----------
    rounds, seed, dim, **options
        As in `regression`.

    Returns
    -------
    Stream
        As that of `regression`, with labels −1 and +1.

    Examples
    --------
    >>> np.unique(classification(50, seed=0, dim=3, noise="student").y)
    array([-1.,  1.])
    """
    options = (regression.__kwdefaults__ or {}) | options
    X, response, truth = _draw_stream("classification", rounds, seed, dim, **options)
    return Stream(X, np.where(response >= 0.0, 1.0, -1.0), truth=truth)


def _draw_stream(
    owner: str, rounds: int, seed: Any, dim: int, *, drift: str, noise: str, noise_scale: float, feature_scales: Any
) -> tuple[Array, Array, Array]:
    """Features, responses and the truth."""
    rounds, dim = _check_sizes(owner, rounds, dim)
    check_choice(owner, "drift", drift, DRIFTS)
    check_choice(owner, "noise", noise, NOISES)
    if drift == "rotation" and dim == 1:
        raise bad_parameter(owner, "dim", "at least 2 for a truth that turns", dim)
    noise_scale = check(owner, "noise_scale", noise_scale, Interval(0, 1e100))
    pair = isinstance(feature_scales, tuple) and len(feature_scales) == 2 and all(s in SCALE for s in feature_scales)
    if not pair or feature_scales[1] < feature_scales[0]:
        rule = f"a pair of floats, each in [{SCALE.low}, {SCALE.high}], the smaller first"
        raise bad_parameter(owner, "feature_scales", rule, feature_scales)
    # Everything is drawn whatever the settings are, so that all settings share their draws.
    random = np.random.default_rng(seed)
    directions = _normalise(random.standard_normal((2, dim)))
    scales = random.permutation(np.geomspace(float(feature_scales[0]), float(feature_scales[1]), dim))
    Z = random.standard_normal((rounds, dim))
    normal, chi = random.standard_normal(rounds), random.standard_exponential(rounds)
    standard = directions[0]
    if drift == "jump":
        standard = np.repeat(directions, [rounds // 2, rounds - rounds // 2], axis=0)
    elif drift == "rotation":
        across = _normalise(directions[1] - (directions[1] @ standard) * standard)
        angle = np.linspace(0.0, np.pi, rounds)[:, None]
        standard = np.cos(angle) * standard + np.sin(angle) * across
    # A chi-square number with 2 degrees of freedom is twice an exponential one, so this is Student's t.
    spreads = {"gaussian": 1.0, "student": 1.0 / np.sqrt(chi), "heteroscedastic": np.exp(Z @ directions[1] - 1.0)}
    response = (Z * standard).sum(axis=1) + noise_scale * spreads[noise] * normal
    return Z * scales, response, standard / scales


def _normalise(vectors: Array) -> Array:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def _check_sizes(owner: str, rounds: int, dim: int) -> tuple[int, int]:
    return check(owner, "rounds", rounds, AT_LEAST_ONE), check(owner, "dim", dim, AT_LEAST_ONE)
