"""The inputs and outputs of a served model, and tensors of the Open Inference Protocol, V2, as JSON and raw bytes."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from redescend.errors import DataError, quote
from redescend.streaming.encoding.schema import Schema

ID = "id"  # the output whose values clients send back with labels that come late


def list_inputs(schema: Schema) -> list[str]:
    """The columns that a prediction needs: the features and, if there is one model per key, the key.

    A model that looks back at earlier targets alone takes the target: null where it is unknown.
    """
    return [name for name in schema.columns if name != schema.target] or [schema.target]


def list_outputs(schema: Schema, intervals: bool) -> dict[str, str]:
    """The outputs of a model, with their types: numbers have the ends of intervals, labels a probability."""
    if schema.classifies:
        return {"prediction": "BYTES", "probability": "FP64", ID: "BYTES"}
    ends = {"low": "FP64", "high": "FP64"} if intervals else {}
    return {"prediction": "FP64", **ends, ID: "BYTES"}


TYPES: dict[str, Any] = {
    "BOOL": np.bool_,
    **{f"UINT{bits}": np.dtype(f"<u{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"INT{bits}": np.dtype(f"<i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"FP{bits}": np.dtype(f"<f{bits // 8}") for bits in (16, 32, 64)},
    "BYTES": None,
}
"""The data types of tensors; BYTES are texts."""

MAX_RANK = 8
SCALARS = frozenset({bool, int, float, str, type(None)})
TEXTS = frozenset({str, type(None)})


class Tensor(NamedTuple):
    """A tensor: its values in row-major order."""

    name: str
    datatype: str
    shape: list[int]
    values: list[Any]


def read_tensors(content: Any, raw: bytes) -> Iterator[Tensor]:
    """The inputs of a request; `raw` is what follows its JSON."""
    inputs = content.get("inputs") if isinstance(content, dict) else None
    if not isinstance(inputs, list) or not inputs:
        raise DataError(
            'The request has no list of inputs. Send one input for each column: {"inputs": [{"name": "area", "shape": '
            '[2], "datatype": "FP64", "data": [70, 85]}, …]}.'
        )
    place = 0
    for each in inputs:
        if not isinstance(each, dict) or not isinstance(each.get("name"), str):
            raise DataError("Each input is an object with a name, a shape, a datatype and data.")
        name, shape, datatype = each["name"], each.get("shape"), each.get("datatype")
        if not isinstance(datatype, str) or datatype not in TYPES:
            raise DataError(f"The datatype of {quote(name)} must be one of {', '.join(TYPES)}. Got {quote(datatype)}.")
        if not isinstance(shape, list) or not {int}.issuperset(map(type, shape)) or min(shape, default=0) < 0:
            raise DataError(f"The shape of {quote(name)} must be a list of sizes. Got {quote(str(shape))}.")
        parameters = each.get("parameters")
        size = parameters.get("binary_data_size") if isinstance(parameters, dict) else None
        if size is not None:
            if type(size) is not int or not 0 <= size <= len(raw) - place:
                raise DataError(f"The input {quote(name)} has fewer bytes than its binary_data_size.")
            values = _read_raw(name, datatype, raw[place : place + size])
            place += size
        else:
            values = _flatten(name, each.get("data"))
            if datatype == "BYTES" and not TEXTS.issuperset(map(type, values)):
                raise DataError(f"The input {quote(name)} of BYTES must contain texts.")
        if len(shape) > MAX_RANK or math.prod(shape) != len(values):
            raise DataError(f"The input {quote(name)} has {len(values)} values, but the shape {shape[:MAX_RANK]}.")
        yield Tensor(name, datatype, shape, values)


def _flatten(name: str, data: Any) -> list[Any]:
    if not isinstance(data, list):
        raise DataError(f"The input {quote(name)} has no list of data.")
    if SCALARS.issuperset(map(type, data)):
        return data
    for _ in range(MAX_RANK):
        if not any(isinstance(value, list) for value in data):
            break
        data = [value for part in data for value in (part if isinstance(part, list) else [part])]
    if any(isinstance(value, list | dict) for value in data):
        raise DataError(f"The input {quote(name)} contains something that is neither a number nor a text.")
    return list(data)


def _read_raw(name: str, datatype: str, data: bytes) -> list[Any]:
    if datatype != "BYTES":
        dtype = np.dtype(TYPES[datatype])
        if len(data) % dtype.itemsize:
            raise DataError(f"The input {quote(name)} has an incomplete value at its end.")
        return np.frombuffer(data, dtype).tolist()
    texts, place = [], 0
    try:
        while place < len(data):
            (size,) = struct.unpack_from("<I", data, place)
            text = data[place + 4 : place + 4 + size]
            if len(text) < size:
                raise ValueError
            texts.append(text.decode())
            place += 4 + size
    except (struct.error, ValueError):
        raise DataError(f"The input {quote(name)} is not a list of UTF-8 texts with their lengths.") from None
    return texts
