"""`redescend fit`: fit a model to a stream in one pass. `tail` has the same configuration and default outputs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redescend.cli import options
from redescend.cli.exit_codes import Code, exit_on_error
from redescend.cli.options import CheckpointOptions, InputOptions, ModelOptions, OutputOptions
from redescend.errors import OnBad, ParameterError

if TYPE_CHECKING:
    from redescend.streaming.config import FitConfig, Outputs
    from redescend.streaming.run import Run

QUARANTINE = "quarantine.jsonl"


def make_config(
    learning: ModelOptions, reading: InputOptions, checkpoints: CheckpointOptions, outputs: Outputs, **settings: Any
) -> FitConfig:
    """Make the configuration of a run from options."""
    from redescend.streaming.config import FitConfig

    return FitConfig(
        **learning.parse(),
        on_bad=reading.on_bad.value,
        format=reading.format,
        header=not reading.no_header,
        decimal=reading.decimal,
        encoding=reading.encoding,
        checkpoint=checkpoints.checkpoint,
        resume=checkpoints.resume,
        outputs=outputs,
        **settings,
    )


def choose_outputs(
    sources: Sequence[str], on_bad: OnBad, model: Path | None, options: OutputOptions, suspects: Path | None = None
) -> Outputs:
    """Choose the output files: those that are named, the report beside the model, and the quarantine."""
    from redescend.streaming.config import Outputs

    report = options.report
    if options.no_report and report is not None:
        raise ParameterError("Leave out one of --report and --no-report.")
    if report is None and model is not None and not options.no_report:
        report = _name_beside(model, "report.html")
    quarantine = choose_quarantine(sources, on_bad, options.quarantine, model or options.rounds or suspects)
    return Outputs(
        model, options.rounds, report, quarantine, suspects, keep_empty_quarantine=options.quarantine is not None
    )


def choose_quarantine(sources: Sequence[str], on_bad: OnBad, named: Path | None, output: Path | None) -> Path | None:
    """Choose the file for rejected records: beside the output or, without one, here with the name of the source.

    >>> choose_quarantine(["q1.csv"], OnBad.QUARANTINE, None, Path("models", "houses.safetensors")).as_posix()
    'models/houses.quarantine.jsonl'
    >>> sources = ("q1.csv", "-", "parts/*.csv", "data/parts/")
    >>> [str(choose_quarantine([source], OnBad.QUARANTINE, None, None)) for source in sources]
    ['q1.quarantine.jsonl', 'stdin.quarantine.jsonl', 'parts.quarantine.jsonl', 'parts.quarantine.jsonl']
    """
    if on_bad is not OnBad.QUARANTINE:
        if named is not None:
            raise ParameterError(f"--on-bad {on_bad} does not quarantine records; leave --quarantine out.")
        return None
    if named is not None:
        return named
    if output is not None:
        return _name_beside(output, QUARANTINE)
    if not os.access(".", os.W_OK):
        raise ParameterError(
            "Rejected records cannot be written to this folder, which is not writable; name a file elsewhere with "
            "--quarantine, or use --on-bad skip or --on-bad fail."
        )
    if sources[0] == "-":
        return Path(f"stdin.{QUARANTINE}")
    parts = Path(os.path.abspath(sources[0])).parts[1:]
    # A pattern is named after its folder.
    stems = ("".join(letter for letter in Path(part).stem if letter not in "*?[]") for part in reversed(parts))
    return Path(f"{next(filter(None, stems), 'records')}.{QUARANTINE}")


def _name_beside(file: Path, ending: str) -> Path:
    return file.parent / f"{file.stem}.{ending}"


def exit_code(run: Run) -> Code:
    """The exit code of a run that read all records."""
    return Code.REJECTED if run.counts.quarantined or run.counts.skipped or run.source.unread else Code.DONE


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
    records are judged once more, for which a file is read again. The ten records that are least likely
    clean go to standard output: as a table on a terminal, otherwise as CSV. --suspects writes all suspects to a file.
    """
    with exit_on_error(running.debug, _explain_resuming(checkpoints.checkpoint)):
        from redescend.cli.console import announce_compilation, announce_start, log_plan

        announce_start(running.quiet)
        from redescend.cli.schema import read_schema_file
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
        if run.reads_in_time:
            log(
                "The records are in time order, so the final model is that of the last ones; for a model of all "
                "records, use --shuffle."
            )
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
            verb = "is" if shown == 1 else "are"
            log(f"The {format_count(shown)} that {verb} least likely clean ({which}):")
    model = run.model
    important = [one.far_out for one in run.summary.least if one.far_out is not None]
    important += [one.column for one in rank_features(model)] if isinstance(model, StreamModel) else []
    print_suspects(run.summary.least, model.schema, important, config.id)


def _explain_resuming(checkpoint: Path | None) -> str:
    if checkpoint is None:
        return " before the end. With --checkpoint FOLDER, a run can be resumed"
    return f"; run the same command with --resume to continue from the checkpoint in '{checkpoint}'"
