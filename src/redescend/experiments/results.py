"""The tidy table of results: the seeded tasks that compute its rows, and queries of it.

An experiment is a generator of tasks and a function that computes one. A task is plain settings: it has a name and a
key, can be sent to another process, and gives the same bits wherever it is computed. Queries are curves, paired final
regrets, and how likely a difference is chance.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.special import bdtr, stdtr

from redescend.kernels.compiler import source_digest
from redescend.numeric import Array

_TEXT, _WHOLE, _NUMBER = pa.string(), pa.int64(), pa.float64()
_COLUMNS = {"experiment": _TEXT, "problem": _TEXT, "run": _WHOLE, "rounds": _WHOLE, "count": _TEXT, "k": _WHOLE}
_COLUMNS |= {"learner": _TEXT, "a": _NUMBER, "b": _NUMBER, "round": _WHOLE, "measure": _TEXT, "value": _NUMBER}

SCHEMA = pa.schema([pa.field(name, kind, nullable=name in ("a", "b")) for name, kind in _COLUMNS.items()])
"""The tidy table, explained in docs/results.md: one value of a measure of a learner in one round of a run."""

Block = dict[str, Any]  # rows of the tidy table: arrays are columns, and anything else is repeated in all rows


@functools.cache
def code_digest() -> str:
    """A hash of the code that computes tasks, so that rows of older code are not reused."""
    folder = Path(__file__).parent
    names = ("paper.py", "problems.py", "suite.py")
    rooms = ("learners", "streams", "adversaries", "regret", "bounds")
    modules = [file for name in rooms for file in (folder.parent / name).glob("*.py")]
    files = [*(folder / name for name in names), folder.parent / "game.py", *sorted(modules)]
    return hashlib.sha256(b"".join([source_digest().encode(), *(file.read_bytes() for file in files)])).hexdigest()


@dataclass(frozen=True)
class Task:
    """One piece of work: the name of an experiment and the settings of this piece."""

    experiment: str
    settings: tuple[tuple[str, int | float | str], ...]

    def __str__(self) -> str:
        return f"{self.experiment} ({', '.join(f'{name} {value}' for name, value in self.settings)})"

    @property
    def key(self) -> str:
        """A hash of the experiment, the settings and the code; equal in every process."""
        text = json.dumps([code_digest(), self.experiment, sorted(self.settings)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Options:
    """Options of the command."""

    runs: int = 30
    rounds: int | None = None
    seed: int = 0
    quick: bool = False


@dataclass(frozen=True)
class Experiment:
    """The tasks of an experiment, and the function that computes one as blocks of rows."""

    tasks: Callable[[Options], Iterable[Task]]
    compute: Callable[..., Iterator[Block]]


def make_point(round_: int, measure: str, value: float) -> Block:
    """A block of one row; an infinite value is stored as the largest float."""
    return {"round": np.array([round_]), "measure": measure, "value": np.array([min(value, np.finfo(float).max)])}


def join_blocks(blocks: Iterable[Block]) -> pa.Table:
    """Join blocks of rows; each column is one chunk, because filters of many small ones are slow."""
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
    for block in blocks:
        rows = max(len(value) for value in block.values() if isinstance(value, np.ndarray))
        for name, column in columns.items():
            value = block.get(name)
            column += value.tolist() if isinstance(value, np.ndarray) else [value] * rows
    return pa.table(columns, schema=SCHEMA)


# --- queries ---

COUNTS = ("0", "√T", "T^⅔", "T/4")  # the paper's numbers of outliers
CLEAR = 0.01  # a difference with a smaller p-value is clear
_DIVERGED = 1e150  # a larger regret counts as infinite, because its variance overflows


class MissingResultsError(LookupError):
    """A rule needs results that are not there."""


class Line(NamedTuple):
    """Mean and standard error over the runs at each value of a column; the error of a single run is 0."""

    where: Array
    mean: Array
    error: Array


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

    def read_lines(self, by: str) -> dict[str, Line]:
        """A line for each learner over the values of a column."""
        return {learner: _read_line(self.select(learner=learner), by) for learner in self.unique("learner")}


def _read_line(rows: Results, by: str) -> Line:
    where, values = rows.column(by), rows.column("value")
    each = np.unique(where)
    with np.errstate(over="ignore", invalid="ignore"):
        mean, error = np.array([mean_and_error(values[where == place]) for place in each]).reshape(-1, 2).T
    return Line(each.astype(np.float64), mean, np.nan_to_num(error))


def p_value(one: Array, two: Array) -> float:
    """Two-sided p-value of the paired t-test that two learners have equal regret; NaN for fewer than two runs.

    If a learner diverged its regret is infinite: the sign test is used, and p = 0 if all runs agree.
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


