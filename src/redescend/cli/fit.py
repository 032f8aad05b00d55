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
DRY_RUN_HELP = "Show what would be read, learned and written, and stop."
SCHEMA_HELP = "Types of columns, as written by redescend schema; values of another type are rejected."
CLUSTER_HELP = "With --by: Dask scheduler to run on, such as tcp://host:8786."


@options.flatten
def fit(
    source: options.Sources,
    *,
    learning: options.ModelOptions,
    by: Annotated[str | None, options.optional(options.COLUMNS, "COLUMN", BY_HELP)] = None,
    model: Annotated[Path | None, options.optional(options.OUTPUT, "FILE", MODEL_HELP)] = None,
    listing: options.SuspectOptions,
    output: options.OutputOptions,
    reading: options.InputOptions,
    schema: Annotated[Path | None, options.optional(options.INPUT, "FILE.toml", SCHEMA_HELP)] = None,
    checkpoints: options.CheckpointOptions,
    every: options.Every = 1_000_000,
    jobs: Annotated[int | None, options.optional(options.RUNNING, "N", JOBS_HELP, min=1)] = None,
    cluster: Annotated[str | None, options.optional(options.RUNNING, "ADDRESS", CLUSTER_HELP)] = None,
    dry_run: Annotated[bool, options.option(options.RUNNING, DRY_RUN_HELP, "--dry-run")] = False,
    running: options.RunOptions,
) -> None:
    """Fit a model to records, and show the most suspicious ones.

    Every record is predicted before it is learned from, and suspicious records get little weight. At the end, all
    records are judged by the final model, for which a file is read once more. The ten records that are least likely
    clean go to standard output: as a table on a terminal, otherwise as CSV. --suspects writes all suspects to a file.
    """
    with exit_on_error(running.debug, _explain_resuming(checkpoints.checkpoint)):
        from redescend.cli.console import announce_compilation, announce_start, log_plan

        announce_start(running.quiet)
        from redescend.cli.schema import read_schema_file
        from redescend.cli.training import choose_outputs, exit_code, make_config
        from redescend.streaming.fit import plan_run, start_run
        from redescend.streaming.io.tables import choose_writer

        if listing.suspects is not None:
            choose_writer(listing.suspects)
        outputs = choose_outputs(source, reading.on_bad, model, output, listing.suspects)
        settings = listing.parse() | {"by": by, "every": every, "jobs": jobs, "cluster": cluster, "final_look": True}
        settings["kinds"] = () if schema is None else read_schema_file(schema)
        config = make_config(learning, reading, checkpoints, outputs, **settings)
        opened = source[0] if len(source) == 1 else source
        if dry_run:
            log_plan(*plan_run(opened, config), config)
            return
        with announce_compilation(running.quiet):
            run = start_run(opened, config)
            _play(run, running.quiet)
        raise typer.Exit(exit_code(run))


def _play(run: Run, quiet: bool) -> None:
    from redescend.cli.console import log, log_result, log_schema, log_unread, print_suspects
    from redescend.cli.progress import ProgressLine
    from redescend.streaming import StreamModel
    from redescend.streaming.importance import rank_features
    from redescend.streaming.report.formatting import format_count

    finished, config = run.finished, run.config
    if not quiet:
        log_unread(run.source)
    if not quiet and not finished:
        log_schema(run.model.schema)
        if run.source.is_shuffled and not config.shuffle:
            log("The file is sorted by its target, so it is read in random order; --no-shuffle keeps its order.")
        if run.resumed:
            log(f"Resumed after row {run.resumed:,}.")
    with run, ProgressLine(run.source, run.resumed, quiet) as line:
        run.on_look = lambda records: line.report(records, "second look")
        for rounds in run.batches():
            line.update(run, rounds)
    if not quiet:
        if finished:
            log(f"The run in '{config.checkpoint}' was already finished: nothing was learned or written.")
        log_result(run)
        if run.follows:
            log(
                f"The {run.follows} of the records matters: a model that follows it has smaller errors. The final "
                "model is that of the last records; for a model of all records, use --shuffle."
            )
        if config.outputs.model is None:
            log("The model was not saved; to save it, use --model FILE.")
        shown, listed = len(run.summary.least), run.summary.suspect_count
        if shown and (run.final is None or shown <= listed):
            log("Top suspects:")
        elif shown:
            several = "the first is a suspect" if listed == 1 else f"the first {listed} are suspects"
            which = several if listed else "none is a suspect"
            log(f"The {format_count(shown)} that are least likely clean ({which}):")
    model = run.model
    important = [one.far_out for one in run.summary.least if one.far_out is not None]
    important += [one.column for one in rank_features(model)] if isinstance(model, StreamModel) else []
    print_suspects(run.summary.least, model.schema, important, config.id)


def _explain_resuming(checkpoint: Path | None) -> str:
    if checkpoint is None:
        return " before the end. With --checkpoint FOLDER, a run can be resumed"
    return f"; run the same command with --resume to continue from the checkpoint in '{checkpoint}'"
