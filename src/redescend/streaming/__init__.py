"""One pass over anyone's stream: a file, a folder, a pipe or a table, in batches, and nothing lost.

Bytes become typed columns (`redescend.sources`), columns become numbers (`schema`, `encoder`), numbers are learned from
round by round (`model`), and what happened is written down (`fit`).
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
