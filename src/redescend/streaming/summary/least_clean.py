"""The suspects of a run: the records that are least likely clean, and their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from redescend.numeric import Array
from redescend.sources import Batch
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.rounds import RoundRecord, Rounds

MAX_SUSPECTS = 10  # the default number of suspects
MAX_TEXT = 200  # the most characters of a text that are stored


class Suspect(NamedTuple):
    """A suspect: its round, its file and its values."""

    round: RoundRecord
    file: str
    values: dict[str, Any]
    why: dict[str, Any] | None = None
    """Its explanation as plain values, see `redescend.streaming.explanation`, or that it is outdated, because the model
    has changed since; None if there is none."""
    q_value: float | None = None
    """The share of false alarms in the final list down to this record; None if there is no such list."""
    far_out: str | None = None
    """The column in which it has an extreme value, if any."""


class LeastCleanRecords:
    """The records that are least likely clean; ties are broken by the larger loss, then by the earlier row."""

    def __init__(self, schema: Schema, most: int = MAX_SUSPECTS) -> None:
        self.schema, self.most = schema, most
        self.records: list[Suspect] = []
        """The least likely first."""

    def add(self, rounds: Rounds, batch: Batch, indices: Array) -> None:
        """Add rounds that were played on the records of a batch at these indices."""
        probability = rounds.clean_probability
        if not self.most:
            return
        if len(self.records) == self.most and not (probability <= self.records[-1].round.clean_probability).any():
            return
        before = [record.round for record in self.records]
        probability = np.append([played.clean_probability for played in before], probability)
        losses = np.append([played.loss for played in before], rounds.losses)
        # Earlier rows come first, and sorting leaves equals in their order.
        places = np.lexsort([-losses, probability])[: self.most] - len(before)
        fresh = places[places >= 0]
        played = zip(rounds[fresh].records(self.schema), indices[fresh].tolist(), strict=True)
        found = {
            place: Suspect(record, batch.files, read_values(self.schema, batch, index))
            for place, (record, index) in zip(fresh.tolist(), played, strict=True)
        }
        self.records = [self.records[place] if place < 0 else found[place] for place in places.tolist()]

    def state(self) -> list[Any]:
        return [[list(record.round), *record[1:]] for record in self.records]

    def restore(self, state: list[Any]) -> None:
        """Restore a state of the same size."""
        self.records = [
            Suspect(RoundRecord(*played), file, dict(values), None if why is None else dict(why), *others)
            for played, file, values, why, *others in state[: self.most]
        ]


def shorten(text: str) -> str:
    """Shorten a text for a table; … marks the cut."""
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"


def to_json_value(value: Any) -> Any:
    """Convert a value of a record to one that JSON has: dates as ISO texts, long texts shortened.

    >>> import datetime
    >>> moments = datetime.datetime(2024, 2, 29, 12, 30), datetime.datetime(2024, 2, 29)
    >>> [to_json_value(value) for value in (*moments, None)]
    ['2024-02-29T12:30:00', '2024-02-29', None]
    """
    if value is None or isinstance(value, bool | int | float):
        return value
    if hasattr(value, "isoformat"):
        return value.isoformat().removesuffix("T00:00:00")
    return shorten(str(value))


def read_values(schema: Schema, batch: Batch, index: int, others: Sequence[str] = ()) -> dict[str, Any]:
    """Read the values of a record in the `others` and in the features."""
    names = dict.fromkeys([*others, *(name for name in schema.columns if name != schema.target)])
    return {name: to_json_value(batch.table.column(name)[index].as_py()) for name in names}
