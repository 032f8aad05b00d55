"""What a pass over a stream found, in a fixed amount of memory and exact per record.

The same records leave the same summary, bit for bit, in whatever batches they come and wherever a run was interrupted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from redescend.errors import DataError
from redescend.kernels import histograms as kernel
from redescend.numeric import Array
from redescend.streaming.rounds import Rounds
from redescend.streaming.summary.histograms import GATED, LABELS, NUMBERS, Curve
from redescend.streaming.summary.rejections import Reasons
from redescend.streaming.summary.reservoir import Sample
from redescend.streaming.summary.suspects import Doubted, Least

if TYPE_CHECKING:
    from redescend import transforms
    from redescend.sources import Bad, Batch
    from redescend.streaming.encoding.schema import Schema

SAMPLED, DOUBTED = 2000, 500
"""Rounds that are drawn from all, and from those that were not believed."""

SURE = 20
"""Cells of a histogram of the probabilities of predicted labels."""


class Summary:
    """Curves, samples and counts of the rounds of a stream.

    Parameters
    ----------
    schema : Schema
        What the records are.
    transform : transform, optional
        The gate, if it is a fixed one. What a record's weight is compared with is the largest that the gate gives;
        without one that is 1. A label looks clean if it has half of that, a number if it has a thousandth, or behind a
        fixed gate a tenth.
    """

    def __init__(self, schema: Schema, transform: transforms.Transform | None = None) -> None:
        self.schema = schema
        self.full = 1.0 if transform is None else float(transform.weight(0.0))
        self.curve = Curve(self.full, LABELS if schema.classifies else NUMBERS if transform is None else GATED)
        self.least_believed = Least(schema)
        self.sample, self.doubted = Sample(SAMPLED), Sample(DOUBTED)
        self.reasons = Reasons()
        labels = len(schema.labels)
        self.labels = np.zeros((labels, labels, 2), dtype=np.int64)
        """How many records have a label, were predicted to have another, and were believed (0) or not (1)."""
        self.sure = np.zeros((SURE if labels else 0, 3), dtype=np.int64)
        """How many predictions were made with a probability and were wrong (0) or right (1); the sum of these (2)."""

    def add(self, rounds: Rounds, batch: Batch, kept: Array) -> None:
        """Rounds that were played on the records of a batch at the places `kept`, in the order of their rows."""
        if not len(rounds):
            return
        self.curve.add(rounds.rows, rounds.weights, rounds.losses)
        self.least_believed.add(rounds, batch, kept)
        self.sample.add(rounds)
        doubted = self.doubts(rounds)
        self.doubted.add(rounds[np.flatnonzero(doubted)])
        if len(self.labels):
            numbers = (rounds.targets, rounds.predictions, rounds.probabilities)
            kernel.count_labels(*numbers, doubted.view(np.uint8), self.labels, self.sure)

    def add_bad(self, bad: Sequence[Bad]) -> None:
        """Records that could not be used, in the order of their rows."""
        self.curve.add_bad(np.array([record.row for record in bad], dtype=np.int64))
        self.reasons.add(bad)

    @property
    def learned(self) -> int:
        """How many records were learned from."""
        return int(self.curve.cells.sum())

    @property
    def believed(self) -> int:
        """How many of them look clean: their weight is not below the limit of doubt."""
        return int(self.curve.levels[self.curve.doubt.cells[1] :].sum())

    @property
    def clean_share(self) -> float:
        """The share of records that look clean; NaN before the first."""
        return self.believed / self.learned if self.learned else float("nan")

    @property
    def median_loss(self) -> float:
        """Of all rounds so far, within 0.8 %; NaN before the first."""
        return self.curve.median_loss

    @property
    def least(self) -> list[Doubted]:
        """The ten records that were believed least, the least believed first."""
        return self.least_believed.records

    def doubts(self, rounds: Rounds) -> Array:
        """Which of these records do not look clean."""
        return kernel.levels(rounds.weights, self.full) < self.curve.doubt.cells[1]

    def clean_sample(self) -> Rounds:
        """Those of the sample that look clean."""
        rounds = self.sample.rounds
        return rounds[~self.doubts(rounds)]

    def _parts(self) -> dict[str, Any]:
        return {
            "curve": self.curve,
            "least": self.least_believed,
            "sample": self.sample,
            "doubted": self.doubted,
            "reasons": self.reasons,
        }

    def state(self) -> dict[str, Any]:
        """All that was found, as plain values and arrays."""
        parts = {name: part.state() for name, part in self._parts().items()}
        return parts | {"labels": self.labels.copy(), "sure": self.sure.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state that a summary of the same schema gave."""
        if not isinstance(state, dict) or state.keys() != self.state().keys():
            raise DataError("The state of a summary lacks parts; it has been altered.")
        for name in ("labels", "sure"):
            found, here = np.asarray(state[name]), getattr(self, name)
            if found.shape != here.shape or found.dtype != np.int64:
                raise DataError(f"The state of a summary has misshapen {name}; it has been altered.")
        for name, part in self._parts().items():
            part.restore(state[name])
        self.labels, self.sure = np.array(state["labels"]), np.array(state["sure"])
