"""Errors that have an HTTP status of their own; any other `RedescendError` is a 400."""

from __future__ import annotations

from redescend.errors import RedescendError


class Refusal(RedescendError):  # noqa: N818
    """A request that is refused, with its status."""

    status = 400


class Unauthorized(Refusal):
    """The token is missing or wrong."""

    status = 401


class NotFound(Refusal):
    """There is no such path, model or method."""

    status = 404


class WrongMethod(Refusal):
    """The path has other methods."""

    status = 405


class TooSlow(Refusal):
    """The body did not come in time."""

    status = 408


class Conflict(Refusal):
    """The request does not fit the state of the model."""

    status = 409


class TooLarge(Refusal):
    """The body has too many bytes or records."""

    status = 413


class Unsupported(Refusal):
    """A body of another kind than those that can be read."""

    status = 415


class Busy(Refusal):
    """Too much waits already; try again."""

    status = 429


class Unavailable(Refusal):
    """The disk is full, or the server stops."""

    status = 503
