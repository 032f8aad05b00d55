"""Constants against their maximisers, theorems against their printed formulas."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import redescend as rd
from redescend.bounds import Setting
from tests.games import REPRODUCIBLE

scales = st.floats(-4, 4).map(lambda power: 10.0**power)
sizes = st.one_of(st.just(0.0), scales)
ROUNDING = 1 + 1e-9


def largest(value, around: float) -> float:
    """The maximum over r > 0 of a function whose logarithm is concave in log r, near its maximiser's scale."""
    found = minimize_scalar(
        lambda log_r: -value(math.exp(log_r)),
        bounds=(math.log(around) - 25, math.log(around) + 5),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return -found.fun


class TestConstants:
    @given(m=scales, a=scales, b=scales, G=sizes, more=sizes)
    @settings(REPRODUCIBLE, max_examples=200)
    def test_sharp_ones_are_attained(self, m, a, b, G, more):
        L = m + more  # no loss that is m-strongly convex has less, but for G
        sharp = rd.bounds.constants(m, G, L, a, b, B=2 * a, sharp=True)

        def weight(r: float) -> float:
            return 1 / (1 + b * math.exp(min(m * r * r / (2 * a), 700)))

        near = math.sqrt(2 * a / m)
        assert largest(lambda r: weight(r) * r, near) == pytest.approx(sharp.phi, rel=1e-9)
        assert largest(lambda r: weight(r) * r * r, near) == pytest.approx(sharp.kappa, rel=1e-9)
        assert largest(lambda f: f / (1 + b * math.exp(min(f / a, 700))), a) == pytest.approx(sharp.nu, rel=1e-9)
        # With G the maximiser may be 0 itself, the end of the range.
        best = max(weight(0.0) * G, largest(lambda r: weight(r) * (G + L * r), near))
        assert best == pytest.approx(sharp.psi, rel=1e-9)
        assert 1 / sharp.xi == pytest.approx(1 / (1 + b * math.exp(2)), rel=1e-12)

    @given(m=scales, a=scales, b=scales, G=sizes, L=sizes)
    @settings(REPRODUCIBLE, max_examples=200)
    def test_printed_ones_are_the_formula_and_no_smaller(self, m, a, b, G, L):
        printed, sharp = (rd.bounds.constants(m, G, L, a, b, B=a, sharp=sharp) for sharp in (False, True))
        assert printed.psi == pytest.approx(G + max(m * L / (2 * a * b), 4 * a**2 * L / (m**2 * b)))
        assert printed.phi == pytest.approx(max(m / (2 * a), 4 * a**2 / m**2) / b)
        assert printed.kappa == pytest.approx(max(m / (2 * a), 2 * a / m) / b)
        assert printed.nu == pytest.approx(max(a, 1 / a) / b)
        assert printed.xi == sharp.xi == pytest.approx(1 + b * math.e)
        assert all(small <= large * ROUNDING for small, large in zip(sharp, printed, strict=True))

    def test_beyond_the_floats_they_stay_finite(self):
        assert all(map(math.isfinite, rd.bounds.constants(1e-100, 1e300, 1e300, 1e100, 1e-100, B=1e308)))
        assert all(map(math.isfinite, rd.bounds.constants(1e-100, 1e300, 1e300, 1e100, 1e-100, B=1e308, sharp=True)))

    @pytest.mark.parametrize(("name", "value"), [("m", 0.0), ("a", -1.0), ("b", math.nan), ("G", -1.0), ("B", "1")])
    def test_bad_values_get_the_sentence(self, name, value):
        good = {"m": 1.0, "G": 1.0, "L": 1.0, "a": 1.0, "b": 1.0, "B": 1.0}
        with pytest.raises(rd.errors.ParameterError, match=f"The '{name}' parameter of constants must be"):
            rd.bounds.constants(**(good | {name: value}))


@st.composite
def drawn_settings(draw):
    numbers = {field.name: draw(sizes) for field in dataclasses.fields(Setting) if field.name not in ("rounds", "k")}
    return Setting(
        **(numbers | {"rounds": draw(st.integers(50, 1000)), "k": draw(st.integers(0, 50)), "m": draw(scales)})
    )


class TestTheorems:
    """Each against its formula, written again from the paper."""

    @given(game=drawn_settings(), b=scales, sharp=st.booleans())
    @settings(REPRODUCIBLE, max_examples=100)
    def test_bounded_domain(self, game, b, sharp):
        a = max(game.B, game.B_all, 1.0) / 5
        T, k, D, V, V_all, delta = game.rounds, game.k, game.D, game.path, game.path_all, game.deviation
        for B, path, function in ((game.B, V, rd.bounds.clean_dynamic), (game.B_all, V_all, rd.bounds.invex_dynamic)):
            psi, phi, kappa, _, xi = rd.bounds.constants(game.m, game.G, game.L, a, b, B, sharp)
            if psi == 0.0 or D == 0.0:
                continue
            bound = function(game, a, b, sharp=sharp)
            outliers = k * (game.G * phi + game.L * kappa) + k * (game.G + game.L * phi) * delta
            outliers = outliers if function is rd.bounds.clean_dynamic else 0.0
            assert bound.value == pytest.approx(xi * (psi * math.sqrt((4 * D**2 + 6 * D * path) * T) + outliers))
            assert bound.step == pytest.approx(math.sqrt((4 * D**2 + 6 * D * path) / (psi**2 * T)))
            # The prescribed step is the best one.
            for other in (0.5, 2.0):
                assert function(game, a, b, sharp=sharp, step=other * bound.step).value >= bound.value
            assert function(game, a, b, sharp=sharp, step=bound.step).value == pytest.approx(bound.value)

    @given(game=drawn_settings(), b=scales, experts=st.integers(1, 10**6), sharp=st.booleans())
    @settings(REPRODUCIBLE, max_examples=50)
    def test_experts(self, game, b, experts, sharp):
        a = max(game.B, 1.0) / 5
        c = rd.bounds.constants(game.m, game.G, game.L, a, b, game.B, sharp)
        bound = rd.bounds.expert(game, a, b, experts, sharp=sharp)
        root = math.sqrt(game.rounds * math.log(experts) / 2)
        assert bound.value == pytest.approx(c.xi * (game.k * c.nu + c.nu * root))
        assert bound.step == pytest.approx(math.sqrt(8 * math.log(experts) / (game.rounds * c.nu**2)))

    def test_the_five_cases_without_a_domain(self):
        seen = set()
        rng = np.random.default_rng(0)
        for _ in range(2000):
            T, k = int(rng.integers(2, 60)), int(rng.integers(0, 3))
            size, V, G, L, delta, eps, a, b, B = 10.0 ** rng.uniform(
                [-6, -3, -2, -2, -2, -2, -1, -1, -2], [25, 3, 2, 2, 2, 2, 1, 1, 0]
            )
            m, a_max = 10.0 ** rng.uniform(-6, 2), math.sqrt(T) * 10.0 ** rng.uniform(0.5, 2)
            game = Setting(rounds=T, k=k, m=m, G=G, L=L, B=B, comparator=size, path=V, deviation=delta)
            printed = bool(rng.integers(2))
            bound = rd.bounds.clean_dynamic_unbounded(game, a, b, eps, a_max, printed=printed)
            psi, phi, kappa, nu, xi = rd.bounds.constants(m, G, L, a, b, B)
            tried = math.log2(a_max) if printed else math.ceil(math.log2(a_max))
            best = math.sqrt((32 * size**2 + 24 * size * V) / (T * psi**2))
            rest = k * (G * phi + L * kappa + psi * delta) + k * nu + nu * math.sqrt(T * math.log(T * tried) / 2)
            C = a_max / math.sqrt(T)
            if size > eps * 2**T / T:
                case, length = "large comparator", G + 2 * (1 if printed else L) * size
                value = 2 * size * length * math.log2(size * T / eps)
            elif size < 2 * eps / T:
                case = "small comparator"
                value = xi * (
                    8 * eps**2 / (T * math.sqrt(T)) + math.sqrt(T) * psi**2 + 6 * eps * V / math.sqrt(T) + rest
                )
            elif best <= 2 / math.sqrt(T):
                case, both = "step below the grid", psi * math.sqrt((32 * size**2 + 24 * size * V) * T)
                value = xi * (8 * size**2 * math.sqrt(T) + psi**2 * math.sqrt(T) + both + rest)
            elif best >= C:
                case, both = "step above the grid", psi / 2 * math.sqrt((32 * size**2 + 24 * size * V) * T)
                value = xi * (16 * size**2 / C + both + 12 * size * V / C + rest)
            else:
                case = "inside the grid"
                value = xi * (3 * math.sqrt(T * psi**2 / 2 * (16 * size**2 + 12 * size * V)) + rest)
            assert (bound.case, bound.value) == (case, pytest.approx(value))
            assert bound.step == pytest.approx(best)
            seen.add(case)
        assert len(seen) == 5

    @given(game=drawn_settings())
    @settings(REPRODUCIBLE, max_examples=50)
    def test_peers(self, game):
        T, k, D, V, G = game.rounds, game.k, game.D, game.path, game.gradient
        if D == 0.0 or G == 0.0:
            return
        wide = 2 * D
        bound = rd.bounds.top_k(game)
        filtered = 2 * wide * G * k + 2 * wide * G * (k + 1)
        assert bound.value == pytest.approx(2 * math.sqrt((3 * wide * V + wide**2) * T) * G + filtered)
        assert bound.step == pytest.approx(math.sqrt(3 * wide * V + wide**2) / (2 * G * math.sqrt(T)))
        bound = rd.bounds.normalised(game, K=3.0)
        assert bound.value == pytest.approx(3 * (math.sqrt(T * (4 * D**2 + 6 * D * V)) + 2 * D * k))
        assert bound.step == pytest.approx(math.sqrt((4 * D**2 + 6 * D * V) / T))
