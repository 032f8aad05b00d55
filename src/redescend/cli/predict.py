"""`redescend predict`: what a model predicts of every record."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redescend.cli import options
from redescend.cli.exit_codes import outcome

if TYPE_CHECKING:
    import pyarrow as pa

    from redescend.streaming.encoding.schema import Schema
    from redescend.streaming.rounds import Rounds

Out = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        show_default=False,
        help="Write to this .csv, .jsonl or .parquet file. To standard output, as CSV, if not given.",
        rich_help_panel=options.FILES,
    ),
]


def predict(
    model: options.ModelToRead,
    source: options.Sources,
    out: Out = None,
    quarantine: options.Quarantine = None,
    on_bad: options.HowBad = options.OnBad.QUARANTINE,
    format: options.Format = None,
    no_header: options.NoHeader = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Predict the target of every record: its row number and the prediction, and the probability of a label.

    Records need the columns that the model was made with; the target may be missing.
    """
    with outcome(debug):
        from redescend.cli.scoring import Reading, review

        reading = Reading(source, format, not no_header, on_bad, quarantine, out, quiet)
        raise typer.Exit(review(model, reading, _columns, _told, target=False))


def _columns(schema: Schema) -> pa.Schema:
    import pyarrow as pa

    from redescend.cli.scoring import answer_type

    fields = [("row", pa.int64()), ("prediction", answer_type(schema))]
    return pa.schema([*fields, *([("probability", pa.float64())] if schema.classifies else [])])


def _told(schema: Schema, rounds: Rounds) -> list[Any]:
    from redescend.cli.scoring import answers

    told = [rounds.rows, answers(schema, rounds.predictions)]
    return [*told, rounds.probabilities] if schema.classifies else told
