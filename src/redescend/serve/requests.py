"""Requests to learn, their idempotency keys and their answers, and what a model has learned from a group of them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from redescend.checkpoint import write_chunks
from redescend.checkpoint.serialization import Serializer
from redescend.numeric import Array
from redescend.serve.journal import Request
from redescend.serve.numbers import NumericBatch
from redescend.serve.records import Records
from redescend.serve.replies import Conflict
from redescend.sources import Bad, Batch
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.predictor import Learned
from redescend.streaming.rounds import Rounds

Outcomes = dict[str, Any]
"""Columns by their names: arrays or lists with a value for each record. NaN becomes null in JSON."""

Outcome = dict[str, Any]  # the values of one record by their names


def describe_rounds(rounds: Rounds, schema: Schema, suspects: Array, status: str) -> Outcomes:
    """What is said of rounds; `suspects` says which of them are of suspects."""
    outcomes: Outcomes = {
        "status": [status] * len(rounds),
        "row": rounds.rows,
        "target": rounds.targets,
        "prediction": rounds.predictions,
        "loss": rounds.losses,
        "weight": rounds.weights,
        "clean_probability": rounds.clean_probability,
        "suspect": suspects,
    }
    if schema.classifies:
        decoded = {name: list(map(schema.decode_value, outcomes[name].tolist())) for name in ("target", "prediction")}
        outcomes |= {**decoded, "probability": rounds.probabilities}
    elif rounds.judged is not None:
        outcomes |= {"low": rounds.low, "high": rounds.high}
    if rounds.keys is not None:
        outcomes["key"] = [rounds.names[key] for key in rounds.keys.tolist()]
    return outcomes


def complete(batch: Batch | NumericBatch, learned: Learned, outcomes: Outcomes) -> Outcomes:
    """The outcomes of a batch, in the order of its records, from those of its rounds."""
    if len(learned.rounds) == batch.count:
        return outcomes
    first = batch.end.row - batch.count + 1
    rejected = {bad.row - first: reject(bad) for bad in (*batch.bad, *learned.rejected)}
    return insert(outcomes, (learned.rounds.rows - first).tolist(), rejected, batch.count)


def insert(outcomes: Outcomes, places: Sequence[int], others: Mapping[int, Outcome], count: int) -> Outcomes:
    """Columns of `count` records: `outcomes` of those at some places and `others` by theirs, with None elsewhere.

    >>> insert({"status": ["learned"], "loss": [0.5]}, [1], {0: {"status": "rejected", "reason": "empty"}}, 2)
    {'status': ['rejected', 'learned'], 'loss': [None, 0.5], 'reason': ['empty', None]}
    """
    columns: dict[str, list[Any]] = {}
    for name, column in outcomes.items():
        columns[name] = [None] * count
        for place, value in zip(places, to_list(column), strict=True):
            columns[name][place] = value
    for place, values in others.items():
        for name, value in values.items():
            columns.setdefault(name, [None] * count)[place] = value
    return columns


def select(outcomes: Outcomes, start: int, stop: int) -> Outcomes:
    """Some consecutive records."""
    return {name: column[start:stop] for name, column in outcomes.items()}


def pick(outcomes: Outcomes, place: int) -> Outcome:
    """One record."""
    return {name: to_list(column[place : place + 1])[0] for name, column in outcomes.items()}


def to_list(column: Any) -> list[Any]:
    """A column as a list of plain values."""
    return column.tolist() if isinstance(column, np.ndarray) else column


def reject(bad: Bad) -> Outcome:
    """What is said of a record that is set aside."""
    return {"status": "rejected", "row": bad.row, "reason": bad.reason}


def dump_model(model: Any) -> bytes:
    """The bytes that `redescend.save` writes."""
    serializer = Serializer()
    description = serializer.serialize(model)
    return b"".join(write_chunks(description, serializer.arrays))


class Remembered(NamedTuple):
    """A request that was committed: the digest of its body, its first row and its number of records."""

    digest: int
    row: int
    records: int


class Keys(OrderedDict[str, Remembered]):
    """The requests of the newest keys, at most `most`.

    >>> keys = Keys(most=10)
    >>> keys.add([(3, None, 0), (5, "a", 17)], before=100)
    [Remembered(digest=0, row=101, records=3), Remembered(digest=17, row=104, records=5)]
    >>> keys.find("a", 17)
    Remembered(digest=17, row=104, records=5)
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def find(self, key: str | None, digest: int) -> Remembered | None:
        """The request that was committed with a key, if any; raises if its body had another digest."""
        known = None if key is None else self.get(key)
        if known is not None and known.digest != digest:
            raise Conflict("The idempotency key was used before, for another body; use a new one.")
        return known

    def add(self, requests: Sequence[Request], before: int) -> list[Remembered]:
        """Remember requests whose records come after the row `before`; returns all, also those without a key."""
        added = []
        for count, key, digest in requests:
            added.append(Remembered(digest, before + 1, count))
            before += count
            if key is not None:
                self[key] = added[-1]
        while len(self) > self._most:
            self.popitem(last=False)
        return added


class LearnRequest(NamedTuple):
    """Records of one request, its idempotency key, and a digest of its body."""

    records: Records
    key: str | None = None
    digest: int = 0

    @property
    def noted(self) -> Request:
        """What the journal says of it."""
        return self.records.count, self.key, self.digest


class Answer(NamedTuple):
    """What a client is told: the first row of its records, how many there are, and what became of them."""

    row: int
    records: int
    outcomes: Outcomes
    duplicate: bool = False


@dataclass(frozen=True)
class Counts:
    """Records of a model: all that were committed, those learned from, rejected ones, and suspects."""

    records: int = 0
    learned: int = 0
    rejected: int = 0
    suspects: int = 0


class Taught(NamedTuple):
    """A batch that a model has learned from, and what clients are told.

    The schema, to which the batch may have added labels, the number of records, the rounds, which of them are suspects,
    the newest of those with their values, and rejected records.
    """

    schema: Schema
    records: int
    rounds: Rounds
    are_suspects: Array
    suspects: list[Outcome]
    rejected: list[Bad]
    outcomes: Outcomes


class Begun(NamedTuple):
    """A commit that was learned from: its requests, the number of records before it, and a future.

    The future is done once the commit is on the disk.
    """

    requests: list[Request]
    before: int
    taught: Taught
    written: Future[None]


def make_answers(added: list[Remembered], before: int, outcomes: Outcomes) -> list[Answer]:
    """The answers to requests that were committed together after the row `before`."""
    answers = []
    for _, row, records in added:
        first = row - before - 1
        answers.append(Answer(row, records, select(outcomes, first, first + records)))
    return answers


def split_records(requests: list[LearnRequest]) -> list[bytes]:
    """The records of all requests."""
    return [line for request in requests for line in request.records.split()]
