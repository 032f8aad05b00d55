"""Models in files: `save` writes one, `load` reads it, and it continues as if it had never stopped.

`serialization` turns a model into plain values and arrays and back; `container` is the file: safetensors, with a digest
of every byte. Files contain no code, and loading one runs none.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from redescend.checkpoint import container
from redescend.checkpoint.serialization import Deserializer, Serializer
from redescend.errors import DataError, MissingExtraError, ParameterError, RedescendError
from redescend.files import replace_file

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
    serializer = Serializer()
    try:
        description = serializer.serialize(model)
    except RecursionError:
        raise ParameterError(
            "The model cannot be saved, because it is nested too deeply, or contains itself."
        ) from None
    with replace_file(Path(path)) as file:
        for chunk in container.write_chunks(description, serializer.arrays):
            file.write(chunk)


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
        description, arrays = container.read_content(content)
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
