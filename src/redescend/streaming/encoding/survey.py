"""A survey of a source before the run: a sample, the labels of its target, and whether it is sorted.

A source that can be read again is sampled all over, and all labels of its target are read: the first records of a
sorted table have only some of them. Of a pipe, only the first records are known.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.lib.stride_tricks import sliding_window_view

from redescend.errors import DataError
from redescend.sources import Batch, Kind, Source
from redescend.sources.kinds import SAMPLE
from redescend.sources.text import INVALID_UTF8
from redescend.streaming.encoding.target import MAX_LABELS
from redescend.streaming.report.formatting import format_first

ORDERED = 0.98  # the share of records that must not be below the one before, for them to be in order
MOST_UNREADABLE = 0.1  # the largest share of records with invalid UTF-8 in a file that is read nevertheless
RUN = 20  # a table whose labels come in runs that are longer than this on average is sorted by them

SHUFFLES, GROUP = 9_999, 500
"""The number of random permutations of the test for order, and how many are drawn at a time. An order that beats all of
them is due to chance with a probability of at most 1 in 10,000."""

BALANCE = 4  # the least ratio of rises to falls, or of falls to rises, in sorted values
WINDOW = 9  # the window of the running median, or of the most frequent label: a few wrong records do not hide an order


@dataclass(frozen=True)
class Survey:
    """The first records of a source, a sample from all over it, and all labels of its target; None if unknown.

    Of a `stream`, only the first records are known.
    """

    first: Batch
    spread: pa.RecordBatch | None = None
    labels: Any = None
    stream: bool = True

    @property
    def table(self) -> pa.RecordBatch:
        """The sample from all over the source, or the first records if they are all that is known."""
        return self.first.table if self.spread is None else self.spread


def survey_source(source: Source, target: str, labels: bool = True) -> Survey:
    """Sample a source and, if its target may be a label, read all its `labels`."""
    sample = source.sample
    _check_encoding(source.name, sample)
    if not source.can_reread or sample.count < SAMPLE or not len(sample.rows):
        # A pipe with fewer records than a sample has ended, so that all of it is known.
        return Survey(sample, stream=not source.can_reread and sample.count >= SAMPLE)
    spread = source.spread
    if not labels or target not in source.kinds or not _may_be_label(source.kinds[target], spread.column(target)):
        return Survey(sample, spread, stream=False)
    distinct = pc.unique(spread.column(target))
    with closing(source.batches([target], in_order=True)) as batches:
        for batch in batches:
            distinct = pc.unique(pa.concat_arrays([distinct, batch.table.column(target)]))
            if len(distinct) > 2 * MAX_LABELS:
                break
    return Survey(sample, spread, distinct, stream=False)


def _check_encoding(name: str, sample: Batch) -> None:
    """Raise if a file is probably in another encoding than UTF-8: most of its records would be lost."""
    bad = [record for record in sample.bad if INVALID_UTF8 in record.reason]
    if len(bad) > MOST_UNREADABLE * sample.count:
        raise DataError(
            f"{name} is not UTF-8: {len(bad):,} of {format_first(sample.count)} have other bytes, such as row "
            f"{bad[0].row}. Name its encoding, such as windows-1252 (Western European files of Windows), with the "
            "option --encoding, or the parameter encoding of open_source."
        )


def _may_be_label(kind: Kind, column: Any) -> bool:
    if kind is Kind.TEXT:
        return True
    return kind is Kind.NUMBER and len(pc.unique(column.drop_null())) <= 2


def is_in_time(table: pa.RecordBatch) -> bool:
    """Whether a column of dates grows, or falls, from record to record, apart from a few.

    >>> from datetime import datetime
    >>> days = [datetime(2024, 1, 1 + day) for day in range(20)]
    >>> [is_in_time(pa.record_batch({"day": order})) for order in (days, days[::3] + days[::4])]
    [True, False]
    """
    dates = (column for column in table.columns if pa.types.is_timestamp(column.type))
    return any(_is_ordered(column.drop_null().cast(pa.int64()).to_numpy()) for column in dates)


def is_sorted(table: pa.RecordBatch, target: str, classifies: bool) -> bool:
    """Whether records are sorted by their target: by a number, or with equal labels together, apart from errors.

    Records in random order are called sorted with a probability of at most 1 in 10,000, whatever their target is.

    >>> [is_sorted(pa.record_batch({"y": y}), "y", True) for y in (["a"] * 100 + ["b"] * 100, ["a", "b"] * 100)]
    [True, False]
    """
    values = table.column(target).drop_null()
    if classifies:
        codes = values.dictionary_encode().indices.to_numpy()
        return come_in_long_runs(codes) and _beats_chance(codes, True)
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    numbers = values.cast(pa.float64(), safe=False).to_numpy()
    if len(numbers) < WINDOW:
        return False
    if not _is_ordered(np.median(sliding_window_view(numbers, WINDOW), axis=1)):
        return False
    return _beats_chance(np.unique(numbers, return_inverse=True)[1], False)


def come_in_long_runs(codes: Any) -> bool:
    """Whether labels, as numbers from 0 on, come in long runs, apart from errors.

    >>> examples = [0] * 99 + [1] + [0] * 99 + [1] * 100, [0, 1] * 100, [0] * 100
    >>> [come_in_long_runs(np.array(codes)) for codes in examples]
    [True, False, False]
    """
    labels = len(np.unique(codes))
    runs = 1 + int(np.count_nonzero(np.diff(_smooth_labels(codes))))
    return labels > 1 and len(codes) > RUN * max(runs, labels)


def _beats_chance(ranks: Any, labels: bool) -> bool:
    """Whether neighbours are more alike than in all of many random permutations of the same values.

    Neighbouring `labels` are alike if they are equal, other values by their distance. Under a random order, all
    permutations are equally probable, so the given order beats them all with a probability of 1 / (1 + SHUFFLES).
    """
    random, ranks = np.random.default_rng(0), np.asarray(ranks, np.int32)

    def disorder(orders: Any) -> Any:
        return np.count_nonzero(np.diff(orders), axis=-1) if labels else np.abs(np.diff(orders)).sum(axis=-1)

    given = disorder(ranks)
    for done in range(0, SHUFFLES, GROUP):
        orders = np.tile(ranks, (min(GROUP, SHUFFLES - done), 1))
        if (disorder(random.permuted(orders, axis=1, out=orders)) <= given).any():
            return False
    return True


def _smooth_labels(codes: Any) -> Any:
    """The most frequent label in every window of records; unchanged if there are fewer records than a window."""
    if len(codes) < WINDOW:
        return codes
    most, smooth = np.zeros(len(codes) - WINDOW + 1, np.int64), np.zeros(len(codes) - WINDOW + 1, np.int64)
    for label in np.unique(codes):
        total = np.concatenate([[0], np.cumsum(codes == label)])
        counts = total[WINDOW:] - total[:-WINDOW]
        smooth[counts > most] = label
        most = np.maximum(most, counts)
    return smooth


def _is_ordered(values: Any) -> bool:
    steps = np.diff(values)
    fewer, more = sorted((np.count_nonzero(steps > 0), np.count_nonzero(steps < 0)))
    # Where most values are equal, few steps are rises or falls, in any order.
    return bool(more > 0 and fewer <= (1.0 - ORDERED) * len(steps) and BALANCE * fewer <= more)
