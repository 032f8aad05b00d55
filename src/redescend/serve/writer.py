"""The writer of a model: requests that wait at the same time are committed together."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from threading import Lock
from typing import NamedTuple

from redescend.serve.histogram import Histogram
from redescend.serve.model import ServedModel
from redescend.serve.refusals import Busy, Unavailable
from redescend.serve.requests import Answer, LearnRequest

OVERLAPPING = 2
"""Commits that the disk writes at a time: with more there are fewer requests in each."""


class Waiting(NamedTuple):
    """A request, what its client waits for, and when it came."""

    request: LearnRequest
    future: asyncio.Future[Answer]
    since: float


class Group(NamedTuple):
    """Requests that are committed together, since when, and a future that is done once they are on the disk."""

    requests: list[Waiting]
    began: float
    written: Future[None]


class Writer:
    """Takes the requests of a model in their order, one commit at a time, in a thread of the executor.

    While the disk writes a commit, which the thread does not wait for, the next may begin. After commits that are
    finished, if one `is_due`, `snapshot` is called in that thread.
    """

    def __init__(
        self,
        model: ServedModel,
        executor: Executor,
        is_due: Callable[[ServedModel], bool],
        snapshot: Callable[[ServedModel], None],
    ) -> None:
        self.model, self._executor, self._is_due, self._snapshot = model, executor, is_due, snapshot
        self._waiting: deque[Waiting] = deque()
        self._begun: deque[Group] = deque()
        self._records = 0
        self._lock = Lock()
        self._runs = self._again = self._finished = False
        """Whether a thread runs or is about to, whether something has happened since it last looked, and whether a
        commit was finished since the last snapshot was considered."""
        self._closed: asyncio.Future[None] | None = None
        """Done once nothing waits any more; None until the writer is being closed."""
        self.commits = Histogram()
        """Seconds that commits took."""

    @property
    def queued(self) -> int:
        """Records that wait."""
        return self._records

    @property
    def lag(self) -> float:
        """Seconds that the first of them has waited."""
        with self._lock:
            begun, waiting = list(self._begun), list(self._waiting)
        first = begun[0].requests[0] if begun else waiting[0] if waiting else None
        return 0.0 if first is None else time.monotonic() - first.since

    def enqueue(self, request: LearnRequest) -> asyncio.Future[Answer]:
        """Commit a request; the future is done once it is on the disk and learned from."""
        if self._closed is not None:
            raise Unavailable(f"The model '{self.model.name}' takes no more records: it is being closed.")
        limit = self.model.limits.queued
        if self._records and self._records + request.records.count > limit:
            raise Busy(f"{self._records:,} records of '{self.model.name}' wait already; try again in a second.")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer] = loop.create_future()
        self._records += request.records.count
        self._waiting.append(Waiting(request, future, time.monotonic()))
        self._wake(loop)
        return future

    async def close(self) -> None:
        """Take no more requests, and finish those that wait."""
        self._closed = asyncio.get_running_loop().create_future()
        self._check_closed()
        await self._closed

    # --- the thread ---

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let a thread look at what has happened."""
        with self._lock:
            if not self._waiting and not self._begun:
                return
            self._again, runs, self._runs = True, self._runs, True
        if not runs:
            self._executor.submit(self._run, loop)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        """Work once; the writers of other models take turns."""
        with self._lock:
            self._again = False
        try:
            self._work(loop)
        finally:
            with self._lock:
                more = bool(self._waiting) and len(self._begun) < OVERLAPPING
                self._runs = again = self._again or more
            if again:
                self._executor.submit(self._run, loop)
            else:
                loop.call_soon_threadsafe(self._check_closed)

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        """Finish commits that are on the disk, and begin one of what waits."""
        while self._begun and self._begun[0].written.done():
            self._finish(loop)
        if self._waiting and len(self._begun) < OVERLAPPING:
            self._begin(loop)
        if self._finished and self._is_due(self.model):
            self._drain(loop)
            self._snapshot(self.model)
        self._finished = False

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        group, began = self._take(), time.monotonic()
        requests = [waiting.request for waiting in group]
        try:
            written = self.model.begin(requests)
            if written is None:
                self._drain(loop)
                self._answer(loop, group, self.model.commit(requests), began)
                return
        except BaseException as error:
            self._answer(loop, group, [_to_exception(error)] * len(group), began)
            return
        self._begun.append(Group(group, began, written))
        written.add_done_callback(lambda _: self._wake(loop))

    def _drain(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait for the disk."""
        while self._begun:
            self._finish(loop)

    def _finish(self, loop: asyncio.AbstractEventLoop) -> None:
        group, began, _ = self._begun.popleft()
        answers: Sequence[Answer | Exception]
        try:
            answers = self.model.finish()
        except BaseException as error:
            answers = [_to_exception(error)] * len(group)
        self._answer(loop, group, answers, began)

    def _take(self) -> list[Waiting]:
        group: list[Waiting] = []
        records = 0
        while self._waiting and (not group or records < self.model.limits.group):
            group.append(self._waiting.popleft())
            records += group[-1].request.records.count
        return group

    def _answer(
        self, loop: asyncio.AbstractEventLoop, group: list[Waiting], answers: Sequence[Answer | Exception], began: float
    ) -> None:
        self._finished = True
        loop.call_soon_threadsafe(self._tell, group, answers, time.monotonic() - began)

    # --- the event loop ---

    def _tell(self, group: list[Waiting], answers: Sequence[Answer | Exception], seconds: float) -> None:
        self.commits.observe(seconds)
        for (request, future, _), answer in zip(group, answers, strict=True):
            self._records -= request.records.count
            if future.done():
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)

    def _check_closed(self) -> None:
        if self._closed is not None and not self._closed.done() and not self._records and not self._runs:
            self._closed.set_result(None)


def _to_exception(error: BaseException) -> Exception:
    return error if isinstance(error, Exception) else Unavailable("The server stops.")
