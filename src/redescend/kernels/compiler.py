"""Compilation of kernels: flags, the cache on disk, and the formulas that a kernel may call.

Kernels call the same functions as the classes do from Python: the formula modules are registered here.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core.cgutils import create_struct_proxy
from numba.core.errors import TypingError
from numba.extending import intrinsic, overload, register_jitable

from redescend import domains, gates, numeric, steps, transforms
from redescend.kernels.compilation import parts
from redescend.kernels.compilation.cache import KernelCache
from redescend.kernels.compilation.parts import COMPILED, INLINED, KERNEL, PART, RARE, SELDOM, SHARED, SUMMING
from redescend.losses import linear

F = TypeVar("F", bound=Callable[..., Any])

MODULES = (numeric, linear, transforms, domains, steps, gates)

# Products may be fused with sums, but nothing else is relaxed: divisions stay divisions, so that a scalar has the same
# bits everywhere, and NaN and infinity keep their meaning, so that kernels can test for them.
FLAGS = {"fastmath": {"contract"}, "error_model": "numpy", "nogil": True}
# Sums over features may be reordered as well.
SUMS = {**FLAGS, "fastmath": {"contract", "reassoc"}}
# The rounds of the self-tuning learner: products with inverses are allowed too.
CORE = {**FLAGS, **PART, "fastmath": {"contract", "reassoc", "nsz", "arcp"}}

# Formulas that are inlined where they are called.
FORMULA = {**PART, **FLAGS, "forceinline": True}

COMPILING = "Compiling for the first use on this machine. This takes 3 to 8 seconds, once; the result is cached."


OVERLOADED = (numeric.choose, numeric.unknown_code)


@overload(numeric.choose, strict=False, jit_options=FORMULA)
def _choose(condition: Any, yes: Any, no: Any) -> Any:
    def choose(condition: Any, yes: Any, no: Any) -> Any:
        return yes if condition else no

    return choose


@overload(numeric.unknown_code, strict=False, jit_options=FORMULA)
def _unknown_code(code: Any) -> Any:
    def unknown_code(code: int) -> float:
        return np.nan

    return unknown_code


def _register(module: ModuleType, inline: bool) -> None:
    """Let kernels call every function of a formula module."""
    for member in list(vars(module).values()):
        if isinstance(member, FunctionType) and member.__module__ == module.__name__ and member not in OVERLOADED:
            register_jitable(**(FORMULA if inline else FLAGS))(member)


for _module in MODULES:
    # Projections are long: inlined, they would double the time of compilation.
    _register(_module, inline=_module is not domains)


def _kernel_sources() -> list[Path]:
    return sorted([*Path(__file__).parent.rglob("*.py"), *(Path(str(module.__file__)) for module in MODULES)])


def _hash(files: list[Path]) -> str:
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


@functools.cache
def source_digest() -> str:
    """Hash of every file that kernels are compiled from."""
    return _hash(_kernel_sources())


IMPORT = re.compile(r"^ *(?:from ([\w.]+) import (\([^)]*|.*)|import ([\w., ]+))", re.MULTILINE)


@functools.cache
def _imports(file: Path) -> frozenset[Path]:
    """Files of this package that a file may import; they need not exist."""
    names = set()
    # Parsing all the files would take a tenth of a second.
    for module, imported, modules in IMPORT.findall(file.read_text(encoding="utf-8")):
        names |= {module, *(f"{module}.{name}" for name in re.findall(r"\w+", imported))}
        names |= set(re.findall(r"[\w.]+", modules))
    package = Path(__file__).parents[1]
    folders = [package.joinpath(*name.split(".")[1:]) for name in names if name.startswith("redescend.")]
    return frozenset(path for folder in folders for path in (folder.with_suffix(".py"), folder / "__init__.py"))


@functools.cache
def module_digest(file: Path) -> str:
    """Hash of a kernel's file and of all the kernels and formulas that it imports, directly or not.

    So are `parts`, which says how to compile, with what it imports, and this file, but not what this one imports: it
    registers every formula, and a kernel that calls one imports it.
    """
    sources, pending = set(_kernel_sources()), [file, Path(str(parts.__file__))]
    used = {Path(__file__), *pending}
    while pending:
        more = (_imports(pending.pop()) & sources) - used
        used |= more
        pending += more
    return _hash(sorted(used))


_listeners: list[Callable[[str], None]] = []


@functools.cache
def _log(message: str) -> None:
    """Log a message once; without a logger of the user, only a warning is shown."""
    logging.getLogger("redescend").log(logging.INFO if message == COMPILING else logging.WARNING, message)


def _announce(message: str = COMPILING) -> None:
    """Tell those who listen that something is compiled, or else the log."""
    if not _listeners or message == COMPILING:
        _log(message)
    while _listeners:
        _listeners.pop()(message)


@contextmanager
def on_compile(callback: Callable[[str], None]) -> Iterator[None]:
    """Call back at most once, with a message for the user, when the first kernel that is not in the cache is compiled.

    >>> with on_compile(print):
    ...     pass  # whatever may compile
    """
    _listeners.append(callback)
    try:
        yield
    finally:
        if callback in _listeners:
            _listeners.remove(callback)


def compiled(function: F) -> F:
    """Compile on first use, and cache the result on disk, if it can be written, until its sources change."""
    return _with_cache(njit(**COMPILED, **FLAGS)(function))


def kernel(function: F) -> F:
    """Compile loops over views and numbers by translating them (`compilation.translation`), not by Numba's own passes.

    Not for loops that sum over one array and store to another: whether LLVM vectorizes these, and so how they round,
    would depend on where arrays are in memory.
    """
    return _with_cache(njit(**KERNEL, **FLAGS)(function))


def brief(function: F) -> F:
    """Compile a loop of some microseconds like a `kernel`, but keep the lock of the interpreter while it runs.

    Where several threads run, taking the lock again may cost more than the loop.
    """
    return _with_cache(njit(**KERNEL, **FLAGS | {"nogil": False})(function))


def _with_cache(dispatcher: Any) -> Any:
    dispatcher._cache = KernelCache(dispatcher.py_func, lambda file: module_digest(Path(file)), _announce)
    return dispatcher


def inlined(function: F) -> F:
    """Compile a part of a kernel, inlined where it is called."""
    return _without_literals(njit(**INLINED, **FLAGS)(function))


def seldom(function: F) -> F:
    """Compile a part that seldom runs, which may slice arrays or allocate some; it is not inlined."""
    return _without_literals(njit(**SELDOM, **FLAGS)(function))


def summing(function: F) -> F:
    """Compile a part of a kernel that sums over features, in any order."""
    return njit(**SUMMING, **SUMS)(function)


def part(function: F) -> F:
    """Compile a part of the rounds of the self-tuning learner; LLVM decides where it is inlined."""
    return _without_literals(njit(**CORE)(function))


def shared(function: F) -> F:
    """Compile a long part that is called from several places, once for all of them; it is not inlined."""
    return _without_literals(njit(**CORE | SHARED)(function))


def rare(function: F) -> F:
    """Compile a part that seldom runs, such as a restart; it is not inlined."""
    return _without_literals(njit(**CORE | RARE)(function))


def _without_literals(dispatcher: Any) -> Any:
    """Compile a part once, not for every constant that it is called with."""
    template = dispatcher.get_call_template

    def get_call_template(args: Any, kws: Any) -> Any:
        return template(tuple(types.unliteral(argument) for argument in args), kws)

    dispatcher.get_call_template = get_call_template
    return dispatcher


@intrinsic
def muladd(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """a·b + c with one rounding where the machine has it, in every loop, so that equal rounds give equal bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = arguments[0].type
        shape = ir.FunctionType(number, [number] * 3)
        return builder.call(builder.module.declare_intrinsic("llvm.fmuladd", [number], shape), arguments)

    return a(a, a, a), generate


