"""Fit a model to any stream in one pass: a file, a folder, a pipe or a table, in batches, without losing a record.

Sources (`redescend.sources`) turn bytes into typed columns, `encoding` turns columns into numbers, `model` learns from
them round by round, and `run` writes logs, checkpoints and outputs.
"""

from redescend.errors import needs_extra

with needs_extra("redescend.streaming needs PyArrow", "cli"):
    from redescend.streaming.fit import fit_stream
    from redescend.streaming.keyed import ModelStore
    from redescend.streaming.model import StreamModel

__all__ = ["ModelStore", "StreamModel", "fit_stream"]
