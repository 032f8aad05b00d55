"""The file: arrays in the safetensors format, and in its metadata one JSON text that describes the model.

The digest in that text is of the whole file with zeros in the digest's own place, so that no byte can change unseen.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from redescend.errors import DataError, MissingExtraError
from redescend.numeric import Array

FORMAT = 1
"""Raised when files are written that an older version would misread; older files are read for ever."""

KEY = "redescend"
LENGTH = 8
"""Bytes before the header, which say how long it is."""

UNSEALED = "0" * 64


def written(description: Any, arrays: dict[str, Array]) -> Iterator[bytes | memoryview]:
    """The content of a file, piece by piece: it may be large, and is not copied to be sealed."""
    from redescend import __version__

    text = json.dumps({"format": FORMAT, "library": __version__, "digest": UNSEALED, "model": description})
    content = _safetensors().save(arrays, {KEY: text})
    # The model comes after the digest: the first run of zeros is the digest's place.
    place, view = content.index(UNSEALED.encode()), memoryview(content)
    yield from (view[:place], _digest(content, place).encode(), view[place + len(UNSEALED) :])


def read(content: bytes) -> tuple[Any, dict[str, Array]]:
    """The description and the arrays in a file, or one sentence on why it is not trusted."""
    text = _text(content)
    version = text.get("format") if isinstance(text, dict) else None
    if type(version) is not int or version < 1:
        raise DataError("it is not a file that redescend.save wrote, or it has been altered.")
    if version > FORMAT:
        raise DataError(
            f"redescend {text.get('library')} wrote it in format {version}, and this version reads formats up "
            f"to {FORMAT}; update with: pip install --upgrade redescend"
        )
    digest = str(text.get("digest")).encode()
    place = content.find(digest)
    if len(digest) != len(UNSEALED) or _digest(content, place).encode() != digest:
        raise DataError("it is not what was written: it has been altered or cut short.")
    return text.get("model"), _safetensors().load(content)


def _text(content: bytes) -> Any:
    size = int.from_bytes(content[:LENGTH], "little")
    if len(content) < LENGTH or size > len(content) - LENGTH:
        raise DataError("it is not a file that redescend.save wrote, or it has been cut short.")
    try:
        return json.loads(json.loads(content[LENGTH : LENGTH + size])["__metadata__"][KEY])
    except (ValueError, TypeError, KeyError):
        raise DataError("it is not a file that redescend.save wrote, or it has been altered.") from None


def _digest(content: bytes, place: int) -> str:
    view = memoryview(content)
    digest = hashlib.sha256(view[:place])
    digest.update(UNSEALED.encode())
    digest.update(view[place + len(UNSEALED) :])
    return digest.hexdigest()


def _safetensors() -> Any:
    try:
        import safetensors.numpy as safetensors
    except ImportError:
        raise MissingExtraError("Models are kept in safetensors files; try: pip install safetensors") from None
    return safetensors
