"""Errors of the model and of naive predictions, as running sums of a fixed size.

Floats are added record by record, so that the sums do not depend on the batches. The first record, which has no naive
prediction, is left out.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from redescend.numeric import Array
from redescend.scaling import RunningQuantiles
from redescend.state import ArraySpec, read_arrays, require
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.rounds import Rounds
from redescend.streaming.summary import histograms
from redescend.streaming.summary.histograms import compute_quantile

REFRESH = 256  # records between two computations of the running median; the first ones come after 1, 2, 4, … records

ALL_OF, ONE_IN = 2048, 8
"""The running median is that of the first ALL_OF records and of one in ONE_IN of the others, to save time."""

TINY = 1e-15  # the least probability in the log loss

OWNER = "the metrics"


class Score(NamedTuple):
    """The errors of one predictor, on all records and on those that are not suspects."""

    name: str
    values: dict[str, tuple[float, float]]


def add_in_order(totals: Array, values: Array) -> None:
    """Add values along the last axis to totals, strictly one after the other."""
    with np.errstate(over="ignore", invalid="ignore"):
        totals[...] = np.add.accumulate(np.concatenate([totals[..., None], values], axis=-1), axis=-1)[..., -1]


def _stack_all_and_clean(values: Array, clean: Array) -> Array:
    """Values of all records, and of the clean ones with 0 for the others."""
    return np.stack([values, np.where(clean, values, 0.0)])


class NumberMetrics:
    """Absolute and squared errors of the model, of the target before, and of the running median of targets."""

    NAMES = ("the model", "the target before", "the running median")

    def __init__(self) -> None:
        self.records = 0  # records so far, the first one included
        self.counts = np.zeros(2, dtype=np.int64)
        """The numbers of compared records: all, and those that are not suspects."""
        self.sums = np.zeros((2, 2, len(self.NAMES)))  # all and clean records; absolute and squared errors; predictors
        self.spread = np.zeros((2, 2))
        """All and clean records; sums of targets and of their squares, counted from the first target."""
        self.cells = np.zeros((len(self.NAMES), histograms.CELLS), dtype=np.int64)  # histograms of absolute errors
        self.recent = np.zeros(3)  # the first target, the last one, and the running median as it was computed last
        self._quantiles = RunningQuantiles(1)

    def add(self, rounds: Rounds, clean: Array) -> None:
        """Add rounds; the mask `clean` excludes suspects."""
        targets, start = rounds.targets, 0 if self.records else 1
        if start:
            self.recent[:] = targets[0]
        naive = np.stack([np.append(self.recent[1], targets[:-1]), self._compute_medians(rounds)])
        self.recent[1] = targets[-1]
        targets, clean = targets[start:], clean[start:]
        with np.errstate(over="ignore"):
            errors = np.abs(targets - np.concatenate([rounds.predictions[None], naive])[:, start:])
            shifted = targets - self.recent[0]
            add_in_order(self.sums, _stack_all_and_clean(np.stack([errors, errors * errors]), clean))
            add_in_order(self.spread, _stack_all_and_clean(np.stack([shifted, shifted * shifted]), clean))
        histograms.add_at(self.cells, np.arange(len(errors))[:, None], histograms.find_cells(errors))
        self.counts += (len(targets), int(clean.sum()))

    def _compute_medians(self, rounds: Rounds) -> Array:
        """The running median before each target; adds the targets to it, after the first ones only a sample."""
        targets, medians, at = rounds.targets, np.empty(len(rounds)), 0
        drawn = histograms.hash_rows(rounds.rows) % ONE_IN == 0
        drawn[: max(0, ALL_OF - self.records)] = True
        while at < len(targets):
            left = REFRESH - self.records % REFRESH
            if self.records < REFRESH:
                left = (1 << self.records.bit_length()) - self.records
            end = min(at + left, len(targets))
            medians[at:end] = self.recent[2]
            self._quantiles.update(targets[at:end][drawn[at:end], None])
            self.records += end - at
            if end - at == left:
                self.recent[2] = self._quantiles.at(0.5)[0]
            at = end
        return medians

    def scores(self) -> list[Score]:
        """MAE, RMSE, median error and R² of each predictor."""
        counts = np.maximum(self.counts, 1)
        with np.errstate(all="ignore"):
            total = self.spread[:, 1] - self.spread[:, 0] ** 2 / counts
            means = self.sums / counts[:, None, None]
            explained = 1.0 - self.sums[:, 1] / total[:, None]
        scores = []
        for place, name in enumerate(self.NAMES):
            values = {
                "mean absolute error": _to_pair(means[:, 0, place]),
                "root mean squared error": _to_pair(np.sqrt(means[:, 1, place])),
                "median error": (compute_quantile(self.cells[place], 0.5), float("nan")),
                "R²": _to_pair(explained[:, place]),
            }
            scores.append(Score(name, values))
        return scores

    def state(self) -> dict[str, Any]:
        arrays = {name: getattr(self, name).copy() for name in ("counts", "sums", "spread", "recent")}
        counts = {"cells": histograms.pack_counts(self.cells), "records": np.array(self.records)}
        return arrays | counts | {"quantiles": self._quantiles.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state."""
        specs = (
            ArraySpec("records", (), "count", dtype=np.int64),
            ArraySpec("counts", (2,), "count", dtype=np.int64),
            ArraySpec("sums", self.sums.shape, finite=False),
            ArraySpec("spread", self.spread.shape, finite=False),
            ArraySpec("recent", (3,)),
            histograms.packed_spec("cells", self.cells),
        )
        arrays = read_arrays(specs, state, {}, OWNER, ("quantiles",))
        self._quantiles.restore(state["quantiles"])
        histograms.unpack_counts(arrays.pop("cells"), self.cells)
        self.records = int(arrays.pop("records"))
        self.__dict__ |= arrays


