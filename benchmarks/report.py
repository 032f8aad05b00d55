"""A row of the table: two times of one run, their ratio, and the goal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Verdict: TypeAlias = Literal["met", "missed", ""]


@dataclass(frozen=True)
class Goal:
    """A goal: shown, never enforced.

    Examples
    --------
    >>> print(Goal(1.5), Goal(4, "speedup"), Goal(1.5e-6, "seconds"), sep=", ")
    ≤ 1.5 ×, ≥ 4 × faster, ≤ 1.5 µs
    """

    limit: float
    of: Literal["ratio", "speedup", "seconds", "slope"] = "ratio"

    def __str__(self) -> str:
        shown = {
            "ratio": f"≤ {self.limit:.3g} ×",
            "speedup": f"≥ {self.limit:.3g} × faster",
            "seconds": f"≤ {duration(self.limit)}",
            "slope": f"≤ {self.limit:.3g}",
        }
        return shown[self.of]

    def verdict(self, value: float) -> Verdict:
        """Whether a value of the goal's kind reaches it."""
        good = value >= self.limit if self.of == "speedup" else value <= self.limit
        return "met" if good else "missed"


@dataclass(frozen=True)
class Row:
    """A measurement, its reference, and the ratio, if the reference is installed."""

    what: str
    measured: str
    against: str
    ratio: float | None
    goal: str = ""
    verdict: Verdict = ""


def compare(what: str, seconds: float, against: str, other: float, goal: Goal | None = None, *, per: str = "") -> Row:
    """Ours over theirs, or theirs over ours where the goal is to be faster.

    Examples
    --------
    >>> compare("play", 0.75, "read", 0.5, Goal(1.6), per="row")
    Row(what='play', measured='750 ms a row', against='read, 500 ms a row', ratio=1.5, goal='≤ 1.6 ×', verdict='met')
    """
    ratio = other / seconds if goal and goal.of == "speedup" else seconds / other
    unit = f" a {per}" if per else ""
    measured, limit = duration(seconds) + unit, f"{against}, {duration(other)}{unit}"
    if goal is None:
        return Row(what, measured, limit, ratio)
    judged = seconds if goal.of == "seconds" else ratio
    return Row(what, measured, limit, ratio, str(goal), goal.verdict(judged))


def duration(seconds: float) -> str:
    """Format a time with three digits and a suitable unit.

    Examples
    --------
    >>> duration(4.85e-8), duration(1.5e-6), duration(0.2)
    ('48.5 ns', '1.5 µs', '200 ms')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
