"""Model files that commands read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from redescend.errors import DataError, ParameterError

if TYPE_CHECKING:
    from redescend.streaming import ModelStore, StreamModel


def check_there(path: Path) -> None:
    """A file that is not there has a sentence of its own."""
    if not path.exists():
        raise DataError(f"There is no model file {path}; redescend fit makes one.")


def read_model(path: Path) -> StreamModel | ModelStore:
    """The model of a stream, or the models of its keys, in a file; anything else is refused."""
    from redescend.checkpoint import load
    from redescend.streaming import ModelStore, StreamModel

    check_there(path)
    model = load(path)
    if not isinstance(model, StreamModel | ModelStore):
        raise DataError(
            f"'{path}' holds a {type(model).__name__}, which is no model of a stream; redescend fit makes one."
        )
    return model


def read_key(path: Path, key: str) -> StreamModel:
    """The model of one key in a file of many."""
    from redescend.streaming import ModelStore

    store = read_model(path)
    if not isinstance(store, ModelStore):
        raise ParameterError(f"'{path}' holds one model and no keys; leave --key out.")
    return store[key]
