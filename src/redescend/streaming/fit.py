"""`fit_stream`: fit a model to any stream with one call."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from redescend import losses, steps, transforms
from redescend.errors import DataError, ParameterError, suggest
from redescend.parameters import Order
from redescend.sources import Kind, Source, open_source
from redescend.sources.formats import Follow
from redescend.streaming.config import FitConfig, Outputs
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.encoding.survey import Survey, is_in_time, is_sorted, survey_source
from redescend.streaming.io.checkpoints import Checkpoint, CheckpointFolder
from redescend.streaming.io.collisions import check_outputs
from redescend.streaming.io.writers import RunWriters
from redescend.streaming.keyed import ModelStore
from redescend.streaming.model import StreamModel
from redescend.streaming.run import Run, Watch

StrPath = str | os.PathLike[str]

PreparedRun = tuple[StreamModel | ModelStore, Source, dict[str, Any]]
"""The model of a run, its source, and a fingerprint of its first records."""

RunPlan = tuple[StreamModel | ModelStore, Source, int]
"""The model of a run, its source, shuffled if need be, and the number of passes."""

READING = ("format", "header", "decimal", "encoding")  # settings of `open_source`
RECOGNIZED_BY = 100  # first records by which a source is recognized when a run is resumed


def fit_stream(
    source: Any,
    target: str,
    *,
    features: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    task: str = "auto",
    labels: Sequence[Any] | None = None,
    order: Order = "auto",
    loss: losses.LinearLoss | None = None,
    transform: transforms.Transform | None = None,
    step: steps.Step | None = None,
    linear: bool | None = None,
    on_bad: str = "quarantine",
    quarantine: StrPath | None = None,
    rounds: StrPath | None = None,
    checkpoint: StrPath | None = None,
    every: int = 1_000_000,
    resume: bool = False,
    format: str | None = None,
    header: bool = True,
    by: str | None = None,
    lags: Sequence[int] = (),
    lag_columns: Sequence[str] = (),
    jobs: int | None = None,
    cluster: str | None = None,
    passes: int | None = 1,
    shuffle: bool | None = False,
    final_look: bool = False,
    watch: Watch | None = None,
    follow: Follow | None = None,
) -> tuple[StreamModel | ModelStore, Run]:
    r"""Fit a model to a stream in one pass.

    Nothing is learned until rounds are requested: iterate over them, over their ``batches()``, or ``run()`` them all.
    Every record is predicted before it is learned from, and the results do not depend on the sizes of batches.

    Parameters
    ----------
    source : path, list of paths, binary file, table or data frame
        CSV, TSV, JSON lines, Parquet or Arrow IPC, compressed or not; a file, a folder, a glob pattern, or ``"-"`` for
        standard input; or any table that Arrow can read from memory. It is read in batches.
    target : str
        The column to predict.
    features : sequence of str or None
        The columns to predict it from. None: all others, except identifiers and constant columns.
    ignore : sequence of str
        Columns to leave out.
    task : {'auto', 'regression', 'classification'}
        'auto': inferred from the first 1,000 records.
    labels : sequence or None
        All labels of a classification; records with others are rejected. None: those of a file; of a stream those of
        the first 1,000 records, and later ones are added when they appear.
    order : {'auto', 1, 2}
        Order of the self-tuning learner; 2 also learns correlations of features, and is slower. 'auto': 2 with trees
        or for at most 150 encoded features, otherwise 1.
    loss : str, LinearLoss or None
        None: squared for regression, logistic for classification.
    transform : Transform or None
        A fixed gate instead of the self-tuning one, such as ``Huber(1.0)``.
    step : Step or None
        The step size that goes with a transform.
    linear : bool or None
        Whether the model is linear. Otherwise trees are added, which are slower, but more accurate on nonlinear data.
        None: add trees if the loss is squared or logistic without penalty, and there are neither a transform nor keys,
        and at most 500 encoded features.
    on_bad : {'quarantine', 'skip', 'fail'}
        Store a record that cannot be used, with its row and the reason; only count it; or raise a BadRecordError.
    quarantine : path-like or None
        A JSON lines file for rejected records. None: the first of them stay in memory, as ``Run.bad``.
    rounds : path-like or None
        A Parquet file for the rounds: row, target, prediction, loss and weight of every record.
    checkpoint : path-like or None
        A folder for checkpoints, used by this run alone.
    every : int
        Records between two checkpoints.
    resume : bool
        Resume from the last checkpoint, if any. Output is identical to an uninterrupted run.
    format : {'csv', 'tsv', 'jsonl', 'parquet', 'arrow'} or None
        None: inferred from the name and the content.
    header : bool
        Whether the first line of a CSV or TSV file contains the column names.
    by : str or None
        A column of keys, such as sensors or shops: fit one model per key. Keys are treated as text.
    lags : sequence of int
        Numbers of records to look back: ``[1, 24]`` adds the targets of the previous record and of 24 records ago as
        features. For time series; with keys, only records of the same key count.
    lag_columns : sequence of str
        Columns of numbers or booleans to look back at as well.
    jobs : int or None
        Threads for the models of keys. None: one.
    cluster : str or None
        Address of a Dask scheduler, such as ``tcp://host:8786``, to fit the models of keys on.
    passes : int or None
        Number of passes over the records. None: 2, or 1 for a pipe or for records in time order.
    shuffle : bool or None
        Whether to read the records in a random but reproducible order; they are copied to temporary files for that.
        None: if they are sorted by the target.
    final_look : bool
        Whether to judge every record at the end by the final model, see ``Run.final``; a source that can be read again
        is read once more for it. With several passes, a table of up to 8 million encoded numbers whose order carries no
        information is then learned from again, from scratch and in an order that depends on its contents alone.
    watch : callable or None
        Called with the run and the rounds of each batch.
    follow : callable or None
        For a text file that grows: called at its end, in another thread; it waits, and returns whether to read on. Such
        a run never finishes: it pauses, and can be resumed when the file has grown.

    Returns
    -------
    model : StreamModel, or ModelStore if there are keys
        It learns while the rounds are played.
    rounds : Run
        The rounds, their counts and their summary.

    Examples
    --------
    >>> import io
    >>> text = "age,price\n" + "".join(f"{age},{100 - 3 * age}\n" for age in range(30)) + "1,a lot\n"
    >>> model, rounds = fit_stream(io.BytesIO(text.encode()), "price")
    >>> rounds.run().counts
    Counts(records=31, learned=30, quarantined=1, skipped=0)
    >>> rounds.bad[0].row, rounds.bad[0].reason
    (31, "column 'price': 'a lot' is not a number")
    """
    # All parameters with the name of a setting; those of files and lags are converted.
    settings = {name: value for name, value in locals().items() if name in FitConfig.__dataclass_fields__}
    outputs = Outputs(rounds=_path(rounds), quarantine=_path(quarantine))
    config = FitConfig(**settings | {"outputs": outputs, "checkpoint": _path(checkpoint), "lags": list(lags)})
    run = start_run(source, config, watch=watch, follow=follow)
    return run.model, run


def start_run(source: Any, config: FitConfig, *, watch: Watch | None = None, follow: Follow | None = None) -> Run:
    """Check the settings, the files and the source of a run, and prepare it."""
    check_outputs(config.outputs.by_content(), source, config.checkpoint)
    if config.outputs.report is not None:
        import_module("redescend.streaming.report.page")  # a missing extra is reported now
    with ExitStack() as stack:
        folder = last = None
        if config.checkpoint is not None:
            folder = stack.enter_context(closing(CheckpointFolder(config.checkpoint, config.resume)))
            last = folder.last
        start = _start_fresh(source, config, follow) if last is None else _resume(source, config, last, follow)
        model = start[0]
        passes = _choose_order(config, model, start[1], follow)
        if last is not None and last.finished:
            writers = RunWriters(Outputs(), config.checkpoint, last.logs)  # the files were written
        else:
            state = None if last is None else last.logs
            logs = [] if follow is not None else _choose_logs(config, start[1], passes)
            writers = RunWriters(config.outputs, config.checkpoint, state, logs)
        stack.callback(writers.close)
        if isinstance(model, ModelStore) and not (last is not None and last.ended):
            model.run_on(config.jobs, config.cluster)
            stack.callback(model.settle)
        run = Run(config, *start, writers, folder, watch=watch, follow=follow, passes=passes)
        stack.pop_all()
    return run


def plan_run(source: Any, config: FitConfig) -> RunPlan:
    """Check a run as `start_run` does, and return its new model, its source and its passes; write nothing."""
    check_outputs(config.outputs.by_content(), source, config.checkpoint)
    model, opened, _ = _start_fresh(source, config, None)
    return model, opened, _choose_order(config, model, opened, None)


def _choose_order(config: FitConfig, model: StreamModel | ModelStore, source: Source, follow: Follow | None) -> int:
    """Return the number of passes, and shuffle the source if requested or if it is sorted by the target.

    The defaults are two passes, and shuffling of sorted sources only; one pass in order for pipes and time series.
    """
    single, schema = isinstance(model, StreamModel), model.schema
    passes, shuffled = config.passes, config.shuffle
    if follow is not None or None not in (passes, shuffled) or config.lags:
        free = False
    else:
        table = survey_source(source, schema.target, labels=False).table
        free = single and source.can_reread and source.format != "journal" and not is_in_time(table)
        if shuffled is None:
            shuffled = free and is_sorted(table, schema.target, schema.classifies)
    if passes is None:
        passes = 2 if free and config.transform is None else 1
    if passes > 1 and not (single and source.can_reread):
        reason = f"{source.name} can only be read once" if single else "there is one model per key"
        raise ParameterError(f"'passes' cannot be {passes}, because {reason}.")
    if shuffled:
        source.shuffle()
    return passes


def _choose_logs(config: FitConfig, source: Source, passes: int) -> list[str]:
    """The logs that further passes and the final look need."""
    looks = config.final_look and config.transform is None
    if looks and not source.can_reread:
        return ["rounds", "values"]
    if looks and config.by is not None:
        return ["rounds"]
    return ["final"] if looks or passes > 1 else []


def _start_fresh(source: Any, config: FitConfig, follow: Follow | None) -> PreparedRun:
    kinds = {name: Kind(kind) for name, kind in config.kinds} | ({} if config.by is None else {config.by: Kind.TEXT})
    opened = open_source(source, **config.select(*READING), kinds=kinds)
    if lacking := [name for name, _ in config.kinds if name not in opened.kinds]:
        raise DataError(
            f"There is no column {lacking[0]!r}, which the schema has; {suggest(opened.columns, lacking[0])}"
        )
    survey = Survey(opened.sample) if follow is not None else survey_source(opened, config.target)
    schema = _choose_schema(opened, config, survey)
    opened.read_as_text(name for name in config.id if name not in schema.columns)
    if config.by is not None:
        keys = opened.sample.table.column(config.by)
        if len(keys) and keys.null_count == len(keys):
            raise DataError(f"The column '{config.by}' has no key in the first {len(keys):,} records; name another.")
    make = StreamModel if config.by is None else ModelStore
    if opened.declared is not None and config.linear is None:
        config = replace(config, linear=True)  # as the server that wrote the journal has learned from it
    model = make(schema, **config.model_settings(schema))
    # The last line of a growing file may be incomplete, and differ when the run is resumed.
    most = RECOGNIZED_BY if follow is None else min(RECOGNIZED_BY, len(opened.sample.rows) - 1)
    return model, opened, _describe_beginning(opened, most)


def _choose_schema(source: Source, config: FitConfig, survey: Survey) -> Schema:
    """The schema that a journal declares, unless the settings request another; otherwise the inferred one."""
    free = config.features is None and not config.ignore and config.task == "auto"
    free = free and config.labels is None and not config.lags
    if source.declared is not None and free:
        schema = Schema.from_dict(source.declared["schema"])
        if (schema.target, schema.by) == (config.target, config.by):
            return schema
    settings = config.select("target", "features", "ignore", "task", "labels", "by", "lags", "lag_columns")
    known: dict[str, Any] = {"values": survey.labels, "spread": survey.spread, "stream": survey.stream}
    known["grows"] = survey.stream and config.transform is None
    schema = Schema.infer(survey.first, source.kinds, **settings, **known, others=source.others)
    units = {name: unit for name, unit in source.units.items() if name in schema.columns}
    notations = {name: form.name for name, form in source.forms.items() if name in schema.columns}
    return replace(schema, units=units, notations=notations)


def _resume(source: Any, config: FitConfig, last: Checkpoint, follow: Follow | None) -> PreparedRun:
    if follow is not None and last.ended:
        raise ParameterError(
            f"The run in '{config.checkpoint}' has reached its end and cannot follow a file; name another folder."
        )
    config.check_resumable(last.config)
    kinds = {name: Kind(kind) for name, kind in last.kinds.items()}
    known = last.beginning
    # A followed file may have been rotated; it is recognized by its mark, where reading stopped.
    marked = follow is not None and last.mark is not None
    columns = known["columns"] if marked else None
    forms = last.model.schema.forms
    opened = open_source(source, **config.select(*READING), kinds=kinds, columns=columns, forms=forms)
    opened.read_as_text(name for name in config.id if name not in last.model.schema.columns)
    if marked:
        return last.model, opened, known
    if _describe_beginning(opened, known["records"]) != known or opened.files[: len(last.files)] != last.files:
        raise ParameterError(
            f"'{opened.name}' does not begin with the records, or the files, that the run in '{config.checkpoint}' has "
            "read; resume it with the same source, or name an empty folder."
        )
    return last.model, opened, known


def _describe_beginning(source: Source, most: int) -> dict[str, Any]:
    """Describe the first records by their columns, their number and a digest."""
    count = min(most, len(source.sample.rows))
    content = b"".join(source.sample.raw(index) + b"\n" for index in range(count))
    return {"columns": source.columns, "records": count, "digest": hashlib.sha256(content).hexdigest()}


def _path(path: StrPath | None) -> Path | None:
    return None if path is None else Path(path)
