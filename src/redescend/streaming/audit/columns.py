"""The columns of an audit: which are audited, and each of them predicted from the others.

Columns are predicted by models that learn in an order that the contents of the table decide, or by time, as in
`table_look`. Only stuck sensors are found in the order of the table.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pyarrow as pa

from redescend.belief import Verdict
from redescend.errors import DataError
from redescend.numeric import Array
from redescend.sources import Batch, Kind, Source
from redescend.streaming import table_look
from redescend.streaming.audit.kinds import Column, is_cycle
from redescend.streaming.encoding.features import find_count, to_floats
from redescend.streaming.encoding.remarks import explain_text, find_exclusion
from redescend.streaming.encoding.schema import OF_NO_KIND, Schema
from redescend.streaming.encoding.survey import survey_source
from redescend.streaming.far_out import find_range
from redescend.streaming.model import StreamModel
from redescend.streaming.rounds import Rounds

MAX_AUDITED_LABELS = 20  # a text with more values than this is used to predict others, and not audited itself
LONG_RUN = 30  # the fewest records of a stuck run


def drop_far_out(batch: Batch, limits: dict[str, tuple[float, float]]) -> Batch:
    """The batch without the numbers that are beyond the limits of their columns."""
    table = batch.table
    for name, (low, high) in limits.items():
        index = table.schema.get_field_index(name)
        values = to_floats(table.column(index)) if index >= 0 else np.empty(0)
        far = (values < low) | (values > high)
        if far.any():
            table = table.set_column(index, table.schema.field(index), pa.array(values, mask=far))
    return replace(batch, table=table)


def restore_column(within: Batch, batch: Batch, name: str) -> Batch:
    """The batch `within` limits, with all values of one column."""
    index = batch.table.schema.get_field_index(name)
    table = within.table.set_column(index, batch.table.schema.field(index), batch.table.column(index))
    return replace(within, table=table)


def make_models(source: Source) -> tuple[dict[str, StreamModel], dict[str, str], dict[str, Column]]:
    """A model of each column that can be audited, why others cannot, and what is known of columns of numbers."""
    if not source.can_reread:
        raise DataError(f"{source.name} can only be read once, and an audit reads it twice; write it to a file.")
    survey = survey_source(source, "")
    table = survey.table
    skipped = {name: f"is {kind}: {OF_NO_KIND}" for name, kind in source.others.items()}
    used = list[str]()
    for name, kind in source.kinds.items():
        others = survey.spread and survey.spread.column(name)
        reason = find_count(name, kind, survey.first.table.column(name), others)
        reason = reason or find_exclusion(kind, table.column(name), "the records that were sampled")
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
        if source.kinds[name] is Kind.NUMBER and is_cycle(name, to_floats(table.column(name))):
            skipped[name] = "wraps around, as angles and hours do, and only predicts others"
            continue
        texts = len(table.column(name).drop_null().unique()) if source.kinds[name] is Kind.TEXT else 0
        if texts > MAX_AUDITED_LABELS:
            reason = explain_text(source.kinds[name], table.column(name))
            skipped[name] = reason or f"has {texts:,} different texts, and only predicts others"
            continue
        values = survey_source(source, name).labels
        try:
            known = {"values": values, "spread": survey.spread}
            schema = Schema.infer(survey.first, source.kinds, name, features=others, **known)
        except DataError as error:
            skipped[name] = f"cannot be predicted: {error}"
            continue
        if len(schema.labels) > MAX_AUDITED_LABELS:
            skipped[name] = f"has {len(schema.labels)} different texts, and only predicts others"
            continue
        models[name] = StreamModel(schema)
    if not models:
        raise DataError(f"{source.name} has no two columns that could predict each other.")
    numbers = [name for name in used if source.kinds[name] is Kind.NUMBER]
    values = {name: to_floats(table.column(name)) for name in numbers}
    return models, skipped, {name: Column.measure(values[name], find_range(values[name])) for name in numbers}


def look_at_column(model: StreamModel, batches: list[Batch]) -> tuple[Rounds, Array]:
    """Learn to predict the column that is the target of a new `model` from all records.

    Returns the rounds, with final verdicts, and the predictions of the final model, which has not followed any order.
    """
    large = model.schema.dim * sum(batch.table.num_rows for batch in batches) > table_look.MOST_CELLS
    table = None if large else table_look.EncodedTable.encode(model, batches)
    if table is None:
        return _read_twice(model, batches)
    look = table_look.look_at_table(model, table, lambda: model.learn_anew(*table, 2))
    rounds, expected = look.rounds, look.model.predict_encoded(table.X).predictions
    if look.follows != "order" and not model.schema.classifies and _has_long_run(table.targets):
        judged = table_look.give_verdict(deepcopy(look.model), table.X, rounds).judged
        assert judged is not None
        verdict = Verdict(judged.clean_log_odds, judged.stuck)
        rounds = table_look.OrderedLook.from_parts(iter([(rounds, verdict)])).apply(rounds, model.schema)
        assert rounds.judged is not None
        rounds = replace(rounds, judged=rounds.judged._replace(stuck=judged.stuck))
    return rounds, expected


def _read_twice(model: StreamModel, batches: list[Batch]) -> tuple[Rounds, Array]:
    """The same for a large table: it is learned from in its order, and judged in the second reading."""
    for batch in batches:
        model.learn(batch)
    expected = [np.empty(0), *(model.review(batch, target=True).rounds.predictions for batch in batches)]
    model.begin_reading()
    rounds = Rounds.concatenate(model.learn(batch).rounds for batch in batches)
    return table_look.apply_verdict(model, rounds), np.concatenate(expected)


def _has_long_run(targets: Array) -> bool:
    """Whether the same value is repeated as often as in a stuck run."""
    changes = np.flatnonzero(np.diff(targets, prepend=np.nan, append=np.nan) != 0.0)
    return bool(np.diff(changes).max(initial=0) >= LONG_RUN)
