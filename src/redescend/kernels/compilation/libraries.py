"""The code of kernels and their parts, for LLVM: that of the parts is linked into the kernel, and optimized there."""

from __future__ import annotations

from typing import Any

from llvmlite.binding import Linkage, parse_assembly
from numba.core.cgutils import normalize_ir_text
from numba.core.codegen import JITCodeLibrary


class PartLibrary(JITCodeLibrary):
    """The code of a part of a kernel: linked into the kernel, where it is optimized, and never run by itself.

    Numba would optimize and assemble every part, with all parts that it calls, which takes most of the time.
    """

    attributes: tuple[str, ...] = ()
    _linking_libraries: list[Any]
    _shared_module: Any
    _text: str

    def add_ir_module(self, ir_module: Any) -> None:
        for function in ir_module.functions:
            if not function.is_declaration:
                function.attributes.update(self.attributes)
                function.linkage = "linkonce_odr"
        self._text = normalize_ir_text(str(ir_module))

    def finalize(self) -> None:
        _link_init(self, self._linking_libraries)
        self._finalized = True

    def parse(self) -> Any:
        """The code, without what it calls."""
        return parse_assembly(self._text)

    def _get_module_for_linking(self) -> Any:
        """The code with that of all parts that it calls, for functions that are not kernels."""
        if self._shared_module is None:
            self._shared_module = self.parse()
            _link(self._shared_module, self._linking_libraries)
        return self._shared_module

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, env_name: str, env: Any) -> None:
        """Do nothing: an environment is for Python objects, which parts do not have."""


def _link(module: Any, libraries: list[Any]) -> None:
    """Link the code of libraries, and of the parts that parts among them call, each once."""
    found, pending = set[int](), list(reversed(libraries))
    while pending:
        library = pending.pop()
        if id(library) in found:
            continue
        found.add(id(library))
        if isinstance(library, PartLibrary):
            module.link_in(library.parse())
            pending += reversed(library._linking_libraries)
        else:
            module.link_in(library._get_module_for_linking(), preserve=True)


def _link_init(library: Any, others: list[Any]) -> None:
    for other in others:
        if reload := getattr(other, "_reload_init", None):  # which Numba 0.61 does not have
            library._reload_init.update(reload)


class SummingLibrary(JITCodeLibrary):
    """The code of a part that sums: optimized by itself, so that it rounds alike wherever it is called."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    get_pointer_to_function = PartLibrary.get_pointer_to_function
    codegen = PartLibrary.codegen
    set_env = PartLibrary.set_env


class RareLibrary(PartLibrary):
    """The code of a part that seldom runs: it is called, so that nothing around it grows."""

    attributes = ("noinline", "cold", "optsize")


class SharedLibrary(PartLibrary):
    """The code of a part that is called from several places, of which one copy is enough."""

    attributes = ("noinline",)


class KernelLibrary(JITCodeLibrary):
    """The code of a kernel with its parts, optimized once.

    Numba optimizes every function and then everything twice, to find counts of references that cancel out.
    """

    _linking_libraries: list[Any]

    def finalize(self) -> None:
        _link_init(self, self._linking_libraries)
        _link(self._final_module, self._linking_libraries)
        self._final_module.verify()
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
