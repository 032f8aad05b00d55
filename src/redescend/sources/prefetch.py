"""Run jobs ahead in threads: results in order, and a bounded number of them."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 0.1  # seconds between checks whether a thread should stop
MOST_THREADS = 4  # the most threads: each has blocks in memory, which should not grow with the number of processors


def prefetch(jobs: Generator[Callable[[], T], None, None]) -> Generator[T, None, None]:
    """Run jobs in threads and return their results in order; an error is raised in the place of its result.

    At most as many results wait as there are threads. Closing the generator stops all work.

    >>> list(prefetch((lambda i=i: i * i) for i in range(5)))
    [0, 1, 4, 9, 16]
    """
    workers = min(os.cpu_count() or 1, MOST_THREADS)
    results: queue.Queue[Future[T] | None] = queue.Queue(workers)
    stopped = threading.Event()

    def put(result: Future[T] | None) -> bool:
        while not stopped.is_set():
            try:
                results.put(result, timeout=PATIENCE)
            except queue.Full:
                continue
            return True
        return False

    def feed() -> None:
        try:
            with closing(jobs):
                for job in jobs:
                    if not put(pool.submit(job)):
                        return
        except BaseException as error:
            failed: Future[T] = Future()
            failed.set_exception(error)
            put(failed)
        put(None)

    pool = ThreadPoolExecutor(workers, thread_name_prefix="reading")
    # A daemon: it may be waiting for a pipe when the program ends.
    feeder = threading.Thread(target=feed, name="reading-ahead", daemon=True)
    feeder.start()
    try:
        while (result := results.get()) is not None:
            yield result.result()
    finally:
        stopped.set()
        while not results.empty():
            results.get_nowait()
        pool.shutdown(wait=True, cancel_futures=True)
        feeder.join(PATIENCE)
