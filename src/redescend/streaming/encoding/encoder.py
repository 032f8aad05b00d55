"""From tables to training data: any table as typed record batches, and these as chunks of X and y with rejections.

The encoding of a record depends on the schema and on the labels before it, not on later records; lagged values are left
NaN.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from redescend.errors import DataError
from redescend.numeric import Array
from redescend.sources import Batch, Kind
from redescend.sources.columnar import convert_rows
from redescend.sources.kinds import infer_type_kind
from redescend.streaming.encoding.features import MAX_NUMBER, Feature, quote_value, reject_out_of_range, to_floats
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.encoding.target import encode_target, find_new_labels

if TYPE_CHECKING:
    from redescend.streaming.keyed.shards import Keys

MAX_CELLS, MAX_KEYED_CELLS = 1 << 17, 1 << 21
"""Maximum matrix cells per chunk: few enough to stay in the cache, or enough for every shard of keys to have some."""

MIN_CHUNK = 64  # records per chunk at least: every chunk loops over all columns


class EncodedChunk(NamedTuple):
    """Usable records: their features, their targets (or NaN), and their indices in the table.

    With one model per key, also the index of each record's key among all names of keys.
    """

    X: Array
    targets: Array
    indices: Array
    keys: Array = np.empty(0, np.int64)
    names: Sequence[str] = ()


class EncodedBatch:
    """An encoded table.

    Columns are analyzed as a whole, which is cheap; the matrix is written a few rows at a time, which stays in the
    cache. The `table` is typed by the kinds of the schema. `target` says whether targets are needed, and `add` whether
    labels are added, if the schema grows. Some records may have been `rejected` before.
    """

    max_cells = MAX_CELLS

    def __init__(
        self, schema: Schema, table: Any, target: bool, *, add: bool = False, rejected: dict[int, str] | None = None
    ) -> None:
        self.rejected: dict[int, str] = rejected or {}  # the reasons of rejected records, by index in the table
        self.new_labels: list[tuple[str, int]] = []
        """Labels to add, each with the index of its first record, which begins a chunk."""
        self._count, self._dim = table.num_rows, schema.dim
        self._numbers: list[tuple[int, Any]] = []
        self._one_hot: list[tuple[int, Array, Array | None]] = []
        self._encode_features(schema, table)
        self._targets = np.full(self._count, np.nan)
        if target:
            column = table.column(schema.target)
            self.new_labels = find_new_labels(schema, column, self.rejected) if add and schema.grows else []
            known = replace(schema, labels=[*schema.labels, *(label for label, _ in self.new_labels)])
            self._targets, without_target = encode_target(known, column)
            # A reason that depends on the labels so far comes last.
            self.rejected = without_target | self.rejected
        self._most = max(MIN_CHUNK, self.max_cells // (schema.dim + 4 * schema.outputs))

    def _encode_features(self, schema: Schema, table: Any) -> None:
        missing_elsewhere: Any = 0.0
        for feature, span in zip(schema.features, schema.spans, strict=True):
            if feature.lag:
                self._numbers += [(place, np.nan) for place in range(span.start, span.stop)]
                continue
            add = self._add_texts if feature.kind is Kind.TEXT else self._add_numbers
            missing = add(feature, table.column(feature.name), span.start)
            if feature.missing:
                self._numbers.append((span.stop - 1, 0.0 if missing is None else missing))
            elif missing is not None:
                missing_elsewhere = np.logical_or(missing_elsewhere, missing)
        if schema.shares_indicator:
            self._numbers.append((schema.dim - 1, missing_elsewhere))

    def _add_numbers(self, feature: Feature, column: Any, first: int) -> Array | None:
        """Add a column of numbers; return which are missing, if any may be."""
        values = to_floats(column)
        self._numbers.append((first, values))
        if feature.how == "date":
            self._numbers += [(first + place, wave) for place, wave in enumerate(feature.waves(values), 1)]
        if len(values) == 0 or (values.min() >= -MAX_NUMBER and values.max() <= MAX_NUMBER):
            return None  # nearly all columns; NaN fails the comparisons
        self.rejected = reject_out_of_range(feature.name, values) | self.rejected
        return np.isnan(values)

    def _add_texts(self, feature: Feature, column: Any, first: int) -> Array | None:
        """Add a column of texts; return which are missing, if any are. Only distinct texts are looked up."""
        encoded = column.dictionary_encode()
        distinct = encoded.dictionary.cast(pa.binary()).to_pylist()
        places = np.append(feature.column_indices(distinct), 0)
        codes = encoded.indices
        present = None if codes.null_count == 0 else codes.is_valid().to_numpy(zero_copy_only=False)
        codes = codes.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
        self._one_hot.append((first, places[codes], present))
        return None if present is None else ~present

    def rows(self, start: int, stop: int) -> Array:
        """Encode the records from `start` up to `stop` as rows, in C order; rows of rejected records are arbitrary.

        NaN is a missing number.
        """
        X = np.zeros((stop - start, self._dim)) if self._one_hot else np.empty((stop - start, self._dim))
        for place, values in self._numbers:
            X[:, place] = values[start:stop] if isinstance(values, np.ndarray) else values
        every = np.arange(len(X))
        for first, places, present in self._one_hot:
            X[every, first + places[start:stop]] = 1.0 if present is None else present[start:stop]
        return X

    def chunks(self) -> Iterator[EncodedChunk]:
        """The usable records, in chunks."""
        usable = np.delete(np.arange(self._count), list(self.rejected))
        starts = {*range(0, self._count, self._most), *(index for _, index in self.new_labels)}
        for start, stop in pairwise([*sorted(starts), self._count]):
            first, last = np.searchsorted(usable, (start, stop))
            if first < last:
                X, indices = self.rows(start, stop), usable[first:last]
                yield EncodedChunk(X if len(indices) == len(X) else X[indices - start], self._targets[indices], indices)


class KeyedBatch(EncodedBatch):
    """An encoded table for one model per key.

    A record without a key is rejected. So is one with an unknown key, unless `add` is set: then the keys of usable
    records are added in order.
    """

    max_cells = MAX_KEYED_CELLS

    def __init__(self, schema: Schema, table: Any, target: bool, keys: Keys, *, add: bool) -> None:
        self._texts, self._keys, self._add = table.column(schema.by), keys, add
        rejected = {}
        if not add:
            for index in np.flatnonzero(keys.indices(self._texts.fill_null("")) < 0).tolist():
                key = quote_value(self._texts[index].as_py())
                rejected[index] = f"the key '{schema.by}': there is no model of {key}"
        if self._texts.null_count:
            missing = np.flatnonzero(self._texts.is_null().to_numpy(zero_copy_only=False))
            rejected |= dict.fromkeys(missing.tolist(), f"the key '{schema.by}' is missing")
        super().__init__(schema, table, target, add=add, rejected=rejected)

    def chunks(self) -> Iterator[EncodedChunk]:
        for chunk in super().chunks():
            keys = self._keys.indices(self._texts.take(pa.array(chunk.indices)), add=self._add)
            yield chunk._replace(keys=keys, names=self._keys.names)


def to_record_batches(schema: Schema, table: Any, target: bool) -> Iterator[Any]:
    """Select the columns that a schema needs from any table, typed by their kinds.

    Lagged features look back at targets, if there are any.
    """
    arrow, row = _to_arrow(table), 0
    target = target or (bool(schema.lagged) and schema.target in arrow.schema.names)
    names = [name for name in schema.columns if target or name != schema.target]
    kinds = {name: schema.kinds[name] for name in names}
    for batch in _select_checked(arrow, names).to_batches():
        piece = convert_rows(batch, kinds, row, lambda index: b"")
        if piece.bad:
            raise DataError(f"Row {row + piece.bad[0].row + 1}: {piece.bad[0].reason}.")
        row += batch.num_rows
        yield piece.table


def _to_arrow(table: Any) -> Any:
    try:
        return pa.table(table.table if isinstance(table, Batch) else table)
    except (pa.ArrowException, TypeError, ValueError) as error:
        reason = ": ".join(str(part) for part in reversed(error.args)).rstrip(".")
        raise DataError(
            f"The table must be a PyArrow table or a pandas or Polars data frame. Got a {type(table).__name__} that "
            f"cannot be converted ({' '.join(reason.split())})."
        ) from None


def _select_checked(table: Any, names: list[str]) -> Any:
    found = table.schema.names
    if lacking := [name for name in names if name not in found]:
        listed = ", ".join(map(repr, lacking[:10])) + (" and more" if len(lacking) > 10 else "")
        raise DataError(f"The table lacks the column{'s' * (len(lacking) > 1)} {listed}, which the model needs.")
    if duplicate := [name for name in names if found.count(name) > 1]:
        raise DataError(f"The table has the column {duplicate[0]!r} more than once.")
    if nested := [name for name in names if infer_type_kind(table.schema.field(name).type) is None]:
        kind = table.schema.field(nested[0]).type
        raise DataError(f"The column {nested[0]!r} of the table has the unsupported type {kind}.")
    return table.select(names)
