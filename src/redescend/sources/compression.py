"""Streams that were compressed, as they were; of one that is damaged, all that can be had.

How much that is depends on the stream alone: not on the pieces in which it comes.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

MAGIC = {
    "gzip": b"\x1f\x8b\x08",
    "bz2": b"BZh",
    "zstd": b"\x28\xb5\x2f\xfd",
    "lz4": b"\x04\x22\x4d\x18",
    "xz": b"\xfd7zXZ\x00",
}
"""What a file of each compression begins with."""

BLOCK_OF_BZ2 = (b"1AY&SY", b"\x17rE8P\x90")
"""How the first block of a bzip2 file begins, or its end: three letters may be a word."""

ENDINGS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4", ".xz": "xz"}
"""How its name ends."""

STEP = 4096
"""How many bytes are worked on at a time: no more than these are lost where the stream is damaged."""

MOST = 2**20
"""How many bytes may come out of one step at a time: a small file may hold a great many."""


def compression_of(first: bytes) -> str | None:
    """How a file is compressed that begins with these bytes."""
    found = next((name for name, magic in MAGIC.items() if first.startswith(magic)), None)
    return None if found == "bz2" and not first[4:].startswith(BLOCK_OF_BZ2) else found


class Damage(Exception):  # noqa: N818
    """The rest of a stream cannot be decompressed."""


def decompressed(stored: Iterator[bytes], compression: str, block: int) -> Iterator[bytes]:
    """What the stored bytes hold, in blocks; ends with `Damage` where they are damaged or end too soon."""
    steps = _by_arrow(stored, compression) if compression in ("zstd", "lz4") else _by_python(stored, compression)
    held: list[bytes] = []
    size = 0
    try:
        for piece in steps:
            held.append(piece)
            size += len(piece)
            if size >= block:
                yield b"".join(held)
                held, size = [], 0
    except (zlib.error, OSError, EOFError, lzma.LZMAError, pa.ArrowException, Damage) as error:
        yield b"".join(held)
        cut_short = isinstance(error, Damage)
        raise Damage(f"the {compression} data are {'cut short' if cut_short else 'damaged or cut short'}") from None
    yield b"".join(held)


class _Inflate:
    """Python's decompressor of gzip, with the manners of its others."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    def decompress(self, data: bytes, most: int) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, most)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data


NEW: dict[str, Callable[[], Any]] = {"gzip": _Inflate, "bz2": bz2.BZ2Decompressor, "xz": lzma.LZMADecompressor}


def _by_python(stored: Iterator[bytes], compression: str) -> Iterator[bytes]:
    feed = _Feed(stored)
    machine = NEW[compression]()
    while data := feed.read(STEP):
        while data:
            if machine.eof:
                # Files may be joined; what pads the last one to a whole block is none.
                data = data.lstrip(b"\0")
                if not data:
                    break
                machine = NEW[compression]()
            yield machine.decompress(data, MOST)
            while not machine.eof and not machine.needs_input:
                yield machine.decompress(b"", MOST)
            data = machine.unused_data if machine.eof else b""
    if not machine.eof:
        raise Damage


def _by_arrow(stored: Iterator[bytes], compression: str) -> Iterator[bytes]:
    stream = pa.CompressedInputStream(pa.PythonFile(_Feed(stored), "r"), compression)
    while data := stream.read(STEP):
        yield data


class _Feed:
    """Bytes in the sizes that are asked for; a file that Arrow can read from."""

    closed = False

    def __init__(self, stored: Iterator[bytes]) -> None:
        self._stored = stored
        self._held = b""
        self._at = 0

    def read(self, size: int) -> bytes:
        while len(self._held) - self._at < size and (data := next(self._stored, b"")):
            self._held, self._at = self._held[self._at :] + data, 0
        data = self._held[self._at : self._at + size]
        self._at += len(data)
        return data

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True
