"""Errors that have an HTTP status of their own; any other `RedescendError` is a 400."""

from __future__ import annotations

from typing import ClassVar

from redescend.errors import RedescendError


class Refusal(RedescendError):  # noqa: N818
    """A request that is refused, with its HTTP status."""

    status: ClassVar[int] = 400

    def __init_subclass__(cls, *, status: int) -> None:
        cls.status = status


class Unauthorized(Refusal, status=401):
    """The token is missing or wrong."""


class NotFound(Refusal, status=404):
    """There is no such path, model or method."""


class WrongMethod(Refusal, status=405):
    """The path has other methods."""


class TooSlow(Refusal, status=408):
    """The body did not come in time."""


class Conflict(Refusal, status=409):
    """The request does not fit the state of the model."""


class TooLarge(Refusal, status=413):
    """The body has too many bytes or records."""


class Unsupported(Refusal, status=415):
    """A body of another kind than those that can be read."""


class Busy(Refusal, status=429):
    """Too much waits already; try again."""


class Unavailable(Refusal, status=503):
    """The disk is full, no thread can be started, or the server stops."""
