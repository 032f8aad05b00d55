"""`redescend predict`: predict every record of a stream."""

from __future__ import annotations

from typing import Annotated

import typer

from redescend.cli import options
from redescend.cli.exit_codes import exit_on_error

INTERVAL_HELP = "Also output the interval that contains this share of clean targets, such as 0.9, as low and high."


@options.flatten
def predict(
    model: options.ModelToRead,
    source: options.Sources,
    *,
    interval: Annotated[
        float | None, options.optional(options.OUTPUT, "SHARE", INTERVAL_HELP, min=0.0, max=1.0)
    ] = None,
    from_start: options.FromStart = False,
    result: options.ResultOptions,
    reading: options.InputOptions,
    running: options.RunOptions,
) -> None:
    """Predict the target of every record: row, prediction and, for labels, its probability.

    Records need the columns that the model was fitted to, except the target.
    """
    with exit_on_error(running.debug):
        from redescend.cli.scoring import apply_model

        raise typer.Exit(
            apply_model(
                model, source, result, reading, running.quiet, target=False, level=interval, from_start=from_start
            )
        )
