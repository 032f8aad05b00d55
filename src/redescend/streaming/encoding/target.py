"""The target: inferring its task, encoding it, and decoding predictions.

- The task is classification for a target that is text, boolean, or a number with exactly two values in the sample. It
  is regression for any other number and for a date, as days since 1970-01-01.
- Labels are those in the sample, in order, or those that are given: two or more, at most `MAX_LABELS`. A boolean always
  has both. In a stream that cannot be read again, labels that appear later are added in their order, unless labels are
  given.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow.compute as pc

from redescend.engines.labels import encode_labels, label_probabilities
from redescend.errors import DataError
from redescend.numeric import Array
from redescend.parameters import bad_parameter, check_choice
from redescend.sources import Kind
from redescend.sources.kinds import PATTERNS
from redescend.streaming.encoding.features import (
    MAX_NUMBER,
    drop_missing,
    format_exactly,
    quote_value,
    reject_out_of_range,
    to_floats,
)

if TYPE_CHECKING:
    from redescend.streaming.encoding.schema import Schema

MAX_LABELS = 100
BOOLEANS = ["false", "true"]

Task = Literal["regression", "classification"]


# --- inferring the task ---


def infer_task(
    name: str, kind: Kind, column: Any, task: str, labels: Sequence[Any] | None, where: str, grows: bool = False
) -> tuple[Task, list[str]]:
    """Infer the task and the labels from the target column of the sample, whose records `where` describes.

    One label is enough if others can be added, that is, if the schema `grows`.
    """
    check_choice("fit_stream", "task", task, ("auto", "regression", "classification"))
    values = drop_missing(column)
    if len(values) == 0:
        raise DataError(f"The target {name!r} has no value in {where}.")
    distinct = _distinct_labels(kind, values)
    is_label = kind in (Kind.TEXT, Kind.BOOLEAN) or (kind is Kind.NUMBER and len(distinct) == 2)
    if task == "regression" or (task == "auto" and labels is None and not is_label):
        if kind is Kind.TEXT:
            raise DataError(
                f"The target {name!r} is text, such as {_quote_text(distinct)}, but regression needs numbers; "
                "remove units and words if it is a number (or set the decimal mark), or try classification."
            )
        if labels is not None:
            raise bad_parameter("fit_stream", "labels", "None in regression", labels)
        return "regression", []
    if kind is Kind.DATE:
        raise DataError(f"The target {name!r} is a date, which cannot be a label; try regression.")
    if labels is None:
        _check_labels(name, kind, distinct, where, 1 if grows else 2)
        return "classification", distinct
    return "classification", _parse_labels(name, kind, labels)


def _distinct_labels(kind: Kind, values: Any) -> list[str]:
    if kind is Kind.BOOLEAN:
        return BOOLEANS
    distinct = pc.unique(values).to_pylist()
    if kind is Kind.TEXT:
        return sorted(distinct)
    usable = [value for value in set(distinct) if abs(value) <= MAX_NUMBER] if kind is Kind.NUMBER else []
    return [format_exactly(value) for value in sorted(usable)]


def _check_labels(name: str, kind: Kind, labels: list[str], where: str, fewest: int) -> None:
    if not labels:
        raise DataError(f"The target {name!r} has no number in {where} that can be a label.")
    if len(labels) < fewest:
        raise DataError(
            f"The target {name!r} is always {quote_value(labels[0])} in {where}, but a classifier needs at least two "
            "labels; if others may follow, list all labels."
        )
    if len(labels) > MAX_LABELS:
        example, number = quote_value(labels[len(labels) // 2]), "try regression"
        if kind is Kind.TEXT:
            example, number = _quote_text(labels), "remove units and words if it is a number (or set the decimal mark)"
        many = f"{len(labels):,} distinct values in {where}, such as {example}"
        raise DataError(
            f"The target {name!r} has {many}, but a classifier has at most {MAX_LABELS} labels; {number}, or list the "
            "labels that matter."
        )


def _quote_text(values: Sequence[str]) -> str:
    """Quote a text that is not a number, if there is one: it is why the column is no number.

    >>> _quote_text(["1.5", "2.5", "[3]"])
    "'[3]'"
    """
    return quote_value(next((text for text in values if not re.match(PATTERNS[Kind.NUMBER], text)), values[0]))


def _parse_labels(name: str, kind: Kind, labels: Sequence[Any]) -> list[str]:
    if isinstance(labels, str) or not isinstance(labels, Sequence):
        raise bad_parameter("fit_stream", "labels", "a list of labels, or None", labels)
    normalized = [_normalize_label(name, kind, label) for label in labels]
    if not 2 <= len(normalized) <= MAX_LABELS or len(set(normalized)) < len(normalized):
        raise bad_parameter("fit_stream", "labels", f"2 to {MAX_LABELS} distinct labels", labels)
    return normalized


def _normalize_label(name: str, kind: Kind, label: Any) -> str:
    """A given label, as the target spells it."""
    if kind is Kind.TEXT:
        return str(label)
    if kind is Kind.BOOLEAN:
        if str(label).lower() not in BOOLEANS:
            raise DataError(f"{label!r} cannot be a label: the target {name!r} is true or false.")
        return str(label).lower()
    try:
        number = float(label)
    except (TypeError, ValueError, OverflowError):
        number = np.nan
    if not abs(number) <= MAX_NUMBER:
        raise DataError(f"{label!r} cannot be a label: the target {name!r} is a number.")
    return format_exactly(number)


# --- encoding ---


def encode_target(schema: Schema, column: Any) -> tuple[Array, dict[int, str]]:
    """Encode targets as numbers, or as indices of labels; also returns why records are rejected, by index."""
    rejected: dict[int, str] = {}
    if schema.kind is not Kind.TEXT:
        values = to_floats(column)
        rejected = reject_out_of_range(schema.target, values)
    if schema.classifies:
        values = _encode_labels(schema, column, rejected)
    for index in np.flatnonzero(np.isnan(values)).tolist():
        rejected.setdefault(index, f"the target {schema.target!r} is missing")
    return values, rejected


def _encode_labels(schema: Schema, column: Any, rejected: dict[int, str]) -> Array:
    labels = {label: float(index) for index, label in enumerate(schema.label_values.tolist())}
    encoded = column.dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    # NaN is a missing number; the entry after the last is for other missing values.
    known = np.array([*(np.nan if value != value else labels.get(value, -1.0) for value in distinct), np.nan])
    codes = encoded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
    values = known[codes]
    for index in np.flatnonzero(values < 0.0).tolist():
        label = quote_value(distinct[codes[index]])
        limit = ", and more cannot be added" if schema.grows and len(labels) == MAX_LABELS else ""
        reason = f"{label} is none of the {len(labels)} labels{limit}"
        rejected.setdefault(index, f"the target {schema.target!r}: {reason}")
    return values


def find_new_labels(schema: Schema, column: Any, rejected: Collection[int]) -> list[tuple[str, int]]:
    """The labels of usable records that a schema lacks, each with the index of its first record, up to `MAX_LABELS`.

    >>> import pyarrow as pa
    >>> from redescend.streaming.encoding.schema import Schema
    >>> schema = Schema("y", Kind.TEXT, "classification", ["a", "b"], [])
    >>> find_new_labels(schema, pa.array(["c", "b", "d", "e", "d"]), rejected={0})
    [('d', 2), ('e', 3)]
    """
    usable = np.delete(np.arange(len(column)), list(rejected))
    encoded = column.dictionary_encode()
    distinct, known = encoded.dictionary.to_pylist(), set(schema.label_values.tolist())
    codes, first = np.unique(encoded.indices.fill_null(-1).to_numpy()[usable], return_index=True)
    found: list[tuple[str, int]] = []
    for place in np.argsort(first).tolist():
        value = distinct[codes[place]] if codes[place] >= 0 else None
        if value is None or value in known or len(found) == MAX_LABELS - len(schema.labels):
            continue
        if schema.kind is Kind.TEXT or abs(value) <= MAX_NUMBER:
            found.append((value if schema.kind is Kind.TEXT else format_exactly(value), int(usable[first[place]])))
    return found


def output_targets(schema: Schema, values: Array) -> Array:
    """The target of every output of the model, a row each: the number, or +1 for its label and −1 for others."""
    if not schema.classifies:
        return np.array(values, dtype=np.float64).reshape(1, -1)
    return encode_labels(values, len(schema.labels))


# --- decoding ---


def decode_predictions(schema: Schema, scores: Array, shares: Array | None = None) -> tuple[Array, Array]:
    """Predictions, as numbers or indices of labels, and the probabilities of these labels.

    `shares` are probabilities of all labels, a row each; without them they follow from the scores.
    """
    if not schema.classifies:
        return scores[0], np.full(scores.shape[1], np.nan)
    shares = label_probabilities(scores) if shares is None else shares
    # A batch may have begun with fewer labels than the schema has now.
    best = (scores[0] > 0.0).astype(np.intp) if len(scores) == 1 else scores.argmax(axis=0)
    best = np.minimum(best, len(schema.labels) - 1)  # a stream may begin with one label
    return best.astype(np.float64), shares[best, np.arange(scores.shape[1])]
