"""Compute tasks on this machine's cores or on a Dask cluster, and store each one as it finishes.

A task carries its own seed, so its rows have the same bits wherever and whenever it is computed. Finished tasks are
Parquet files in a folder, one each, never incomplete. A file holds its task's experiment, settings, key and seconds,
and a digest of these and of its rows. A file that does not match its digest or its task is moved to another folder and
never read as a result.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import multiprocessing.resource_tracker
import os
import re
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as parquet

from redescend.errors import DataError, ParameterError, RedescendError, needs_extra
from redescend.experiments.results import SCHEMA, Task
from redescend.files import PART, replace_file
from redescend.parameters import AT_LEAST_ONE, check
from redescend.resources import connect_cluster, format_exception

_NAME = re.compile(r".+-[0-9a-f]{24}\.parquet")
# Another process may be writing to the same folder; its unfinished files are younger than this.
_STALE_SECONDS = 60.0


class Store:
    """The finished tasks in a folder.

    The folder is created if it does not exist. Tasks are in `folder/tasks`; rejected files are moved to
    `folder/set-aside`, each with a sentence in `quarantined`.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.quarantined: list[str] = []
        self._tasks = self.folder / "tasks"
        self._seconds: dict[str, float] = {}
        try:
            self._tasks.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self._tasks).close()
        except OSError as error:
            blocking = next((place for place in (self._tasks, *self._tasks.parents) if os.path.isfile(place)), None)
            if blocking is not None:
                raise ParameterError(f"Results need a folder, but '{blocking}' is a file.") from None
            raise ParameterError(f"Results cannot be written to '{self.folder}': {error.strerror}.") from None
        self._clean_up()

    def load(self, task: Task) -> pa.Table | None:
        """Rows of a finished task, or None."""
        path = self._task_path(task)
        if not os.path.lexists(path):
            return None
        try:
            rows, self._seconds[task.key] = _read_task(path, task)
        except DataError as reason:
            self._quarantine(path, str(reason))
            return None
        return rows

    def seconds(self, task: Task) -> float | None:
        """Seconds that a finished task took, or None."""
        if task.key not in self._seconds:
            self.load(task)
        return self._seconds.get(task.key)

    def save(self, task: Task, table: pa.Table, seconds: float) -> None:
        """Store the rows of a finished task."""
        if not isinstance(table, pa.Table) or not table.schema.equals(SCHEMA):
            what = table.schema.names if isinstance(table, pa.Table) else table
            raise ParameterError(
                f"The rows of {task} must be a table with the columns of SCHEMA. Got {what!r} instead."
            )
        metadata = _describe_task(task) | {"seconds": repr(float(seconds))}
        metadata["digest"] = _digest_task(metadata, table)
        with replace_file(self._task_path(task)) as file:
            parquet.write_table(table.replace_schema_metadata(metadata), file, compression="zstd")
        self._seconds[task.key] = float(seconds)

    def missing(self, tasks: Iterable[Task]) -> list[Task]:
        """The tasks that are not finished, without duplicates, in the given order."""
        return [task for task in dict.fromkeys(tasks) if self.load(task) is None]

    def read_rows(self, tasks: Iterable[Task]) -> pa.Table:
        """The rows of the finished tasks, in the given order."""
        parts = [rows for rows in map(self.load, tasks) if rows is not None]
        return pa.concat_tables(parts).combine_chunks() if parts else SCHEMA.empty_table()

    def export(self, tasks: Iterable[Task]) -> list[Path]:
        """Write the tidy table as `results.parquet` and `results.csv`."""
        rows = self.read_rows(tasks)
        paths = [self.folder / "results.parquet", self.folder / "results.csv"]
        with replace_file(paths[0]) as file:
            parquet.write_table(rows, file, compression="zstd")
        with replace_file(paths[1]) as file:
            csv.write_csv(rows, file)
        return paths

    def _task_path(self, task: Task) -> Path:
        return self._tasks / f"{task.experiment}-{task.key}.parquet"

    def _clean_up(self) -> None:
        for part in [*self.folder.glob(f".*{PART}"), *self._tasks.glob(f".*{PART}")]:
            if part.is_file() and time.time() - part.stat().st_mtime > _STALE_SECONDS:
                part.unlink(missing_ok=True)
        for path in sorted(self._tasks.iterdir()):
            if not _NAME.fullmatch(path.name) and path.suffix != PART:
                self._quarantine(path, "it is not the file of a task")

    def _quarantine(self, path: Path, reason: str) -> None:
        aside = self.folder / "set-aside"
        aside.mkdir(exist_ok=True)
        target, number = aside / path.name, 1
        while os.path.lexists(target):
            number += 1
            target = aside / f"{path.stem}.{number}{path.suffix}"
        path.rename(target)
        self.quarantined.append(f"'{path}' was moved to '{target}' because {reason}.")


