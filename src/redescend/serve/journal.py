"""The journal of a model: what is committed is on the disk before anybody is told.

It is a folder of segments, ``00000001.journal`` and so on. A commit is one frame of `redescend.sources.journal`,
written and synchronized at once. An incomplete frame that a killed process left is cut off before anything is written
behind it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from redescend.errors import DataError
from redescend.files import sync_folder
from redescend.sources.journal import COMMIT, MAGIC, SCHEMA, Frame, encode_frame, read_frames

Request = tuple[int, str | None, int]
"""A request of a commit: its number of records, its idempotency key, and a digest of its body."""

Text = bytes | memoryview

DISK_THREADS = ThreadPoolExecutor(8, thread_name_prefix="disk")
"""Threads that write commits, and wait until they are on the disk."""

MOST_OPEN = 100  # journals whose file stays open, which saves a little time for each commit; there may be thousands

OPEN: set[int] = set()  # the descriptors of these files


class Fsync(StrEnum):
    """When a commit is synchronized: before it is acknowledged, every second, or when the system likes to."""

    ALWAYS = "always"
    INTERVAL = "interval"
    NEVER = "never"


class Place(NamedTuple):
    """A place in a journal: the number of a segment and an offset in it."""

    segment: int
    offset: int


class Queued(NamedTuple):
    """A commit that shall be written: its requests, their records, and a future that is done once it is on the disk."""

    requests: Sequence[Request]
    lines: Sequence[Text]
    written: Future[None]


class Journal:
    """The journal in a folder, which is created if it does not exist.

    After a failed synchronization nobody knows what is on the disk, so the journal takes nothing more until it is
    opened again.
    """

    def __init__(self, folder: Path, fsync: Fsync = Fsync.ALWAYS) -> None:
        self.folder, self.fsync = folder, fsync
        self.declared: dict[str, Any] | None = None  # the schema frame, which every segment has once it is known
        self._unsynced = self._broken = False
        self._queue: list[Queued] = []
        self._writes = False  # whether a thread writes the queue
        self._failure: Exception | None = None
        self._descriptor: int | None = None
        self._lock, self._writing, self._syncing = Lock(), Lock(), Lock()
        """For the queue, for the thread that writes it, and for the one that synchronizes."""
        folder.mkdir(exist_ok=True)
        numbers = self._segments()
        self.end = Place(numbers[-1], 0) if numbers else self._create(1)

    def replay(self, start: Place | None = None) -> Iterator[Frame]:
        """All frames from a place on; cuts off what is incomplete at the end. To be read to its end before a commit."""
        numbers = [number for number in self._segments() if start is None or number >= start.segment]
        if start is not None and (not numbers or numbers[0] != start.segment):
            raise DataError(f"'{self.folder}' lacks the segment {start.segment} of the last snapshot.")
        for number in numbers:
            place = start.offset if start is not None and number == start.segment else 0
            path = self._path(number)
            if path.stat().st_size < place:
                raise DataError(f"'{path}' is shorter than at the last snapshot; restore it from a copy.")
            end = max(place, len(MAGIC))
            with open(path, "rb") as file:
                for frame in read_frames(file, place):
                    end = frame.end
                    if frame.kind == SCHEMA:
                        self.declared = json.loads(frame.payload)
                    yield frame
            if number == numbers[-1]:
                self._cut(path, end)
                self.end = Place(number, end)
            elif end < path.stat().st_size:
                raise DataError(f"'{path}' is incomplete, but not the last segment; restore it from a copy.")

    def commit(self, requests: Sequence[Request], lines: Sequence[Text]) -> None:
        """Append the records of some requests: parts of a text with a newline behind each record."""
        self._append([encode_frame(COMMIT, requests, lines)])

    def begin_commit(self, requests: Sequence[Request], lines: Sequence[Text]) -> Future[None]:
        """Append like `commit`, but in a thread. If that fails, so do all commits behind it, until `resume`."""
        queued = Queued(requests, lines, Future())
        with self._lock:
            if not self._writes:
                DISK_THREADS.submit(self._write_queue)  # if this raises, nothing is queued
                self._writes = True
            self._queue.append(queued)
        return queued.written

    @property
    def failing(self) -> bool:
        """Whether a commit has failed since `resume`."""
        return self._failure is not None

    def resume(self) -> None:
        """Take commits again after one has failed, once none is queued."""
        self._failure = None

    def declare(self, declared: dict[str, Any]) -> None:
        """Append the schema."""
        self._append([self._encode_schema(declared)])
        self.declared = declared

    def rotate(self) -> Place:
        """Begin another segment."""
        self.sync()
        self.close()
        self.end = self._create(self.end.segment + 1)
        return self.end

    def remove_before(self, segment: int) -> None:
        """Remove the segments before this one."""
        for number in self._segments():
            if number < segment:
                self._path(number).unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file of the last segment; the next commit opens it again."""
        if self._descriptor is not None:
            OPEN.discard(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None

    def sync(self) -> None:
        """Wait until all commits are on the disk."""
        with self._syncing:
            if not self._unsynced:
                return
            self._unsynced = False  # a commit that comes meanwhile sets it again
            try:
                descriptor = os.open(self._path(self.end.segment), os.O_RDONLY)
                try:
                    self._sync(descriptor)
                finally:
                    os.close(descriptor)
            except BaseException:
                self._unsynced = True
                raise

    def _write_queue(self) -> None:
        # An executor that cannot start a thread raises, but may still call this later, while another thread writes.
        with self._writing:
            while self._write_queued():
                pass

    def _write_queued(self) -> bool:
        """Write what is queued; returns whether there was anything."""
        with self._lock:
            queue, self._queue = self._queue, []
            self._writes = bool(queue)
        if not queue:
            return False
        try:
            if self._failure is not None:
                raise self._failure
            self._append([encode_frame(COMMIT, queued.requests, queued.lines) for queued in queue])
        except Exception as error:
            self._failure = error
            for queued in queue:
                queued.written.set_exception(error)
        else:
            for queued in queue:
                queued.written.set_result(None)
        return True

    def _append(self, frames: Sequence[bytearray]) -> None:
        """Write frames, and synchronize them."""
        if self._broken:
            raise OSError("the journal could not be written, and its end is unknown; start the server again")
        if self._descriptor is None:
            self._descriptor = os.open(self._path(self.end.segment), os.O_WRONLY | os.O_APPEND)
            OPEN.add(self._descriptor)
        try:
            self._write(self._descriptor, frames)
            if self.fsync is Fsync.ALWAYS:
                self._sync(self._descriptor)
            else:
                self._unsynced = self.fsync is Fsync.INTERVAL
        except OSError as error:
            error.filename = str(self._path(self.end.segment))  # for the log: that of a descriptor names no file
            raise
        finally:
            if len(OPEN) > MOST_OPEN:
                self.close()
        self.end = Place(self.end.segment, self.end.offset + sum(map(len, frames)))

    def _write(self, descriptor: int, frames: Sequence[bytearray]) -> None:
        try:
            for frame in frames:
                view = memoryview(frame)
                while view:
                    view = view[os.write(descriptor, view) :]
        except BaseException:
            # What was not acknowledged must not come back.
            try:
                os.ftruncate(descriptor, self.end.offset)
            except BaseException:
                self._broken = True
                raise
            raise

    def _sync(self, descriptor: int) -> None:
        try:
            getattr(os, "fdatasync", os.fsync)(descriptor)
        except OSError:
            self._broken = True
            raise

    def _create(self, number: int) -> Place:
        content = MAGIC + (b"" if self.declared is None else self._encode_schema(self.declared))
        with open(self._path(number), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self.folder)
        return Place(number, len(content))

    def _cut(self, path: Path, end: int) -> None:
        with open(path, "r+b") as file:
            if file.seek(0, os.SEEK_END) < len(MAGIC):
                file.seek(0)
                file.write(MAGIC)
            file.truncate(end)
            file.flush()
            os.fsync(file.fileno())

    @staticmethod
    def _encode_schema(declared: dict[str, Any]) -> bytearray:
        return encode_frame(SCHEMA, [], [json.dumps(declared).encode(), b"\n"])

    def _segments(self) -> list[int]:
        numbers = []
        for path in self.folder.glob("*.journal"):
            with suppress(ValueError):
                numbers.append(int(path.stem))
        return sorted(numbers)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:08}.journal"