@intrinsic
def pointer(typing: Any, address: Any) -> Any:
    """Make a pointer of an address. Views made from it have no reference count."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(address), generate


@intrinsic
def load_word(typing: Any, text: Any, place: Any) -> Any:
    """Eight bytes of a text from a place on, as one number; the first is its lowest."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = create_struct_proxy(text)(context, builder, arguments[0]).data
        first = builder.gep(data, [arguments[1]])
        return builder.load(builder.bitcast(first, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(text, place), generate


@intrinsic
def prefetch(typing: Any, address: Any) -> Any:
    """Prefetch the cache line at an address; it never faults."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [place, flag, flag, flag])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [place], shape)
        builder.call(fetch, [builder.inttoptr(arguments[0], place), flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(address), generate


def _uncount(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.Array):
        if kind.layout != "C":
            raise TypingError(f"uncounted needs C-contiguous arrays. Got {kind}.")
        array = create_struct_proxy(kind)(context, builder, value)
        array.meminfo, array.parent = (ir.Constant(each.type, None) for each in (array.meminfo, array.parent))
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        items = [_uncount(context, builder, item, builder.extract_value(value, i)) for i, item in enumerate(kind)]
        return context.make_tuple(builder, kind, items)
    return value


@intrinsic
def uncounted(typing: Any, value: Any) -> Any:
    """View an array, or all arrays of a tuple, without reference counts, which cost atomic operations in loops.

    Only for kernels, and for C-contiguous arrays that outlive the view.
    """
    return value(value), lambda context, builder, signature, args: _uncount(context, builder, value, args[0])
