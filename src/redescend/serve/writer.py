"""The writer of a model: requests that wait at the same time are committed together."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from typing import NamedTuple

from redescend.serve.histogram import Histogram
from redescend.serve.model import Answer, LearnRequest, ServedModel
from redescend.serve.refusals import Busy, Unavailable


class Waiting(NamedTuple):
    """A request, what its client waits for, and when it came."""

    request: LearnRequest
    future: asyncio.Future[Answer]
    since: float


class Writer:
    """Takes the requests of a model in their order, one commit at a time.

    `after` is called, in the thread of the commit, behind each of them.
    """

    def __init__(self, model: ServedModel, executor: Executor, after: Callable[[ServedModel], None]) -> None:
        self.model, self._executor, self._after = model, executor, after
        self._waiting: deque[Waiting] = deque()
        self._records = 0
        self._oldest = 0.0
        """When the first request of the group that is committed now came."""
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self.commits = Histogram()
        """Seconds that commits took."""

    @property
    def queued(self) -> int:
        """Records that wait."""
        return self._records

    @property
    def lag(self) -> float:
        """Seconds that the first of them has waited."""
        return time.monotonic() - self._oldest if self._task is not None and self._records else 0.0

    def enqueue(self, request: LearnRequest) -> asyncio.Future[Answer]:
        """Commit a request; the future is done once it is on the disk and learned from."""
        if self._closed:
            raise Unavailable(f"The model '{self.model.name}' takes no more records: it is being closed.")
        limit = self.model.limits.queued
        if self._records and self._records + request.records.count > limit:
            raise Busy(f"{self._records:,} records of '{self.model.name}' wait already; try again in a second.")
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append(Waiting(request, future, time.monotonic()))
        self._records += request.records.count
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return future

    async def close(self) -> None:
        """Take no more requests, and finish those that wait."""
        self._closed = True
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            group = self._take()
            requests, began = [waiting.request for waiting in group], time.monotonic()
            self._oldest = group[0].since
            try:
                answers = await loop.run_in_executor(self._executor, self._commit, requests)
            except BaseException as error:
                answers = [error if isinstance(error, Exception) else Unavailable("The server stops.")] * len(group)
            self.commits.observe(time.monotonic() - began)
            for (request, future, _), answer in zip(group, answers, strict=True):
                self._records -= request.records.count
                if future.done():
                    continue
                if isinstance(answer, Exception):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)
        self._task = None

    def _take(self) -> list[Waiting]:
        group: list[Waiting] = []
        records = 0
        while self._waiting and (not group or records < self.model.limits.group):
            group.append(self._waiting.popleft())
            records += group[-1].request.records.count
        return group

    def _commit(self, requests: list[LearnRequest]) -> list[Answer | Exception]:
        answers = self.model.commit(requests)
        self._after(self.model)
        return answers
