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
    by the model as it is at the end of its stream. So are those of a table whose order says nothing at the end of fit,
    with the same result, except for stuck sensors. If the stream changes with time, earlier records that the model
    learned from look wrong: fit --suspects and fit --rounds judge each of them by the model around its time.
    """
    with exit_on_error(running.debug):
        from redescend.cli.scoring import apply_model

        raise typer.Exit(
            apply_model(model, source, result, reading, running.quiet, below=threshold, from_start=from_start)
        )
