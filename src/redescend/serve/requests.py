"""Requests to learn and their answers, and what a model has learned from a group of them."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import NamedTuple

from redescend.numeric import Array
from redescend.serve.journal import Request
from redescend.serve.keys import Remembered
from redescend.serve.outcomes import Outcome, Outcomes, select
from redescend.serve.records import Records
from redescend.sources import Bad
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.rounds import Rounds


class LearnRequest(NamedTuple):
    """Records of one request, its idempotency key, and a digest of its body."""

    records: Records
    key: str | None = None
    digest: int = 0


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


def list_counts(requests: list[LearnRequest]) -> list[Request]:
    """What the journal says of requests."""
    return [(request.records.count, request.key, request.digest) for request in requests]


def make_answers(added: list[Remembered], before: int, outcomes: Outcomes) -> list[Answer]:
    """The answers to requests that were committed together after the row `before`."""
    answers = []
    for _, row, records in added:
        first = row - before - 1
        answers.append(Answer(row, records, select(outcomes, first, first + records)))
    return answers


def join_records(requests: list[LearnRequest]) -> list[bytes | memoryview]:
    """The records of each request, as one text."""
    return [request.records.join() for request in requests]


def split_records(requests: list[LearnRequest]) -> list[bytes]:
    """The records of all requests."""
    return [line for request in requests for line in request.records.split()]
