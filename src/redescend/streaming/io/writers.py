"""Writers of a run: append-only logs that a checkpoint can be resumed from, and the final files.

A checkpoint stores the size of each log. Anything appended later is truncated when the run resumes, so that every
record is written once. The Parquet file of rounds is made from the whole log at the end, so that its bytes depend on
the rounds alone, not on where batches ended or the run was interrupted.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from redescend.belief import to_probability
from redescend.files import ACTIVE, lock_created, name_part, remove_leftovers, replace_file
from redescend.numeric import Array
from redescend.sources import Bad
from redescend.streaming.config import Outputs
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.io.log import AppendLog, read_blocks
from redescend.streaming.io.tables import Write, find_writer, write_parquet
from redescend.streaming.rounds import Judged, Rounds

LOGS = {"rounds": "rounds.log", "quarantine": "quarantine.log", "values": "values.log"}  # file names of the logs
FINAL = "final.log"  # file name of the log of the rounds of the last pass

NUMBERS = ("target", "prediction", "probability", "loss", "weight")
ENTRY = np.dtype([("row", "<i8"), *((name, "<f8") for name in NUMBERS)])
"""A round in the log; labels are stored as their index."""

JUDGED_ENTRY = np.dtype([*ENTRY.descr, *((name, "<f8") for name in Judged._fields[:-1]), ("suspect", "?")])
"""A round of a model with a belief."""


def choose_entry(judged: bool, keyed: bool) -> np.dtype[np.void]:
    """The dtype of a round in the log; keys are stored as indices."""
    entry = JUDGED_ENTRY if judged else ENTRY
    return np.dtype([*entry.descr, ("key", "<i8")]) if keyed else entry


GROUP = 131_072  # rounds in a row group of the Parquet file

MAX_BUFFERED, MAX_BYTES = 1000, 1 << 22
"""Limits of the rejected records that are buffered in memory if there is no file for them."""


# --- rounds ---


def pack_rounds(rounds: Rounds) -> Array:
    """Pack rounds into entries of the log."""
    entries = np.empty(len(rounds), choose_entry(rounds.judged is not None, rounds.keys is not None))
    for name, values in zip(("row", *NUMBERS), rounds.arrays(), strict=True):
        entries[name] = values
    if rounds.keys is not None:
        entries["key"] = rounds.keys
    if rounds.judged is not None:
        for name, values in rounds.judged._asdict().items():
            entries[name] = values
    return entries


class RoundTable:
    """The file of rounds: labels and keys as texts, and the judgements of the belief, if the model has one."""

    def __init__(self, schema: Schema, keys: Sequence[str] = (), judged: bool = False, final: bool = False) -> None:
        self.entry = choose_entry(judged, schema.by is not None)
        self.fields = _make_fields(schema, judged, final)
        labels = pa.array(schema.labels, pa.string())
        self._texts = {field.name: labels for field in self.fields if field.type == pa.string()}
        self._texts |= {"key": pa.array(keys, pa.string())} if schema.by is not None else {}

    def make(self, entries: Array, final: dict[str, Array] | None = None) -> pa.RecordBatch:
        """Make a table from entries of the log and columns of the `final` verdict, by name."""
        final = final or {}
        columns = [
            _make_column(final[name] if name in final else _read_column(entries, name), self._texts.get(name))
            for name in self.fields.names
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.fields)

    @contextmanager
    def write(self, target: Path) -> Iterator[Write]:
        """A function that writes tables to a file: CSV or JSON lines by its suffix, otherwise Parquet."""
        writer = find_writer(target) or write_parquet
        options: dict[str, Any] = {}
        if writer is write_parquet:
            options = {"compression": "zstd", "compression_level": 1, "use_dictionary": list(self._texts)}
            options["write_page_checksum"] = True
        with replace_file(target) as file, writer(file, self.fields, **options) as write:
            yield write


def read_groups(log: Path, entry: np.dtype[np.void]) -> Iterator[Array]:
    """Read the entries of a log in groups of equal size, whatever the sizes of its blocks."""
    held, size = list[bytes](), GROUP * entry.itemsize
    for block in read_blocks(log):
        held.append(block)
        if sum(map(len, held)) >= size:
            data = b"".join(held)
            whole = len(data) - len(data) % size
            for at in range(0, whole, size):
                yield np.frombuffer(data[at : at + size], entry)
            held = [data[whole:]]
    if rest := b"".join(held):
        yield np.frombuffer(rest, entry)


def unpack_rounds(entries: Array, names: Sequence[str] = ()) -> Rounds:
    """Unpack rounds of a model with a belief from entries of the log; `names` are those of its keys, if any."""
    judged = Judged(*(np.ascontiguousarray(entries[name]) for name in Judged._fields))
    keys = np.ascontiguousarray(entries["key"]) if names else None
    numbers = (np.ascontiguousarray(entries[name]) for name in ("row", *NUMBERS))
    return Rounds(*numbers, keys=keys, names=names, judged=judged)


def _read_column(entries: Array, name: str) -> Array:
    if name == "clean_probability":
        return to_probability(entries["clean_log_odds"])
    return entries["margin" if name == "scale" else name]


def _make_fields(schema: Schema, judged: bool, final: bool) -> pa.Schema:
    target = pa.string() if schema.classifies else pa.float64()
    types = {"row": pa.int64(), "key": pa.string(), "suspect": pa.bool_()}
    types |= dict.fromkeys(("target", "prediction", "final_prediction"), target)
    names = ["row", *NUMBERS] if schema.by is None else ["row", "key", *NUMBERS]
    if not schema.classifies:
        names.remove("probability")
    if judged:
        names += ["clean_probability", "clean_log_odds"]
        names += ["margin", "suspect"] if schema.classifies else ["low", "high", "scale", "stuck", "suspect"]
    if final:
        names += ["final_prediction", "final_probability"]
        names += [] if schema.classifies else ["final_low", "final_high", "final_stuck"]
    return pa.schema([pa.field(name, types.get(name, pa.float64()), nullable=False) for name in names])


def _make_column(values: Array, texts: pa.Array | None) -> pa.Array:
    if texts is None:
        return pa.array(np.ascontiguousarray(values))
    return texts.take(pa.array(values.astype(np.int64)))


# --- rejected records ---


def format_rejected(bad: Bad) -> bytes:
    r"""Format a rejected record as one line of a quarantine file; a record that is not UTF-8 is encoded in base 64.

    >>> format_rejected(Bad(7, "prices.csv", "3 values where the header has 2", b"1,2,3"))
    b'{"row": 7, "file": "prices.csv", "reason": "3 values where the header has 2", "record": "1,2,3"}\n'
    >>> format_rejected(Bad(8, "prices.csv", "invalid UTF-8 at byte 1", b"\xff"))
    b'{"row": 8, "file": "prices.csv", "reason": "invalid UTF-8 at byte 1", "record_base64": "/w=="}\n'
    """
    content = {"row": bad.row, "file": bad.file, "reason": bad.reason}
    if bad.rows > 1:
        content["rows"] = bad.rows
    try:
        content["record"] = bad.raw.decode()
    except UnicodeDecodeError:
        content["record_base64"] = base64.b64encode(bad.raw).decode()
    # File names may contain bytes that are not UTF-8; escaped with a backslash they are valid JSON.
    return json.dumps(content, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def parse_rejected(text: bytes) -> Bad:
    """Parse a line of a quarantine file."""
    content = json.loads(text)
    encoded = content.get("record_base64")
    raw = content["record"].encode() if encoded is None else base64.b64decode(encoded)
    return Bad(content["row"], content["file"], content["reason"], raw, content.get("rows", 1))


class RejectedBuffer:
    """The first rejected records, in memory: at most `MAX_BUFFERED` records and `MAX_BYTES` bytes."""

    def __init__(self) -> None:
        self.records: list[Bad] = []
        self._size = 0

    def add(self, records: Iterable[Bad]) -> None:
        for bad in records:
            if len(self.records) >= MAX_BUFFERED:
                return
            size = len(format_rejected(bad))
            if self._size + size <= MAX_BYTES:
                self.records.append(bad)
                self._size += size

    def state(self) -> Array:
        """The lines, as an array of bytes."""
        return np.frombuffer(b"".join(map(format_rejected, self.records)), np.uint8)

    def restore(self, state: Array) -> None:
        self.records = [parse_rejected(text) for text in state.tobytes().split(b"\n")[:-1]]
        self._size = len(state)


class RunWriters:
    """Writes the rounds and the rejected records of a run.

    During the run the logs are in `folder`, or in a temporary folder next to the final files. If there is no file for
    rejected records, the first of them are buffered in memory. `state` is the result of `sync` in the checkpoint to
    resume from. `also` are further logs that the run needs.
    """

    def __init__(
        self,
        outputs: Outputs,
        folder: Path | None = None,
        state: dict[str, Any] | None = None,
        also: Iterable[str] = (),
    ) -> None:
        self._outputs, self._logs = outputs, dict[str, AppendLog]()
        self.buffer = RejectedBuffer()
        if state is not None:
            self.buffer.restore(state["rejected"])
        targets = {name: path for name in LOGS if (path := getattr(outputs, name, None)) is not None}
        wanted = [name for name in LOGS if name in targets or name in also]
        self._temporary: Path | None = None
        self._lock: int | None = None
        self._final: AppendLog | None = None
        try:
            if folder is None and (wanted or also):
                written = (path for path in (*targets.values(), outputs.suspects, outputs.model) if path is not None)
                folder = self._make_folder(next(written, Path(tempfile.gettempdir(), "redescend-run")).absolute())
            self._folder = folder
            for name in wanted:
                size = 0 if state is None else state["sizes"].get(name, 0)
                self._logs[name] = AppendLog(Path(folder or "", LOGS[name]), size)
        except BaseException:
            self.close()
            raise

    def _make_folder(self, target: Path) -> Path:
        """Make a locked folder beside the target."""
        remove_leftovers(target)
        while True:
            # Assigned before it is created, so that `close` removes it if this is interrupted.
            folder = self._temporary = name_part(target)
            ACTIVE.add(folder)
            folder.mkdir(0o700)
            with suppress(FileNotFoundError):
                self._lock = os.open(folder, os.O_RDONLY)
                if lock_created(folder, self._lock):
                    return folder
            self.close()

    def write(self, rounds: Rounds, rejected: Sequence[Bad]) -> None:
        """Append rounds and rejected records to the logs."""
        if "rounds" in self._logs:
            self._logs["rounds"].append(pack_rounds(rounds))
        if "quarantine" in self._logs:
            self._logs["quarantine"].append(b"".join(map(format_rejected, rejected)))
        else:
            self.buffer.add(rejected)

    def sync(self) -> dict[str, Any]:
        """Synchronize the logs to disk, and return their sizes and the buffered records for a checkpoint."""
        return {"sizes": {name: log.sync() for name, log in self._logs.items()}, "rejected": self.buffer.state()}

    def log_values(self, row: int, file: str, values: dict[str, Any]) -> None:
        """Append the values of a record to the log of values, if there is one."""
        if "values" in self._logs:
            text = json.dumps([row, file, values], ensure_ascii=False)
            self._logs["values"].append(text.encode("utf-8", "backslashreplace") + b"\n")

    @property
    def has_values(self) -> bool:
        """Whether there is a log of values."""
        return "values" in self._logs

    def read_log(self, name: str) -> Path:
        """Flush a log, and return its path."""
        self._logs[name].flush()
        return self._logs[name].path

    def start_final_log(self) -> AppendLog:
        """Start the log of another pass, which replaces that of the pass before."""
        if self._final is not None:
            self._final.close()
        log = AppendLog(Path(self._folder or "", FINAL))
        self._final = log
        return log

    def write_final_files(self, schema: Schema, keys: Sequence[str] = (), judged: bool = False) -> None:
        """Write the final files from the logs; `judged` if the model has a belief."""
        self.write_quarantine()
        if self._outputs.rounds is not None:
            table = RoundTable(schema, keys, judged)
            with table.write(self._outputs.rounds) as write:
                for entries in read_groups(self.read_log("rounds"), table.entry):
                    write(table.make(entries))

    def write_quarantine(self) -> None:
        """Write the quarantine from its log."""
        outputs = self._outputs
        if outputs.quarantine is None:
            return
        log = self.read_log("quarantine")
        if outputs.keep_empty_quarantine or log.stat().st_size:
            with replace_file(outputs.quarantine) as file:
                file.writelines(read_blocks(log))

    def close(self) -> None:
        """Close the logs; those of a checkpoint stay."""
        with ExitStack() as stack:
            if self._temporary is not None:
                if self._lock is not None:
                    stack.callback(os.close, self._lock)
                    self._lock = None
                stack.callback(ACTIVE.discard, self._temporary)
                stack.callback(shutil.rmtree, self._temporary, ignore_errors=True)
            for log in (*self._logs.values(), *([] if self._final is None else [self._final])):
                stack.callback(log.close)

    def discard(self) -> None:
        """Remove the logs of a finished run."""
        self.close()
        if self._folder is not None:
            for name in (*LOGS.values(), FINAL):
                (self._folder / name).unlink(missing_ok=True)
