"""Statistics of the rounds of a run, in a fixed amount of memory and exact per record.

The same records give the same summary, bit for bit, in whatever batches they come and wherever a run was interrupted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from redescend import transforms
from redescend.errors import DataError
from redescend.numeric import Array
from redescend.sources import Bad, Batch
from redescend.state import ArraySpec, corrupt_state, read_arrays
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.rounds import Rounds
from redescend.streaming.summary import histograms
from redescend.streaming.summary.histograms import BELIEF, FIXED_GATE, StreamHistograms, SuspectLimits, compute_quantile
from redescend.streaming.summary.metrics import NumberMetrics, make_metrics
from redescend.streaming.summary.records import (
    MAX_SUSPECTS,
    FinalCounts,
    LeastCleanRecords,
    Rejections,
    Reservoir,
    Suspect,
)

SAMPLE, SUSPECT_SAMPLE = 2000, 500  # sizes of the samples of all rounds, and of those of suspects

PARTS = ("histograms", "suspects", "sample", "suspect_sample", "rejections", "metrics")
"""The parts of a summary that have a state of their own."""

CALIBRATION_CELLS = 20  # cells of the histogram of the probabilities of predicted labels


class SuspectRule(NamedTuple):
    """The rule for suspects.

    A record is a suspect if it is less likely clean than not. With a fixed `transform` there is no belief, and the
    weight replaces the probability: relative to the largest weight of the gate, that of a suspect is below a half in
    classification, and below a tenth in regression.
    """

    max_weight: float
    limits: SuspectLimits

    @staticmethod
    def make(schema: Schema, transform: transforms.Transform | None) -> SuspectRule:
        """The rule for a stream."""
        limits = BELIEF if transform is None or schema.classifies else FIXED_GATE
        return SuspectRule(1.0 if transform is None else float(transform.weight(0.0)), limits)

    def are_suspects(self, rounds: Rounds) -> Array:
        """Which of these records are suspects."""
        return ~(rounds.clean_probability / self.max_weight >= self.limits.suspect)


class Summary:
    """Histograms, samples and counts of the rounds of a stream; see `SuspectRule` for which are suspects."""

    def __init__(self, schema: Schema, transform: transforms.Transform | None = None, top: int = MAX_SUSPECTS) -> None:
        self.schema = schema
        self._rule = SuspectRule.make(schema, transform)
        self.max_weight = self._rule.max_weight
        self.histograms = StreamHistograms(*self._rule)
        self.suspects = LeastCleanRecords(schema, top)
        self.sample, self.suspect_sample = Reservoir(SAMPLE), Reservoir(SUSPECT_SAMPLE)
        self.rejections, self.metrics = Rejections(), make_metrics(schema)
        labels = len(schema.labels)
        self.confusion = np.zeros((labels, labels, 2), dtype=np.int64)
        """Records by label, by predicted label, and by whether they are suspects."""
        self.calibration = np.zeros((CALIBRATION_CELLS if labels else 0, 3), dtype=np.int64)
        """By the probability of the predicted label: how many were wrong and right, and the sum of probabilities."""
        self.final: FinalCounts | None = None  # the result of the final look; None if there was none
        self.listed: Rounds | None = None  # the suspects of the final look, for the report; not part of the state

    def grow(self, schema: Schema) -> None:
        """Continue with a schema to which labels have been added."""
        if schema is not self.schema:
            self.schema = self.suspects.schema = schema
            more = len(schema.labels) - len(self.confusion)
            self.confusion = np.pad(self.confusion, [(0, more), (0, more), (0, 0)])

    def add(self, rounds: Rounds, batch: Batch, indices: Array) -> None:
        """Add rounds that were played on the records of a batch at these indices, in the order of their rows."""
        if not len(rounds):
            return
        self.histograms.add(rounds.rows, rounds.clean_probability, rounds.losses)
        known = np.flatnonzero(np.isfinite(rounds.low) & np.isfinite(rounds.high))
        inside = (rounds.low <= rounds.targets) & (rounds.targets <= rounds.high)
        self.histograms.add_intervals(rounds.rows[known], inside[known], rounds.clean_probability[known])
        self.suspects.add(rounds, batch, indices)
        suspect = self.are_suspects(rounds)
        self.metrics.add(rounds, ~suspect)
        # The samples store the probability in place of the weight.
        plain = replace(rounds, weights=rounds.clean_probability)
        self.sample.add(plain)
        self.suspect_sample.add(plain[np.flatnonzero(suspect)])
        if len(self.confusion):
            self._add_labels(rounds, suspect.astype(np.int64))

    def _add_labels(self, rounds: Rounds, suspect: Array) -> None:
        labels, predicted = rounds.targets.astype(np.int64), rounds.predictions.astype(np.int64)
        histograms.add_at(self.confusion, labels * len(self.confusion) + predicted, suspect)
        probability = np.nan_to_num(rounds.probabilities)
        cell = np.minimum((CALIBRATION_CELLS * probability).astype(np.int64), CALIBRATION_CELLS - 1)
        histograms.add_at(self.calibration, cell, labels == predicted)
        histograms.add_at(self.calibration, cell, 2, np.rint(histograms.FINE * probability).astype(np.int64))

    def add_rejected(self, rejected: Sequence[Bad]) -> None:
        """Add rejected records, in the order of their rows."""
        self.histograms.add_rejected(np.array([record.row for record in rejected], dtype=np.int64))
        self.rejections.add(rejected)

    @property
    def learned(self) -> int:
        """The number of records learned from."""
        return int(self.histograms.all_losses.sum())

    @property
    def suspect_count(self) -> int:
        """The number of suspects: those of the final list or, without one, records less likely clean than not."""
        if self.final is not None:
            return self.final.listed
        return int(self.histograms.weight_counts[: self.histograms.limits.cells[1]].sum())

    @property
    def is_constant(self) -> bool:
        """Whether the target is a number that is the same in all records."""
        return isinstance(self.metrics, NumberMetrics) and not self.metrics.spread.any()

    @property
    def clean_share(self) -> float:
        """The share of records that are not suspects; NaN before the first."""
        return (self.learned - self.suspect_count) / self.learned if self.learned else float("nan")

    @property
    def median_loss(self) -> float:
        """The median loss so far, within 0.8 %; NaN before the first."""
        return compute_quantile(self.histograms.all_losses, 0.5)

    @property
    def least(self) -> list[Suspect]:
        """The records that are least likely clean, the least first."""
        return self.suspects.records

    def are_suspects(self, rounds: Rounds) -> Array:
        """Which of these records are suspects."""
        return self._rule.are_suspects(rounds)

    def clean_sample(self) -> Rounds:
        """The rounds of the sample without suspects."""
        rounds = self.sample.rounds
        return rounds[~self.are_suspects(rounds)]

    def state(self) -> dict[str, Any]:
        """Return the whole state, as plain values and arrays."""
        parts = {name: getattr(self, name).state() for name in PARTS}
        counts = {"confusion": self.confusion.copy(), "calibration": self.calibration.copy()}
        return parts | counts | {"final": None if self.final is None else self.final.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state of a summary of the same schema."""
        counts = {"confusion": self.confusion, "calibration": self.calibration}
        most = np.iinfo(np.int64).max  # probabilities are summed in units of 2⁻²⁰
        specs = [ArraySpec(name, array.shape, low=0, high=most, dtype=np.int64) for name, array in counts.items()]
        arrays = read_arrays(specs, state, {}, "the summary", (*PARTS, "final"))
        name = "final"
        try:
            final = None if state[name] is None else FinalCounts.restore(state[name])
            for name in PARTS:
                getattr(self, name).restore(state[name])
        except DataError:
            raise
        except (TypeError, ValueError, LookupError, AttributeError):
            raise corrupt_state("the summary", f"other '{name}'") from None
        self.confusion, self.calibration = arrays["confusion"], arrays["calibration"]
        self.final = final
