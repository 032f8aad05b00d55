"""The records that were believed least, on standard output: a table for a person, CSV for a pipe."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from redescend.cli.exit_codes import reader_may_leave
from redescend.cli.printable import printable
from redescend.streaming.report.formatting import format_number, format_rounded, format_value

if TYPE_CHECKING:
    from redescend.streaming.encoding.schema import Schema
    from redescend.streaming.summary.samples import Suspect

PROBABILITY = "inlier_probability"
FIRST = ("row", "file", PROBABILITY, "prediction", "target", "loss")
COLUMNS = 6
"""How many columns of a record the table shows."""


def show(least: Sequence[Suspect], schema: Schema, strongest: Sequence[str] = ()) -> None:
    """Print them, the least believed first.

    Parameters
    ----------
    least
        The records.
    schema
        What they are.
    strongest
        The columns that say most about the target: the table begins with these.
    """
    with reader_may_leave():
        if sys.stdout.isatty():
            _print_table(least, schema, strongest)
        else:
            sys.stdout.buffer.write(as_csv(least, schema).encode("utf-8", "backslashreplace"))
            sys.stdout.buffer.flush()


def as_csv(least: Sequence[Suspect], schema: Schema) -> str:
    """A line for each, with all its columns."""
    names = _names(schema)
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow([*FIRST, *(f"column {name}" if name in FIRST else name for name in names)])
    for record in least:
        played = record.round
        numbers = (played.weight, played.prediction, played.target, played.loss)
        lines.writerow(
            [played.row, record.file, *map(_plain, numbers), *(_plain(record.values[name]) for name in names)]
        )
    return text.getvalue()


def as_object(record: Suspect) -> dict[str, Any]:
    """What JSON says of one."""
    played = record.round
    numbers = (played.weight, played.prediction, played.target, played.loss)
    return dict(zip(FIRST, (played.row, record.file, *numbers), strict=True)) | {"values": record.values}


def _names(schema: Schema) -> list[str]:
    return [name for name in schema.columns if name != schema.target]


def _plain(content: Any) -> Any:
    if content is None:
        return ""
    return format_value(content) if isinstance(content, bool) else content


def _print_table(least: Sequence[Suspect], schema: Schema, strongest: Sequence[str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    names = [*([] if schema.by is None else [schema.by]), *(name for name in strongest if name in schema.inputs)]
    names = list(dict.fromkeys([*names, *_names(schema)]))
    several = len({record.file for record in least}) > 1
    table = Table(header_style="bold")
    for heading in ("row", *(["file"] if several else []), "clean", "prediction"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in (schema.target, *names[:COLUMNS]):
        table.add_column(Text(printable(heading)), justify="right", max_width=24, overflow="ellipsis", no_wrap=True)
    for record in least:
        played = record.round
        first = [str(played.row), *([record.file] if several else []), format_number(played.weight)]
        answers = [format_rounded(played.prediction), format_value(played.target)]
        cells = [*first, *answers, *(format_value(record.values[name]) for name in names[:COLUMNS])]
        table.add_row(*(Text(printable(cell)) for cell in cells))
    Console().print(table)
