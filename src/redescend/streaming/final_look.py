"""The final look: every record judged by all that was learned, and the list of suspects with their values.

A source that can be read again is read once more, in its order, by a copy of the final model that predicts every record
before it learns from it. In a stream that does not change, this is the final model; in one that does, the copy follows
the changes, so that every record is judged by the model around its time. The belief is reset before, because the errors
of the first reading were those of a model that still knew little. A table that fits in memory is learned from once
more, see `table_look`. A pipe cannot be read again, and a stream with one model per key is not: there, the rounds of
the first reading are judged once more by the belief at the end.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from redescend.belief import Verdict
from redescend.belief.suspects import HALF, are_suspects, q_values
from redescend.errors import DataError
from redescend.files import replace_file
from redescend.numeric import Array
from redescend.sources import Batch, Source
from redescend.sources.batch import limit_rows
from redescend.streaming.config import FitConfig
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.explanation import explain_record
from redescend.streaming.far_out import FarRecords, find_ranges
from redescend.streaming.io.log import AppendLog, read_blocks
from redescend.streaming.io.tables import choose_writer
from redescend.streaming.io.writers import RoundTable, RunWriters, choose_entry, pack_rounds, read_groups, unpack_rounds
from redescend.streaming.keyed import ModelStore
from redescend.streaming.model import StreamModel
from redescend.streaming.predictor import Learned, StreamPredictor
from redescend.streaming.rounds import RoundRecord, Rounds
from redescend.streaming.summary import Summary
from redescend.streaming.summary.records import FinalCounts, StuckRun, StuckRuns, Suspect, read_values
from redescend.streaming.table_look import MOST_CELLS, OrderedLook, judge_table

TOGETHER = 8
"""Groups of the log that are judged together: stretches of records are judged, and memory is limited."""

SAME = 0.5
"""Predictions that differ by a smaller share of their interval are explained in the same way."""

KEPT = 0.9
"""Of a pipe, the values of records that are less likely clean than this are kept for the list."""

Progress = Callable[[int], object]

Recalled = dict[int, tuple[str, dict[str, Any], dict[str, Any] | None]]
"""Records by row: their files, their values, and why they were predicted as they were, if that was asked for."""


class FinalSuspects(NamedTuple):
    """The records that are least likely clean in the end, the least first; the first `listed` are the list."""

    rounds: Rounds
    clean_probability: Array
    q_value: Array
    stuck: Array
    listed: int
    runs: list[StuckRun]
    far: FarRecords

    def empty(self) -> FinalSuspects:
        """The same without any record."""
        names = ("rounds", "clean_probability", "q_value", "stuck", "runs")
        return self._replace(**{name: getattr(self, name)[:0] for name in names}, listed=0)

    def summarize(self) -> FinalCounts:
        """The counts of the list as a whole."""
        clean = float(self.clean_probability[: self.listed].sum())
        return FinalCounts(self.listed, clean, self.runs, self.far.count_columns())


class Reading(NamedTuple):
    """What a further reading gives: a summary, the log of its rounds and the records that are far out.

    `judged` says whether the rounds have final verdicts, and `follows` what the model of a table follows: 'time', the
    'order' of its records, or nothing.
    """

    summary: Summary
    log: AppendLog
    far: FarRecords
    judged: bool = False
    follows: str = ""


def read_again(
    model: StreamModel,
    source: Source,
    config: FitConfig,
    writers: RunWriters,
    passes: int,
    progress: Progress,
    *,
    records: int,
    learned: int,
) -> Reading:
    """Read the source as often as requested, at least once more; returns what the last reading gives.

    Readings beyond `passes` only judge: the model returns to what it has learned. If the order of records says nothing,
    and they fit in memory, the model judges them all as it is. Of a source that has grown, only the first `records` are
    read, those of the first reading. So many of them must be `learned` from as were at first.
    """
    ranges = find_ranges(source, model.schema)

    def note(outcomes: Iterable[tuple[Batch, Learned]], judged: bool = False) -> Reading:
        summary = Summary(model.schema, config.transform, config.top)
        log, far, read = writers.start_final_log(), FarRecords(ranges, records), 0
        for batch, (rounds, indices, rejected) in outcomes:
            log.append(pack_rounds(rounds))
            summary.add(rounds, batch, indices)
            far.add(batch, indices)
            summary.add_rejected(sorted([*batch.bad, *rejected], key=lambda record: record.row))
            read += batch.count
            progress(read)
        if (read, summary.learned) != (records, learned):
            raise DataError(
                f"{source.name} changed while it was read: at first, {learned:,} of {records:,} records could be "
                f"learned from, then {summary.learned:,} of {read:,}. Fit a copy of it that does not change."
            )
        log.flush()
        return Reading(summary, log, far, judged)

    for reading in range(2, max(passes, 2) + 1):
        before, batches = model.begin_reading(), _read_first(source, model.schema.columns, records)
        last = note((batch, model.learn(batch)) for batch in batches)
        if reading > passes:
            model.return_to(before)
    if not config.final_look or model.belief is None or records * model.schema.dim > MOST_CELLS:
        return last
    if model.schema.lagged or (passes == 1 and model.schema.classifies):  # lags look back at records in their order
        return last
    verdicts = ((rounds, verdict) for _, rounds, verdict in _judge_parts(model, last.log.path, FarRecords()))
    ordered = OrderedLook.from_parts(verdicts)
    ordered = ordered.without_stuck() if source.is_shuffled else ordered
    table = list(_read_first(source, model.schema.columns, records))
    # Whoever asks for a random order wants no order to be followed.
    outcomes, follows = judge_table(model, table, ordered, passes=passes, by_time=config.shuffle is not True)
    return note(outcomes, judged=True)._replace(follows=follows if passes > 1 else "")


def _read_first(source: Source, columns: Sequence[str], records: int) -> Iterator[Batch]:
    """The batches of a source with the first `records` alone; shuffled ones are in the same order."""
    with closing(source.batches(columns)) as batches:
        for batch in batches:
            yield batch if batch.end.row <= records and not source.is_shuffled else limit_rows(batch, records)
            if batch.end.row >= records and not source.is_shuffled:
                break


def judge_finally(
    model: StreamPredictor, config: FitConfig, first: Path | None, last: Path, far: FarRecords, judged: bool = False
) -> FinalSuspects:
    """Judge the rounds in the log `last` by all that is known now, unless they are `judged` already; those that are
    `far` out are suspects.

    With the log `first` of the first reading, the first and the final judgements are written to the file of rounds.
    """
    table, found = RoundTable(model.schema, model.keys, judged=True, final=True), []
    runs = StuckRuns()
    target = None if first is None else config.outputs.rounds
    before = iter(()) if first is None else read_groups(first, table.entry)
    with nullcontext(lambda batch: None) if target is None else table.write(target) as write:
        for groups, rounds, verdict in _judge_parts(model, last, far, judged):
            found.append(_find_least(rounds, verdict, config.top))
            runs.add(rounds, verdict.stuck)
            final = _tabulate_final(rounds, verdict)
            ends = np.cumsum([len(entries) for entries in groups])
            for end, entries in zip(ends.tolist(), groups, strict=True):
                if target is not None:
                    part = slice(end - len(entries), end)
                    write(table.make(next(before), {name: values[part] for name, values in final.items()}))
    return _select(found, config.fdr, runs.longest(config.top), far)


def _judge_parts(
    model: StreamPredictor, log: Path, far: FarRecords, judged: bool = False
) -> Iterator[tuple[list[Array], Rounds, Verdict]]:
    groups = read_groups(log, choose_entry(judged=True, keyed=model.schema.by is not None))
    while some := list(itertools.islice(groups, TOGETHER)):
        rounds = unpack_rounds(np.concatenate(some), model.keys)
        if judged:
            assert rounds.judged is not None
            verdict = Verdict(rounds.judged.clean_log_odds, rounds.judged.stuck)
        else:
            verdict = model.give_verdict(rounds)
        yield some, rounds, far.apply(rounds.rows, verdict)


def _tabulate_final(rounds: Rounds, verdict: Verdict) -> dict[str, Array]:
    numbers = (rounds.predictions, verdict.clean_probability, rounds.low, rounds.high, verdict.stuck)
    names = ("prediction", "probability", "low", "high", "stuck")
    return {f"final_{name}": values for name, values in zip(names, numbers, strict=True)}


def rank_records(rounds: Rounds, probability: Array) -> Array:
    """The order of the list: the least likely clean record first, then the larger loss, then the earlier one."""
    return np.lexsort((rounds.rows, -rounds.losses, probability))


def _find_least(rounds: Rounds, verdict: Verdict, top: int) -> tuple[Rounds, Array, Array]:
    """The records that are less likely clean than not, and at least the `top` least likely ones."""
    probability = verdict.clean_probability
    order = rank_records(rounds, probability)
    found = order[: max(top, int((probability <= HALF).sum()))]
    return rounds[found], probability[found], verdict.stuck[found]


def _select(
    parts: list[tuple[Rounds, Array, Array]], fdr: float, runs: list[StuckRun], far: FarRecords
) -> FinalSuspects:
    """The suspects of all parts: all that can be in the list are among them, so their q-values are known."""
    rounds = Rounds.concatenate(part[0] for part in parts)
    probability, stuck = (np.concatenate([np.empty(0), *(part[place] for part in parts)]) for place in (1, 2))
    order = rank_records(rounds, probability)
    rounds, probability, stuck = rounds[order], probability[order], stuck[order]
    q_value = q_values(probability)
    numbers = rounds.judged is not None and not np.isnan(rounds.low).any()
    listed = int(np.count_nonzero(are_suspects(q_value, probability, fdr, numbers)))
    return FinalSuspects(rounds, probability, q_value, stuck, listed, runs, far)


def recall_values(log: Path, rows: Sequence[int]) -> Recalled:
    """The files and values of records by row, as far as the log of values has them."""
    wanted, held = set(rows), b""
    found: Recalled = {}
    for block in read_blocks(log):
        *lines, held = (held + block).split(b"\n")
        for line in lines:
            row, file, values = json.loads(line)
            if row in wanted:
                found[row] = (file, values, None)
    return found


def look_up_values(
    source: Source, model: StreamModel | ModelStore, rows: Sequence[int], others: Sequence[str], explained: int
) -> Recalled:
    """The files and values of records by row, from the source; the first rows are `explained`."""
    left, why, found, schema = np.sort(np.asarray(rows, np.int64)), set(rows[:explained]), {}, model.schema
    if not len(left):
        return {}
    columns = list(dict.fromkeys([*others, *schema.columns]))
    history = model.start_history(fresh=True) if explained else None
    with closing(source.batches(columns, in_order=True)) as batches:
        for batch in batches:
            for index in np.flatnonzero(np.isin(batch.rows, left)).tolist():
                row = int(batch.rows[index])
                reason = explain_record(model, batch, index, history).to_dict() if row in why else None
                found[row] = (batch.files, read_values(schema, batch, index, others), reason)
            if batch.end.row >= left[-1]:
                break
            if history is not None:
                model.encode(batch.table, history)
    return found


def make_suspects(schema: Schema, final: FinalSuspects, count: int, values: Recalled) -> list[Suspect]:
    """The first suspects, with their files, values and explanations."""
    some, listed = slice(0, count), []
    numbers = (
        final.clean_probability.tolist(),
        final.q_value.tolist(),
        final.far.name_columns(final.rounds.rows[some]),
    )
    for played, probability, q_value, far in zip(final.rounds[some].records(schema), *numbers, strict=False):
        file, recalled, why = values.get(played.row, ("", dict.fromkeys(schema.columns), None))
        if why is not None and not _explains(why, played):
            why = {"outdated": True}
        suspect = Suspect(played._replace(clean_probability=probability), file, recalled, why)
        listed.append(suspect._replace(q_value=q_value, far_out=far))
    return listed


def _explains(why: dict[str, Any], played: RoundRecord) -> bool:
    """Whether an explanation is that of the prediction in the list.

    Explained is what the model predicts as it is in the end. If it has followed a stream that changes, it is another.
    """
    if played.low is None or played.high is None:
        return bool(why["prediction"] == played.prediction)
    return bool(abs(why["prediction"] - played.prediction) <= SAME * (played.high - played.low))


def write_suspects(path: Path, schema: Schema, final: FinalSuspects, values: Recalled, others: Sequence[str]) -> None:
    """Write the list of suspects with their values: identifiers first, the least likely clean record first."""
    listed = make_suspects(schema, final, final.listed, values)
    shown = [name for name in schema.columns if name != schema.target and name not in others]
    columns: dict[str, Any] = {name: [one.values.get(name) for one in listed] for name in others}
    results = {
        "row": [one.round.row for one in listed],
        "clean_probability": [one.round.clean_probability for one in listed],
        "q_value": final.q_value[: final.listed],
        "target": [one.round.target for one in listed],
        "prediction": [one.round.prediction for one in listed],
    }
    if not schema.classifies:
        results |= {"low": final.rounds.low[: final.listed], "high": final.rounds.high[: final.listed]}
        results |= {"stuck": final.stuck[: final.listed]}
    if any(one.far_out for one in listed):
        results["far_out"] = [one.far_out for one in listed]
    if len({one.file for one in listed}) > 1:
        results["file"] = [one.file for one in listed]
    columns |= {f"column {name}" if name in columns else name: content for name, content in results.items()}
    for name in shown:
        columns[f"column {name}" if name in columns else name] = [one.values.get(name) for one in listed]
    batch = pa.record_batch(columns)
    # A column without a value has no type that every format can store.
    fields = [field.with_type(pa.string()) if pa.types.is_null(field.type) else field for field in batch.schema]
    batch = pa.record_batch(
        [array.cast(field.type) for array, field in zip(batch.columns, fields, strict=True)], schema=pa.schema(fields)
    )
    with replace_file(path) as file, choose_writer(path)(file, batch.schema) as write:
        write(batch)
