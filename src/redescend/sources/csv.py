"""CSV files and other delimited text, parsed by PyArrow."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from redescend.errors import DataError, quote
from redescend.numeric import Array
from redescend.sources.formats import Columns, check_blank, check_names, read_sample
from redescend.sources.kinds import (
    DESCRIPTIONS,
    FALSE,
    MISSING_SPELLINGS,
    PATTERNS,
    TRUE,
    TYPES,
    ZONED,
    Kind,
    convert_value,
    find_outside_calendar,
    has_time_zones,
    infer_text_kind,
)
from redescend.sources.notations import Notation, infer_notations, may_be_numbers
from redescend.sources.readers import Text
from redescend.sources.splitter import Grammar, split
from redescend.sources.text import BOM, INVALID_UTF8, Head, TextFile
from redescend.sources.titles import Header, find_header

OTHER_DELIMITERS = ("\t", ";", "|")


SEPARATOR_LINE = re.compile(rb'"?sep=([,;|\t])"?[\r\n]+')
"""A line ahead of the header, such as sep=; with which Excel is told the delimiter."""

LINE_ENDS = b"\r\n"


class CsvFile(TextFile):
    """A CSV file: the first line determines the delimiter, the header names the columns."""

    format = "csv"
    suffixes: ClassVar[tuple[str, ...]] = ("csv",)
    delimiter: ClassVar[str | None] = None
    zoned: frozenset[str] = frozenset()

    def read_preamble(self, text: Text) -> Head:
        line = _read_first_line(text, self.options.longest)
        if text.damage is not None:
            raise DataError(f"The header of {self.name} cannot be read: {text.damage}.")
        begin = len(BOM) if line.startswith(BOM) else 0
        declared = SEPARATOR_LINE.match(line, begin)
        begin = begin if declared is None else declared.end()
        delimiter = self.delimiter or (_detect_delimiter(line[begin:]) if declared is None else declared[1].decode())
        grammar = Grammar(ord(delimiter), ord('"'), ord("\r"), self.options.longest)
        text.push_back(line[begin:])
        size, names, header = self._read_first_record(text, grammar)
        return Head(begin + size, grammar, names, header)

    def _read_first_record(self, text: Text, grammar: Grammar) -> tuple[int, list[str], bytes]:
        """Where the records begin, the columns, and the header, empty if there is none; what follows is read again."""
        data = b""

        def read() -> bytes:
            nonlocal data
            block = text.read()
            data += block
            return block

        for chunk in split(read, grammar, 0, lambda: text.damage):
            if chunk.reason is not None:
                raise DataError(f"The header of {self.name} cannot be read: {chunk.reason}.")
            bounds, _, _ = grammar.bounds(np.frombuffer(chunk.data, np.uint8))
            if len(bounds):
                low, high, _ = bounds[0].tolist()
                first = chunk.data[low:high]
                is_header, names = self._name_columns(CsvParser([], {}, grammar).fields(first))
                size = chunk.offset + high if is_header else 0
                text.push_back(data[size:])
                return size, names, first if is_header else b""
        raise DataError(f"{self.name} is empty.")

    def _name_columns(self, values: list[bytes]) -> tuple[bool, list[str]]:
        """Whether the first record is a header, and the columns."""
        if not self.options.header:
            return False, [f"column{number}" for number in range(1, len(values) + 1)]
        columns = self.options.columns
        try:
            names = _clean_names([value.decode() for value in values])
        except UnicodeDecodeError:
            if columns is not None:
                return False, list(columns)
            raise DataError(
                f"The header of {self.name} is not UTF-8; name the encoding of the file, such as windows-1252, with "
                "the option --encoding, or the parameter encoding of open_source."
            ) from None
        return (True, names) if columns is None or names == list(columns) else (False, list(columns))

    def infer_columns(self, files: Sequence[Self]) -> Columns:
        # Read first: the header comes with it.
        _ = self.sample
        names = self.names or []
        check_names(self.name, names)
        self._check_for_title(names)
        table = read_sample(files, dict.fromkeys(names, Kind.TEXT)).table
        zoned = frozenset(name for name in names if has_time_zones(table.column(name)))
        # Files are separated by semicolons where the comma is the decimal mark.
        likely = "," if self.head.grammar.delimiter == ord(";") else None
        texts = {name: table.column(name) for name in names}
        forms = infer_notations(texts, self.options.decimal, likely, self.options.forms)
        for file in files:
            file.zoned, file.forms = zoned, forms
        kinds = {name: infer_text_kind(column) for name, column in texts.items()}
        # A form is used if its kind is that of the column, so that a known number may have a unit in a single record.
        sure = {name: form for name, form in forms.items() if not form.unit or may_be_numbers(texts[name])}
        return kinds | {name: form.kind for name, form in sure.items()}, {}

    def _check_for_title(self, names: Sequence[str]) -> None:
        """Raise an error if the first line is a title: a single value above a header that has several."""
        if len(names) > 1 or not self.head.header:
            return
        own = chr(self.head.grammar.delimiter)
        # The comma is a guess if the first line has no delimiter.
        others = () if self.delimiter or own != "," else OTHER_DELIMITERS
        found = {delimiter: self._find_header(delimiter) for delimiter in (own, *others)}
        # Texts contain the delimiter of the file in quotes only, but may contain others.
        header = next((one for one in found.values() if one is not None and one.certain), found[own])
        if header is not None:
            quotes = "" if header.certain else f", or write values that contain {quote(own)} in quotes"
            raise DataError(
                f"{self.name} begins with a line of one value, {quote(names[0])}, but {header.records:,} of the first "
                f"{header.total:,} records have {header.values}. Remove the lines above the header, which must be "
                f"first{quotes}."
            )

    def _find_header(self, delimiter: str) -> Header | None:
        """Find a header below the first line, if this is the delimiter."""
        parser = CsvParser([], {}, replace(self.head.grammar, delimiter=ord(delimiter)))
        counts, records = list[int](), list[bytes]()
        for chunk in self.sample:
            if chunk.reason is None:
                bounds = parser.grammar.bounds(np.frombuffer(chunk.data, np.uint8))[0].tolist()
                counts += [count for *_, count in bounds]
                records += [chunk.data[low:high] for low, high, _ in bounds]
        return find_header(
            counts, lambda place: [value.decode(errors="replace") for value in parser.fields(records[place])]
        )

    def parser(self, kinds: Mapping[str, Kind]) -> CsvParser:
        return CsvParser(self.names or [], kinds, self.head.grammar, self.zoned, self.forms, self.head.header)


class TsvFile(CsvFile):
    """A file of tab-separated values."""

    format = "tsv"
    suffixes = ("tsv", "tab")
    delimiter = "\t"


def _clean_names(names: list[str]) -> list[str]:
    """Name columns without a name, such as the row names of R and pandas, and remove blanks around names.

    >>> _clean_names(["", " size ", "price"])
    ['unnamed 1', 'size', 'price']
    """
    stripped = [name.strip() or f"unnamed {number}" for number, name in enumerate(names, 1)]
    return stripped if len(set(stripped)) == len(stripped) else names


def _read_first_line(text: Text, longest: int) -> bytes:
    """Read until a line that is not empty has ended, or is too long; raises if too many empty lines come first."""
    data = b""
    while block := text.read():
        data += block
        line = data.lstrip(b"\r\n")
        check_blank(text.name, len(data) - len(line))
        if b"\n" in line or b"\r" in line or len(line) > longest:
            break
    return data


def _detect_delimiter(text: bytes) -> str:
    """The comma if there is one in the first line, else the most frequent of the others."""
    line = text.lstrip(b"\r\n").split(b"\n")[0].split(b"\r")[0]
    best = max(OTHER_DELIMITERS, key=lambda other: line.count(other.encode()))
    return best if b"," not in line and best.encode() in line else ","


class CsvParser:
    """Parses some columns of delimited text: `names` are all columns of the file, `kinds` those to read.

    Dates of `zoned` columns usually name their time zone. A record that equals the `header` is bad, as where files were
    joined.
    """

    def __init__(
        self,
        names: Sequence[str],
        kinds: Mapping[str, Kind],
        grammar: Grammar,
        zoned: frozenset[str] = frozenset(),
        forms: Mapping[str, Notation] = MappingProxyType({}),
        header: bytes = b"",
    ) -> None:
        self.names = names if isinstance(names, list) else list(names)
        self.kinds = dict(kinds)
        self.grammar = grammar
        self.zoned = zoned
        self.forms = {name: form for name, form in forms.items() if kinds.get(name) is form.kind}
        self.delimiter = chr(grammar.delimiter)
        self._dialect = pa.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        types = {name: ZONED if kind is Kind.DATE and name in zoned else TYPES[kind] for name, kind in kinds.items()}
        self._convert = _conversion(types | dict.fromkeys(self.forms, pa.string()))
        self._header = header.strip(LINE_ENDS)
        # Usually None: the name of a column of numbers is not a number.
        self._header_values = self._parse(self._header) if header and kinds else None

    def parse(self, data: bytes) -> pa.RecordBatch | None:
        table = self._parse(data)
        return None if table is not None and self._may_have_header(table) else table

    def _may_have_header(self, table: pa.RecordBatch) -> bool:
        """Whether a record has the values of the header, apart from columns that are not read."""
        if self._header_values is None:
            return False
        names = [name for name in self.kinds if self._header_values.column(name).null_count == 0]
        # In the first column, a byte order mark may precede the name.
        names = [name for name in names if name != self.names[0]] or names
        alike = [pc.equal(table.column(name), self._header_values.column(name)[0]) for name in names]
        return bool(alike) and pc.any(functools.reduce(pc.and_, alike)).as_py() is True

    def _is_header(self, record: bytes) -> bool:
        return bool(self._header) and record.removeprefix(BOM).strip(LINE_ENDS) == self._header

    def _parse(self, data: bytes) -> pa.RecordBatch | None:
        """Parse whole records, none of which is the header; None unless all of them are good."""
        try:
            table = _to_record_batch(self._read(data, self._convert))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        for name, form in self.forms.items():
            values, wrong = form.convert(table.column(name))
            if wrong.any():
                return None
            table = table.set_column(table.schema.get_field_index(name), name, values)
        return None if any(len(find_outside_calendar(values)) for values in table.columns) else table

    def find_suspicious(self, records: list[bytes]) -> Array:
        counts = self.grammar.bounds(np.frombuffer(b"\n".join(records), np.uint8))[0][:, 2]
        suspicious = (counts != len(self.names)) | np.fromiter(map(self._is_header, records), bool, len(records))
        even = b"\n".join(record for record, ragged in zip(records, suspicious, strict=True) if not ragged) + b"\n"
        table = self._read(even, _conversion(dict.fromkeys(self.kinds, pa.binary())))
        unlike = np.zeros(table.num_rows, bool)
        for values, (name, kind) in zip(table.columns, self.kinds.items(), strict=True):
            unlike |= _find_unlike(values.combine_chunks(), kind, self._pattern(name))
        suspicious[~suspicious] = unlike
        return suspicious

    def parse_one(self, record: bytes) -> pa.RecordBatch | str:
        if self._is_header(record):
            return "the header is repeated here"
        count = int(self.grammar.bounds(np.frombuffer(record, np.uint8))[0][0, 2])
        if count != len(self.names):
            return f"{count} value{'s'[: count > 1]} where the header has {len(self.names)}"
        values = dict(zip(self.names, self.fields(record), strict=True))
        likely = {name: _looks_like(values[name], kind, self._pattern(name)) for name, kind in self.kinds.items()}
        table = self._parse(record + b"\n") if all(likely.values()) else None
        if table is not None:
            return table
        columns = {}
        # Those that do not look like their kind first: one of them is probably bad.
        for name in sorted(likely, key=likely.__getitem__):
            column = self._parse_column(name, record, values[name])
            if isinstance(column, str):
                return f"column {name!r}: {column}"
            columns[name] = column
        return pa.RecordBatch.from_arrays([columns[name] for name in self.kinds], names=list(self.kinds))

    def _parse_column(self, name: str, record: bytes, value: bytes) -> pa.Array | str:
        """Parse one column of a record; dates with a time zone and without may be mixed."""
        alone = CsvParser(self.names, {name: self.kinds[name]}, self.grammar, self.zoned, self.forms)
        column = alone.parse(record + b"\n")
        if column is not None:
            return column.column(0)
        kind = self.kinds[name]
        try:
            text = value.decode()
            if kind is Kind.DATE and name not in self.forms:
                return pa.array([convert_value(text, kind)], TYPES[kind])
        except UnicodeDecodeError as error:
            return f"{INVALID_UTF8} at byte {error.start + 1} of {quote(value)}"
        except ValueError:
            pass
        unit = self.forms[name].unit if name in self.forms else ""
        return f"{quote(text)} is not {DESCRIPTIONS[kind]}{unit and f' in {unit}'}"

    def _pattern(self, name: str) -> str:
        """The regular expression for values of a column."""
        return self.forms[name].pattern if name in self.forms else PATTERNS.get(self.kinds[name], "")

    def fields(self, record: bytes) -> list[bytes]:
        """Split one record into its values."""
        if b'"' not in record:
            return record.split(self.delimiter.encode())
        most = record.count(self.delimiter.encode()) + 1
        options = pa.csv.ReadOptions(use_threads=False, block_size=len(record) + 2, autogenerate_column_names=True)
        convert = pa.csv.ConvertOptions(column_types={f"f{number}": pa.binary() for number in range(most)})
        table = pa.csv.read_csv(pa.BufferReader(_protect_bom(record) + b"\n"), options, self._dialect, convert)
        return [column[0].as_py() for column in table.columns]

    def _read(self, data: bytes, convert: pa.csv.ConvertOptions) -> pa.Table:
        options = pa.csv.ReadOptions(use_threads=False, block_size=len(data) + 2, column_names=self.names)
        return pa.csv.read_csv(pa.BufferReader(_protect_bom(data)), options, self._dialect, convert)


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


def _to_record_batch(table: pa.Table) -> pa.RecordBatch:
    """A table in one batch, with dates in UTC."""
    arrays = [column.combine_chunks() for column in table.columns]
    arrays = [values.cast(TYPES[Kind.DATE]) if values.type == ZONED else values for values in arrays]
    return pa.RecordBatch.from_arrays(arrays, names=table.column_names)


def _protect_bom(data: bytes) -> bytes:
    """PyArrow would drop a byte order mark at the beginning, which is part of the first record here."""
    return b"\n" + data if data.startswith(BOM) else data


def _find_unlike(values: pa.Array, kind: Kind, pattern: str) -> Array:
    """Which values do not look like the kind, whose texts have this pattern."""
    if kind is Kind.TEXT:
        return np.array([value is not None and not _looks_like(value, kind, "") for value in values.to_pylist()], bool)
    return ~pc.fill_null(pc.match_substring_regex(values, pattern), True).to_numpy(zero_copy_only=False)


def _looks_like(value: bytes, kind: Kind, pattern: str) -> bool:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return False
    return kind is Kind.TEXT or text in MISSING_SPELLINGS or re.match(pattern, text) is not None
