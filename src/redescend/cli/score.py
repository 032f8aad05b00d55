"""`redescend score`: the probability that every record is clean."""

from __future__ import annotations

from typing import Annotated

import typer

from redescend.cli import options
from redescend.cli.exit_codes import exit_on_error

THRESHOLD_HELP = "Only output records that are less likely to be clean than P."


@options.flatten
def score(
    model: options.ModelToRead,
    source: options.Sources,
    *,
    threshold: Annotated[float | None, options.optional(options.OUTPUT, "P", THRESHOLD_HELP, min=0.0)] = None,
    from_start: options.FromStart = False,
    result: options.ResultOptions,
    reading: options.InputOptions,
    running: options.RunOptions,
) -> None:
    """Compute the probability that each record is clean, with its row, target, prediction and loss.

    Records need the columns that the model was fitted to, and the target. Nothing is learned from them. They are judged
    by the final model. For the records of fit the result is that of fit --suspects, except for stuck sensors, if their
    order does not matter. If the stream changes over time, use fit --suspects or fit --rounds for records that the
    model learned from: these judge each record by the model around its time.
    """
    with exit_on_error(running.debug):
        from redescend.cli.scoring import apply_model

        raise typer.Exit(
            apply_model(model, source, result, reading, running.quiet, below=threshold, from_start=from_start)
        )
