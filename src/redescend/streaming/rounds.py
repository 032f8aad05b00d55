"""What happened in the rounds of a stream: a record came, was predicted, and was believed so far."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from redescend.numeric import Array

if TYPE_CHECKING:
    from redescend.streaming.encoding.schema import Schema


class Played(NamedTuple):
    """One round, in the words of the stream: numbers, or labels as texts."""

    row: int
    target: float | str | None
    prediction: float | str | None
    probability: float | None
    loss: float
    weight: float
    key: str | None = None


@dataclass(frozen=True)
class Rounds:
    """Rounds in a row, as arrays of one length.

    Parameters
    ----------
    rows : array of int64
        The number of each record in the stream, from 1.
    targets, predictions : arrays of float64
        Numbers; or the places of labels in `Schema.labels`. A prediction is made before the record is learned from. NaN
        is a target that was not asked for.
    probabilities : array of float64
        Of the predicted label; NaN in regression.
    losses, weights : arrays of float64
        What the prediction cost, in all outputs together, and how likely the record is to be clean: the least over
        outputs.
    keys : array of int64 or None
        Where there is a model for each key, the place of the key of each record in `names`.
    names : sequence of str
        The keys.

    Examples
    --------
    >>> one = np.ones(2)
    >>> rounds = Rounds(np.array([7, 9]), 5.0 * one, 4.0 * one, np.nan * one, one, np.array([0.9, 0.1]))
    >>> len(rounds), rounds[1:].rows.tolist(), len(Rounds.joined([rounds, rounds]))
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
        """Some of the rounds: a slice, places or a mask."""
        keys = None if self.keys is None else self.keys[which]
        return Rounds(*(array[which] for array in self.arrays()), keys=keys, names=self.names)

    def arrays(self) -> Iterator[Array]:
        """All arrays that every round has, in the order of the fields."""
        return iter((self.rows, self.targets, self.predictions, self.probabilities, self.losses, self.weights))

    @staticmethod
    def joined(parts: Iterable[Rounds]) -> Rounds:
        """Rounds after one another; with keys if all have them."""
        listed = list(parts)
        if len(listed) == 1:
            return listed[0]
        if not listed:
            return Rounds(np.empty(0, np.int64), *np.empty((5, 0)))
        arrays = [np.concatenate(arrays) for arrays in zip(*(part.arrays() for part in listed), strict=True)]
        keys = [part.keys for part in listed if part.keys is not None]
        if len(keys) < len(listed):
            return Rounds(*arrays)
        return Rounds(*arrays, keys=np.concatenate(keys), names=listed[0].names)

    def record(self, index: int, schema: Schema) -> Played:
        """One round, with labels in words."""
        return next(self[index : index + 1].records(schema))

    def records(self, schema: Schema) -> Iterator[Played]:
        """One round after the other, with labels in words."""
        keys = [None] * len(self) if self.keys is None else [self.names[key] for key in self.keys.tolist()]
        for row, target, prediction, probability, loss, weight, key in zip(
            *(array.tolist() for array in self.arrays()), keys, strict=True
        ):
            shown = None if probability != probability else probability
            yield Played(row, schema.in_words(target), schema.in_words(prediction), shown, loss, weight, key)
