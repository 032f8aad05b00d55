"""Records from anywhere: text and columnar files, compressed or not, folders of them, pipes, tables in memory.

>>> import pyarrow as pa
>>> source = open_source(pa.table({"x": [1.0, 2.0], "name": ["a", None]}))
>>> [(batch.rows.tolist(), batch.table.to_pylist()) for batch in source.batches(["name"])]
[([1, 2], [{'name': 'a'}, {'name': None}])]
"""

from redescend.errors import needs_extra

with needs_extra("redescend.sources needs PyArrow", "cli"):
    from redescend.sources.batch import Bad, Batch, Position
    from redescend.sources.columnar import ColumnarFile
    from redescend.sources.formats import SourceFile, register_format
    from redescend.sources.kinds import SAMPLE, Kind
    from redescend.sources.open import open_source
    from redescend.sources.readers import Unread
    from redescend.sources.source import Source
    from redescend.sources.text import TextFile

__all__ = [
    "SAMPLE",
    "Bad",
    "Batch",
    "ColumnarFile",
    "Kind",
    "Position",
    "Source",
    "SourceFile",
    "TextFile",
    "Unread",
    "open_source",
    "register_format",
]
