"""Fit a model to any stream in one pass: a file, a folder, a pipe or a table, in batches, without losing a record.

Sources (`redescend.sources`) turn bytes into typed columns, `encoding` turns columns into numbers, `model` learns from
them round by round, and `run` writes down what happened.
"""

from redescend.errors import MissingExtraError

try:
    import pyarrow as _pyarrow
except ImportError:
    raise MissingExtraError("redescend.streaming needs PyArrow; try: pip install 'redescend[cli]'") from None

from redescend.streaming.fit import fit_stream
from redescend.streaming.keyed import ModelStore
from redescend.streaming.model import StreamModel

del _pyarrow

__all__ = ["ModelStore", "StreamModel", "fit_stream"]
