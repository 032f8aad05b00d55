"""An audit of a table: every column is predicted from all the others, and the cells that do not fit are listed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from redescend.belief import Verdict
from redescend.belief.suspects import HALF, q_values
from redescend.numeric import Array
from redescend.sources import Bad, Batch, Kind, Source
from redescend.streaming.audit.columns import LONG_RUN, drop_far_out, look_at_column, make_models, restore_column
from redescend.streaming.audit.kinds import Column, name_kind
from redescend.streaming.audit.numbers import find_odd_numbers
from redescend.streaming.audit.rows import RowCheck, count_along
from redescend.streaming.audit.texts import TextCheck
from redescend.streaming.audit.units import UnitStretch, find_unit_stretches, select_stretches
from redescend.streaming.encoding.features import COUNTS
from redescend.streaming.far_out import fit_tail
from redescend.streaming.model import StreamModel
from redescend.streaming.report.formatting import format_value
from redescend.streaming.rounds import Rounds
from redescend.streaming.summary.verdict import StuckRun, StuckRuns

MOST_SUSPECTS = 0.05
"""A column with a larger share of suspects is not predicted well enough: only values that are far out are listed."""


MOST_MISTAKES, NEARLY_ALL = 0.02, 0.9
"""Labels are not predicted well enough either if a larger share of the predictions is wrong, unless this share of the
wrong ones are suspects: a wrong label is told from a rare one only where the others are right."""


MOST_RUNS = 3
"""The most stuck runs of a column that are reported."""


LARGE, MOST_PROBABLE = 1.0, 1.5
"""A number with at least the first surprise is listed if it is right with at most the second factor times the share of
false alarms asked for, and another one with at most that share: small deviations are common in many columns."""


CHANCE = 0.01
"""The expected number of runs as long as a stuck run, if its value is frequent elsewhere, at most."""


class Cell(NamedTuple):
    """A value that does not fit the others of its record, what was expected instead, and how sure that is.

    `surprise` is how far the value is from the prediction, in units of the range of eight in ten values of its column;
    for labels, the log-odds of an error, divided by ten. `kind` says what is wrong, if that has a name, see
    `redescend.streaming.audit.kinds`. Typos, wrong signs, dates out of order and records that cannot be read are
    found by a rule, without a probability; the last have an empty column.
    """

    row: int
    column: str
    value: Any
    expected: Any
    low: float | None
    high: float | None
    clean_probability: float | None
    q_value: float | None
    surprise: float | None
    kind: str = ""


class Audit(NamedTuple):
    """The cells of the list, the most surprising first, then those found by a rule; the columns that were audited; and
    why others were not.

    `unpredictable` are those of the audited columns that have too many suspects to list them, `shares` the shares of
    suspects in the audited columns along the table, `told` what is wrong with whole rows, a sentence each, and
    `unreadable` the records that could not be read, such as a word in a column of numbers; they are not audited.
    """

    cells: list[Cell]
    audited: list[str]
    skipped: dict[str, str]
    records: int
    unpredictable: list[str]
    shares: Array
    told: list[str]
    unreadable: list[Bad]

    @property
    def false_alarms(self) -> float:
        """The expected number of listed cells that are right."""
        return sum(cell.clean_probability or 0.0 for cell in self.cells)


def audit_source(source: Source, fdr: float = 0.1, progress: Callable[[int], object] = lambda records: None) -> Audit:
    """Predict every column from all the others, and list the cells that do not fit.

    The table is read once and held in memory. In a row, a wrong value makes the predictions of the other columns wrong,
    so only the most surprising cell of a row is listed. Values that are far out of their columns predict no others: two
    that are wrong together would confirm each other. They are all listed. The share of false alarms `fdr` is that of
    the list over all columns.
    """
    models, skipped, numbers = make_models(source)
    limits = {name: (one.range.low, one.range.high) for name, one in numbers.items() if one.range is not None}
    columns = list(dict.fromkeys(name for model in models.values() for name in model.schema.columns))
    # Rows are copies if all their columns are equal, but for a number of the record.
    counters = [name for name, reason in skipped.items() if reason == COUNTS]
    others = [name for name in source.columns if name not in columns and name not in counters]
    texts = TextCheck(name for name, kind in source.kinds.items() if kind is Kind.TEXT)
    source.read_as_text(others)
    records, rows, batches, unreadable = 0, RowCheck(counters), list[Batch](), list[Bad]()
    for batch in source.batches([*columns, *others], in_order=True):
        rows.add(batch)
        texts.add(batch)
        unreadable += batch.bad
        batches.append(replace(batch, table=batch.table.select(columns)))
        records += batch.count
        progress(records)
    within = [drop_far_out(batch, limits) for batch in batches]
    whole, expected = dict[str, Rounds](), dict[str, Array]()
    for name, model in models.items():
        own = [restore_column(*pair, name) for pair in zip(within, batches, strict=True)]
        whole[name], expected[name] = look_at_column(model, own)
        progress(records)
    found = [_judge_column(models[name], rounds) for name, rounds in whole.items()]
    cells = _select([one.suspects for one in found], models, limits, fdr)
    units = dict[str, list[UnitStretch]]()
    for name, rounds in whole.items():
        if not models[name].schema.classifies:
            stretches = find_unit_stretches(rounds.rows, rounds.targets, expected[name])
            units[name] = [one for one in stretches if not rows.is_group(one.first, one.last)]
    units = select_stretches(units)
    cells = [cell._replace(kind=_name_kind(cell, whole, numbers, units)) for cell in cells]
    numbered = {name: rounds for name, rounds in whole.items() if not models[name].schema.classifies}
    cells = _add_findings(cells, numbered, texts, rows, unreadable)
    told = [sentence for name, one in zip(models, found, strict=True) for sentence in one.describe_stuck(name, rows)]
    told += [stretch.describe(name) for name, stretches in units.items() for stretch in stretches]
    unpredictable = [name for name, one in zip(models, found, strict=True) if one.unpredictable]
    shares = np.array([count_along(one.suspects[0].rows, records) for one in found])
    return Audit(cells, list(models), skipped, records, unpredictable, shares, [*told, *rows.describe()], unreadable)


def _add_findings(
    cells: list[Cell], numeric: dict[str, Rounds], texts: TextCheck, rows: RowCheck, unreadable: list[Bad]
) -> list[Cell]:
    """Add what is found by a rule, in order of the rows, and name the kinds of cells that are also found by a rule.

    These are typos, sentinel values and wrong signs in columns of numbers, whose rounds are `numeric`, dates out of
    order, and records that cannot be read.
    """
    unsure = (None, None, None, None, None)
    found = [
        Cell(row, typo.column, typo.text, typo.meant, *unsure, "possible typo")
        for typo in texts.typos()
        for row in typo.rows
    ]
    for name, rounds in numeric.items():
        for place, kind in find_odd_numbers(rounds.targets).items():
            known = (float(rounds.targets[place]), float(rounds.predictions[place]))
            found.append(Cell(int(rounds.rows[place]), name, *known, *unsure, kind))
    found += [Cell(late.row, late.column, str(late), None, *unsure, "date out of order") for late in rows.late_dates()]
    kinds = {(cell.row, cell.column): cell.kind for cell in found}
    cells = [cell._replace(kind=cell.kind or kinds.get((cell.row, cell.column), "")) for cell in cells]
    for cell in cells:
        kinds.pop((cell.row, cell.column), None)
    found = [cell for cell in found if (cell.row, cell.column) in kinds]
    found += [Cell(bad.row, "", None, None, *unsure, bad.reason) for bad in unreadable]
    return cells + sorted(found, key=lambda cell: cell.row)


def _name_kind(
    cell: Cell, whole: dict[str, Rounds], numbers: dict[str, Column], units: dict[str, list[UnitStretch]]
) -> str:
    """What is wrong with a cell, by the rows around it and by the numbers of its record."""
    for stretch in units.get(cell.column, []):
        if stretch.first <= cell.row <= stretch.last:
            return stretch.kind
    record = {}
    for name in numbers.keys() & whole.keys():
        place = int(np.searchsorted(whole[name].rows, cell.row))
        if place < len(whole[name]) and whole[name].rows[place] == cell.row:
            record[name] = float(whole[name].targets[place])
    return name_kind(cell.column, cell.value, cell.expected, (cell.low, cell.high), record, numbers)


class _Judged(NamedTuple):
    """The suspect cells of a column, with probabilities and surprises; whether they are too many; and stuck runs."""

    suspects: tuple[Rounds, Array, Array]
    unpredictable: bool
    stuck: list[StuckRun]

    def describe_stuck(self, name: str, rows: RowCheck) -> list[str]:
        """Where the column is stuck, a sentence each; not where `rows` are a group, such as all records of a shop."""
        return [
            f"{name!r} is stuck at {format_value(run.target)} from row {run.first:,} to row {run.last:,}."
            for run in self.stuck
            if not rows.is_group(run.first, run.last)
        ]


def _judge_column(model: StreamModel, rounds: Rounds) -> _Judged:
    """Judge the cells of a column: by the belief, and numbers also by how far they are from all others.

    The belief learns what wrong values look like from those it has seen, so it is cautious with the only one.
    """
    judged = rounds.judged
    assert judged is not None
    verdict = Verdict(judged.clean_log_odds, judged.stuck)
    probability = verdict.clean_probability
    suspects = np.count_nonzero(probability <= HALF)
    unpredictable = suspects > MOST_SUSPECTS * len(rounds)
    if model.schema.classifies:
        mistakes = np.count_nonzero(rounds.predictions != rounds.targets)
        unpredictable |= mistakes > MOST_MISTAKES * len(rounds) and suspects < NEARLY_ALL * mistakes
    if unpredictable:
        probability = np.ones(len(rounds))
    if model.schema.classifies:
        surprise = -0.1 * verdict.clean_log_odds
    else:
        # Not the scale of the errors: it is nearly 0 where a column nearly always has one value.
        spread = max(float(np.ptp(np.quantile(rounds.targets, [0.1, 0.9]))), float(np.median(judged.margin)))
        spread = spread if spread > 1e-9 * float(np.std(rounds.targets)) else float(np.std(rounds.targets)) or 1.0
        errors = np.abs(rounds.targets - rounds.predictions)
        surprise = errors / spread
        # If a prediction is outside the range of the column, the prediction is wrong, not an ordinary value.
        low, high = np.quantile(rounds.targets, [0.01, 0.99])
        within = np.clip(rounds.predictions, low, high)
        ordinary = (rounds.predictions != within) & (rounds.targets >= low) & (rounds.targets <= high)
        ordinary |= 2.0 * np.abs(rounds.targets - within) <= rounds.high - rounds.low
        probability = np.where(ordinary, 1.0, probability)
        # Where most errors are nearly 0, the tail of the column itself says more; a value that was expected is not far.
        distances = np.abs(rounds.targets - np.median(rounds.targets))
        for tail, deviations in (
            (fit_tail(errors, floor=spread), errors),
            (fit_tail(distances, floor=spread), np.minimum(errors, distances)),
        ):
            if tail is not None:
                probability = np.minimum(probability, tail.count_expected(deviations))
    found, runs = np.flatnonzero(probability <= HALF), StuckRuns()
    runs.add(rounds, verdict.stuck)
    stuck = [run for run in runs.longest(MOST_RUNS) if run.records >= LONG_RUN and _beats_chance(run, rounds.targets)]
    return _Judged((rounds[found], probability[found], surprise[found]), bool(unpredictable), stuck)


def _beats_chance(run: StuckRun, targets: Array) -> bool:
    """Whether a run is longer than independent values with the share of its value elsewhere would make it."""
    others = max(len(targets) - run.records, 1)
    elsewhere = max(int(np.count_nonzero(targets == run.target)) - run.records, 0)
    return bool(others * (elsewhere / others) ** run.records <= CHANCE)


def _select(
    found: list[tuple[Rounds, Array, Array]],
    models: dict[str, StreamModel],
    limits: dict[str, tuple[float, float]],
    fdr: float,
) -> list[Cell]:
    """The most surprising cell of each row, and all that are far out, as many as the share of false alarms allows."""
    names = list(models)
    parts = [(place, index) for place, (rounds, _, _) in enumerate(found) for index in range(len(rounds))]
    surprise = np.concatenate([np.empty(0), *(part[2] for part in found)])
    best: dict[tuple[int, str], int] = {}
    for at in np.argsort(-surprise, kind="stable").tolist():
        place, index = parts[at]
        rounds, (low, high) = found[place][0], limits.get(names[place], (-np.inf, np.inf))
        # A value that is far out predicts no other, so it is judged on its own.
        own = "" if low <= rounds.targets[index] <= high else names[place]
        best.setdefault((int(rounds.rows[index]), own), at)
    # Without a value that is far out, the others of its row are predicted badly.
    far = {row for row, own in best if own}
    chosen = [at for (row, own), at in best.items() if own or row not in far or surprise[at] >= LARGE]
    probability = np.array([found[parts[at][0]][1][parts[at][1]] for at in chosen])
    cells = []
    for at, clean, q_value in zip(chosen, probability.tolist(), q_values(probability).tolist(), strict=True):
        place, index = parts[at]
        name = names[place]
        labels = models[name].schema.classifies
        largest = HALF if labels else fdr * (MOST_PROBABLE if surprise[at] >= LARGE else 1.0)
        if q_value <= fdr and clean <= largest:
            record = found[place][0].record(index, models[name].schema)
            said = (record.target, record.prediction, record.low, record.high)
            cells.append(Cell(record.row, name, *said, clean, q_value, float(surprise[at])))
    return cells
