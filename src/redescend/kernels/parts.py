"""How kernels and their parts are compiled: Numba types the parts one by one, and LLVM sees all of them at once."""

from __future__ import annotations

import functools
import gc
from typing import Any

from llvmlite.binding import Linkage
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, PassManager, register_pass
from numba.core.typed_passes import AnnotateTypes, NoPythonBackend, NopythonTypeInference, PreLowerStripPhis
from numba.core.untyped_passes import (
    FixupArgs,
    GenericRewrites,
    IRProcessing,
    ReconstructSSA,
    TranslateByteCode,
)

from redescend.kernels.lowering import Inference, lowering


class _PartLibrary(JITCodeLibrary):
    """The code of a part of a kernel: linked into the kernel, where it is optimized, and never run by itself.

    Numba would optimize and assemble every part, with all parts that it calls, which takes most of the time.
    """

    attributes: tuple[str, ...] = ()
    _linking_libraries: list[Any]
    _shared_module: Any

    def finalize(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration:
                function.linkage = "linkonce_odr"
        _link_init(self, self._linking_libraries)
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """The code with that of all parts that it calls, for functions that are not kernels."""
        if self._shared_module is None:
            module = self._final_module.clone()
            for library in _with_callees(self._linking_libraries):
                module.link_in(_own_module(library), preserve=True)
            self._shared_module = module
        return self._shared_module

    def add_ir_module(self, ir_module: Any) -> None:
        for function in ir_module.functions:
            if not function.is_declaration:
                function.attributes.update(self.attributes)
        super().add_ir_module(ir_module)

    def add_llvm_module(self, ll_module: Any) -> None:
        self._final_module.link_in(ll_module)

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, env_name: str, env: Any) -> None:
        """Do nothing: an environment is for Python objects, which parts do not have."""


def _with_callees(libraries: list[Any]) -> list[Any]:
    """Libraries, and those of the parts that parts among them call, each once."""
    found, pending = dict[int, Any](), list(reversed(libraries))
    while pending:
        library = pending.pop()
        if id(library) not in found:
            found[id(library)] = library
            if isinstance(library, _PartLibrary):
                pending += reversed(library._linking_libraries)
    return list(found.values())


def _own_module(library: Any) -> Any:
    """The code of a library; of a part, without what it calls."""
    return library._final_module if isinstance(library, _PartLibrary) else library._get_module_for_linking()


def _link_init(library: Any, others: list[Any]) -> None:
    for other in others:
        if reload := getattr(other, "_reload_init", None):  # which Numba 0.61 does not have
            library._reload_init.update(reload)


class _SummingLibrary(JITCodeLibrary):
    """The code of a part that sums: optimized by itself, so that it rounds alike wherever it is called."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    codegen = _PartLibrary.codegen
    set_env = _PartLibrary.set_env


class _RareLibrary(_PartLibrary):
    """The code of a part that seldom runs: it is called, so that nothing around it grows."""

    attributes = ("noinline", "cold", "optsize")


class _SharedLibrary(_PartLibrary):
    """The code of a part that is called from several places, of which one copy is enough."""

    attributes = ("noinline",)


class _KernelLibrary(JITCodeLibrary):
    """The code of a kernel with its parts, optimized once.

    Numba optimizes every function and then everything twice, to find counts of references that cancel out.
    """

    _linking_libraries: list[Any]

    def finalize(self) -> None:
        _link_init(self, self._linking_libraries)
        for library in _with_callees(self._linking_libraries):
            self._final_module.link_in(_own_module(library), preserve=True)
        self._linking_libraries = []
        super().finalize()

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            if function.linkage == Linkage.linkonce_odr:
                function.linkage = "internal"  # nobody else calls it, so that unused arguments can go
        found = self._codegen._module_pass_manager()
        manager, *builder = found if isinstance(found, tuple) else (found,)  # Numba 0.61 has no builder
        manager.run(self._final_module, *builder)


@functools.cache
def _library_pass(kind: type[JITCodeLibrary]) -> Any:
    """A pass that puts the code of a function into a library of this kind."""

    class UseLibrary(FunctionPass):
        _name = f"redescend_use{kind.__name__}"

        def __init__(self) -> None:
            FunctionPass.__init__(self)

        def run_pass(self, state: Any) -> bool:
            state.library = kind(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
            return True

    return register_pass(mutates_CFG=False, analysis_only=False)(UseLibrary)


BEFORE = TranslateByteCode, FixupArgs, IRProcessing, GenericRewrites, ReconstructSSA, Inference
AFTER = PreLowerStripPhis, AnnotateTypes, lowering(_PartLibrary), NoPythonBackend
"""The passes that kernels need. Numba's other passes are for closures, literals, generators, expressions of arrays and
exceptions, which kernels do not have; they take a quarter of the time.
"""


class _Passes:
    """Passes that run one after the other. Numba's own manager takes longer than some of them."""

    pipeline_name = "redescend"

    def __init__(self, library: Any) -> None:
        self.exec_times: dict[str, Any] = {}
        self._passes = [each() for each in (*BEFORE, _library_pass(library), *AFTER)]

    def run(self, state: Any) -> None:
        for each in self._passes:
            each.run_pass(state)


