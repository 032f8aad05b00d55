"""Snapshots of a served model, and how it comes back: the last snapshot, and then the journal behind it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from redescend.checkpoint import load, save
from redescend.errors import DataError
from redescend.serve.journal import Fsync, Place
from redescend.serve.model import ServedModel
from redescend.serve.requests import Counts, Remembered
from redescend.serve.settings import Limits, ModelSettings
from redescend.serve.statistics import RecentRounds, Statistics
from redescend.sources.journal import SCHEMA
from redescend.state import CORRUPT
from redescend.streaming import ModelStore, StreamModel
from redescend.streaming.encoding.schema import Schema

CONFIG, START, SNAPSHOT = "config.json", "start.safetensors", "snapshot.safetensors"
VERSION = 3  # raised whenever the content of snapshots changes; those of other versions are refused
NO_ROUNDS = np.empty((len(RecentRounds._fields), 0))
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
            keys = {key: Remembered(*remembered) for key, *remembered in content["keys"]}
            whole = [*vars(counts).values(), *place, *(number for each in keys.values() for number in each)]
            if all(type(number) is int and number >= 0 for number in whole) and counts.learned == statistics.learned:
                model.serve(learned, statistics, counts)
                model.keys.update(keys)
                # Snapshots of earlier versions have neither.
                model.newest.extend(json.loads(content.get("suspects", "[]")))
                model.recent.restore(content.get("recent", NO_ROUNDS))
                return place
    raise DataError(f"The snapshot '{path}': {CORRUPT}.")


def _begin(model: ServedModel) -> None:
    """Begin with the model file or the schema that was given, if any."""
    start = model.folder / START
    if start.exists():
        model.serve(load(start))
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
