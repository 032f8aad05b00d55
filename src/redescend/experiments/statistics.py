"""The evidence for a claim: final regrets of paired runs, and how likely a difference is chance."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
from scipy.special import bdtr, stdtr

from redescend.experiments.results import Results
from redescend.numeric import Array

COUNTS = ("0", "√T", "T^⅔", "T/4")
CLEAR = 0.01
"""A difference with a smaller p-value is clear."""

_DIVERGED = 1e150
"""A regret from here on counts as infinite: its square, and so its variance, is not a number of this machine."""


class MissingResultsError(LookupError):
    """A rule asks for results that are not there."""


def p_value(one: Array, two: Array) -> float:
    """Two-sided p-value of the paired t-test that two learners are as good as each other; NaN for fewer than two runs.

    Infinite regret (a learner that diverged) has no variance: then the signs of the differences are tested, and if all
    are infinite with one sign there is no doubt.

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
    """Mean and its standard error; (inf, NaN) if any run diverged, an error of NaN for a single run."""
    if not np.isfinite(values).all():
        return float("inf"), float("nan")
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return float(values.mean()), float(error)


def number(value: float) -> str:
    """A number as a person writes it.

    >>> number(14396.2), number(0.08741), number(1.2e137), number(float("inf"))
    ('14,396', '0.0874', '1.2e137', 'diverged')
    """
    if not np.isfinite(value):
        return "diverged"
    if abs(value) >= 1e7:
        return f"{value:.1e}".replace("+", "")
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


class Finals:
    """Regret after the last round of every run of a problem, by outlier count and learner; infinite if it diverged."""

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

    def pair(self, *cells: tuple[str, str]) -> list[Array]:
        """The final regrets of several (count, learner) in the runs that all of them have, at least two."""
        for count, learner in cells:
            if (count, learner) not in self.cells:
                raise MissingResultsError(f"{self.problem} has no results of {learner} at k = {count}.")
        runs = sorted(set.intersection(*(set(self.cells[cell]) for cell in cells)))
        if len(runs) < 2:
            raise MissingResultsError(f"{self.problem} has {len(runs)} paired runs where the rule needs two or more.")
        return [np.array([self.cells[cell][run] for run in runs]) for cell in cells]

    def late(self, count: str, learner: str) -> Array:
        """The regret gained per round in the second half of every run."""
        (final,) = self.pair((count, learner))
        early = self._early.get((count, learner), {})
        before = np.zeros(len(final))
        for place, run in enumerate(sorted(self.cells[count, learner])):
            if np.isfinite(final[place]):
                if run not in early:
                    raise MissingResultsError(f"{self.problem} has no regret of {learner} at k = {count} half way.")
                before[place] = early[run]
        return (final - before) / (self.rounds - self._middle)

    def learner(self, start: str) -> list[str]:
        """The learners whose name begins so, in the order of the results."""
        return list(dict.fromkeys(name for _, name in self.cells if name.startswith(start)))
