"""`redescend serve`: models that learn while they are served.

A request to learn takes this way: `server` (short requests) or `app` (others) receives it, `records` and `numbers`
parse its body, `writer` puts requests of many clients into one commit, `model` learns from it, `journal` writes it to
the disk, and `replies` encodes the answer. `folder` holds the models of a server.
"""

from redescend.errors import MissingExtraError

try:
    import orjson as _orjson
    import pyarrow as _pyarrow
    import starlette as _starlette
    import uvicorn as _uvicorn
except ImportError:
    raise MissingExtraError(
        "redescend.serve needs PyArrow, orjson, Starlette and uvicorn; try: pip install 'redescend[serve]'"
    ) from None

del _orjson, _pyarrow, _starlette, _uvicorn
