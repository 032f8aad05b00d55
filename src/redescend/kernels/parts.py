"""How kernels and their parts are compiled: Numba types the parts one by one, and LLVM sees all of them at once."""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import FunctionPass, PassManager, register_pass
from numba.core.typed_passes import (
    AnnotateTypes,
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import FixupArgs, GenericRewrites, IRProcessing, ReconstructSSA, TranslateByteCode


class _PartLibrary(JITCodeLibrary):
    """The code of a part of a kernel: linked into the kernel, where it is optimized, and never run by itself.

    Numba would optimize and assemble every part, with all parts that it calls, which takes most of the time.
    """

    def finalize(self) -> None:
        for library in dict.fromkeys(self._linking_libraries):
            if reload := getattr(library, "_reload_init", None):  # which Numba 0.61 does not have
                self._reload_init.update(reload)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True

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


@register_pass(mutates_CFG=False, analysis_only=False)
class _UsePartLibrary(FunctionPass):
    _name = "redescend_use_part_library"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        state.library = _PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return True


BEFORE = TranslateByteCode, FixupArgs, IRProcessing, GenericRewrites, ReconstructSSA, NopythonTypeInference
AFTER = PreLowerStripPhis, IRLegalization, AnnotateTypes, NativeLowering, NoPythonBackend
"""The passes that kernels need. Numba's other passes are for closures, literals, generators, expressions of arrays and
exceptions, which kernels do not have; they take a quarter of the time.
"""


def _manage(*passes: Any) -> list[PassManager]:
    manager = PassManager("redescend")
    for each in passes:
        manager.add_pass(each, each.__name__)
    manager.finalize()
    return [manager]


class _KernelCompiler(CompilerBase):
    def define_pipelines(self) -> Any:
        return _manage(*BEFORE, *AFTER)


class _PartCompiler(CompilerBase):
    def define_pipelines(self) -> Any:
        return _manage(*BEFORE, _UsePartLibrary, *AFTER)


KERNEL = {"no_cfunc_wrapper": True, "pipeline_class": _KernelCompiler}
"""Options of kernels, which are called from Python."""

PART = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": _PartCompiler}
"""Options of parts, which cannot be."""
