"""Replies to requests, as JSON: the content, or one sentence on what is wrong with the request, with its status."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
import orjson

from redescend.errors import RedescendError
from redescend.serve.logs import LOGGER


class HTTPException(RedescendError):  # noqa: N818
    """A request that is refused, with its HTTP status; that of any other `RedescendError` is 400."""

    status: ClassVar[int] = 400

    def __init_subclass__(cls, *, status: int) -> None:
        cls.status = status


class Unauthorized(HTTPException, status=401):
    """The token is missing or wrong."""


class NotFound(HTTPException, status=404):
    """There is no such path, model or method."""


class MethodNotAllowed(HTTPException, status=405):
    """The path has other methods."""


class RequestTimeout(HTTPException, status=408):
    """The body did not come in time."""


class Conflict(HTTPException, status=409):
    """The request does not fit the state of the model."""


class ContentTooLarge(HTTPException, status=413):
    """The body has too many bytes or records."""


class UnsupportedMediaType(HTTPException, status=415):
    """A body of another kind than those that can be read."""


class TooManyRequests(HTTPException, status=429):
    """Too much waits already; try again."""


class ServiceUnavailable(HTTPException, status=503):
    """The disk is full, no thread can be started, or the server stops."""


PART = 5_000  # values of a list that are encoded at a time

NO_HEADERS: Mapping[str, str] = {}


class Reply(NamedTuple):
    """A JSON text with its status; `close` says that the connection is closed behind it."""

    content: bytes
    status: int = 200
    headers: Mapping[str, str] = NO_HEADERS
    close: bool = False


def encode(content: Any) -> bytes:
    """A value as JSON, arrays as lists, with null in place of NaN.

    >>> encode({"loss": float("nan"), "row": 2**70})
    b'{"loss": null, "row": 1180591620717411303424}'
    """
    try:
        return orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)
    except TypeError:
        # An integer of more than 64 bits, or half of a surrogate pair.
        return json.dumps(_to_json(content)).encode()


def encode_in_parts(content: Any) -> bytes:
    """The same for a long value; other threads can run between its parts.

    >>> encode_in_parts({"rows": np.arange(3), "count": 3})
    b'{"rows":[0,1,2],"count":3}'
    """
    if isinstance(content, dict):
        return b"{%s}" % b",".join([encode(name) + b":" + encode_in_parts(each) for name, each in content.items()])
    if isinstance(content, list | np.ndarray) and len(content) > PART:
        parts = [encode(content[first : first + PART])[1:-1] for first in range(0, len(content), PART)]
        return b"[%s]" % b",".join(parts)
    return encode(content)


def _to_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _to_json(each) for name, each in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list):
        return [_to_json(each) for each in value]
    return None if isinstance(value, float) and not abs(value) < float("inf") else value


def error_reply(error: BaseException) -> Reply:
    """The reply to a request that failed: its status, and one sentence."""
    if isinstance(error, OSError | MemoryError):
        LOGGER.error("%s: %s", type(error).__name__, error)
        text = getattr(error, "strerror", None) or str(error) or "not enough memory"
        return Reply(encode({"error": f"Nothing was learned: {text}."}), 503)
    if not isinstance(error, RedescendError):
        LOGGER.error("Unexpected error", exc_info=error)
        return Reply(encode({"error": "Unexpected error; the log of the server has more."}), 500)
    status = error.status if isinstance(error, HTTPException) else 400
    headers = {"Retry-After": "1"} if isinstance(error, TooManyRequests) else NO_HEADERS
    # The server does not wait for the rest of a body from a client without a token, a slow one, or a long one.
    close = isinstance(error, Unauthorized | RequestTimeout | ContentTooLarge)
    return Reply(encode({"error": " ".join(str(error).split())}), status, headers, close)
