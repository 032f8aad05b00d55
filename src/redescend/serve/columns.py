"""The inputs and outputs of a served model."""

from __future__ import annotations

from redescend.streaming.encoding.schema import Schema

ID = "id"
"""The output whose values clients send back with labels that come late."""


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
