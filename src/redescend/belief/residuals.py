"""Belief in records with a numeric target, judged by their residuals."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np

from redescend.belief.densities import make_tables
from redescend.belief.final import are_natural_runs, final_counts, find_residuals
from redescend.belief.specs import SPECS
from redescend.belief.suspects import HALF, SHARE, to_probability
from redescend.belief.table import TRUST, WIDEST, choose_some, correct_ends, count_cells, divide, fit_effects
from redescend.belief.verdicts import Judgements, Verdict
from redescend.errors import DataError
from redescend.kernels.belief import layout, rounds
from redescend.kernels.belief.cells import CELLS
from redescend.kernels.belief.mixture import fit_densities, make_work
from redescend.kernels.belief.thresholds import find_quantiles
from redescend.numeric import Array
from redescend.parameters import COUNT, check
from redescend.state import Stateful, read_arrays, require


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
        self._state, self._keys = self._make_state(), 1

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dim})"

    def __deepcopy__(self, memo: Any) -> Self:
        other = copy(self)
        other._state = layout.State(*(array.copy() for array in self._state))
        return other

    def _make_state(self) -> layout.State:
        families, widths, _ = self._tables.clean.shape
        numbers, features, shared = *self._make_keys(1), np.zeros(layout.SHARED)
        shared[[layout.INCREMENT, layout.DUE, layout.BELOW, layout.ABOVE]] = 1.0, layout.SHORTEST, 4.0, 4.0
        shared[[layout.FIRST_TIES, layout.FIRST_CHANCES]] = 1.0, 20.0
        shared[[layout.NEXT_TIES, layout.NEXT_CHANCES]] = 1.0, 4.0
        shares = self._tables.prior / (layout.CLEAN_PRIOR + self._tables.prior.sum(axis=1, keepdims=True))
        outliers = np.tile(shares, (2, 1, 1))
        scales, natural = np.full((2, families), float(widths // 2)), np.full((2, families), layout.NATURAL)
        fitted = layout.Densities(scales, natural, outliers, np.zeros((2, CELLS)), np.zeros((2, CELLS)))
        state = layout.State(numbers, features, shared, np.zeros((2, 2, CELLS)), *fitted)
        shared[layout.OUTLIERS], _ = self._fit(state.counts[layout.RECENT], 1, fitted)
        return state

    def _fit(self, counts: Array, iterations: int, fitted: layout.Densities) -> tuple[float, float]:
        """Fit densities; returns the share of outliers and the largest probability of a suspect."""
        return fit_densities(counts, self._tables, iterations, fitted, make_work(self._tables))

    def _make_keys(self, keys: int) -> tuple[Array, Array]:
        """What is known of new keys."""
        numbers, features = np.zeros((keys, layout.NUMBERS)), np.zeros((keys, layout.FEATURES, self.dim + 1))
        numbers[:, layout.EVIDENCE], numbers[:, layout.LOST] = layout.DOUBT, layout.FIRST_LOST
        features[:, layout.TRAVELLED] = 1e-3
        return numbers, features

    @property
    def rounds(self) -> int:
        """Number of records so far."""
        return int(self._state.shared[layout.TOTAL])

    @property
    def keys(self) -> int:
        """Number of keys so far; 1 without keys."""
        return self._keys

    @property
    def key_bytes(self) -> int:
        """Bytes of the state of another key."""
        return self._state.numbers[0].nbytes + self._state.features[0].nbytes

    @property
    def outlier_share(self) -> float:
        """The estimated share of outliers among recent records."""
        return float(self._state.shared[layout.OUTLIERS])

    def update(self, predictions: Any, targets: Any, X: Any = None, keys: Any = None) -> Judgements:
        """Judge records in order, each by what was learned from those before it, and learn from it.

        Parameters
        ----------
        predictions : array of floats, shape (rows,)
            Predictions that were made before the targets were known.
        targets : array of floats, shape (rows,)
            The targets.
        X : array of floats, shape (rows, dim), optional
            The features, if the scale depends on any; what is missing, NaN, is taken for the mean.
        keys : array of ints, shape (rows,), optional
            The place of each record's key, from 0. Every key has a scale of its own; the shape of the noise and the
            share of outliers are those of all keys.

        Returns
        -------
        Judgements
            One entry for each record.
        """
        records = self._read(predictions, targets, X, keys)
        self._grow(int(records.places.max(initial=0)) + 1)
        return self.update_checked(records)

    def update_checked(self, records: layout.Records) -> Judgements:
        """The same for records that were checked, of keys that are known."""
        rows, first = len(records.targets), 0
        log_odds, low, high, scale, stuck = np.empty((5, rows))
        out = layout.Outputs(log_odds, low, high, scale, stuck, np.empty(rows, np.bool_))
        work = np.empty((2, self.dim + 1))
        while first < rows:
            first = rounds.judge_rows(records, first, self._state, self._tables.centers, out, work)
            if self._state.shared[layout.TOTAL] >= self._state.shared[layout.DUE]:
                self._fit_recent()
        return Judgements(*out)

    def _grow(self, keys: int) -> None:
        """Make room for this number of keys, and at least double it, so that growing costs little."""
        self._keys = max(keys, self._keys)
        capacity = len(self._state.numbers)
        if keys > capacity:
            new = self._make_keys(max(keys, 2 * capacity) - capacity)
            numbers, features = (np.concatenate(pair) for pair in zip(self._state[:2], new, strict=True))
            self._state = self._state._replace(numbers=numbers, features=features)

    def learn_table(self, predictions: Any, targets: Any, X: Any = None) -> Judgements:
        """Learn from records whose order says nothing, all at once.

        All records get the scale that is known in the end, whose dependence on the features is fitted to all of them,
        and the densities are those of all records, not of recent ones.

        Parameters
        ----------
        predictions, targets, X
            As in `update`.

        Returns
        -------
        Judgements
            One entry for each record; `judge_log` gives the verdict on them.
        """
        records = self._read(predictions, targets, X, None)
        said = self.update_checked(records)
        state, residuals = self._state, find_residuals(records)
        sizes, usable = self._find_usable(records)
        if usable.any():
            self._fit_effects(records, sizes, choose_some(usable))
            state.numbers[0, [layout.LOWER, layout.HIGHER]] = 0.0
            said.scale[:], widths, _ = self._find_scales(records)
            ratios = divide(np.copysign(sizes, residuals), said.scale)[usable]
            state.counts[:] = count_cells(ratios, self._tables.edges)
            state.shared[layout.INCREMENT] = 1.0
            self._fit_recent(layout.FINAL_ITERATIONS)
            clean = to_probability(self._look_up(records, said.scale, state.log_odds, self.outlier_share))
            usual, tail = state.shared[[layout.BELOW, layout.ABOVE]], 0.5 * (1.0 - layout.LEVEL)
            corrected = correct_ends(divide(residuals, widths), clean, usual, tail)
            state.numbers[0, [layout.LOWER, layout.HIGHER]] = corrected
        return said

    def learn_again(self, predictions: Any, targets: Any, X: Any = None) -> Judgements:
        """Learn from the records of `update` once more, in their order and from the start, but with the effects of the
        features on the scale fitted to all of them.

        Parameters
        ----------
        predictions, targets, X
            As in `update`: the same records, without keys.

        Returns
        -------
        Judgements
            One entry for each record; `judge_log` gives the verdict on them.
        """
        records = self._read(predictions, targets, X, None)
        sizes, usable = self._find_usable(records)
        if usable.any():
            self._fit_effects(records, sizes, choose_some(usable))
        known, self._state = self._state.features[0], self._make_state()
        self._state.features[0, [layout.EFFECT, layout.TRAVELLED]] = known[[layout.EFFECT, layout.TRAVELLED]]
        self._state.numbers[0, layout.EVIDENCE] = -layout.DOUBT
        return self.update_checked(records)

    def _find_usable(self, records: layout.Records) -> tuple[Array, Array]:
        """The sizes of residuals, and which of them say something about the noise.

        Neither those of repeated records nor of targets at a natural point mass do, nor sizes of 0.
        """
        excused = np.full(len(records.targets), -np.inf)
        rounds.excuse_points(records, self._state, 0.0, excused)
        sizes = np.maximum(np.abs(find_residuals(records)), self._smallest_sizes()[0])
        usable = np.isneginf(excused) & (sizes > 0.0) & (self._state.numbers[0, layout.UNIT] > 0.0)
        usable[1:] &= (records.X[1:] != records.X[:-1]).any(axis=1) | (records.targets[1:] != records.targets[:-1])
        return sizes, usable

    def _fit_effects(self, records: layout.Records, sizes: Array, some: Array) -> None:
        """Replace the effects of features on the scale by those that fit these records best."""
        numbers, features = self._state.numbers[0], self._state.features[0]
        if self.dim < WIDEST:
            work = np.empty((1 + len(some), self.dim + 1))
            chosen = layout.Records(*(part[some] for part in records))
            rounds.find_scales(chosen, self._state, work, np.empty((3, len(some))))
            level, features[layout.EFFECT] = fit_effects(work[1:], np.log(sizes[some]))
            numbers[layout.ADJUSTED] = level - np.log(numbers[layout.UNIT])
            numbers[layout.EVIDENCE] = np.log(TRUST / (1.0 - TRUST))

    def _fit_recent(self, iterations: int = layout.ITERATIONS) -> None:
        """Fit the densities to recent records, and what follows from them."""
        state, shared = self._state, self._state.shared
        counts, total = state.counts[layout.RECENT], shared[layout.TOTAL]
        counts /= shared[layout.INCREMENT]
        shared[layout.INCREMENT] = 1.0
        fitted = self._fit(counts, iterations, layout.Densities(*state[4:]))
        shared[layout.OUTLIERS], shared[layout.THRESHOLD] = fitted
        ends = find_quantiles(state.clean, counts, self._tables.edges, layout.LEVEL)
        shared[layout.BELOW], shared[layout.ABOVE] = ends
        shared[layout.DUE] = total + min(max(layout.SHORTEST, total // layout.GROWTH), layout.LONGEST)

    def judge(self, predictions: Any, targets: Any, X: Any = None, keys: Any = None) -> Array:
        """The log-odds that each record is clean, by all that was learned so far; nothing is learned."""
        return self.judge_checked(self._read(predictions, targets, X, keys, known=True))

    def judge_checked(self, records: layout.Records) -> Array:
        """The same for records that were checked."""
        scales, _, _ = self._find_scales(records)
        return self._look_up(records, scales, self._state.log_odds, self.outlier_share)

    def judge_log(self, predictions: Any, targets: Any, judgements: Judgements, keys: Any = None) -> Verdict:
        """The final verdict, by all that is known now, on records that were given to `update` before."""
        records = self._read(predictions, targets, np.empty((len(predictions), self.dim)), keys, known=True)
        scale, stuck = (np.array(part, np.float64) for part in (judgements.scale, judgements.stuck))
        if scale.shape != records.targets.shape or stuck.shape != scale.shape:
            raise DataError(f"judgements must have one entry for each of the {len(scale)} targets.")
        fitted = layout.Densities(*(array.copy() for array in self._state[4:]))
        counts = final_counts(self._state.counts, self._state.shared[layout.INCREMENT])
        outliers, _ = self._fit(counts, layout.FINAL_ITERATIONS, fitted)
        # The first scales were found before it was known that targets are rounded, and how much they differ.
        scale = np.maximum(scale, self._smallest_sizes()[records.places])
        log_odds = self._look_up(records, scale, fitted.log_odds, outliers)
        if are_natural_runs(records.targets, stuck > HALF):
            stuck[:] = 0.0
        # What is said of several records in a row is said of those of one key.
        order = np.argsort(records.places, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(records.places[order])) + 1):
            work, held = np.stack([log_odds[rows]] * 2), stuck[rows]
            rounds.combine_all(work, records.targets[rows], held, outliers)
            log_odds[rows], stuck[rows] = work[0], held
        return Verdict(log_odds, stuck, numbers=True)

    def predict_interval(
        self, predictions: Any, X: Any = None, level: float = 0.9, keys: Any = None
    ) -> tuple[Array, Array]:
        """The interval in which this share of clean targets lies.

        Parameters
        ----------
        predictions : array of floats, shape (rows,)
            Predictions.
        X : array of floats, shape (rows, dim), optional
            The features, if the scale depends on any.
        level : float
            The share, between 0 and 1.
        keys : array of ints, shape (rows,), optional
            The places of the records' keys.

        Returns
        -------
        low, high : arrays of floats, shape (rows,)
            The ends of the intervals.
        """
        level = check(f"{type(self).__name__}.predict_interval", "level", level, SHARE)
        records = self._read(predictions, predictions, X, keys, known=True)
        _, lower, higher = self._find_scales(records)
        counts = self._state.counts[layout.RECENT]
        below, above = find_quantiles(self._state.clean, counts, self._tables.edges, level)
        return records.predictions - below * lower, records.predictions + above * higher

    def _find_scales(self, records: layout.Records) -> Array:
        """The scales of residuals, and the ends of intervals below and above per quantile."""
        out = np.empty((3, len(records.targets)))
        rounds.find_scales(records, self._state, np.empty((2, self.dim + 1)), out)
        return out

    def _smallest_sizes(self) -> Array:
        """For every key, the size below which residuals are not told apart."""
        numbers = self._state.numbers
        rounding = np.where(numbers[:, layout.MULTIPLES] >= layout.ENOUGH, numbers[:, layout.GRID], 0.0)
        known = numbers[:, layout.DIFFERENCES] >= layout.FIRST_DIFFERENCES
        spread = np.where(known, np.exp(numbers[:, layout.SPREAD]), 0.0)
        return np.maximum(layout.ROUNDED * rounding, layout.SMALL * spread)

    def _look_up(self, records: layout.Records, scales: Array, log_odds: Array, outliers: float) -> Array:
        """The log-odds of records by their residuals, from a table by sign and cell."""
        out, largest = np.empty(len(records.targets)), np.finfo(float).max
        rounds.look_up(find_residuals(records), np.minimum(scales, largest), log_odds, self._tables.centers, out)
        rounds.excuse_points(records, self._state, outliers, out)
        return out

    def _read(self, predictions: Any, targets: Any, X: Any, keys: Any, known: bool = False) -> layout.Records:
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
        places = np.zeros(rows, np.int64) if keys is None else np.ascontiguousarray(keys, np.int64)
        if places.shape != (rows,) or places.min(initial=0) < 0:
            raise DataError(f"keys must be {rows} whole numbers from 0.")
        if known and places.max(initial=0) >= self._keys:
            raise DataError(f"keys must be below {self._keys}, the number of keys so far.")
        return layout.Records(table, arrays[0], arrays[1], places)

    def state(self) -> dict[str, Any]:
        trimmed = self._state._replace(
            numbers=self._state.numbers[: self._keys], features=self._state.features[: self._keys]
        )
        return {name: array.copy() for name, array in trimmed._asdict().items()}

    def restore(self, state: dict[str, Any]) -> None:
        families, widths, _ = self._tables.clean.shape
        dims = {"dim": self.dim, "families": families, "widths": widths, "atoms": self._tables.prior.shape[1]}
        arrays = read_arrays(SPECS, state, dims, self)
        require(len(arrays["numbers"]) > 0, self, "no keys")
        squares, travelled = arrays["features"][:, layout.SQUARES], arrays["features"][:, layout.TRAVELLED]
        require((squares >= 0.0).all() and (travelled > 0.0).all(), self, "negative squares of features")
        others = np.delete(arrays["features"], layout.SQUARES, axis=1)
        require((np.abs(others) <= 2.0 * layout.HUGE).all(), self, "features that are too large")
        require((arrays["outliers"].sum(axis=2) < 1.0).all(), self, "shares of outliers whose sum is above 1")
        self._state, self._keys = layout.State(**arrays), len(arrays["numbers"])
