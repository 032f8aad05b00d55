"""The writer of a model: requests that wait at the same time are committed together."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor

from redescend.serve.model import Answer, LearnRequest, ServedModel
from redescend.serve.refusals import Busy, Unavailable

Waiting = tuple[LearnRequest, "asyncio.Future[Answer]"]


class Writer:
    """Takes the requests of a model in their order, one commit at a time.

    `after` is called, in the thread of the commit, behind each of them.
    """

    def __init__(self, model: ServedModel, executor: Executor, after: Callable[[ServedModel], None]) -> None:
        self.model, self._executor, self._after = model, executor, after
        self._waiting: deque[Waiting] = deque()
        self._records = 0
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def queued(self) -> int:
        """Records that wait."""
        return self._records

    async def submit(self, request: LearnRequest) -> Answer:
        """Commit a request; returns once it is on the disk and learned from."""
        if self._closed:
            raise Unavailable(f"The model '{self.model.name}' takes no more records: it is being closed.")
        limit = self.model.limits.queued
        if self._records and self._records + len(request.records) > limit:
            raise Busy(f"{self._records:,} records of '{self.model.name}' wait already; try again in a second.")
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, future))
        self._records += len(request.records)
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        # A client that leaves does not undo what it sent.
        return await asyncio.shield(future)

    async def close(self) -> None:
        """Take no more requests, and finish those that wait."""
        self._closed = True
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            group = self._take()
            requests = [request for request, _ in group]
            try:
                answers = await loop.run_in_executor(self._executor, self._commit, requests)
            except BaseException as error:
                answers = [error if isinstance(error, Exception) else Unavailable("The server stops.")] * len(group)
            for (request, future), answer in zip(group, answers, strict=True):
                self._records -= len(request.records)
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
            records += len(group[-1][0].records)
        return group

    def _commit(self, requests: list[LearnRequest]) -> list[Answer | Exception]:
        answers = self.model.commit(requests)
        self._after(self.model)
        return answers
