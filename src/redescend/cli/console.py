"""Output for people: messages on standard error, suspects on standard output."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import Event
from typing import TYPE_CHECKING, Any

import typer

from redescend.cli.startup import discard_output

if TYPE_CHECKING:
    from redescend.sources import Source
    from redescend.streaming import ModelStore, StreamModel
    from redescend.streaming.audit.cells import Cell
    from redescend.streaming.config import FitConfig
    from redescend.streaming.encoding.schema import Schema
    from redescend.streaming.run import Run
    from redescend.streaming.summary.records import Rejections, Suspect

MAX_LINES = 12  # columns to describe
MAX_REASONS = 5  # reasons of rejected records to show
MAX_COLUMNS = 6  # columns of a record in the table of suspects

PROBABILITY = "clean_probability"
SUSPECT_COLUMNS = ("row", "file", PROBABILITY, "prediction", "target", "loss")


def make_printable(text: str) -> str:
    r"""Replace characters that could move the cursor or change the colours of a terminal.

    >>> make_printable("red: \x1b[31mRome\n") == "red: \N{REPLACEMENT CHARACTER}[31mRome "
    True
    """
    return "".join(
        letter if letter.isprintable() else " " if letter.isspace() else "\N{REPLACEMENT CHARACTER}" for letter in text
    )


def format_json(content: Any, indent: int | None = None) -> str:
    r"""Format JSON with escapes for everything that is not printable.

    >>> print(format_json({"town": "Zürich\x9b\udcff"}))
    {"town": "Zürich\u009b\udcff"}
    """
    text = json.dumps(content, indent=indent, ensure_ascii=False)
    return "".join(letter if letter.isprintable() or letter == "\n" else json.dumps(letter)[1:-1] for letter in text)


def log(text: str) -> None:
    """Print a line on standard error, unless it is closed."""
    with suppress(OSError):
        typer.echo(make_printable(text), err=True)


def announce_start(quiet: bool) -> None:
    """Show a sign of life on a terminal, until the first line replaces it: imports take a second."""
    if not quiet and sys.stderr.isatty():
        with suppress(OSError):
            typer.echo("Starting …\r", err=True, nl=False)


def announce_compilation(quiet: bool, log: Callable[[str], None] = log) -> AbstractContextManager[None]:
    """Print one line as soon as something has to be compiled, which takes a while on a new machine."""
    from redescend.kernels.compiler import on_compile

    return on_compile((lambda text: None) if quiet else log)


@contextmanager
def ignore_broken_pipe() -> Iterator[Event]:
    """Write to standard output; a reader that closes the pipe, as `head` does, sets the event and is not an error."""
    left = Event()
    try:
        yield left
        sys.stdout.flush()
    except BrokenPipeError:
        left.set()
        # Python flushes standard output once more when it exits, and would complain.
        discard_output()


def log_schema(schema: Schema) -> None:
    """Print the inferred schema."""
    from redescend.streaming.report.describe import describe_schema, format_facts
    from redescend.streaming.report.formatting import abbreviate

    width = shutil.get_terminal_size().columns if sys.stderr.isatty() else None
    for line in format_facts(describe_schema(schema), MAX_LINES):
        log(line if width is None else abbreviate(line, width))


def log_unread(source: Source) -> None:
    """Print the files and folders that are skipped."""
    for path, reason in source.unread[:MAX_LINES]:
        log(f"Skipped {path}: {reason}.")
    if len(source.unread) > MAX_LINES:
        log(f"Skipped {len(source.unread) - MAX_LINES} more.")


def log_rejections(rejections: Rejections) -> None:
    """Print why records were rejected, the most frequent reasons first, with an example each."""
    kinds = rejections.most_frequent()
    for kind in kinds[:MAX_REASONS]:
        examples = rejections.examples[kind]
        row, file, reason, _ = examples[0]
        differ = "" if all(one.reason == reason for one in examples) else "; values differ"
        log(f"  {rejections.counts[kind]:,} × {reason} (such as row {row} of {file}{differ})")
    if len(kinds) > MAX_REASONS:
        log(f"  and {len(kinds) - MAX_REASONS} more reasons")


def log_result(run: Run) -> None:
    """Print a summary of a run, and the files that it wrote."""
    from redescend.streaming.report import page

    final = page.describe_final(run.summary) if run.summary.suspect_count else []
    found = [*page.describe_learned(run.summary, run.counts), *final, *page.note_many_suspects(run.summary)]
    for sentence in [*found, *page.describe_rejected(run.counts)]:
        log(sentence)
    log_rejections(run.summary.rejections)
    if run.summary.rejections.have_unknown_labels:
        log(f"  To use other labels, too, add them to --labels {_join_labels(run.model.schema.labels)}")
    if run.source.unread:
        log(f"Files or folders skipped: {len(run.source.unread):,}.")
    outputs = run.config.outputs
    unwritten = None if outputs.keep_empty_quarantine or run.counts.quarantined else outputs.quarantine
    for content, path in outputs.by_content().items():
        # If no quarantine was written, a file of that name belongs to another run.
        if path.exists() and path != unwritten:
            log(f"{content.capitalize()}: {path}")


def _join_labels(labels: Sequence[str]) -> str:
    """Labels as --labels takes them.

    >>> _join_labels(["no", "yes, please"])
    'no,"yes, please"'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(labels)
    return text.getvalue()


