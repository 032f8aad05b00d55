"""What `predict`, `score` and `inspect` share: read a model, and apply it to every record of a stream."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from redescend.checkpoint import load
from redescend.cli.console import announce_compilation, say, say_rejections
from redescend.cli.exit_codes import Code
from redescend.cli.options import InputOptions, OnBad, ResultOptions
from redescend.cli.progress import ProgressLine
from redescend.cli.tables import choose_writer, write_table
from redescend.cli.training import choose_quarantine
from redescend.errors import BadRecordError, DataError, ParameterError
from redescend.files import replace_file
from redescend.sources import Bad, open_source
from redescend.streaming import ModelStore, StreamModel
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.io.collisions import check_outputs
from redescend.streaming.io.quarantine import format_line
from redescend.streaming.report.formatting import format_count
from redescend.streaming.rounds import Rounds
from redescend.streaming.summary.rejections import Rejections

Tabulate = Callable[[Schema, Rounds], dict[str, Any]]
"""Returns the columns to write, by the schema of the model."""


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


class RejectionWriter:
    """Counts rejected records, and writes them to the quarantine, which is created for the first of them."""

    def __init__(self, on_bad: OnBad, quarantine: Path | None) -> None:
        self.count, self.rejections = 0, Rejections()
        self._on_bad, self._quarantine = on_bad, quarantine
        self._stack = ExitStack()
        self._file: Any = None

    def add(self, bad: Sequence[Bad]) -> None:
        if not bad:
            return
        if self._on_bad is OnBad.FAIL:
            raise BadRecordError(
                f"Row {bad[0].row} of '{bad[0].file}' cannot be used: {bad[0].reason}. Fix it, or quarantine such "
                "records with --on-bad quarantine."
            )
        self.count += len(bad)
        self.rejections.add(bad)
        if self._quarantine is not None:
            if self._file is None:
                self._file = self._stack.enter_context(replace_file(self._quarantine))
            self._file.writelines(map(format_line, bad))

    def __enter__(self) -> RejectionWriter:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)


def apply_model(
    model_file: Path,
    sources: Sequence[str],
    result: ResultOptions,
    reading: InputOptions,
    quiet: bool,
    tabulate: Tabulate,
    *,
    target: bool = True,
    below: float | None = None,
) -> Code:
    """Predict all records of a source and, with the `target`, score them; write those that score below a limit."""
    out = result.out
    if out is not None:
        choose_writer(out)
    quarantine = choose_quarantine(sources, reading.on_bad, result.quarantine, out)
    written = {"the quarantine": quarantine, "the output": out}
    check_outputs({content: path for content, path in written.items() if path}, sources, also_read=[model_file])
    model = read_model(model_file)
    schema = model.schema
    source = open_source(
        sources[0] if len(sources) == 1 else list(sources),
        format=reading.format,
        header=not reading.no_header,
        kinds=schema.kinds,
    )
    names = [name for name in schema.columns if target or name != schema.target]
    # On a terminal, the line would be printed between the results.
    hidden = quiet or (out is None and sys.stdout.isatty())
    records, batches = 0, source.batches(names)
    with (
        announce_compilation(quiet),
        closing(batches),
        RejectionWriter(reading.on_bad, quarantine) as rejected,
        ProgressLine(source, quiet=hidden) as line,
        write_table(out, pa.record_batch(tabulate(schema, Rounds.concatenate([]))).schema) as write,
    ):
        for batch in batches:
            rounds, _, bad = model.review(batch, target=target)
            rejected.add(list(heapq.merge(batch.bad, bad, key=lambda record: record.row)))
            if below is not None:
                rounds = rounds[rounds.weights < below]
            write(pa.record_batch(tabulate(schema, rounds)))
            records += batch.count
            line.report(records)
    if not quiet and rejected.count:
        done = "skipped" if quarantine is None else f"quarantined in {quarantine}"
        say(f"{format_count(rejected.count)} of {records:,} could not be used, {done}:")
        say_rejections(rejected.rejections)
    return Code.REJECTED if rejected.count else Code.DONE


def decode_target(schema: Schema, values: Any) -> pa.Array:
    """Targets or predictions as the records have them: numbers, or labels."""
    if not schema.classifies:
        return pa.array(values)
    return pa.array(schema.labels, pa.string()).take(pa.array(values.astype(np.int64)))
