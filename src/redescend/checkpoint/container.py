"""The file: arrays in the safetensors format, and in its metadata one JSON text that describes the model.

The digest in that text is of the whole file with zeros in place of the digest, so that no byte can change unnoticed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import safetensors.numpy as safetensors

from redescend.errors import DataError
from redescend.numeric import Array
from redescend.state import CORRUPT

FORMAT = 1  # incremented when files are written that an older version would misread; files of older formats can be read

KEY = "redescend"
LENGTH = 8  # bytes ahead of the header, which hold its length

ZEROS = "0" * 64
FOREIGN = "it was not written by redescend.save, or it is corrupt."


def write_chunks(description: Any, arrays: dict[str, Array]) -> Iterator[bytes | memoryview]:
    """The content of a file in chunks: it may be large, and is not copied to insert the digest."""
    from redescend import __version__

    text = json.dumps({"format": FORMAT, "library": __version__, "digest": ZEROS, "model": description})
    content = safetensors.save(arrays, {KEY: text})
    # The model follows the digest, so the first run of zeros is the place of the digest.
    place, view = content.index(ZEROS.encode()), memoryview(content)
    yield from (view[:place], _compute_digest(content, place).encode(), view[place + len(ZEROS) :])


def read_content(content: bytes) -> tuple[Any, dict[str, Array]]:
    """The description and the arrays in a file; raises an error if the file was changed."""
    text = read_metadata(content)
    version = text.get("format") if isinstance(text, dict) else None
    if type(version) is not int or version < 1:
        raise DataError(FOREIGN)
    if version > FORMAT:
        raise DataError(
            f"redescend {text.get('library')} wrote it in format {version}, but this version reads formats up to "
            f"{FORMAT}. Update with: pip install --upgrade redescend"
        )
    digest = str(text.get("digest")).encode()
    place = content.find(digest)
    if len(digest) != len(ZEROS) or _compute_digest(content, place).encode() != digest:
        raise DataError(f"its checksum does not match: {CORRUPT}.")
    return text.get("model"), safetensors.load(content)


def read_metadata(content: bytes) -> Any:
    """The description of the model in a file, with the format and the version that wrote it; not checked."""
    size = int.from_bytes(content[:LENGTH], "little")
    if len(content) < LENGTH or size > len(content) - LENGTH:
        raise DataError(FOREIGN)
    try:
        return json.loads(json.loads(content[LENGTH : LENGTH + size])["__metadata__"][KEY])
    except (ValueError, TypeError, KeyError):
        raise DataError(FOREIGN) from None


def _compute_digest(content: bytes, place: int) -> str:
    view = memoryview(content)
    digest = hashlib.sha256(view[:place])
    digest.update(ZEROS.encode())
    digest.update(view[place + len(ZEROS) :])
    return digest.hexdigest()
