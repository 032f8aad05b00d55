"""Predictions by the Open Inference Protocol: columns from tensors, predictions as tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from redescend.errors import DataError, quote, suggest
from redescend.numeric import Array
from redescend.serve.model import ServedModel
from redescend.serve.records import dump_record
from redescend.serve.refusals import TooLarge
from redescend.serve.tensors import Tensor, read_tensors
from redescend.sources import Kind
from redescend.streaming import StreamModel
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.rounds import Rounds

DATATYPES = {Kind.NUMBER: "FP64", Kind.BOOLEAN: "BOOL", Kind.DATE: "BYTES", Kind.TEXT: "BYTES"}
ID = "id"

LEVEL = 0.9
"""The share of clean targets in the intervals, as in answers to learn."""

Columns = dict[str, list[Any]]


def input_names(schema: Schema) -> list[str]:
    """The columns that a prediction needs: the features and, if there is one model per key, the key."""
    return [name for name in schema.columns if name != schema.target]


def describe_model(model: ServedModel) -> dict[str, Any]:
    """The metadata of a model."""
    schema, inputs, outputs = model.schema, [], []
    if schema is not None:
        kinds = [(name, DATATYPES[schema.kinds[name]]) for name in input_names(schema)]
        inputs = [{"name": name, "datatype": datatype, "shape": [-1]} for name, datatype in kinds]
        outputs = [
            {"name": name, "datatype": datatype, "shape": [-1]} for name, datatype in list_outputs(model).items()
        ]
    return {"name": model.name, "versions": ["1"], "platform": "redescend", "inputs": inputs, "outputs": outputs}


def list_outputs(model: ServedModel) -> dict[str, str]:
    """The outputs of a model, with their types: numbers have the ends of intervals, labels a probability."""
    if model.require_schema().classifies:
        return {"prediction": "BYTES", "probability": "FP64", ID: "BYTES"}
    ends = {"low": "FP64", "high": "FP64"} if model.has_intervals else {}
    return {"prediction": "FP64", **ends, ID: "BYTES"}


def infer(model: ServedModel, content: Any, raw: bytes, *, booleans: bool = True) -> dict[str, Any]:
    """The answer to a request; `booleans` says whether there may be some in its content."""
    schema = model.require_schema()
    numbers = None if raw or booleans else model.numbers.read(content)
    X = None if numbers is None else model.numbers.encode(numbers)
    columns: Columns = {}
    if numbers is None or X is None:
        columns = read_columns(schema, list(read_tensors(content, raw)))
        count = len(next(iter(columns.values())))
    else:
        count = len(X)
    if count > model.limits.records:
        raise TooLarge(f"The request has {count:,} records, and the server takes {model.limits.records:,} at a time.")
    types = list_outputs(model)
    wanted = _read_wanted(content, list(types))
    level = LEVEL if "low" in wanted or "high" in wanted else None
    rounds = predict(model, columns, count, level) if X is None else _predict_encoded(model, X, level)
    found = rounds.predictions.tolist()
    values: dict[str, list[Any]] = {}
    values["prediction"] = [schema.labels[int(number)] for number in found] if schema.classifies else found
    if "probability" in wanted:
        values["probability"] = rounds.probabilities.tolist()
    if level is not None:
        values |= {"low": rounds.low.tolist(), "high": rounds.high.tolist()}
    if ID in wanted:
        if numbers is not None and X is not None:
            columns = dict(zip(schema.inputs, numbers.T.tolist(), strict=True))
        values[ID] = model.labels.put(count, lambda place: make_record(columns, place))
    outputs = [{"name": name, "datatype": types[name], "shape": [count], "data": values[name]} for name in wanted]
    answer = {"model_name": model.name, "model_version": "1", "outputs": outputs}
    return answer | ({"id": content["id"]} if isinstance(content.get("id"), str) else {})


def _read_wanted(content: Mapping[str, Any], known: list[str]) -> list[str]:
    listed = content.get("outputs")
    if listed is None or listed == []:
        return known
    if not isinstance(listed, list) or not all(isinstance(each, Mapping) for each in listed):
        raise DataError("The outputs of a request are a list of objects with a name.")
    names = [str(each.get("name")) for each in listed]
    for name in names:
        if name not in known:
            raise DataError(f"There is no output {quote(name)}; {suggest(known, name)}")
    return list(dict.fromkeys(names))


def read_columns(schema: Schema, tensors: Sequence[Tensor]) -> Columns:
    """Columns from one tensor each, or all from one of shape [records, columns]."""
    names = input_names(schema)
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


def _predict_encoded(model: ServedModel, X: Array, level: float | None) -> Rounds:
    with model.read() as served:
        assert isinstance(served, StreamModel)
        return served.predict_encoded(X, level)


def predict(model: ServedModel, columns: Columns, count: int, level: float | None = None) -> Rounds:
    """Predictions, as numbers or indices of labels, with their probabilities and, if a level is given, intervals."""
    records = [make_record(columns, place) for place in range(count)]
    batch, learned = model.review(records, target=False, level=level)
    rejected = sorted((*batch.bad, *learned.rejected), key=lambda bad: bad.row)
    if rejected:
        raise DataError(f"Record {rejected[0].row}: {rejected[0].reason}.")
    return learned.rounds
