"""Comma-separated values and their kin, parsed by PyArrow."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from redescend.numeric import Array
from redescend.sources.conversion import CONVERT, outside_calendar
from redescend.sources.kinds import A_VALUE, FALSE, LOOKS_LIKE, MISSING_SPELLINGS, TRUE, TYPES, ZONED, Kind
from redescend.sources.splitter import LONGEST, Grammar
from redescend.sources.words import shown

BOM = b"\xef\xbb\xbf"


class DelimitedParser:
    """Reads some columns of a delimited file.

    Parameters
    ----------
    names
        All columns of the file, in order.
    types
        Those that are asked for, at least one, each with the type that it is read as.
    delimiter
        What a field ends with.
    longest
        The bytes of the longest record.
    """

    def __init__(
        self, names: Sequence[str], types: Mapping[str, pa.DataType], delimiter: str, longest: int = LONGEST
    ) -> None:
        self.names = list(names)
        self.types = dict(types)
        self.delimiter = delimiter
        self.grammar = Grammar.delimited(delimiter, longest)

    def empty(self) -> pa.RecordBatch:
        return kept(pa.schema(list(self.types.items())).empty_table())

    def parse(self, data: bytes) -> pa.RecordBatch | None:
        try:
            table = kept(self._table(data, self.types))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        return None if any(len(outside_calendar(values)) for values in table.columns) else table

    def doubtful(self, records: list[bytes]) -> Array:
        counts = self.grammar.bounds(np.frombuffer(b"\n".join(records), np.uint8))[0][:, 2]
        doubt = counts != len(self.names)
        even = b"\n".join(record for record, ragged in zip(records, doubt, strict=True) if not ragged) + b"\n"
        table = self._table(even, dict.fromkeys(self.types, pa.binary()))
        unlike = np.zeros(table.num_rows, bool)
        for values, wanted in zip(table.columns, self.types.values(), strict=True):
            unlike |= _unlike(values.combine_chunks(), wanted)
        doubt[~doubt] = unlike
        return doubt

    def single(self, record: bytes) -> pa.RecordBatch | str:
        count = int(self.grammar.bounds(np.frombuffer(record, np.uint8))[0][0, 2])
        if count != len(self.names):
            return f"{count} value{'s'[: count > 1]} where the header has {len(self.names)}"
        values = dict(zip(self.names, self.fields(record), strict=True))
        suspects = [name for name in self.types if not looks_like(values[name], kind_of_type(self.types[name]))]
        columns = self._columns(suspects, record, values)
        if isinstance(columns, str):
            return columns
        table = self.parse(record + b"\n")
        if table is not None:
            return table
        columns = self._columns(list(self.types), record, values)
        return columns if isinstance(columns, str) else pa.RecordBatch.from_arrays(columns, names=list(self.types))

    def _columns(self, names: list[str], record: bytes, values: Mapping[str, bytes]) -> list[pa.Array] | str:
        """Some columns of a record, each parsed alone, or what is wrong with the first that cannot be."""
        columns = []
        for name in names:
            found = self._column(name, record, values[name])
            if isinstance(found, str):
                return f"column {name!r}: {found}"
            columns.append(found)
        return columns

    def _column(self, name: str, record: bytes, value: bytes) -> pa.Array | str:
        """One value of a record, or what is wrong with it; dates with a zone and without may be mixed."""
        wanted = self.types[name]
        column = self._alone[name].parse(record + b"\n")
        if column is not None:
            return column.column(0)
        kind = kind_of_type(wanted)
        try:
            text = value.decode()
            if kind is Kind.DATE:
                date = pa.array([CONVERT[kind](text)], TYPES[kind])
                return f"{shown(text)} is not {A_VALUE[kind]}" if len(outside_calendar(date)) else date
        except UnicodeDecodeError as error:
            return f"invalid UTF-8 at byte {error.start + 1} of {shown(value)}"
        except pa.ArrowInvalid:
            pass
        return f"{shown(text)} is not {A_VALUE[kind]}"

    @functools.cached_property
    def _alone(self) -> dict[str, DelimitedParser]:
        return {name: DelimitedParser(self.names, {name: self.types[name]}, self.delimiter) for name in self.types}

    def fields(self, record: bytes) -> list[bytes]:
        """The values of one record."""
        if b'"' not in record:
            return record.split(self.delimiter.encode())
        most = record.count(self.delimiter.encode()) + 1
        options = pa.csv.ReadOptions(use_threads=False, block_size=len(record) + 2, autogenerate_column_names=True)
        convert = pa.csv.ConvertOptions(column_types={f"f{number}": pa.binary() for number in range(most)})
        table = pa.csv.read_csv(pa.BufferReader(_unmarked(record) + b"\n"), options, self._dialect(), convert)
        return [column[0].as_py() for column in table.columns]

    def _table(self, data: bytes, types: Mapping[str, pa.DataType]) -> pa.Table:
        return pa.csv.read_csv(
            pa.BufferReader(_unmarked(data)),
            pa.csv.ReadOptions(use_threads=False, block_size=len(data) + 2, column_names=self.names),
            self._dialect(),
            self._convert if types is self.types else _conversion(types),
        )

    @functools.cached_property
    def _convert(self) -> pa.csv.ConvertOptions:
        return _conversion(self.types)

    def _dialect(self) -> pa.csv.ParseOptions:
        return pa.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)


def _conversion(types: Mapping[str, pa.DataType]) -> pa.csv.ConvertOptions:
    return pa.csv.ConvertOptions(
        column_types=types,
        include_columns=list(types),
        strings_can_be_null=True,
        null_values=MISSING_SPELLINGS,
        true_values=[*TRUE, "1"],
        false_values=[*FALSE, "0"],
        timestamp_parsers=[pa.csv.ISO8601],
    )


def kept(table: pa.Table) -> pa.RecordBatch:
    """A table in one piece, with dates in UTC."""
    arrays = [column.combine_chunks() for column in table.columns]
    arrays = [values.cast(TYPES[Kind.DATE]) if values.type == ZONED else values for values in arrays]
    return pa.RecordBatch.from_arrays(arrays, names=table.column_names)


def kind_of_type(type: pa.DataType) -> Kind:
    return Kind.DATE if pa.types.is_timestamp(type) else next(kind for kind, kept in TYPES.items() if kept == type)


def _unmarked(data: bytes) -> bytes:
    """The same records; PyArrow would take a byte order mark at the beginning, which is theirs, for its own."""
    return b"\n" + data if data.startswith(BOM) else data


def _unlike(values: pa.Array, wanted: pa.DataType) -> Array:
    """Which values do not look like the type."""
    kind = kind_of_type(wanted)
    if kind is Kind.TEXT:
        return np.array([value is not None and not looks_like(value, kind) for value in values.to_pylist()], bool)
    there = pc.fill_null(pc.match_substring_regex(values, LOOKS_LIKE[kind]), True)
    return ~there.to_numpy(zero_copy_only=False)


def looks_like(value: bytes, kind: Kind) -> bool:
    """Whether a value is likely to be of a kind."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return False
    return kind is Kind.TEXT or text in MISSING_SPELLINGS or re.match(LOOKS_LIKE[kind], text) is not None
