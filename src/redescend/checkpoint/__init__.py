"""Models in files: `save` writes one, `load` reads it, and it continues as if it had never stopped.

`serialization` turns a model into plain values and arrays and back. The file has the arrays in the safetensors format,
and in its metadata one JSON text that describes the model. The digest in that text is of the whole file with zeros in
place of the digest, so that no byte can change unnoticed. Files contain no code, and loading one runs none.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import safetensors.numpy as safetensors

from redescend.checkpoint.serialization import Deserializer, Serializer
from redescend.errors import DataError, MissingExtraError, ParameterError, RedescendError
from redescend.files import replace_file
from redescend.numeric import Array
from redescend.state import CORRUPT

__all__ = ["load", "save"]


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a learner or an estimator, with everything it has learned, to a file.

    An existing file is replaced atomically: whatever happens, either the old or the new one is there in full.

    Parameters
    ----------
    model : learner, estimator or dict
        Any learner or estimator of `redescend`; or a dict of plain values and arrays, such as ``learner.state()``.
    path : path-like
        The file. The usual suffix is ``.safetensors``, and tools for such files can open it.

    Returns
    -------
    None

    Raises
    ------
    ParameterError
        If the model contains something that cannot be saved, such as a Custom loss.

    Examples
    --------
    >>> import tempfile
    >>> import redescend as rd
    >>> learner = rd.SelfTuning(2, loss=rd.losses.Squared())
    >>> _ = learner.update([1.0, 2.0], 3.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(learner, Path(folder, "model.safetensors"))
    ...     again = load(Path(folder, "model.safetensors"))
    >>> again, again.rounds, again.update([1.0, 2.0], 3.0) == learner.update([1.0, 2.0], 3.0)
    (SelfTuning(2, Squared(l2=0.0), order=2), 1, True)
    """
    chunks = _serialize(model)
    with replace_file(Path(path)) as file:
        file.writelines(chunks)


def dump_model(model: Any) -> bytes:
    """The bytes that `save` writes."""
    return b"".join(_serialize(model))


def _serialize(model: Any) -> Iterator[bytes | memoryview]:
    serializer = Serializer()
    try:
        description = serializer.serialize(model)
    except RecursionError:
        raise ParameterError(
            "The model cannot be saved, because it is nested too deeply, or contains itself."
        ) from None
    return write_chunks(description, serializer.arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` wrote; it continues from where it was, with identical results.

    Loading makes objects of the classes of `redescend` and nothing else, so a file from someone else can do no harm.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    model : learner, estimator or dict
        What was saved.

    Raises
    ------
    DataError
        If the file was not written by `save`, is corrupt, or is of a newer version.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save({"rounds": 7}, Path(folder, "state.safetensors"))
    ...     load(Path(folder, "state.safetensors"))
    {'rounds': 7}
    """
    if Path(path).is_dir():
        raise DataError(f"'{path}' cannot be loaded: it is a folder; name a file in it.")
    content = Path(path).read_bytes()
    try:
        description, arrays = read_content(content)
        return Deserializer(arrays, file_size=len(content)).deserialize(description)
    except MissingExtraError:
        raise
    except MemoryError:
        raise DataError(f"'{path}' cannot be loaded: its model does not fit in memory.") from None
    except RecursionError:
        raise DataError(f"'{path}' cannot be loaded: it is nested too deeply for a model.") from None
    except Exception as error:  # a file that someone forged can make any constructor fail in any way
        what = str(error) if isinstance(error, RedescendError) else f"its model cannot be made ({error})."
        raise DataError(f"'{path}' cannot be loaded: {what}") from None


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
