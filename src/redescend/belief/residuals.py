"""Belief in records with a numeric target, judged by their residuals."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from redescend.belief.shapes import make_tables
from redescend.belief.suspects import SHARE, q_values, select_suspects, to_probability
from redescend.errors import DataError
from redescend.kernels.belief import layout, rounds
from redescend.kernels.belief.cells import CELLS
from redescend.kernels.belief.mixture import fit_densities
from redescend.numeric import Array
from redescend.parameters import COUNT, check
from redescend.state import ArraySpec, Stateful, read_arrays, require

_COUNT, _SHARE = ArraySpec("numbers", kind="count"), ArraySpec("numbers", low=0.0, high=1.0)
_POSITIVE = ArraySpec("numbers", low=1e-300)

SPECS = (
    ArraySpec(
        "numbers",
        (layout.NUMBERS,),
        parts={
            layout.ROUNDS: _COUNT,
            layout.COUNTED: _COUNT,
            layout.UNIT: ArraySpec("numbers", low=0.0),
            layout.AGE: ArraySpec("numbers", low=0.0),
            layout.INCREMENT: ArraySpec("numbers", low=1.0),
            layout.OUTLIERS: _SHARE,
            layout.THRESHOLD: _SHARE,
            layout.LOST: _SHARE,
            layout.BELOW: ArraySpec("numbers", low=0.0),
            layout.ABOVE: ArraySpec("numbers", low=0.0),
            layout.REPEATS: _COUNT,
            layout.FIRST_TIES: _POSITIVE,
            layout.FIRST_CHANCES: _POSITIVE,
            layout.NEXT_TIES: _POSITIVE,
            layout.NEXT_CHANCES: _POSITIVE,
        },
    ),
    ArraySpec("features", (layout.FEATURES, lambda dims: dims["dim"] + 1)),
    ArraySpec("counts", (2, 2, CELLS), low=0.0),
    ArraySpec("scales", (2, "families"), kind="index", high="widths"),
    ArraySpec("outliers", (2, "families", "atoms"), low=0.0, high=1.0),
    ArraySpec("clean", (2, CELLS), low=0.0, high=1.0),
    ArraySpec("log_odds", (2, CELLS)),
)
"""The arrays of the state, in the order of `layout.State`."""


class Judgements(NamedTuple):
    """What was said of every record before it was learned from.

    Attributes
    ----------
    clean_log_odds : array of floats
        Logarithm of the odds that the record is clean.
    low, high : arrays of floats
        The interval in which nine in ten clean targets lie.
    scale : array of floats
        The scale of the residual, from the records before and the features.
    stuck : array of floats
        The probability that the target only repeats the last one.
    suspect : array of bools
        Whether the record would be in a list with a tenth of false alarms.

    Examples
    --------
    >>> Judgements(np.zeros(1), *np.zeros((5, 1))).clean_probability
    array([0.5])
    """

    clean_log_odds: Array
    low: Array
    high: Array
    scale: Array
    stuck: Array
    suspect: Array

    @property
    def clean_probability(self) -> Array:
        """The probability that each record is clean, never exactly 0 or 1."""
        return to_probability(self.clean_log_odds)


class Verdict(NamedTuple):
    """What is said of every record in the end, by all that was learned.

    Attributes
    ----------
    clean_log_odds : array of floats
        Logarithm of the odds that the record is clean.
    stuck : array of floats
        The probability that the target only repeats an earlier one.

    Examples
    --------
    >>> verdict = Verdict(np.array([3.0, -4.0, 2.0]), np.zeros(3))
    >>> verdict.suspects(fdr=0.1)
    array([1])
    """

    clean_log_odds: Array
    stuck: Array

    @property
    def clean_probability(self) -> Array:
        """The probability that each record is clean, never exactly 0 or 1."""
        return to_probability(self.clean_log_odds)

    @property
    def q_value(self) -> Array:
        """The estimated share of false alarms in the list of a record and all that are less likely clean."""
        return q_values(self.clean_probability)

    def suspects(self, fdr: float = 0.1) -> Array:
        """The largest list of rows whose estimated share of false alarms is at most `fdr`, the worst first."""
        return select_suspects(self.clean_probability, fdr)


class ResidualBelief(Stateful):
    r"""The probability that a record is clean, from the residual of any model; one pass, nothing to tune.

    Clean residuals and outliers are two groups. The scale of residuals may change along the stream, with the features
    and with the prediction. The densities of both groups are fitted to a histogram of standardised residuals. Records
    after a jump, to which every prediction is wrong, are not called wrong; targets that repeat themselves while the
    features change are.

    Parameters
    ----------
    dim : int
        Number of features on which the scale may depend; it always may on the prediction.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> predictions = random.normal(size=3000)
    >>> targets = predictions + 0.1 * random.normal(size=3000)
    >>> wrong = np.arange(1000, 3000, 100)
    >>> targets[wrong] += 3.0
    >>> belief = ResidualBelief()
    >>> judgements = belief.update(predictions, targets)
    >>> suspects = belief.judge_log(predictions, targets, judgements).suspects(fdr=0.1)
    >>> np.array_equal(np.sort(suspects), wrong)
    True
    """

    def __init__(self, dim: int = 0) -> None:
        self.dim = int(check(type(self).__name__, "dim", dim, COUNT))
        self._tables = make_tables()
        self._state = self._make_state()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dim})"

    def _make_state(self) -> layout.State:
        families, widths, _ = self._tables.clean.shape
        numbers = np.zeros(layout.NUMBERS)
        numbers[[layout.EVIDENCE, layout.INCREMENT, layout.DUE]] = layout.DOUBT, 1.0, layout.SHORTEST
        numbers[[layout.BELOW, layout.ABOVE, layout.LOST]] = 4.0, 4.0, layout.FIRST_LOST
        numbers[[layout.FIRST_TIES, layout.FIRST_CHANCES]] = 1.0, 20.0
        numbers[[layout.NEXT_TIES, layout.NEXT_CHANCES]] = 1.0, 4.0
        features = np.zeros((layout.FEATURES, self.dim + 1))
        features[layout.TRAVELLED] = 1e-3
        shares = self._tables.prior / (layout.CLEAN_PRIOR + self._tables.prior.sum())
        state = layout.State(
            numbers,
            features,
            np.zeros((2, 2, CELLS)),
            np.full((2, families), float(widths // 2)),
            np.tile(shares, (2, families, 1)),
            np.zeros((2, CELLS)),
            np.zeros((2, CELLS)),
        )
        numbers[layout.OUTLIERS] = fit_densities(state.counts[layout.RECENT], self._tables, 1, *state[3:])
        return state

    @property
    def rounds(self) -> int:
        """Number of records so far."""
        return int(self._state.numbers[layout.ROUNDS])

    @property
    def outlier_share(self) -> float:
        """The estimated share of outliers among recent records."""
        return float(self._state.numbers[layout.OUTLIERS])

    def update(self, predictions: Any, targets: Any, X: Any = None) -> Judgements:
        """Judge records in order, each by what was learned from those before it, and learn from it.

        Parameters
        ----------
        predictions : array of floats, shape (rows,)
            Predictions that were made before the targets were known.
        targets : array of floats, shape (rows,)
            The targets.
        X : array of floats, shape (rows, dim), optional
            The features, if the scale depends on any; what is missing, NaN, is taken for the mean.

        Returns
        -------
        Judgements
            One entry for each record.
        """
        predictions, targets, X = self._read(predictions, targets, X)
        rows = len(targets)
        log_odds, low, high, scale, stuck = np.empty((5, rows))
        out = layout.Outputs(log_odds, low, high, scale, stuck, np.empty(rows, np.bool_))
        rounds.judge_rows(X, predictions, targets, self._state, self._tables, out)
        return Judgements(*out)

    def judge(self, predictions: Any, targets: Any, X: Any = None) -> Array:
        """The log-odds that each record is clean, by all that was learned so far; nothing is learned."""
        predictions, targets, X = self._read(predictions, targets, X)
        scales = rounds.find_scales(X, predictions, self._state)
        return rounds.look_up(targets - predictions, scales, self._state.log_odds, self._tables.centers)

    def judge_log(self, predictions: Any, targets: Any, judgements: Judgements) -> Verdict:
        """The final verdict, by all that is known now, on records that were given to `update` before."""
        predictions, targets, _ = self._read(predictions, targets, np.empty((len(predictions), self.dim)))
        scale, stuck = (np.ascontiguousarray(part, np.float64) for part in (judgements.scale, judgements.stuck))
        if scale.shape != targets.shape or stuck.shape != targets.shape:
            raise DataError(f"judgements must have one entry for each of the {len(targets)} targets.")
        table, outliers = rounds.fit_all(self._state, self._tables)
        log_odds = rounds.look_up(targets - predictions, scale, table, self._tables.centers)
        return Verdict(*rounds.combine_all(log_odds, targets, stuck, outliers))

    def predict_interval(self, predictions: Any, X: Any = None, level: float = 0.9) -> tuple[Array, Array]:
        """The interval in which this share of clean targets lies.

        Parameters
        ----------
        predictions : array of floats, shape (rows,)
            Predictions.
        X : array of floats, shape (rows, dim), optional
            The features, if the scale depends on any.
        level : float
            The share, between 0 and 1.

        Returns
        -------
        low, high : arrays of floats, shape (rows,)
            The ends of the intervals.
        """
        level = check(f"{type(self).__name__}.predict_interval", "level", level, SHARE)
        predictions, _, X = self._read(predictions, predictions, X)
        scales = rounds.find_scales(X, predictions, self._state)
        below, above = rounds.find_widths(self._state, self._tables.edges, level)
        return predictions - below * scales, predictions + above * scales

    def _read(self, predictions: Any, targets: Any, X: Any) -> tuple[Array, Array, Array]:
        arrays = []
        for name, values in {"predictions": predictions, "targets": targets}.items():
            array = np.ascontiguousarray(values, np.float64)
            if array.ndim != 1 or not np.isfinite(array).all():
                raise DataError(f"{name} must be finite numbers, one for each record.")
            arrays.append(array)
        rows = len(arrays[1])
        if len(arrays[0]) != rows:
            raise DataError(f"predictions and targets must be equally many. Got {len(arrays[0])} and {rows}.")
        table = np.ascontiguousarray(np.empty((rows, 0)) if X is None else X, np.float64)
        if table.shape != (rows, self.dim):
            raise DataError(f"X must have shape ({rows}, {self.dim}). Got {table.shape} instead.")
        return arrays[0], arrays[1], table

    def state(self) -> dict[str, Any]:
        return {name: array.copy() for name, array in self._state._asdict().items()}

    def restore(self, state: dict[str, Any]) -> None:
        families, widths, _ = self._tables.clean.shape
        dims = {"dim": self.dim, "families": families, "widths": widths, "atoms": len(self._tables.prior)}
        arrays = read_arrays(SPECS, state, dims, self)
        spread = arrays["features"][[layout.SQUARES, layout.TRAVELLED]]
        require((spread >= 0.0).all(), self, "negative squares of features")
        require((arrays["outliers"].sum(axis=2) < 1.0).all(), self, "shares of outliers whose sum is above 1")
        self._state = layout.State(**arrays)
