"""The commands that take a model file: `redescend predict`, `score`, `explain`, `inspect`, `export`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redescend.cli import options
from redescend.cli.console import announce_compilation, format_json, ignore_broken_pipe, make_printable
from redescend.cli.exit_codes import exit_on_error

if TYPE_CHECKING:
    from redescend.streaming.encoding.schema import Schema
    from redescend.streaming.explanation import Explanation

INTERVAL_HELP = "Also output the interval that contains this share of clean targets, such as 0.9, as low and high."
THRESHOLD_HELP = "Only output records that are less likely to be clean than P."

Interval = Annotated[float | None, options.optional(options.OUTPUT, "SHARE", INTERVAL_HELP, min=0.0, max=1.0)]
Threshold = Annotated[float | None, options.optional(options.OUTPUT, "P", THRESHOLD_HELP, min=0.0, max=1.0)]


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
            text = list(map(make_printable, describe.format_facts(facts)))
        with ignore_broken_pipe():
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


MAX_COLUMNS = 12  # columns whose contributions are shown; the others are summed
LONG_RUN = 10  # the fewest rows with the same target that are mentioned

ROW_HELP = "Number of the record in the source, from 1, as in lists of suspects."


@options.flatten
def explain(
    model: options.ModelToRead,
    source: options.Sources,
    *,
    row: Annotated[int, options.option(options.COLUMNS, ROW_HELP, metavar="N", min=1)],
    as_json: Annotated[bool, options.option(options.OUTPUT, "Output a JSON object.", "--json")] = False,
    reading: options.FormatOptions,
    debug: options.Debug = False,
) -> None:
    """Explain the prediction for a record: its interval, the contribution of each column, and plausible values.

    The contributions add up to the prediction. Similar records that are probably clean are shown as well. The
    prediction is that of the final model; if the stream changes over time, the model predicted an earlier record
    differently at the time (see fit --rounds).
    """
    with exit_on_error(debug):
        from redescend.cli.scoring import read_model
        from redescend.streaming import explanation

        loaded = read_model(model)
        opened = reading.open(source, kinds=loaded.schema.kinds, forms=loaded.schema.forms)
        loaded.schema.check_units(opened)
        with announce_compilation(quiet=as_json):
            batch, index, history = explanation.find_record(opened, loaded, row)
            why = explanation.explain_record(loaded, batch, index, history)
            if opened.can_reread:
                why = replace(
                    why,
                    nearest=explanation.find_nearest(loaded, opened, batch, index),
                    extreme=explanation.find_extremes(opened, loaded.schema, batch, index),
                    repeated=explanation.find_repeated(opened, loaded.schema, row),
                )
        with ignore_broken_pipe():
            if as_json:
                typer.echo(format_json(why.to_dict(), indent=2))
                return
            for line in format_explanation(why, loaded.schema):
                typer.echo(make_printable(line))


def format_explanation(why: Explanation, schema: Schema) -> Iterator[str]:
    """Format an explanation as lines of text."""
    from redescend.sources.kinds import Kind
    from redescend.streaming.explanation import list_steps
    from redescend.streaming.report.formatting import (
        NEGLIGIBLE,
        format_predicted,
        format_rounded,
        format_target,
        format_value,
        format_weight,
    )

    def show(number: Any) -> str:
        return format_predicted(schema, number, why.scale, (why.low, why.high))

    name, labels, dates = schema.target, schema.classifies, schema.kind is Kind.DATE
    yield f"Row {why.row}: {name} is {format_target(schema, why.target)}, predicted {show(why.prediction)}."
    if schema.lagged or any(feature.kind.value == "date" for feature in schema.features):
        yield "This is the prediction of the final model; for that at the time of the record, see fit --rounds."
    for one in why.extreme:
        most = f"from {format_rounded(one.middle)} by at most {format_rounded(one.distance)}"
        yield f"{one.column} = {format_value(one.value)} is extreme: 99 % of the values differ {most}."
    if why.repeated is not None and why.repeated[1] - why.repeated[0] + 1 >= LONG_RUN:
        first, last = why.repeated
        yield f"All rows from {first:,} to {last:,} have the same {name}; fit judges whether it is stuck."
    if why.clean_probability is not None:
        apart = " and ".join(one.column for one in why.extreme if one.column != name)
        probability = f"{format_weight(why.clean_probability)}{f', apart from {apart}' if apart else ''}"
        yield f"Probability that the record is clean: {probability}."
    if why.ordinary and labels:
        yield f"More likely clean than wrong: {name} = {' or '.join(map(format_rounded, why.ordinary))}."
    elif why.low is not None and why.high is not None:
        sides = zip(("below", "above"), why.ordinary or (), strict=False)
        beyond = " or ".join(f"{side} {show(end)}" for side, end in sides if end is not None)
        rest = f"; a value {beyond} is more likely wrong than clean" if beyond else ""
        yield f"Nine in ten clean values are between {show(why.low)} and {show(why.high)}{rest}."
    yield ""
    unit = f" (logit of {why.prediction})" if labels else " (in days)" if dates else ""
    yield f"Contributions to the prediction{unit}:"
    parts = [("a typical record", why.typical)]
    parts += list_steps(why.contributions, schema, NEGLIGIBLE * why.scale, MAX_COLUMNS)
    width = max(len(text) for text, _ in parts)
    ends = 16 if dates else 12  # characters of a number
    for place, (text, part) in enumerate(parts):
        number = show(part) if place == 0 else format_rounded(part, why.scale, (why.low, why.high))
        yield f"  {text:<{width}}  {number if place == 0 or part < 0.0 else f'+{number}':>{ends}}"
    yield f"  {'sum':<{width}}  {show(why.total):>{ends}}"
    if why.nearest:
        yield ""
        yield "Most similar records that are probably clean:"
        for near in why.nearest:
            shown = ", ".join(f"{key} = {format_value(near[key])}" for key in (name, *schema.inputs[:6]))
            yield f"  row {near['row']}: {shown}"
