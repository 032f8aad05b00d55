"""Predictions by the Open Inference Protocol: columns from tensors, predictions as tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from redescend.errors import DataError, quote, suggest
from redescend.numeric import Array
from redescend.serve.columns import ID, list_inputs
from redescend.serve.model import ServedModel
from redescend.serve.records import check_records, dump_record, load_json
from redescend.serve.tensors import Tensor, read_tensors
from redescend.sources import Kind
from redescend.streaming import StreamModel
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.model import Predicted
from redescend.streaming.rounds import Rounds

DATATYPES = {Kind.NUMBER: "FP64", Kind.BOOLEAN: "BOOL", Kind.DATE: "BYTES", Kind.TEXT: "BYTES"}

LEVEL = 0.9
"""The share of clean targets in the intervals, as in answers to learn."""

Columns = dict[str, list[Any]]


def describe_model(model: ServedModel) -> dict[str, Any]:
    """The metadata of a model."""
    schema, inputs, outputs = model.schema, [], []
    if schema is not None:
        kinds = [(name, DATATYPES[schema.kinds[name]]) for name in list_inputs(schema)]
        inputs = [{"name": name, "datatype": datatype, "shape": [-1]} for name, datatype in kinds]
        outputs = [{"name": name, "datatype": datatype, "shape": [-1]} for name, datatype in model.outputs.items()]
    return {"name": model.name, "versions": ["1"], "platform": "redescend", "inputs": inputs, "outputs": outputs}


def infer(model: ServedModel, text: bytes, raw: bytes) -> tuple[dict[str, Any], int]:
    """The answer to a request, and its number of records; `raw` are tensors behind its JSON."""
    schema = model.require_schema()
    numeric = None if raw or model.numeric is None else model.numeric.inputs.read(text)
    if numeric is not None:
        content, X = numeric
        count, make = len(X), partial(_make_numeric_record, model, X)
    else:
        content = load_json(text)
        columns = read_columns(schema, list(read_tensors(content, raw)))
        count, make = len(next(iter(columns.values()))), partial(make_record, columns)
    check_records(count, model.limits)
    types = model.outputs
    wanted = _read_wanted(content, types)
    level = LEVEL if "low" in wanted or "high" in wanted else None
    rounds: Predicted | Rounds
    if numeric is None:
        rounds = predict(model, [make(place) for place in range(count)], level)
    else:
        rounds = _predict_encoded(model, X, level)
    found = rounds.predictions.tolist()
    values: dict[str, list[Any]] = {}
    # A label may have been added since the request was read.
    labels = model.require_schema().labels
    values["prediction"] = [labels[int(number)] for number in found] if schema.classifies else found
    if "probability" in wanted:
        values["probability"] = rounds.probabilities.tolist()
    if level is not None:
        values |= {"low": rounds.low.tolist(), "high": rounds.high.tolist()}
    if ID in wanted:
        values[ID] = model.labels.put(count, make)
    outputs = [{"name": name, "datatype": types[name], "shape": [count], "data": values[name]} for name in wanted]
    answer = {"model_name": model.name, "model_version": "1", "outputs": outputs}
    if isinstance(content.get("id"), str):
        answer["id"] = content["id"]
    return answer, count


def _read_wanted(content: Mapping[str, Any], known: Iterable[str]) -> list[str]:
    listed = content.get("outputs")
    if listed is None or listed == []:
        return list(known)
    if not isinstance(listed, list) or not all(isinstance(each, Mapping) for each in listed):
        raise DataError("The outputs of a request are a list of objects with a name.")
    names = [str(each.get("name")) for each in listed]
    for name in names:
        if name not in known:
            raise DataError(f"There is no output {quote(name)}; {suggest(list(known), name)}")
    return list(dict.fromkeys(names))


def read_columns(schema: Schema, tensors: Sequence[Tensor]) -> Columns:
    """Columns from one tensor each, or all from one of shape [records, columns]."""
    names = list_inputs(schema)
    if len(tensors) == 1 and tensors[0].name not in names:
        tensor = tensors[0]
        if len(tensor.shape) != 2 or tensor.shape[1] != len(names):
            raise DataError(
                f"The input {quote(tensor.name)} is no column, and its shape is not [records, {len(names)}]; "
                f"{suggest(names, tensor.name)}"
            )
        return {name: tensor.values[place :: len(names)] for place, name in enumerate(names)}
    columns: Columns = {}
    for tensor in tensors:
        if tensor.name not in names and tensor.name != schema.target:
            raise DataError(f"There is no input {quote(tensor.name)}; {suggest(names, tensor.name)}")
        if tensor.name in columns:
            raise DataError(f"The input {quote(tensor.name)} is there twice.")
        if len(tensor.shape) not in (1, 2) or tensor.shape[1:] not in ([], [1]):
            raise DataError(f"The shape of {quote(tensor.name)} must be [records] or [records, 1]. Got {tensor.shape}.")
        columns[tensor.name] = tensor.values
    lacking = [name for name in names if name not in columns]
    if lacking:
        raise DataError(f"The input {quote(lacking[0])} is missing.")
    if len({len(values) for values in columns.values()}) > 1:
        raise DataError("The inputs have different numbers of records.")
    return {name: columns[name] for name in names}


def make_record(columns: Columns, place: int) -> bytes:
    """A record of columns as a line."""
    return dump_record({name: values[place] for name, values in columns.items()})


def _make_numeric_record(model: ServedModel, X: Array, place: int) -> bytes:
    assert model.numeric is not None
    return dump_record(model.numeric.inputs.decode(X[place]))


def _predict_encoded(model: ServedModel, X: Array, level: float | None) -> Predicted:
    with model.read() as served:
        assert isinstance(served, StreamModel)
        return served.predict_encoded(X, level)


def predict(model: ServedModel, records: Sequence[bytes], level: float | None = None) -> Rounds:
    """Predictions, as numbers or indices of labels, with their probabilities and, if a level is given, intervals."""
    batch, learned = model.review(records, target=False, level=level)
    rejected = sorted((*batch.bad, *learned.rejected), key=lambda bad: bad.row)
    if rejected:
        raise DataError(f"Record {rejected[0].row}: {rejected[0].reason}.")
    return learned.rounds
