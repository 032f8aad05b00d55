"""Every public component is discovered, listed, and fed bad settings: each is refused in one sentence."""

from __future__ import annotations

import dataclasses
import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any, get_type_hints

import numpy as np
import pytest

from redescend import domains, gates, losses, steps, transforms
from redescend.errors import ParameterError, RedescendError
from redescend.parameters import AT_LEAST_ONE, COUNT, NONNEGATIVE, POSITIVE, SCALE, Component, Interval, check_instance
from tests.catalogue import BASES, CATALOGUE, LINEAR_LOSSES, name_of, public_classes

COMPONENTS = {kind: module for module in CATALOGUE for kind in public_classes(module) if kind is not losses.Custom}

BAD_FOR_ALL = [math.nan, "1.0", "", None, True, np.True_, 1j, [1.0], (), np.array([1.0]), {}, Decimal(1), object]

# fields without a range: what each of them must refuse
BAD_OTHERS: dict[tuple[type, str], list[Any]] = {
    (domains.Box, "low"): [math.nan, "a", "0.0", None, False, [[1.0]], [0.0, math.nan], [1.0, "b"], 9.0, math.inf, 1j],
    (domains.Box, "high"): [math.nan, "a", "1.0", None, True, [[1.0]], [9.0, -9.0, 9.0], -9.0, -math.inf, 1j],
    (domains.Intersection, "parts"): [1.0, None, "ball", domains.Ball, domains.Intersection(domains.Ball(1.0))],
    (steps.Normalised, "step"): [0.1, None, "step", steps.Constant],
    (gates.Robust, "transform"): [1.0, None, "Huber", transforms.Huber, losses.Squared()],
    (gates.Oracle, "clean"): [None, True, [], [1, 0], [1.0], "yes", [[True]], ["True"]],
}


def sample(kind: type) -> Any:
    return next(member for member in CATALOGUE[COMPONENTS[kind]] if type(member) is kind)


def rule_of(kind: type, name: str) -> Interval | None:
    return next(iter(getattr(get_type_hints(kind, include_extras=True)[name], "__metadata__", ())), None)


def outside(rule: Interval) -> list[Any]:
    """Values next to the interval and far from it, on both sides."""
    below = [rule.low] if rule.closed in ("right", "neither") else []
    above = [rule.high] if rule.closed in ("left", "neither") else []
    if math.isfinite(rule.low):
        below += [math.nextafter(rule.low, -math.inf), rule.low - 1, -1e308, -math.inf, -(10**400)]
    if math.isfinite(rule.high):
        above += [math.nextafter(rule.high, math.inf), rule.high * 2 + 1, math.inf]
    return [*below, *above, *([1.0, 2.5, np.float64(3.0)] if rule.whole else [10**400, Fraction(10**400)])]


FIELDS = [(kind, field.name) for kind in COMPONENTS for field in dataclasses.fields(kind)]
RANGED = [(kind, name) for kind, name in FIELDS if rule_of(kind, name) is not None]


def refused(kind: type, name: str, value: Any) -> str:
    """The sentence with which the value is refused, checked for its shape."""
    parts = (domains.Ball(1.0), value)
    with pytest.raises(ParameterError) as caught:
        kind(*parts) if kind is domains.Intersection else dataclasses.replace(sample(kind), **{name: value})
    sentence = str(caught.value)
    assert re.fullmatch(rf"The '(\w+)' parameter of {kind.__name__} must [^\n]+\. Got [^\n]+ instead\.", sentence), (
        sentence
    )
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, RedescendError)
    return sentence


@pytest.mark.parametrize("kind", COMPONENTS, ids=lambda kind: kind.__name__)
class TestEveryComponent:
    def test_is_in_the_catalogue(self, kind):
        assert any(type(member) is kind for member in CATALOGUE[COMPONENTS[kind]])

    def test_every_setting_is_checked(self, kind):
        for field in dataclasses.fields(kind):
            assert (rule_of(kind, field.name) is None) == ((kind, field.name) in BAD_OTHERS), field.name

    def test_has_a_number_of_its_own_that_the_kernel_knows(self, kind):
        same = [other for other in COMPONENTS if COMPONENTS[other] is COMPONENTS[kind] is not steps]
        kinds = [other.kind for other in same if other is not losses.Custom]
        assert sorted(kinds) == list(range(len(kinds)))

    def test_is_frozen(self, kind):
        member = sample(kind)
        for field in dataclasses.fields(kind):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(member, field.name, 1.0)

    def test_says_what_it_is(self, kind):
        assert repr(sample(kind)).startswith(f"{kind.__name__}(")
        assert kind.__doc__
        assert "Examples" in kind.__doc__


