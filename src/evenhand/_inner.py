"""Compiled functions that only other compiled functions call: no machine code of their own.

Numba turns every function into machine code, also one whose callers hold it already, copied or
linked in. A seventh of the time to the first decision was spent on code that never runs (10.6
against 12.2 seconds of processor time). Callers take the optimised form that LLVM has of a
function, which is kept as it was, so what runs is the same to the bit and as fast.

It hangs on three methods inside of Numba (0.68 is what we measured). Where they are not, functions
are compiled as Numba does it. For `evenhand._compile` alone.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import codegen, compiler

# Of a Numba that has none of these, functions are compiled in its own way.
_LIBRARY: Any = getattr(codegen, "JITCodeLibrary", object)
_COMPILER: Any = getattr(compiler, "Compiler", object)
_NEEDED = ("_finalize_final_module", "_finalize_dynamic_globals", "_get_module_for_linking")
_ENVIRONMENT = "_ZN08NumbaEnv"  # names of what Numba sets once a function is there


class InnerLibrary(_LIBRARY):  # type: ignore[misc]
    """A function to be linked into others; the machine gets the names that Numba looks for."""

    _final_module: Any

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True
        self._get_module_for_linking()  # which keeps the whole for callers, and for the disk
        stub = self._codegen._create_empty_module(self.name)
        for variable in self._final_module.global_variables:
            if variable.name.startswith(_ENVIRONMENT):
                kept = ir.GlobalVariable(stub, ir.IntType(8).as_pointer(), variable.name)
                kept.linkage = "common"
                kept.initializer = ir.Constant(kept.value_type, None)
        self._final_module = llvm.parse_assembly(str(stub))
        super()._finalize_final_module()


class InnerCompiler(_COMPILER):  # type: ignore[misc]
    """Numba's compiler, into an `InnerLibrary`."""

    def define_pipelines(self) -> list[Any]:
        """Numba's own steps: it makes a library only where none was given."""
        self.state.library = InnerLibrary(
            self.state.targetctx.codegen(), self.state.func_id.func_qualname
        )
        self.state.library.enable_object_caching()
        steps: list[Any] = super().define_pipelines()
        return steps


def options() -> dict[str, Any]:
    """What `njit` is told for a function that only compiled functions call."""
    if all(hasattr(_LIBRARY, name) for name in _NEEDED):
        return {"pipeline_class": InnerCompiler}
    return {}
