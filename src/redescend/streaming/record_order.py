"""Orders of the records of a table: by content, by time, and whether following one of them makes errors smaller.

A model that learns from records one after the other adapts to the recent ones. In time order it follows changes; in a
table that is sorted by a feature or grouped by a text, it merely adapts to similar records. So an order carries
information of its own only if following the order of a column, with ties in an order that the contents decide, does not
make errors as small.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from redescend.numeric import Array, hash_records, number_copies
from redescend.sources import Kind
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.encoding.survey import come_in_long_runs

SMALLER, SIGMAS = 0.8, 3.0
"""Following an order pays if the typical error is at most this share of the other's, and if more records have a smaller
error than a larger one, by this number of standard deviations of chance."""

AS_SMALL = 0.9
"""A column explains an order if following the column reduces errors by at least this share, as a logarithm."""

ALIKE, MOST_COLUMNS = 0.5, 3
"""Neighbours in a table that is ordered by a column differ at most by this share of what they would in random order;
and the number of such columns that are tried."""

CALENDAR = (("year", "yr"), ("month", "mon"), ("day", "mday"), ("hour", "hr"), ("minute", "min"), ("second", "sec"))
"""Names of columns of numbers that are a time together, the coarsest first."""

TIMES = ("date", "time", "datetime", "timestamp", "epoch")
"""Names of columns of numbers that are a time, if most of their values are different."""

MOST_TIMES = 3  # times that are tried

DISTINCT = 0.9
"""The share of different values in such a column, at least."""

ONE_WAY = 0.8
"""The share of steps in one direction that makes a target sorted within groups."""


def order_by_content(X: Array, targets: Array) -> Array:
    """An order of records that looks random, and is the same in whatever order they are."""
    return np.lexsort((targets, number_copies(hash_records(X, targets))))


def find_times(schema: Schema, X: Array) -> list[list[Array]]:
    """The times of encoded records `X`, each as one or more columns, the coarsest first; at most `MOST_TIMES`.

    A time is a column of dates, a number named like one, or numbers named year, month, day and so on.
    """

    def is_time(name: str, kind: Kind, place: int) -> bool:
        if kind is Kind.NUMBER and name in TIMES:
            return len(np.unique(X[:, place])) >= DISTINCT * len(X)
        return kind is Kind.DATE

    places = {
        feature.name.strip().lower(): (feature.kind, span.start)
        for feature, span in zip(schema.features, schema.spans, strict=True)
        if not feature.lag
    }
    found = [[X[:, place]] for name, (kind, place) in places.items() if is_time(name, kind, place)]
    numbers = {name: place for name, (kind, place) in places.items() if kind is Kind.NUMBER}
    parts = [next((numbers[name] for name in names if name in numbers), None) for names in CALENDAR]
    # A year alone does not tell enough records apart, and a month or an hour alone comes again.
    if parts[1] is not None and (parts[0] is not None or parts[2] is not None):
        found.append([X[:, place] for place in parts if place is not None])
    return found[:MOST_TIMES]


def order_by(columns: list[Array], by_content: Array) -> Array:
    """The order by these columns, the coarsest first, with ties in the order `by_content`; missing values are last."""
    return by_content[np.lexsort([column[by_content] for column in reversed(columns)])]


def has_time_order(targets: Array, labels: bool = False) -> bool:
    """Whether the order of records may be that of time: targets are not sorted, nor within groups; equal labels are not
    together.

    >>> groups = np.tile(np.arange(30), 20)
    >>> has_time_order(groups), has_time_order(np.sin(groups))
    (False, True)
    >>> has_time_order(np.repeat([0, 1, 2], 200), labels=True), has_time_order(groups, labels=True)
    (False, True)
    """
    if labels:
        codes = np.unique(targets, return_inverse=True)[1]
        # Where a label is rare, the others are together in any order.
        return _compare_neighbours(codes, True) > ALIKE or not come_in_long_runs(codes)
    steps = np.diff(targets)
    rises, falls = int(np.count_nonzero(steps > 0)), int(np.count_nonzero(steps < 0))
    return max(rises, falls) < ONE_WAY * max(rises + falls, 1)


def pays(errors: Array, others: Array) -> bool:
    """Whether errors are clearly smaller than others of the same records, in the same order.

    >>> random = np.random.default_rng(0)
    >>> small, large = random.normal(size=1000), 2.0 * random.normal(size=1000)
    >>> pays(small, large), pays(large, small), pays(small, 0.9 * large), pays(small[:20], large[:20])
    (True, False, True, False)
    """
    errors, others = np.abs(errors), np.abs(others)
    more = np.count_nonzero(errors < others) - np.count_nonzero(errors > others)
    smaller = measure_error(errors) < SMALLER * measure_error(others)
    return bool(smaller and more > SIGMAS * np.sqrt(len(errors)))


def measure_error(errors: Array) -> float:
    """The typical error: the median of numbers, the share of wrong labels."""
    if not len(errors):
        return 0.0
    return float(np.mean(errors) if errors.dtype == bool else np.median(np.abs(errors)))


def sort_orders(schema: Schema, X: Array, by_content: Array) -> Iterator[Array]:
    """The orders by features by which encoded records may be sorted or grouped, the most likely first.

    Dates are not considered. Ties are in the order `by_content`.
    """
    found: list[tuple[float, int, Array]] = []
    for place, (feature, span) in enumerate(zip(schema.features, schema.spans, strict=True)):
        if feature.lag or feature.kind is Kind.DATE:
            continue
        column = np.nan_to_num(X[:, span.start])
        if feature.kind is Kind.TEXT:
            column = np.argmax(X[:, span], axis=1).astype(float)
        ratio = _compare_neighbours(column, feature.kind is Kind.TEXT)
        if ratio <= ALIKE:
            found.append((ratio, place, column))
    return (order_by([column], by_content) for _, _, column in sorted(found, key=lambda one: one[:2])[:MOST_COLUMNS])


def _compare_neighbours(values: Array, labels: bool) -> float:
    """How much neighbours differ, relative to a random order; labels differ or not, numbers by their ranks."""
    _, ranks, counts = np.unique(values, return_inverse=True, return_counts=True)
    if len(counts) < 2:
        return 1.0
    shares = counts / len(values)
    if labels:
        return float(np.mean(np.diff(ranks) != 0) / (1.0 - np.square(shares).sum()))
    below = np.cumsum(shares)
    middles = (below - 0.5 * shares)[ranks]
    # The mean difference of two random values of this distribution.
    expected = 2.0 * float((shares * (below - 0.5 * shares) * (2.0 * below - shares - 1.0)).sum())
    return float(np.abs(np.diff(middles)).mean() / expected) if expected > 0.0 else 1.0


def explains(others: Array, errors: Array, plain: Array) -> bool:
    """Whether the errors of a model that follows a column, `others`, are nearly as small as those of one that follows
    the order of the records, `errors`; `plain` are those of a model that follows neither.
    """
    tiny = np.finfo(float).tiny
    other, own, none = (np.log(max(measure_error(np.abs(one)), tiny)) for one in (others, errors, plain))
    return bool(none - other >= AS_SMALL * (none - own))
