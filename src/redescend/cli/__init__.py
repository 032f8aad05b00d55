"""The command `redescend`. Results go to standard output, everything else to standard error.

Slow imports are inside the commands that need them, so that --help is fast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from redescend.errors import needs_extra

with needs_extra("The command needs Typer and Rich", "cli"):
    import typer

from redescend.cli.audit import audit
from redescend.cli.exit_codes import EXIT_CODES, exit_on_error
from redescend.cli.fit import fit
from redescend.cli.model_file import explain, export, inspect, predict, score
from redescend.cli.options import read_defaults
from redescend.cli.reproduce import reproduce
from redescend.cli.schema import schema
from redescend.cli.serve import serve
from redescend.cli.startup import allow_pandas, ensure_complete_output, start_fast
from redescend.cli.tail import tail
from redescend.cli.usage import PlainGroup

__all__ = ["app"]


class App(typer.Typer):
    """The command with all of its subcommands."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        if options.get("standalone_mode", True):  # the process is the command's
            start_fast()
        try:
            with ensure_complete_output():
                return super().__call__(*arguments, **options)
        finally:
            allow_pandas()


app = App(
    cls=PlainGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from redescend import __version__

        typer.echo(__version__)
        raise typer.Exit


def _format_examples(*commands: str) -> str:
    return "Examples:\n\n" + "".join(f"- `{command}`\n\n" for command in commands)


EXAMPLES: dict[Callable[..., None], str | None] = {
    fit: _format_examples(
        "redescend fit houses.csv --target price --model houses.safetensors",
        "zcat log.csv.gz | redescend fit - --target seconds --features size,host --model log.safetensors",
        "redescend fit parts/ --target y --model m.safetensors --checkpoint run --resume",
    )
    + EXIT_CODES,
    predict: _format_examples(
        "redescend predict houses.safetensors new.csv > predictions.csv",
        "redescend predict houses.safetensors new/ --out predictions.parquet",
    ),
    score: _format_examples(
        "redescend score houses.safetensors new.csv > scores.csv",
        "redescend score houses.safetensors new.csv --threshold 0.01",
    ),
    audit: _format_examples("redescend audit houses.csv --top 20", "redescend audit houses.csv --out cells.csv"),
    explain: _format_examples(
        "redescend explain houses.safetensors houses.csv --row 20",
        "redescend explain houses.safetensors houses.csv --row 20 --json",
    ),
    inspect: _format_examples(
        "redescend inspect houses.safetensors", "redescend inspect houses.safetensors --json | jq .columns"
    ),
    schema: _format_examples(
        "redescend schema houses.csv --out types.toml", "redescend fit houses.csv --target price --schema types.toml"
    ),
    export: _format_examples("redescend export houses.safetensors --onnx houses.onnx"),
    tail: _format_examples(
        "redescend tail sensor.csv --target level --model sensor.safetensors",
        "redescend tail sensor.csv --target level --checkpoint run --resume >> suspects.jsonl",
    ),
    serve: _format_examples(
        "redescend serve price.json --data models",
        "redescend serve --data models --host 0.0.0.0 --port 8080 --keep-journal",
    ),
    reproduce: None,
}
"""The commands, with the end of their help text."""

for _command, _epilog in EXAMPLES.items():
    app.command(epilog=_epilog)(_command)


@app.callback(
    epilog=_format_examples(
        "redescend fit houses.csv --target price --model houses.safetensors",
        "redescend score houses.safetensors new.csv --threshold 0.01",
    )
    + EXIT_CODES
)
def main(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Online learning that outliers cannot move.

    Learn from a file, a folder or a pipe in one pass, and find the records that are probably wrong.
    """
    with exit_on_error(debug=False):
        context.default_map = read_defaults(getattr(context.command, "commands", {}))
