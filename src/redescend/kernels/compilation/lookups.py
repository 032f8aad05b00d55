"""What Numba knows of types and code, asked once for each."""

from __future__ import annotations

import functools
from typing import Any

from numba import types
from numba.core.typing.context import Context


class Memo(Context):
    """Numba's typing context, with its state, that types equal calls and attributes once.

    Numba asks all rules of an operator, which are many, at every occurrence, and several times.
    """

    @staticmethod
    @functools.cache
    def of(context: Any) -> Any:
        memo = object.__new__(Memo)
        memo.__dict__ = context.__dict__
        return memo

    def resolve_function_type(self, function: Any, args: Any, kws: Any) -> Any:
        if isinstance(function, types.Function) and not kws:
            return _type_call(self, function, tuple(args))
        return super().resolve_function_type(function, args, kws)

    def resolve_getattr(self, kind: Any, name: str) -> Any:
        return _type_attribute(self, kind, name)


@functools.cache
def _type_call(context: Any, function: Any, args: Any) -> Any:
    return Context.resolve_function_type(context, function, args, {})


@functools.cache
def _type_attribute(context: Any, kind: Any, name: str) -> Any:
    return Context.resolve_getattr(context, kind, name)


@functools.cache
def type_of(context: Any, function: Any) -> Any:
    return context.resolve_value_type(function)


@functools.cache
def code_of(context: Any, function: Any, found: Any) -> Any:
    return context.get_function(function, found)
