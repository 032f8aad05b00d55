"""One pass over a stream: batch after batch is learned from and written down, and nothing is lost."""

from __future__ import annotations

import heapq
import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, suppress
from typing import Any, Literal, NamedTuple

from redescend.errors import BadRecordError, DataError
from redescend.numeric import Array
from redescend.sources import Bad, Batch, Position, Source
from redescend.sources.formats import Follow
from redescend.streaming.io.checkpoints import Checkpoints
from redescend.streaming.io.collisions import files_of
from redescend.streaming.io.writers import Books
from redescend.streaming.keyed import ModelStore
from redescend.streaming.model import StreamModel
from redescend.streaming.rounds import Played, Rounds
from redescend.streaming.summary.summary import Summary

MOST = 65_536
"""Records in a batch."""

OnBad = Literal["quarantine", "skip", "fail"]


class Counts(NamedTuple):
    """What became of the records: each was learned from, quarantined or skipped."""

    records: int = 0
    learned: int = 0
    quarantined: int = 0
    skipped: int = 0


class Latest(NamedTuple):
    """The batch that was learned from last, where in it the records of the rounds are, and those that are bad."""

    batch: Batch
    kept: Array
    bad: list[Bad]


class Pass:
    """The rounds of a stream, each played when it is asked for.

    `fit_stream` makes it. As an iterator it gives one round after the other; `batches` gives them many at a time, which
    is much faster; `run` plays all that are left. When the last one has been played the files are written. A pass that
    stops before, by an error or because nobody asks for more, leaves no file half written, and can be resumed from its
    last checkpoint.

    Attributes
    ----------
    model : StreamModel or ModelStore
        What has been learned up to now.
    source : Source
        What is read.
    counts : Counts
        What became of the records up to now.
    summary : Summary
        What was found up to now.
    resumed : int
        How many records had been read when the run was resumed; 0 if it was not.
    position : Position or None
        Where the next record is; None before the first batch.
    latest : Latest or None
        The batch that was learned from last.
    ended, finished : bool
        Whether all records have been read; whether all files are written, too. A run that was finished before it was
        resumed is so from the start: it plays no round and writes no file.
    """

    def __init__(
        self,
        model: StreamModel | ModelStore,
        source: Source,
        summary: Summary,
        books: Books,
        *,
        on_bad: OnBad,
        every: int,
        checkpoints: Checkpoints | None = None,
        request: dict[str, Any] | None = None,
        watch: Callable[[Pass, Rounds], object] | None = None,
        follow: Follow | None = None,
    ) -> None:
        self.model, self.source = model, source
        self.counts, self.summary = Counts(), summary
        self.resumed, self.ended, self.finished = 0, False, False
        self._books, self._checkpoints, self._request = books, checkpoints, request or {}
        self._on_bad, self._every, self._watch, self._follow = on_bad, every, watch, follow
        self.latest: Latest | None = None
        self.position: Position | None = None
        self._reader: Generator[Batch, None, None] | None = None
        self._due = 0
        self._rounds, self._given = Rounds.joined([]), 0
        self._last_writes: list[Callable[[], object]] = []
        self._release = weakref.finalize(self, _release, model, books, checkpoints)
        if checkpoints is not None and checkpoints.content is not None:
            self._restore(checkpoints.content)

    def __repr__(self) -> str:
        return f"Pass({self.source.name!r}, {self.counts}, finished={self.finished})"

    @property
    def bad(self) -> list[Bad]:
        """The first of the quarantined records, if no file takes them.

        At most 1 000 are kept, and 4 MiB in all; `counts` counts every one.
        """
        return self._books.kept.records

    def __iter__(self) -> Iterator[Played]:
        return self

    def __next__(self) -> Played:
        while self._given == len(self._rounds):
            rounds = self._next()
            if rounds is None:
                raise StopIteration
            self._rounds, self._given = rounds, 0
        self._given += 1
        return self._rounds.record(self._given - 1, self.model.schema)

    def batches(self) -> Iterator[Rounds]:
        """The rounds that are left, many at a time."""
        left, self._given = self._rounds[self._given :], len(self._rounds)
        if len(left):
            yield left
        while (rounds := self._next()) is not None:
            yield rounds

    def run(self) -> Pass:
        """Play all rounds that are left, and write the files."""
        for _ in self.batches():
            pass
        return self

    def at_end(self, write: Callable[[], object]) -> None:
        """Something to call at the end, before the run counts as finished: it writes the model, say, or a report.

        If the run is killed before it is finished, this is called again at the end of the one that resumes it.
        """
        self._last_writes.append(write)

    def tidy(self) -> None:
        """Write no quarantine if no record is in it; what is there under its name then stays as it is."""
        self._books.tidy = True

    def finish(self) -> None:
        """Write the files; the end of the last round does so by itself."""
        if self.finished:
            return
        self._check_open()
        if not self.ended:
            raise DataError("The stream has not been read to its end, so there is nothing to finish; run() it first.")
        self._write()
        self._checkpoint(finished=True)
        self.finished = True
        self._books.discard()
        self.close()

    def pause(self) -> None:
        """Stop here, and write the files as they are now: a run that is resumed goes on after the last record.

        A pass that follows a growing file ends so by itself.
        """
        self._check_open()
        self._write()
        self._checkpoint()
        self.close()

    def close(self) -> None:
        """Stop here: files that are not there yet will not be, and a checkpoint stays."""
        if self._reader is not None:
            self._reader.close()
        self._release()

    def __enter__(self) -> Pass:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _next(self) -> Rounds | None:
        """The rounds of the next batch; None at the end."""
        if self.finished:
            return None
        self._check_open()
        try:
            batch = None if self.ended else self._read()
            if batch is not None:
                return self._learn(batch)
            if self._follow is not None:
                self.pause()
                return None
            if not self.ended:
                self.ended = True
                _settle(self.model)
                self._checkpoint()
            self.finish()
        except BaseException:
            self.close()
            raise
        return None

    def _read(self) -> Batch | None:
        records = self.counts.records
        if self._reader is None:
            if self.position is None:
                # What cannot be saved is told before hours of work.
                self._checkpoint()
            self._due = records + self._every
            columns, most = self.model.schema.columns, min(MOST, self._every)
            self._reader = self.source.batches(columns, start=self.position, most=most, follow=self._follow)
        elif records >= self._due:
            # Only now that more is asked for: who was given the rounds before has had the time to use them.
            self._checkpoint()
            self._due = records + self._every
        return next(self._reader, None)

    def _learn(self, batch: Batch) -> Rounds:
        learned = self.model.learn(batch)
        bad = list(heapq.merge(batch.bad, learned.bad, key=lambda record: record.row))
        if bad and self._on_bad == "fail":
            raise _failure(bad[0])
        quarantined = bad if self._on_bad == "quarantine" else []
        self._books.add(learned.rounds, quarantined)
        self.summary.add(learned.rounds, batch, learned.kept)
        self.summary.add_bad(bad)
        more = (batch.count, len(learned.rounds), len(quarantined), len(bad) - len(quarantined))
        self.counts = Counts(*(before + new for before, new in zip(self.counts, more, strict=True)))
        self.position, self.latest = batch.end, Latest(batch, learned.kept, bad)
        if self._watch is not None:
            self._watch(self, learned.rounds)
        return learned.rounds

    def _write(self) -> None:
        names = self.model.keys if isinstance(self.model, ModelStore) else ()
        self._books.publish(self.model.schema, names)
        for write in self._last_writes:
            write()

    def _check_open(self) -> None:
        if not self._release.alive:
            raise DataError(
                f"The pass over '{self.source.name}' was stopped before its end; resume it from its checkpoint, or "
                "begin again."
            )

    def _checkpoint(self, *, finished: bool = False) -> None:
        if self._checkpoints is None:
            return
        content = {
            **self._request,
            "kinds": {name: kind.value for name, kind in self.source.kinds.items()},
            "model": self.model,
            "position": None if self.position is None else list(self.position),
            "files": files_of(self.source, 0 if self.position is None else self.position.file + 1),
            "books": self._books.settled(),
            "counts": list(self.counts),
            "summary": self.summary.state(),
            "ended": self.ended,
            "finished": finished,
        }
        self._checkpoints.write(content)

    def _restore(self, content: dict[str, Any]) -> None:
        self.counts = Counts(*content["counts"])
        self.summary.restore(content["summary"])
        self.position = None if content["position"] is None else Position(*content["position"])
        self.resumed, self.ended, self.finished = self.counts.records, content["ended"], content["finished"]
        if self.finished:
            self._books.discard()
            self.close()


def _failure(bad: Bad) -> BadRecordError:
    return BadRecordError(
        f"Row {bad.row}, in '{bad.file}', cannot be learned from: {bad.reason}. Mend it, or set such records aside "
        "with on_bad='quarantine'."
    )


def _settle(model: StreamModel | ModelStore) -> None:
    """Models that are learned elsewhere come home."""
    if isinstance(model, ModelStore):
        model.settle()


def _release(model: StreamModel | ModelStore, books: Books, checkpoints: Checkpoints | None) -> None:
    with ExitStack() as stack:
        # A cluster that has lost the models was or will be complained of by who needs them.
        stack.enter_context(suppress(DataError))
        stack.callback(_settle, model)
        if checkpoints is not None:
            stack.callback(checkpoints.close)
        stack.callback(books.close)
