"""Open a source: its files, their format, and the columns inferred from the first records."""

from __future__ import annotations

import codecs
import os
from collections.abc import Mapping, Sequence
from typing import Any

from redescend.errors import DataError, join_first
from redescend.parameters import AT_LEAST_ONE, bad_parameter, check
from redescend.sources.arrow import ArrowFile
from redescend.sources.columnar import open_table
from redescend.sources.csv import CsvFile, TsvFile
from redescend.sources.databases import DuckdbFile, ExcelFile, SqliteFile
from redescend.sources.formats import ReadOptions, SourceFile, check_format, detect_format, register_format
from redescend.sources.journal import JournalFile
from redescend.sources.jsonl import JsonLinesFile
from redescend.sources.kinds import Kind
from redescend.sources.notations import Notation
from redescend.sources.parquet import ParquetFile
from redescend.sources.readers import BLOCK, Origin, Unread, open_origins
from redescend.sources.source import Source
from redescend.sources.splitter import LONGEST
from redescend.sources.streams import RedisStream, find_stream
from redescend.sources.text import TextFile

for _format in (
    CsvFile,
    TsvFile,
    JsonLinesFile,
    ParquetFile,
    ArrowFile,
    JournalFile,
    SqliteFile,
    DuckdbFile,
    ExcelFile,
    RedisStream,
):
    register_format(_format)


def open_source(
    source: Any,
    *,
    format: str | None = None,
    header: bool = True,
    kinds: Mapping[str, Kind] | None = None,
    block: int = BLOCK,
    longest: int = LONGEST,
    columns: Sequence[str] | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    forms: Mapping[str, Notation] | None = None,
) -> Source:
    r"""Open a source of records, and infer its format, its columns and their kinds.

    Parameters
    ----------
    source : path, list of paths, binary file, table or data frame
        A path, a folder, a pattern like ``data/*.csv``, ``-`` for standard input, a list of these, a binary file
        object, a pandas or Polars data frame, an Arrow table, or anything that exports a stream of Arrow batches.
        Compressed files (gzip, bzip2, Zstandard, LZ4, xz) are decompressed. Or the address of a Redis stream, such as
        ``redis://localhost/stream``.
    format : str or None
        csv, tsv, jsonl, parquet, arrow, or a format of `register_format`. None: inferred from the name, or else from
        the first bytes.
    header : bool
        Whether the first line of a delimited file names the columns.
    kinds : mapping of str to Kind, or None
        Known kinds of columns; the others are inferred from the first thousand records. A column of text is of a kind
        if nine in ten of its values are.
    block : int
        Bytes of text to read at a time. Results do not depend on it.
    longest : int
        The most bytes of a text record; a longer one is bad.
    columns : sequence of str or None
        The columns of a delimited file that may lack its header, because it was rotated. None: the header names them.
    decimal : {'.', ','} or None
        The decimal mark of numbers in delimited files. None: inferred for each column, where that is unambiguous.
    encoding : str or None
        The encoding of text files, such as windows-1252. None: UTF-8, or UTF-16 if the text begins with its mark.
    forms : mapping of str to Notation, or None
        Known notations of columns of delimited files, such as the `forms` of another source. They decide what these
        files leave open, such as whether 01/02/2020 is in January.

    Returns
    -------
    Source
        Its columns, a sample, and its records in batches.

    Raises
    ------
    DataError
        There is no such file, it is empty, or its columns cannot be inferred.

    Examples
    --------
    >>> import io
    >>> source = open_source(io.BytesIO(b"x,when\n1,2024-02-29\n?,2024-03-01\n"))
    >>> source.format, source.kinds["x"].value, source.kinds["when"].value
    ('csv', 'number', 'date')
    >>> source.sample.table.column("x").to_pylist()
    [1.0, None]
    """
    requested = None if format is None else check_format(format)
    check("open_source", "block", block, AT_LEAST_ONE)
    check("open_source", "longest", longest, AT_LEAST_ONE)
    if decimal not in (None, ".", ","):
        raise bad_parameter("open_source", "decimal", "'.', ',' or None", decimal)
    if encoding is not None and not _is_encoding(encoding):
        raise bad_parameter("open_source", "encoding", "the name of an encoding, such as 'windows-1252'", encoding)
    known = {name: Kind(kind) for name, kind in (kinds or {}).items()}
    table = open_table(source)
    if table is not None:
        return _make_source(table.name, [table], known, None)
    known_columns = None if columns is None else tuple(columns)
    options = ReadOptions(header, block, longest, known_columns, decimal, forms or {})
    stream = find_stream(source)
    if stream is not None:
        opened = stream(source, options)
        return _make_source(opened.name, [opened], known, None)
    unread: list[Unread] = []
    origins = list(open_origins(source, unread))
    if not origins:
        raise DataError("The list of sources is empty.")
    files: list[SourceFile] = []
    for origin in origins:
        chosen, compression = detect_format(origin, requested)
        if files and chosen.format != files[0].format:
            raise DataError(
                f"{origin.name} is {chosen.format} and {files[0].name} is {files[0].format}; "
                "read files of one format at a time."
            )
        if encoding is not None:
            if not issubclass(chosen, TextFile):
                raise DataError(f"{origin.name} is {chosen.format}, which has no encoding; it is for text files.")
            compression = f"{(compression or '').partition('+')[0]}+{encoding}"
        files.append(chosen.open(origin, compression, options))
    sizes = [origin.size for origin in origins]
    size = None if None in sizes else sum(size or 0 for size in sizes)
    made = _make_source(_name_source(source, origins), files, known, size)
    made.unread = unread
    return made


def _is_encoding(name: Any) -> bool:
    try:
        data = "a".encode(name)
        return codecs.getincrementaldecoder(name)("backslashreplace").decode(data, True) == "a"
    except (LookupError, TypeError, ValueError):
        return False


def _name_source(source: Any, origins: Sequence[Origin]) -> str:
    if isinstance(source, str | os.PathLike) and source != "-":
        return os.fspath(source)
    return join_first([origin.name for origin in origins], 1)


def _make_source(name: str, files: Sequence[SourceFile], known: Mapping[str, Kind], size: int | None) -> Source:
    first = files[0]
    kinds, others = first.infer_columns(files)
    kinds |= {key: kind for key, kind in known.items() if key in kinds or first.names is None}
    if not kinds:
        raise DataError(f"{name} has {first.explain_no_columns()}.")
    return Source(name, files, kinds, size, {key: kind for key, kind in others.items() if key not in kinds})
