"""Explanations of predictions: contributions of columns, plausible values of the target, and similar clean records.

What a record shows only beside the others is found by reading the source once more: extreme values, and a target that
is the same in the records around it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

from redescend.errors import DataError
from redescend.numeric import Array
from redescend.sources import Batch, Source
from redescend.streaming.encoding.encoder import EncodedBatch, EncodedChunk
from redescend.streaming.encoding.features import to_floats
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.far_out import NEVER, find_ranges
from redescend.streaming.keyed import ModelStore
from redescend.streaming.lags import LagHistory
from redescend.streaming.model import StreamModel
from redescend.streaming.report.formatting import NEGLIGIBLE, format_count, format_value
from redescend.streaming.summary.records import to_json_value

NEAREST = 3  # similar records
STEPS, FARTHEST = 200, 50.0  # values of the target to try on each side; the farthest, in widths of the interval

CLIPPED = "limited to the range of clean values"
LEFT_OUT = "leaving this record out"
OTHER_STEPS = (CLIPPED, LEFT_OUT)
"""Steps that are not those of a column: predictions are clipped, and trees that have seen a record are not asked."""


class Contribution(NamedTuple):
    """A column, its value, and its contribution to the prediction; or another step, without a value."""

    column: str
    value: Any
    contribution: float


class Extreme(NamedTuple):
    """A column in which a record has an extreme value, its median, and the distance of 99 % of its values from that."""

    column: str
    value: float
    middle: float
    distance: float


@dataclass(frozen=True)
class Explanation:
    """The explanation of a prediction.

    `typical` is the prediction for a typical record; it and all `contributions` add up to `total`: the prediction or,
    for labels, the logit of the predicted label by the model's own scores. A record of the table that a model with
    trees has learned from is predicted without it. `low` and `high` are the 90 % interval of clean values. `ordinary`
    are the values of the target that are more likely clean than not: the ends of an interval, None where none was
    found, or a list of labels. It is None without a belief. `extreme` are the columns with extreme values, and
    `repeated` is the first and the last of the rows around the record that have the same number as target.
    """

    row: int
    target: Any
    prediction: Any
    clean_probability: float | None
    low: float | None
    high: float | None
    typical: float
    total: float
    contributions: list[Contribution]
    ordinary: list[Any] | None
    nearest: list[dict[str, Any]] = field(default_factory=list)
    extreme: list[Extreme] = field(default_factory=list)
    repeated: tuple[int, int] | None = None

    @property
    def scale(self) -> float:
        """The size of the target and of its interval; 0 for labels."""
        known = (self.target, self.low, self.high)
        return max(abs(value) if isinstance(value, float) else 0.0 for value in known)

    def to_dict(self) -> dict[str, Any]:
        """Convert to texts, numbers, lists and dicts."""
        tuples = {name: [one._asdict() for one in getattr(self, name)] for name in ("contributions", "extreme")}
        return asdict(self) | tuples


def explain_record(
    model: StreamModel | ModelStore, batch: Batch, index: int, history: LagHistory | None = None
) -> Explanation:
    """Explain the prediction for the record of a `batch` at this index, whose target must be known.

    Lagged features look back at `history`, which ends before the batch.
    """
    table = batch.table.slice(index, 1)
    if history is not None:
        history = history.copy()
        model.encode(batch.table.slice(0, index), history)
    one = Batch(table, batch.rows[index : index + 1], [], batch.files, batch.end, lambda row: batch.raw(index))
    rounds, _, rejected = model.review(one, target=True, history=None if history is None else history.copy())
    if rejected:
        raise DataError(f"Row {rejected[0].row} cannot be explained: {rejected[0].reason}.")
    [chunk] = model.encode(table, history)
    if isinstance(model, ModelStore):
        model = model[str(table.column(str(model.schema.by))[0].as_py())]
    schema, record = model.schema, rounds.record(0, model.schema)
    typical, total, contributions = _compute_contributions(
        model, chunk, int(rounds.predictions[0]) if schema.classifies else 0
    )
    values = {name: to_json_value(table.column(name)[0].as_py()) for name in schema.inputs}
    values |= _read_lagged(schema, chunk)
    return Explanation(
        record.row,
        record.target,
        record.prediction,
        record.clean_probability if math.isfinite(record.clean_probability) else None,
        record.low,
        record.high,
        typical,
        total,
        [Contribution(name, values.get(name), part) for name, part in contributions],
        _find_ordinary(model, chunk, record.low, record.high),
    )


def _read_lagged(schema: Schema, chunk: EncodedChunk) -> dict[str, Any]:
    """The lagged values of a record; None where they are missing."""
    values: dict[str, Any] = {}
    for feature, span in zip(schema.features, schema.spans, strict=True):
        if feature.lag:
            own = chunk.X[0, span]
            known = own.any() if feature.levels else np.isfinite(own[0])
            value = feature.levels[int(own.argmax())] if feature.levels else float(own[0])
            values[feature.name] = value if known else None
    return values


def list_steps(
    contributions: Iterable[tuple[str, Any, float]], schema: Schema, least: float, most: int
) -> list[tuple[str, float]]:
    """List the steps of an explanation that are not below `least`, with the values of their columns.

    Columns after the first `most` are summed; steps that are not those of a column come last.
    """
    known = {feature.name for feature in schema.features}
    parts = [one for one in contributions if abs(one[2]) >= least]
    columns = [one for one in parts if one[0] not in OTHER_STEPS]
    steps = [
        (f"{name} = {format_value(value)}" if name in known else name, part) for name, value, part in columns[:most]
    ]
    if rest := columns[most:]:
        steps.append((format_count(len(rest), "other column"), sum(part for *_, part in rest)))
    return steps + [(name, part) for name, _, part in parts if name in OTHER_STEPS]


def _compute_contributions(
    model: StreamModel, chunk: EncodedChunk, label: int
) -> tuple[float, float, list[tuple[str, float]]]:
    """The predictions for a typical record and for this one, and the steps between them: the contributions of its
    columns, largest first, and what else changes the prediction.
    """
    schema, engine = model.schema, model.engine
    output, sign = (0, 1.0 if label or not schema.classifies else -1.0) if schema.outputs == 1 else (label, 1.0)
    parts = sign * engine.contributions(chunk.X)[output, 0]
    learned, total = (
        sign * float(scores[output, 0]) for scores in (engine.predict(chunk.X), model.predict_without(chunk))
    )
    columns = {
        feature.name: float(parts[span].sum()) for feature, span in zip(schema.features, schema.spans, strict=True)
    }
    if schema.shares_indicator:
        columns[schema.encoded[-1]] = float(parts[schema.dim - 1])
    steps = {CLIPPED: learned - float(parts.sum()), LEFT_OUT: total - learned}
    size = max(abs(total), *(abs(part) for part in parts.tolist()))
    found = [*sorted(columns.items(), key=lambda one: -abs(one[1])), *steps.items()]
    return float(parts[-1]), total, [(name, part) for name, part in found if abs(part) > NEGLIGIBLE * size]


def _find_ordinary(model: StreamModel, chunk: EncodedChunk, low: float | None, high: float | None) -> list[Any] | None:
    """Find the values of the target with which the record would be more likely clean than not."""
    if model.belief is None:
        return None
    if model.schema.classifies:
        tried = np.arange(len(model.schema.labels), dtype=np.float64)
        clean = _judge(model, chunk, tried)
        return [label for label, odds in zip(model.schema.labels, clean.tolist(), strict=True) if odds > 0.0]
    if low is None or high is None:
        return None
    middle, width = 0.5 * (low + high), 0.5 * (high - low)
    steps = np.linspace(0.0, 1.0, STEPS) ** 2 * FARTHEST * width
    tried = np.concatenate([middle - steps[::-1], middle + steps])
    clean = tried[_judge(model, chunk, tried) > 0.0]
    if not len(clean):
        return []
    return [None if end in (tried[0], tried[-1]) else float(end) for end in (clean.min(), clean.max())]


def _judge(model: StreamModel, chunk: EncodedChunk, targets: Array) -> Array:
    """Compute the log-odds that the record would be clean with each of these targets."""
    X = np.repeat(chunk.X, len(targets), axis=0)
    scores = np.repeat(model.predict_without(chunk), len(targets), axis=1)
    return model.judge(EncodedChunk(X, targets, np.arange(len(targets))), scores).clean_log_odds


def find_record(source: Source, model: StreamModel | ModelStore, row: int) -> tuple[Batch, int, LagHistory | None]:
    """Find the batch of a row, its index there, and the history that lagged features of the batch look back at."""
    history, last = model.start_history(fresh=True), 0
    with closing(source.batches(model.schema.columns, in_order=True)) as batches:
        for batch in batches:
            index, last = int(np.searchsorted(batch.rows, row)), batch.end.row
            if index < len(batch.rows) and batch.rows[index] == row:
                return batch, index, history
            for bad in batch.bad:
                if bad.row <= row < bad.row + bad.rows:
                    raise DataError(f"Row {row} cannot be explained: {bad.reason}.")
            if last >= row:
                break
            if history is not None:
                model.encode(batch.table, history)
    raise DataError(f"{source.name} has no row {row}; its rows are 1 to {last}.")


def find_extremes(source: Source, schema: Schema, batch: Batch, index: int) -> list[Extreme]:
    """Find the columns in which a record has a value far outside the others of the source, the farthest first."""
    found = []
    for name, column in find_ranges(source, schema).items():
        value = to_floats(batch.table.column(name).slice(index, 1))
        share = float(column.share_beyond(value)[0])
        if share <= NEVER:
            found.append((share, Extreme(name, float(value[0]), column.middle, column.tail.start)))
    return [one for _, one in sorted(found)]


def find_repeated(source: Source, schema: Schema, row: int) -> tuple[int, int] | None:
    """Find the first and the last of the rows around this one with the same number as target.

    None if the target is no number, if each key has a model of its own, or if no other row is in that run.
    """
    if schema.classifies or schema.by is not None:
        return None
    first, last, value, held = 0, 0, math.nan, False
    for batch in source.batches([schema.target], in_order=True):
        for at, target in zip(batch.rows.tolist(), to_floats(batch.table.column(0)).tolist(), strict=True):
            if target != value:
                if held:
                    return (first, last) if last > first else None
                first, value = at, target
            last, held = at, held or at == row
    return (first, last) if held and last > first else None


def find_nearest(model: StreamModel | ModelStore, source: Source, batch: Batch, index: int) -> list[dict[str, Any]]:
    """Find the records of a source that are most similar to this one and more likely clean than not.

    If there is one model per key, they have the same key. Distances are in units of the standard deviations of columns
    in the first records.
    """
    schema = model.schema
    sample = np.concatenate([chunk.X for chunk in EncodedBatch(schema, source.sample.table, target=False).chunks()])
    for feature, span in zip(schema.features, schema.spans, strict=True):
        if feature.lag:
            sample[:, span] = 0.0  # lagged features are not compared
    with np.errstate(invalid="ignore", divide="ignore"):
        scales = np.nan_to_num(1.0 / np.nanstd(sample, axis=0), posinf=0.0)
    [own] = EncodedBatch(schema, batch.table.slice(index, 1), target=False).chunks()
    best: list[tuple[float, int, dict[str, Any]]] = []
    history = model.start_history(fresh=True)
    for other in source.batches(schema.columns, in_order=True):
        rounds, indices, _ = model.review(other, target=True, history=history)
        # Without a key or a target, a record is encoded, but not judged.
        X = EncodedBatch(schema, other.table, target=False).rows(0, other.table.num_rows)[indices]
        distances = np.sqrt(np.square(np.nan_to_num((X - own.X) * scales)).sum(axis=1))
        usable = (rounds.clean_probability > 0.5) & (rounds.rows != batch.rows[index])
        if schema.by is not None:
            alike = pc.equal(other.table.column(schema.by), batch.table.column(schema.by)[index])
            usable &= pc.fill_null(alike, False).to_numpy(zero_copy_only=False)[indices]
        for place in np.flatnonzero(usable)[np.argsort(distances[usable], kind="stable")[:NEAREST]].tolist():
            at = int(indices[place])
            values = {name: to_json_value(other.table.column(name)[at].as_py()) for name in schema.columns}
            row = int(rounds.rows[place])
            best.append((float(distances[place]), row, {"row": row, "distance": float(distances[place])} | values))
        best = heapq.nsmallest(NEAREST, best, key=lambda one: one[:2])
    return [values for _, _, values in best]
