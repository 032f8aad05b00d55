"""A model and the rounds of anyone's stream, from one call."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, get_args

from redescend import losses, steps, transforms
from redescend.errors import ParameterError
from redescend.parameters import AT_LEAST_ONE, bad_parameter, check
from redescend.sources import Batch, Kind, Source, open_source
from redescend.sources.formats import Follow
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.io.checkpoints import Checkpoints, check_content, compare
from redescend.streaming.io.collisions import FOLDER, check_apart, check_outside, files_of
from redescend.streaming.io.writers import QUARANTINE, ROUNDS, Books
from redescend.streaming.keyed import ModelStore
from redescend.streaming.keyed.keys import check_keys
from redescend.streaming.model import StreamModel
from redescend.streaming.rounds import Rounds
from redescend.streaming.run import OnBad, Pass
from redescend.streaming.summary.summary import Summary

StrPath = str | os.PathLike[str]

FIRST = 100
"""Records by which a source is known again."""


def fit_stream(
    source: Any,
    target: str,
    *,
    features: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    task: str = "auto",
    labels: Sequence[Any] | None = None,
    order: int = 1,
    loss: losses.LinearLoss | None = None,
    transform: transforms.Transform | None = None,
    step: steps.Step | None = None,
    on_bad: OnBad = "quarantine",
    quarantine: StrPath | None = None,
    rounds: StrPath | None = None,
    checkpoint: StrPath | None = None,
    every: int = 1_000_000,
    resume: bool = False,
    format: str | None = None,
    header: bool = True,
    by: str | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    watch: Callable[[Pass, Rounds], object] | None = None,
    follow: Follow | None = None,
) -> tuple[StreamModel | ModelStore, Pass]:
    r"""A model that learns from a stream in one pass, and the rounds of that pass.

    Nothing is learned until the rounds are asked for: iterate over them, over their ``batches()``, or ``run()`` all.
    What is learned from a record, and what is written about it, depends on the records before it and on nothing else.

    Parameters
    ----------
    source : path, list of paths, binary file, table or data frame
        CSV, TSV, JSON lines, Parquet or Arrow IPC, compressed or not; a file, a folder, a pattern, or ``"-"`` for
        standard input; or anything that Arrow can read from memory. It is read in batches, never whole.
    target : str
        The column to predict.
    features : sequence of str or None
        The columns to predict it from; None: all others that are of use.
    ignore : sequence of str
        Columns to leave out.
    task : {'auto', 'regression', 'classification'}
    labels : sequence or None
        What the target can be in a classification; None: what it is in the first 1 000 records.
    order : {1, 2}
        Of the self-tuning learner: 2 also learns how features go together, and takes longer.
    loss, transform, step : optional
        As of `redescend.StreamModel`.
    on_bad : {'quarantine', 'skip', 'fail'}
        What to do with a record that cannot be used: set it aside with its row and the reason, only count it, or stop
        with an error that says which and why.
    quarantine : path-like or None
        Where bad records go, as JSON lines. None: the first of them stay in memory, as ``Pass.bad``.
    rounds : path-like or None
        Where the rounds go, as a Parquet file: the row, the target, the prediction before it was learned from, the loss
        and the weight.
    checkpoint : path-like or None
        A folder to write checkpoints to, which this run has to itself.
    every : int
        A checkpoint is written after so many records.
    resume : bool
        Go on from the checkpoint in the folder, if there is one. Model, rounds, quarantine and summary will be those of
        a run that was never interrupted, bit for bit.
    format : str or None
        'csv', 'tsv', 'jsonl', 'parquet' or 'arrow', where the name does not say.
    header : bool
        Whether the first line of a CSV or TSV file names the columns.
    by : str or None
        A column of keys, such as sensors or shops: there is a model for each. Keys are texts, whatever they look like.
    jobs : int or None
        Threads that the models of keys learn on; None: one.
    cluster : str or None
        Address of a Dask scheduler, such as ``tcp://host:8786``, on whose workers the models of keys learn. What is
        learned is the same.
    watch : callable or None
        Called with the pass and the rounds of each batch.
    follow : callable or None
        For a file of text that grows: called, in another thread, when its end is reached; it waits, and returns whether
        to look again. The pass then never finishes: it pauses, and can be resumed when the file has grown.

    Returns
    -------
    model : StreamModel, or ModelStore if there are keys
        It learns as the rounds are played.
    rounds : Pass
        The rounds, and what was found in them.

    Raises
    ------
    DataError
        The source cannot be read; or, as a BadRecordError, a record cannot be used and `on_bad` is 'fail'.
    ParameterError
        A setting is not one of those above, or not that of the run to resume.

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
    if on_bad not in get_args(OnBad):
        raise bad_parameter("fit_stream", "on_bad", "'quarantine', 'skip' or 'fail'", on_bad)
    if quarantine is not None and on_bad != "quarantine":
        raise ParameterError(f"No record is quarantined with on_bad='{on_bad}'; leave 'quarantine' out.")
    if resume and checkpoint is None:
        raise ParameterError("To resume a run, name the folder of its checkpoint.")
    if by is None and (jobs, cluster) != (None, None):
        raise ParameterError("One model learns on one core; name the column of keys to learn many in parallel.")
    every = check("fit_stream", "every", every, AT_LEAST_ONE)
    if jobs is not None:
        jobs = check("fit_stream", "jobs", jobs, AT_LEAST_ONE)
    asked = {ROUNDS: rounds, QUARANTINE: quarantine}
    targets = {name: Path(path) for name, path in asked.items() if path is not None}
    settings = {
        "target": target,
        "features": None if features is None else list(features),
        "ignore": list(ignore),
        "task": task,
        "labels": None if labels is None else list(labels),
        "order": order,
        "loss": loss,
        "transform": transform,
        "step": step,
        "on_bad": on_bad,
        "format": format,
        "header": header,
        "by": by,
    } | {name: "a file" if name in targets else None for name in asked}
    written = {f"the {name}": path for name, path in targets.items()}
    check_apart(written, checkpoint=checkpoint)
    check_outside(written | ({} if checkpoint is None else {FOLDER: Path(checkpoint)}), source)

    with ExitStack() as stack:
        checkpoints = before = None
        if checkpoint is not None:
            checkpoints = stack.enter_context(Checkpoints(Path(checkpoint), resume))
            before = checkpoints.content
        if before is None:
            stream = open_source(source, format=format, header=header, kinds={} if by is None else {by: Kind.TEXT})
            schema = Schema.decide(stream.sample, stream.kinds, target, features, ignore, task, labels, by)
            model = _fresh(schema, stream.sample, order=order, loss=loss, transform=transform, step=step)
            # The last line of a file that grows may not be whole yet, and would not be known again.
            known = _beginning(stream, FIRST if follow is None else min(FIRST, len(stream.sample.rows) - 1))
        else:
            check_content(before, Path(checkpoint or ""))
            compare(settings, before["settings"], Path(checkpoint or ""))
            if follow is not None and before["ended"]:
                raise ParameterError(
                    f"The run in '{checkpoint}' has come to its end, and a run that has cannot be followed; name "
                    "another folder."
                )
            kinds = {name: Kind(kind) for name, kind in before["kinds"].items()}
            stream = open_source(source, format=format, header=header, kinds=kinds)
            model, known = before["model"], before["beginning"]
            if (
                _beginning(stream, known["records"]) != known
                or files_of(stream, len(before["files"])) != before["files"]
            ):
                raise ParameterError(
                    f"'{stream.name}' does not begin with the records, or the files, that the run in '{checkpoint}' "
                    "has read; resume it with the same source, or name an empty folder."
                )
        check_apart(written, files_of(stream))
        # The ledgers of a finished run are gone.
        to_write = {} if before is not None and before["finished"] else targets
        folder = None if checkpoints is None else checkpoints.folder
        books = stack.enter_context(Books(folder, to_write, None if before is None else before["books"]))
        if isinstance(model, ModelStore) and not (before is not None and before["ended"]):
            model.run_on(jobs, cluster)
            stack.callback(model.settle)
        passing = Pass(
            model,
            stream,
            Summary(model.schema, transform),
            books,
            on_bad=on_bad,
            every=every,
            checkpoints=checkpoints,
            request={"settings": settings, "beginning": known},
            watch=watch,
            follow=follow,
        )
        stack.pop_all()
    return model, passing


def _fresh(schema: Schema, sample: Batch, **settings: Any) -> StreamModel | ModelStore:
    if schema.by is None:
        return StreamModel(schema, **settings)
    check_keys(schema.by, sample.table.column(schema.by))
    return ModelStore(schema, **settings)


def _beginning(source: Source, most: int = FIRST) -> dict[str, Any]:
    """What tells one source from another: its first records, as they came."""
    count = min(most, len(source.sample.rows))
    digest = hashlib.sha256()
    for index in range(count):
        digest.update(source.sample.raw(index) + b"\n")
    return {"columns": source.columns, "records": count, "digest": digest.hexdigest()}
