"""Anything that holds records becomes a source."""

from __future__ import annotations

import os
import sys
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from redescend.errors import DataError, ParameterError
from redescend.parameters import AT_LEAST_ONE, check
from redescend.sources import csv, jsonl
from redescend.sources.columnar import ArrowPart, ParquetPart
from redescend.sources.csv import DelimitedPart
from redescend.sources.formats import Form, checked, form_of
from redescend.sources.jsonl import JsonPart
from redescend.sources.kinds import Kind
from redescend.sources.memory import memory_part
from redescend.sources.paths import files_of
from redescend.sources.readers import BLOCK, FileOrigin, Origin, PipeOrigin, Text
from redescend.sources.source import Part, Source
from redescend.sources.splitter import LONGEST
from redescend.sources.tables import kinds_of
from redescend.sources.words import shown


def open_source(
    source: Any,
    *,
    format: str | None = None,
    header: bool = True,
    kinds: Mapping[str, Kind] | None = None,
    block: int = BLOCK,
    longest: int = LONGEST,
) -> Source:
    r"""Find out what a source holds: its format, its columns and their kinds.

    Parameters
    ----------
    source
        A path, a folder, a pattern like ``data/*.csv``, ``-`` for standard input, a list of these, a binary file
        object, a pandas or Polars data frame, an Arrow table, or anything that gives a stream of Arrow batches.
        Compressed files (gzip, bzip2, Zstandard, LZ4, xz) are read as what they hold.
    format
        csv, tsv, jsonl, parquet or arrow; by the name, else by the first bytes, if None.
    header
        Whether the first line of a delimited file is the names of its columns.
    kinds
        Kinds of columns that are known; the others are decided from the first thousand records. In text a column is
        of a kind if nine values in ten are, and text if it is of no other.
    block
        How many bytes of text are read at a time. What becomes of a record does not depend on it.
    longest
        The bytes of the longest record of text; one that is longer is bad.

    Returns
    -------
    a `Source`.

    Raises
    ------
    DataError
        There is no such file, or nothing in it, or no telling what its columns are.

    Examples
    --------
    >>> import io
    >>> source = open_source(io.BytesIO(b"x,when\n1,2024-02-29\n?,2024-03-01\n"))
    >>> source.format, source.kinds["x"].value, source.kinds["when"].value
    ('csv', 'number', 'date')
    >>> source.sample.table.column("x").to_pylist()
    [1.0, None]
    """
    asked = checked(format)
    check("open_source", "block", block, AT_LEAST_ONE)
    check("open_source", "longest", longest, AT_LEAST_ONE)
    known = {name: Kind(kind) for name, kind in (kinds or {}).items()}
    table = memory_part(source)
    if table is not None:
        return _source(table.name, "memory", [table], known, None)
    origins = list(_origins(source))
    if not origins:
        raise DataError("There is nothing to read: the list of sources is empty.")
    forms = [form_of(origin, asked) for origin in origins]
    for origin, form in zip(origins, forms, strict=True):
        if form.format != forms[0].format:
            raise DataError(
                f"{origin.name} is {form.format} and {origins[0].name} is {forms[0].format}; "
                "read files of one format at a time."
            )
    parts = [_part(origin, form, header, block, longest) for origin, form in zip(origins, forms, strict=True)]
    sizes = [origin.size for origin in origins]
    size = None if None in sizes else sum(size or 0 for size in sizes)
    return _source(_name(source, origins), forms[0].format, parts, known, size)


def _name(source: Any, origins: Sequence[Origin]) -> str:
    if isinstance(source, str | os.PathLike) and source != "-":
        return os.fspath(source)
    return origins[0].name + (f" and {len(origins) - 1} more" if len(origins) > 1 else "")


def _origins(source: Any) -> Iterator[Origin]:
    if isinstance(source, str) and source == "-":
        yield PipeOrigin("standard input", _standard_input())
    elif isinstance(source, str | os.PathLike):
        yield from (_stored(path) for path in files_of(source))
    elif isinstance(source, Sequence):
        for each in source:
            yield from _origins(each)
    elif hasattr(source, "read"):
        yield PipeOrigin(str(getattr(source, "name", "the file object")), source)
    else:
        raise ParameterError(
            "The 'source' parameter of open_source must be a path, '-', a binary file, a table, or a list of paths. "
            f"Got {type(source).__name__} instead."
        )


def _stored(path: Path) -> Origin:
    if path.is_file():
        return FileOrigin(path)
    # A named pipe, or what a shell puts in the place of a command.
    return PipeOrigin(str(path), open(path, "rb", buffering=0), ours=True)


def _standard_input() -> Any:
    # A raw file: no thread that waits for it can hold a lock that the program needs at its end.
    try:
        return open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)
    except (OSError, ValueError, AttributeError):
        return sys.stdin.buffer


def _part(origin: Origin, form: Form, header: bool, block: int, longest: int) -> Part:
    if form.format == "jsonl":
        return JsonPart(origin, form.compression, block, longest)
    if form.format in ("csv", "tsv"):
        delimiter = "\t" if form.format == "tsv" else None
        return DelimitedPart(origin, form.compression, delimiter, header, block, longest)
    make = ParquetPart if form.format == "parquet" else ArrowPart
    if isinstance(origin, FileOrigin) and form.compression is None:
        return make(origin.name, origin.path)
    path, damage = _spooled(origin, form)
    part = make(origin.name, path, damage)
    weakref.finalize(part, path.unlink, missing_ok=True)
    return part


def _spooled(origin: Origin, form: Form) -> tuple[Path, str | None]:
    """A copy in a temporary file, as columns cannot be read from one end to the other; and why it is not all there."""
    handle, path = tempfile.mkstemp(prefix="redescend-")
    try:
        with open(handle, "wb") as file, closing(Text(origin, form.compression, 0, keep=False)) as text:
            while data := text.read():
                file.write(data)
    except BaseException:
        os.unlink(path)
        raise
    return Path(path), text.damage


def _source(name: str, format: str, parts: list[Any], known: Mapping[str, Kind], size: int | None) -> Source:
    first = parts[0]
    others: Mapping[str, str] = {}
    if isinstance(first, DelimitedPart):
        _check_names(first.name, first.names)
        kinds, zoned = csv.guess_kinds(parts)
        for part in parts:
            part.zoned = zoned
    elif isinstance(first, JsonPart):
        kinds, others = jsonl.guess_kinds(parts)
    else:
        _check_names(first.name, first.names)
        kinds, others = kinds_of(first)
    kinds.update({key: kind for key, kind in known.items() if key in kinds or isinstance(first, JsonPart)})
    if not kinds:
        lack = first.lack() if isinstance(first, JsonPart) else None
        raise DataError(f"{name} has {lack or 'no columns of numbers, dates, text or true and false'}.")
    return Source(name, format, parts, kinds, size, {key: others[key] for key in others.keys() - kinds.keys()})


def _check_names(file: str, names: Sequence[str]) -> None:
    seen: set[str] = set()
    for number, name in enumerate(names, 1):
        if not name:
            raise DataError(f"Column {number} of {file} has no name.")
        if name in seen:
            raise DataError(f"{file} has two columns {shown(name)}.")
        seen.add(name)
