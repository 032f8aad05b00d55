"""Work done ahead of the one who asks for it: in threads, in order, and never more of it than was agreed."""

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
"""Seconds after which a thread looks whether it is still wanted."""

MOST_THREADS = 4
"""How many threads work where nothing else is said: every one of them has blocks in memory, and a machine with many
processors is to need no more of it than one with few."""


class Ahead(Generic[T]):
    """The results of jobs, in their order, worked on before they are asked for.

    One thread goes through the jobs, others do them. An error comes out where its result would have.

    Parameters
    ----------
    jobs
        What is to be done; its items are made in a thread of their own.
    threads
        How many jobs are done at a time; as many as there are processors, up to four, if None.
    depth
        How many results may wait; as many as there are threads if None.

    Examples
    --------
    >>> list(Ahead((lambda i=i: i * i) for i in range(5)).results())
    [0, 1, 4, 9, 16]
    """

    def __init__(self, jobs: Iterator[Job[T]], threads: int | None = None, depth: int | None = None) -> None:
        workers = threads or min(os.cpu_count() or 1, MOST_THREADS)
        self._jobs = jobs
        self._results: queue.Queue[Future[T] | None] = queue.Queue(depth or workers)
        self._unwanted = threading.Event()
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="reading")
        # A daemon: it may be waiting for a pipe that nobody writes to when the program is to end.
        self._feeder = threading.Thread(target=self._feed, name="reading-ahead", daemon=True)

    def results(self) -> Generator[T, None, None]:
        """Begin; closing the generator ends all work."""
        self._feeder.start()
        try:
            while (result := self._results.get()) is not None:
                yield result.result()
        finally:
            self._unwanted.set()
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
        while not self._unwanted.is_set():
            try:
                self._results.put(result, timeout=PATIENCE)
            except queue.Full:
                continue
            return True
        return False
