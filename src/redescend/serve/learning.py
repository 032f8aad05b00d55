"""Requests to learn: records with their targets, or targets of records that were predicted before."""

from __future__ import annotations

import json
from collections import Counter
from operator import itemgetter
from typing import Any
from zlib import crc32

from redescend.errors import DataError, quote
from redescend.serve.labels import Waiting
from redescend.serve.model import Answer, LearnRequest, ServedModel
from redescend.serve.outcomes import Outcome
from redescend.serve.records import Records, dump_record
from redescend.serve.writer import Writer
from redescend.sources.jsonl import decode

LATE = {"id", "target"}
MAX_KEY = 200


def check_key(key: str | None) -> str | None:
    """An idempotency key, as it may be."""
    if key is not None and not 1 <= len(key) <= MAX_KEY:
        raise DataError(f"An idempotency key has 1 to {MAX_KEY} characters. Got {len(key)}.")
    return key


async def learn(writer: Writer, records: Records, key: str | None, body: bytes) -> dict[str, Any]:
    """Commit records and learn from them; what the client is told."""
    model, digest = writer.model, crc32(body)
    known = model.find_duplicate(LearnRequest([], key, digest))
    if known is not None:
        return _describe(model, known, [])
    taken: list[tuple[str, Waiting]] = []
    refused: dict[int, Outcome] = {}
    used, objects = records
    if b'"id"' in body or objects is None:
        joined, taken, refused = join_labels(model, used)
        used, objects = [record for place, record in enumerate(joined) if place not in refused], None
    try:
        answer = Answer(0, 0, []) if not used else await writer.submit(LearnRequest(used, key, digest, objects))
    except BaseException:
        model.labels.put_back(taken)
        raise
    if answer.duplicate:
        return _describe(model, answer, [])
    learned = iter(answer.outcomes)
    outcomes = (
        [refused.get(place) or next(learned) for place in range(len(records.lines))] if refused else answer.outcomes
    )
    return _describe(model, answer, outcomes)


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


def _describe(model: ServedModel, answer: Answer, outcomes: list[Outcome]) -> dict[str, Any]:
    found = Counter(map(itemgetter("status"), outcomes))
    counts = {status: found[status] for status in ("learned", "rejected", "pending")}
    return {
        "model_name": model.name,
        "first_row": answer.row or None,
        "count": answer.records,
        "duplicate": answer.duplicate,
        **counts,
        "records": outcomes,
    }