def exceeds(high: Array, low: Array, factor: float = 1.0) -> float:
    """The degree to which `high` exceeds `factor` times `low`: 1 if clearly, ½ if only on average, otherwise 0."""
    if not np.mean(high) > factor * np.mean(low):
        return 0.0
    return 1.0 if p_value(high, factor * low) < CLEAR else 0.5


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
    """The angle between two directions of the plane, in degrees."""
    across = abs(theta[0] * truth[1] - theta[1] * truth[0])
    return float(np.degrees(np.arctan2(across, theta @ truth)))


def read_theta(results: Results, count: str, learner: str) -> Array:
    """The final action of a learner in the plane."""
    rows = results.select(experiment="boundaries", count=count, learner=learner)
    theta = [rows.select(measure=f"theta {place}").column("value")[:1] for place in (0, 1)]
    if not all(map(len, theta)):
        raise MissingResultsError(f"There is no boundary of {learner} at k = {count}.")
    return np.concatenate(theta)


def read_angles(results: Results, learners: Sequence[str]) -> dict[tuple[str, str], float]:
    """The angle of every learner to the truth, by (count, learner)."""
    angles = {}
    for count in COUNTS:
        truth, *thetas = (read_theta(results, count, name) for name in ("truth", *learners))
        for name, theta in zip(learners, thetas, strict=True):
            # An action of 0 has no boundary, which counts as the largest angle.
            angles[count, name] = angle_between(theta, truth) if theta.any() else 180.0
    return angles


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
        last = regret.filter(pc.equal(regret["round"], regret["rounds"]))
        self.cells = _group_runs(pa.concat_tables([last, rows.select(measure="diverged").table]))
        seen = [at for at in pc.unique(regret["round"]).to_pylist() if at <= self.rounds / 2]
        self._middle = max(seen, default=0)
        self._early = _group_runs(Results(regret).select(round=self._middle).table)

    def select_paired_runs(self, *cells: tuple[str, str]) -> list[Array]:
        """Final regrets of several (count, learner) in the runs that all of them have; at least two runs."""
        for count, learner in cells:
            if (count, learner) not in self.cells:
                raise MissingResultsError(f"{self.problem} has no results of {learner} at k = {count}.")
        runs = sorted(set.intersection(*(set(self.cells[cell]) for cell in cells)))
        if len(runs) < 2:
            raise MissingResultsError(f"{self.problem} has {len(runs)} paired runs; the rule needs at least two.")
        return [np.array([self.cells[cell][run] for run in runs]) for cell in cells]

    def compute_late_rate(self, count: str, learner: str) -> Array:
        """Regret per round in the second half of every run."""
        (final,) = self.select_paired_runs((count, learner))
        early = self._early.get((count, learner), {})
        before = np.array([early.get(run, np.nan) for run in sorted(self.cells[count, learner])])
        before[np.isinf(final)] = 0.0
        if np.isnan(before).any():
            raise MissingResultsError(f"{self.problem} has no regret of {learner} at k = {count} at half time.")
        return (final - before) / (self.rounds - self._middle)

    def find_learners(self, prefix: str) -> list[str]:
        """Learners whose name has this prefix, in the order of the results."""
        return list(dict.fromkeys(name for _, name in self.cells if name.startswith(prefix)))


def _group_runs(rows: pa.Table) -> dict[tuple[str, str], dict[int, float]]:
    cells: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows.to_pylist():
        value = row["value"] if row["measure"] == "regret" and row["value"] < _DIVERGED else np.inf
        cells.setdefault((row["count"], row["learner"]), {})[row["run"]] = value
    return cells
