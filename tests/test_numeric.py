"""The shared numerical tools against exact arithmetic, at the scales where the plain formulas overflow or vanish."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redescend.numeric import LARGEST, choose, dot, largest_entry, log1p_ratio, norm, one_like

EPS = float(np.finfo(float).eps)
ENTRIES = st.floats(allow_nan=False, allow_infinity=False)
VECTORS = st.lists(ENTRIES, min_size=1, max_size=6)
PAIRS = st.lists(st.tuples(ENTRIES, ENTRIES), min_size=1, max_size=6)


def exact_dot(left: list[float], right: list[float]) -> Fraction:
    return sum((Fraction(a) * Fraction(b) for a, b in zip(left, right, strict=True)), Fraction(0))


@given(VECTORS)
def test_norm_is_the_root_of_the_sum_of_squares(vector):
    with decimal.localcontext(decimal.Context(prec=60, Emax=10**6, Emin=-(10**6))):
        exact = min(float(sum(Decimal(entry) ** 2 for entry in vector).sqrt()), LARGEST)
    # scaled by its largest entry: a few roundings, and 5e-324 is the smallest step of all
    assert norm(np.array(vector)) == pytest.approx(exact, rel=8 * EPS, abs=1e-323)


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e-160, 1.0, 1e160, 1e300, 2e307])
def test_norm_neither_overflows_nor_vanishes(scale):
    assert norm(np.array([3.0, -4.0]) * scale) == pytest.approx(5.0 * scale, rel=4 * EPS)


def test_norm_of_the_largest_floats_is_the_largest_float():
    assert norm(np.array([LARGEST, LARGEST])) == LARGEST
    assert norm(np.array([np.finfo(np.float32).max] * 2)) == pytest.approx(
        math.sqrt(2) * float(np.finfo(np.float32).max)
    )


def test_norm_of_nothing_and_of_what_is_not_finite():
    assert norm(np.zeros(3)) == norm(np.zeros(0)) == 0.0
    assert norm(np.array([1.0, -np.inf])) == np.inf
    assert math.isnan(norm(np.array([1.0, np.nan])))


def test_largest_entry():
    assert largest_entry(np.array([1.0, -3.0, 2.0])) == 3.0
    assert largest_entry(np.zeros(0)) == 0.0


@given(PAIRS)
def test_dot_is_the_sum_of_products(pairs):
    left, right = (list(side) for side in zip(*pairs, strict=True))
    exact = min(max(exact_dot(left, right), Fraction(-LARGEST)), Fraction(LARGEST))
    # every product and sum is rounded, relative to the largest of them
    size = sum((abs(Fraction(a) * Fraction(b)) for a, b in pairs), Fraction(0))
    assert abs(Fraction(dot(np.array(left), np.array(right))) - exact) <= Fraction(16 * EPS) * size + Fraction(
        1, 2**1060
    )


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([1e200], [1e200]),
        ([1e200], [-1e200]),
        ([1e308, 1e308], [10.0, -10.0]),
        ([1e200, 1e200], [1e200, -1e200]),
        ([1e200, 1e200, 1.0], [1e200, -1e200, 1.0]),
        ([1e308, -1e308, 3.0], [1e8, 1e8, 1e300]),
        ([LARGEST] * 4, [1.0, 1.0, -1.0, -0.5]),
        ([0.5, 0.5, 0.5, -0.45], [1.7e308] * 4),
        ([1.7e308] * 4, [0.5, 0.5, 0.5, -0.45]),
    ],
)
def test_dot_where_a_term_or_a_partial_sum_overflows(left, right):
    exact = min(max(exact_dot(left, right), Fraction(-LARGEST)), Fraction(LARGEST))
    top = Fraction(max(map(abs, left))) * Fraction(max(map(abs, right)))
    assert abs(Fraction(dot(np.array(left), np.array(right))) - exact) <= 4 * Fraction(EPS) * max(top, abs(exact))


def test_dot_in_single_precision_does_not_stop_at_its_largest():
    big = np.full(3, 3e38, np.float32)
    assert dot(big, big) == pytest.approx(3 * float(np.float32(3e38)) ** 2, rel=1e-6)


def test_dot_shows_what_is_not_finite():
    assert dot(np.array([np.inf, 1.0]), np.array([1.0, 1.0])) == np.inf
    assert math.isnan(dot(np.array([np.nan]), np.array([1.0])))


RATIOS = st.one_of(st.just(0.0), st.floats(1e-300, 1e308))


@given(f=RATIOS, scale=st.floats(1e-300, 1e300))
def test_log1p_ratio(f, scale):
    with decimal.localcontext(decimal.Context(prec=60, Emax=10**6, Emin=-(10**6))):
        ratio = Decimal(f) / Decimal(scale)
        exact = float((1 + ratio).ln() if ratio > Decimal("1e-20") else ratio - ratio**2 / 2)
    # below 1e-307 the ratio itself is no longer a full double
    assert log1p_ratio(f, scale) == pytest.approx(exact, rel=8 * EPS, abs=1e-307 * EPS)


def test_log1p_ratio_of_arrays():
    with np.errstate(over="ignore"):
        out = log1p_ratio(np.array([0.0, 1e308]), 1e-300)
    np.testing.assert_allclose(out, [0.0, 608 * math.log(10)], rtol=8 * EPS)


def test_choose_and_one_like_follow_their_argument():
    np.testing.assert_array_equal(choose(np.array([True, False]), 1.0, np.array([5.0, 6.0])), [1.0, 6.0])
    np.testing.assert_array_equal(one_like(np.array([[0.0, -1.0], [np.inf, 2.0]])), np.ones((2, 2)))
    assert one_like(np.float64(3.0)) == 1.0