def _read_task(path: Path, task: Task) -> tuple[pa.Table, float]:
    # Reading something else, such as a pipe, might never end.
    if not path.is_file():
        raise DataError("it is not a plain file")
    try:
        stored = parquet.ParquetFile(pa.BufferReader(path.read_bytes())).read(use_threads=False)
        metadata = {name.decode(): value.decode() for name, value in (stored.schema.metadata or {}).items()}
    except Exception:  # a damaged file fails in more ways than the reader documents
        raise DataError("it cannot be read as Parquet") from None
    if not stored.schema.equals(SCHEMA):
        raise DataError("its columns are not those of a task")
    digest = metadata.pop("digest", None)
    if any(metadata.get(name) != value for name, value in _describe_task(task).items()):
        raise DataError(f"it does not hold {task}")
    if digest is None or digest != _digest_task(metadata, stored):
        raise DataError("its digest does not match its contents")
    return stored.replace_schema_metadata(None), float(metadata["seconds"])


def _describe_task(task: Task) -> dict[str, str]:
    return {"experiment": task.experiment, "settings": json.dumps(dict(task.settings)), "key": task.key}


def _digest_task(metadata: dict[str, str], table: pa.Table) -> str:
    """A digest of the metadata and the values, since a file cannot hold a digest of itself."""
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name, column in zip(table.schema.names, table.columns, strict=True):
        text = pa.types.is_string(column.type)
        content = json.dumps(column.to_pylist()).encode() if text else column.to_numpy().tobytes()
        digest.update(f"{name} {len(content)} ".encode() + content)
    return digest.hexdigest()


with needs_extra("Experiments need joblib and threadpoolctl", "experiments"):
    import joblib
    from joblib.externals import loky
    from threadpoolctl import threadpool_limits

Compute = Callable[[Task], pa.Table]
Done = Callable[[Task, float], object]


class TaskError(RedescendError, RuntimeError):
    """A task failed; finished tasks are stored."""


class TaskOutcome(NamedTuple):
    """The rows of the task at a place in the list, or the error."""

    place: int
    table: pa.Table | None
    seconds: float = 0.0
    error: str = ""
    details: str = ""


def run(
    tasks: Iterable[Task],
    store: Store,
    compute: Compute,
    jobs: int | None = None,
    cluster: str | None = None,
    done: Done | None = None,
) -> int:
    """Compute the tasks that the store does not have, and return their number.

    After Ctrl-C or an error the finished tasks are in the store, and the same call continues from there.

    Other processes must be able to import `compute`. Without `jobs` there is one process per core; with 1 this process
    computes. `cluster` is the address of a Dask scheduler, such as `tcp://host:8786`, and replaces `jobs`. `done` is
    called with each computed task and its seconds, after it is stored.
    """
    if jobs is not None:
        jobs = check("run", "jobs", jobs, AT_LEAST_ONE)
    missing = store.missing(tasks)
    if not missing:
        return 0
    failures: list[TaskOutcome] = []
    # Consumed as tasks finish: after a failure no new task is started, and running ones are still stored.
    work = itertools.takewhile(lambda _: not failures, enumerate(missing))
    outcomes = _run_on_this_machine(work, compute, jobs) if cluster is None else _run_on_cluster(work, compute, cluster)
    with threadpool_limits(1), closing(outcomes):
        for outcome in outcomes:
            if outcome.table is None:
                failures.append(outcome)
                continue
            store.save(missing[outcome.place], outcome.table, outcome.seconds)
            if done is not None:
                done(missing[outcome.place], outcome.seconds)
    if failures:
        first = min(failures)
        error = TaskError(f"{missing[first.place]} failed: {first.error}")
        if first.details:
            error.add_note(first.details)
        raise error
    return len(missing)


