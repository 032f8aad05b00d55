"""The records that were believed least, with all that a person needs to judge them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from redescend.errors import DataError
from redescend.kernels import histograms as kernel
from redescend.streaming.rounds import Played, Rounds

if TYPE_CHECKING:
    from redescend.numeric import Array
    from redescend.sources import Batch
    from redescend.streaming.encoding.schema import Schema

MOST = 10
LONGEST = 200
"""Characters that are kept of a text."""


class Doubted(NamedTuple):
    """A record that was hardly believed: what happened in its round, and its values as they came."""

    round: Played
    file: str
    values: dict[str, Any]


def shortened(text: str) -> str:
    """A text that fits into a table; … stands for what is left out."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def plain(value: Any) -> Any:
    """A value of a record as JSON knows it: dates as ISO texts, long texts cut.

    Examples
    --------
    >>> import datetime
    >>> plain(datetime.datetime(2024, 2, 29, 12, 30)), plain(datetime.datetime(2024, 2, 29)), plain(None)
    ('2024-02-29T12:30:00', '2024-02-29', None)
    """
    if value is None or isinstance(value, bool | int | float):
        return value
    if hasattr(value, "isoformat"):
        return value.isoformat().removesuffix("T00:00:00")
    return shortened(str(value))


def values_of(schema: Schema, batch: Batch, index: int) -> dict[str, Any]:
    """What a record of a batch has in the columns that are learned from."""
    names = (name for name in schema.columns if name != schema.target)
    return {name: plain(batch.table.column(name)[index].as_py()) for name in names}


class Least:
    """The records with the smallest weights; of equals those with the larger loss, and then the earlier ones."""

    def __init__(self, schema: Schema, most: int = MOST) -> None:
        self.schema, self.most = schema, most
        self.records: list[Doubted] = []
        """The least believed first."""

    def add(self, rounds: Rounds, batch: Batch, kept: Array) -> None:
        """See rounds, played on the records of a batch at these places."""
        if len(self.records) == self.most and not (rounds.weights <= self.records[-1].round.weight).any():
            return
        before = [record.round for record in self.records]
        rows = np.zeros(self.most, dtype=np.int64)
        numbers, places = np.zeros((2, self.most)), np.full(self.most, -1)
        for at, played in enumerate(before):
            rows[at], numbers[:, at] = played.row, (played.weight, played.loss)
        count = kernel.least(rounds.rows, rounds.weights, rounds.losses, len(before), rows, numbers, places)
        known = {record.round.row: record for record in self.records}
        fresh = places[:count][places[:count] >= 0]
        for played, index in zip(rounds[fresh].records(self.schema), kept[fresh].tolist(), strict=True):
            known[played.row] = Doubted(played, batch.files, values_of(self.schema, batch, index))
        self.records = [known[row] for row in rows[:count].tolist()]

    def state(self) -> list[Any]:
        return [[list(record.round), record.file, dict(record.values)] for record in self.records]

    def restore(self, state: list[Any]) -> None:
        """Go back to a state that one of the same size gave."""
        try:
            records = [Doubted(Played(*played), file, dict(values)) for played, file, values in state]
        except (TypeError, ValueError):
            raise DataError("The state of the least believed records is misshapen; it has been altered.") from None
        self.records = records[: self.most]
