"""Shared code of `predict`, `score` and `inspect`: read a model, apply it to a stream, and write a table."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from redescend.belief.suspects import HALF
from redescend.checkpoint import load
from redescend.cli import console
from redescend.cli.exit_codes import Code
from redescend.cli.fit import choose_quarantine
from redescend.cli.options import InputOptions, ResultOptions, parse_names
from redescend.cli.progress import ProgressLine
from redescend.errors import BadRecordError, DataError, OnBad, ParameterError
from redescend.files import replace_file
from redescend.sources import Bad, Source
from redescend.sources.batch import count_bad
from redescend.sources.kinds import TYPES
from redescend.streaming import ModelStore, StreamModel
from redescend.streaming.belief import check_interval
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.io.collisions import check_outputs
from redescend.streaming.io.tables import Write, choose_writer, format_csv, format_header
from redescend.streaming.io.writers import format_rejected
from redescend.streaming.report.formatting import format_count
from redescend.streaming.rounds import Rounds
from redescend.streaming.summary.records import Rejections

NONE = Rounds.concatenate([])

MANY_SUSPECTS = 0.2  # with a larger share of suspects, the records may be from another time than the model


def check_model_exists(path: Path) -> None:
    """Raise an error if there is no model file."""
    if not path.exists():
        raise DataError(f"There is no model file {path}; create one with redescend fit.")


def read_model(path: Path) -> StreamModel | ModelStore:
    """Read the model of a stream, or the models of its keys."""
    check_model_exists(path)
    model = load(path)
    if not isinstance(model, StreamModel | ModelStore):
        raise DataError(
            f"'{path}' contains a {type(model).__name__}, not a model of a stream; create one with redescend fit."
        )
    return model


def read_key_model(path: Path, key: str) -> StreamModel:
    """Read the model of one key."""
    store = read_model(path)
    if not isinstance(store, ModelStore):
        raise ParameterError(f"'{path}' contains one model without keys; leave --key out.")
    return store[key]


class RejectionWriter(ExitStack):
    """Counts rejected records, and writes them to the quarantine, which is created for the first of them."""

    def __init__(self, on_bad: OnBad, quarantine: Path | None) -> None:
        super().__init__()
        self.count, self.rejections = 0, Rejections()
        self._on_bad, self._quarantine = on_bad, quarantine
        self._file: Any = None

    def add(self, bad: Sequence[Bad]) -> None:
        if not bad:
            return
        if self._on_bad is OnBad.FAIL:
            raise BadRecordError(
                f"Row {bad[0].row} of '{bad[0].file}' cannot be used: {bad[0].reason}. Fix it, or quarantine such "
                "records with --on-bad quarantine."
            )
        self.count += count_bad(bad)
        self.rejections.add(bad)
        if self._quarantine is not None:
            if self._file is None:
                self._file = self.enter_context(replace_file(self._quarantine))
            self._file.writelines(map(format_rejected, bad))


def apply_model(
    model_file: Path,
    sources: Sequence[str],
    result: ResultOptions,
    reading: InputOptions,
    quiet: bool,
    *,
    target: bool = True,
    below: float | None = None,
    level: float | None = None,
) -> Code:
    """Score all records of a source, and write those with a probability `below` a limit.

    Without the `target`, predict them instead, with intervals of this `level`. Lagged features of the first records
    look back at the last records of the fit, or at none with `result.from_start`.
    """
    out = result.out
    if out is not None:
        choose_writer(out)
    quarantine = choose_quarantine(sources, reading.on_bad, result.quarantine, out)
    check_outputs({"output": out, "quarantine": quarantine}, sources, also_read=[model_file])
    model = read_model(model_file)
    if level is not None:
        check_interval(model.belief, level)
    schema = model.schema
    source = reading.open(sources, kinds=schema.kinds, forms=schema.forms)
    schema.check_units(source)
    if not quiet:
        console.log_unread(source)
    keep = parse_names(result.keep) or []
    # Lagged features look back at targets, where there are any.
    with_target = target or (bool(schema.lagged) and schema.target in source.columns)
    names = [name for name in schema.columns if with_target or name != schema.target]
    history = model.start_history(fresh=result.from_start)
    if result.from_start and history is None:
        raise ParameterError("The model has no lags; leave --from-start out.")
    source.read_as_text(name for name in keep if name not in names)
    # On a terminal, the progress line would appear between the results.
    hidden = quiet or (out is None and sys.stdout.isatty())
    records, suspects, batches = 0, 0, source.batches(list(dict.fromkeys([*names, *keep])))
    with (
        console.announce_compilation(quiet),
        closing(batches),
        RejectionWriter(reading.on_bad, quarantine) as rejected,
        ProgressLine(source, quiet=hidden) as line,
        write_table(out, _add_columns(_tabulate(schema, NONE, target, level), source, keep).schema) as write,
    ):
        for batch in batches:
            rounds, indices, bad = model.review(batch, target=target, level=level, history=history)
            rejected.add(list(heapq.merge(batch.bad, bad, key=lambda record: record.row)))
            suspects += int((rounds.clean_probability < HALF).sum()) if target else 0
            records += batch.count
            if below is not None:
                low = rounds.clean_probability < below
                rounds, indices = rounds[low], indices[low]
            table = batch.table.take(pa.array(indices)) if keep else None
            write(_add_columns(_tabulate(schema, rounds, target, level), source, keep, table))
            line.report(records)
    if not quiet and model.belief is not None and suspects > MANY_SUSPECTS * records:
        console.log(
            f"{suspects:,} of {format_count(records)} are less likely clean than not. If the stream changes over time, "
            "use fit --suspects or fit --rounds for earlier records: score uses the final model."
        )
    if not quiet and rejected.count:
        done = "skipped" if quarantine is None else f"quarantined in {quarantine}"
        console.log(f"{format_count(rejected.count)} of {records:,} could not be used, {done}:")
        console.log_rejections(rejected.rejections)
    return Code.REJECTED if rejected.count or source.unread else Code.DONE


def _tabulate(schema: Schema, rounds: Rounds, target: bool, level: float | None) -> pa.RecordBatch:
    """The table of `score` or, without the target, of `predict`."""
    prediction = decode_target(schema, rounds.predictions)
    if target:
        columns = {
            "row": rounds.rows,
            console.PROBABILITY: rounds.clean_probability,
            "target": decode_target(schema, rounds.targets),
            "prediction": prediction,
            "loss": rounds.losses,
        }
    else:
        columns = {"row": rounds.rows, "prediction": prediction}
        if level is not None:
            columns |= {"low": rounds.low, "high": rounds.high}
        if schema.classifies:
            columns["probability"] = rounds.probabilities
    return pa.record_batch(columns)


def _add_columns(table: pa.RecordBatch, source: Source, keep: Sequence[str], records: Any = None) -> pa.RecordBatch:
    """Append these columns of the records to a table; without records, empty columns of their types."""
    for name in keep:
        values = pa.array([], TYPES[source.kinds[name]]) if records is None else records.column(name)
        table = table.append_column(f"column {name}" if name in table.schema.names else name, values)
    return table


def decode_target(schema: Schema, values: Any) -> pa.Array:
    """Convert encoded targets or predictions to numbers or labels."""
    if not schema.classifies:
        return pa.array(values)
    return pa.array(schema.labels, pa.string()).take(pa.array(values.astype(np.int64)))


@contextmanager
def write_table(path: Path | None, schema: pa.Schema) -> Iterator[Write]:
    """A function that writes batches to a file, or to standard output if None.

    The file is written completely or not at all. If the reader of standard output closes the pipe, the block ends
    without an error.
    """
    if path is None:
        with console.ignore_broken_pipe(), _write_to_stream(schema) as write:
            yield write
        return
    with replace_file(path) as file, choose_writer(path)(file, schema) as write:
        yield write


@contextmanager
def _write_to_stream(schema: pa.Schema) -> Iterator[Write]:
    """A function that writes batches as CSV to standard output."""
    terminal, file = sys.stdout.isatty(), sys.stdout.buffer

    def put(content: bytes) -> None:
        if terminal:
            content = "\n".join(map(console.make_printable, content.decode().split("\n"))).encode()
        file.write(content)
        # Another program may be waiting for it.
        file.flush()

    put(format_header(schema))
    yield lambda batch: put(format_csv(batch))
