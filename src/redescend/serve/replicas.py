"""Copies of a model: readers use one while another learns, so that nobody waits and nobody sees half a model."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import deepcopy
from threading import Condition
from typing import TypeVar

from redescend.engines.selftuning import SelfTuningEngine
from redescend.serve.numbers import NumericBatch
from redescend.sources import Batch
from redescend.streaming import ModelStore, StreamModel
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.predictor import Learned

Model = StreamModel | ModelStore
T = TypeVar("T")

COPIED = 50  # records from which on it takes less time to copy a model with trees than to learn from them once more


def copy_model(model: Model) -> Model:
    """A model that continues from the same state."""
    if isinstance(model, StreamModel):
        return deepcopy(model)
    copied = type(model)(**model.get_params())
    if model.records:
        copied.restore(model.state())
    return copied


def teach(model: Model, batch: Batch | NumericBatch) -> Learned:
    """Let a model learn from a batch."""
    if isinstance(batch, NumericBatch):
        assert isinstance(model, StreamModel)
        return batch.teach(model)
    return model.learn(batch)


def make_versions(model: Model) -> Versions | Replicas:
    """Versions of a model that is quickly copied, such as any without trees; of others two replicas."""
    quick = isinstance(model, StreamModel) and isinstance(model.engine, SelfTuningEngine)
    return Versions(model) if quick else Replicas(model)


class Versions:
    """A model for readers (`read`), and newer ones, each a copy of the one before that has learned from a batch.

    The one writer calls `prepare`, any number of times, and then either `publish`, as often, or, if the records shall
    not count, `discard`. A version never changes, so readers keep the one that they have.
    """

    overlapping = True  # whether a batch can be prepared before the last one is published

    def __init__(self, model: Model) -> None:
        self._front = self._newest = model
        self._newer: deque[Model] = deque()

    def read(self) -> AbstractContextManager[Model]:
        """A context with a whole model that does not change meanwhile."""
        return nullcontext(self._front)

    def prepare(self, batch: Batch | NumericBatch, describe: Callable[[Schema, Learned], T]) -> T:
        """Learn from a batch, unseen by readers, and describe the outcome; if either fails, nothing was learned."""
        model = copy_model(self._newest)
        learned = teach(model, batch)
        described = describe(model.schema, learned)
        self._newer.append(model)
        self._newest = model
        return described

    def publish(self) -> None:
        """Let readers see the first of what was prepared; another thread may prepare a batch meanwhile."""
        self._front = self._newer.popleft()

    def discard(self) -> None:
        """Forget what was prepared."""
        self._newer.clear()
        self._newest = self._front


class Replicas:
    """A model for readers (`read`), and its copy for the one writer, which learns what the other has learned before.

    The writer calls `prepare`, and then either `publish` or, if the records shall not count, `discard`. Both copies
    learn from the same records in the same order, and learning is deterministic, so they are equal to the last bit; or
    one is copied from the other.
    """

    overlapping = False

    def __init__(self, model: Model) -> None:
        self._front, self._back = model, copy_model(model)
        self._missed: list[Batch | NumericBatch] = []  # what the back has still to learn from
        self._prepared: Batch | NumericBatch | None = None
        self._stale = False
        self._readers = {id(self._front): 0, id(self._back): 0}
        self._left = Condition()

    @contextmanager
    def read(self) -> Iterator[Model]:
        """A context with a whole model that does not change meanwhile."""
        with self._left:
            model = self._front
            self._readers[id(model)] += 1
        try:
            yield model
        finally:
            with self._left:
                self._readers[id(model)] -= 1
                if model is not self._front:
                    self._left.notify_all()

    def prepare(self, batch: Batch | NumericBatch, describe: Callable[[Schema, Learned], T]) -> T:
        """Learn from a batch, unseen by readers, and describe the outcome; if either fails, nothing was learned."""
        with self._left:
            # Readers that came before the last batch was published.
            self._left.wait_for(lambda: not self._readers[id(self._back)])
        try:
            self._catch_up()
            learned = teach(self._back, batch)
            described = describe(self._back.schema, learned)
        except BaseException:
            self.discard()
            raise
        self._prepared = batch
        return described

    def _catch_up(self) -> None:
        """Let the back know what the front has learned before."""
        many = sum(batch.count for batch in self._missed) >= COPIED
        if self._stale or (isinstance(self._front, StreamModel) and many):
            self._replace_back()
        for batch in self._missed:
            teach(self._back, batch)
        self._missed = []

    def publish(self) -> None:
        """Let readers see what was prepared."""
        assert self._prepared is not None
        self._missed, self._prepared = [self._prepared], None
        with self._left:
            self._front, self._back = self._back, self._front

    def discard(self) -> None:
        """Forget what was prepared."""
        self._prepared = None
        self._replace_back()

    def _replace_back(self) -> None:
        # If there is no memory for a copy, the next batch needs one: this model may have learned a part of a batch.
        self._stale = True
        back = copy_model(self._front)
        with self._left:
            del self._readers[id(self._back)]
            self._back = back
            self._readers[id(back)] = 0
        self._missed, self._stale = [], False
