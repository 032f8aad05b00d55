"""A served model: one writer commits records to its journal and learns from them, and any number of readers use it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from redescend.belief import ResidualBelief
from redescend.checkpoint import dump_model
from redescend.errors import DataError, DivergenceError, RedescendError
from redescend.serve.journal import Fsync, Journal
from redescend.serve.numbers import NumericBatch, NumericRecords
from redescend.serve.outcomes import Outcome, Outcomes, add_rejected, describe_rounds, outcome_at, slice_outcomes
from redescend.serve.records import LateLabels, RecordParser
from redescend.serve.replicas import Model, Replicas, Versions, make_versions
from redescend.serve.replies import Conflict
from redescend.serve.requests import (
    Answer,
    Counts,
    IdempotencyCache,
    LearnedBatch,
    LearnRequest,
    PreparedCommit,
    make_answers,
    split_records,
)
from redescend.serve.settings import Limits, ModelSettings
from redescend.serve.statistics import RecentRing, RecentRounds, Statistics
from redescend.serve.tensors import list_inputs, list_outputs
from redescend.sources import SAMPLE, Batch, Kind, open_source
from redescend.streaming import ModelStore, StreamModel
from redescend.streaming.config import FitConfig
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.predictor import Learned
from redescend.streaming.summary.records import read_values

NEWEST = 100  # suspects that are kept with their values


class ServedModel:
    """A model in a folder of its own, from which `redescend.serve.folder` makes it.

    One thread at a time may call `commit` or `begin`. Meanwhile another may call `finish` for a commit that is on the
    disk. Everything else may be called from any thread.
    """

    def __init__(
        self, name: str, folder: Path, settings: ModelSettings, limits: Limits, fsync: Fsync = Fsync.ALWAYS
    ) -> None:
        self.name, self.folder, self.settings, self.limits = name, folder, settings, limits
        self.journal = Journal(folder / "journal", fsync)
        self.labels = LateLabels(limits.labels, limits.label_seconds)
        self.counts = Counts()
        self.earlier = 0  # records that its model file had learned from
        self.saved = 0  # records at its last snapshot
        self.keys = IdempotencyCache(limits.keys)
        self._prepared: deque[PreparedCommit] = deque()  # commits that are being written to the disk
        self._rows = 0  # records that were learned from, with those of these commits
        self.pending: list[bytes] = []  # records that were committed before the schema was decided
        self.failure: str | None = None  # why no schema could be decided yet
        self._disk_failed = False  # whether that is because of the disk, so that the same records may do later
        self.newest: deque[Outcome] = deque(maxlen=NEWEST)
        self.numeric: NumericRecords | None = None
        self.recent = RecentRing()
        self._lock = Lock()
        self._replicas: Versions | Replicas | None = None

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
            first = f"{had:,} of the {wanted:,} records that it is inferred from; learn from more, or give a schema"
            why = f"the server has {first}" if had < wanted else self.failure or "it is being inferred; try again soon"
            raise Conflict(f"The model '{self.name}' has no schema yet: {why}.".replace("..", "."))
        return self._schema

    def make_model(self, schema: Schema) -> Model:
        """A model that has learned nothing."""
        make = StreamModel if schema.by is None else ModelStore
        return make(schema, **self.config.model_settings(schema))

    def serve(self, model: Model, statistics: Statistics | None = None, counts: Counts | None = None) -> None:
        """Begin to predict and to learn with a model, which may have learned from records before."""
        self._schema = schema = model.schema
        self.has_intervals = isinstance(model.belief, ResidualBelief)
        self.outputs = list_outputs(schema, self.has_intervals)
        self.statistics = Statistics(schema, self.config.transform) if statistics is None else statistics
        self._learning = self._make_parser(schema, schema.columns)
        self._predicting = self._make_parser(schema, list_inputs(schema))
        self.numeric = NumericRecords(schema)
        self.counts = Counts() if counts is None else counts
        self._rows = self.counts.records
        self._replicas = make_versions(model)

    def _make_parser(self, schema: Schema, columns: Sequence[str]) -> RecordParser:
        return RecordParser({name: schema.kinds[name] for name in columns}, self.name)

    def declare(self, schema: Schema) -> None:
        """Write the schema to the journal, where `redescend fit` finds it."""
        kinds = {name: kind.value for name, kind in schema.kinds.items()}
        self.journal.declare({"kinds": kinds, "schema": schema.to_dict()})

    def start(self) -> Outcomes | None:
        """Infer the schema from the first records, and learn from them; None if that is not possible yet."""
        kinds = {} if self.config.by is None else {self.config.by: Kind.TEXT}
        settings = self.config.select("target", "features", "ignore", "task", "labels", "by", "lags", "lag_columns")
        try:
            source = open_source(str(self.journal.folder), kinds=kinds)
            grows = self.config.transform is None
            known: dict[str, Any] = {"stream": True, "grows": grows, "others": source.others}
            schema = Schema.infer(source.sample, source.kinds, **settings, **known)
            model = self.make_model(schema)
            batch = self._make_parser(schema, schema.columns).parse(self.pending, 0)
            learned = model.learn(batch)
            self.declare(schema)
        except OSError as error:
            self.failure, self._disk_failed = f"the journal cannot be used: {error.strerror or error}", True
            return None
        except (RedescendError, ValueError) as error:
            self.failure, self._disk_failed = str(error), False
            return None
        self.serve(model)
        self.pending = []
        self._rows = batch.count
        return self._count(self._describe(batch, model.schema, learned))

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
            if self._replicas is None:
                return list(self._commit_pending(requests))
            self._begin(requests)
            return list(self._finish())
        except OSError as error:
            return [error] * len(requests)
        except (DataError, DivergenceError, Conflict) as error:
            if len(requests) == 1:
                return [error]
            # One of them is to blame, and the others are not.
            return [answer for request in requests for answer in self._commit([request])]

    # --- commits while the disk writes the one before ---

    @property
    def overlapping(self) -> bool:
        """Whether a commit can begin before the one before is finished; then it takes no time to wait for readers."""
        return self._replicas is not None and self._replicas.overlapping

    def can_begin(self, requests: list[LearnRequest]) -> bool:
        """Whether `begin` can take requests; others need a `commit` of their own, after the others are finished."""
        if self._replicas is None or self.journal.failing:
            return False
        keys = [request.key for request in requests if request.key is not None]
        begun = {key for each in self._prepared for _, key, _ in each.requests}
        return len(set(keys)) == len(keys) and not any(key in self.keys or key in begun for key in keys)

    def begin(self, requests: list[LearnRequest]) -> Future[None] | None:
        """Learn from requests and begin to write them to the journal, before earlier commits are finished.

        Returns a future that is done once they are on the disk; then `finish` is due. If it returns None, nothing was
        done, and they need a `commit` as well.
        """
        try:
            return self._begin(requests)
        except (OSError, DataError, DivergenceError):
            return None

    def finish(self) -> list[Answer | Exception]:
        """The answers to the first requests that were begun, after their future is done."""
        requests = self._prepared[0].requests
        try:
            return list(self._finish())
        except OSError as error:
            return [error] * len(requests)

    def _begin(self, requests: list[LearnRequest]) -> Future[None]:
        assert self._replicas is not None
        entries, before = [request.journal_entry for request in requests], self._rows
        batch = self._join_numbers(requests, before) or self._learning.parse(split_records(requests), before)

        def write(schema: Schema, learned: Learned) -> PreparedCommit:
            described = self._describe(batch, schema, learned)
            lines = [request.records.join() for request in requests]
            return PreparedCommit(entries, before, described, self.journal.begin_commit(entries, lines))

        commit = self._replicas.prepare(batch, write)
        self._rows += batch.count
        self._prepared.append(commit)
        return commit.written

    def _finish(self) -> list[Answer]:
        assert self._replicas is not None
        entries, before, learned, written = self._prepared.popleft()
        try:
            written.result()
        except BaseException:
            # Later ones have learned from what is not on the disk: the journal does not take them either.
            self._replicas.discard()
            self._rows = self.counts.records
            if not self._prepared:
                self.journal.resume()
            raise
        outcomes = self._publish(learned)
        return make_answers(self.keys.add(entries, before), before, outcomes)

    def _join_numbers(self, requests: list[LearnRequest], before: int) -> NumericBatch | None:
        numbers = [request.records.numbers for request in requests if request.records.numbers is not None]
        return NumericBatch.from_requests(numbers, before) if len(numbers) == len(requests) else None

    def _commit_pending(self, requests: list[LearnRequest]) -> list[Answer]:
        if len(self.pending) >= SAMPLE and not self._disk_failed:
            raise Conflict(f"The model '{self.name}' cannot start: {self.failure}")
        entries, before = [request.journal_entry for request in requests], len(self.pending)
        records = split_records(requests)
        self.journal.commit(entries, [request.records.join() for request in requests])
        # From here on they are committed, whatever fails: sent again, they are duplicates.
        self.pending += records
        added = self.keys.add(entries, before)
        learned = self.start() if len(self.pending) >= self.settings.first else None
        if learned is None:
            count = len(records)
            why = {} if self.failure is None else {"reason": [self.failure] * count}
            outcomes = {"status": ["pending"] * count, "row": list(range(before + 1, before + 1 + count)), **why}
        else:
            outcomes = slice_outcomes(learned, before, before + len(records))
        return make_answers(added, before, outcomes)

    def learn(self, records: list[bytes]) -> None:
        """Learn from records that are in the journal."""
        assert self._replicas is not None
        batch = self._learning.parse(records, self._rows)
        learned = self._replicas.prepare(batch, partial(self._describe, batch))
        self._rows += batch.count
        self._publish(learned)

    def _publish(self, learned: LearnedBatch) -> Outcomes:
        """Let readers see the first of what was prepared; returns its outcomes."""
        assert self._replicas is not None
        # Labels are only added, so that readers of an earlier version find theirs.
        self._schema = learned.schema
        self._replicas.publish()
        return self._count(learned)

    def _describe(self, batch: Batch | NumericBatch, schema: Schema, learned: Learned) -> LearnedBatch:
        are_suspects = self.statistics.are_suspects(learned.rounds)
        described = describe_rounds(learned.rounds, schema, are_suspects, "learned")
        suspects = [
            {**outcome_at(described, place), "values": self._read_values(batch, schema, learned.indices[place])}
            for place in np.flatnonzero(are_suspects)[-NEWEST:].tolist()
        ]
        rejected = sorted((*batch.bad, *learned.rejected), key=lambda bad: bad.row)
        outcomes = add_rejected(batch, learned, described)
        return LearnedBatch(schema, batch.count, learned.rounds, are_suspects, suspects, rejected, outcomes)

    def _count(self, learned: LearnedBatch) -> Outcomes:
        """Count what was learned from; returns its outcomes."""
        _, records, rounds, are_suspects, suspects, rejected, outcomes = learned
        with self._lock:
            self.statistics.add(rounds, rejected)
            self.newest.extend(suspects)
            self.recent.add(rounds, are_suspects)
            now = self.counts
            self.counts = Counts(
                now.records + records,
                now.learned + len(rounds),
                now.rejected + len(rejected),
                now.suspects + int(are_suspects.sum()),
            )
        return outcomes

    def _read_values(self, batch: Batch | NumericBatch, schema: Schema, index: int) -> dict[str, Any]:
        if isinstance(batch, NumericBatch):
            assert self.numeric is not None
            return dict(self.numeric.inputs.decode(batch.X[index]))
        return read_values(schema, batch, index)

    def find_duplicate(self, key: str | None, digest: int) -> Answer | None:
        """The answer to a request whose key was committed before."""
        first = self.keys.find(key, digest)
        return None if first is None else Answer(first.row, first.records, {}, duplicate=True)

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
        return add_rejected(batch, learned, describe_rounds(learned.rounds, self._schema, are_suspects, "scored"))

    def read(self) -> AbstractContextManager[Model]:
        """A context with the whole model as it is now."""
        self.require_schema()
        assert self._replicas is not None
        return self._replicas.read()

    def dump(self) -> bytes:
        """The bytes that `redescend.save` writes."""
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
            return self.recent.read()

    def list_suspects(self) -> list[Outcome]:
        """The newest suspects with their values, the newest first."""
        with self._lock:
            return list(self.newest)[::-1]
