"""`redescend tail`: learn from a growing file, and report suspects as they come."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redescend.cli import options
from redescend.cli.console import announce_compilation, format_json, ignore_broken_pipe, log
from redescend.cli.exit_codes import Code, exit_on_error
from redescend.errors import DataError

if TYPE_CHECKING:
    from redescend.sources.streams import RecordStream
    from redescend.streaming.rounds import Rounds
    from redescend.streaming.run import Run

ENOUGH = 1 << 22  # the most bytes of a file in which lines are counted

FOLLOWING = "Following"

MODEL_HELP = "Write the model here at the end, and after every N records (--every)."
THRESHOLD_HELP = "Report records that are less likely to be clean than P. Default: all suspects."
INTERVAL_HELP = "Seconds between checks for new records."
FIRST_HELP = "Records to wait for before inferring column types."

FILE_HELP = (
    "CSV, TSV or JSON lines file that grows; or a stream: redis://HOST/STREAM, or mqtt://HOST/TOPIC with JSON objects."
)

File = Annotated[str, typer.Argument(metavar="FILE_OR_STREAM", show_default=False, help=FILE_HELP)]


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

    Each suspect is a line of JSON on standard output. On Ctrl-C or SIGTERM the output files are written and the command
    ends. With a checkpoint, --resume continues after the last record that was read.
    """
    with exit_on_error(running.debug), _catch_signals() as stop, announce_compilation(running.quiet):
        from redescend.cli.console import log_result, log_schema
        from redescend.cli.fit import choose_outputs, exit_code, make_config
        from redescend.sources.formats import ReadOptions
        from redescend.sources.mqtt import is_topic
        from redescend.sources.streams import find_stream, hide_password
        from redescend.streaming.fit import start_run
        from redescend.streaming.io.checkpoints import FILE as CHECKPOINT
        from redescend.streaming.io.collisions import check_outputs

        stream = find_stream(file)
        name = hide_password(file) if "://" in file else file
        outputs = choose_outputs([name.replace("://", "/")], reading.on_bad, model, output)
        config = make_config(learning, reading, checkpoints, outputs, every=every)
        if once and is_topic(file):
            raise DataError(f"--once needs a source that ends, and {name} does not; leave --once out.")
        with open_spool(file, config.checkpoint) as (source, has_failed):
            # Check before waiting: the file may not exist for a long time.
            check_outputs(outputs.by_content(), source, config.checkpoint)
            resumed = config.resume and (Path(str(config.checkpoint)) / CHECKPOINT).exists()
            if stream is None:
                is_ready = partial(_has_lines, Path(source), 0 if resumed else first + 1)
            else:
                is_ready = partial(_has_entries, stream(file, ReadOptions()), 1 if resumed else first)
            if not once and not _wait_until(is_ready, interval, stop, has_failed):
                if has_failed():
                    return  # `open_spool` raises the error
                log(f"Interrupted before {name} had {first} records; nothing was written.")
                raise typer.Exit(int(Code.TERMINATED if stop.number == signal.SIGTERM else Code.INTERRUPTED))
            run = start_run(source, config, follow=lambda: not (once or stop.wait(interval) or has_failed()))
            if not running.quiet:
                log_schema(run.model.schema)
                where = f" after row {run.resumed:,}" if run.resumed else ""
                log(f"Following {name}{where}{'' if once else '; stop with Ctrl-C'}.")
            _follow(run, threshold, running.quiet, stop)
            if not running.quiet:
                log_result(run)
                if once and stream is None and _has_more(Path(source), run):
                    log(f"Ignored an incomplete last line after row {run.counts.records:,} of {name}.")
        raise typer.Exit(exit_code(run))


@contextmanager
def open_spool(source: str, checkpoint: Path | None) -> Iterator[tuple[str, Callable[[], bool]]]:
    """Yield the path to follow, and a function that returns whether an error has ended the stream of messages.

    The path is the file or stream itself; for an MQTT topic, it is a file that messages are written to. That file stays
    beside the checkpoint; without a checkpoint it is temporary, and the broker stores nothing. An error is raised at
    the end.
    """
    from redescend.sources.mqtt import Spool, is_topic

    if not is_topic(source):
        yield source, lambda: False
        return
    with ExitStack() as stack:
        if checkpoint is None:
            path = Path(stack.enter_context(TemporaryDirectory()), "messages.jsonl")
        else:
            path = checkpoint.with_name(f"{checkpoint.name}.messages.jsonl")
        spool = Spool(source, path, durable=checkpoint is not None)
        stack.callback(spool.close)
        yield str(path), lambda: spool.error is not None
        if spool.error is not None:
            raise DataError(f"{spool.name}: {spool.error}.")


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


def _wait_until(
    is_ready: Callable[[], bool], interval: float, stop: threading.Event, has_failed: Callable[[], bool]
) -> bool:
    """Wait until there are enough records; return False if the command is stopped or the source fails before."""
    while not stop.is_set() and not has_failed():
        if is_ready():
            return True
        stop.wait(interval)
    return False


def _has_entries(stream: RecordStream, entries: int) -> bool:
    return stream.count_entries() >= entries


def _has_lines(file: Path, lines: int) -> bool:
    """Whether a file has more than this number of lines, of which one may be the header."""
    if not file.exists():
        return False
    with open(file, "rb") as content:
        beginning = content.read(ENOUGH)
    return beginning.count(b"\n") > lines or len(beginning) == ENOUGH


def _follow(run: Run, threshold: float | None, quiet: bool, stop: threading.Event) -> None:
    from redescend.checkpoint import save

    model_file, every = run.config.outputs.model, run.config.every
    due = run.counts.records + every
    with run:
        try:
            for rounds in run.batches():
                with ignore_broken_pipe() as left:
                    _report_suspects(run, rounds, threshold)
                if not quiet and run.latest is not None:
                    for bad in run.latest.rejected:
                        log(f"Rejected row {bad.row} of {bad.file}: {bad.reason}")
                if run.counts.records >= due and model_file is not None:
                    save(run.model, model_file)
                    due = run.counts.records + every
                if stop.is_set() or left.is_set():
                    run.pause()
                    return
        except Exception:
            if model_file is not None:
                save(run.model, model_file)
            raise


def _has_more(file: Path, run: Run) -> bool:
    """Whether there is text after the last record."""
    with open(file, "rb") as content:
        content.seek(0 if run.position is None else run.position.offset)
        return bool(content.read(ENOUGH).strip())


def _report_suspects(run: Run, rounds: Rounds, threshold: float | None) -> None:
    from redescend.cli.console import suspect_to_dict
    from redescend.streaming.summary.records import Suspect, read_values

    suspects = run.summary.are_suspects(rounds) if threshold is None else rounds.clean_probability < threshold
    if run.latest is None or not suspects.any():
        return
    schema, (batch, indices, _) = run.model.schema, run.latest
    for place in suspects.nonzero()[0]:
        values = read_values(schema, batch, int(indices[place]))
        suspect = Suspect(rounds.record(int(place), schema), batch.files, values)
        sys.stdout.write(format_json(suspect_to_dict(suspect)) + "\n")
    sys.stdout.flush()
