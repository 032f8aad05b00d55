"""`redescend score`: how likely every record is to be clean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from redescend.cli import options
from redescend.cli.exit_codes import outcome
from redescend.cli.predict import Out

if TYPE_CHECKING:
    import pyarrow as pa

    from redescend.streaming.encoding.schema import Schema
    from redescend.streaming.rounds import Rounds

Threshold = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        metavar="P",
        show_default=False,
        help="Only records that are less likely than this to be clean.",
        rich_help_panel=options.FILES,
    ),
]


def score(
    model: options.ModelToRead,
    source: options.Sources,
    threshold: Threshold = None,
    out: Out = None,
    quarantine: options.Quarantine = None,
    on_bad: options.HowBad = options.OnBad.QUARANTINE,
    format: options.Format = None,
    no_header: options.NoHeader = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Say of every record how likely it is to be clean, with its row number, the target, the prediction and its loss.

    Records need the target, too. Nothing is learned from them.
    """
    with outcome(debug):
        from redescend.cli.scoring import Reading, review

        reading = Reading(source, format, not no_header, on_bad, quarantine, out, quiet)
        raise typer.Exit(review(model, reading, _columns, _told, target=True, below=threshold))


def _columns(schema: Schema) -> pa.Schema:
    import pyarrow as pa

    from redescend.cli.scoring import answer_type
    from redescend.cli.suspects import PROBABILITY

    answer = answer_type(schema)
    numbers = [("target", answer), ("prediction", answer), ("loss", pa.float64())]
    return pa.schema([("row", pa.int64()), (PROBABILITY, pa.float64()), *numbers])


def _told(schema: Schema, rounds: Rounds) -> list[Any]:
    from redescend.cli.scoring import answers

    said = (answers(schema, rounds.targets), answers(schema, rounds.predictions))
    return [rounds.rows, rounds.weights, *said, rounds.losses]