def log_plan(model: StreamModel | ModelStore, source: Source, passes: int, config: FitConfig) -> None:
    """Print what a run would do."""
    log_unread(source)
    log(f"Would read {source.name} ({source.format}, {len(source.columns)} columns).")
    log_schema(model.schema)
    rejected = len(source.sample.bad)
    if rejected:
        bad, count = source.sample.bad[0], source.sample.count
        log(f"{rejected:,} of the first {count:,} records cannot be read, such as row {bad.row}: {bad.reason}")
    if source.is_shuffled:
        log("Would read the records in random order.")
    log(f"Would learn from every record {'once' if passes == 1 else f'{passes} times'}, and write:")
    for content, path in config.outputs.by_content().items():
        log(f"  {content}: {path}{' (if a record is rejected)' if content == 'quarantine' else ''}")
    log("Only a sample of the records was read, and nothing was written.")


def print_suspects(
    suspects: Sequence[Suspect], schema: Schema, important: Sequence[str] = (), ids: Sequence[str] = ()
) -> None:
    """Print suspects on standard output: as a table on a terminal, important columns first; else as CSV."""
    with ignore_broken_pipe():
        if sys.stdout.isatty():
            _print_table(suspects, schema, [*ids, *important], ids)
        else:
            sys.stdout.buffer.write(_format_csv(suspects, schema, ids).encode("utf-8", "backslashreplace"))
            sys.stdout.buffer.flush()


def print_cells(cells: Sequence[Cell], most: int) -> None:
    """Print the first suspect cells of an audit as a table on a terminal."""
    from rich.console import Console
    from rich.table import Table

    from redescend.streaming.report.formatting import abbreviate, format_rounded, format_value, format_weight

    if not cells:
        return
    table = Table(header_style="bold")
    for heading in ("row", "column", "value", "expected", "clean", "kind"):
        left, whole = heading in ("column", "kind"), heading in ("row", "clean")
        table.add_column(heading, justify="left" if left else "right", no_wrap=whole, overflow="fold")
    for cell in cells[:most]:
        value = format_value(cell.value) if cell.column else ""
        expected = "" if cell.expected is None else format_rounded(cell.expected, within=(cell.low, cell.high))
        clean = "" if cell.clean_probability is None else format_weight(cell.clean_probability)
        texts = (str(cell.row), cell.column, value, expected, clean, cell.kind)
        table.add_row(*(_make_text(abbreviate(text, 80)) for text in texts))
    with ignore_broken_pipe():
        Console().print(table)
    if len(cells) > most:
        log(f"The first {most} of {len(cells):,} cells; --out FILE writes all, --top N shows more.")


def suspect_to_dict(suspect: Suspect) -> dict[str, Any]:
    """Convert a suspect to a JSON object."""
    return dict(zip(SUSPECT_COLUMNS, _first_cells(suspect), strict=True)) | {"values": suspect.values}


def _first_cells(suspect: Suspect) -> tuple[Any, ...]:
    played = suspect.round
    return (played.row, suspect.file, played.clean_probability, played.prediction, played.target, played.loss)


def _format_csv(suspects: Sequence[Suspect], schema: Schema, ids: Sequence[str]) -> str:
    names = _name_columns(schema, ids)
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow([*SUSPECT_COLUMNS, *(f"column {name}" if name in SUSPECT_COLUMNS else name for name in names)])
    for suspect in suspects:
        cells = (*_first_cells(suspect), *(suspect.values.get(name) for name in names))
        lines.writerow(map(_format_cell, cells))
    return text.getvalue()


def _format_cell(value: Any) -> Any:
    """A value as a cell of a CSV file; whole numbers without a decimal point.

    >>> [_format_cell(value) for value in (True, 1966.0, 0.5, "a", None)]
    ['true', 1966, 0.5, 'a', None]
    """
    if isinstance(value, bool):
        return str(value).lower()
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2.0**53 else value


def _name_columns(schema: Schema, ids: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*ids, *(name for name in schema.columns if name != schema.target)]))


def _print_table(suspects: Sequence[Suspect], schema: Schema, important: Sequence[str], ids: Sequence[str]) -> None:
    """Print a table with as many columns of the records as fit on the screen, the important ones first."""
    from rich.console import Console

    names = [
        *([] if schema.by is None else [schema.by]),
        *(name for name in important if name in (*ids, *schema.inputs)),
    ]
    names = list(dict.fromkeys([*names, *_name_columns(schema, ids)]))[:MAX_COLUMNS]
    console = Console()
    unlimited = console.options.update(width=10**6)
    table = _make_table(suspects, schema, names)
    while names and console.measure(table, options=unlimited).maximum > console.width:
        names.pop()
        table = _make_table(suspects, schema, names)
    console.print(table)


def _make_table(suspects: Sequence[Suspect], schema: Schema, names: Sequence[str]) -> Any:
    from rich.table import Table

    from redescend.streaming.report.formatting import format_predicted, format_target, format_value, format_weight

    several = len({suspect.file for suspect in suspects}) > 1
    table = Table(header_style="bold")
    for heading in ("row", *(["file"] if several else []), "clean", "prediction"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in (schema.target, *names):
        table.add_column(_make_text(heading), justify="right", max_width=24, overflow="ellipsis", no_wrap=True)
    for suspect in suspects:
        played = suspect.round
        first = [str(played.row), *([suspect.file] if several else []), format_weight(played.clean_probability)]
        cells = [
            *first,
            format_predicted(schema, played.prediction, within=(played.low, played.high)),
            format_target(schema, played.target),
            *(format_value(suspect.values.get(name)) for name in names),
        ]
        table.add_row(*map(_make_text, cells))
    return table


def _make_text(content: str) -> Any:
    from rich.text import Text

    return Text(make_printable(content))