def test_the_catalogue_holds_nothing_else():
    for module, members in CATALOGUE.items():
        assert {type(member) for member in members} == set(public_classes(module))
        assert all(isinstance(member, BASES[module]) for member in members)


@pytest.mark.parametrize(("kind", "name"), RANGED, ids=lambda part: getattr(part, "__name__", part))
def test_bad_settings_are_refused_in_one_sentence(kind, name):
    rule = rule_of(kind, name)
    for value in [*BAD_FOR_ALL, *outside(rule)]:
        sentence = refused(kind, name, value)
        assert sentence == f"The '{name}' parameter of {kind.__name__} must be {rule}. Got {value!r} instead."


@pytest.mark.parametrize(("kind", "name"), BAD_OTHERS, ids=lambda part: getattr(part, "__name__", part))
def test_bad_parts_are_refused_in_one_sentence(kind, name):
    for value in BAD_OTHERS[kind, name]:
        refused(kind, name, value)


def test_an_intersection_needs_a_part():
    with pytest.raises(ParameterError, match=r"^The 'parts' parameter of Intersection must be at least one domain\."):
        domains.Intersection()


@pytest.mark.parametrize(("kind", "name"), RANGED, ids=lambda part: getattr(part, "__name__", part))
def test_numbers_of_every_kind_are_taken_and_made_plain(kind, name):
    rule = rule_of(kind, name)
    numbers = [
        np.int32(1),
        np.uint8(1),
        1,
        *([] if rule.whole else [1.0, np.float32(1.0), np.float64(1.0), Fraction(1)]),
    ]
    half = not rule.whole and 1.0 not in rule  # an open unit interval
    for number in [0.5, np.float16(0.5), Fraction(1, 2)] if half else numbers:
        stored = getattr(dataclasses.replace(sample(kind), **{name: number}), name)
        assert type(stored) is (int if rule.whole else float)
        assert stored == number


@pytest.mark.parametrize(("kind", "name"), RANGED, ids=lambda part: getattr(part, "__name__", part))
def test_closed_ends_are_taken(kind, name):
    rule = rule_of(kind, name)
    for end, closed in ((rule.low, ("both", "left")), (rule.high, ("both", "right"))):
        if rule.closed in closed:
            assert getattr(dataclasses.replace(sample(kind), **{name: end}), name) == end


@pytest.mark.parametrize("member", [member for members in CATALOGUE.values() for member in members], ids=name_of)
def test_equal_settings_make_equal_components(member):
    if not isinstance(member, domains.Box | domains.Intersection | gates.Oracle | losses.Custom):
        assert dataclasses.replace(member) == member
        assert hash(dataclasses.replace(member)) == hash(member)


@pytest.mark.parametrize(
    ("rule", "inside", "out", "words"),
    [
        (POSITIVE, [5e-324, 1e308], [0.0, -0.0, math.inf], "a float in (0, inf)"),
        (NONNEGATIVE, [0.0, 0, 1e308], [-5e-324, math.inf], "a float in [0, inf)"),
        (COUNT, [0, 10**18], [-1, 0.0, math.inf], "a whole number in [0, inf)"),
        (AT_LEAST_ONE, [1, np.int64(7)], [0, 1.0], "a whole number in [1, inf)"),
        (SCALE, [1e-100, 1e100], [9e-101, 2e100], "a float in [1e-100, 1e+100]"),
        (Interval(0, 1, "right"), [1, 1.0, 0.5], [0, 1.5], "a float in (0, 1]"),
        (Interval(-math.inf, 2.0), [-math.inf, 2.0], [2.1, math.inf, math.nan], "a float in [-inf, 2.0]"),
    ],
    ids=str,
)
def test_intervals(rule, inside, out, words):
    assert str(rule) == words
    assert all(value in rule for value in inside)
    assert not any(value in rule for value in [*out, *BAD_FOR_ALL])


def test_check_instance_returns_the_object_or_raises():
    loss = LINEAR_LOSSES[0]
    assert check_instance("Owner", "loss", loss, losses.Loss, "a loss") is loss
    with pytest.raises(ParameterError, match=r"^The 'loss' parameter of Owner must be a loss\. Got 3 instead\.$"):
        check_instance("Owner", "loss", 3, losses.Loss, "a loss")


def test_a_component_checks_what_it_inherits():
    @dataclasses.dataclass(frozen=True)
    class Widened(losses.Squared):
        pass

    assert issubclass(Widened, Component)
    with pytest.raises(ParameterError, match="The 'l2' parameter of Widened must be"):
        Widened(l2=-1.0)
