"""Records with a number far outside its column: found while a source is read again, and suspects in the final look.

The belief judges the target by the other columns. A 9999 in another column may change the prediction little, and in a
burst of odd records the belief is lenient, because the stream may have changed; a value that is never seen by nature is
wrong all the same.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from redescend.belief import Verdict
from redescend.belief.suspects import HALF
from redescend.numeric import Array
from redescend.sources import Batch, Kind, Source
from redescend.streaming.encoding.features import to_floats
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.encoding.survey import survey_source
from redescend.streaming.far_out import NEVER, Range, find_range
from redescend.streaming.summary.verdict import FarColumn


def find_ranges(source: Source, schema: Schema) -> dict[str, Range]:
    """Estimate the ranges of columns of numbers from a sample from all over the source."""
    table = survey_source(source, schema.target, labels=False).table
    names = [name for name, kind in schema.kinds.items() if kind is Kind.NUMBER and name != schema.by]
    if schema.classifies and schema.target in names:
        names.remove(schema.target)
    found = {name: find_range(to_floats(table.column(name))) for name in names}
    return {name: one for name, one in found.items() if one is not None}


class FarRecords:
    """The rows of far records, how probable they are if they are clean, and their columns."""

    def __init__(self, ranges: Mapping[str, Range] | None = None, records: int = 0) -> None:
        self._ranges = dict(ranges or {})
        self._records = records
        self._parts: list[tuple[Array, Array, Array, Array]] = []

    def add(self, batch: Batch, indices: Array) -> None:
        """Consider the records of a batch at these indices."""
        least, which = np.full(len(indices), np.inf), np.zeros(len(indices), np.int64)
        value = np.zeros(len(indices))
        for place, (name, column) in enumerate(self._ranges.items()):
            values = to_floats(batch.table.column(name))[indices]
            shares = column.share_beyond(values)
            less = shares < least
            least, which, value = (
                np.where(less, shares, least),
                np.where(less, place, which),
                np.where(less, values, value),
            )
        # As many clean records are expected to be as far out in all of the stream.
        far = (least <= NEVER) & (self._records * least <= HALF)
        if far.any():
            self._parts.append((batch.rows[indices[far]], self._records * least[far], which[far], value[far]))

    def _collect(self) -> tuple[Array, Array, Array, Array]:
        """Rows in order, expected numbers, columns and values."""
        rows, expected, which, values = (np.concatenate(parts) for parts in zip(*self._parts, strict=True))
        order = np.argsort(rows, kind="stable")
        return rows[order], expected[order], which[order], values[order]

    def apply(self, rows: Array, verdict: Verdict) -> Verdict:
        """The verdict on records with these rows, of which the far ones are as good as never clean."""
        if not self._parts:
            return verdict
        known, expected, _, _ = self._collect()
        places = np.minimum(np.searchsorted(known, rows), len(known) - 1)
        odds = np.log(np.maximum(expected, np.finfo(float).tiny))[places]
        odds = np.where(known[places] == rows, odds, np.inf)
        return verdict._replace(clean_log_odds=np.minimum(verdict.clean_log_odds, odds))

    def name_columns(self, rows: Array) -> list[str | None]:
        """The column in which each of these records is far out, if it is."""
        if not self._parts:
            return [None] * len(rows)
        known, _, which, _ = self._collect()
        names = dict(zip(known.tolist(), which.tolist(), strict=True))
        columns = list(self._ranges)
        return [columns[names[row]] if row in names else None for row in rows.tolist()]

    def count_columns(self) -> list[FarColumn]:
        """The columns with far records, those with the most first."""
        if not self._parts:
            return []
        rows, _, which, values = self._collect()
        found = []
        for place, name in enumerate(self._ranges):
            own = np.flatnonzero(which == place)
            if len(own):
                found.append(FarColumn(name, len(own), int(rows[own[0]]), float(values[own[0]])))
        return sorted(found, key=lambda one: -one.records)
