"""The commands that take a model file: `redescend predict`, `score`, `inspect` and `export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from redescend.cli import options
from redescend.cli.console import format_facts, format_json, make_printable, reader_may_leave
from redescend.cli.exit_codes import exit_on_error

INTERVAL_HELP = "Also output the interval that contains this share of clean targets, such as 0.9, as low and high."
THRESHOLD_HELP = "Only output records that are less likely to be clean than P."

Interval = Annotated[float | None, options.optional(options.OUTPUT, "SHARE", INTERVAL_HELP, min=0.0, max=1.0)]
Threshold = Annotated[float | None, options.optional(options.OUTPUT, "P", THRESHOLD_HELP, min=0.0)]


@options.flatten
def predict(
    model: options.ModelToRead,
    source: options.Sources,
    *,
    interval: Interval = None,
    result: options.ResultOptions,
    reading: options.InputOptions,
    running: options.RunOptions,
) -> None:
    """Predict the target of every record: row, prediction and, for labels, its probability.

    Records need the columns that the model was fitted to, except the target.
    """
    with exit_on_error(running.debug):
        from redescend.cli.scoring import apply_model

        raise typer.Exit(apply_model(model, source, result, reading, running.quiet, target=False, level=interval))


@options.flatten
def score(
    model: options.ModelToRead,
    source: options.Sources,
    *,
    threshold: Threshold = None,
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

        raise typer.Exit(apply_model(model, source, result, reading, running.quiet, below=threshold))


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
        one = None if key is None else read_key_model(model, key)
        if as_json:
            data = describe.inspect_as_data(model) if one is None else describe.describe_as_data(one)
            text = [format_json(data, indent=2)]
        else:
            facts = describe.inspect(model) if one is None else describe.describe(one)
            text = list(map(make_printable, format_facts(facts)))
        with reader_may_leave():
            for line in text:
                typer.echo(line)


def export(
    model: options.ModelToRead,
    onnx: Annotated[Path, typer.Option(metavar="FILE", help="The ONNX graph to write.", show_default=False)],
    debug: options.Debug = False,
) -> None:
    """Export a model as an ONNX graph with the same predictions.

    The model must be linear and without keys, and its columns must be numbers, booleans or texts. The inputs of the
    graph are the columns; its outputs are the prediction, or the label and the probabilities, in double precision.
    """
    with exit_on_error(debug):
        from redescend.checkpoint import load
        from redescend.cli.scoring import check_model_exists
        from redescend.errors import DataError
        from redescend.exports.onnx import to_onnx

        check_model_exists(model)
        if onnx.exists() and onnx.samefile(model):
            raise DataError(f"--onnx {onnx} would overwrite the model; name another file.")
        made = to_onnx(load(model), onnx)
        names = ", ".join(one.name for one in made.graph.output)
        typer.echo(f"ONNX graph: {onnx} ({len(made.graph.input)} inputs; outputs: {names})", err=True)
