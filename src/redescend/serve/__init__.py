"""`redescend serve`: models that learn while they are served.

`journal` makes records durable, `model` learns from them and answers, `writer` puts requests of many clients into one
commit, `folder` holds the models of a server, and `app` speaks HTTP.
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
