"""`redescend inspect`: what is in a model file, in words."""

from __future__ import annotations

from typing import Annotated

import typer

from redescend.cli import options
from redescend.cli.exit_codes import outcome, reader_may_leave
from redescend.cli.printable import json_text, printable


def inspect(
    model: options.ModelToRead,
    as_json: Annotated[bool, typer.Option("--json", help="As a JSON object, for other programs.")] = False,
    key: Annotated[
        str | None, typer.Option(show_default=False, help="Of many models (fit --by), that of this key.")
    ] = None,
    debug: options.Debug = False,
) -> None:
    """Say in words what is in a model file: what it predicts, from what, and what it has learned."""
    with outcome(debug):
        from redescend.cli.models import check_there, read_key
        from redescend.streaming.report import describe

        check_there(model)
        facts = describe.inspect(model) if key is None else describe.describe(read_key(model, key))
        with reader_may_leave():
            if as_json:
                typer.echo(json_text(facts, indent=2))
                return
            for heading, content in facts.items():
                lines = [f"{heading}: {content}"] if isinstance(content, str) else [f"{heading}:", *content]
                typer.echo("\n  ".join(map(printable, lines)))
