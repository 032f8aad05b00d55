r"""Streams with a truth that moves, noise of several kinds, and features in units far apart.

With one seed, streams that differ in drift, noise or feature scales alone are made of the same draws, so that what
differs in a game is due to them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from redescend.game import Stream
from redescend.numeric import Array
from redescend.parameters import SCALE, Interval, bad_parameter, check
from redescend.streams.sizes import sizes

DRIFTS = ("none", "jump", "rotation")
NOISES = ("gaussian", "student", "heteroscedastic")


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
    r"""y = ⟨θ*_t, x⟩ + e, with a signal ⟨θ*_t, x⟩ of variance 1.

    Features are independent and normal. The standard deviations are spread evenly on a log axis between two ends, and
    θ* is a uniform direction in the standardised features.

    Parameters
    ----------
    rounds, dim : int
    seed : int or Generator
    drift : "none", "jump" or "rotation"
        What the truth does: it stays; it becomes another one, independent of the first, after half of the rounds; it
        turns evenly, by half a turn in all.
    noise : "gaussian", "student" or "heteroscedastic"
        e is noise_scale times a standard normal number; times one of Student's t with 2 degrees of freedom, which has
        no variance; times a normal number whose standard deviation exp(z − 1), with z standard normal, depends on x and
        has a mean square of 1.
    noise_scale : float
        0 for none.
    feature_scales : pair of floats
        Smallest and largest standard deviation of a feature.

    Returns
    -------
    Stream
        Its truth is one action, or where it drifts one for each round.

    Examples
    --------
    >>> stream = regression(100, seed=0, dim=3, drift="rotation", feature_scales=(1e-3, 1e3))
    >>> stream.truth.shape, np.ptp(np.log10(stream.X.std(axis=0))).round()
    ((100, 3), np.float64(6.0))
    """
    made = _made("regression", rounds, seed, dim, drift, noise, noise_scale, feature_scales)
    return Stream(made.X, made.response, truth=made.truth)


def classification(
    rounds: int,
    seed: Any,
    dim: int = 20,
    *,
    drift: str = "none",
    noise: str = "gaussian",
    noise_scale: float = 0.1,
    feature_scales: tuple[float, float] = (1.0, 1.0),
) -> Stream:
    r"""y = sign(⟨θ*_t, x⟩ + e): the sign of what `regression` with the same settings would respond.

    Labels are wrong near the boundary where e is normal, far from it too where it is Student's, and more often in one
    part of the space where it is heteroscedastic. With noise_scale = 0 the classes can be separated.

    Parameters
    ----------
    rounds, seed, dim, drift, noise, noise_scale, feature_scales
        As in `regression`.

    Examples
    --------
    >>> np.unique(classification(50, seed=0, dim=3, noise="student").y)
    array([-1.,  1.])
    """
    made = _made("classification", rounds, seed, dim, drift, noise, noise_scale, feature_scales)
    return Stream(made.X, np.where(made.response >= 0.0, 1.0, -1.0), truth=made.truth)


class _Made(NamedTuple):
    X: Array
    response: Array
    truth: Array


def _made(
    owner: str, rounds: int, seed: Any, dim: int, drift: str, noise: str, noise_scale: float, feature_scales: Any
) -> _Made:
    rounds, dim = sizes(owner, rounds, dim)
    for name, value, choices in (("drift", drift, DRIFTS), ("noise", noise, NOISES)):
        if not isinstance(value, str) or value not in choices:
            raise bad_parameter(owner, name, f"one of {', '.join(map(repr, choices))}", value)
    if drift == "rotation" and dim == 1:
        raise bad_parameter(owner, "dim", "at least 2 for a truth that turns", dim)
    noise_scale = check(owner, "noise_scale", noise_scale, Interval(0, 1e100))
    low, high = _checked_scales(owner, feature_scales)
    # Everything is drawn whatever is asked for, so that the settings share their draws.
    random = np.random.default_rng(seed)
    directions = _unit(random.standard_normal((2, dim)))
    scales = random.permutation(np.geomspace(low, high, dim))
    Z = random.standard_normal((rounds, dim))
    normal, chi = random.standard_normal(rounds), random.standard_exponential(rounds)
    standard = directions[0] if drift == "none" else {"jump": _jump, "rotation": _rotation}[drift](directions, rounds)
    # A chi-square number of 2 degrees is twice an exponential one, so that this is Student's t.
    spreads = {"gaussian": 1.0, "student": 1.0 / np.sqrt(chi), "heteroscedastic": np.exp(Z @ directions[1] - 1.0)}
    response = (Z * standard).sum(axis=1) + noise_scale * spreads[noise] * normal
    return _Made(Z * scales, response, standard / scales)


def _unit(vectors: Array) -> Array:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def _jump(directions: Array, rounds: int) -> Array:
    return np.repeat(directions, [rounds // 2, rounds - rounds // 2], axis=0)


def _rotation(directions: Array, rounds: int) -> Array:
    first = directions[0]
    across = _unit(directions[1] - (directions[1] @ first) * first)
    angle = np.linspace(0.0, np.pi, rounds)[:, None]
    path: Array = np.cos(angle) * first + np.sin(angle) * across
    return path


def _checked_scales(owner: str, scales: Any) -> tuple[float, float]:
    rule = f"a pair of floats, each in [{SCALE.low}, {SCALE.high}], the smaller first"
    if not isinstance(scales, tuple) or len(scales) != 2 or any(scale not in SCALE for scale in scales):
        raise bad_parameter(owner, "feature_scales", rule, scales)
    if scales[1] < scales[0]:
        raise bad_parameter(owner, "feature_scales", rule, scales)
    return float(scales[0]), float(scales[1])