def _compute_task(compute: Compute, place: int, task: Task) -> TaskOutcome:
    """Compute one task in a worker. Errors are sent as text, because not every exception can be unpickled."""
    # Sums that are split over threads round differently. The limit stays, because another thread of a Dask worker may
    # be in the middle of its task.
    threadpool_limits(1)
    started = time.perf_counter()
    try:
        table = compute(task)
    except Exception as error:
        return TaskOutcome(place, None, error=format_exception(error), details=traceback.format_exc())
    return TaskOutcome(place, table, time.perf_counter() - started)


def _run_on_this_machine(
    work: Iterator[tuple[int, Task]], compute: Compute, jobs: int | None
) -> Generator[TaskOutcome, None, None]:
    # In batches, finished tasks would not be stored until their batch is finished.
    parallel = joblib.Parallel(
        n_jobs=-1 if jobs is None else jobs, backend="loky", return_as="generator_unordered", batch_size=1
    )
    with _children_deaf_to_interrupts():
        outcomes = parallel(joblib.delayed(_compute_task)(compute, place, task) for place, task in work)
    try:
        # Not `yield from`, which would close the outcomes before the warning below is silenced.
        for outcome in outcomes:  # noqa: UP028
            yield outcome
    except BrokenProcessPool:
        raise TaskError(
            "A worker process was killed, perhaps for lack of memory. Finished tasks are stored; try again with fewer "
            "jobs."
        ) from None
    finally:
        with warnings.catch_warnings():
            # An interruption leaves results that are never fetched.
            warnings.simplefilter("ignore", UserWarning)
            outcomes.close()


@contextmanager
def _children_deaf_to_interrupts() -> Generator[None, None, None]:
    """Ctrl-C reaches the workers too, which would print tracebacks. This process ends them when it is interrupted."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # joblib starts these processes as well. Starting them would end the mask, so they are started before it.
    multiprocessing.resource_tracker.ensure_running()
    loky.backend.resource_tracker.ensure_running()
    # Processes started here inherit the mask for good; this process hears of an interrupt afterwards.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run_on_cluster(
    work: Iterator[tuple[int, Task]], compute: Compute, address: str
) -> Generator[TaskOutcome, None, None]:
    # Not joblib's own Dask backend: it waits forever for a task that the cluster gives up (its workers died or cannot
    # import it), and with a single worker thread it computes in this process instead of on the cluster.
    with connect_cluster(address) as client:
        from dask.distributed import as_completed

        places: dict[Any, int] = {}
        finished = as_completed(loop=client.loop)

        def begin() -> None:
            # Twice as many as can run, so that no worker waits; counted every time, because workers come and go.
            free = 2 * max(1, sum(client.nthreads().values())) - len(places)
            for place, task in itertools.islice(work, max(0, free)):
                future = client.submit(_compute_task, compute, place, task, pure=False, priority=-place)
                places[future] = place
                finished.add(future)

        try:
            begin()
            for future in finished:
                place = places.pop(future)
                yield _fetch_outcome(future, place)
                begin()
        except OSError:
            raise ParameterError(
                f"The Dask cluster at '{address}' no longer answers; finished tasks are stored."
            ) from None


def _fetch_outcome(future: Any, place: int) -> TaskOutcome:
    if future.status == "cancelled":
        return TaskOutcome(place, None, error="the cluster cancelled it")
    error = future.exception()
    return TaskOutcome(place, None, error=format_exception(error)) if error else future.result()
