"""What a model takes the columns of a stream for: decided from its first records, and never changed.

The rules for columns are in `columns`, those for the target in `targets`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from redescend.errors import DataError, suggest
from redescend.numeric import Array
from redescend.parameters import bad_parameter
from redescend.sources import Batch, Kind
from redescend.streaming.encoding.features import Feature, feature_of, reason_to_leave_out, shown
from redescend.streaming.encoding.target import MOST_LABELS, Task, task_and_labels
from redescend.streaming.report.formatting import first

__all__ = ["Feature", "LeftOut", "Schema"]


class LeftOut(NamedTuple):
    """A column that nothing is learned from, and why."""

    column: str
    reason: str


@dataclass(frozen=True)
class Schema:
    """What is predicted from what.

    Parameters
    ----------
    target : str
    kind : Kind
        Of the target.
    task : {'regression', 'classification'}
    labels : list of str
        What can be predicted, in words; none in regression.
    features : list of Feature
    left_out : list of LeftOut
    by : str or None
        The column of the keys, where there is a model for each.

    Examples
    --------
    >>> schema = Schema("price", Kind.NUMBER, "regression", [], [Feature("area", Kind.NUMBER, "number")])
    >>> schema.encoded
    ['area', 'another column is missing']
    >>> Schema.from_plain(schema.as_plain()) == schema
    True
    """

    target: str
    kind: Kind
    task: Task
    labels: list[str]
    features: list[Feature]
    left_out: list[LeftOut] = field(default_factory=list)
    by: str | None = None

    @property
    def classifies(self) -> bool:
        return self.task == "classification"

    @property
    def outputs(self) -> int:
        """Two labels are the signs of one output; three or more are each learned against the rest."""
        return len(self.labels) if len(self.labels) > 2 else 1

    @functools.cached_property
    def inputs(self) -> list[str]:
        """The columns that a prediction needs."""
        return [feature.name for feature in self.features]

    @functools.cached_property
    def columns(self) -> list[str]:
        """The columns that learning needs."""
        return [*self.inputs, self.target, *([] if self.by is None else [self.by])]

    @functools.cached_property
    def kinds(self) -> dict[str, Kind]:
        """The kinds of the features, of the target, and of the keys, which are texts whatever they look like."""
        kinds = {feature.name: feature.kind for feature in self.features} | {self.target: self.kind}
        return kinds if self.by is None else kinds | {self.by: Kind.TEXT}

    @functools.cached_property
    def encoded(self) -> list[str]:
        """The names of the columns of numbers that a model learns from."""
        names = [name for feature in self.features for name in feature.encoded]
        return [*names, "another column is missing"] if self.shares_indicator else names

    @property
    def dim(self) -> int:
        """How many columns of numbers there are."""
        return len(self.encoded)

    @functools.cached_property
    def spans(self) -> list[slice]:
        """Where the columns of each feature are, its own indicator included."""
        ends = np.cumsum([0, *(len(feature.encoded) for feature in self.features)]).tolist()
        return [slice(start, end) for start, end in itertools.pairwise(ends)]

    @functools.cached_property
    def shares_indicator(self) -> bool:
        """Whether the last column says that a feature without an indicator of its own is missing."""
        return not all(feature.missing for feature in self.features)

    @functools.cached_property
    def indicators(self) -> list[int]:
        """The columns that are 0 or 1 as they come: of texts, and those of missing values."""
        found: list[int] = []
        for feature, span in zip(self.features, self.spans, strict=True):
            own = span.stop - span.start if feature.kind is Kind.TEXT else int(feature.missing)
            found += range(span.stop - own, span.stop)
        return [*found, self.dim - 1] if self.shares_indicator else found

    @functools.cached_property
    def label_values(self) -> Array:
        """The labels as the target has them: texts, numbers or truths."""
        if self.kind is Kind.BOOLEAN:
            return np.array([label == "true" for label in self.labels])
        return np.array(self.labels, dtype=object if self.kind is Kind.TEXT else np.float64)

    def in_words(self, value: float) -> float | str | None:
        """A target or a prediction: a number, the label at that place, or None for one that is not there."""
        if value != value:
            return None
        return self.labels[int(value)] if self.classifies else value

    def as_plain(self) -> dict[str, Any]:
        """Texts, lists and dicts, from which `from_plain` makes it again."""
        plain = asdict(self) | {"kind": self.kind.value, "left_out": [list(one) for one in self.left_out]}
        return plain | {"features": [asdict(one) | {"kind": one.kind.value} for one in self.features]}

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> Schema:
        """What `as_plain` gave; anything else is refused."""
        try:
            features = [Feature(**one | {"kind": Kind(one["kind"])}) for one in plain["features"]]
            left_out = [LeftOut(*one) for one in plain["left_out"]]
            schema = Schema(**{**plain, "kind": Kind(plain["kind"]), "features": features, "left_out": left_out})
            sound = schema._sound()
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"The schema lacks or garbles something ({error}); it has been altered.") from None
        if not sound:
            raise DataError("The schema contradicts itself; it has been altered.")
        return schema

    def _sound(self) -> bool:
        """Whether the parts could belong together; of labels of numbers, each must be one."""
        texts = [self.target, *self.labels, *(text for one in self.left_out for text in one)]
        return (
            len(self.features) > 0
            and all(isinstance(text, str) for text in [*texts, *self.columns])
            and len(set(self.columns)) == len(self.columns)
            and all(feature.sound for feature in self.features)
            and len(set(self.labels)) == len(self.labels) == len(set(self.label_values.tolist()))
            and {"regression": not self.labels, "classification": 2 <= len(self.labels) <= MOST_LABELS}[self.task]
            and self.kind is not (Kind.DATE if self.classifies else Kind.TEXT)
        )

    @staticmethod
    def decide(
        sample: Batch,
        kinds: Mapping[str, Kind],
        target: str,
        features: Sequence[str] | None = None,
        ignore: Sequence[str] = (),
        task: str = "auto",
        labels: Sequence[Any] | None = None,
        by: str | None = None,
    ) -> Schema:
        """What the first records of a stream are taken for.

        Parameters
        ----------
        sample : Batch
            The first records, typed by their kinds.
        kinds : mapping of str to Kind
            Of every column of the stream, in order.
        target : str
            The column to predict.
        features : sequence of str or None
            The columns to predict it from. None: all others, but those that are left out.
        ignore : sequence of str
            Columns to leave out.
        task : {'auto', 'regression', 'classification'}
        labels : sequence or None
            What the target can be. None: what it is in the sample.
        by : str or None
            The column of the keys, where there is a model for each.

        Raises
        ------
        DataError
            A column is not there, none is left, no record can be read, or the target cannot be what it should be.
        """
        asked = _asked(kinds, target, features, ignore, by)
        if sample.bad and not len(sample.rows):
            bad, count = sample.bad[0], sample.count
            none = "The first record cannot" if count == 1 else f"None of {first(count)} can"
            raise DataError(f"{none} be read; row {bad.row}, in '{bad.file}': {bad.reason}.")
        chosen, found = task_and_labels(target, kinds[target], sample.table.column(target), task, labels)
        taken, left_out = [], [LeftOut(name, "is ignored, as asked") for name in dict.fromkeys(ignore)]
        for name in asked:
            column = sample.table.column(name)
            reason = reason_to_leave_out(kinds[name], column) if features is None else None
            if reason is None:
                taken.append(feature_of(name, kinds[name], column))
            else:
                left_out.append(LeftOut(name, reason))
        if not taken:
            why = "; ".join(f"{shown(name)} {reason}" for name, reason in left_out[:3]) or "there is no other column"
            raise DataError(f"No column is left to predict {target!r} from: {why}.")
        return Schema(target, kinds[target], chosen, found, taken, left_out, by)


def _asked(columns: Mapping[str, Kind], target: str, features: Any, ignore: Any, by: str | None) -> list[str]:
    """The columns to look at as features, in the order of the stream or that in which they are named."""
    for setting, names in (("features", features), ("ignore", ignore)):
        if isinstance(names, str):
            raise bad_parameter("fit_stream", setting, "a list of columns", names)
    keys = [] if by is None else [by]
    named = {"to predict": [target], "to have the keys": keys, "to ignore": ignore, "to learn from": features or []}
    seen: dict[str, str] = {}
    for role, names in named.items():
        for name in names:
            if name not in columns:
                raise DataError(f"There is no column {name!r} {role}; {suggest(list(columns), name)}")
            if seen.setdefault(name, role) != role:
                raise DataError(f"The column {name!r} cannot be one {seen[name]} and one {role} too.")
    # A name that comes twice counts once.
    return [name for name in columns if name not in seen] if features is None else list(dict.fromkeys(features))
