"""What requests to predict and to learn do, from the bytes of a body to those of a reply."""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any
from zlib import crc32

from redescend.errors import DataError, quote, suggest
from redescend.numeric import Array
from redescend.serve.folder import ModelFolder
from redescend.serve.model import ServedModel
from redescend.serve.outcomes import Outcome, Outcomes, merge_outcomes
from redescend.serve.records import Records, Waiting, check_records, dump_record, load_json, read_records
from redescend.serve.replies import TooManyRequests, Unauthorized, encode, encode_in_parts
from redescend.serve.requests import Answer, LearnRequest
from redescend.serve.statistics import RequestMetrics
from redescend.serve.tensors import ID, Tensor, list_inputs, read_tensors
from redescend.serve.writer import Writer
from redescend.sources import Kind
from redescend.sources.jsonl import decode
from redescend.streaming import StreamModel
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.model import Predicted
from redescend.streaming.rounds import Rounds

DATATYPES = {Kind.NUMBER: "FP64", Kind.BOOLEAN: "BOOL", Kind.DATE: "BYTES", Kind.TEXT: "BYTES"}

SMALL = 1 << 16  # bytes of a body that are worth no thread: they are parsed in half a millisecond

LEVEL = 0.9  # the share of clean targets in the intervals, as in answers to learn

Columns = dict[str, list[Any]]


def describe_model(model: ServedModel) -> dict[str, Any]:
    """The metadata of a model."""
    schema, inputs, outputs = model.schema, [], []
    if schema is not None:
        kinds = [(name, DATATYPES[schema.kinds[name]]) for name in list_inputs(schema)]
        inputs = [{"name": name, "datatype": datatype, "shape": [-1]} for name, datatype in kinds]
        outputs = [{"name": name, "datatype": datatype, "shape": [-1]} for name, datatype in model.outputs.items()]
    return {"name": model.name, "versions": ["1"], "platform": "redescend", "inputs": inputs, "outputs": outputs}


def infer(model: ServedModel, text: bytes, raw: bytes) -> tuple[dict[str, Any], int]:
    """The answer to a request, and its number of records; `raw` are tensors behind its JSON."""
    schema = model.require_schema()
    numeric = None if raw or model.numeric is None else model.numeric.inputs.read(text)
    if numeric is not None:
        content, X = numeric
        count, make = len(X), partial(_make_numeric_record, model, X)
    else:
        content = load_json(text)
        columns = read_columns(schema, list(read_tensors(content, raw)))
        count, make = len(next(iter(columns.values()))), partial(make_record, columns)
    check_records(count, model.limits)
    types = model.outputs
    wanted = _read_wanted(content, types)
    level = LEVEL if "low" in wanted or "high" in wanted else None
    rounds: Predicted | Rounds
    if numeric is None:
        rounds = predict(model, [make(place) for place in range(count)], level)
    else:
        rounds = _predict_encoded(model, X, level)
    found = rounds.predictions.tolist()
    values: dict[str, list[Any]] = {}
    # A label may have been added since the request was read.
    labels = model.require_schema().labels
    values["prediction"] = [labels[int(number)] for number in found] if schema.classifies else found
    if "probability" in wanted:
        values["probability"] = rounds.probabilities.tolist()
    if level is not None:
        values |= {"low": rounds.low.tolist(), "high": rounds.high.tolist()}
    if ID in wanted:
        values[ID] = model.labels.put(count, make)
    outputs = [{"name": name, "datatype": types[name], "shape": [count], "data": values[name]} for name in wanted]
    answer = {"model_name": model.name, "model_version": "1", "outputs": outputs}
    if isinstance(content.get("id"), str):
        answer["id"] = content["id"]
    return answer, count


def _read_wanted(content: Mapping[str, Any], known: Iterable[str]) -> list[str]:
    listed = content.get("outputs")
    if listed is None or listed == []:
        return list(known)
    if not isinstance(listed, list) or not all(isinstance(each, Mapping) for each in listed):
        raise DataError("The outputs of a request are a list of objects with a name.")
    names = [str(each.get("name")) for each in listed]
    for name in names:
        if name not in known:
            raise DataError(f"There is no output {quote(name)}; {suggest(list(known), name)}")
    return list(dict.fromkeys(names))


def read_columns(schema: Schema, tensors: Sequence[Tensor]) -> Columns:
    """Columns from one tensor each, or all from one of shape [records, columns]."""
    names = list_inputs(schema)
    if len(tensors) == 1 and tensors[0].name not in names:
        tensor = tensors[0]
        if len(tensor.shape) != 2 or tensor.shape[1] != len(names):
            raise DataError(
                f"The input {quote(tensor.name)} is no column, and its shape is not [records, {len(names)}]; "
                f"{suggest(names, tensor.name)}"
            )
        return {name: tensor.values[place :: len(names)] for place, name in enumerate(names)}
    columns: Columns = {}
    for tensor in tensors:
        if tensor.name not in names and tensor.name != schema.target:
            raise DataError(f"There is no input {quote(tensor.name)}; {suggest(names, tensor.name)}")
        if tensor.name in columns:
            raise DataError(f"The input {quote(tensor.name)} is there twice.")
        if len(tensor.shape) not in (1, 2) or tensor.shape[1:] not in ([], [1]):
            raise DataError(f"The shape of {quote(tensor.name)} must be [records] or [records, 1]. Got {tensor.shape}.")
        columns[tensor.name] = tensor.values
    lacking = [name for name in names if name not in columns]
    if lacking:
        raise DataError(f"The input {quote(lacking[0])} is missing.")
    if len({len(values) for values in columns.values()}) > 1:
        raise DataError("The inputs have different numbers of records.")
    return {name: columns[name] for name in names}


