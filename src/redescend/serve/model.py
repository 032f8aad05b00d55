"""A served model: one writer commits records to its journal and learns from them, and any number of readers use it."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from redescend.belief import ResidualBelief
from redescend.errors import DataError, DivergenceError, RedescendError
from redescend.serve.journal import Fsync, Journal
from redescend.serve.labels import LateLabels
from redescend.serve.numbers import NumericBatch, NumericRecords
from redescend.serve.outcomes import Outcome, Outcomes, complete, describe_rounds, dump_model, pick, select
from redescend.serve.recent import RecentRing, RecentRounds
from redescend.serve.records import RecordParser, Records
from redescend.serve.refusals import Conflict
from redescend.serve.replicas import Model, Reader, Replicas
from redescend.serve.settings import Limits, ModelSettings
from redescend.serve.statistics import Statistics
from redescend.sources import SAMPLE, Batch, Kind, open_source
from redescend.streaming import ModelStore, StreamModel
from redescend.streaming.config import FitConfig
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.predictor import Learned
from redescend.streaming.summary.least_clean import read_values

ID = "id"
"""The output whose values clients send back with labels that come late."""

NEWEST = 100
"""Suspects that are kept with their values."""


class LearnRequest(NamedTuple):
    """Records of one request, its idempotency key, and a digest of its body."""

    records: Records
    key: str | None = None
    digest: int = 0


class Remembered(NamedTuple):
    """A request that was committed: the digest of its body, its first row and its number of records."""

    digest: int
    row: int
    records: int


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


class ServedModel:
    """A model in a folder of its own.

    Only one thread at a time may call `commit`; everything else may be called from any thread.
    `redescend.serve.recovery` makes one from its folder.

    Parameters
    ----------
    name : str
    folder : Path
    settings : ModelSettings
    limits : Limits
    fsync : Fsync
        When the journal is synchronized.
    """

    def __init__(
        self, name: str, folder: Path, settings: ModelSettings, limits: Limits, fsync: Fsync = Fsync.ALWAYS
    ) -> None:
        self.name, self.folder, self.settings, self.limits = name, folder, settings, limits
        self.journal = Journal(folder / "journal", fsync)
        self.labels = LateLabels(limits.labels, limits.label_seconds)
        self.counts = Counts()
        self.keys: OrderedDict[str, Remembered] = OrderedDict()
        self.pending: list[bytes] = []
        """Records that were committed before the schema was decided."""
        self.failure: str | None = None
        """Why no schema could be decided yet."""
        self.newest: deque[Outcome] = deque(maxlen=NEWEST)
        self.numeric: NumericRecords | None = None
        self._recent = RecentRing()
        self._lock = Lock()
        self._replicas: Replicas | None = None

    # --- the beginning ---

    @property
    def config(self) -> FitConfig:
        return self.settings.config

    @property
    def schema(self) -> Schema | None:
        """What is predicted from what; None until that is decided."""
        return self._schema if self._replicas is not None else None

    def require_schema(self) -> Schema:
        """The schema, or an error that says what is missing."""
        if self._replicas is None:
            had, wanted = len(self.pending), self.settings.first
            why = f"it has {had} of the {wanted} records" if had < wanted else self.failure
            raise Conflict(f"The model '{self.name}' has no schema yet: {why}.".replace("..", "."))
        return self._schema

    def make_model(self, schema: Schema) -> Model:
        """A model that has learned nothing."""
        make = StreamModel if schema.by is None else ModelStore
        return make(schema, **self.config.model_settings())

    def serve(self, model: Model, statistics: Statistics | None = None) -> None:
        """Begin to predict and to learn with a model."""
        self._schema = schema = model.schema
        self.has_intervals = isinstance(model.belief, ResidualBelief)
        self.outputs = _list_outputs(schema, self.has_intervals)
        self.statistics = Statistics(schema, self.config.transform) if statistics is None else statistics
        self._learning = RecordParser({name: schema.kinds[name] for name in schema.columns}, self.name)
        self._predicting = RecordParser({name: schema.kinds[name] for name in list_inputs(schema)}, self.name)
        self.numeric = NumericRecords(schema)
        self._replicas = Replicas(model)

    def declare(self, schema: Schema) -> None:
        """Write the schema to the journal, where `redescend fit` finds it."""
        kinds = {name: kind.value for name, kind in schema.kinds.items()}
        self.journal.declare({"kinds": kinds, "schema": schema.to_dict()})

    def start(self) -> Outcomes | None:
        """Infer the schema from the first records, and learn from them; None if they do not tell it yet."""
        kinds = {} if self.config.by is None else {self.config.by: Kind.TEXT}
        settings = self.config.select("target", "features", "ignore", "task", "labels", "by", "lags", "lag_columns")
        try:
            source = open_source(str(self.journal.folder), kinds=kinds)
            schema = Schema.infer(source.sample, source.kinds, **settings, stream=True)
            model = self.make_model(schema)
            batch = RecordParser({name: schema.kinds[name] for name in schema.columns}, self.name).parse(
                self.pending, 0
            )
            learned = model.learn(batch)
        except (RedescendError, ValueError) as error:
            self.failure = str(error)
            return None
        self.declare(schema)
        self.serve(model)
        self.pending = []
        return self._note(batch, learned)

    # --- the writer ---

    def commit(self, requests: Sequence[LearnRequest]) -> list[Answer | Exception]:
        """Commit and learn from the records of many requests; an answer or an error for each."""
        answers: list[Answer | Exception | None] = [None] * len(requests)
        while waiting := [place for place, answer in enumerate(answers) if answer is None]:
            group: dict[Any, int] = {}
            for place in waiting:
                key = requests[place].key
                try:
                    answers[place] = self.find_duplicate(key, requests[place].digest)
                except Conflict as error:
                    answers[place] = error
                if answers[place] is None:
                    # The same key twice: the second time it is a duplicate, unless the first fails.
                    group.setdefault(place if key is None else key, place)
            committed = self._commit([requests[place] for place in group.values()])
            for place, answer in zip(group.values(), committed, strict=True):
                answers[place] = answer
        return [answer for answer in answers if answer is not None]

    def _commit(self, requests: list[LearnRequest]) -> list[Answer | Exception]:
        if not requests:
            return []
        try:
            return list(self._commit_group(requests))
        except OSError as error:
            return [error] * len(requests)
        except (DataError, DivergenceError, Conflict) as error:
            if len(requests) == 1:
                return [error]
            # One of them is to blame, and the others are not.
            return [answer for request in requests for answer in self._commit([request])]

    def _commit_group(self, requests: list[LearnRequest]) -> list[Answer]:
        noted = [(request.records.count, request.key, request.digest) for request in requests]
        before = self.counts.records + len(self.pending)
        if self._replicas is not None:
            batch = self._join_numbers(requests, before) or self._learning.parse(_split(requests), before)
            end, written = self.journal.end, self.journal.begin_commit(noted, _join(requests))
            try:
                learned = self._replicas.prepare(batch)
            except BaseException:
                if written.exception() is None:
                    self.journal.take_back(end)
                raise
            try:
                written.result()
            except BaseException:
                self._replicas.discard()
                raise
            self._replicas.publish()
            outcomes = self._note(batch, learned)
        else:
            outcomes = self._commit_pending(noted, requests)
        answers = []
        for place, request in zip(self.remember(noted, before), requests, strict=True):
            first = place.row - before - 1
            answers.append(Answer(place.row, place.records, select(outcomes, first, first + request.records.count)))
        return answers

    def _join_numbers(self, requests: list[LearnRequest], before: int) -> NumericBatch | None:
        numbers = [request.records.numbers for request in requests if request.records.numbers is not None]
        return NumericBatch.join(numbers, before) if len(numbers) == len(requests) else None

    def _commit_pending(self, noted: list[tuple[int, str | None, int]], requests: list[LearnRequest]) -> Outcomes:
        if len(self.pending) >= SAMPLE:
            raise Conflict(f"The model '{self.name}' cannot start: {self.failure}")
        self.journal.commit(noted, _join(requests))
        before, records = len(self.pending), _split(requests)
        self.pending += records
        outcomes = self.start() if len(self.pending) >= self.settings.first else None
        if outcomes is None:
            count = len(records)
            why = {} if self.failure is None else {"reason": [self.failure] * count}
            return {"status": ["pending"] * count, "row": list(range(before + 1, before + 1 + count)), **why}
        return select(outcomes, before, before + len(records))

    def learn(self, records: list[bytes]) -> None:
        """Learn from records that are in the journal."""
        assert self._replicas is not None
        batch = self._learning.parse(records, self.counts.records)
        learned = self._replicas.prepare(batch)
        self._replicas.publish()
        self._note(batch, learned)

    def _note(self, batch: Batch | NumericBatch, learned: Learned) -> Outcomes:
        are_suspects = self.statistics.are_suspects(learned.rounds)
        described = describe_rounds(learned.rounds, self._schema, are_suspects, "learned")
        suspects = [
            {**pick(described, place), "values": self._read_values(batch, learned.indices[place])}
            for place in np.flatnonzero(are_suspects)[-NEWEST:].tolist()
        ]
        rejected = sorted((*batch.bad, *learned.rejected), key=lambda bad: bad.row)
        with self._lock:
            self.statistics.add(learned.rounds, rejected)
            self.newest.extend(suspects)
            self._recent.add(learned.rounds, are_suspects)
            now = self.counts
            self.counts = Counts(
                now.records + batch.count,
                now.learned + len(learned.rounds),
                now.rejected + len(rejected),
                now.suspects + int(are_suspects.sum()),
            )
        return complete(batch, learned, described)

    def _read_values(self, batch: Batch | NumericBatch, index: int) -> dict[str, Any]:
        if isinstance(batch, NumericBatch):
            assert self.numeric is not None
            return dict(self.numeric.inputs.decode(batch.X[index]))
        return read_values(self._schema, batch, index)

    def find_duplicate(self, key: str | None, digest: int) -> Answer | None:
        """The answer to a request whose key was committed before."""
        known = None if key is None else self.keys.get(key)
        if known is None:
            return None
        if known.digest != digest:
            raise Conflict("The idempotency key was used before, for another body; use a new one.")
        return Answer(known.row, known.records, {}, duplicate=True)

    def remember(self, requests: Sequence[tuple[int, str | None, int]], before: int) -> list[Remembered]:
        """Remember the keys of requests whose records come after the row `before`."""
        places = []
        for count, key, digest in requests:
            places.append(Remembered(digest, before + 1, count))
            before += count
            if key is not None:
                self.keys[key] = places[-1]
        while len(self.keys) > self.limits.keys:
            self.keys.popitem(last=False)
        return places

    # --- readers ---

    def review(self, records: Sequence[bytes], *, target: bool, level: float | None = None) -> tuple[Batch, Learned]:
        """Predict records, with intervals of a `level`, or score them with `target`, without learning from them."""
        self.require_schema()
        assert self._replicas is not None
        batch = (self._learning if target else self._predicting).parse(records, 0)
        with self._replicas.read() as model:
            return batch, model.review(batch, target=target, level=level)

    def score(self, records: Sequence[bytes]) -> Outcomes:
        """What would become of records if they were learned from now."""
        batch, learned = self.review(records, target=True)
        are_suspects = self.statistics.are_suspects(learned.rounds)
        return complete(batch, learned, describe_rounds(learned.rounds, self._schema, are_suspects, "scored"))

    def read(self) -> Reader:
        """A context with the whole model as it is now."""
        self.require_schema()
        assert self._replicas is not None
        return self._replicas.read()

    def dump(self) -> bytes:
        """The model file."""
        with self.read() as model:
            return dump_model(model)

    def summarize(self) -> dict[str, Any]:
        """Counts and statistics of the records so far."""
        with self._lock:
            counts = replace(self.counts, records=self.counts.records + len(self.pending))
            facts: dict[str, Any] = {
                **vars(counts),
                "pending": len(self.pending),
                "waiting_for_labels": len(self.labels),
            }
            if self._replicas is None:
                return facts
            rejections = self.statistics.rejections
            kinds = rejections.most_frequent()
            return facts | {
                "median_loss": self.statistics.median_loss,
                "clean_share": 1.0 - counts.suspects / counts.learned if counts.learned else None,
                "rejections": [{"reason": kind, "records": rejections.counts[kind]} for kind in kinds],
            }

    def median_loss(self) -> float | None:
        """The median loss so far; None before the first record."""
        with self._lock:
            return self.statistics.median_loss

    def read_recent(self) -> RecentRounds:
        """The newest rounds."""
        with self._lock:
            return self._recent.read()

    def list_suspects(self) -> list[Outcome]:
        """The newest suspects with their values, the newest first."""
        with self._lock:
            return list(self.newest)[::-1]


def list_inputs(schema: Schema) -> list[str]:
    """The columns that a prediction needs: the features and, if there is one model per key, the key.

    A model that looks back at earlier targets alone takes the target: null where it is unknown.
    """
    return [name for name in schema.columns if name != schema.target] or [schema.target]


def _join(requests: list[LearnRequest]) -> list[bytes]:
    return [request.records.join() for request in requests]


def _split(requests: list[LearnRequest]) -> list[bytes]:
    return [line for request in requests for line in request.records.split()]


def _list_outputs(schema: Schema, intervals: bool) -> dict[str, str]:
    """The outputs of a model, with their types: numbers have the ends of intervals, labels a probability."""
    if schema.classifies:
        return {"prediction": "BYTES", "probability": "FP64", ID: "BYTES"}
    ends = {"low": "FP64", "high": "FP64"} if intervals else {}
    return {"prediction": "FP64", **ends, ID: "BYTES"}
