"""Methods that one thread at a time may call on an object: two that learn at once would lose records."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from redescend.errors import ConcurrentUseError

Method = TypeVar("Method", bound=Callable[..., Any])

_learning: dict[int, object] = {}
"""The objects that are learning now, by their identity: nothing is stored in them, so copies do not inherit it."""


def exclusive(method: Method) -> Method:
    """Make a method raise `ConcurrentUseError` while another exclusive method of the same object runs.

    Compiled loops release the interpreter's lock, so threads that share a model can be in them at the same time. The
    method must not call another exclusive method of its object.

    >>> class Model:
    ...     @exclusive
    ...     def learn(self, then):
    ...         then()
    >>> model = Model()
    >>> model.learn(lambda: None)
    >>> model.learn(lambda: model.learn(print))
    Traceback (most recent call last):
    redescend.errors.ConcurrentUseError: This Model is learning in another thread, and records would be lost; use one
    model for each thread, or a lock.
    """

    @wraps(method)
    def guarded(self: Any, *arguments: Any, **options: Any) -> Any:
        own, identity = object(), id(self)
        # One atomic operation: no other thread can run between the test and the insertion.
        if _learning.setdefault(identity, own) is not own:
            raise ConcurrentUseError(
                f"This {type(self).__name__} is learning in another thread, and records would be lost; use one model "
                "for each thread, or a lock."
            )
        try:
            return method(self, *arguments, **options)
        finally:
            del _learning[identity]

    return cast(Method, guarded)
