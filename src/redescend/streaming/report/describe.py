"""Descriptions in plain words of schemas, models and model files, and for notebooks as tables in HTML."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redescend.checkpoint import load, read_metadata
from redescend.engines import NonlinearEngine, SelfTuningEngine
from redescend.engines.config import ModelConfig
from redescend.errors import join_first
from redescend.streaming.encoding.features import Feature
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.importance import rank_features
from redescend.streaming.keyed import ModelStore
from redescend.streaming.model import StreamModel
from redescend.streaming.report import formatting
from redescend.streaming.summary.records import shorten

if TYPE_CHECKING:
    from redescend.streaming.run import Run

MAX_LISTED = 8  # the most levels, labels, keys and important columns to list

Facts = dict[str, str | list[str]]


def describe(model: StreamModel | ModelStore) -> Facts:
    """Describe a model: headings, and a line or a list of lines for each."""
    facts: Facts = {"Learned from": _describe_records(model)}
    if isinstance(model, ModelStore):
        count = formatting.format_count(len(model), "model")
        facts["Keys"] = f"{count}, one per {model.schema.by!r}: {_list(model.keys)}"
    facts["Method"] = _describe_method(_effective_config(model), model.schema.dim)
    if not isinstance(model, ModelStore) and model.records:
        facts |= _describe_noise(model) | _describe_members(model)
        facts["Most important columns"] = [
            f"{name!r}: {formatting.format_percent(share)}{f' ({direction})' if direction else ''}"
            for name, share, direction in rank_features(model)[:MAX_LISTED]
        ]
    schema = describe_schema(model.schema)
    columns = {heading: schema.pop(heading) for heading in ("Columns", "Notes", "Excluded") if heading in schema}
    return schema | facts | columns


def describe_schema(schema: Schema) -> Facts:
    """Describe a schema: its task, its columns and those that are excluded."""
    facts: Facts = {"Task": _describe_task(schema)}
    if schema.classifies:
        facts["Labels"] = _list(schema.labels)
        if schema.added:
            facts["Labels added later"] = _list_added(schema)
    if schema.by is not None:
        facts["Keys"] = f"one model per value of {schema.by!r}"
    facts["Columns"] = [f"{feature.name!r}: {_describe_feature(feature, schema)}" for feature in schema.features]
    if schema.notes:
        facts["Notes"] = [f"{name!r}: {text}" for name, text in schema.notes]
    if schema.excluded:
        facts["Excluded"] = [f"{name!r}: {reason}" for name, reason in schema.excluded]
    return facts


def inspect(path: str | os.PathLike[str]) -> Facts:
    """Describe a file that `redescend.save` wrote, and the model in it."""
    model, size, written = _read_file(path)
    version = f"format {written['format']}, written by redescend {written['library']}"
    facts: Facts = {"File": f"{path}: {format_size(size)}, {version}"}
    return facts | (describe(model) if hasattr(model, "schema") else {"Model": repr(model)})


def inspect_as_data(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Describe a file as `inspect`, by numbers, texts and lists."""
    model, size, written = _read_file(path)
    file = {"file": str(path), "bytes": size, "format": written["format"], "version": written["library"]}
    return file | (describe_as_data(model) if hasattr(model, "schema") else {"model": repr(model)})


def _read_file(path: str | os.PathLike[str]) -> tuple[Any, int, dict[str, Any]]:
    """The model in a file, the size of the file in bytes, and its versions."""
    model = load(path)
    content = Path(path).read_bytes()
    return model, len(content), read_metadata(content)


