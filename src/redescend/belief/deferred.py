"""A belief for models that learn from few records at a time, which are judged together when somebody asks."""

from __future__ import annotations

from typing import Any

import numpy as np

from redescend.belief.labels import LabelBelief
from redescend.belief.residuals import ResidualBelief, Verdict
from redescend.numeric import Array
from redescend.state import Stateful

CAPACITY = 256
"""Records that wait at most."""

COMPACT = 40
"""Features on which the scale of residuals may depend, where memory is limited: the first ones."""


class DeferredBelief(Stateful):
    """A belief that is told records one by one, or some at a time, and judges them later, with the same bits.

    To call a belief takes as long as to judge a dozen records.

    Parameters
    ----------
    belief : ResidualBelief or LabelBelief

    Examples
    --------
    >>> deferred = DeferredBelief(ResidualBelief())
    >>> for t in range(5):
    ...     deferred.add(np.array([0.0]), np.array([float(t)]))
    >>> deferred.belief.rounds
    5
    """

    def __init__(self, belief: ResidualBelief | LabelBelief) -> None:
        self._belief = belief
        self._buffers: tuple[Array, ...] = ()
        self._count = self._latest = 0
        self._records: tuple[Array, ...] = ()
        self._said: Any = None

    @property
    def belief(self) -> ResidualBelief | LabelBelief:
        """The belief, after it has judged all records."""
        self._flush()
        return self._belief

    def add(self, *records: Array) -> None:
        """Add records, given as `update` of the belief takes them; the arrays are copied or used at once."""
        rows = len(records[1])
        if not self._buffers:
            self._buffers = tuple(np.empty((CAPACITY, *part.shape[1:]), part.dtype) for part in records)
        if self._count + rows > CAPACITY:
            self._flush()
        self._latest = rows
        if rows > CAPACITY:
            self._records, self._said = records[:2], self._belief.update(*records)
            return
        end = self._count + rows
        for buffer, part in zip(self._buffers, records, strict=True):
            buffer[self._count : end] = part
        self._count = end

    def _flush(self) -> None:
        if self._count:
            records = tuple(buffer[: self._count] for buffer in self._buffers)
            said, latest = self._belief.update(*records), slice(self._count - self._latest, self._count)
            self._records = tuple(part[latest].copy() for part in records[:2])
            self._said = type(said)(*(part[latest].copy() for part in said))
            self._count = 0

    def give_verdict(self) -> Verdict:
        """The final verdict on the records that were added last."""
        belief: Any = self.belief
        if not self._records:
            return Verdict(np.empty(0), np.empty(0))
        said = (self._said,) if isinstance(belief, ResidualBelief) else ()
        return belief.judge_log(*self._records, *said)

    def state(self) -> dict[str, Any]:
        return self.belief.state()

    def restore(self, state: dict[str, Any]) -> None:
        self._belief.restore(state)
        self._count, self._records, self._said = 0, (), None
