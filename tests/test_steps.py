"""Step sizes against their statements."""

from __future__ import annotations

import math
from typing import Any

import pytest

from redescend import steps
from redescend.errors import ParameterError
from redescend.steps import AdaptiveNorm, Anytime, Constant, Horizon, Normalised, Step, StronglyConvex, Theorem
from tests.catalogue import PLAIN_STEPS, STEPS, name_of

EPS = 2.0**-52
ROUNDS = [1, 2, 3, 100, 10**6, 10**12]


def alpha(step: Step, t: int, total: float = 1.0, length: float = 1.0) -> float:
    """The step of round t as a kernel takes it; `total` is Σw²‖g‖²."""
    return steps.size(step.kind, *step.settings, float(t), math.sqrt(total), length)


def stated(step: Any, t: int, total: float) -> float:
    """The step of round t as its docstring states it."""
    if isinstance(step, Constant):
        return step.alpha
    if isinstance(step, Horizon):
        return step.scale / math.sqrt(step.rounds)
    if isinstance(step, Anytime):
        return step.scale / math.sqrt(t)
    if isinstance(step, StronglyConvex):
        return 1 / (step.m * t)
    if isinstance(step, AdaptiveNorm):
        return step.scale / math.sqrt(total)
    assert isinstance(step, Theorem)
    return math.sqrt((4 * step.radius**2 + 6 * step.radius * step.path) / (step.psi**2 * step.rounds))


@pytest.mark.parametrize("t", ROUNDS)
@pytest.mark.parametrize("step", PLAIN_STEPS, ids=name_of)
class TestEveryStep:
    @pytest.mark.parametrize("total", [1e-200, 0.3, 7e4, 1e300])
    def test_is_what_it_states(self, step, t, total):
        assert alpha(step, t, total=total) == pytest.approx(stated(step, t, total), rel=8 * EPS)

    @pytest.mark.parametrize("length", [1e-300, 0.5, 40.0, 1e300])
    def test_normalised_goes_the_same_way_whatever_the_gradient(self, step, t, length):
        plain, total = alpha(step, t, total=2.0, length=length), 2.0
        assert alpha(Normalised(step), t, total=total, length=length) * length == pytest.approx(plain, rel=8 * EPS)
        assert alpha(step, t, total=total, length=length) == alpha(step, t, total=total, length=1.0)

    def test_a_round_without_a_gradient_does_not_move(self, step, t):
        assert alpha(Normalised(step), t, length=0.0) == 0.0

    def test_normalising_twice_is_normalising_once(self, step, t):
        assert alpha(Normalised(Normalised(step)), t, length=3.0) == alpha(Normalised(step), t, length=3.0)


def test_adaptive_norm_waits_for_a_gradient():
    assert alpha(AdaptiveNorm(), 1, total=0.0) == 0.0


def test_adaptive_norm_is_scale_free():
    """A gradient s times as long is stepped along s times as little: the move is the same."""
    assert 8.0 * alpha(AdaptiveNorm(), 1, total=64.0 * 5.0) == pytest.approx(
        alpha(AdaptiveNorm(), 1, total=5.0), rel=4 * EPS
    )


def test_theorem_with_psi_one_is_the_step_of_normalised_descent():
    radius, path, rounds = 3.0, 5.0, 49
    step = Theorem(rounds=rounds, radius=radius, path=path, psi=1.0)
    assert alpha(step, 1) == pytest.approx(math.sqrt((4 * radius**2 + 6 * radius * path) / rounds), rel=4 * EPS)


@pytest.mark.parametrize("step", STEPS, ids=name_of)
def test_settings_are_plain_numbers(step):
    scale, normalised = step.settings
    assert (type(scale), type(normalised)) == (float, float)
    assert normalised == float(isinstance(step, Normalised))
    assert isinstance(step.kind, int)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: Constant(1e308), 1e308),
        (lambda: Constant(5e-324), 5e-324),
        (lambda: Horizon(rounds=10**18), 1e-9),
        (lambda: Anytime(1e308), 1e308),
        (lambda: StronglyConvex(1e100), 1e-100),
        (lambda: StronglyConvex(1e-100), 1e100),
        (lambda: Theorem(rounds=1, radius=1e100, path=0.0, psi=1.0), 2e100),
        (lambda: Theorem(rounds=10**18, radius=1.0, path=0.0, psi=1.0), 2e-9),
        (lambda: Theorem(rounds=1, radius=1.0, path=1e100, psi=1.0), math.sqrt(6e100)),
    ],
)
def test_extreme_settings_are_met_exactly(make, expected):
    assert make().settings[0] == pytest.approx(expected, rel=8 * EPS)


def test_a_step_that_is_no_number_is_refused():
    """1/m must be a float: a smaller m has no step."""
    with pytest.raises(ParameterError, match=r"^The 'm' parameter of StronglyConvex must be .* instead\.$"):
        StronglyConvex(1e-320)