def describe_as_data(model: StreamModel | ModelStore) -> dict[str, Any]:
    """Describe a model by numbers, texts and lists."""
    schema, config = model.schema, _effective_config(model)
    single = None if isinstance(model, ModelStore) else model
    ranked = {one.column: one for one in rank_features(single)} if single is not None and single.records else {}
    columns = []
    for feature in schema.features:
        one = ranked.get(feature.name)
        known: dict[str, Any] = {
            "name": feature.name,
            "type": feature.kind.value,
            "encoding": feature.how,
            "levels": feature.levels,
        }
        known |= {"unit": schema.units[feature.name]} if feature.name in schema.units else {}
        known |= {"of": feature.of, "lag": feature.lag} if feature.lag else {}
        columns.append(known | {"importance": one and one.share, "direction": one and one.direction})
    data = {
        "target": schema.target,
        "task": schema.task,
        "labels": schema.labels,
        "labels_added": [{"label": label, "row": row} for label, row in schema.added],
        "records": model.distinct_records,
        "passes": _count_passes(model),
        "loss": repr(config.loss),
        "transform": None if config.transform is None else repr(config.transform),
        "order": None if config.transform is not None else config.choose_order(schema.dim),
        "by": schema.by,
        "keys": model.keys,
        "columns": columns,
        "notes": [{"name": name, "text": text} for name, text in schema.notes],
        "excluded": [{"name": name, "reason": reason} for name, reason in schema.excluded],
    }
    if single is not None and isinstance(single.engine, SelfTuningEngine) and single.records:
        scales, shares = single.engine.estimate_noise()
        data["clean_labels" if schema.classifies else "noise_scale"] = (
            1.0 - float(shares.mean()) if schema.classifies else float(scales[0])
        )
    return data


def _count_passes(model: StreamModel | ModelStore) -> float:
    """How often the model has learned from each record, on average."""
    passes = model.records / max(model.distinct_records, 1)
    return int(passes) if passes.is_integer() else passes


def _describe_records(model: StreamModel | ModelStore) -> str:
    records, passes = formatting.format_count(model.distinct_records), _count_passes(model)
    if model.records == model.distinct_records:
        return records
    return f"{records}, in {passes} passes" if passes in range(100) else f"{records}, some of them several times"


def _describe_task(schema: Schema) -> str:
    if schema.classifies:
        return f"classification of {schema.target!r} with {formatting.format_count(len(schema.labels), 'label')}"
    kind = str(schema.kind.value).lower()
    unit = " in days since 1970-01-01" if kind == "date" else ""
    unit = f", in {schema.units[schema.target]}" if schema.target in schema.units else unit
    return f"regression of the {kind} {schema.target!r}{unit}"


def _list(texts: list[str]) -> str:
    return join_first([repr(shorten(text)) for text in texts], MAX_LISTED)


def _list_added(schema: Schema) -> str:
    return join_first([f"{shorten(label)!r} (row {row:,})" for label, row in schema.added], MAX_LISTED)


def _describe_feature(feature: Feature, schema: Schema) -> str:
    column, units = feature.of or feature.name, schema.units
    form = f", read as {schema.notations[column]}" if column in schema.notations else ""
    *cycles, last = [f"the {cycle}" for cycle in feature.levels] or [""]
    cycle = f", with {' and '.join([', '.join(cycles), last] if cycles else [last])}" if last else ""
    encoding = {
        "number": f"number, in {units[column]}" if column in units else "number",
        "boolean": "true or false",
        "date": f"date{form}, in days since 1970-01-01{cycle}",
        "levels": f"text with {formatting.format_count(len(feature.levels), 'value')}: {_list(feature.levels)}",
        "hashed": "text, hashed",
    }[feature.how]
    if feature.lag:
        where = "record before" if feature.lag == 1 else f"record {feature.lag:,} before"
        return f"{'the label' if feature.how == 'levels' else encoding} of the {where}"
    return f"{encoding}; with a missing-value indicator" if feature.missing else encoding


def _effective_config(model: StreamModel | ModelStore) -> ModelConfig:
    """The settings of a model; models of keys have no trees."""
    return model.config if model.schema.by is None else replace(model.config, features="linear")


def _describe_method(config: ModelConfig, dim: int) -> str:
    if config.transform is None:
        method = f"{config.loss}, self-tuning of order {config.choose_order(dim)}"
        return f"{method}, with trees" if config.has_trees(dim) else method
    step = "the default step" if config.step is None else config.step
    return f"{config.loss} with the fixed gate {config.transform} and {step}"


def _describe_noise(model: StreamModel) -> dict[str, str]:
    """Describe the noise that a self-tuning model has estimated."""
    if not isinstance(model.engine, SelfTuningEngine | NonlinearEngine):
        return {}
    scales, shares = model.engine.estimate_noise()
    # In regression the share of outliers tunes the gate and is not a frequency.
    if model.schema.classifies:
        return {"Clean labels": f"about {formatting.format_percent(1.0 - float(shares.mean()))}"}
    return {"Noise scale": f"about {formatting.format_number(float(scales[0]))} (typical error of clean records)"}


