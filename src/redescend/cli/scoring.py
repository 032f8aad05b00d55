"""What `predict` and `score` share: a model says something of every record, and learns nothing."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from redescend.cli.console import say, say_reasons
from redescend.cli.exit_codes import Code
from redescend.cli.models import read_model
from redescend.cli.outputs import QUARANTINE, aside_of, beside
from redescend.cli.progress import Live
from redescend.cli.tables import form_of, writing
from redescend.errors import BadRecordError, ParameterError
from redescend.files import replacing
from redescend.sources import Bad, open_source
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.io import quarantine
from redescend.streaming.io.collisions import check_outputs
from redescend.streaming.report.formatting import format_count
from redescend.streaming.rounds import Rounds
from redescend.streaming.summary.rejections import Rejections


@dataclass(frozen=True)
class Reading:
    """What is read, and what becomes of what cannot be."""

    sources: Sequence[str]
    format: str | None
    header: bool
    on_bad: str
    quarantine: Path | None
    out: Path | None
    quiet: bool

    def __post_init__(self) -> None:
        if self.quarantine is not None and self.on_bad != "quarantine":
            raise ParameterError(f"--on-bad {self.on_bad} quarantines no record; leave --quarantine out.")
        if self.out is not None:
            form_of(self.out)

    @property
    def aside(self) -> Path:
        """The file for records that cannot be used."""
        if self.quarantine is not None:
            return self.quarantine
        return aside_of(self.sources) if self.out is None else beside(self.out, QUARANTINE)

    def written(self) -> dict[str, Path]:
        """The files by what is in them."""
        aside = {"the quarantine": self.aside} if self.on_bad == "quarantine" else {}
        return aside if self.out is None else {**aside, "the output": self.out}


class Aside:
    """Records that cannot be used: counted, and set aside in a file, which is made for the first of them."""

    def __init__(self, reading: Reading) -> None:
        self.count, self.reasons = 0, Rejections()
        self._reading, self._stack = reading, ExitStack()
        self._file: Any = None

    def add(self, bad: Sequence[Bad]) -> None:
        if not bad:
            return
        how, first = self._reading.on_bad, bad[0]
        if how == "fail":
            raise BadRecordError(
                f"Row {first.row} of '{first.file}' cannot be used: {first.reason}. Fix it, or quarantine such records "
                "with --on-bad quarantine."
            )
        self.count += len(bad)
        self.reasons.add(bad)
        if how == "quarantine":
            if self._file is None:
                self._file = self._stack.enter_context(replacing(self._reading.aside))
            self._file.writelines(map(quarantine.format_line, bad))

    def __enter__(self) -> Aside:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)


def review(
    model_file: Path,
    reading: Reading,
    columns: Callable[[Schema], pa.Schema],
    told: Callable[[Schema, Rounds], Sequence[Any]],
    *,
    target: bool,
    below: float | None = None,
) -> Code:
    """Write what a model says of the records of a stream.

    Parameters
    ----------
    model_file
        The model.
    reading
        What is read, and where it goes.
    columns
        The columns to write, by the schema of the model.
    told
        Their values.
    target
        Whether the records are judged, for which they need the target.
    below
        Leave out records that are at least so likely to be clean.
    """
    check_outputs(reading.written(), reading.sources, also_read=[model_file])
    model = read_model(model_file)
    schema = model.schema
    sources = reading.sources
    source = open_source(
        sources[0] if len(sources) == 1 else list(sources),
        format=reading.format,
        header=reading.header,
        kinds=schema.kinds,
    )
    form = columns(schema)
    names = [name for name in schema.columns if target or name != schema.target]
    # On one terminal, the line would be in the midst of the answers.
    hidden = reading.quiet or (reading.out is None and sys.stdout.isatty())
    records, batches = 0, source.batches(names)
    with (
        closing(batches),
        Aside(reading) as aside,
        Live(source, quiet=hidden) as live,
        writing(reading.out, form) as write,
    ):
        for batch in batches:
            rounds, _, bad = model.review(batch, target=target)
            aside.add(list(heapq.merge(batch.bad, bad, key=lambda record: record.row)))
            if below is not None:
                rounds = rounds[rounds.weights < below]
            write(pa.record_batch(list(told(schema, rounds)), schema=form))
            records += batch.count
            live.tell(records)
    if not reading.quiet and aside.count:
        done = f"set aside in {reading.aside}" if reading.on_bad == "quarantine" else "skipped"
        say(f"{format_count(aside.count)} of {records:,} could not be used, {done}:")
        say_reasons(aside.reasons)
    return Code.SET_ASIDE if aside.count else Code.FINE


def answers(schema: Schema, values: Any) -> pa.Array:
    """Predictions as the target has them: numbers, or labels in words."""
    if not schema.classifies:
        return pa.array(values)
    return pa.array(schema.labels, pa.string()).take(pa.array(values.astype(np.int64)))


def answer_type(schema: Schema) -> pa.DataType:
    """The type of these."""
    return pa.string() if schema.classifies else pa.float64()
