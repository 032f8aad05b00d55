"""A source of records: its columns, their kinds, and its records in batches, read ahead in threads."""

from __future__ import annotations

import functools
import itertools
import os
import queue
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from redescend.errors import DataError, quote, suggest
from redescend.parameters import AT_LEAST_ONE, check
from redescend.sources.batch import START, Batch, Piece, Position
from redescend.sources.formats import Follow, SourceFile, has_columns, read_sample
from redescend.sources.kinds import Kind
from redescend.sources.readers import Unread
from redescend.sources.sampling import count_parts, sample_by_content, shuffle

T = TypeVar("T")

MOST = 65_536  # the most records of a batch
SPREAD = 4096  # the most records in a sample from all over a source

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


class Source:
    r"""Records that are read in order. Returned by `open_source`.

    Parameters
    ----------
    name : str
        Its name in messages.
    files : sequence of SourceFile
        Its files, in order; the attribute `files` has their names.
    kinds : mapping of str to Kind
        Its columns and their kinds; the attribute `columns` has their names.
    size : int or None
        Its size in stored bytes, if that is known.
    others : mapping of str to str
        Columns that cannot be read, with their types.

    Attributes
    ----------
    format : str
        csv, tsv, jsonl, parquet, arrow, memory or another registered format.
    sample : Batch
        The first thousand records, with all columns. `batches` returns them again.
    can_reread : bool
        Whether it can be read more than once; a pipe cannot.
    declared : dict or None
        The target and features that the first file declares; see `SourceFile`.
    others : dict of str to str
        Columns that cannot be read, with their types.
    forms : dict of str to Notation
        The notations of columns of text that are read as numbers or dates; `units` are those of numbers, such as kg.
    unread : list of Unread
        Entries of folders that are not read, with the reason: links to folders or to nothing, pipes, and folders
        without permission.

    Examples
    --------
    >>> import io
    >>> from redescend.sources import open_source
    >>> source = open_source(io.BytesIO(b"x,y\n1,2\n3,four\n5,6\n"), kinds={"y": Kind.NUMBER})
    >>> [(batch.rows.tolist(), batch.bad[0].reason) for batch in source.batches(["y"])]
    [([1, 3], "column 'y': 'four' is not a number")]
    """

    def __init__(
        self,
        name: str,
        files: Sequence[SourceFile],
        kinds: Mapping[str, Kind],
        size: int | None,
        others: Mapping[str, str],
    ) -> None:
        self.name = name
        self.format = files[0].format
        self.declared = files[0].declared
        self.files = [file.name for file in files]
        self.size = size
        self.columns = list(kinds)
        self.kinds = dict(kinds)
        self.others = dict(others)
        self.forms = {name: form for name, form in files[0].forms.items() if self.kinds.get(name) is form.kind}
        self.units = {name: form.unit for name, form in self.forms.items() if form.unit}
        self._seed: int | None = None
        self._opened = list(files)
        self.can_reread = all(file.can_reread for file in files)
        self.unread: list[Unread] = []
        self.sample = read_sample(files, kinds)
        if not self.sample.count and self.format != "memory":
            which = name if len(files) == 1 else f"{files[0].name}, the first of the {len(files)} files of {name},"
            raise DataError(f"{which} has no records.")

    def batches(
        self,
        columns: Sequence[str],
        *,
        start: Position | None = None,
        most: int = MOST,
        follow: Follow | None = None,
        mark: str | None = None,
        in_order: bool = False,
    ) -> Generator[Batch, None, None]:
        """Read these columns of all records, in threads that read ahead.

        Parameters
        ----------
        columns : sequence of str
            The names of the columns. A record is bad if one of these values is not of its column's kind.
        start : Position or None
            Where to start: the `end` of a batch. None: at the first record.
        most : int
            The most records of a batch, except for lost ones. Results do not depend on it.
        follow : callable or None
            For a text file that grows: called at its end, in another thread; waits, and returns whether to try again.
            If the file is rotated, its rest is read, and then the new file.
        mark : str or None
            With `follow`: the `mark` of the batch that ended at `start`, to find that place in a rotated file.
        in_order : bool
            Read a source in its own order, even if it is shuffled otherwise.

        Returns
        -------
        generator of Batch
            Closing it stops the reading.
        """
        check("batches", "most", most, AT_LEAST_ONE)
        self._check_columns(columns)
        start = START if start is None else Position(*start)
        if not 0 <= start.file <= len(self._opened) or min(start) < 0:
            raise DataError(f"{self.name} has no position {tuple(start)}.")
        if follow is not None and not self._opened[-1].can_grow:
            raise DataError(f"{self.name} cannot be followed: only an uncompressed text file can.")
        if self._seed is not None and not in_order:
            plain = self._batches(list(columns), START, MOST, None, None)
            return shuffle(plain, self.name, self._seed, count_parts(self.size), start, most)
        return self._batches(list(columns), start, most, follow, mark)

    def shuffle(self, seed: int = 0) -> None:
        """Shuffle the records from now on; the order depends on `seed` alone.

        They are dealt to temporary files of parts that fit into memory.
        """
        if not self.can_reread:
            raise DataError(
                f"{self.name} can only be read once, so its records cannot be shuffled; write them to a file."
            )
        self._seed = seed

    @property
    def is_shuffled(self) -> bool:
        """Whether records come in a random order."""
        return self._seed is not None

    @functools.cached_property
    def spread(self) -> pa.RecordBatch:
        """A sample from all over the source, with all columns, in its order; read once.

        Which records are in it is decided by their contents, so that it is the same sample in any order of them; of a
        large file, records from some places are considered, and none of a file that lacks a column.
        """
        files = (file for file in self._opened if has_columns(file, self.kinds))
        pieces = (piece.table for file in files for piece in file.read_spread(self.kinds))
        return sample_by_content(itertools.chain([self.sample.table.slice(0, 0)], pieces), SPREAD)

    def read_as_text(self, names: Iterable[str]) -> None:
        """Read the columns `names` as texts, whatever their kinds."""
        for name in names:
            self._check_columns([name])
            self.kinds[name] = Kind.TEXT

    def progress(self) -> int:
        """The number of stored bytes read so far in this run."""
        return sum(file.taken for file in self._opened)

    def _batches(
        self, columns: list[str], start: Position, most: int, follow: Follow | None, mark: str | None
    ) -> Generator[Batch, None, None]:
        for file in self._opened:
            file.taken = 0
        active = threading.Event()
        active.set()
        growing = follow and (lambda: active.is_set() and follow())
        # Without a column, records could not be counted.
        kinds = {name: self.kinds[name] for name in columns or self.columns[:1]}
        pieces = prefetch(_make_jobs(kinds, start, self._opened, growing, mark))
        try:
            for batch in _make_batches(pieces, start, most, self.files):
                yield batch if columns else replace(batch, table=batch.table.select([]))
        finally:
            active.clear()
            pieces.close()

    def _check_columns(self, columns: Sequence[str]) -> None:
        for name in columns:
            if name in self.others:
                raise DataError(
                    f"Column {quote(name)} of {self.name} is {self.others[name]}: not a number, date or text."
                )
            if name not in self.kinds:
                raise DataError(f"{self.name} has no column {quote(name)}; {suggest(self.columns, name)}")
        for file in self._opened:
            if file.names is None:
                continue
            counts = Counter(file.names)
            for name in columns:
                if not counts[name]:
                    raise DataError(f"{file.name} has no column {quote(name)}, which {self.files[0]} has.")
                if counts[name] > 1:
                    raise DataError(f"{file.name} has two columns {quote(name)}; rename one of them.")


def _make_jobs(
    kinds: Mapping[str, Kind], start: Position, files: Sequence[SourceFile], follow: Follow | None, mark: str | None
) -> Generator[Callable[[], tuple[int, Piece]], None, None]:
    for number in range(start.file, len(files)):
        offset = start.offset if number == start.file else 0
        growing = follow if number == len(files) - 1 else None
        for job in files[number].jobs(kinds, offset, growing, mark if number == start.file else None):
            yield functools.partial(_run_job, number, job)


def _run_job(file: int, job: Callable[[], Piece]) -> tuple[int, Piece]:
    return file, job()


def _make_batches(
    pieces: Iterator[tuple[int, Piece]], start: Position, most: int, names: Sequence[str]
) -> Iterator[Batch]:
    row, skip, current = start.row, start.skip, start.file
    for file, piece in pieces:
        if file != current:
            skip, current = 0, file
        low = min(skip, piece.count)
        skip -= low
        while low < piece.count:
            high = piece.find_end(low, most)
            yield piece.slice(low, high, file, names[file], row)
            row += high - low
            low = high