def _describe_members(model: StreamModel) -> dict[str, str]:
    """The weights of the members of a model with trees."""
    if not isinstance(model.engine, NonlinearEngine):
        return {}
    shares = {name: float(weights.mean()) for name, weights in model.engine.member_weights().items()}
    ordered = sorted(shares.items(), key=lambda share: -share[1])
    return {"Weights of members": ", ".join(f"{name} {formatting.format_percent(share)}" for name, share in ordered)}


def format_size(size: int) -> str:
    """Format a number of bytes.

    >>> format_size(900), format_size(20_480), format_size(5_000_000)
    ('900 bytes', '20.0 KiB', '4.8 MiB')
    """
    if size < 1024:
        return f"{size} bytes"
    return f"{size / 1024:.1f} KiB" if size < 1024**2 else f"{size / 1024**2:.1f} MiB"


def _cut_list(lines: list[str], most: int | None) -> list[str]:
    """The first lines, and one that says how many more there are."""
    shown = lines[:most]
    return [*shown, f"and {len(lines) - len(shown)} more"] if len(shown) < len(lines) else shown


def format_facts(facts: Facts, most: int | None = None) -> Iterator[str]:
    """Format headings and their content as lines; a list is cut after `most` lines."""
    for heading, content in facts.items():
        if isinstance(content, str):
            yield f"{heading}: {content}"
        else:
            yield f"{heading}:"
            yield from (f"  {line}" for line in _cut_list(content, most))


# --- tables for notebooks ---

SHOWN = 5  # columns of suspects that are shown besides their targets


def render_model(model: Any) -> str:
    """Render a stream model, or a store of them, as a table of facts."""
    facts = describe(model).items()
    texts = {name: text if isinstance(text, str) else "\n".join(_cut_list(text, MAX_LISTED)) for name, text in facts}
    return _tabulate_facts(type(model).__name__, texts)


def render_run(run: Run) -> str:
    """Render a run as a table of counts and one of its top suspects."""
    counts, summary, schema = run.counts, run.summary, run.model.schema
    facts = {"Source": run.source.name, "Target": schema.target, "Records": f"{counts.records:,}"}
    facts["Learned from"] = f"{counts.learned:,}"
    if rejected := counts.quarantined + counts.skipped:
        facts["Rejected"] = f"{rejected:,}"
    if counts.learned:
        share = formatting.format_percent(summary.suspect_count / counts.learned)
        facts["Suspects"] = f"{formatting.format_count(summary.suspect_count)}, {share}"
    if not run.finished:
        facts["State"] = "not finished: run() plays the rounds that are left"
    least = summary.least
    if not least:
        return _tabulate_facts("Run", facts)
    shown = schema.inputs[:SHOWN]
    heads = ["row", schema.target, "predicted", "clean with probability", *shown]
    rows = []
    for one in least:
        played = one.round
        pair = (
            formatting.format_target(schema, played.target),
            formatting.format_predicted(schema, played.prediction, within=(played.low, played.high)),
        )
        values = (formatting.format_value(one.values.get(name)) for name in shown)
        rows.append([str(one.round.row), *pair, formatting.format_weight(one.round.clean_probability), *values])
    title = "Top suspects" if summary.suspect_count >= len(rows) else "The records that are least likely clean"
    return _tabulate_facts("Run", facts) + _tabulate(title, heads, rows)


def _tabulate_facts(title: str, facts: Mapping[str, str]) -> str:
    return _tabulate(title, [], facts.items())


def _tabulate(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def cells(tag: str, texts: Sequence[str]) -> str:
        content = (escape(text).replace("\n", "<br>") for text in texts)
        return "<tr>" + "".join(f'<{tag} style="text-align: left">{text}</{tag}>' for text in content) + "</tr>"

    head = f"<thead>{cells('th', heads)}</thead>" if heads else ""
    body = "".join(cells("td", row) for row in rows)
    return f"<table><caption>{escape(title)}</caption>{head}<tbody>{body}</tbody></table>"