class LabelMetrics:
    """Correct predictions of the model, of the label before, and of the most frequent label; log losses."""

    NAMES = ("the model", "the label before", "the most frequent label")

    def __init__(self, labels: int) -> None:
        self.frequencies = np.zeros(labels, dtype=np.int64)
        self.recent = np.zeros(2, dtype=np.int64)  # the last label, and the most frequent one
        self.counts = np.zeros(2, dtype=np.int64)
        self.correct = np.zeros((2, len(self.NAMES)), dtype=np.int64)
        self.log_losses = np.zeros((2, 2))
        """All and clean records; of the model, if there are two labels, and of the frequencies of labels."""

    def add(self, rounds: Rounds, clean: Array) -> None:
        """Add rounds; the mask `clean` excludes suspects."""
        labels = rounds.targets.astype(np.int64)
        records = int(self.frequencies.sum())
        if not records:
            self.recent[:] = labels[0]
        # A label that appears later counts from its first record on.
        known = np.maximum(np.maximum.accumulate(labels) + 1, len(self.frequencies))
        self.frequencies = np.pad(self.frequencies, (0, int(known[-1]) - len(self.frequencies)))
        before = np.append(self.recent[0], labels[:-1])
        most, seen = self._count(labels.tolist())
        self.recent[0] = labels[-1]
        start = 0 if records else 1
        correct = np.stack([rounds.predictions.astype(np.int64), before, most])[:, start:] == labels[start:]
        shares = (seen + 1.0) / (records + np.arange(len(labels)) + known)
        sure = rounds.probabilities[start:]
        given = np.where(correct[0], sure, 1.0 - sure)
        clean = clean[start:]
        add_in_order(self.log_losses, _stack_all_and_clean(-np.log(np.maximum([given, shares[start:]], TINY)), clean))
        self.correct += np.stack([correct.sum(axis=1), correct[:, clean].sum(axis=1)])
        self.counts += (len(clean), int(clean.sum()))

    def _count(self, labels: list[int]) -> tuple[Array, Array]:
        """The most frequent label before each record, and how often its own label was seen before."""
        counts, best = self.frequencies.tolist(), int(self.recent[1])
        most, seen = [], []
        for label in labels:
            most.append(best)
            seen.append(counts[label])
            counts[label] += 1
            if counts[label] > counts[best]:
                best = label
        self.frequencies[:], self.recent[1] = counts, best
        return np.array(most), np.array(seen)

    def scores(self) -> list[Score]:
        """The accuracy of each predictor; with two labels also the log loss."""
        counts = np.maximum(self.counts, 1)
        accuracy, losses = self.correct / counts[:, None], self.log_losses / counts[:, None]
        scores = [Score(name, {"correct": _to_pair(accuracy[:, place])}) for place, name in enumerate(self.NAMES)]
        if len(self.frequencies) == 2:
            unknown = np.full(2, np.nan)
            for score, loss in zip(scores, (losses[:, 0], unknown, losses[:, 1]), strict=True):
                score.values["log loss"] = _to_pair(loss)
        return scores

    def state(self) -> dict[str, Any]:
        return {name: array.copy() for name, array in self.__dict__.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state of as many labels."""
        labels = len(self.frequencies)
        specs = (
            ArraySpec("frequencies", (labels,), "count", dtype=np.int64),
            ArraySpec("recent", (2,), "index", high=max(labels, 1), dtype=np.int64),
            ArraySpec("counts", (2,), "count", dtype=np.int64),
            ArraySpec("correct", self.correct.shape, "count", dtype=np.int64),
            ArraySpec("log_losses", (2, 2), low=0.0),
        )
        arrays = read_arrays(specs, state, {}, OWNER)
        require(bool((arrays["correct"] <= arrays["counts"][:, None]).all()), OWNER, "more correct than all")
        self.__dict__ |= arrays


Metrics: TypeAlias = NumberMetrics | LabelMetrics


def make_metrics(schema: Schema) -> Metrics:
    """Make the metrics for the task of a stream."""
    return LabelMetrics(len(schema.labels)) if schema.classifies else NumberMetrics()


def _to_pair(values: Array) -> tuple[float, float]:
    return float(values[0]), float(values[1])
