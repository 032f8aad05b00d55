"""The target: what is to be predicted of it, what a record says of it, and what a model answers.

The rules:

- A target that is text or true/false, or a number with exactly two values in the sample, is a label: classification.
  Any other number is regression, and so is a date, as days since 1970-01-01.
- Labels are those in the sample, in order, or those that are named: two or more, at most `MOST_LABELS`. True and false
  are always both.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow.compute as pc
from scipy.special import expit

from redescend.errors import DataError
from redescend.numeric import Array
from redescend.parameters import bad_parameter
from redescend.sources import Kind
from redescend.streaming.encoding.features import (
    FARTHEST,
    as_numbers,
    number_text,
    present,
    reason_against,
    shown,
    unusable,
)
from redescend.streaming.report.formatting import first

if TYPE_CHECKING:
    from redescend.streaming.encoding.schema import Schema

MOST_LABELS = 100
TRUTHS = ["false", "true"]

Task = Literal["regression", "classification"]


# --- deciding ---


def task_and_labels(
    name: str, kind: Kind, column: Any, task: str, labels: Sequence[Any] | None
) -> tuple[Task, list[str]]:
    """What the target of the sample is taken for."""
    if task not in ("auto", "regression", "classification"):
        raise bad_parameter("fit_stream", "task", "'auto', 'regression' or 'classification'", task)
    values = present(column)
    if len(values) == 0:
        raise DataError(f"The target {name!r} has no value in {first(len(column))}.")
    distinct = _distinct(kind, values)
    binary = kind in (Kind.TEXT, Kind.BOOLEAN) or (kind is Kind.NUMBER and len(distinct) == 2)
    if task == "regression" or (task == "auto" and labels is None and not binary):
        if kind is Kind.TEXT:
            raise DataError(
                f"The target {name!r} is text, such as {shown(values[0].as_py())}, and regression needs numbers; "
                "try classification."
            )
        if labels is not None:
            raise bad_parameter("fit_stream", "labels", "None in regression", labels)
        return "regression", []
    if kind is Kind.DATE:
        raise DataError(f"The target {name!r} is a date, which is no label; try regression.")
    return "classification", _named(name, kind, labels) if labels is not None else _found(name, distinct, len(column))


def _distinct(kind: Kind, values: Any) -> list[str]:
    """The different values as labels, in order."""
    if kind is Kind.BOOLEAN:
        return TRUTHS
    different = pc.unique(values).to_pylist()
    if kind is Kind.TEXT:
        return sorted(different)
    usable = [value for value in set(different) if abs(value) <= FARTHEST] if kind is Kind.NUMBER else []
    return [number_text(value) for value in sorted(usable)]


def _found(name: str, labels: list[str], records: int) -> list[str]:
    if len(labels) < 2:
        raise DataError(
            f"The target {name!r} is always {shown(labels[0])} in {first(records)}, and a classifier "
            "needs two labels or more; name all labels that there can be."
            if labels
            else f"The target {name!r} has no number in {first(records)} that can be a label."
        )
    if len(labels) > MOST_LABELS:
        raise DataError(
            f"The target {name!r} has {len(labels):,} different values in {first(records)}, and a "
            f"classifier has at most {MOST_LABELS} labels; name those that count, or try regression if it is a number."
        )
    return labels


def _named(name: str, kind: Kind, labels: Sequence[Any]) -> list[str]:
    if isinstance(labels, str) or not isinstance(labels, Sequence):
        raise bad_parameter("fit_stream", "labels", "a list of labels, or None", labels)
    found = [_label(name, kind, label) for label in labels]
    if not 2 <= len(found) <= MOST_LABELS or len(set(found)) < len(found):
        raise bad_parameter("fit_stream", "labels", f"2 to {MOST_LABELS} different labels", labels)
    return found


def _label(name: str, kind: Kind, label: Any) -> str:
    """A label that was named by hand, as the target has it."""
    if kind is Kind.TEXT:
        return str(label)
    if kind is Kind.BOOLEAN:
        if str(label).lower() not in TRUTHS:
            raise DataError(f"The label {label!r} cannot be: the target {name!r} is true or false.")
        return str(label).lower()
    try:
        number = float(label)
    except (TypeError, ValueError, OverflowError):
        number = np.nan
    if not abs(number) <= FARTHEST:
        raise DataError(f"The label {label!r} cannot be: the target {name!r} is a number.")
    return number_text(number)


# --- what records say ---


def encode_target(schema: Schema, column: Any) -> tuple[Array, dict[int, str]]:
    """Numbers, or places of labels, and why records are refused, by their places in the column.

    Pure in every record.
    """
    refused: dict[int, str] = {}
    if schema.kind is Kind.TEXT:
        values = _places_of_texts(schema, column, refused)
    else:
        values = as_numbers(column)
        for at in unusable(values).tolist():
            refused[at] = reason_against(schema.target, float(values[at]))
        if schema.classifies:
            values = _places_of_numbers(schema, values, refused)
    for at in np.flatnonzero(np.isnan(values)).tolist():
        refused.setdefault(at, f"the target {schema.target!r} is missing")
    return values, refused


def _places_of_texts(schema: Schema, column: Any, refused: dict[int, str]) -> Array:
    places = {label: float(place) for place, label in enumerate(schema.labels)}
    encoded = column.dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    # Behind the distinct texts there is a place for those that are missing.
    known = np.array([*(places.get(text, -1.0) for text in distinct), np.nan])
    codes = encoded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
    values = known[codes]
    for at in np.flatnonzero(values < 0.0).tolist():
        refused[at] = _unknown(schema, distinct[codes[at]])
    return values


def _places_of_numbers(schema: Schema, values: Array, refused: dict[int, str]) -> Array:
    labels = schema.label_values.astype(np.float64)
    order = np.argsort(labels)
    places = order[np.minimum(np.searchsorted(labels, values, sorter=order), len(labels) - 1)]
    for at in np.flatnonzero((labels[places] != values) & ~np.isnan(values)).tolist():
        value = float(values[at])
        refused.setdefault(at, _unknown(schema, bool(value) if schema.kind is Kind.BOOLEAN else value))
    return np.where(np.isnan(values), np.nan, places)


def _unknown(schema: Schema, label: Any) -> str:
    return f"the target {schema.target!r}: {shown(label)} is none of the {len(schema.labels)} labels"


def answers(schema: Schema, values: Array) -> Array:
    """What the outputs of a model should say, a row for each: the number, or +1 for its label and −1 for others."""
    if not schema.classifies:
        return np.array(values, dtype=np.float64).reshape(1, -1)
    if schema.outputs == 1:
        return 2.0 * values.reshape(1, -1) - 1.0
    return np.where(np.arange(schema.outputs)[:, None] == values, 1.0, -1.0)


# --- what a model answers ---


def decided(schema: Schema, said: Array) -> tuple[Array, Array]:
    """Predictions, as numbers or as places of labels, and the probabilities of these labels."""
    if not schema.classifies:
        return said[0], np.full(said.shape[1], np.nan)
    if schema.outputs == 1:
        return np.where(said[0] > 0.0, 1.0, 0.0), expit(np.abs(said[0]))
    places = said.argmax(axis=0)
    return places.astype(np.float64), probabilities(schema, said)[places, np.arange(said.shape[1])]


def probabilities(schema: Schema, said: Array) -> Array:
    """Of every label, a row for each; of three or more, those of each against the rest, made to sum to 1."""
    if schema.outputs == 1:
        return np.stack([expit(-said[0]), expit(said[0])])
    shares = expit(said)
    totals = summed(shares)
    return np.where(totals > 0.0, shares / np.where(totals > 0.0, totals, 1.0), 1.0 / len(shares))


def summed(parts: Array) -> Array:
    """The sum of rows, from the first to the last: NumPy adds in another order where there is a single column."""
    return functools.reduce(np.add, parts)
