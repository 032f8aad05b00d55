"""A model in a file: `save` writes it, `load` reads it, and it goes on as if it had never stopped.

`names` says which classes a file may name, `describe` turns a model into plain values and arrays and back, `container`
is the file: safetensors, with a digest of every byte. No file holds code, and none is run by loading one.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from redescend.checkpoint import container
from redescend.checkpoint.describe import Reader, Writer
from redescend.errors import DataError, MissingExtraError, ParameterError, RedescendError
from redescend.files import replacing

__all__ = ["load", "save"]


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a learner or an estimator, with all that it has learned, to a file.

    The file takes the place of an older one in a single step: whatever happens, one of the two is there in full.

    Parameters
    ----------
    model : learner, estimator, or the state of one
        Anything that `redescend` makes; or a dict of plain values and arrays, such as ``learner.state()``.
    path : path-like
        Where to; by custom it ends in ``.safetensors``, and tools for such files can open it.

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
    (SelfTuning(2, Squared(l2=0.0), order=1), 1, True)
    """
    writer = Writer()
    try:
        description = writer.described(model)
    except RecursionError:
        raise ParameterError(
            "The model cannot be saved, because it is nested too deeply, or contains itself."
        ) from None
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise DataError(f"'{path}' cannot be written, because it is a folder; name a file in it.")
    if not target.parent.is_dir():
        raise DataError(f"'{path}' cannot be written, because there is no folder '{target.parent}'; make it first.")
    with replacing(target) as file:
        for piece in container.written(description, writer.arrays):
            file.write(piece)


def load(path: str | os.PathLike[str]) -> Any:
    """What `save` wrote: the same model, which goes on from where it was, bit for bit.

    A file that is cut short, altered or of a newer version is refused in one sentence. Loading makes objects of the
    classes of `redescend` and nothing else, so a file from someone else can do no harm; what it has learned is of
    course only as good as who taught it.

    Parameters
    ----------
    path : path-like
        The file.

    Raises
    ------
    DataError
        The file is not one that `save` wrote, or is no longer what it was.
    FileNotFoundError
        There is no such file.
    """
    if Path(path).is_dir():
        raise DataError(f"'{path}' cannot be loaded: it is a folder; name a file in it.")
    content = Path(path).read_bytes()
    try:
        description, arrays = container.read(content)
        return Reader(arrays, room=len(content)).made(description)
    except MissingExtraError:
        raise
    except MemoryError:
        raise DataError(f"'{path}' cannot be loaded: its model does not fit into memory.") from None
    except RecursionError:
        raise DataError(f"'{path}' cannot be loaded: it is nested too deeply for a model.") from None
    except Exception as error:  # a file that someone altered on purpose can make any constructor fail in any way
        raise DataError(f"'{path}' cannot be loaded: {_sentence(error)}") from None


def _sentence(error: Exception) -> str:
    return str(error) if isinstance(error, RedescendError) else f"its model cannot be made ({error})."
