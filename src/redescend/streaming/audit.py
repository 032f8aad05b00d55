"""An audit of a table: every column is predicted from all the others, and the cells that do not fit are listed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from redescend.belief.suspects import HALF, q_values
from redescend.errors import DataError
from redescend.numeric import Array
from redescend.sources import Kind, Source
from redescend.streaming.encoding.features import find_count, find_exclusion
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.encoding.survey import survey_source
from redescend.streaming.model import StreamModel
from redescend.streaming.rounds import Rounds

MAX_AUDITED_LABELS = 20
"""A text with more values than this is used to predict others, and not audited itself."""


MOST_SUSPECTS = 0.05
"""A column with a larger share of suspects than this is not predicted well enough to be audited."""


class Cell(NamedTuple):
    """A value that does not fit the others of its record, what was expected instead, and how sure that is.

    `surprise` is how far the value is from the prediction, in units of the range of eight in ten values of its column;
    for labels, the log-odds of an error, divided by ten.
    """

    row: int
    column: str
    value: Any
    expected: Any
    low: float | None
    high: float | None
    clean_probability: float
    q_value: float
    surprise: float


class Audit(NamedTuple):
    """The cells of the list, the most surprising first; the columns that were audited; and why others were not."""

    cells: list[Cell]
    audited: list[str]
    skipped: dict[str, str]
    records: int


def audit_source(source: Source, fdr: float = 0.1, progress: Callable[[int], object] = lambda records: None) -> Audit:
    """Predict every column from all the others, and list the cells that do not fit.

    The table is read twice: the models of all columns learn from it together, and judge it in the second reading. The
    rounds of that are in memory. In a row, a wrong value makes the predictions of the other columns wrong, so only the
    most surprising cell of a row is listed. The share of false alarms `fdr` is that of the list over all columns.
    """
    models, skipped = _make_models(source)
    columns = list(dict.fromkeys(name for model in models.values() for name in model.schema.columns))
    played: dict[str, list[Rounds]] = {name: [] for name in models}
    records = 0
    for reading in range(2):
        records = 0
        for batch in source.batches(columns, in_order=True):
            for name, model in models.items():
                rounds = model.learn(batch).rounds
                if reading:
                    played[name].append(rounds)
            records += batch.count
            progress(records)
        if not reading:
            for model in models.values():
                model.begin_reading()
    found = [_judge_column(models[name], Rounds.concatenate(parts)) for name, parts in played.items()]
    return Audit(_select(list(models), found, models, fdr), list(models), skipped, records)


def _make_models(source: Source) -> tuple[dict[str, StreamModel], dict[str, str]]:
    """A model of each column that can be audited, and why others cannot."""
    if not source.can_reread:
        raise DataError(f"{source.name} can only be read once, and an audit reads it twice; write it to a file.")
    sample = survey_source(source, "").sample
    skipped, used = dict[str, str](), list[str]()
    for name, kind in source.kinds.items():
        column = sample.table.column(name)
        reason = find_count(name, kind, column) or find_exclusion(kind, column, "the records that were sampled")
        if reason is None:
            used.append(name)
        else:
            skipped[name] = reason
    models = {}
    for name in used:
        others = [other for other in used if other != name]
        if source.kinds[name] is Kind.DATE:
            skipped[name] = "is a date, which only predicts others"
            continue
        values = survey_source(source, name).labels
        try:
            schema = Schema.infer(sample, source.kinds, name, features=others, values=values)
        except DataError as error:
            skipped[name] = f"cannot be predicted: {error}"
            continue
        if len(schema.labels) > MAX_AUDITED_LABELS:
            skipped[name] = f"has {len(schema.labels)} different texts, and only predicts others"
            continue
        models[name] = StreamModel(schema)
    if not models:
        raise DataError(f"{source.name} has no two columns that could predict each other.")
    return models, skipped


def _judge_column(model: StreamModel, rounds: Rounds) -> tuple[Rounds, Array, Array]:
    """The rounds of the cells of a column that are less likely clean than not, their probabilities and surprises."""
    verdict, judged = model.give_verdict(rounds), rounds.judged
    assert judged is not None
    found = np.flatnonzero(verdict.clean_probability <= HALF)
    if len(found) > MOST_SUSPECTS * len(rounds):
        found = found[:0]
    if model.schema.classifies:
        surprise = -0.1 * verdict.clean_log_odds[found]
    else:
        # Not the scale of the errors: it is nearly 0 where a column nearly always has one value.
        spread = max(float(np.ptp(np.quantile(rounds.targets, [0.1, 0.9]))), float(np.median(judged.margin)))
        spread = spread if spread > 1e-9 * float(np.std(rounds.targets)) else float(np.std(rounds.targets)) or 1.0
        surprise = np.abs(rounds.targets - rounds.predictions)[found] / spread
    return rounds[found], verdict.clean_probability[found], surprise


def _select(names: list[str], found: list[Any], models: dict[str, StreamModel], fdr: float) -> list[Cell]:
    """The most surprising cell of each row, as many as the share of false alarms allows."""
    parts = [(place, index) for place, (rounds, _, _) in enumerate(found) for index in range(len(rounds))]
    surprise = np.concatenate([np.empty(0), *(part[2] for part in found)])
    best: dict[int, int] = {}
    for at in np.argsort(-surprise, kind="stable").tolist():
        place, index = parts[at]
        best.setdefault(int(found[place][0].rows[index]), at)
    chosen = list(best.values())
    probability = np.array([found[parts[at][0]][1][parts[at][1]] for at in chosen])
    cells = []
    for at, clean, q_value in zip(chosen, probability.tolist(), q_values(probability).tolist(), strict=True):
        if q_value <= fdr:
            place, index = parts[at]
            name = names[place]
            record = found[place][0].record(index, models[name].schema)
            said = (record.target, record.prediction, record.low, record.high)
            cells.append(Cell(record.row, name, *said, clean, q_value, float(surprise[at])))
    return cells