def make_record(columns: Columns, place: int) -> bytes:
    """A record of columns as a line."""
    return dump_record({name: values[place] for name, values in columns.items()})


def _make_numeric_record(model: ServedModel, X: Array, place: int) -> bytes:
    assert model.numeric is not None
    return dump_record(model.numeric.inputs.decode(X[place]))


def _predict_encoded(model: ServedModel, X: Array, level: float | None) -> Predicted:
    with model.read() as served:
        assert isinstance(served, StreamModel)
        return served.predict_encoded(X, level)


def predict(model: ServedModel, records: Sequence[bytes], level: float | None = None) -> Rounds:
    """Predictions, as numbers or indices of labels, with their probabilities and, if a level is given, intervals."""
    batch, learned = model.review(records, target=False, level=level)
    rejected = sorted((*batch.bad, *learned.rejected), key=lambda bad: bad.row)
    if rejected:
        raise DataError(f"Record {rejected[0].row}: {rejected[0].reason}.")
    return learned.rounds


LATE_QUOTES = 8  # the most quotes of a label that comes late: two names, an id and a text


class Learning:
    """A request to learn: its records are read and, if they are labels that come late, joined."""

    def __init__(self, writer: Writer, records: Records, key: str | None, body: bytes) -> None:
        self._writer, self._count = writer, records.count
        model, digest = writer.model, 0 if key is None else crc32(body)
        self._taken: list[tuple[str, Waiting]] = []
        self._refused: dict[int, Outcome] = {}
        self._duplicate = model.find_duplicate(key, digest)
        if self._duplicate is None and records.numbers is None:
            joined, self._taken, self._refused = join_labels(model, records.lines)
            records = Records([record for place, record in enumerate(joined) if place not in self._refused])
        self._request = LearnRequest(records, key, digest)

    def submit(self) -> asyncio.Future[Answer]:
        """Give the records to the writer; done once they are on the disk and learned from."""
        if self._duplicate is not None or not self._request.records.count:
            future = asyncio.get_running_loop().create_future()
            future.set_result(Answer(0, 0, {}) if self._duplicate is None else self._duplicate)
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
        """The content of the answer, once the future of `submit` is done."""
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
            outcomes = merge_outcomes(outcomes, places, self._refused, self._count)
        return _describe(self._writer.model, answer, outcomes)


def join_labels(
    model: ServedModel, records: list[bytes]
) -> tuple[list[bytes], list[tuple[str, Waiting]], dict[int, Outcome]]:
    """Records with each ``{"id": ..., "target": ...}`` replaced by the record with that id and its target.

    Instead of ``target``, the name may be that of the target, unless such a record may be one of its own. Also what was
    taken from the store, and why a record is refused, by its place.
    """
    schema, joined = model.schema, list(records)
    taken: list[tuple[str, Waiting]] = []
    refused: dict[int, Outcome] = {}
    if schema is None or (schema.target == "target" and "id" in schema.columns):
        return joined, taken, refused
    alone = "id" in schema.columns or not schema.inputs
    names = {"target"} if alone else {"target", schema.target}
    for place, record in enumerate(records):
        if b'"id"' not in record or (b'"target"' not in record and (alone or record.count(b'"') > LATE_QUOTES)):
            continue
        values = decode(record)
        if isinstance(values, str) or len(values) != 2 or len(found := names & values.keys()) != 1:
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
        joined[place] = dump_record(json.loads(make(number)) | {schema.target: values[found.pop()]})
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


MAX_KEY = 200


class Calls:
    """The calls of a server, for the models of a folder."""

    def __init__(self, folder: ModelFolder, token: str | None = None) -> None:
        self.folder, self.limits, self._token = folder, folder.limits, token
        self.metrics = RequestMetrics()

    def check(self, authorization: str) -> None:
        """Raise unless a request, which is not counted as open yet, carries the token, and not too many are open."""
        if self._token is not None:
            kind, _, given = authorization.partition(" ")
            if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._token.encode()):
                wrong = "This is not the token of the server" if given else "The server needs a token"
                raise Unauthorized(f"{wrong}: send it as 'Authorization: Bearer TOKEN'.")
        if self.metrics.open >= self.limits.requests:
            raise TooManyRequests(f"The server has {self.limits.requests:,} open requests; try again in a second.")

    def infer(self, writer: Writer, body: bytes, size: str) -> bytes:
        """Predict; `size` is that of the JSON if raw tensors follow it, or empty."""
        split = int(size) if size.isascii() and size.isdigit() and len(size) < 12 else len(body)
        self.folder.read_at = time.monotonic()
        head, raw = (body, b"") if split >= len(body) else (body[:split], body[split:])
        answer, count = infer(writer.model, head, raw)
        self.metrics.add_predicted(writer.model.name, count)
        return encode(answer)

    def score(self, writer: Writer, body: bytes, content_type: str) -> bytes:
        """Describe what would become of records, without learning from them."""
        self.folder.read_at = time.monotonic()
        model, records = writer.model, read_records(body, content_type, limits=self.limits)
        return encode_in_parts({"model_name": model.name, "records": model.score(records.split())})

    def begin_learning(self, writer: Writer, body: bytes, content_type: str, key: str | None) -> Learning:
        """Read the records of a request to learn, with its idempotency key."""
        if key is not None and not 1 <= len(key) <= MAX_KEY:
            raise DataError(f"An idempotency key has 1 to {MAX_KEY} characters. Got {len(key)}.")
        return Learning(writer, read_records(body, content_type, writer.model.numeric, self.limits), key, body)
