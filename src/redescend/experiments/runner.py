"""Compute tasks on this machine's cores or on a Dask cluster, and store each one as it finishes.

A task carries its own seed, so its rows have the same bits wherever and whenever it is computed.
"""

from __future__ import annotations

import itertools
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from typing import Any, NamedTuple

import pyarrow as pa

from redescend.cluster import connect_cluster, format_exception
from redescend.errors import ParameterError, RedescendError, needs_extra
from redescend.experiments.store import Store
from redescend.experiments.tasks import Task
from redescend.parameters import AT_LEAST_ONE, check

with needs_extra("Experiments need joblib and threadpoolctl", "experiments"):
    import joblib
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
