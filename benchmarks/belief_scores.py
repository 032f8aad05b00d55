"""Scores of beliefs against the truth: calibration, false alarms, recall, ranking, coverage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import rankdata

from benchmarks.belief_streams import Case
from redescend.belief import select_suspects
from redescend.numeric import Array

START = 100
"""Rounds before this one do not count."""

BINS = 10


@dataclass
class Scores:
    """The scores of one stream."""

    name: str
    rounds: int
    errors: int
    ece: float
    final_ece: float
    fdp: float
    recall: float
    false: int
    online_fdp: float
    online_recall: float
    bins: Array = field(repr=False)
    auc: float | None = None
    weight_auc: float | None = None
    coverage: float = np.nan
    width: float | None = None
    oracle_recall: float | None = None

    @property
    def coverage_error(self) -> float:
        return abs(self.coverage - 0.9)

    def add_ranks(self, clean: Array, log_odds: Array, weights: Array) -> None:
        if self.errors:
            self.auc, self.weight_auc = area(log_odds[START:], clean[START:]), area(weights[START:], clean[START:])

    def add_intervals(self, case: Case, low: Array, high: Array) -> None:
        inside = (low <= case.y) & (case.y <= high)
        self.coverage = float(inside[START:][case.clean[START:]].mean())

    def add_oracle(self, case: Case, probability: Array, width: float, widths: Array) -> None:
        assert case.true_scale is not None
        found = select_suspects(probability[START:], 0.1)
        self.oracle_recall = np.count_nonzero(~case.clean[START:][found]) / max(self.errors, 1)
        self.width = float(np.median(widths[START:] / (case.true_scale[START:] * width)))


def score(name: str, clean: Array, final: Array, online: Array, flagged: Array, numbers: bool = False) -> Scores:
    """Calibration of both probabilities, and both lists of suspects; `numbers` have a rule of their own."""
    clean, final, online, flagged = clean[START:], final[START:], online[START:], flagged[START:]
    found, errors = select_suspects(final, 0.1, numbers), int(np.count_nonzero(~clean))
    false, online_false = int(np.count_nonzero(clean[found])), int(np.count_nonzero(clean & flagged))
    return Scores(
        name,
        len(clean),
        errors,
        calibration_error(online, clean),
        calibration_error(final, clean),
        false / max(len(found), 1),
        (len(found) - false) / max(errors, 1),
        false,
        online_false / max(int(flagged.sum()), 1),
        np.count_nonzero(~clean & flagged) / max(errors, 1),
        count_bins(final, clean),
    )


def count_bins(probability: Array, clean: Array) -> Array:
    """For each bin of probabilities: records, clean ones, and the sum of the probabilities."""
    cells = np.minimum((BINS * probability).astype(int), BINS - 1)
    counts = (None, clean.astype(float), probability)
    return np.array([np.bincount(cells, weights=weights, minlength=BINS) for weights in counts])


def calibration_error(probability: Array, clean: Array) -> float:
    """The mean gap between probability and observed frequency, over bins of width 0.1."""
    _, good, said = count_bins(probability, clean)
    return float(np.abs(good - said).sum() / len(clean))


def area(values: Array, clean: Array) -> float:
    """The area under the ROC curve: the probability that a clean record has a larger value than a wrong one."""
    good = np.count_nonzero(clean)
    bad = len(clean) - good
    return float((rankdata(values)[clean].sum() - good * (good + 1) / 2) / (good * bad))


def mean(rows: list[Scores], name: str) -> float:
    values = [getattr(row, name) for row in rows]
    return float(np.mean([value for value in values if value is not None]))


def reliability(rows: list[Scores]) -> tuple[Array, Array, Array]:
    """Mean probability, observed frequency and number of records of every bin."""
    count, good, said = np.sum([row.bins for row in rows], axis=0)
    safe: Any = np.maximum(count, 1)
    return said / safe, good / safe, count.astype(int)
