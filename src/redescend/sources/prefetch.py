"""Run jobs ahead in threads: results in order, and a bounded number of them."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")
Job = Callable[[], T]

PATIENCE = 0.1
"""Seconds between checks whether a thread should stop."""

MOST_THREADS = 4
"""The default limit of threads: each has blocks in memory, which should not grow with the number of processors."""


class Prefetch(Generic[T]):
    """Run jobs in threads and return their results in order; an error is raised in the place of its result.

    `threads` defaults to the number of processors, at most four; `depth`, the number of results that may wait, to the
    number of threads.

    Examples
    --------
    >>> list(Prefetch((lambda i=i: i * i) for i in range(5)).results())
    [0, 1, 4, 9, 16]
    """

    def __init__(self, jobs: Iterator[Job[T]], threads: int | None = None, depth: int | None = None) -> None:
        workers = threads or min(os.cpu_count() or 1, MOST_THREADS)
        self._jobs = jobs
        self._results: queue.Queue[Future[T] | None] = queue.Queue(depth or workers)
        self._stopped = threading.Event()
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="reading")
        # A daemon: it may be waiting for a pipe when the program ends.
        self._feeder = threading.Thread(target=self._feed, name="reading-ahead", daemon=True)

    def results(self) -> Generator[T, None, None]:
        """Start; closing the generator stops all work."""
        self._feeder.start()
        try:
            while (result := self._results.get()) is not None:
                yield result.result()
        finally:
            self._stopped.set()
            while not self._results.empty():
                self._results.get_nowait()
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._feeder.join(PATIENCE)

    def _feed(self) -> None:
        try:
            for job in self._jobs:
                if not self._put(self._pool.submit(job)):
                    return
        except BaseException as error:
            failed: Future[T] = Future()
            failed.set_exception(error)
            self._put(failed)
        finally:
            close = getattr(self._jobs, "close", None)
            if close is not None:
                close()
        self._put(None)

    def _put(self, result: Future[T] | None) -> bool:
        while not self._stopped.is_set():
            try:
                self._results.put(result, timeout=PATIENCE)
            except queue.Full:
                continue
            return True
        return False
