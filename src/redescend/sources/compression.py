"""Decompression of streams, and other encodings of text than UTF-8, as one more layer of the same kind.

As much as possible is recovered from a damaged stream.

The recovered part does not depend on the sizes in which the stream is read.
"""

from __future__ import annotations

import bz2
import codecs
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Any

import pyarrow as pa

MAGIC = {
    "gzip": b"\x1f\x8b\x08",
    "bz2": b"BZh",
    "zstd": b"\x28\xb5\x2f\xfd",
    "lz4": b"\x04\x22\x4d\x18",
    "xz": b"\xfd7zXZ\x00",
}
"""The first bytes of each compression."""

BLOCK_OF_BZ2 = (b"1AY&SY", b"\x17rE8P\x90")
"""The bytes after the magic of bzip2, whose three letters may also begin a text."""

ENDINGS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4", ".xz": "xz"}  # the suffix of each compression
STEP = 4096  # bytes to decompress at a time, and the most that are lost where the stream is damaged
PIPE_STEP = 256  # bytes to decompress at a time for zstd and lz4 from a pipe, which cannot be read again
MOST = 2**20  # the most bytes that one step returns: a small file may expand to a huge one

MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # begins with that of UTF-16, so it is first
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""The first bytes of texts that are not in UTF-8."""


def detect_encoding(first: bytes) -> str:
    """The encoding of a text that begins with these bytes, after a plus sign; empty unless it has a mark."""
    return next((f"+{encoding}" for mark, encoding in MARKS.items() if first.startswith(mark)), "")


def detect_compression(first: bytes) -> str | None:
    """The compression of a file that begins with these bytes; None if it is not compressed.

    That of a text in UTF-16, as Excel writes it, is ``+utf-16``; see `decompress`.
    """
    encoding = detect_encoding(first)
    if encoding:
        return encoding
    name = next((name for name, magic in MAGIC.items() if first.startswith(magic)), None)
    return None if name == "bz2" and not first[4:].startswith(BLOCK_OF_BZ2) else name


class Damage(Exception):  # noqa: N818
    """The rest of a stream cannot be decompressed."""


Reread = Callable[[], Iterator[bytes]]  # reads the stored bytes again from the first


def decompress(stored: Iterator[bytes], compression: str, block: int, reread: Reread | None = None) -> Iterator[bytes]:
    """Decompress in blocks; raise `Damage` where the stored bytes are damaged or cut short.

    After a plus sign, `compression` names the encoding of a text, which is converted to UTF-8: ``gzip+windows-1252``,
    or ``+windows-1252`` if it is not compressed. `reread` is None for a pipe. An error of the operating system is not
    damage, and is raised as it is.
    """
    compression, _, encoding = compression.partition("+")
    if encoding:
        # At the end of stored bytes, there are empty blocks without end; an empty decompressed block is not the end.
        plain = decompress(stored, compression, block, reread) if compression else takewhile(len, stored)
        yield from _convert_to_utf8(plain, encoding)
        return
    if compression in ("zstd", "lz4"):
        steps = _decompress_by_arrow(stored, compression, reread)
    else:
        steps = _decompress_by_python(stored, compression)
    pending: list[bytes] = []
    size = 0
    try:
        for piece in steps:
            pending.append(piece)
            size += len(piece)
            if size >= block:
                yield b"".join(pending)
                pending, size = [], 0
    except (zlib.error, OSError, EOFError, lzma.LZMAError, pa.ArrowException, Damage) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        yield b"".join(pending)
        cut_short = isinstance(error, Damage)
        raise Damage(f"the {compression} data are {'cut short' if cut_short else 'damaged or cut short'}") from None
    yield b"".join(pending)


def _convert_to_utf8(encoded: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    r"""Convert a text; bytes that are not in the encoding become escapes, such as \x81."""
    decoder = codecs.getincrementaldecoder(encoding)("backslashreplace")
    for data in encoded:
        yield decoder.decode(data).encode("utf-8", "backslashreplace")
    yield decoder.decode(b"", final=True).encode("utf-8", "backslashreplace")


class _Inflate:
    """Python's decompressor of gzip, with the interface of the others."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    def decompress(self, data: bytes, most: int) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, most)

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


DECODERS: dict[str, Callable[[], Any]] = {"gzip": _Inflate, "bz2": bz2.BZ2Decompressor, "xz": lzma.LZMADecompressor}


def _decompress_by_python(stored: Iterator[bytes], compression: str) -> Iterator[bytes]:
    feed = _Feed(stored)
    decoder = DECODERS[compression]()
    while data := feed.read(STEP):
        while data:
            if decoder.eof:
                # Files may be concatenated; zeros may pad the last one to a whole block.
                data = data.lstrip(b"\0")
                if not data:
                    break
                decoder = DECODERS[compression]()
            yield decoder.decompress(data, MOST)
            while not decoder.eof and not decoder.needs_input:
                yield decoder.decompress(b"", MOST)
            data = decoder.unused_data if decoder.eof else b""
    if not decoder.eof:
        raise Damage


def _decompress_by_arrow(stored: Iterator[bytes], compression: str, reread: Reread | None) -> Iterator[bytes]:
    """Decompress with Arrow. It returns nothing of a read that meets damage, so the good part is read byte by byte."""
    stream, size = _open_arrow(stored, compression), 0
    step = PIPE_STEP if reread is None else STEP
    try:
        while data := stream.read(step):
            size += len(data)
            yield data
    except (OSError, pa.ArrowException) as error:
        if reread is not None and getattr(error, "errno", None) is None:
            yield from _recover_bytes(_open_arrow(reread(), compression), size)
        raise


def _recover_bytes(stream: Any, skip: int) -> Iterator[bytes]:
    """The last bytes before the damage, without the first `skip`, which were read before."""
    while skip:
        skip -= len(stream.read(min(skip, MOST)))
    try:
        while data := stream.read(1):
            yield data
    except (OSError, pa.ArrowException):
        return


def _open_arrow(stored: Iterator[bytes], compression: str) -> Any:
    return pa.CompressedInputStream(pa.PythonFile(_Feed(stored), "r"), compression)


class _Feed(io.RawIOBase):
    """A file object over pieces of bytes, which returns exactly the requested size."""

    def __init__(self, stored: Iterator[bytes]) -> None:
        super().__init__()
        self._stored = stored
        self._buffer = b""
        self._at = 0

    def read(self, size: int = -1) -> bytes:
        while len(self._buffer) - self._at < size and (data := next(self._stored, b"")):
            self._buffer, self._at = self._buffer[self._at :] + data, 0
        data = self._buffer[self._at : self._at + size]
        self._at += len(data)
        return data

    def readable(self) -> bool:
        return True
