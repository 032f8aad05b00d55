"""Belief in records with a numeric target, judged by their residuals."""

from __future__ import annotations

from typing import Any

import numpy as np

from redescend.belief.residual_state import MOST_APART, ResidualState, find_residuals, read_sizes, stretch
from redescend.belief.suspects import HALF, SHARE, select_suspects, to_probability
from redescend.belief.table import (
    FINEST,
    TRUST,
    WIDEST,
    choose_some,
    choose_unit,
    correct_ends,
    count_cells,
    divide,
    fit_effects,
    log_density,
    log_slope,
    to_logarithmic,
)
from redescend.belief.verdicts import Judgements, Verdict, are_natural_runs, final_counts, find_ordinary_runs
from redescend.errors import DataError
from redescend.kernels.belief import layout, rounds
from redescend.kernels.belief.cells import find_quantiles
from redescend.numeric import Array
from redescend.parameters import check


class ResidualBelief(ResidualState):
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
        self._logarithmic = self._ends = None  # those of a whole table
        rows, first = len(records.targets), 0
        log_odds, low, high, scale, stuck = np.empty((5, rows))
        out = layout.Outputs(log_odds, low, high, scale, stuck, np.empty(rows, np.bool_))
        work = np.empty((2, self.dim + 1))
        while first < rows:
            first = rounds.judge_rows(records, first, self._state, self._tables.centers, out, work)
            if self._state.shared[layout.TOTAL] >= self._state.shared[layout.DUE]:
                self._fit_recent()
        return Judgements(*out)

    def learn_table(self, predictions: Any, targets: Any, X: Any = None, sizes: Any = None) -> Judgements:
        """Learn from all records of a table at once, whatever their order.

        All records get the scale that is known in the end, whose dependence on the features is fitted to all of them,
        and the densities are those of all records, not of recent ones. Where clean targets are likelier on a
        logarithmic scale, those below their predictions are judged on that scale as well, and odd if they are on either
        of both: such as a price that lost a digit.

        Parameters
        ----------
        predictions, targets, X
            As in `update`.
        sizes : array of floats, shape (rows,), optional
            Logarithms of the sizes of residuals around each record, which are then the units of its residual. Such a
            belief has no intervals and no final verdict: use `judge`, with `sizes`.

        Returns
        -------
        Judgements
            One entry for each record; `judge_log` gives the verdict on them.
        """
        records = self._read(predictions, targets, X, None)
        local = read_sizes(sizes, len(records.targets))
        judgements, clean, density = self._learn_all(records, local)
        if local is None:
            self._fit_intervals(records, select_suspects(clean, numbers=True))
        self._state.shared[layout.LOG_UNIT] = unit = choose_unit(records.targets)
        if unit != 0.0 and clean.any():
            other, (others, local) = type(self)(self.dim), self._to_logarithms(records, local)
            if np.median(np.abs(find_residuals(others))) >= FINEST:
                _, other_clean, other_density = other._learn_all(others, local)
                gains = other_density + log_slope(records.targets, unit) - density
                self._logarithmic = other if np.dot(clean * other_clean, gains) > 0.0 else None
        return judgements

    def _learn_all(self, records: layout.Records, local: Array | None) -> tuple[Judgements, Array, Array]:
        """Learn from a table; also returns the probability that each record is clean, 0 if it says nothing about the
        noise, and the logarithm of the density of its target if it is clean.
        """
        self._state.shared[layout.MIDDLE] = np.median(local) if local is not None and len(local) else 0.0
        plain, (records, slope) = records, self._localize(records, local)
        judgements = self.update_checked(records)
        self._start_scale()
        state, residuals = self._state, find_residuals(records)
        sizes, usable = self._find_usable(records)
        if not usable.any():
            return judgements, np.zeros(len(sizes)), np.zeros(len(sizes))
        self._fit_effects(records, sizes, choose_some(usable))
        state.numbers[0, [layout.LOWER, layout.HIGHER]] = 0.0
        judgements.scale[:], _, _ = self._find_scales(records)
        ratios = divide(np.copysign(sizes, residuals), judgements.scale)
        state.counts[:] = count_cells(ratios[usable], self._tables.edges)
        state.shared[layout.INCREMENT] = 1.0
        self._fit_recent(layout.FINAL_ITERATIONS)
        clean = to_probability(self._look_up(records, judgements.scale, state.log_odds, self.outlier_share, np.inf))
        signs = np.sign(plain.targets[clean > HALF])
        state.numbers[0, [layout.NEGATIVE, layout.POSITIVE]] = (signs < 0.0).any(), (signs > 0.0).any()
        density = log_density(ratios, judgements.scale, state.clean, state.counts[layout.ALL], self._tables.edges)
        return judgements, np.where(usable, clean, 0.0), density + slope

    def fit_intervals(self, predictions: Any, targets: Any, X: Any, suspects: Array) -> None:
        """Fit intervals of every level to the records of a table that are not suspects.

        `learn_table` leaves out its own suspects; call this after it if others are known. All other records count in
        full, also those that are probably not clean: few of them are wrong, and without them, the intervals would not
        contain the tails of the clean ones.

        Parameters
        ----------
        predictions, targets, X
            The records of `learn_table`.
        suspects : array of ints
            Places of the records that are probably wrong.
        """
        records = self._read(predictions, targets, X, None)
        places = np.asarray(suspects)
        if places.size and not (places.dtype.kind in "iu" and np.all((places >= 0) & (places < len(records.targets)))):
            raise DataError(f"suspects must be places of records, ints from 0 to {len(records.targets) - 1}.")
        self._fit_intervals(records, places.astype(np.int64))

    def _fit_intervals(self, records: layout.Records, suspects: Array) -> None:
        numbers, shared = self._state.numbers[0], self._state.shared
        if len(np.unique(suspects)) == len(records.targets):
            return  # there is nothing to fit them to
        numbers[[layout.LOWER, layout.HIGHER]] = 0.0
        ratios = np.delete(divide(find_residuals(records), self._find_scales(records)[1]), suspects)
        if numbers[layout.UNIT] > 0.0:
            ends = correct_ends(ratios, shared[[layout.BELOW, layout.ABOVE]], 0.5 * (1.0 - layout.LEVEL))
            numbers[[layout.LOWER, layout.HIGHER]] = ends
            self._ends = count_cells(ratios * np.exp(-ends)[(ratios > 0.0).astype(np.int64)], self._tables.edges)

    def _start_scale(self) -> None:
        """Where all targets were predicted exactly, take the smallest size that is told apart for the scale."""
        numbers, size = self._state.numbers[0], self._smallest_sizes()[0]
        if numbers[layout.UNIT] == 0.0 and size > 0.0:
            numbers[layout.UNIT] = size
            numbers[[layout.STEADY, layout.ADJUSTED, layout.QUICK]] = 0.0

    def _localize(self, records: layout.Records, sizes: Array | None) -> tuple[layout.Records, Array | float]:
        """Records with residuals in units of those around them, and the logarithm of the factor of each residual."""
        slope = self._find_slope(sizes)
        return records if sizes is None else stretch(records, np.exp(slope)), slope

    def _find_slope(self, sizes: Array | None) -> Array | float:
        return 0.0 if sizes is None else np.clip(self._state.shared[layout.MIDDLE] - sizes, -MOST_APART, MOST_APART)

    def _to_logarithms(self, records: layout.Records, sizes: Array | None) -> tuple[layout.Records, Array | None]:
        """Records on the logarithmic scale, with the sizes of residuals around them on that scale.

        Residuals that are not told apart are not on this scale either.
        """
        slope = self._find_slope(sizes)
        unit, largest = float(self._state.shared[layout.LOG_UNIT]), np.finfo(float).max
        residuals = find_residuals(records)
        with np.errstate(over="ignore"):
            apart = np.maximum(np.abs(residuals), self._smallest_sizes()[0] * np.exp(-slope))
            targets = np.clip(records.predictions + np.copysign(apart, residuals), -largest, largest)
        around = None if sizes is None else sizes + log_slope(records.predictions, unit)
        predictions, targets = (to_logarithmic(values, unit) for values in (records.predictions, targets))
        places = np.zeros_like(records.places)  # all keys share this scale
        return layout.Records(records.X, predictions, targets, places), around

    def _judge_logarithms(self, records: layout.Records, sizes: Array | None) -> Array | float:
        """The log-odds of records on the logarithmic scale; infinite where they are not judged on it."""
        if self._logarithmic is None:
            return np.inf
        other, (logarithms, sizes) = self._logarithmic, self._to_logarithms(records, sizes)
        local, _ = other._localize(logarithms, sizes)
        log_odds = other._residual_log_odds(local, other._find_scales(local)[0], other._state.log_odds)
        judged = (logarithms.targets < logarithms.predictions) & (records.targets != 0.0)
        return np.where(judged, log_odds, np.inf)

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

    def judge(self, predictions: Any, targets: Any, X: Any = None, keys: Any = None, sizes: Any = None) -> Array:
        """The log-odds that each record is clean, by all that was learned so far; nothing is learned."""
        records = self._read(predictions, targets, X, keys, known=True)
        local = read_sizes(sizes, len(records.targets))
        return self._judge(self._localize(records, local)[0], self._judge_logarithms(records, local))

    def judge_checked(self, records: layout.Records) -> Array:
        """The same for records that were checked."""
        return self._judge(records, self._judge_logarithms(records, None))

    def _judge(self, records: layout.Records, logarithmic: Array | float) -> Array:
        scales, _, _ = self._find_scales(records)
        return self._look_up(records, scales, self._state.log_odds, self.outlier_share, logarithmic)

    def judge_log(
        self, predictions: Any, targets: Any, judgements: Judgements, keys: Any = None, X: Any = None
    ) -> Verdict:
        """The final verdict, by all that is known now, on records that were given to `update` or `learn_table` before.

        After `learn_table`, records are judged on a logarithmic scale only if their features `X` are given.
        """
        features = np.empty((len(predictions), self.dim)) if X is None else X
        records = self._read(predictions, targets, features, keys, known=True)
        scale, stuck = (np.array(part, np.float64) for part in (judgements.scale, judgements.stuck))
        if scale.shape != records.targets.shape or stuck.shape != scale.shape:
            raise DataError(f"judgements must have one entry for each of the {len(scale)} targets.")
        fitted = layout.Densities(*(array.copy() for array in self._state[4:]))
        counts = final_counts(self._state.counts, self._state.shared[layout.INCREMENT])
        outliers, _ = self._fit(counts, layout.FINAL_ITERATIONS, fitted)
        # The first scales were found before it was known that targets are rounded, and how much they differ.
        scale = np.maximum(scale, self._smallest_sizes()[records.places])
        logarithmic = np.inf if X is None and self.dim else self._judge_logarithms(records, None)
        log_odds = self._look_up(records, scale, fitted.log_odds, outliers, logarithmic)
        # What is said of several records in a row is said of those of one key.
        order = np.argsort(records.places, kind="stable")
        changes = np.diff(records.places[order], prepend=-1) != 0
        stuck[order[find_ordinary_runs(records.targets[order], changes, stuck[order] > HALF)]] = 0.0
        if are_natural_runs(records.targets, stuck > HALF, log_odds < 0.0):
            stuck[:] = 0.0
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
        level = check("predict_interval", "level", level, SHARE)
        records = self._read(predictions, predictions, X, keys, known=True)
        _, lower, higher = self._find_scales(records)
        clean, counts = self._state.clean, self._state.counts[layout.RECENT]
        if self._ends is not None:
            clean, counts = self._ends / np.maximum(self._ends.sum(axis=1, keepdims=True), 1.0), self._ends
        below, above = find_quantiles(clean, counts, self._tables.edges, level)
        # Residuals that are not told apart from 0 have no sign.
        smallest = self._smallest_sizes()[records.places]
        low = records.predictions - np.maximum(below * lower, smallest)
        high = records.predictions + np.maximum(above * higher, smallest)
        rounds.limit_to_signs(low, high, records.places, self._state)
        return low, high

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

    def _look_up(
        self, records: layout.Records, scales: Array, log_odds: Array, outliers: float, logarithmic: Array | float
    ) -> Array:
        """The log-odds of records: the lesser of those by their residuals and on the logarithmic scale."""
        out = np.minimum(self._residual_log_odds(records, scales, log_odds), logarithmic)
        rounds.excuse_points(records, self._state, outliers, out)
        return out

    def _residual_log_odds(self, records: layout.Records, scales: Array, log_odds: Array) -> Array:
        """The log-odds of records by their residuals, from a table by sign and cell."""
        out, largest = np.empty(len(records.targets)), np.finfo(float).max
        rounds.look_up(find_residuals(records), np.minimum(scales, largest), log_odds, self._tables.centers, out)
        return out
