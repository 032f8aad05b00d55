"""`redescend fit`: learn from a stream in one pass."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redescend.cli import options
from redescend.cli.exit_codes import outcome
from redescend.cli.outputs import Outputs

if TYPE_CHECKING:
    from redescend.streaming.run import Pass

Model = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        show_default=False,
        help="The model, for predict, score and inspect. Without it, nothing but the least believed records is shown.",
        rich_help_panel=options.FILES,
    ),
]
By = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        show_default=False,
        help="A model for each value of this column: each sensor, each shop.",
        rich_help_panel=options.COLUMNS,
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        min=1,
        show_default=False,
        help="With --by, how many threads learn; one, if not given. The models are the same.",
        rich_help_panel=options.RUNNING,
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        show_default=False,
        help="With --by, a Dask scheduler to learn on, such as tcp://host:8786.",
        rich_help_panel=options.RUNNING,
    ),
]


def fit(
    source: options.Sources,
    target: options.Target,
    features: options.Features = None,
    ignore: options.Ignore = None,
    task: options.TheTask = options.Task.AUTO,
    labels: options.Labels = None,
    by: By = None,
    order: options.Order = 1,
    loss: options.Loss = None,
    transform: options.Transform = None,
    model: Model = None,
    rounds: options.Rounds = None,
    report: options.Report = None,
    no_report: options.NoReport = False,
    quarantine: options.Quarantine = None,
    on_bad: options.HowBad = options.OnBad.QUARANTINE,
    format: options.Format = None,
    no_header: options.NoHeader = False,
    checkpoint: options.Checkpoint = None,
    every: options.Every = 1_000_000,
    resume: options.Resume = False,
    jobs: Jobs = None,
    cluster: Cluster = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Learn to predict a column from the others, in one pass, and show which records are not to be believed.

    Every record is predicted before it is learned from, and the less it is believed, the less is learned from it. The
    ten least believed go to standard output: as a table on a terminal, else as CSV.
    """
    with outcome(debug, _how_to_go_on(checkpoint)):
        from redescend.cli.training import Wanted, begin, code_of

        wanted = Wanted(target, features, ignore, task, labels, order, loss, transform)
        outputs = Outputs.chosen(source, checkpoint, model, rounds, report, no_report, quarantine, on_bad)
        settings: dict[str, Any] = {
            "on_bad": str(on_bad),
            "format": format,
            "header": not no_header,
            "checkpoint": checkpoint,
            "every": every,
            "resume": resume,
            "by": by,
            "jobs": jobs,
            "cluster": cluster,
        }
        passing = begin(source[0] if len(source) == 1 else source, wanted, outputs, **settings)
        _run(passing, outputs, checkpoint, quiet)
        raise typer.Exit(code_of(passing.counts))


def _run(passing: Pass, outputs: Outputs, checkpoint: Path | None, quiet: bool) -> None:
    from redescend.cli.console import say, say_columns, say_end
    from redescend.cli.progress import Live
    from redescend.cli.suspects import show
    from redescend.streaming import StreamModel
    from redescend.streaming.importance import drives

    finished = passing.finished
    if not quiet and not finished:
        say_columns(passing.model.schema)
        if passing.resumed:
            say(f"Resumed after row {passing.resumed:,}.")
    with passing, Live(passing.source, passing.resumed, quiet) as live:
        for played in passing.batches():
            live.learned(passing, played)
    if not quiet:
        if finished:
            say(f"The run in '{checkpoint}' was finished before: nothing was learned or written now.")
        say_end(passing, outputs)
        if outputs.model is None:
            say("The model is not kept; to keep it, name a file with --model.")
        if passing.summary.least:
            say("The least believed records:")
    model = passing.model
    strongest = [drive.column for drive in drives(model)] if isinstance(model, StreamModel) else []
    show(passing.summary.least, model.schema, strongest)


def _how_to_go_on(checkpoint: Path | None) -> str:
    if checkpoint is None:
        return " before the end. With --checkpoint FOLDER, a run can be resumed"
    return f"; the same command with --resume goes on from the checkpoint in '{checkpoint}'"
