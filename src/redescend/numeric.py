"""Numerical functions that formulas share."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from redescend.errors import ParameterError

Array: TypeAlias = NDArray[Any]
Values: TypeAlias = Any  # a float or an array of floats; formulas take either

LARGEST = float(np.finfo(np.float64).max)


def choose(condition: Values, yes: Values, no: Values) -> Values:
    """`yes` where the condition holds, `no` elsewhere; compiled, a conditional of scalars."""
    return np.where(condition, yes, no)


def unknown_code(code: float) -> float:
    """Raise, because no formula has this code; in compiled code, return NaN, so that Python plays the round."""
    raise ParameterError(f"No formula has the code {code}; add its branch to every function that takes a code.")


def one_like(f: Values) -> Values:
    """1 in the shape of f."""
    return choose(f < 0.0, 1.0, 1.0)


def log1p_ratio(f: Values, scale: float) -> Values:
    """log(1 + f/scale) for f ≥ 0, finite also where f/scale overflows."""
    ratio = f / scale
    return choose(ratio < 1e300, np.log1p(ratio), np.log(np.maximum(f, 1e-300)) - np.log(scale))


def largest_entry(vector: Array) -> float:
    return float(np.max(np.abs(vector), initial=0.0))


def norm(vector: Array) -> float:
    """Euclidean norm, without overflow or underflow of its squares."""
    top = largest_entry(vector)
    if top == 0.0 or not np.isfinite(top):
        return top
    with np.errstate(over="ignore"):
        return min(top * float(np.linalg.norm(vector / top)), LARGEST)


def dot(left: Array, right: Array) -> float:
    """Inner product; where it would overflow, the largest float of its sign."""
    with np.errstate(over="ignore", invalid="ignore"):
        plain = float(left @ right)
    if np.isfinite(plain):
        return plain
    top, other = largest_entry(left), largest_entry(right)
    if not (np.isfinite(top) and np.isfinite(other)):
        return plain
    small = float((left / top).astype(np.float64) @ (right / other).astype(np.float64))
    with np.errstate(over="ignore"):
        return float(np.clip(np.float64(max(top, other)) * (small * min(top, other)), -LARGEST, LARGEST))


def splitmix64(n: Any) -> Any:
    """64 bits that look random and depend on n alone: the generator of Steele, Lea and Flood."""
    return mix_bits((np.uint64(n) - np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))


def mix_bits(z: Any) -> Any:
    """The number after the state z of SplitMix64: all its bits depend on all bits of z."""
    z = z + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def to_dense(X: Any) -> Array:
    """A dense table of doubles."""
    return np.asarray(X if isinstance(X, np.ndarray) else X.toarray(), np.float64)


def hash_records(X: Array, targets: Array) -> Array:
    """A hash of every record, its features and its target.

    >>> hashes = hash_records(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]]), np.array([0.0, 0.0, -0.0]))
    >>> bool(hashes[0] == hashes[2]), bool(hashes[0] == hashes[1])
    (True, False)
    """
    total = np.zeros(len(targets), np.uint64)
    for column in (targets, *X.T):
        total = mix_bits(total ^ (column + 0.0).view(np.uint64))
    return total


def number_copies(hashes: Array, before: Array | int = 0) -> Array:
    """Hash the copies of each hash differently, so that copies are spread like other numbers, in any order of them.

    `before` are the numbers of copies that each hash had before.

    >>> numbers = number_copies(np.array([7, 5, 7, 7], np.uint64))
    >>> len(set(numbers.tolist())), sorted(numbers) == sorted(number_copies(np.array([7, 7, 7, 5], np.uint64)))
    (4, True)
    """
    order = np.argsort(hashes, kind="stable")
    ordered, places = hashes[order], np.arange(len(hashes))
    starts = np.maximum.accumulate(np.where(np.append(True, ordered[1:] != ordered[:-1])[: len(hashes)], places, 0))
    copies = np.empty(len(hashes), np.uint64)
    copies[order] = places - starts
    copies += np.asarray(before, np.uint64)
    return np.where(copies > 0, mix_bits(hashes + copies), hashes)
