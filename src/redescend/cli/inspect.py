"""`redescend inspect`: describe a model file."""

from __future__ import annotations

from typing import Annotated

import typer

from redescend.cli import options
from redescend.cli.console import format_facts, format_json, make_printable, reader_may_leave
from redescend.cli.exit_codes import exit_on_error


def inspect(
    model: options.ModelToRead,
    as_json: Annotated[bool, typer.Option("--json", help="Output a JSON object.")] = False,
    key: Annotated[
        str | None, typer.Option(show_default=False, help="Describe the model of this key (of fit --by).")
    ] = None,
    debug: options.Debug = False,
) -> None:
    """Describe a model file: its task, its columns, its method and the most important columns."""
    with exit_on_error(debug):
        from redescend.cli.scoring import check_model_exists, read_key_model
        from redescend.streaming.report import describe

        check_model_exists(model)
        if as_json:
            data = (
                describe.inspect_as_data(model)
                if key is None
                else describe.describe_as_data(read_key_model(model, key))
            )
            text = [format_json(data, indent=2)]
        else:
            facts = describe.inspect(model) if key is None else describe.describe(read_key_model(model, key))
            text = list(map(make_printable, format_facts(facts)))
        with reader_may_leave():
            for line in text:
                typer.echo(line)
