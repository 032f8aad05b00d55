"""What `predict`, `score` and `inspect` share: read a model, apply it to a stream, and write a table."""

from __future__ import annotations

import heapq
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from redescend.checkpoint import load
from redescend.cli.console import (
    PROBABILITY,
    announce_compilation,
    make_printable,
    reader_may_leave,
    say,
    say_rejections,
    say_unread,
)
from redescend.cli.exit_codes import Code
from redescend.cli.options import InputOptions, ResultOptions
from redescend.cli.progress import ProgressLine
from redescend.cli.training import choose_quarantine
from redescend.errors import BadRecordError, DataError, OnBad, ParameterError
from redescend.files import replace_file
from redescend.sources import Bad, open_source
from redescend.sources.batch import count_bad
from redescend.streaming import ModelStore, StreamModel
from redescend.streaming.belief import check_interval
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.io.collisions import check_outputs
from redescend.streaming.io.writers import format_rejected
from redescend.streaming.report.formatting import format_count
from redescend.streaming.rounds import Rounds
from redescend.streaming.summary.rejections import Rejections

Write = Callable[[pa.RecordBatch], object]


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
    """Predict all records of a source, with an interval of this `level`; or with the `target`, score them, and write
    those that score below a limit.
    """
    out = result.out
    if out is not None:
        choose_writer(out)
    quarantine = choose_quarantine(sources, reading.on_bad, result.quarantine, out)
    written = {"the quarantine": quarantine, "the output": out}
    check_outputs({content: path for content, path in written.items() if path}, sources, also_read=[model_file])
    model = read_model(model_file)
    if level is not None:
        check_interval(model.belief, level)
    schema = model.schema
    source = open_source(
        sources[0] if len(sources) == 1 else list(sources),
        format=reading.format,
        header=not reading.no_header,
        kinds=schema.kinds,
    )
    if not quiet:
        say_unread(source)
    names = [name for name in schema.columns if target or name != schema.target]
    # On a terminal, the line would be printed between the results.
    hidden = quiet or (out is None and sys.stdout.isatty())
    records, batches = 0, source.batches(names)
    with (
        announce_compilation(quiet),
        closing(batches),
        RejectionWriter(reading.on_bad, quarantine) as rejected,
        ProgressLine(source, quiet=hidden) as line,
        write_table(out, _tabulate(schema, Rounds.concatenate([]), target, level).schema) as write,
    ):
        for batch in batches:
            rounds, _, bad = model.review(batch, target=target, level=level)
            rejected.add(list(heapq.merge(batch.bad, bad, key=lambda record: record.row)))
            if below is not None:
                rounds = rounds[rounds.clean_probability < below]
            write(_tabulate(schema, rounds, target, level))
            records += batch.count
            line.report(records)
    if not quiet and rejected.count:
        done = "skipped" if quarantine is None else f"quarantined in {quarantine}"
        say(f"{format_count(rejected.count)} of {records:,} could not be used, {done}:")
        say_rejections(rejected.rejections)
    return Code.REJECTED if rejected.count or source.unread else Code.DONE


def _tabulate(schema: Schema, rounds: Rounds, target: bool, level: float | None) -> pa.RecordBatch:
    """The table of `score` or, without the target, of `predict`."""
    prediction = decode_target(schema, rounds.predictions)
    if target:
        columns = {
            "row": rounds.rows,
            PROBABILITY: rounds.clean_probability,
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


def decode_target(schema: Schema, values: Any) -> pa.Array:
    """Targets or predictions as the records have them: numbers, or labels."""
    if not schema.classifies:
        return pa.array(values)
    return pa.array(schema.labels, pa.string()).take(pa.array(values.astype(np.int64)))


@contextmanager
def write_table(path: Path | None, schema: pa.Schema) -> Iterator[Write]:
    """A function that writes batches to a file, or to standard output if None.

    The file is written completely or not at all. If the reader of standard output leaves, the block ends without an
    error where it writes.
    """
    if path is None:
        with reader_may_leave():
            with _write_csv(sys.stdout.buffer, schema, terminal=sys.stdout.isatty()) as write:
                yield write
            sys.stdout.buffer.flush()
        return
    with replace_file(path) as file, choose_writer(path)(file, schema) as write:
        yield write


def choose_writer(path: Path) -> Any:
    """The writer of the format that the name of a file says."""
    writers = {".csv": _write_csv, ".jsonl": _write_jsonl, ".ndjson": _write_jsonl, ".parquet": _write_parquet}
    if path.suffix.lower() not in writers:
        raise ParameterError(f"'{path}' cannot be written: its name must end with {', '.join(writers)}.")
    return writers[path.suffix.lower()]


@contextmanager
def _write_csv(file: BinaryIO, schema: pa.Schema, terminal: bool = False) -> Iterator[Write]:
    # The names of the columns need no quotes, which PyArrow would write.
    file.write(",".join(schema.names).encode() + b"\n")
    options = pc.WriteOptions(include_header=False, quoting_style="needed")

    def write(batch: pa.RecordBatch) -> None:
        text = pa.BufferOutputStream()
        pc.write_csv(batch, text, options)
        content = text.getvalue().to_pybytes()
        file.write("\n".join(map(make_printable, content.decode().split("\n"))).encode() if terminal else content)
        # Another program may be waiting for it.
        file.flush()

    yield write


@contextmanager
def _write_jsonl(file: BinaryIO, schema: pa.Schema) -> Iterator[Write]:
    yield lambda batch: file.writelines(
        json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in batch.to_pylist()
    )


@contextmanager
def _write_parquet(file: BinaryIO, schema: pa.Schema) -> Iterator[Write]:
    with pq.ParquetWriter(file, schema) as writer:
        yield writer.write_batch
