"""`redescend schema`: the columns of a source and their types, as a file to edit and enforce."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from redescend.cli import options
from redescend.cli.exit_codes import exit_on_error
from redescend.errors import ParameterError

OUT_HELP = "Write the types to this file. Default: standard output."
TYPES = ("number", "boolean", "date", "text")


@options.flatten
def schema(
    source: options.Sources,
    *,
    out: Annotated[Path | None, options.optional(options.OUTPUT, "FILE.toml", OUT_HELP)] = None,
    reading: options.FormatOptions,
    debug: options.Debug = False,
) -> None:
    """Show the columns of a source and their types, inferred from its first records.

    Edit the file and pass it to fit --schema, which rejects values of another type.
    """
    with exit_on_error(debug):
        from redescend.cli.console import ignore_broken_pipe, make_printable
        from redescend.files import replace_file

        opened = reading.open(source)
        text = format_schema(opened.name, {name: kind.value for name, kind in opened.kinds.items()}, opened.sample)
        text += "".join(f"# {json.dumps(name)} is {kind}, and is not used.\n" for name, kind in opened.others.items())
        if out is not None:
            with replace_file(out) as file:
                file.write(text.encode("utf-8", "backslashreplace"))
            return
        with ignore_broken_pipe():
            typer.echo("\n".join(map(make_printable, text.splitlines())))


def format_schema(name: str, kinds: dict[str, str], sample: Any) -> str:
    """The columns as TOML, each with an example."""
    from redescend.streaming.report.formatting import format_value

    lines = [f"# Types of the columns of {' '.join(name.split())}: {', '.join(TYPES)}. Other values are rejected."]
    lines.append("[columns]")
    for column, kind in kinds.items():
        values = sample.table.column(column).drop_null()
        shown = f"for example {' '.join(format_value(values[0].as_py()).split())[:40]}" if len(values) else "no values"
        lines.append(f"{json.dumps(column, ensure_ascii=False)} = {json.dumps(kind)}  # {shown}")
    return "\n".join(lines) + "\n"


def read_schema_file(path: Path) -> list[tuple[str, str]]:
    """The columns and their types in a file that `redescend schema` wrote."""
    if not path.exists():
        raise ParameterError(f"There is no file {path}; write one with redescend schema --out {path}.")
    try:
        columns = tomllib.loads(path.read_text(encoding="utf-8"))["columns"]
        pairs = list(columns.items())
    except (LookupError, AttributeError):
        raise ParameterError(f"'{path}' has no table [columns]; write a schema with redescend schema.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(f"'{path}' is not a schema ({error}); write one with redescend schema.") from None
    for name, kind in pairs:
        if kind not in TYPES:
            raise ParameterError(f"The type of column {name!r} in '{path}' must be {', '.join(TYPES)}. Got {kind!r}.")
    return pairs
