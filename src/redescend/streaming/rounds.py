"""The rounds of a stream: each record, its prediction, its loss and the weight it was given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from redescend.numeric import Array
from redescend.streaming.encoding.schema import Schema


class RoundRecord(NamedTuple):
    """One round, with labels and keys as texts."""

    row: int
    target: float | str | None
    prediction: float | str | None
    probability: float | None
    loss: float
    weight: float
    key: str | None = None


@dataclass(frozen=True)
class Rounds:
    """Consecutive rounds, as arrays of one length.

    Parameters
    ----------
    rows : array of int64
        The number of each record in the stream, from 1.
    targets, predictions : arrays of float64
        Numbers, or indices in `Schema.labels`. Predictions are made before the record is learned from.
    probabilities : array of float64
        Of the predicted label; NaN in regression.
    losses, weights : arrays of float64
        The loss, summed over outputs, and the probability that the record is clean, the minimum over outputs.
    keys : array of int64 or None
        With one model per key, the index of each record's key in `names`.
    names : sequence of str

    Examples
    --------
    >>> one = np.ones(2)
    >>> rounds = Rounds(np.array([7, 9]), 5.0 * one, 4.0 * one, np.nan * one, one, np.array([0.9, 0.1]))
    >>> len(rounds), rounds[1:].rows.tolist(), len(Rounds.concatenate([rounds, rounds]))
    (2, [9], 4)
    """

    rows: Array
    targets: Array
    predictions: Array
    probabilities: Array
    losses: Array
    weights: Array
    keys: Array | None = field(default=None, kw_only=True)
    names: Sequence[str] = field(default=(), kw_only=True)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which: slice | Array) -> Rounds:
        """Select rounds by a slice, indices or a mask."""
        keys = None if self.keys is None else self.keys[which]
        return Rounds(*(array[which] for array in self.arrays()), keys=keys, names=self.names)

    def arrays(self) -> Iterator[Array]:
        """The arrays that every round has, in the order of the fields."""
        return iter((self.rows, self.targets, self.predictions, self.probabilities, self.losses, self.weights))

    @staticmethod
    def concatenate(parts: Iterable[Rounds]) -> Rounds:
        """Concatenate rounds; with keys if all have them."""
        listed = list(parts) or [Rounds(np.empty(0, np.int64), *np.empty((5, 0)))]
        if len(listed) == 1:
            return listed[0]
        arrays = [np.concatenate(arrays) for arrays in zip(*(part.arrays() for part in listed), strict=True)]
        keys = [part.keys for part in listed if part.keys is not None]
        if len(keys) < len(listed):
            return Rounds(*arrays)
        return Rounds(*arrays, keys=np.concatenate(keys), names=listed[0].names)

    def record(self, index: int, schema: Schema) -> RoundRecord:
        """One round, with its labels as texts."""
        return next(self[index : index + 1].records(schema))

    def records(self, schema: Schema) -> Iterator[RoundRecord]:
        """All rounds one by one, with their labels as texts."""
        keys = [None] * len(self) if self.keys is None else [self.names[key] for key in self.keys.tolist()]
        columns = [array.tolist() for array in self.arrays()]
        for row, target, prediction, probability, loss, weight, key in zip(*columns, keys, strict=True):
            known = None if probability != probability else probability
            decoded = (schema.decode_value(target), schema.decode_value(prediction))
            yield RoundRecord(row, *decoded, known, loss, weight, key)
