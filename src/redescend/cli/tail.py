"""`redescend tail`: learn from a growing file, and report suspects as they come."""

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
from redescend.cli.console import announce_compilation, format_json, reader_may_leave, say
from redescend.cli.exit_codes import Code, exit_on_error

if TYPE_CHECKING:
    from redescend.streaming.rounds import Rounds
    from redescend.streaming.run import Run

ENOUGH = 1 << 22
"""Bytes after which the first lines of a file are no longer counted."""

FOLLOWING = "Following"

MODEL_HELP = "Write the model here at the end, and after every N records (--every)."
THRESHOLD_HELP = "Report records that are less likely to be clean than P. Default: all suspects."
INTERVAL_HELP = "Seconds between checks for new records."
FIRST_HELP = "Records to wait for before inferring column types."

File = Annotated[
    Path, typer.Argument(metavar="FILE", show_default=False, help="CSV, TSV or JSON lines file that grows.")
]


@options.flatten
def tail(
    file: File,
    *,
    learning: options.ModelOptions,
    threshold: Annotated[float | None, options.optional(FOLLOWING, "P", THRESHOLD_HELP, min=0.0)] = None,
    interval: Annotated[float, options.option(FOLLOWING, INTERVAL_HELP, min=0.01, metavar="SECONDS")] = 0.5,
    first: Annotated[int, options.option(FOLLOWING, FIRST_HELP, min=1, metavar="N")] = 100,
    once: Annotated[bool, options.option(FOLLOWING, "Stop at the end of the file.", "--once")] = False,
    model: Annotated[Path | None, options.optional(options.OUTPUT, "FILE", MODEL_HELP)] = None,
    output: options.OutputOptions,
    reading: options.InputOptions,
    checkpoints: options.CheckpointOptions,
    every: options.Every = 100_000,
    running: options.RunOptions,
) -> None:
    """Learn from a file while another program writes to it, and report suspicious records at once.

    Each of them is a line of JSON on standard output. Stop it with Ctrl-C or SIGTERM: the files are written then. With
    a checkpoint, --resume continues after the last record that was read.
    """
    with exit_on_error(running.debug), _catch_signals() as stop, announce_compilation(running.quiet):
        from redescend.cli.console import say_result, say_schema
        from redescend.cli.training import choose_outputs, exit_code, make_config
        from redescend.streaming.fit import start_run
        from redescend.streaming.io.checkpoints import FILE as CHECKPOINT
        from redescend.streaming.io.collisions import check_outputs

        outputs = choose_outputs([str(file)], reading.on_bad, model, output)
        config = make_config(learning, reading, checkpoints, outputs, every=every)
        # Check before waiting: the file may not exist for a long time.
        check_outputs(outputs.by_content(), file, config.checkpoint)
        resumed = config.resume and (Path(str(config.checkpoint)) / CHECKPOINT).exists()
        if not once and not _wait_for_records(file, 0 if resumed else first + 1, interval, stop):
            say(f"Interrupted before {file} had {first} records; nothing was written.")
            raise typer.Exit(int(Code.TERMINATED if stop.number == signal.SIGTERM else Code.INTERRUPTED))
        run = start_run(file, config, follow=lambda: not once and not stop.wait(interval))
        if not running.quiet:
            say_schema(run.model.schema)
            where = f" after row {run.resumed:,}" if run.resumed else ""
            say(f"Following {file}{where}{'' if once else '; stop with Ctrl-C'}.")
        _follow(run, threshold, running.quiet, stop)
        if not running.quiet:
            say_result(run)
            if once and _has_more(file, run):
                say(f"Ignored an incomplete last line after row {run.counts.records:,} of {file}.")
        raise typer.Exit(exit_code(run))


class _Stop(threading.Event):
    """Set by a signal with this number."""

    number = 0


@contextmanager
def _catch_signals() -> Iterator[_Stop]:
    """An event that the first Ctrl-C or SIGTERM sets; a second one has its usual effect."""
    stop = _Stop()
    before: dict[int, Any] = {}

    def catch(number: int, _: object) -> None:
        stop.number = number
        stop.set()
        signal.signal(number, before[number])

    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, catch)
        yield stop
    finally:
        for known, handler in before.items():
            signal.signal(known, handler)


def _wait_for_records(file: Path, lines: int, interval: float, stop: threading.Event) -> bool:
    """Wait until the file has more lines; False if it was stopped before."""
    while not stop.is_set():
        if file.exists():
            with open(file, "rb") as content:
                beginning = content.read(ENOUGH)
            # One line may be the header.
            if beginning.count(b"\n") > lines or len(beginning) == ENOUGH:
                return True
        stop.wait(interval)
    return False


def _follow(run: Run, threshold: float | None, quiet: bool, stop: threading.Event) -> None:
    from redescend.checkpoint import save

    model_file, every = run.config.outputs.model, run.config.every
    due = run.counts.records + every
    with run, _save_on_error(run):
        for rounds in run.batches():
            with reader_may_leave() as left:
                _report_suspects(run, rounds, threshold)
            if not quiet and run.latest is not None:
                for bad in run.latest.rejected:
                    say(f"Rejected row {bad.row} of {bad.file}: {bad.reason}")
            if run.counts.records >= due and model_file is not None:
                save(run.model, model_file)
                due = run.counts.records + every
            if stop.is_set() or left.is_set():
                run.pause()
                return


@contextmanager
def _save_on_error(run: Run) -> Iterator[None]:
    """Whatever ends the run, what it has learned is written."""
    from redescend.checkpoint import save

    try:
        yield
    except Exception:
        if run.config.outputs.model is not None:
            save(run.model, run.config.outputs.model)
        raise


def _has_more(file: Path, run: Run) -> bool:
    """Whether there is text after the last record."""
    with open(file, "rb") as content:
        content.seek(0 if run.position is None else run.position.offset)
        return bool(content.read(ENOUGH).strip())


def _report_suspects(run: Run, rounds: Rounds, threshold: float | None) -> None:
    from redescend.cli.console import suspect_to_dict
    from redescend.streaming.summary.suspects import Suspect, read_values

    suspects = run.summary.are_suspects(rounds) if threshold is None else rounds.clean_probability < threshold
    if run.latest is None or not suspects.any():
        return
    schema, (batch, indices, _) = run.model.schema, run.latest
    for place in suspects.nonzero()[0]:
        values = read_values(schema, batch, int(indices[place]))
        suspect = Suspect(rounds.record(int(place), schema), batch.files, values)
        sys.stdout.write(format_json(suspect_to_dict(suspect)) + "\n")
    sys.stdout.flush()
