"""Belief in labels, judged by the margins of a classifier."""

from __future__ import annotations

import functools
from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np
import scipy

from redescend.belief.suspects import to_probability
from redescend.belief.verdicts import Verdict, final_counts
from redescend.errors import DataError
from redescend.kernels.belief import labels as kernels
from redescend.kernels.belief import layout
from redescend.numeric import Array
from redescend.parameters import Interval, check
from redescend.state import ArraySpec, Stateful, read_arrays

SLOPES = np.arange(-4.0, 5.0)
"""Slopes of links, as logarithms to base 2; each goes with every link."""

LINKS: tuple[Callable[[Array], Array], ...] = (
    lambda margin: scipy.special.expit(margin - 1.0),
    lambda margin: scipy.special.expit(margin),
    lambda margin: scipy.special.expit(margin + 1.0),
    lambda margin: scipy.special.stdtr(3.0, margin / 1.5),
)
"""Links from a margin to the probability of a label: logistic with three offsets, because scores lean to one label
where more labels of the other are flipped; and Student's t with 3 degrees of freedom, for exceptions that are far from
the boundary."""

FIRST_FLIPS = 0.1

SPECS = (
    ArraySpec(
        "numbers",
        (kernels.NUMBERS,),
        low=0.0,
        parts={
            kernels.ROUNDS: ArraySpec("numbers", kind="count"),
            kernels.INCREMENT: ArraySpec("numbers", low=1.0),
            kernels.THRESHOLD: ArraySpec("numbers", low=0.0, high=1.0),
        },
    ),
    ArraySpec("counts", (2, 2, kernels.CELLS), low=0.0),
    ArraySpec("flips", ("models", 2), low=1e-300, high=kernels.MOST_FLIPS),
    ArraySpec("log_odds", (2, kernels.CELLS)),
    ArraySpec("positive", (kernels.CELLS,), low=0.0, high=1.0),
)

CLASSES = Interval(2, float("inf"), "left", whole=True)


class LabelJudgements(NamedTuple):
    """The judgements of labels, each from before it was learned from.

    Attributes
    ----------
    clean_log_odds : array of floats
        Logarithm of the odds that the label is right.
    suspect : array of bools
        Whether the record would be in a list with a tenth of false alarms.

    Examples
    --------
    >>> LabelJudgements(np.zeros(1), np.zeros(1)).clean_probability
    array([0.5])
    """

    clean_log_odds: Array
    suspect: Array

    @property
    def clean_probability(self) -> Array:
        """The probability that each label is right, never exactly 0 or 1."""
        return to_probability(self.clean_log_odds)


@functools.cache
def make_tables() -> kernels.Tables:
    """The links at every slope, made once."""
    sizes = 2.0 ** (kernels.LOWEST + (np.arange(kernels.SIDE) + 0.5) / kernels.FINE)
    margins = np.concatenate([-sizes[::-1], sizes])
    models = [link(margins * 2.0**slope) for link in LINKS for slope in SLOPES]
    log_prior = np.tile(-kernels.SLOPE_PRIOR * SLOPES**2, len(LINKS))
    return kernels.Tables(np.clip(models, kernels.RAREST, 1.0 - kernels.RAREST), log_prior)


def _look_up(margins: Array, labels: Array, log_odds: Array) -> Array:
    """The log-odds that labels are right, from a table by label and cell."""
    out = np.empty(len(labels))
    kernels.look_up_labels(margins, labels, log_odds, out)
    return out


