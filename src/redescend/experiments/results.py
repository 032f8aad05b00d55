"""Queries of the tidy table: curves, paired final regrets, and how likely a difference is chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.special import bdtr, stdtr

from redescend.errors import DataError
from redescend.numeric import Array

COUNTS = ("0", "√T", "T^⅔", "T/4")
CLEAR = 0.01
"""A difference with a smaller p-value is clear."""

_DIVERGED = 1e150
"""A larger regret counts as infinite, because its variance overflows."""


class MissingResultsError(LookupError):
    """A rule needs results that are not there."""


@dataclass(frozen=True, eq=False)
class Curves:
    """A measure by round, one row per run, with mean and standard error over the runs."""

    rounds: Array
    runs: Array

    @property
    def mean(self) -> Array:
        return self.runs.mean(axis=0)

    @property
    def error(self) -> Array:
        if len(self.runs) == 1:
            return np.zeros(len(self.rounds))
        with np.errstate(over="ignore"):
            return self.runs.std(axis=0, ddof=1) / np.sqrt(len(self.runs))

    @property
    def finals(self) -> Array:
        """The value in the last round of every run."""
        return self.runs[:, -1]

    @property
    def final(self) -> float:
        return float(self.mean[-1])


class Results:
    """The tidy table and queries of it."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def select(self, **where: Any) -> Results:
        """Rows in which every named column equals the given value."""
        rows = self.table
        for name, value in where.items():
            rows = rows.filter(pc.equal(rows[name], value))
        return Results(rows)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def column(self, name: str) -> Array:
        return self.table[name].to_numpy()

    def unique(self, name: str) -> list[Any]:
        """Distinct values of a column, in order of first appearance."""
        values: list[Any] = pc.unique(self.table[name]).to_pylist()
        return values

    def curves(self, **where: Any) -> Curves:
        """One measure of one learner in one setting, as runs × rounds."""
        rows = self.select(**where)
        runs, rounds, values = rows.column("run"), rows.column("round"), rows.column("value")
        order = np.lexsort((rounds, runs))
        each = np.unique(rounds)
        if not len(each):
            raise DataError(
                f"The results have no rows with {', '.join(f'{name} {value}' for name, value in where.items())}."
            )
        return Curves(each, values[order].reshape(-1, len(each)))


def p_value(one: Array, two: Array) -> float:
    """Two-sided p-value of the paired t-test that two learners have equal regret; NaN for fewer than two runs.

    If a learner diverged its regret is infinite: the sign test is used, and p = 0 if all runs agree.

    >>> round(p_value(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 3.5])), 4)
    0.1181
    """
    if len(one) < 2:
        return float("nan")
    difference = np.subtract(one, two, out=np.zeros(len(one)), where=one != two)
    spread = np.ptp(difference) if np.isfinite(difference).all() else np.inf
    if not difference.any():
        return 1.0
    if spread == 0.0 or np.isposinf(difference).all() or np.isneginf(difference).all():
        return 0.0
    if np.isinf(spread):
        fewer = min(np.sum(difference > 0), np.sum(difference < 0))
        return float(min(1.0, 2.0 * bdtr(float(fewer), int(np.count_nonzero(difference)), 0.5)))
    t = difference.mean() / (difference.std(ddof=1) / np.sqrt(len(difference)))
    return float(2.0 * stdtr(len(difference) - 1, -abs(t)))


def mean_and_error(values: Array) -> tuple[float, float]:
    """Mean and standard error; (inf, NaN) if any run diverged, and a NaN error for a single run."""
    if not np.isfinite(values).all():
        return float("inf"), float("nan")
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return float(values.mean()), float(error)


def format_mean(mean: float, error: float) -> str:
    """A mean and its standard error.

    >>> format_mean(8.75, 0.853), format_mean(8.75, float("nan")), format_mean(8e9, 2.0)
    ('8.8 ± 0.9', '8.75', '8.0e09')
    """
    if np.isnan(error) or mean >= 1e7:
        return format_number(mean)
    decimals = 1 if error < 10.0 else 0
    return f"{mean:,.{decimals}f} ± {error:,.{decimals}f}"


def angle_between(theta: Array, truth: Array) -> float:
    """The angle between two directions of the plane, in degrees.

    >>> round(angle_between(np.array([1.0, 0.0]), np.array([2.0, 2.0])), 9)
    45.0
    """
    across = abs(theta[0] * truth[1] - theta[1] * truth[0])
    return float(np.degrees(np.arctan2(across, theta @ truth)))


def format_number(value: float) -> str:
    """A number with three significant digits, or as a whole number.

    >>> format_number(14396.2), format_number(0.08741), format_number(1.2e137), format_number(float("inf"))
    ('14,396', '0.0874', '1.2e137', 'diverged')
    """
    if not np.isfinite(value):
        return "diverged"
    if abs(value) >= 1e7:
        return f"{value:.1e}".replace("+", "")
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


class Finals:
    """Final regret of every run of a problem, by outlier count and learner; infinite if it diverged."""

    def __init__(self, results: Results, problem: str) -> None:
        self.problem = problem
        rows = results.select(experiment=problem, problem=problem)
        regret = rows.select(measure="regret").table
        self.rounds = max(pc.unique(regret["rounds"]).to_pylist(), default=0)
        self.k: dict[str, int] = dict(zip(rows.column("count"), rows.column("k").tolist(), strict=True))
        self.cells: dict[tuple[str, str], dict[int, float]] = {}
        last = regret.filter(pc.equal(regret["round"], regret["rounds"])).to_pylist()
        for row in last + rows.select(measure="diverged").table.to_pylist():
            value = row["value"] if row["measure"] == "regret" and row["value"] < _DIVERGED else np.inf
            self.cells.setdefault((row["count"], row["learner"]), {})[row["run"]] = value
        seen = [at for at in pc.unique(regret["round"]).to_pylist() if at <= self.rounds / 2]
        self._middle = max(seen, default=0)
        self._early: dict[tuple[str, str], dict[int, float]] = {}
        for row in Results(regret).select(round=self._middle).table.to_pylist():
            self._early.setdefault((row["count"], row["learner"]), {})[row["run"]] = row["value"]

    def pair_runs(self, *cells: tuple[str, str]) -> list[Array]:
        """Final regrets of several (count, learner) in the runs that all of them have; at least two runs."""
        for count, learner in cells:
            if (count, learner) not in self.cells:
                raise MissingResultsError(f"{self.problem} has no results of {learner} at k = {count}.")
        runs = sorted(set.intersection(*(set(self.cells[cell]) for cell in cells)))
        if len(runs) < 2:
            raise MissingResultsError(f"{self.problem} has {len(runs)} paired runs; the rule needs at least two.")
        return [np.array([self.cells[cell][run] for run in runs]) for cell in cells]

    def late_rate(self, count: str, learner: str) -> Array:
        """Regret per round in the second half of every run."""
        (final,) = self.pair_runs((count, learner))
        early = self._early.get((count, learner), {})
        before = np.zeros(len(final))
        for place, run in enumerate(sorted(self.cells[count, learner])):
            if np.isfinite(final[place]):
                if run not in early:
                    raise MissingResultsError(f"{self.problem} has no regret of {learner} at k = {count} at half time.")
                before[place] = early[run]
        return (final - before) / (self.rounds - self._middle)

    def find_learners(self, prefix: str) -> list[str]:
        """Learners whose name has this prefix, in the order of the results."""
        return list(dict.fromkeys(name for _, name in self.cells if name.startswith(prefix)))
