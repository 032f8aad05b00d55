"""Parameters are checked when an object is made, and refused in one sentence.

A component annotates its fields with their ranges, such as ``rate: Annotated[float, Interval(0, 1, "right")]``, and
inherits from `Component`.
"""

from __future__ import annotations

import functools
import numbers
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_type_hints

import numpy as np

from redescend.errors import ParameterError

T = TypeVar("T")

Order: TypeAlias = Literal["auto", 1, 2]  # the order of a self-tuning model


@dataclass(frozen=True)
class Interval:
    """The floats or whole numbers between two ends; as a text, "a float in (0, inf)"."""

    low: float
    high: float
    closed: Literal["both", "left", "right", "neither"] = "both"
    whole: bool = False

    def __contains__(self, value: object) -> bool:
        if isinstance(value, bool | np.bool_) or not isinstance(
            value, numbers.Integral if self.whole else numbers.Real
        ):
            return False
        number = self.convert(value)
        above = self.low <= number if self.closed in ("both", "left") else self.low < number
        below = number <= self.high if self.closed in ("both", "right") else number < self.high
        return bool(above and below)

    def __str__(self) -> str:
        left = "[" if self.closed in ("both", "left") else "("
        right = "]" if self.closed in ("both", "right") else ")"
        return f"{'a whole number' if self.whole else 'a float'} in {left}{self.low}, {self.high}{right}"

    def convert(self, value: Any) -> float | int:
        try:
            return int(value) if self.whole else float(value)
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")


POSITIVE = Interval(0, float("inf"), "neither")
NONNEGATIVE = Interval(0, float("inf"), "left")
COUNT = Interval(0, float("inf"), "left", whole=True)
AT_LEAST_ONE = Interval(1, float("inf"), "left", whole=True)
# Formulas square scales: in this range squares do not overflow.
SCALE = Interval(1e-100, 1e100)

Scale = Annotated[float, SCALE]
Positive = Annotated[float, POSITIVE]
NonNegative = Annotated[float, NONNEGATIVE]


def check(owner: str, name: str, value: Any, rule: Interval) -> Any:
    """Return `value` as a plain number if it obeys the rule, or raise an error."""
    if value not in rule:
        raise bad_parameter(owner, name, rule, value)
    return rule.convert(value)


def check_instance(owner: str, name: str, value: T, kind: type | tuple[type, ...], what: str) -> T:
    """Return `value` if it is an instance of `kind`, which `what` describes, or raise an error."""
    if not isinstance(value, kind):
        raise bad_parameter(owner, name, what, value)
    return value


def check_choice(owner: str, name: str, value: Any, choices: Iterable[str]) -> Any:
    """Return `value` if it is one of the texts `choices`, or raise an error."""
    listed = list(choices)
    if not isinstance(value, str) or value not in listed:
        *others, last = map(repr, map(str, listed))
        raise bad_parameter(owner, name, f"{', '.join(others)} or {last}", value)
    return value


def check_bool(owner: str, name: str, value: Any) -> bool:
    """Return a boolean parameter, or raise an error."""
    if not isinstance(value, bool | np.bool_):
        raise bad_parameter(owner, name, "True or False", value)
    return bool(value)


def check_order(owner: str, order: Any) -> Order:
    """Return an order, or raise an error."""
    if isinstance(order, bool | np.bool_) or not (
        isinstance(order, str | numbers.Integral) and order in ("auto", 1, 2)
    ):
        raise bad_parameter(owner, "order", "'auto', 1 or 2", order)
    return "auto" if order == "auto" else 1 if order == 1 else 2


def bad_parameter(owner: str, name: str, rule: object, value: object) -> ParameterError:
    return ParameterError(f"The '{name}' parameter of {owner} must be {rule}. Got {value!r} instead.")


@functools.cache
def _read_rules(kind: type) -> dict[str, Interval]:
    hints = get_type_hints(kind, include_extras=True)
    marks = {field.name: getattr(hints[field.name], "__metadata__", ()) for field in fields(kind)}
    return {name: mark[0] for name, mark in marks.items() if mark}


@dataclass(frozen=True)
class Component:
    """A frozen dataclass whose annotated fields are checked and converted to plain numbers."""

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for name, rule in _read_rules(kind).items():
            value = check(kind.__name__, name, getattr(self, name), rule)
            object.__setattr__(self, name, value)