class LabelBelief(Stateful):
    r"""The probability that a label is right, from the scores of any classifier; one pass, nothing to tune.

    The scores need not be calibrated: how probable a label is at which margin, and how many labels are flipped, is
    learned. With more than two classes, the margin of a class is by how much its score is above the largest of the
    others, and what counts is the margin of the given class.

    Parameters
    ----------
    classes : int
        Number of classes.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> margins = 4.0 * random.normal(size=4000)
    >>> labels = (random.random(4000) < 1 / (1 + np.exp(-margins))).astype(int)
    >>> flipped = random.random(4000) < 0.1
    >>> labels[flipped] = 1 - labels[flipped]
    >>> belief = LabelBelief()
    >>> _ = belief.update(margins, labels)
    >>> suspects = belief.judge_log(margins, labels).suspects(fdr=0.1)
    >>> bool(np.mean(~flipped[suspects]) < 0.15)
    True
    """

    def __init__(self, classes: int = 2) -> None:
        self.classes = int(check(type(self).__name__, "classes", classes, CLASSES))
        self._tables = make_tables()
        models = len(self._tables.positive)
        numbers = np.zeros(kernels.NUMBERS)
        numbers[[kernels.INCREMENT, kernels.DUE]] = 1.0, layout.SHORTEST
        self._state = kernels.State(
            numbers,
            np.zeros((2, 2, kernels.CELLS)),
            np.full((models, 2), FIRST_FLIPS),
            np.zeros((2, kernels.CELLS)),
            np.zeros(kernels.CELLS),
        )
        self._pooled = kernels.POOLED if self.classes == 2 else 0.0
        self._fit(self._state.counts[0], 0, self._state)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.classes})"

    @property
    def rounds(self) -> int:
        """Number of records so far."""
        return int(self._state.numbers[kernels.ROUNDS])

    def update(self, margins: Any, labels: Any) -> LabelJudgements:
        """Judge labels in order, each by what was learned from those before it, and learn from it.

        Parameters
        ----------
        margins : array of floats, shape (rows,) or (rows, classes)
            Scores that were given before the labels were known: of two classes that of the second, else one for each.
        labels : array of ints, shape (rows,)
            Places of the given classes, from 0.

        Returns
        -------
        LabelJudgements
            One entry for each record.
        """
        margins, labels = self._read(margins, labels)
        log_odds, suspect = np.empty(len(labels)), np.empty(len(labels), np.bool_)
        numbers, first = self._state.numbers, 0
        while first < len(labels):
            first = kernels.judge_labels(margins, labels, first, self._state, log_odds, suspect)
            if numbers[kernels.ROUNDS] >= numbers[kernels.DUE]:
                self._fit_recent()
        return LabelJudgements(log_odds, suspect)

    def learn_table(self, margins: Any, labels: Any) -> None:
        """Learn from all records of a table at once, whatever their order.

        Parameters
        ----------
        margins : array of floats, shape (rows,) or (rows, classes)
            Scores by a model that had not learned from the record.
        labels : array of ints, shape (rows,)
            Places of the given classes, from 0.
        """
        margins, labels = self._read(margins, labels)
        self._renormalize()
        self._state.numbers[kernels.ROUNDS] += len(labels)
        kernels.count_labels(margins, labels, self._state.counts)
        self._fit_recent(kernels.FINAL_ITERATIONS)

    def _fit_recent(self, iterations: int = kernels.ITERATIONS) -> None:
        """Fit all models to recent records, and what follows from them."""
        self._renormalize()
        numbers, total = self._state.numbers, self._state.numbers[kernels.ROUNDS]
        numbers[kernels.THRESHOLD] = self._fit(self._state.counts[layout.RECENT], iterations, self._state)
        numbers[kernels.DUE] = total + min(max(layout.SHORTEST, total // layout.GROWTH), layout.LONGEST)

    def _renormalize(self) -> None:
        """Make the next record count once among recent ones, in which older records have faded."""
        self._state.counts[layout.RECENT] /= self._state.numbers[kernels.INCREMENT]
        self._state.numbers[kernels.INCREMENT] = 1.0

    def _fit(self, counts: Array, iterations: int, state: kernels.State) -> float:
        """Fit the models of a state to counts; returns the threshold of suspects."""
        weights = np.empty(2 * len(self._tables.positive))
        fitted = kernels.Fitted(state.flips, state.log_odds, state.positive, weights)
        return float(kernels.fit_labels(counts, self._tables, iterations, self._pooled, fitted))

    def _fit_all(self) -> Array:
        """The table of log-odds by label and cell that fits all records."""
        fitted = kernels.State(*(array.copy() for array in self._state))
        self._fit(final_counts(fitted.counts, fitted.numbers[kernels.INCREMENT]), kernels.FINAL_ITERATIONS, fitted)
        return fitted.log_odds

    def judge(self, margins: Any, labels: Any) -> Array:
        """The log-odds that each label is right, by all that was learned so far; nothing is learned."""
        return _look_up(*self._read(margins, labels), self._state.log_odds)

    def judge_log(self, margins: Any, labels: Any) -> Verdict:
        """The final verdict, by all that is known now, on records that were given to `update` before."""
        margins, labels = self._read(margins, labels)
        return Verdict(_look_up(margins, labels, self._fit_all()), np.zeros(len(labels)))

    def judge_leads(self, leads: Any, labels: Any) -> Verdict:
        """The same from scores of two classes, or else from the margins of the given classes and labels that are 1."""
        leads = np.ascontiguousarray(leads, np.float64).reshape(-1, 1)
        labels = np.ascontiguousarray(labels, np.int64)
        if len(leads) != len(labels) or not np.isin(labels, (0, 1)).all() or not np.isfinite(leads).all():
            raise DataError("leads must be finite and labels 0 or 1, one of each for every record.")
        return Verdict(_look_up(leads, labels, self._fit_all()), np.zeros(len(labels)))

    def predict_proba(self, margins: Any) -> Array:
        """The calibrated probability of every class to be the true one, not the given one."""
        margins, _ = self._read(margins, np.zeros(len(margins), np.int64))
        shares = np.empty(margins.shape)
        kernels.look_up_positive(margins, self._state.positive, shares)
        if self.classes == 2:
            return np.column_stack([1.0 - shares[:, 0], shares[:, 0]])
        return shares / shares.sum(axis=1, keepdims=True)

    def _read(self, margins: Any, labels: Any) -> tuple[Array, Array]:
        table, places = np.ascontiguousarray(margins, np.float64), np.ascontiguousarray(labels)
        columns = 1 if self.classes == 2 else self.classes
        if columns == 1 and table.ndim == 1:
            table = table[:, None]
        if table.shape != (len(places), columns) or not np.isfinite(table).all():
            raise DataError(f"margins must be finite, of shape ({len(places)}, {columns}). Got {table.shape} instead.")
        if places.ndim != 1 or places.dtype.kind not in "iub":
            raise DataError("labels must be whole numbers, one for each record.")
        places = places.astype(np.int64)
        if len(places) and not 0 <= places.min() <= places.max() < self.classes:
            raise DataError(f"labels must be at least 0 and below {self.classes}.")
        return table, places

    def __deepcopy__(self, memo: Any) -> Self:
        other = copy(self)
        other._state = kernels.State(*(array.copy() for array in self._state))
        return other

    def state(self) -> dict[str, Any]:
        return {name: array.copy() for name, array in self._state._asdict().items()}

    def restore(self, state: dict[str, Any]) -> None:
        dims = {"models": len(self._tables.positive)}
        self._state = kernels.State(**read_arrays(SPECS, state, dims, self))