class _Compiler(CompilerBase):
    """Compiles without the collector of cycles, which would look through all that Numba makes, again and again."""

    def compile_extra(self, func: Any) -> Any:
        collecting = gc.isenabled()
        gc.disable()
        try:
            return super().compile_extra(func)
        finally:
            if collecting:
                if gc.get_freeze_count() == 0:  # what Numba made is now old, and collected with what is old
                    gc.freeze()
                    gc.unfreeze()
                gc.enable()


class _ShortCompiler(_Compiler):
    """Compiles with the passes that kernels and parts need."""

    passes: _Passes

    def define_pipelines(self) -> Any:
        return [self.passes]


class _KernelCompiler(_ShortCompiler):
    passes = _Passes(_KernelLibrary)


class _PartCompiler(_ShortCompiler):
    passes = _Passes(_PartLibrary)


class _SharedCompiler(_ShortCompiler):
    passes = _Passes(_SharedLibrary)


class _RareCompiler(_ShortCompiler):
    passes = _Passes(_RareLibrary)


class _CompiledCompiler(_Compiler):
    """Numba's own passes, for functions that slice arrays or allocate some, with types that are remembered."""

    inference: tuple[Any, ...] = (Inference,)

    def define_pipelines(self) -> Any:
        passes: list[Any] = []
        for each, _ in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            passes += self.inference if each is NopythonTypeInference else (each,)
        manager = PassManager("redescend")
        for each in passes:
            manager.add_pass(each, each.__name__)
        manager.finalize()
        return [manager]


class _InlinedCompiler(_CompiledCompiler):
    inference = (Inference, _library_pass(_PartLibrary))


class _SeldomCompiler(_CompiledCompiler):
    inference = (Inference, _library_pass(_RareLibrary))


class _SummingCompiler(_CompiledCompiler):
    inference = (Inference, _library_pass(_SummingLibrary))


COMPILED = {"pipeline_class": _CompiledCompiler}
"""Options of functions that are no kernels."""

INLINED = {
    "forceinline": True,
    "no_cfunc_wrapper": True,
    "no_cpython_wrapper": True,
    "pipeline_class": _InlinedCompiler,
}
"""Options of their parts."""

SELDOM = {**INLINED, "forceinline": False, "pipeline_class": _SeldomCompiler}
"""Options of their parts that seldom run."""

SUMMING = {**INLINED, "pipeline_class": _SummingCompiler}
"""Options of their parts that sum over features."""

KERNEL = {"_nrt": False, "no_cfunc_wrapper": True, "pipeline_class": _KernelCompiler}
"""Options of kernels, which are called from Python. References to arrays are not counted, and nothing is allocated."""

PART = {**KERNEL, "no_cpython_wrapper": True, "pipeline_class": _PartCompiler}
"""Options of parts, which are not called from Python."""

RARE = {**PART, "pipeline_class": _RareCompiler}
"""Options of parts that seldom run."""

SHARED = {**PART, "pipeline_class": _SharedCompiler}
"""Options of parts that are called from several places."""
