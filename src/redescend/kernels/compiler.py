"""How the rest of the package is compiled: flags, cache, and the formulas that a kernel may call.

Kernels call the very functions that the classes call from Python: they are registered here, not written again.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from llvmlite import ir
from numba import njit, types
from numba.core import caching
from numba.extending import intrinsic, overload, register_jitable

from redescend import domains, gates, numeric, steps, transforms
from redescend.losses import likelihood, linear

F = TypeVar("F", bound=Callable[..., Any])

MODULES = (numeric, linear, likelihood, transforms, domains, steps, gates)

# Products may be fused with sums. Nothing else: a division stays one, so that a scalar is the same bits everywhere,
# and NaN and infinity keep their meaning, so that they can be tested for.
FLAGS = {"fastmath": {"contract"}, "error_model": "numpy", "nogil": True}
# Sums over features may be reordered as well.
SUMS = {**FLAGS, "fastmath": {"contract", "reassoc"}}


@overload(numeric.choose, strict=False)
def _choose(condition: Any, yes: Any, no: Any) -> Any:
    return lambda condition, yes, no: yes if condition else no


def _register(module: ModuleType, inline: bool) -> None:
    """Every function of a formula module may be called from a kernel."""
    for member in list(vars(module).values()):
        if isinstance(member, FunctionType) and member.__module__ == module.__name__ and member is not numeric.choose:
            register_jitable(forceinline=inline, **FLAGS)(member)


for _module in MODULES:
    # Projections are long: put in place, they would take twice as long to compile.
    _register(_module, inline=_module is not domains)


@functools.cache
def source_digest() -> str:
    """A hash of every file that a kernel is made of: a cached kernel is used only while none has changed."""
    files = [*Path(__file__).parent.rglob("*.py"), *(Path(str(module.__file__)) for module in MODULES)]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in sorted(files))).hexdigest()


def _stamped(locator: type) -> type:
    return type(locator.__name__, (locator,), {"get_source_stamp": lambda self: source_digest()})


class _CacheImpl(caching.CompileResultCacheImpl):
    _locator_classes = [_stamped(locator) for locator in caching.CompileResultCacheImpl._locator_classes]


class _Cache(caching.FunctionCache):
    _impl_class = _CacheImpl


def compiled(function: F) -> F:
    """Compile on first use, and keep the result on disk for as long as the sources are the same."""
    dispatcher = njit(**FLAGS)(function)
    dispatcher._cache = _Cache(dispatcher.py_func)
    return dispatcher


def inlined(function: F) -> F:
    """A piece of a kernel, put in place where it is called."""
    return njit(forceinline=True, **FLAGS)(function)


def summing(function: F) -> F:
    """A piece of a kernel that sums over features."""
    return njit(forceinline=True, **SUMS)(function)


@intrinsic
def muladd(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """a·b + c, in one rounding where the machine can: everywhere the same, so that equal rounds give equal bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = arguments[0].type
        shape = ir.FunctionType(number, [number] * 3)
        return builder.call(builder.module.declare_intrinsic("llvm.fmuladd", [number], shape), arguments)

    return a(a, a, a), generate


@intrinsic
def pointer(typing: Any, address: Any) -> Any:
    """An address as a pointer. Views made from it are not counted: slicing X costs two atomic operations a row."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(address), generate


@intrinsic
def prefetch(typing: Any, address: Any) -> Any:
    """Ask for the cache line at an address; never faults."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [place, flag, flag, flag])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [place], shape)
        builder.call(fetch, [builder.inttoptr(arguments[0], place), flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(address), generate
