"""Finished tasks in a folder, one Parquet file each, never incomplete.

A file holds its task's experiment, settings, key and seconds, and a digest of these and of its rows. A file that does
not match its digest or its task is moved to another folder and never read as a result.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as parquet

from redescend.errors import DataError, ParameterError
from redescend.experiments.tasks import SCHEMA, Task
from redescend.files import PART, replace_file

_NAME = re.compile(r".+-[0-9a-f]{24}\.parquet")
# Another process may be writing to the same folder; its unfinished files are younger than this.
_STALE_SECONDS = 60.0


class Store:
    """The finished tasks in a folder.

    The folder is created if it does not exist. Tasks are in `folder/tasks`; rejected files are moved to
    `folder/set-aside`, each with a sentence in `quarantined`.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.quarantined: list[str] = []
        self._tasks = self.folder / "tasks"
        self._seconds: dict[str, float] = {}
        try:
            self._tasks.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self._tasks).close()
        except OSError as error:
            blocking = next((place for place in (self._tasks, *self._tasks.parents) if os.path.isfile(place)), None)
            if blocking is not None:
                raise ParameterError(f"Results need a folder, but '{blocking}' is a file.") from None
            raise ParameterError(f"Results cannot be written to '{self.folder}': {error.strerror}.") from None
        self._clean_up()

    def load(self, task: Task) -> pa.Table | None:
        """Rows of a finished task, or None."""
        path = self._task_path(task)
        if not os.path.lexists(path):
            return None
        try:
            rows, self._seconds[task.key] = _read_task(path, task)
        except DataError as reason:
            self._quarantine(path, str(reason))
            return None
        return rows

    def seconds(self, task: Task) -> float | None:
        """Seconds that a finished task took, or None."""
        if task.key not in self._seconds:
            self.load(task)
        return self._seconds.get(task.key)

    def save(self, task: Task, table: pa.Table, seconds: float) -> None:
        """Store the rows of a finished task."""
        if not isinstance(table, pa.Table) or not table.schema.equals(SCHEMA):
            what = table.schema.names if isinstance(table, pa.Table) else table
            raise ParameterError(
                f"The rows of {task} must be a table with the columns of SCHEMA. Got {what!r} instead."
            )
        metadata = _describe_task(task) | {"seconds": repr(float(seconds))}
        metadata["digest"] = _digest_task(metadata, table)
        with replace_file(self._task_path(task)) as file:
            parquet.write_table(table.replace_schema_metadata(metadata), file, compression="zstd")
        self._seconds[task.key] = float(seconds)

    def missing(self, tasks: Iterable[Task]) -> list[Task]:
        """The tasks that are not finished, without duplicates, in the given order."""
        return [task for task in dict.fromkeys(tasks) if self.load(task) is None]

    def read_rows(self, tasks: Iterable[Task]) -> pa.Table:
        """The rows of the finished tasks, in the given order."""
        parts = [rows for rows in map(self.load, tasks) if rows is not None]
        return pa.concat_tables(parts).combine_chunks() if parts else SCHEMA.empty_table()

    def export(self, tasks: Iterable[Task]) -> list[Path]:
        """Write the tidy table as `results.parquet` and `results.csv`."""
        rows = self.read_rows(tasks)
        paths = [self.folder / "results.parquet", self.folder / "results.csv"]
        with replace_file(paths[0]) as file:
            parquet.write_table(rows, file, compression="zstd")
        with replace_file(paths[1]) as file:
            csv.write_csv(rows, file)
        return paths

    def _task_path(self, task: Task) -> Path:
        return self._tasks / f"{task.experiment}-{task.key}.parquet"

    def _clean_up(self) -> None:
        for part in [*self.folder.glob(f".*{PART}"), *self._tasks.glob(f".*{PART}")]:
            if part.is_file() and time.time() - part.stat().st_mtime > _STALE_SECONDS:
                part.unlink(missing_ok=True)
        for path in sorted(self._tasks.iterdir()):
            if not _NAME.fullmatch(path.name) and path.suffix != PART:
                self._quarantine(path, "it is not the file of a task")

    def _quarantine(self, path: Path, reason: str) -> None:
        aside = self.folder / "set-aside"
        aside.mkdir(exist_ok=True)
        target, number = aside / path.name, 1
        while os.path.lexists(target):
            number += 1
            target = aside / f"{path.stem}.{number}{path.suffix}"
        path.rename(target)
        self.quarantined.append(f"'{path}' was moved to '{target}' because {reason}.")


def _read_task(path: Path, task: Task) -> tuple[pa.Table, float]:
    # Reading something else, such as a pipe, might never end.
    if not path.is_file():
        raise DataError("it is not a plain file")
    try:
        stored = parquet.ParquetFile(pa.BufferReader(path.read_bytes())).read(use_threads=False)
        metadata = {name.decode(): value.decode() for name, value in (stored.schema.metadata or {}).items()}
    except Exception:  # a damaged file fails in more ways than the reader documents
        raise DataError("it cannot be read as Parquet") from None
    if not stored.schema.equals(SCHEMA):
        raise DataError("its columns are not those of a task")
    digest = metadata.pop("digest", None)
    if any(metadata.get(name) != value for name, value in _describe_task(task).items()):
        raise DataError(f"it does not hold {task}")
    if digest is None or digest != _digest_task(metadata, stored):
        raise DataError("its digest does not match its contents")
    return stored.replace_schema_metadata(None), float(metadata["seconds"])


def _describe_task(task: Task) -> dict[str, str]:
    return {"experiment": task.experiment, "settings": json.dumps(dict(task.settings)), "key": task.key}


def _digest_task(metadata: dict[str, str], table: pa.Table) -> str:
    """A digest of the metadata and the values, since a file cannot hold a digest of itself."""
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name, column in zip(table.schema.names, table.columns, strict=True):
        text = pa.types.is_string(column.type)
        content = json.dumps(column.to_pylist()).encode() if text else column.to_numpy().tobytes()
        digest.update(f"{name} {len(content)} ".encode() + content)
    return digest.hexdigest()
