"""`redescend tail`: learn from a file that grows, and tell at once which records are not believed."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redescend.cli import options
from redescend.cli.exit_codes import Code, outcome, reader_may_leave
from redescend.cli.outputs import choose_outputs
from redescend.cli.printable import json_text

if TYPE_CHECKING:
    from redescend.streaming.rounds import Rounds
    from redescend.streaming.run import Run

LOOKED_AT = 1 << 22
"""Bytes at the beginning of a file in which lines are counted; as many are enough to begin with."""

FOLLOWING = "How to follow"

File = Annotated[
    Path, typer.Argument(metavar="FILE", show_default=False, help="A CSV, TSV or JSON lines file that grows.")
]
Model = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        show_default=False,
        help="The model, for predict, score and inspect: written at the end, and every so many records (--every).",
        rich_help_panel=options.FILES,
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        metavar="P",
        show_default=False,
        help="Tell of records that are less likely than this to be clean; of those that do not look clean, if not "
        "given.",
        rich_help_panel=FOLLOWING,
    ),
]
Interval = Annotated[
    float, typer.Option(min=0.01, metavar="SECONDS", help="How often to look for more.", rich_help_panel=FOLLOWING)
]
First = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="N",
        help="Wait for so many records before it is decided what the columns are.",
        rich_help_panel=FOLLOWING,
    ),
]
Once = Annotated[bool, typer.Option("--once", help="Stop at the end of what is there now.", rich_help_panel=FOLLOWING)]


def tail(
    file: File,
    target: options.Target,
    features: options.Features = None,
    ignore: options.Ignore = None,
    task: options.TheTask = options.Task.AUTO,
    labels: options.Labels = None,
    order: options.Order = 1,
    loss: options.Loss = None,
    transform: options.Transform = None,
    threshold: Threshold = None,
    interval: Interval = 0.5,
    first: First = 100,
    once: Once = False,
    model: Model = None,
    rounds: options.Rounds = None,
    report: options.Report = None,
    no_report: options.NoReport = False,
    quarantine: options.Quarantine = None,
    on_bad: options.HowBad = options.OnBad.QUARANTINE,
    format: options.Format = None,
    no_header: options.NoHeader = False,
    checkpoint: options.Checkpoint = None,
    every: options.Every = 100_000,
    resume: options.Resume = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Learn from a file that another program writes to, and tell at once which records are not to be believed.

    Each of these is a line of JSON on standard output. Ctrl-C or SIGTERM ends it: files are written then. With a
    checkpoint, --resume goes on after the last record that was read.
    """
    with outcome(debug), _signals() as stop:
        from redescend.cli.console import say, say_columns, say_end
        from redescend.cli.specs import listed, loss_named, transform_named
        from redescend.cli.training import exit_code
        from redescend.streaming.config import FitConfig
        from redescend.streaming.fit import start_run
        from redescend.streaming.io.collisions import check_outputs

        config = FitConfig(
            target=target,
            features=listed(features),
            ignore=listed(ignore) or [],
            task=str(task),
            labels=listed(labels),
            order=order,
            loss=loss_named(loss),
            transform=transform_named(transform),
            on_bad=on_bad.value,
            format=format,
            header=not no_header,
            outputs=choose_outputs([str(file)], on_bad, model, rounds, report, no_report, quarantine),
            checkpoint=checkpoint,
            every=every,
            resume=resume,
        )
        # Now, too: the file may not exist for a long time.
        check_outputs(config.outputs.by_content(), file, checkpoint)
        if not once and not _ready(file, first, interval, stop):
            say(f"Interrupted before there were {first} records in {file}; nothing was written.")
            raise typer.Exit(int(Code.INTERRUPTED))
        run = start_run(file, config, follow=lambda: not once and not stop.wait(interval))
        if not quiet:
            say_columns(run.model.schema)
            where = f" after row {run.resumed:,}" if run.resumed else ""
            say(f"Following {file}{where}{'' if once else '; Ctrl-C ends it'}.")
        _follow(run, threshold, quiet, stop)
        if not quiet:
            say_end(run)
            if once and _is_more(file, run):
                say(f"What follows row {run.counts.records:,} of {file} is no complete line yet, and was left.")
        raise typer.Exit(exit_code(run.counts))


@contextmanager
def _signals() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set, once: a second signal does what it always did."""
    stop = threading.Event()
    before: dict[int, Any] = {}

    def ask(number: int, _: object) -> None:
        stop.set()
        signal.signal(number, before[number])

    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, ask)
        yield stop
    finally:
        for known, handler in before.items():
            signal.signal(known, handler)


def _ready(file: Path, first: int, interval: float, stop: threading.Event) -> bool:
    """Wait until there are lines to begin with; False if it was not to be."""
    while not stop.is_set():
        if file.exists():
            with open(file, "rb") as content:
                beginning = content.read(LOOKED_AT)
            # One line may be the header, and the last may not be whole.
            if beginning.count(b"\n") > first + 1 or len(beginning) == LOOKED_AT:
                return True
        stop.wait(interval)
    return False


def _follow(run: Run, threshold: float | None, quiet: bool, stop: threading.Event) -> None:
    from redescend.checkpoint import save
    from redescend.cli.console import say

    model_file, every = run.config.outputs.model, run.config.every
    due = run.counts.records + every
    with run:
        for played in run.batches():
            with reader_may_leave() as reader:
                _tell(run, played, threshold)
            if not quiet and run.latest is not None:
                for bad in run.latest.rejected:
                    say(f"Row {bad.row} of {bad.file} cannot be used: {bad.reason}")
            if run.counts.records >= due and model_file is not None:
                save(run.model, model_file)
                due = run.counts.records + every
            if stop.is_set() or reader.left:
                run.pause()
                return


def _is_more(file: Path, run: Run) -> bool:
    """Whether the file goes on after the last record."""
    with open(file, "rb") as content:
        content.seek(0 if run.position is None else run.position.offset)
        return bool(content.read(LOOKED_AT).strip())


def _tell(run: Run, played: Rounds, threshold: float | None) -> None:
    """A line for each record that is not believed."""
    from redescend.cli.suspects import as_object
    from redescend.streaming.summary.samples import Suspect, read_values

    doubted = run.summary.are_suspects(played) if threshold is None else played.weights < threshold
    if run.latest is None or not doubted.any():
        return
    schema, (batch, indices, _) = run.model.schema, run.latest
    for place in doubted.nonzero()[0]:
        values = read_values(schema, batch, int(indices[place]))
        record = Suspect(played.record(int(place), schema), batch.files, values)
        sys.stdout.write(json_text(as_object(record)) + "\n")
    sys.stdout.flush()
