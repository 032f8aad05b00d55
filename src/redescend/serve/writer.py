"""The writer of a model: requests that wait at the same time are committed together."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

from redescend.serve.logs import FIELDS, LOGGER
from redescend.serve.model import ServedModel
from redescend.serve.replies import ServiceUnavailable, TooManyRequests
from redescend.serve.requests import Answer, LearnRequest
from redescend.serve.statistics import Histogram

OVERLAPPING = 2  # commits at a time that are learned from or written: with more there are fewer requests in each

QUICK, UNREAD = 0.001, 0.01
"""Seconds that the event loop may learn at a time: to hand so little to a thread takes longer. It may learn for
longer if no client predicts, who would wait."""

FEW = 4000
"""Records that the event loop learns from at a time at most: each may take longer than those of the last commit."""

DELAY = 0.001  # seconds that a commit waits for more requests if there is nothing else to do


class Waiting(NamedTuple):
    """A request, the future of its answer, and when it was received."""

    request: LearnRequest
    answer: asyncio.Future[Answer]
    since: float


@dataclass(eq=False)
class Commit:
    """Requests that are committed together, and when that began.

    `written` is done once they are on the disk. If they are `alone`, they are committed after all others are finished.
    """

    waiting: list[Waiting]
    began: float
    written: Future[None] | None = None
    alone: bool = False

    @cached_property
    def requests(self) -> list[LearnRequest]:
        return [waiting.request for waiting in self.waiting]

    @cached_property
    def records(self) -> int:
        return sum(waiting.request.records.count for waiting in self.waiting)

    @property
    def since(self) -> float:
        return self.waiting[0].since


class Writer:
    """Commits the requests of a model in their order.

    The event loop calls `_advance`, which answers commits that are on the disk, and begins the next one while others
    are still being written. A thread of the executor learns, unless that is quick, or takes a snapshot. If one is
    due, `snapshot` is called between two commits; it returns what is left to do. Meanwhile others are begun if the
    model is `overlapping`; otherwise they wait, without a thread. `is_read` says whether clients predict.
    """

    def __init__(
        self,
        model: ServedModel,
        executor: Executor,
        is_due: Callable[[ServedModel], bool],
        snapshot: Callable[[ServedModel], Callable[[], None] | None],
        is_read: Callable[[], bool] = lambda: True,
    ) -> None:
        self.model, self._executor, self._is_due, self._snapshot = model, executor, is_due, snapshot
        self._is_read = is_read
        self._waiting: deque[Waiting] = deque()
        self._commits: deque[Commit] = deque()  # commits that are not answered yet
        self.queued = 0  # records of both: those that are not acknowledged yet
        self._open = 0.0  # about how many requests are open at a time, which is the number of busy clients
        self._answered = 0  # requests of the last commit that was answered
        self._timer: asyncio.TimerHandle | None = None  # runs while a commit waits for more requests
        self._seconds = float("inf")  # processor time that learning from the last commit took, per record
        self._works = self._saves = self._scheduled = self._finished = False
        """Whether a thread learns, whether one writes a snapshot, whether `_advance` is about to be called, and whether
        a commit was finished since the last snapshot was considered."""
        self._closed: asyncio.Future[None] | None = None
        """Done once nothing waits any more; None until the writer is being closed."""
        self.commits = Histogram()  # seconds that commits took

    @property
    def lag(self) -> float:
        """Seconds that the first of them has waited."""
        for queue in (self._commits, self._waiting):
            with suppress(IndexError):  # the event loop may just have taken the last one
                return time.monotonic() - queue[0].since
        return 0.0

    def enqueue(self, request: LearnRequest) -> asyncio.Future[Answer]:
        """Commit a request; the future is done once it is on the disk and learned from."""
        if self._closed is not None:
            raise ServiceUnavailable(f"The model '{self.model.name}' takes no more records: it is being closed.")
        limit = self.model.limits.queued
        if self.queued and self.queued + request.records.count > limit:
            raise TooManyRequests(
                f"{self.queued:,} records of '{self.model.name}' wait already; try again in a second."
            )
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()
        self.queued += request.records.count
        self._waiting.append(Waiting(request, answer, time.monotonic()))
        self._schedule(loop)
        return answer

    async def close(self) -> None:
        """Take no more requests, and finish those that wait."""
        loop = asyncio.get_running_loop()
        self._closed = loop.create_future()
        self._wait_no_more(loop)
        await self._closed

    # --- steps ---

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        """Call `_advance` after all requests that the event loop has received by now."""
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._advance, loop)

    def _wait_no_more(self, loop: asyncio.AbstractEventLoop) -> None:
        self._open, self._timer = 0.0, None
        self._schedule(loop)

    def _advance(self, loop: asyncio.AbstractEventLoop) -> None:
        self._scheduled = False
        # The next commit comes first: a thread can work on it while the event loop answers the last one.
        self._begin_next(loop)
        while self._commits and self._is_written(self._commits[0]):
            self._answer_result(self._commits.popleft(), self.model.finish)
            self._begin_next(loop)
        idle = not (self._waiting or self._commits or self._works or self._saves)
        if self._closed is not None and idle and not self._closed.done():
            self._closed.set_result(None)

    def _begin_next(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin what is next, if anything: a commit that has to be alone, a snapshot, or another commit."""
        if self._works or (self._saves and not self.model.overlapping):
            return
        if self._commits and self._commits[-1].alone:
            if len(self._commits) == 1:
                commit = self._commits[0]
                self._run(loop, partial(self.model.commit, commit.requests), self._end_alone)
        elif self._finished and not self._saves and self._is_due(self.model):
            if not self._commits:
                self._finished = False
                self._run(loop, partial(self._snapshot, self.model), partial(self._end_snapshot, loop))
        elif self._waiting:
            self._begin_if_enough(loop)

    def _is_written(self, commit: Commit) -> bool:
        written = commit.written
        if written is None or not written.done():
            return False
        # A failed commit is finished after the thread has begun the next, which then fails as well.
        return not self._works or written.exception() is None

    def _begin_if_enough(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin a commit of what waits, or wait for more.

        While one half of the busy clients waits for a commit, the other half sends requests. The clients that were
        answered last are expected to send their next requests soon; an idle writer waits for them only briefly.
        """
        most = OVERLAPPING if self.model.overlapping else 1
        if len(self._waiting) < min(self._answered, self._open / 2):
            if not self._commits and self._timer is None:
                self._timer = loop.call_later(DELAY, self._wait_no_more, loop)
        elif len(self._commits) < most:
            self._begin(loop)
            if self._waiting:
                self._schedule(loop)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        busy = len(self._waiting) + sum(len(commit.waiting) for commit in self._commits)
        self._open = max(0.9 * self._open, busy)
        commit = Commit(self._take(), time.monotonic())
        self._commits.append(commit)
        begin, end = partial(self._attempt, commit), partial(self._end_begin, loop, commit)
        if not self.model.can_begin(commit.requests):
            end(lambda: None)
        elif self._is_quick(commit.records):
            end(begin)
        else:
            self._run(loop, begin, end)

    def _is_quick(self, records: int) -> bool:
        """Whether the event loop may learn from this many records."""
        seconds = QUICK if self._is_read() else UNREAD
        return self.model.overlapping and records <= FEW and self._seconds * records < seconds

    def _attempt(self, commit: Commit) -> Future[None] | None:
        """Learn from the requests of a commit, and measure that."""
        began = time.thread_time()
        written = self.model.begin(commit.requests)
        self._seconds = (time.thread_time() - began) / max(1, commit.records)
        return written

    def _end_begin(
        self, loop: asyncio.AbstractEventLoop, commit: Commit, result: Callable[[], Future[None] | None]
    ) -> None:
        try:
            commit.written = result()
        except Exception as error:
            self._commits.pop()
            self._answer(commit, [error] * len(commit.waiting))
            return
        if commit.written is None:
            commit.alone = True
            self._schedule(loop)
        else:
            commit.written.add_done_callback(lambda _: loop.call_soon_threadsafe(self._advance, loop))

    def _end_alone(self, result: Callable[[], Sequence[Answer | Exception]]) -> None:
        self._answer_result(self._commits.popleft(), result)

    def _end_snapshot(self, loop: asyncio.AbstractEventLoop, result: Callable[[], Callable[[], None] | None]) -> None:
        """End a part of a snapshot, and begin the next, if there is one."""
        self._saves = False
        try:
            write = result()
            if write is not None:
                self._saves = True
                self._submit(loop, write, partial(self._end_snapshot, loop))
        except Exception:
            # The journal has everything.
            name = self.model.name
            LOGGER.exception("The snapshot of '%s' was not written.", name, extra={FIELDS: {"model": name}})

    def _answer_result(self, commit: Commit, result: Callable[[], Sequence[Answer | Exception]]) -> None:
        try:
            answers = result()
        except Exception as error:
            answers = [error] * len(commit.waiting)
        self._answer(commit, answers)

    def _take(self) -> list[Waiting]:
        """The first requests that wait, as many as can be committed at a time."""
        taken: list[Waiting] = []
        records = 0
        while self._waiting and (not taken or records < self.model.limits.group):
            taken.append(self._waiting.popleft())
            records += taken[-1].request.records.count
        return taken

    def _answer(self, commit: Commit, answers: Sequence[Answer | Exception]) -> None:
        self._finished, self._answered = True, len(commit.waiting)
        self.commits.observe(time.monotonic() - commit.began)
        for (request, future, _), answer in zip(commit.waiting, answers, strict=True):
            self.queued -= request.records.count
            if future.done():
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)

    # --- threads ---

    def _run(self, loop: asyncio.AbstractEventLoop, work: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Work in a thread, and then, in the event loop, pass on a function that returns or raises the result."""
        self._works = True

        def end(result: Callable[[], Any]) -> None:
            self._works = False
            then(result)

        self._submit(loop, work, end)

    def _submit(self, loop: asyncio.AbstractEventLoop, work: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Work in a thread as `_run` does; if there is none, the result is an error, and nothing is done."""
        done: Future[Any] = Future()

        def run() -> None:
            if not done.set_running_or_notify_cancel():
                return
            try:
                result = work()
            except BaseException as error:
                done.set_exception(error)
            else:
                done.set_result(result)

        def get_result() -> Any:
            if done.cancelled():
                raise ServiceUnavailable("The server cannot start a thread; try again.")
            return done.result()

        def end() -> None:
            then(get_result)
            self._advance(loop)

        done.add_done_callback(lambda _: loop.call_soon_threadsafe(end))
        try:
            self._executor.submit(run)
        except RuntimeError:
            # The executor has queued it all the same: unless a thread has begun it by now, none may.
            done.cancel()
