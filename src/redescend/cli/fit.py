"""`redescend fit`: learn from a stream in one pass."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redescend.cli import options
from redescend.cli.exit_codes import outcome
from redescend.cli.outputs import choose_outputs

if TYPE_CHECKING:
    from redescend.streaming.run import Run

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
        from redescend.cli.specs import listed, loss_named, transform_named
        from redescend.cli.training import exit_code
        from redescend.streaming.config import FitConfig
        from redescend.streaming.fit import start_run

        config = FitConfig(
            target=target,
            features=listed(features),
            ignore=listed(ignore) or [],
            task=str(task),
            labels=listed(labels),
            order=order,
            loss=loss_named(loss),
            transform=transform_named(transform),
            on_bad=on_bad.value,
            format=format,
            header=not no_header,
            by=by,
            outputs=choose_outputs(source, on_bad, model, rounds, report, no_report, quarantine),
            checkpoint=checkpoint,
            every=every,
            resume=resume,
            jobs=jobs,
            cluster=cluster,
        )
        run = start_run(source[0] if len(source) == 1 else source, config)
        _play(run, quiet)
        raise typer.Exit(exit_code(run.counts))


def _play(run: Run, quiet: bool) -> None:
    from redescend.cli.console import say, say_columns, say_end
    from redescend.cli.progress import Live
    from redescend.cli.suspects import show
    from redescend.streaming import StreamModel
    from redescend.streaming.importance import rank_features

    finished, config = run.finished, run.config
    if not quiet and not finished:
        say_columns(run.model.schema)
        if run.resumed:
            say(f"Resumed after row {run.resumed:,}.")
    with run, Live(run.source, run.resumed, quiet) as live:
        for rounds in run.batches():
            live.learned(run, rounds)
    if not quiet:
        if finished:
            say(f"The run in '{config.checkpoint}' was already finished: nothing was learned or written.")
        say_end(run)
        if config.outputs.model is None:
            say("The model was not saved; name a file with --model to save it.")
        if run.summary.least:
            say("Top suspects:")
    model = run.model
    important = [one.column for one in rank_features(model)] if isinstance(model, StreamModel) else []
    show(run.summary.least, model.schema, important)


def _how_to_go_on(checkpoint: Path | None) -> str:
    if checkpoint is None:
        return " before the end. With --checkpoint FOLDER, a run can be resumed"
    return f"; the same command with --resume goes on from the checkpoint in '{checkpoint}'"
