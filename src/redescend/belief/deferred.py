"""A belief for models that learn from few records at a time, which are judged together when somebody asks."""

from __future__ import annotations

from typing import Any

import numpy as np

from redescend.belief.labels import LabelBelief
from redescend.belief.residuals import ResidualBelief
from redescend.belief.verdicts import Verdict
from redescend.kernels.belief.layout import Records
from redescend.numeric import Array
from redescend.state import Stateful

CAPACITY = 64
"""Records that wait at most."""

PLACES = np.zeros(CAPACITY, np.int64)
"""The key of records that have none."""

COMPACT = 40
"""Features on which the scale of residuals may depend, where memory is limited: the first ones."""


class DeferredBelief(Stateful):
    """A belief that is told records one by one, or some at a time, and judges them later, with the same bits.

    To call a belief takes as long as to judge a dozen records. What `give_verdict` needs is kept if `verdicts`.

    Examples
    --------
    >>> deferred = DeferredBelief(ResidualBelief())
    >>> for t in range(5):
    ...     deferred.add_one(0.0, float(t), np.empty(0))
    >>> deferred.belief.rounds
    5
    """

    def __init__(self, belief: ResidualBelief | LabelBelief, verdicts: bool = True) -> None:
        self._belief, self._verdicts = belief, verdicts
        self._buffers: tuple[Array, ...] = ()
        self._count = self._latest = 0
        self._records: tuple[Array, ...] = ()
        self._judgements: Any = None
        self._one: Records | None = None

    @property
    def belief(self) -> ResidualBelief | LabelBelief:
        """The belief, after it has judged all records."""
        self._flush()
        return self._belief

    def add(self, *records: Array) -> None:
        """Add finite records, given as `update` of the belief takes them; the arrays are copied or used at once."""
        rows = len(records[1])
        if not self._buffers:
            self._buffers = tuple(np.empty((CAPACITY, *part.shape[1:]), part.dtype) for part in records)
        if self._count + rows > CAPACITY:
            self._flush()
        self._latest = rows
        if rows > CAPACITY:
            self._records, self._judgements = records[:2], self._belief.update(*records)
            return
        end = self._count + rows
        for buffer, part in zip(self._buffers, records, strict=True):
            buffer[self._count : end] = part
        self._count = end

    def add_table(self, *records: Array) -> None:
        """The same for records whose order says nothing."""
        self._flush()
        self._judgements = self._belief.learn_table(*records)
        self._records, self._latest = records, len(records[1])

    def add_one(self, prediction: float, target: float, x: Array) -> None:
        """Add one record; of a belief in residuals with its first features, as many as there are room for."""
        if self._count == CAPACITY:
            self._flush()
        if not self._buffers:
            self._buffers = self._make_buffers()
        row, buffers = self._count, self._buffers
        buffers[0][row] = prediction
        buffers[1][row] = target
        if len(buffers) == 3:
            width = min(len(x), buffers[2].shape[1])
            buffers[2][row, :width] = x[:width]
        self._count, self._latest = row + 1, 1

    def _make_buffers(self) -> tuple[Array, ...]:
        if isinstance(self._belief, ResidualBelief):
            return np.zeros(CAPACITY), np.zeros(CAPACITY), np.zeros((CAPACITY, self._belief.dim))
        return np.zeros((CAPACITY, 1)), np.zeros(CAPACITY, np.int64)

    def _flush(self) -> None:
        if self._count:
            records = tuple(buffer[: self._count] for buffer in self._buffers)
            judgements: Any = self._update(records)
            if self._verdicts:
                latest = slice(self._count - self._latest, self._count)
                self._records = tuple(part[latest].copy() for part in records[:2])
                self._judgements = type(judgements)(*(part[latest] for part in judgements))
            self._count = 0

    def _update(self, records: tuple[Array, ...]) -> Any:
        if isinstance(self._belief, ResidualBelief):
            predictions, targets, X = records
            return self._belief.update_checked(Records(X, predictions, targets, PLACES[: len(targets)]))
        return self._belief.update(*records)

    def judge_one(self, prediction: float, target: float, x: Array) -> float:
        """The log-odds that a record is clean; nothing is learned. The record must be finite."""
        belief = self.belief
        if not isinstance(belief, ResidualBelief):
            return float(belief.judge(np.array([[prediction]]), np.array([int(target)]))[0])
        if self._one is None:
            self._one = Records(np.zeros((1, belief.dim)), np.zeros(1), np.zeros(1), PLACES[:1])
        width = min(len(x), belief.dim)
        self._one.X[0, :width] = x[:width]
        self._one.predictions[0], self._one.targets[0] = prediction, target
        return float(belief.judge_checked(self._one)[0])

    def give_verdict(self) -> Verdict:
        """The final verdict on the records that were added last."""
        belief: Any = self.belief
        if not self._records:
            return Verdict(np.empty(0), np.empty(0))
        if not isinstance(belief, ResidualBelief):
            return belief.judge_log(*self._records)
        predictions, targets, *X = self._records
        return belief.judge_log(predictions, targets, self._judgements, X=X[0] if X else None)

    def state(self) -> dict[str, Any]:
        return self.belief.state()

    def restore(self, state: dict[str, Any]) -> None:
        self._belief.restore(state)
        self._count, self._records, self._judgements = 0, (), None
