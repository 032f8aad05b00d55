"""What is in a model file, in plain words."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from redescend.checkpoint import container, load
from redescend.engines import SelfTuningEngine
from redescend.streaming.importance import drives
from redescend.streaming.keyed import ModelStore
from redescend.streaming.report.formatting import counted, number, percent
from redescend.streaming.summary.suspects import shortened

if TYPE_CHECKING:
    from redescend.streaming.encoding.features import Feature
    from redescend.streaming.encoding.schema import Schema
    from redescend.streaming.model import StreamModel

SHOWN = 8
"""Of levels and labels so many are named; of columns that drive the prediction too."""


def describe(model: StreamModel | ModelStore) -> dict[str, str | list[str]]:
    """What a model is, has learned and looks at: a heading and what is to be said under it, a line or some.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from redescend.sources import open_source
    >>> from redescend.streaming.model import StreamModel
    >>> from redescend.streaming.encoding.schema import Schema
    >>> source = open_source(pa.table({"size": np.arange(50.0), "price": 3.0 * np.arange(50.0)}))
    >>> said = describe(StreamModel(Schema.decide(source.sample, source.kinds, "price")))
    >>> said["Task"], said["Columns"]
    ("predicts the number 'price' (regression)", ["'size': a number"])
    """
    said: dict[str, str | list[str]] = {"Learned from": counted(model.records)}
    if isinstance(model, ModelStore):
        said["Keys"] = f"{counted(len(model), 'model')}, one for each {model.schema.by!r}: {_listed(model.keys)}"
        said["How"] = _how(model._blank)
    else:
        said |= {"How": _how(model), **_noise(model)}
        if model.records:
            said["Strongest columns"] = [_drive(*drive) for drive in drives(model)[:SHOWN]]
    of_columns = describe_schema(model.schema)
    columns = {heading: of_columns.pop(heading) for heading in ("Columns", "Left out") if heading in of_columns}
    return of_columns | said | columns


def describe_schema(schema: Schema) -> dict[str, str | list[str]]:
    """What is predicted from what."""
    said: dict[str, str | list[str]] = {"Task": _task(schema)}
    if schema.classifies:
        said["Labels"] = _listed(schema.labels)
    if schema.by is not None:
        said["Keys"] = f"one model for each value of {schema.by!r}"
    said["Columns"] = [f"{feature.name!r}: {_feature(feature)}" for feature in schema.features]
    if schema.left_out:
        said["Left out"] = [f"{name!r}: {reason}" for name, reason in schema.left_out]
    return said


def inspect(path: str | os.PathLike[str]) -> dict[str, str | list[str]]:
    """What is in a file that `redescend.save` wrote: of the file first, then of the model in it."""
    model = load(path)
    content = Path(path).read_bytes()
    size = int.from_bytes(content[: container.LENGTH], "little")
    header = json.loads(content[container.LENGTH : container.LENGTH + size])
    written = json.loads(header["__metadata__"][container.KEY])
    file = f"{path}: {_bytes(len(content))}, format {written['format']}, written by redescend {written['library']}"
    said: dict[str, str | list[str]] = {"File": file}
    return said | (describe(model) if hasattr(model, "schema") else {"Model": repr(model)})


def _task(schema: Schema) -> str:
    what = {"number": "number", "boolean": "truth", "date": "date", "text": "text"}[str(schema.kind.value).lower()]
    if schema.classifies:
        return f"predicts which of {len(schema.labels)} labels {schema.target!r} has (classification)"
    how = ", in days since 1970-01-01," if what == "date" else ""
    return f"predicts the {what} {schema.target!r}{how} (regression)"


def _listed(texts: list[str]) -> str:
    shown = ", ".join(repr(shortened(text)) for text in texts[:SHOWN])
    return shown if len(texts) <= SHOWN else f"{shown} and {len(texts) - SHOWN} more"


def _feature(feature: Feature) -> str:
    said = {
        "number": "a number",
        "boolean": "true or false",
        "date": "a date, in days since 1970-01-01",
        "levels": f"one of {len(feature.levels)} texts: {_listed(feature.levels)}; others are hashed",
        "hashed": "texts, hashed",
    }[feature.how]
    return f"{said}; whether it is missing counts too" if feature.missing else said


def _how(model: StreamModel) -> str:
    loss, order, transform, step = model._settings
    if transform is None:
        return f"{loss}, self-tuning, order {order}: scale, step and share of outliers follow the stream"
    return f"{loss} behind a fixed gate, {transform}, with {'a step of its own' if step is None else step}"


def _noise(model: StreamModel) -> dict[str, str]:
    """What a self-tuning model thinks of the stream."""
    engine = model._engine
    if not model.records or not isinstance(engine, SelfTuningEngine):
        return {}
    scales, shares = engine.estimate_noise()
    # Of numbers the share of outliers is how tight the gate is, and no frequency.
    if model.schema.classifies:
        return {"Clean-looking share": f"about {percent(1.0 - float(shares.mean()))} of the labels"}
    return {"Noise scale": f"about {number(float(scales[0]))}: how far clean records are from their predictions"}


def _drive(column: str, share: float, way: str) -> str:
    return f"{column!r}: {percent(share)} of what moves the prediction{f' ({way})' if way else ''}"


def _bytes(size: int) -> str:
    """A size as a person says it.

    Examples
    --------
    >>> _bytes(900), _bytes(20_480), _bytes(5_000_000)
    ('900 bytes', '20.0 KiB', '4.8 MiB')
    """
    if size < 1024:
        return f"{size} bytes"
    return f"{size / 1024:.1f} KiB" if size < 1024**2 else f"{size / 1024**2:.1f} MiB"
