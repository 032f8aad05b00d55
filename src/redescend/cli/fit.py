"""`redescend fit`: fit a model to a stream in one pass."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redescend.cli import options
from redescend.cli.exit_codes import exit_on_error

if TYPE_CHECKING:
    from redescend.streaming.run import Run

MODEL_HELP = "Write the model here, for predict, score and inspect."
BY_HELP = "Fit one model per value of this column, such as each sensor."
JOBS_HELP = "With --by: number of threads. Default: 1. Models do not depend on it."
SUSPECTS_HELP = "With --rounds: show the largest list with at most this share of false alarms, such as 0.1."
CLUSTER_HELP = "With --by: Dask scheduler to run on, such as tcp://host:8786."


@options.flatten
def fit(
    source: options.Sources,
    *,
    learning: options.ModelOptions,
    by: Annotated[str | None, options.optional(options.COLUMNS, "COLUMN", BY_HELP)] = None,
    model: Annotated[Path | None, options.optional(options.OUTPUT, "FILE", MODEL_HELP)] = None,
    suspects: Annotated[
        float | None, options.optional(options.OUTPUT, "SHARE", SUSPECTS_HELP, min=0.0, max=1.0)
    ] = None,
    output: options.OutputOptions,
    reading: options.InputOptions,
    checkpoints: options.CheckpointOptions,
    every: options.Every = 1_000_000,
    jobs: Annotated[int | None, options.optional(options.RUNNING, "N", JOBS_HELP, min=1)] = None,
    cluster: Annotated[str | None, options.optional(options.RUNNING, "ADDRESS", CLUSTER_HELP)] = None,
    running: options.RunOptions,
) -> None:
    """Fit a model to a stream in one pass, and show the most suspicious records.

    Every record is predicted before it is learned from, and suspicious records are given little weight. The ten that
    are least likely clean go to standard output: as a table on a terminal, else as CSV. With --suspects, all suspects
    of the final verdict go there, as CSV.
    """
    with exit_on_error(running.debug, _how_to_resume(checkpoints.checkpoint)):
        from redescend.cli.console import announce_compilation
        from redescend.cli.training import choose_outputs, exit_code, make_config
        from redescend.errors import ParameterError
        from redescend.streaming.fit import start_run

        if suspects is not None and (output.rounds is None or by is not None or learning.transform is not None):
            raise ParameterError("--suspects needs --rounds FILE.parquet, and neither --by nor --transform.")
        outputs = choose_outputs(source, reading.on_bad, model, output)
        config = make_config(learning, reading, checkpoints, outputs, by=by, every=every, jobs=jobs, cluster=cluster)
        with announce_compilation(running.quiet):
            run = start_run(source[0] if len(source) == 1 else source, config)
            _play(run, running.quiet, suspects)
        raise typer.Exit(exit_code(run))


def _play(run: Run, quiet: bool, share: float | None) -> None:
    from redescend.cli.console import print_suspects, say, say_result, say_schema, say_unread
    from redescend.cli.progress import ProgressLine
    from redescend.streaming import StreamModel
    from redescend.streaming.importance import rank_features

    finished, config = run.finished, run.config
    if not quiet:
        say_unread(run.source)
    if not quiet and not finished:
        say_schema(run.model.schema)
        if run.resumed:
            say(f"Resumed after row {run.resumed:,}.")
    with run, ProgressLine(run.source, run.resumed, quiet) as line:
        for rounds in run.batches():
            line.update(run, rounds)
    if not quiet:
        if finished:
            say(f"The run in '{config.checkpoint}' was already finished: nothing was learned or written.")
        say_result(run)
        if config.outputs.model is None:
            say("The model was not saved; name a file with --model to save it.")
        if run.summary.least and share is None:
            say("Top suspects:")
    model = run.model
    if share is not None:
        from redescend.cli.verdict import print_verdict

        print_verdict(run, share, quiet)
        return
    important = [one.column for one in rank_features(model)] if isinstance(model, StreamModel) else []
    print_suspects(run.summary.least, model.schema, important)


def _how_to_resume(checkpoint: Path | None) -> str:
    if checkpoint is None:
        return " before the end. With --checkpoint FOLDER, a run can be resumed"
    return f"; run the same command with --resume to continue from the checkpoint in '{checkpoint}'"
