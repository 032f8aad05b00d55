"""Requests to learn: records with their targets, or targets of records that were predicted before."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from zlib import crc32

from redescend.errors import DataError, quote
from redescend.serve.labels import Waiting
from redescend.serve.model import ServedModel
from redescend.serve.outcomes import Outcome, Outcomes, insert
from redescend.serve.records import Records, dump_record
from redescend.serve.requests import Answer, LearnRequest
from redescend.serve.writer import Writer
from redescend.sources.jsonl import decode

LATE = {"id", "target"}


class Learning:
    """A request to learn: its records are read and, if they are labels that come late, joined."""

    def __init__(self, writer: Writer, records: Records, key: str | None, body: bytes) -> None:
        self._writer, self._count = writer, records.count
        model, digest = writer.model, 0 if key is None else crc32(body)
        self._taken: list[tuple[str, Waiting]] = []
        self._refused: dict[int, Outcome] = {}
        self._known = model.find_duplicate(key, digest)
        if self._known is None and records.numbers is None:
            joined, self._taken, self._refused = join_labels(model, records.lines)
            records = Records([record for place, record in enumerate(joined) if place not in self._refused])
        self._request = LearnRequest(records, key, digest)

    def submit(self) -> asyncio.Future[Answer]:
        """Give the records to the writer; done once they are on the disk and learned from."""
        if self._known is not None or not self._request.records.count:
            future = asyncio.get_running_loop().create_future()
            future.set_result(Answer(0, 0, {}) if self._known is None else self._known)
            return future
        try:
            return self._writer.enqueue(self._request)
        except BaseException:
            self.withdraw()
            raise

    def withdraw(self) -> None:
        """Return the records that were taken from the store: nothing was learned from them."""
        self._writer.model.labels.put_back(self._taken)

    def end(self, future: asyncio.Future[Answer]) -> dict[str, Any]:
        """What the client is told, once the future of `submit` is done."""
        try:
            answer = future.result()
        except BaseException:
            self.withdraw()
            raise
        if answer.duplicate:
            return _describe(self._writer.model, answer, {})
        outcomes = answer.outcomes
        if self._refused:
            places = [place for place in range(self._count) if place not in self._refused]
            outcomes = insert(outcomes, places, self._refused, self._count)
        return _describe(self._writer.model, answer, outcomes)


def join_labels(
    model: ServedModel, records: list[bytes]
) -> tuple[list[bytes], list[tuple[str, Waiting]], dict[int, Outcome]]:
    """Records with each ``{"id": ..., "target": ...}`` replaced by the record with that id and its target.

    Also what was taken from the store, and why a record is refused, by its place.
    """
    schema, joined = model.schema, list(records)
    taken: list[tuple[str, Waiting]] = []
    refused: dict[int, Outcome] = {}
    if schema is None or (schema.target == "target" and "id" in schema.columns):
        return joined, taken, refused
    for place, record in enumerate(records):
        if b'"id"' not in record or b'"target"' not in record:
            continue
        values = decode(record)
        if isinstance(values, str) or values.keys() != LATE:
            continue
        try:
            if not isinstance(values["id"], str):
                raise DataError(f"an id is a text, not {quote(values['id'])}")
            waiting = model.labels.take(values["id"])
        except DataError as error:
            refused[place] = {"status": "rejected", "reason": str(error)}
            continue
        taken.append((values["id"], waiting))
        _, make, number = waiting
        joined[place] = dump_record(json.loads(make(number)) | {schema.target: values["target"]})
    return joined, taken, refused


def _describe(model: ServedModel, answer: Answer, outcomes: Outcomes) -> dict[str, Any]:
    statuses = outcomes.get("status", [])
    counts = dict.fromkeys(("learned", "rejected", "pending"), 0)
    counts |= {status: statuses.count(status) for status in set(statuses)}
    return {
        "model_name": model.name,
        "first_row": answer.row or None,
        "count": answer.records,
        "duplicate": answer.duplicate,
        **counts,
        "records": outcomes,
    }
