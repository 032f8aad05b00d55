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
from typing import Any, NamedTuple

from redescend.errors import DataError
from redescend.files import sync_folder
from redescend.sources.journal import COMMIT, MAGIC, SCHEMA, Frame, encode_line, read_frames

Request = tuple[int, str | None, int]
"""A request of a commit: its number of records, its idempotency key, and a digest of its body."""


BLOCK = 1 << 20
"""Bytes that are written at a time, if they come in parts."""

SYNCHRONIZERS = ThreadPoolExecutor(8, thread_name_prefix="synchronize")
"""Threads that wait for the disk."""


class Fsync(StrEnum):
    """When a commit is synchronized: before it is acknowledged, every second, or when the system likes to."""

    ALWAYS = "always"
    INTERVAL = "interval"
    NEVER = "never"


class Place(NamedTuple):
    """A place in a journal: the number of a segment and an offset in it."""

    segment: int
    offset: int


class Journal:
    """The journal in a folder, which is created if it does not exist.

    After a failed synchronization nobody knows what is on the disk, so the journal takes nothing more until it is
    opened again.
    """

    def __init__(self, folder: Path, fsync: Fsync = Fsync.ALWAYS) -> None:
        self.folder, self.fsync = folder, fsync
        self.declared: dict[str, Any] | None = None
        """The schema frame, which every segment has once it is known."""
        self._unsynced = self._broken = False
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

    def commit(self, requests: Sequence[Request], lines: Sequence[bytes]) -> None:
        """Append the records of some requests: parts of a text with a newline behind each record."""
        self._append([encode_line(COMMIT, requests, lines), *lines])

    def begin_commit(self, requests: Sequence[Request], lines: Sequence[bytes], *, wait: bool = False) -> Future[None]:
        """Append the records of some requests like `commit`, but unless `wait` let a thread wait for the disk."""
        if not wait and self.fsync is Fsync.ALWAYS:
            return SYNCHRONIZERS.submit(self._close, self._write([encode_line(COMMIT, requests, lines), *lines]))
        self.commit(requests, lines)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def check(self) -> None:
        """Raise if nobody knows what is on the disk."""
        if self._broken:
            raise OSError("the journal could not be written, and its end is unknown; start the server again")

    def forget(self, end: Place) -> None:
        """Do not count on commits behind a place: they may be on the disk or not."""
        self.end = min(self.end, end)

    def take_back(self, end: Place) -> None:
        """Remove commits behind a place, which were not acknowledged."""
        try:
            self._cut(self._path(end.segment), end.offset)
        except BaseException:
            self._broken = True
            raise
        self.end = end

    def declare(self, declared: dict[str, Any]) -> None:
        """Append the schema."""
        self._append([self._encode_schema(declared)])
        self.declared = declared

    def rotate(self) -> Place:
        """Begin another segment."""
        self.sync()
        self.end = self._create(self.end.segment + 1)
        return self.end

    def remove_before(self, segment: int) -> None:
        """Remove the segments before this one."""
        for number in self._segments():
            if number < segment:
                self._path(number).unlink(missing_ok=True)

    def sync(self) -> None:
        """Wait until all commits are on the disk."""
        if self._unsynced:
            descriptor = os.open(self._path(self.end.segment), os.O_RDONLY)
            try:
                self._sync(descriptor)
            finally:
                os.close(descriptor)
            self._unsynced = False

    def _append(self, frame: Sequence[bytes]) -> None:
        start = self.end
        try:
            self._close(self._write(frame))
        except BaseException:
            self.forget(start)
            raise

    def _write(self, frame: Sequence[bytes]) -> int:
        """Write a frame; returns the descriptor of its file."""
        self.check()
        descriptor = os.open(self._path(self.end.segment), os.O_WRONLY | os.O_APPEND)
        try:
            for block in _make_blocks(frame):
                view = memoryview(block)
                while view:
                    view = view[os.write(descriptor, view) :]
        except BaseException:
            # What was not acknowledged must not come back.
            try:
                os.ftruncate(descriptor, self.end.offset)
            except BaseException:
                self._broken = True
                raise
            finally:
                os.close(descriptor)
            raise
        self.end = Place(self.end.segment, self.end.offset + sum(map(len, frame)))
        return descriptor

    def _close(self, descriptor: int) -> None:
        """Close a file that was written to, after its synchronization."""
        try:
            if self.fsync is Fsync.ALWAYS:
                self._sync(descriptor)
            else:
                self._unsynced = self.fsync is Fsync.INTERVAL
        finally:
            os.close(descriptor)

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
    def _encode_schema(declared: dict[str, Any]) -> bytes:
        payload = json.dumps(declared).encode() + b"\n"
        return encode_line(SCHEMA, [], [payload]) + payload

    def _segments(self) -> list[int]:
        numbers = []
        for path in self.folder.glob("*.journal"):
            with suppress(ValueError):
                numbers.append(int(path.stem))
        return sorted(numbers)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:08}.journal"


def _make_blocks(parts: Sequence[bytes]) -> Iterator[bytes]:
    """Parts joined to blocks: few writes if they are short, and no copies if they are long."""
    block: list[bytes] = []
    size = 0
    for part in parts:
        if block and size + len(part) > BLOCK:
            yield b"".join(block)
            block, size = [], 0
        block.append(part)
        size += len(part)
    yield b"".join(block)
