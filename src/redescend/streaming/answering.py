"""What a model says of records, and of tables that people have at hand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from redescend.errors import DataError
from redescend.numeric import Array
from redescend.sources import Bad, Batch
from redescend.streaming.encoding import target as targets
from redescend.streaming.encoding.batches import Part, Readied
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.encoding.tables import record_batches
from redescend.streaming.rounds import Rounds


class Learned(NamedTuple):
    """What became of a batch.

    Attributes
    ----------
    rounds : what was predicted, paid and believed of the records that were used.
    kept : where in the batch these are.
    bad : the others, and why.
    """

    rounds: Rounds
    kept: Array
    bad: list[Bad]


class Answering(ABC):
    """What a model of one stream and the models of many keys have in common."""

    schema: Schema

    @abstractmethod
    def _readied(self, table: Any, target: bool) -> Readied:
        """The records of a table that it has an answer to."""

    @abstractmethod
    def _said(self, part: Part) -> Array:
        """What every output predicts."""

    @abstractmethod
    def _believed(self, part: Part, Y: Array) -> Array:
        """How far records are believed by the outputs together."""

    @abstractmethod
    def _paid(self, said: Array, Y: Array) -> Array:
        """What predictions cost every output."""

    def review(self, batch: Batch, *, target: bool = False) -> Learned:
        """What it says of the records of a batch now; nothing is learned.

        Parameters
        ----------
        batch : Batch
        target : bool
            Whether the records are judged too, for which the batch must have the target. Without, targets, losses and
            weights are NaN.
        """
        readied, rounds = self._readied(batch.table, target), []
        for part in readied.parts():
            said, told = self._said(part), (np.full(len(part.X), np.nan),) * 2
            if target:
                Y = targets.answers(self.schema, part.values)
                told = (targets.summed(self._paid(said, Y)), self._believed(part, Y))
            rounds.append((part, played(self.schema, batch, part, said, *told)))
        return gathered(batch, readied, rounds)

    def predict(self, table: Any) -> Array:
        """Numbers or labels, one for each record of a table.

        Parameters
        ----------
        table : pyarrow Table or RecordBatch, pandas or polars DataFrame, or Batch
            With the columns of the features; others are passed over.

        Raises
        ------
        DataError
            A column is not there, or a record cannot be used; the message says which and why.
        """
        predictions, _ = targets.decided(self.schema, self._all_said(table))
        return self.schema.label_values[predictions.astype(np.intp)] if self.schema.classifies else predictions

    def predict_proba(self, table: Any) -> Array:
        """The probability of each label, a column for each in the order of ``schema.labels``, of each record."""
        if not self.schema.classifies:
            raise DataError(f"There are no probabilities of '{self.schema.target}', which is a number and no label.")
        return np.ascontiguousarray(targets.probabilities(self.schema, self._all_said(table)).T)

    def judge(self, table: Any) -> Array:
        """How likely each record of a table, which must have the target, is to be clean; nothing is learned.

        With three or more labels, the least over the labels; with a transform, its weight.
        """
        parts = self._all_parts(table, target=True)
        believed = [self._believed(part, targets.answers(self.schema, part.values)) for part in parts]
        return np.concatenate([np.empty(0), *believed])

    def _all_said(self, table: Any) -> Array:
        said = [self._said(part) for part in self._all_parts(table, target=False)]
        return np.concatenate([np.empty((self.schema.outputs, 0)), *said], axis=1)

    def _all_parts(self, table: Any, target: bool) -> Iterator[Part]:
        """The parts of a table in which every record must be usable."""
        before = 0
        for batch in record_batches(self.schema, table, target):
            readied = self._readied(batch, target)
            if readied.refused:
                at = min(readied.refused)
                raise DataError(f"Row {before + at + 1}: {readied.refused[at]}.")
            yield from readied.parts()
            before += batch.num_rows


def played(schema: Schema, batch: Batch, part: Part, said: Array, paid: Array, believed: Array) -> Rounds:
    """The rounds of some records of a batch."""
    numbers = (part.values, *targets.decided(schema, said), paid, believed)
    keys = part.keys if part.names else None
    return Rounds(batch.rows[part.kept], *numbers, keys=keys, names=part.names)


def gathered(batch: Batch, readied: Readied, rounds: list[tuple[Part, Rounds]]) -> Learned:
    """What became of the records of a batch, all together."""
    kept = np.concatenate([np.empty(0, np.intp), *(part.kept for part, _ in rounds)])
    bad = [
        Bad(int(batch.rows[at]), batch.files, reason, batch.raw(at)) for at, reason in sorted(readied.refused.items())
    ]
    return Learned(Rounds.joined(part for _, part in rounds), kept, bad)
