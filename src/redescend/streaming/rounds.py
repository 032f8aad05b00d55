"""The rounds of a stream: each record, its prediction, its loss and the weight it was given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from redescend.belief import to_probability
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
    clean_probability: float = np.nan
    low: float | None = None
    high: float | None = None


class Judged(NamedTuple):
    """Judgements of a belief about the records of rounds, from before the update, as arrays of one length.

    `margin`, which the final verdict needs, is the scale of the residual; for labels, it is by how much the logit of
    the given label is above the largest of the others. For labels, low and high are NaN.
    """

    clean_log_odds: Array
    low: Array
    high: Array
    margin: Array
    stuck: Array
    suspect: Array


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
        The loss, summed over outputs, and the weight of the record, the minimum over outputs.
    keys : array of int64 or None
        With one model per key, the index of each record's key in `names`.
    names : sequence of str
    judged : Judged or None
        Judgements of the model's belief. None with a fixed transform.

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
    judged: Judged | None = field(default=None, kw_only=True)

    @cached_property
    def clean_probability(self) -> Array:
        """The probability that each record is clean, never exactly 0 or 1; without a belief, the weight."""
        return self.weights if self.judged is None else to_probability(self.judged.clean_log_odds)

    @property
    def low(self) -> Array:
        """The lower end of the interval of nine in ten clean targets; NaN without one."""
        return np.full(len(self), np.nan) if self.judged is None else self.judged.low

    @property
    def high(self) -> Array:
        """The upper end of the interval of nine in ten clean targets; NaN without one."""
        return np.full(len(self), np.nan) if self.judged is None else self.judged.high

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which: slice | Array) -> Rounds:
        """Select rounds by a slice, indices or a mask."""
        keys = None if self.keys is None else self.keys[which]
        judged = None if self.judged is None else Judged(*(array[which] for array in self.judged))
        return Rounds(*(array[which] for array in self.arrays()), keys=keys, names=self.names, judged=judged)

    def arrays(self) -> Iterator[Array]:
        """The arrays that every round has, in the order of the fields."""
        return iter((self.rows, self.targets, self.predictions, self.probabilities, self.losses, self.weights))

    @staticmethod
    def concatenate(parts: Iterable[Rounds]) -> Rounds:
        """Concatenate rounds; with keys and judgements if all have them."""
        listed = list(parts)
        listed = (
            [part for part in listed if len(part)] or listed[:1] or [Rounds(np.empty(0, np.int64), *np.empty((5, 0)))]
        )
        if len(listed) == 1:
            return listed[0]
        arrays = [np.concatenate(arrays) for arrays in zip(*(part.arrays() for part in listed), strict=True)]
        keys = [part.keys for part in listed if part.keys is not None]
        beliefs = [part.judged for part in listed if part.judged is not None]
        judged = None
        if len(beliefs) == len(listed):
            judged = Judged(*(np.concatenate(parts) for parts in zip(*beliefs, strict=True)))
        if len(keys) < len(listed):
            return Rounds(*arrays, judged=judged)
        return Rounds(*arrays, keys=np.concatenate(keys), names=listed[0].names, judged=judged)

    def record(self, index: int, schema: Schema) -> RoundRecord:
        """One round, with its labels as texts."""
        return next(self[index : index + 1].records(schema))

    def records(self, schema: Schema) -> Iterator[RoundRecord]:
        """All rounds one by one, with their labels as texts."""
        keys = [None] * len(self) if self.keys is None else [self.names[key] for key in self.keys.tolist()]
        columns = [array.tolist() for array in self.arrays()]
        judged = [array.tolist() for array in (self.clean_probability, self.low, self.high)]
        for *round_, key, clean, low, high in zip(*columns, keys, *judged, strict=True):
            row, target, prediction, probability, loss, weight = round_
            decoded = (schema.decode_value(target), schema.decode_value(prediction), _nan_to_none(probability))
            yield RoundRecord(row, *decoded, loss, weight, key, clean, _nan_to_none(low), _nan_to_none(high))


def _nan_to_none(number: float) -> float | None:
    """None in place of NaN."""
    return None if number != number else number
