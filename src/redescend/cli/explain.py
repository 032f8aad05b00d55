"""`redescend explain`: the contributions of columns to a prediction, and the values that would be plausible."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redescend.cli import options
from redescend.cli.exit_codes import exit_on_error

if TYPE_CHECKING:
    from redescend.streaming.encoding.schema import Schema
    from redescend.streaming.explanation import Explanation

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
        from redescend.cli.console import announce_compilation, format_json, make_printable, reader_may_leave
        from redescend.cli.scoring import read_model
        from redescend.streaming.explanation import (
            explain_record,
            find_extremes,
            find_nearest,
            find_record,
            find_repeated,
        )

        loaded = read_model(model)
        opened = reading.open(source, kinds=loaded.schema.kinds)
        with announce_compilation(quiet=as_json):
            batch, index, history = find_record(opened, loaded, row)
            why = explain_record(loaded, batch, index, history)
            if opened.can_reread:
                why = replace(
                    why,
                    nearest=find_nearest(loaded, opened, batch, index),
                    extreme=find_extremes(opened, loaded.schema, batch, index),
                    repeated=find_repeated(opened, loaded.schema, row),
                )
        with reader_may_leave():
            if as_json:
                typer.echo(format_json(why.to_dict(), indent=2))
                return
            for line in format_explanation(why, loaded.schema):
                typer.echo(make_printable(line))


def format_explanation(why: Explanation, schema: Schema) -> Iterator[str]:
    """Format an explanation as lines of text."""
    from redescend.streaming.explanation import OTHER_STEPS
    from redescend.streaming.report.formatting import (
        NEGLIGIBLE,
        format_count,
        format_rounded,
        format_value,
        format_weight,
    )

    def show(number: Any) -> str:
        return format_rounded(number, why.scale)

    name, labels = schema.target, schema.classifies
    yield f"Row {why.row}: {name} is {format_value(why.target)}, predicted {show(why.prediction)}."
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
    yield f"Contributions to the prediction{f' (logit of {why.prediction})' if labels else ''}:"
    parts, known = [("a typical record", why.typical)], {feature.name for feature in schema.features}
    contributions = [one for one in why.contributions if abs(one.contribution) >= NEGLIGIBLE * why.scale]
    columns = [one for one in contributions if one.column not in OTHER_STEPS]
    for column, value, part in columns[:MAX_COLUMNS]:
        parts.append((f"{column} = {format_value(value)}" if column in known else column, part))
    if others := columns[MAX_COLUMNS:]:
        parts.append((format_count(len(others), "other column"), sum(one.contribution for one in others)))
    parts += [(one.column, one.contribution) for one in contributions if one.column in OTHER_STEPS]
    width = max(len(text) for text, _ in parts)
    for text, part in parts:
        number = show(part)
        yield f"  {text:<{width}}  {number if text == parts[0][0] or part < 0.0 else f'+{number}':>12}"
    yield f"  {'sum':<{width}}  {show(why.total):>12}"
    if why.nearest:
        yield ""
        yield "Most similar records that are probably clean:"
        for near in why.nearest:
            shown = ", ".join(f"{key} = {format_value(near[key])}" for key in (name, *schema.inputs[:6]))
            yield f"  row {near['row']}: {shown}"
