"""The models of a server, each in a folder of its own below the data folder, which belongs to one server at a time.

A model comes back from its last snapshot, and then the journal behind it.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from redescend.checkpoint import load, save
from redescend.errors import DataError, ParameterError, RedescendError, quote
from redescend.files import lock_unless_in_use, replace_file, sync_folder
from redescend.registry import snake_case
from redescend.serve.journal import Fsync, Place
from redescend.serve.logs import FIELDS, LOGGER
from redescend.serve.model import ServedModel
from redescend.serve.replies import Conflict, ContentTooLarge, NotFound, ServiceUnavailable
from redescend.serve.requests import CommittedRequest, Counts
from redescend.serve.settings import Limits, ModelSettings, check_name
from redescend.serve.statistics import Statistics
from redescend.serve.writer import Writer
from redescend.sources.journal import SCHEMA
from redescend.state import CORRUPT
from redescend.streaming import ModelStore, StreamModel
from redescend.streaming.encoding.schema import Schema

CONFIG, START, SNAPSHOT = "config.json", "start.safetensors", "snapshot.safetensors"
VERSION = 4  # raised whenever the content of snapshots changes; those of other versions are refused
SEGMENT = 64 << 20  # bytes after which a snapshot begins another segment
REPLAYED = 10_000  # records to learn from at a time when a journal is replayed


def begin_snapshot(model: ServedModel, *, keep: bool = False, segment: int = SEGMENT) -> Callable[[], None]:
    """Note, between two commits, what a model with a schema is, so that the journal before need not be replayed.

    If the segment is long, another one begins. Returns a function that writes the snapshot, and removes earlier
    segments unless `keep` is true. Until that is done, only an `overlapping` model may begin commits: any other would
    soon learn in the copy that is being written.
    """
    model.journal.sync()
    place = model.journal.end if model.journal.end.offset < segment else model.journal.rotate()
    with model.read() as learned:
        content = {
            "version": VERSION,
            "model": learned,
            "place": list(place),
            "counts": list(vars(model.counts).values()),
            "statistics": model.statistics.state(),
            "keys": [[key, *remembered] for key, remembered in model.keys.items()],
            "suspects": json.dumps(model.list_suspects()[::-1]),
            "recent": np.stack(model.read_recent()),
        }

    def write() -> None:
        save(content, model.folder / SNAPSHOT)
        if not keep:
            model.journal.remove_before(place.segment)

    return write


def open_model(folder: Path, limits: Limits, fsync: Fsync) -> ServedModel:
    """The model in a folder, with every record that was acknowledged."""
    settings = ModelSettings.parse(_read_config(folder / CONFIG))
    model = ServedModel(folder.name, folder, settings, limits, fsync)
    snapshot = folder / SNAPSHOT
    place = None
    if snapshot.exists():
        place = _restore(model, snapshot)
    else:
        _begin(model)
    model.saved = model.counts.records
    _replay(model, place)
    return model


def _read_config(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise DataError(f"'{path}' cannot be read: {error}.") from None


def _restore(model: ServedModel, path: Path) -> Place:
    content = load(path)
    with suppress(Exception):
        learned = content["model"]
        if content["version"] == VERSION and isinstance(learned, StreamModel | ModelStore):
            statistics = Statistics(learned.schema, model.config.transform)
            statistics.restore(content["statistics"])
            counts, place = Counts(*content["counts"]), Place(*content["place"])
            keys = {key: CommittedRequest(*request) for key, *request in content["keys"]}
            whole = [*vars(counts).values(), *place, *(number for each in keys.values() for number in each)]
            if all(type(number) is int and number >= 0 for number in whole) and counts.learned == statistics.learned:
                model.serve(learned, statistics, counts)
                model.earlier = learned.distinct_records - counts.learned
                model.keys.update(keys)
                model.newest.extend(json.loads(content["suspects"]))
                model.recent.restore(content["recent"])
                return place
    raise DataError(f"The snapshot '{path}': {CORRUPT}.")


def _begin(model: ServedModel) -> None:
    """Begin with the model file or the schema that was given, if any."""
    start = model.folder / START
    if start.exists():
        learned = load(start)
        model.serve(learned)
        model.earlier = learned.distinct_records
    elif model.settings.schema is not None:
        model.serve(model.make_model(model.settings.schema))


def _replay(model: ServedModel, place: Place | None) -> None:
    records: list[bytes] = []
    for frame in model.journal.replay(place):
        if frame.kind == SCHEMA:
            if model.schema is None:
                # Exactly as it was decided then.
                model.serve(model.make_model(Schema.from_dict(json.loads(frame.payload)["schema"])))
                records, model.pending = model.pending, []
            continue
        if len(records) >= REPLAYED:
            model.learn(records)
            records = []
        model.keys.add(frame.requests, model.counts.records + len(records) + len(model.pending))
        if model.schema is None:
            model.pending += frame.records()
            continue
        records += frame.records()
    if records:
        model.learn(records)
    if model.schema is None and len(model.pending) >= model.settings.first:
        model.start()
    elif model.schema is not None and model.journal.declared is None:
        model.declare(model.schema)


THREADS = 4  # threads that learn and take snapshots, each for one model at a time
RECENT = 1.0  # seconds after a prediction in which others are expected


class ModelFolder:
    """The models of a server in its data folder `path`, which is created if it does not exist.

    A model has a snapshot every `every` records. `keep` keeps its whole journal, so that `redescend fit` can read it
    from the first record.
    """

    def __init__(
        self, path: Path, limits: Limits, fsync: Fsync = Fsync.ALWAYS, *, every: int = 100_000, keep: bool = False
    ) -> None:
        self.path, self.limits, self.fsync = path, limits, fsync
        self._every, self._keep = every, keep
        self.writers: dict[str, Writer] = {}
        self.read_at = float("-inf")  # when a client has predicted last
        self.broken: dict[str, str] = {}  # models that could not be opened, and why
        self._executor = ThreadPoolExecutor(THREADS, thread_name_prefix="commit")
        try:
            (path / "models").mkdir(parents=True, exist_ok=True)
            self._lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise DataError(
                f"The folder '{path}' cannot be used for models ({error.strerror}); name another."
            ) from None
        if not lock_unless_in_use(self._lock):
            os.close(self._lock)
            raise DataError(f"The folder '{path}' is in use by another server; stop that, or name another folder.")

    def open_all(self) -> None:
        """Open every model of the folder. One that is damaged is reported, and the others are served."""
        for folder in sorted((self.path / "models").iterdir()):
            if folder.name.startswith("."):
                shutil.rmtree(folder, ignore_errors=True)  # created or deleted in part
            elif folder.is_dir():
                try:
                    self._open(folder)
                except (RedescendError, OSError) as error:
                    about_folder = {FIELDS: {"model": folder.name}}
                    LOGGER.error("The model '%s' is not served: %s", folder.name, error, extra=about_folder)
                    self.broken[folder.name] = str(error)

    def _open(self, folder: Path) -> ServedModel:
        model = open_model(folder, self.limits, self.fsync)
        self.writers[model.name] = Writer(model, self._executor, self._is_due, self._snapshot, self._is_read)
        return model

    def writer(self, name: str) -> Writer:
        """The writer of a model."""
        found = self.writers.get(name)
        if found is None:
            if name in self.broken:
                raise ServiceUnavailable(f"The model {quote(name)} could not be opened: {self.broken[name]}")
            raise NotFound(f"There is no model {quote(name)}; GET /v2/models lists all.")
        return found

    def create(self, name: str, content: Any = None, start: bytes | None = None) -> ServedModel:
        """Create a model from its settings, or from a model file: `start`."""
        check_name(name)
        if name in self.writers or name in self.broken:
            raise Conflict(f"There is a model {quote(name)} already; delete it first, or choose another name.")
        if len(self.writers) >= self.limits.models:
            raise ContentTooLarge(f"There are {len(self.writers):,} models, as many as the server takes.")
        part = self.path / "models" / f".{secrets.token_hex(8)}"
        part.mkdir()
        try:
            if start is not None:
                (part / START).write_bytes(start)
                content = _describe_start(part / START)
            ModelSettings.parse(content)
            for file in (CONFIG, *([] if start is None else [START])):
                with replace_file(part / file) as out:
                    out.write(json.dumps(content).encode() if file == CONFIG else start or b"")
            folder = self.path / "models" / name
            os.rename(part, folder)
            sync_folder(folder.parent)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
        model = self._open(folder)
        LOGGER.info("Created the model '%s'.", name, extra=about(model))
        return model

    async def delete(self, name: str) -> None:
        """Delete a model with its journal."""
        if name in self.writers:
            writer = self.writers.pop(name)
            await writer.close()
            writer.model.journal.close()
        elif self.broken.pop(name, None) is None:
            raise NotFound(f"There is no model {quote(name)}; GET /v2/models lists all.")
        gone = self.path / "models" / f".{secrets.token_hex(8)}"
        os.rename(self.path / "models" / name, gone)
        sync_folder(gone.parent)
        LOGGER.info("Deleted the model '%s'.", name, extra={FIELDS: {"model": name}})
        await asyncio.to_thread(shutil.rmtree, gone, ignore_errors=True)

    def count_unsaved(self, model: ServedModel) -> int:
        """Records of a model since its last snapshot, which a start has to learn from again."""
        return model.counts.records - model.saved

    async def sync(self) -> None:
        """Synchronize the journals: every second, with `Fsync.INTERVAL`."""
        for writer in list(self.writers.values()):
            try:
                await asyncio.to_thread(writer.model.journal.sync)
            except OSError as error:
                text, model = "The journal of '%s' cannot be synchronized: %s", writer.model
                LOGGER.error(text, model.name, error, extra=about(model))

    async def close(self) -> None:
        """Finish what waits, write a snapshot of every model that has learned, and release the folder."""
        for writer in list(self.writers.values()):
            await writer.close()
            if self.count_unsaved(writer.model):
                await asyncio.to_thread(self._write_last, writer.model)
            await asyncio.to_thread(writer.model.journal.sync)
            writer.model.journal.close()
        self._executor.shutdown()
        os.close(self._lock)

    def _is_due(self, model: ServedModel) -> bool:
        """Whether a snapshot is due."""
        many = self.count_unsaved(model) >= self._every or model.journal.end.offset >= SEGMENT
        return many and model.schema is not None

    def _is_read(self) -> bool:
        """Whether a client has predicted of late."""
        return time.monotonic() < self.read_at + RECENT

    def _snapshot(self, model: ServedModel) -> Callable[[], None] | None:
        """Begin a snapshot; returns a function that writes it, unless it failed."""
        try:
            write = begin_snapshot(model, keep=self._keep)
        except (RedescendError, OSError) as error:
            _log_failure(model, error)
            return None
        return partial(self._write, model, model.counts.records, write)

    def _write(self, model: ServedModel, records: int, write: Callable[[], None]) -> None:
        try:
            write()
        except (RedescendError, OSError) as error:
            _log_failure(model, error)
        else:
            model.saved = records
            LOGGER.info("Snapshot of '%s' at record %d.", model.name, records, extra=about(model))

    def _write_last(self, model: ServedModel) -> None:
        if (write := self._snapshot(model)) is not None:
            write()


def _log_failure(model: ServedModel, error: Exception) -> None:
    """Log that a snapshot failed: the journal has everything."""
    LOGGER.error("The snapshot of '%s' was not written: %s", model.name, error, extra=about(model))


def about(model: ServedModel) -> dict[str, Any]:
    """What the log says of a model besides its message."""
    return {FIELDS: {"model": model.name, "records": model.counts.records + len(model.pending)}}


def _describe_start(path: Path) -> dict[str, Any]:
    """The settings of a model that begins with a model file."""
    try:
        model = load(path)
    except DataError as error:
        # The client knows no folder of the server.
        raise DataError(str(error).replace(f"'{path}'", "The model file", 1)) from None
    if not isinstance(model, StreamModel | ModelStore):
        raise DataError(f"A {type(model).__name__} cannot be served; fit a model with redescend fit.")
    params = model.get_params()
    if params["step"] is not None:
        raise ParameterError("A model with a step of its own cannot be served.")
    settings = {"target": model.schema.target, "by": model.schema.by, "order": params["order"]}
    settings["linear"] = params["features"] == "linear"
    return settings | {name: _name_component(params[name]) for name in ("loss", "transform")}


def _name_component(part: Any) -> str | None:
    """A loss or a transform as a text that its registry parses."""
    if part is None or isinstance(part, str):
        return part
    name = type(part).__name__
    return snake_case(name) + repr(part).removeprefix(name)
