"""Parts of a kernel that are compiled with it: Numba types them one by one, and LLVM sees all of them at once."""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.typed_passes import NopythonTypeInference


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


class _PartCompiler(CompilerBase):
    def define_pipelines(self) -> Any:
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.add_pass_after(_UsePartLibrary, NopythonTypeInference)
        manager.finalize()
        return [manager]


PART = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": _PartCompiler}
"""Options of parts, which cannot be called from Python."""
