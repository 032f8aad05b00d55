"""Requests to learn and their answers, their idempotency keys, and commits of several requests."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import NamedTuple

from redescend.numeric import Array
from redescend.serve.journal import Request
from redescend.serve.outcomes import Outcome, Outcomes, slice_outcomes
from redescend.serve.records import Records
from redescend.serve.replies import Conflict
from redescend.sources import Bad
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.rounds import Rounds


class CommittedRequest(NamedTuple):
    """A request that was committed: the digest of its body, its first row and its number of records."""

    digest: int
    row: int
    records: int


class IdempotencyCache(OrderedDict[str, CommittedRequest]):
    """The requests of the newest keys, at most `capacity`.

    >>> keys = IdempotencyCache(capacity=10)
    >>> keys.add([(3, None, 0), (5, "a", 17)], before=100)
    [CommittedRequest(digest=0, row=101, records=3), CommittedRequest(digest=17, row=104, records=5)]
    >>> keys.find("a", 17)
    CommittedRequest(digest=17, row=104, records=5)
    """

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self._capacity = capacity

    def find(self, key: str | None, digest: int) -> CommittedRequest | None:
        """The request that was committed with a key, if any; raises if its body had another digest."""
        request = None if key is None else self.get(key)
        if request is not None and request.digest != digest:
            raise Conflict("The idempotency key was used before, for another body; use a new one.")
        return request

    def add(self, requests: Sequence[Request], before: int) -> list[CommittedRequest]:
        """Remember requests whose records come after the row `before`; returns all, also those without a key."""
        added = []
        for count, key, digest in requests:
            added.append(CommittedRequest(digest, before + 1, count))
            before += count
            if key is not None:
                self[key] = added[-1]
        while len(self) > self._capacity:
            self.popitem(last=False)
        return added


class LearnRequest(NamedTuple):
    """Records of one request, its idempotency key, and a digest of its body."""

    records: Records
    key: str | None = None
    digest: int = 0

    @property
    def journal_entry(self) -> Request:
        """The request as its commit lists it in the journal."""
        return self.records.count, self.key, self.digest


class Answer(NamedTuple):
    """The answer to a request: the first row of its records, how many there are, and their outcomes."""

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


class LearnedBatch(NamedTuple):
    """A batch that a model has learned from.

    The schema, to which the batch may have added labels, the number of records, the rounds, which of them are suspects,
    the newest of those with their values, rejected records, and the outcomes of all records.
    """

    schema: Schema
    records: int
    rounds: Rounds
    are_suspects: Array
    suspects: list[Outcome]
    rejected: list[Bad]
    outcomes: Outcomes


class PreparedCommit(NamedTuple):
    """A commit that was learned from: its requests, the number of records before it, and a future.

    The future is done once the commit is on the disk.
    """

    requests: list[Request]
    before: int
    learned: LearnedBatch
    written: Future[None]


def make_answers(added: list[CommittedRequest], before: int, outcomes: Outcomes) -> list[Answer]:
    """The answers to requests that were committed together after the row `before`."""
    answers = []
    for _, row, records in added:
        first = row - before - 1
        answers.append(Answer(row, records, slice_outcomes(outcomes, first, first + records)))
    return answers


def split_records(requests: list[LearnRequest]) -> list[bytes]:
    """The records of all requests."""
    return [line for request in requests for line in request.records.split()]
