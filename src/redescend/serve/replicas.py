"""Two copies of a model: readers use one while the other learns, so that nobody waits and nobody sees half a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

from redescend.sources import Batch
from redescend.streaming import ModelStore, StreamModel
from redescend.streaming.model import Learned

Model = StreamModel | ModelStore


def copy_model(model: Model) -> Model:
    """A model that continues from the same state."""
    copied = type(model)(**model.get_params())
    if model.records:
        copied.restore(model.state())
    return copied


class Replicas:
    """A model for readers (`read`), and its copy for the one writer.

    The writer calls `prepare`, and then either `publish` or, if the records shall not count, `discard`. Both copies
    learn from the same records in the same order, and learning is deterministic, so they are equal to the last bit.
    """

    def __init__(self, model: Model) -> None:
        self._front, self._back = model, copy_model(model)
        self._missed: list[Batch] = []
        """What the back has still to learn from."""
        self._prepared: Batch | None = None
        self._readers = {id(self._front): 0, id(self._back): 0}
        self._left = Condition()

    @contextmanager
    def read(self) -> Iterator[Model]:
        """A whole model that does not change meanwhile."""
        with self._left:
            model = self._front
            self._readers[id(model)] += 1
        try:
            yield model
        finally:
            with self._left:
                self._readers[id(model)] -= 1
                self._left.notify_all()

    def prepare(self, batch: Batch) -> Learned:
        """Learn from a batch, unseen by readers."""
        with self._left:
            # Readers that came before the last batch was published.
            self._left.wait_for(lambda: not self._readers[id(self._back)])
        try:
            while self._missed:
                self._back.learn(self._missed[0])
                self._missed.pop(0)
            learned = self._back.learn(batch)
        except BaseException:
            self.discard()
            raise
        self._prepared = batch
        return learned

    def publish(self) -> None:
        """Let readers see what was prepared."""
        assert self._prepared is not None
        self._missed, self._prepared = [self._prepared], None
        with self._left:
            self._front, self._back = self._back, self._front

    def discard(self) -> None:
        """Forget what was prepared."""
        self._missed, self._prepared = [], None
        back = copy_model(self._front)
        with self._left:
            del self._readers[id(self._back)]
            self._back = back
            self._readers[id(back)] = 0
