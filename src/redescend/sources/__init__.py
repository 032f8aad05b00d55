"""Records from anywhere: text and columnar files, compressed or not, folders of them, pipes, tables in memory.

>>> import pyarrow as pa
>>> source = open_source(pa.table({"x": [1.0, 2.0], "name": ["a", None]}))
>>> [(batch.rows.tolist(), batch.table.to_pylist()) for batch in source.batches(["name"])]
[([1, 2], [{'name': 'a'}, {'name': None}])]
"""

from redescend.errors import MissingExtraError

try:
    from redescend.sources.batch import Bad, Batch, Position
    from redescend.sources.columnar import ColumnarFile
    from redescend.sources.folders import Unread
    from redescend.sources.formats import SourceFile, register_format
    from redescend.sources.kinds import SAMPLE, Kind
    from redescend.sources.open import open_source
    from redescend.sources.source import Source
    from redescend.sources.text import TextFile
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] != "pyarrow":
        raise
    raise MissingExtraError("redescend.sources needs PyArrow; install it with: pip install 'redescend[cli]'") from None

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
