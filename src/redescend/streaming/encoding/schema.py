"""`Schema`: the target and the features of a model, inferred from the first records.

Only labels can be added later. The rules for features are in `features`, those for the target in `target`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from redescend.errors import DataError, suggest
from redescend.numeric import Array
from redescend.parameters import bad_parameter
from redescend.sources import Batch, Kind, Source
from redescend.sources.notations import NOTATIONS, Notation, is_same_unit, notation_by_name
from redescend.state import CORRUPT
from redescend.streaming.encoding.features import Feature, find_count, infer_feature, pool_rare_levels, quote_value
from redescend.streaming.encoding.remarks import explain_values, find_exclusion, is_constant, list_few_values
from redescend.streaming.encoding.target import MAX_LABELS, Task, infer_task
from redescend.streaming.report.formatting import format_first

NUMERIC = ("number", "boolean")  # encodings that are one number
OF_NO_KIND = "not a number, date or text"  # why a column cannot be used
MAX_HISTORY = 1_000_000  # the most numbers that lagged features may look back at


class Excluded(NamedTuple):
    """A column that is not a feature, and the reason."""

    column: str
    reason: str


class Note(NamedTuple):
    """A remark on a column."""

    column: str
    text: str


class AddedLabel(NamedTuple):
    """A label that was not in the sample, and the row of the stream in which it first appeared."""

    label: str
    row: int


@dataclass(frozen=True)
class Schema:
    """The target, the task and the features of a model.

    `kind` is the kind of the target, and `labels` are its labels as texts: none in regression. `excluded` are the other
    columns, `by` is the column of keys, if there is one model per key, and `notes` are remarks on columns. If a schema
    `grows`, a label that appears later is added; otherwise its record is rejected. `added` labels are the last.
    `units` are those that were written behind the numbers of columns, and `notations` the names of other notations.

    >>> schema = Schema("price", Kind.NUMBER, "regression", [], [Feature("area", Kind.NUMBER, "number")])
    >>> schema.encoded
    ['area', 'another column is missing']
    >>> Schema.from_dict(schema.to_dict()) == schema
    True
    """

    target: str
    kind: Kind
    task: Task
    labels: list[str]
    features: list[Feature]
    excluded: list[Excluded] = field(default_factory=list)
    by: str | None = None
    notes: list[Note] = field(default_factory=list)
    grows: bool = False
    added: list[AddedLabel] = field(default_factory=list)
    units: dict[str, str] = field(default_factory=dict)
    notations: dict[str, str] = field(default_factory=dict)

    @property
    def classifies(self) -> bool:
        return self.task == "classification"

    @property
    def outputs(self) -> int:
        """Two labels are the signs of one output; three or more are learned one against the rest."""
        return len(self.labels) if len(self.labels) > 2 else 1

    @functools.cached_property
    def inputs(self) -> list[str]:
        """The columns that a prediction needs."""
        return [feature.name for feature in self.features if not feature.lag]

    @functools.cached_property
    def lagged(self) -> list[Feature]:
        """The features that look back at earlier records."""
        return [feature for feature in self.features if feature.lag]

    @functools.cached_property
    def columns(self) -> list[str]:
        """The columns that learning needs."""
        return [*self.inputs, self.target, *([] if self.by is None else [self.by])]

    @functools.cached_property
    def kinds(self) -> dict[str, Kind]:
        """The kinds of the features, of the target, and of the keys, which are always texts."""
        kinds = {feature.name: feature.kind for feature in self.features if not feature.lag}
        kinds[self.target] = self.kind
        return kinds if self.by is None else kinds | {self.by: Kind.TEXT}

    @functools.cached_property
    def encoded(self) -> list[str]:
        """The names of the encoded columns."""
        names = [name for feature in self.features for name in feature.encoded]
        return [*names, "another column is missing"] if self.shares_indicator else names

    @property
    def dim(self) -> int:
        """The number of encoded columns."""
        return len(self.encoded)

    @functools.cached_property
    def spans(self) -> list[slice]:
        """The encoded columns of each feature, including its own indicator."""
        ends = np.cumsum([0, *(len(feature.encoded) for feature in self.features)]).tolist()
        return [slice(start, end) for start, end in itertools.pairwise(ends)]

    @functools.cached_property
    def shares_indicator(self) -> bool:
        """Whether the last encoded column indicates missing values of features without an indicator of their own."""
        return not all(feature.missing for feature in self.features)

    @functools.cached_property
    def indicators(self) -> list[int]:
        """The encoded columns that are 0 or 1: those of texts and of missing values."""
        found: list[int] = []
        for feature, span in zip(self.features, self.spans, strict=True):
            own = span.stop - span.start if feature.kind is Kind.TEXT else int(feature.missing)
            found += range(span.stop - own, span.stop)
        return [*found, self.dim - 1] if self.shares_indicator else found

    @functools.cached_property
    def label_values(self) -> Array:
        """The labels in the type of the target: texts, numbers or booleans."""
        if self.kind is Kind.BOOLEAN:
            return np.array([label == "true" for label in self.labels])
        return np.array(self.labels, dtype=object if self.kind is Kind.TEXT else np.float64)

    def decode_value(self, value: float) -> float | str | None:
        """A target or prediction as a number or as the label at that index; None for NaN."""
        if value != value:
            return None
        return self.labels[int(value)] if self.classifies else value

    def add_label(self, label: str, row: int) -> Schema:
        """Add a label that first appears in this row of the stream.

        >>> schema = Schema("y", Kind.TEXT, "classification", ["a", "b"], [Feature("x", Kind.NUMBER, "number")])
        >>> schema.add_label("c", 1204).labels
        ['a', 'b', 'c']
        """
        return replace(self, labels=[*self.labels, label], added=[*self.added, AddedLabel(label, row)])

    @property
    def forms(self) -> dict[str, Notation]:
        """The notations of columns of text that are read as numbers or dates."""
        return {name: notation_by_name(form, self.units.get(name, "")) for name, form in self.notations.items()}

    def check_units(self, source: Source) -> None:
        """Raise if the numbers of a column have another unit in a source than in what the model has learned from."""
        for name, unit in self.units.items():
            other = source.units.get(name, unit)
            if not is_same_unit(unit, other):
                raise DataError(
                    f"The column {name!r} of {source.name} is in {other}, but the model has learned from numbers in "
                    f"{unit}; convert them."
                )

    def to_dict(self) -> dict[str, Any]:
        """Convert to texts, lists and dicts, for `from_dict`."""
        plain = asdict(self) | {"kind": self.kind.value, "excluded": [list(one) for one in self.excluded]}
        # Left out if empty, so that older versions can read the file.
        del plain["notes"], plain["grows"], plain["added"], plain["units"], plain["notations"]
        plain |= {"notes": [list(one) for one in self.notes]} if self.notes else {}
        plain |= {"grows": True} if self.grows else {}
        plain |= {"added": [list(one) for one in self.added]} if self.added else {}
        plain |= {"units": dict(self.units)} if self.units else {}
        plain |= {"notations": dict(self.notations)} if self.notations else {}
        return plain | {"features": [one.to_dict() for one in self.features]}

    @staticmethod
    def from_dict(plain: Mapping[str, Any]) -> Schema:
        """Restore a schema from the result of `to_dict`; anything else is refused."""
        try:
            features = [Feature(**one | {"kind": Kind(one["kind"])}) for one in plain["features"]]
            excluded = [Excluded(*one) for one in plain["excluded"]]
            parts = {"kind": Kind(plain["kind"]), "features": features, "excluded": excluded}
            parts |= {"notes": [Note(*one) for one in plain.get("notes", [])]}
            schema = Schema(**{**plain, **parts, "added": [AddedLabel(*one) for one in plain.get("added", [])]})
            if schema._is_valid():
                return schema
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"The schema is incomplete ({error}): {CORRUPT}.") from None
        raise DataError(f"The schema contradicts itself: {CORRUPT}.")

    def _is_valid(self) -> bool:
        """Whether the parts are consistent; labels of a numeric target must be numbers."""
        fewest = 1 if self.grows else 2
        texts = [self.target, *self.labels, *(text for one in (*self.excluded, *self.notes) for text in one)]
        return (
            len(self.features) > 0
            and all(isinstance(text, str) for text in [*texts, *self.columns])
            and len(set(self.columns)) == len(self.columns)
            and self._has_valid_lags()
            and all(feature.is_valid() for feature in self.features)
            and all(name in self.columns and isinstance(unit, str) for name, unit in self.units.items())
            and all(name in self.columns and form in NOTATIONS for name, form in self.notations.items())
            and len(set(self.labels)) == len(self.labels) == len(set(self.label_values.tolist()))
            and {"regression": not self.labels, "classification": fewest <= len(self.labels) <= MAX_LABELS}[self.task]
            and self.kind is not (Kind.DATE if self.classifies else Kind.TEXT)
            and type(self.grows) is bool
            and not (self.grows and (self.lagged or not self.classifies))
            and [label for label, _ in self.added] == self.labels[len(self.labels) - len(self.added) :]
            and len(self.added) <= max(len(self.labels) - 1, 0)
            and all(type(row) is int and row >= 0 for _, row in self.added)
        )

    def _has_valid_lags(self) -> bool:
        """Whether lagged features look back at the target, or at columns that are one number."""
        known = {one.name: one.kind for one in self.features if not one.lag and one.how in NUMERIC}
        known[self.target] = Kind.TEXT if self.classifies else Kind.NUMBER
        names = [*self.columns, *(one.name for one in self.lagged)]
        return (
            len(set(names)) == len(names)
            and len(self.inputs) + len(self.lagged) == len(self.features)
            and all(known.get(str(one.of)) is one.kind for one in self.lagged)
            and all(one.levels == self.labels for one in self.lagged if one.kind is Kind.TEXT)
            and len({one.of for one in self.lagged}) * max((one.lag for one in self.lagged), default=0) <= MAX_HISTORY
        )

    @staticmethod
    def infer(
        sample: Batch,
        kinds: Mapping[str, Kind],
        target: str,
        *,
        features: Sequence[str] | None = None,
        ignore: Sequence[str] = (),
        task: str = "auto",
        labels: Sequence[Any] | None = None,
        by: str | None = None,
        lags: Sequence[int] = (),
        lag_columns: Sequence[str] = (),
        values: Any = None,
        spread: Any = None,
        stream: bool = False,
        grows: bool = False,
        others: Mapping[str, str] | None = None,
    ) -> Schema:
        """Infer the schema of a stream from its first records, `sample`, and the `kinds` of all columns, in order.

        `values` are all values of the target, and `spread` is a table of records from all over the source, if known. In
        a `stream`, nothing is known of later records; if it `grows`, labels can be added. `others` are columns that
        cannot be read, with their types. The other parameters are as in `redescend.fit_stream`.
        """
        others = others or {}
        candidates = _find_candidates(kinds, others, target, features, ignore, by)
        if sample.bad and not len(sample.rows):
            bad, count = sample.bad[0], sample.count
            none = "The first record cannot" if count == 1 else f"None of {format_first(count)} can"
            raise DataError(f"{none} be read; row {bad.row} of '{bad.file}': {bad.reason}.")
        table = sample.table if spread is None else spread
        where = format_first(len(table)) if spread is None else f"{len(table):,} records from all over the source"
        targets = table.column(target) if values is None else values
        grows = grows and labels is None and not lags and kinds[target] is not Kind.BOOLEAN
        inferred = infer_task(target, kinds[target], targets, task, labels, where, grows)
        used, excluded = [], [Excluded(name, "is ignored, as requested") for name in dict.fromkeys(ignore)]
        useful = candidates
        if features is None:
            unreadable = [name for name in others if name not in ignore]
            excluded += [Excluded(_make_utf8(name), f"is {others[name]}: {OF_NO_KIND}") for name in unreadable]
            counts = {
                name: find_count(name, kinds[name], sample.table.column(name), spread and spread.column(name), stream)
                for name in candidates
            }
            useful = [name for name in candidates if counts[name] is None] or candidates
            excluded += [Excluded(name, str(counts[name])) for name in candidates if name not in useful]
        notes = []
        if inferred[0] == "regression" and is_constant(targets):
            value = quote_value(targets[0].as_py())
            notes.append(Note(target, f"is always {value} in {where}, so that there is nothing to predict"))
        elif len(inferred[1]) == 1:
            value = quote_value(inferred[1][0])
            notes.append(Note(target, f"is always {value} in {where}; other labels are added when they appear"))
        elif inferred[0] == "regression" and (few := list_few_values(kinds[target], targets)):
            notes.append(Note(target, f"has only the values {few} in {where}; if they are labels, try classification"))
        if text := explain_values(kinds[target], table.column(target)):
            notes.append(Note(target, text))
        for name in useful:
            column = table.column(name)
            if features is None and stream and counts[name] is None and find_count(name, kinds[name], column):
                notes.append(Note(name, f"only grows, or only falls, in {where}; ignore it if it numbers the records"))
            reason = find_exclusion(kinds[name], column, where) if features is None else None
            if reason is not None and stream and is_constant(column):
                notes.append(Note(name, f"{reason}; it is used as soon as it varies"))
                reason = None
            if reason is None and (text := explain_values(kinds[name], column)):
                notes.append(Note(name, text))
            if reason is None:
                used.append(infer_feature(name, kinds[name], column))
            else:
                excluded.append(Excluded(name, reason))
        if not used and not lags:
            listed = "; ".join(f"{quote_value(name)} {reason}" for name, reason in excluded[:3])
            raise DataError(f"No column is left to predict {target!r} from: {listed or 'there is no other column'}.")
        if inferred[0] == "classification":
            used = pool_rare_levels(used, table)
        grows = grows and inferred[0] == "classification"
        schema = Schema(target, kinds[target], *inferred, used, excluded, by, notes, grows)
        return _add_lags(schema, lags, lag_columns) if lags else schema


def _add_lags(schema: Schema, lags: Sequence[int], columns: Sequence[str]) -> Schema:
    """Add the lagged target and lagged columns to the features of a schema."""
    found = {feature.name: feature for feature in schema.features}
    reasons = dict(schema.excluded)
    sources = [Feature(schema.target, Kind.NUMBER, "number")]
    if schema.classifies:
        sources = [Feature(schema.target, Kind.TEXT, "levels", schema.labels)]
    for name in dict.fromkeys(columns):
        if name == schema.target:
            continue
        if name not in found:
            raise DataError(
                f"The column {name!r} cannot be lagged: it {reasons[name]}."
                if name in reasons
                else f"There is no column {name!r} that can be lagged; {suggest(list(found), name)}"
            )
        if found[name].how not in NUMERIC:
            raise DataError(f"The column {name!r} cannot be lagged, because it is not a number.")
        sources.append(replace(found[name], missing=False))
    features = [
        replace(one, name=f"{one.name}, lag {lag}", of=one.name, lag=lag)
        for one in sources
        for lag in sorted(set(lags))
    ]
    lagged = replace(schema, features=[*schema.features, *features])
    if not lagged._is_valid():
        raise DataError(
            f"These lags cannot be used: two columns would have the same name, or more than {MAX_HISTORY:,} earlier "
            "values would have to be stored. Use fewer or smaller lags."
        )
    return lagged


def _make_utf8(name: str) -> str:
    """A name that can be written: JSON may have half of a surrogate pair."""
    return name.encode(errors="backslashreplace").decode()


def _find_candidates(
    columns: Mapping[str, Kind], others: Mapping[str, str], target: str, features: Any, ignore: Any, by: str | None
) -> list[str]:
    """The columns that may be features: those requested, or all others in order."""
    for setting, names in (("features", features), ("ignore", ignore)):
        if isinstance(names, str):
            raise bad_parameter("fit_stream", setting, "a list of columns", names)
    keys = [] if by is None else [by]
    roles = {"the target": [target], "the key": keys, "ignored": ignore, "a feature": features or []}
    seen: dict[str, str] = {}
    for role, names in roles.items():
        for name in names:
            if name in others and role != "ignored":
                raise DataError(f"The column {name!r}, named as {role}, is {others[name]}: {OF_NO_KIND}.")
            if name not in columns and name not in others:
                raise DataError(f"There is no column {name!r}, named as {role}; {suggest(list(columns), name)}")
            if seen.setdefault(name, role) != role:
                raise DataError(f"The column {name!r} cannot be both {seen[name]} and {role}.")
    # A repeated name counts once.
    return [name for name in columns if name not in seen] if features is None else list(dict.fromkeys(features))
