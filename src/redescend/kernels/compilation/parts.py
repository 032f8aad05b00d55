"""How functions are compiled: kernels and their parts by translating them, others by Numba's own passes."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import compiler
from numba.core.funcdesc import PythonFunctionDescriptor
from numba.core.lowering import Environment
from numba.core.targetconfig import ConfigStack
from numba.core.typing.templates import signature

from redescend.kernels.compilation.libraries import (
    KernelLibrary,
    PartLibrary,
    RareLibrary,
    SharedLibrary,
    SummingLibrary,
)
from redescend.kernels.compilation.translation import Translation

_numbers = itertools.count()
_contexts: dict[tuple[Any, str], Any] = {}


@contextmanager
def _uncollected() -> Iterator[None]:
    """Do without the collector of cycles, which would look through all that Numba makes, again and again."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            if gc.get_freeze_count() == 0:  # what Numba made is now old, and collected with what is old
                gc.freeze()
                gc.unfreeze()
            gc.enable()


class _PartCompiler:
    """Translates a part of a kernel. It is made and called by Numba, like its own compilers."""

    library: type = PartLibrary

    def __init__(
        self, typing: Any, target: Any, library: Any, args: Any, return_type: Any, flags: Any, locals: Any
    ) -> None:
        self._typing, self._target, self._args, self._flags = typing, target, tuple(args), flags

    def compile_extra(self, function: Any) -> Any:
        with _uncollected(), ConfigStack().enter(self._flags.copy()):
            return self._compile(function)

    def _compile(self, function: Any) -> Any:
        flags, tag = self._flags, self._flags.get_mangle_string()
        if (self._target, tag) not in _contexts:
            _contexts[self._target, tag] = compiler._make_subtarget(self._target, flags)
        context = _contexts[self._target, tag]
        library: Any = self.library(context.codegen(), function.__qualname__)
        library.enable_object_caching()
        code, name = function.__code__, f"{function.__qualname__}${next(_numbers)}"
        described = PythonFunctionDescriptor(
            *(True, function.__module__, function.__qualname__, name, "", None, None, None),
            *(code.co_varnames[: code.co_argcount], (), context.mangler, self._args, flags.forceinline, flags.noalias),
            abi_tags=[tag],
            uid=next(_numbers),
        )
        environment = Environment.from_fndesc(described)

        def declare(result: Any) -> Any:
            described.restype = result
            return context.declare_function(library.create_ir_module(name), described)

        with context.push_code_library(library):
            translated = Translation(function, self._args, context)
            module = translated.emit(declare)
            context.declare_env_global(module, context.get_env_name(described))
            context.post_lowering(module, library)
            library.add_ir_module(module)
            if not flags.no_cpython_wrapper:
                helper = translated.call_helper
                context.create_cpython_wrapper(library, described, environment, helper, flags.release_gil)
        entry = context.get_executable(library, described, environment)
        context.insert_user_function(entry, described, [library])
        return compiler.compile_result(
            typing_context=self._typing,
            target_context=context,
            entry_point=entry,
            type_annotation="",
            library=library,
            call_helper=translated.call_helper,
            signature=signature(translated.result, *self._args),
            objectmode=False,
            lifted=(),
            fndesc=described,
            environment=environment,
            metadata={},
            reload_init=list(getattr(library, "_reload_init", ())),  # which Numba 0.61 does not have
        )


class _KernelCompiler(_PartCompiler):
    library = KernelLibrary

    def __init__(self, typing: Any, target: Any, *others: Any) -> None:
        super().__init__(typing, target, *others)
        typing.refresh()
        target.refresh()


class _CompiledCompiler(compiler.Compiler):
    """Numba's own passes, for functions that slice arrays or allocate some."""

    library: type | None = None

    def compile_extra(self, func: Any) -> Any:
        with _uncollected():
            if self.library is not None:
                self.state.library = self.library(self.state.targetctx.codegen(), func.__qualname__)
                self.state.library.enable_object_caching()
            return super().compile_extra(func)


def _put_into(library: type, base: type = _PartCompiler) -> type:
    """A compiler like `base` that puts code into a library of this kind."""
    return type(f"{base.__name__}Of{library.__name__}", (base,), {"library": library})


COMPILED = {"pipeline_class": _CompiledCompiler}
"""Options of functions that are no kernels."""

INLINED = {
    "forceinline": True,
    "no_cfunc_wrapper": True,
    "no_cpython_wrapper": True,
    "pipeline_class": _put_into(PartLibrary, _CompiledCompiler),
}
"""Options of their parts."""

SELDOM = {**INLINED, "forceinline": False, "pipeline_class": _put_into(RareLibrary, _CompiledCompiler)}
"""Options of their parts that seldom run."""

SUMMING = {**INLINED, "pipeline_class": _put_into(SummingLibrary, _CompiledCompiler)}
"""Options of their parts that sum over features."""

KERNEL = {"_nrt": False, "no_cfunc_wrapper": True, "pipeline_class": _KernelCompiler}
"""Options of kernels, which are called from Python. References to arrays are not counted, and nothing is allocated."""

PART = {**KERNEL, "no_cpython_wrapper": True, "pipeline_class": _PartCompiler}
"""Options of parts, which are not called from Python."""

RARE = {**PART, "pipeline_class": _put_into(RareLibrary)}
"""Options of parts that seldom run."""

SHARED = {**PART, "pipeline_class": _put_into(SharedLibrary)}
"""Options of parts that are called from several places."""
