"""An audit of a table: every column is predicted from all the others, and the cells that do not fit are listed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from redescend.numeric import Array
from redescend.sources import Bad, Batch, Kind, Source
from redescend.streaming.audit.cells import Cell, judge_column, select_cells
from redescend.streaming.audit.columns import drop_far_out, look_at_column, make_models, restore_column
from redescend.streaming.audit.kinds import (
    Column,
    UnitStretch,
    find_chance_units,
    find_odd_numbers,
    find_unit_stretches,
    name_kind,
    select_stretches,
)
from redescend.streaming.audit.rules import RowCheck, TextCheck, comes_in_runs, count_along
from redescend.streaming.encoding.features import COUNTS
from redescend.streaming.encoding.remarks import explain_thousands
from redescend.streaming.rounds import Rounds


class Audit(NamedTuple):
    """The cells of the list, the most surprising first, then those found by a rule; the columns that were audited; and
    why others were not.

    `unpredictable` are those of the audited columns that are not predicted well enough to list wrong values, `shares`
    the shares of suspects in the audited columns along the table, `notes` what is wrong with whole rows, a sentence
    each, and `unreadable` the records that could not be read, such as a word in a column of numbers; they are not
    audited.
    """

    cells: list[Cell]
    audited: list[str]
    skipped: dict[str, str]
    records: int
    unpredictable: list[str]
    shares: Array
    notes: list[str]
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
    found = [judge_column(models[name], rounds) for name, rounds in whole.items()]
    cells = select_cells([one.suspects for one in found], models, limits, fdr)
    units = dict[str, list[UnitStretch]]()
    for name, rounds in whole.items():
        if not models[name].schema.classifies and not comes_in_runs(rounds.targets):
            stretches = find_unit_stretches(rounds.rows, rounds.targets, expected[name])
            units[name] = [
                one
                for one in stretches
                if not rows.is_group(one.first, one.last) and not rows.has_number(name, one.first, one.last)
            ]
    units = select_stretches(units)
    cells = [cell._replace(kind=_name_kind(cell, whole, numbers, units)) for cell in cells]
    chance = find_chance_units((cell.column, cell.kind, cell.value) for cell in cells)
    cells = [cell._replace(kind="") if (cell.column, cell.kind) in chance else cell for cell in cells]
    numbered = {name: rounds for name, rounds in whole.items() if not models[name].schema.classifies}
    cells = _add_findings(cells, numbered, texts, rows, unreadable)
    notes = [sentence for name, one in zip(models, found, strict=True) for sentence in one.describe_stuck(name, rows)]
    notes += [stretch.describe(name) for name, stretches in units.items() for stretch in stretches]
    for name, rounds in numbered.items():
        if not units.get(name) and (text := explain_thousands(rounds.targets)):
            notes.append(f"{name!r} {text}.")
    unpredictable = [name for name, one in zip(models, found, strict=True) if one.unpredictable]
    shares = np.array([count_along(one.suspects[0].rows, records) for one in found])
    return Audit(cells, list(models), skipped, records, unpredictable, shares, [*notes, *rows.describe()], unreadable)


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
