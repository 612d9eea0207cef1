"""How compiled functions are linked: nothing is optimised twice, and no machine code is unused.

Four things that Numba does for each function are left out where they are wasted. The code that runs
is the same to the bit. In seconds of processor time, the first `select` and the first `update`:

- Machine code of a function whose callers hold it already, copied or linked in: a seventh of the
  first `select` (10.6 against 12.2).
- Numba puts everything that a function calls into its module before optimising that, so code four
  calls deep is optimised four times more. Code that is copied into its caller has to be there. A
  function that is never copied (`stays_a_function`) does not: it is kept apart, and joins the
  outermost caller once that has been optimised. The first `update` of PooledGroupFair: 17.7 against
  26.2.
- Numba compiles a function for each whole number that is named in a call, such as 1 and 4 lanes,
  and even for the 0 that a variable begins with. See `once`: 13.8 against 17.7, and for the
  `select` of GroupFairTopInterval 8.3 against 11.0.
- Numba optimises a function before it is copied into all of its callers. That is wasted, and makes
  the copies longer: rows of any length are unrolled, where the caller knows that they have two
  numbers. LLVM optimises for 2.0 against 4.1 seconds of PooledGroupFair, both calls together.

This depends on some methods inside Numba (measured with 0.68). Where they are missing, functions
are compiled as Numba does it. For `evenhand._compile` alone.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import codegen, compiler, compiler_machinery, typed_passes, types

from evenhand._compile.weaving import woven_into

# A Numba without these compiles functions in its own way.
_LIBRARY: Any = getattr(codegen, "JITCodeLibrary", object)
_COMPILER: Any = getattr(compiler, "Compiler", object)
_NEEDED = (
    "_finalize_final_module",
    "_finalize_dynamic_globals",
    "_get_module_for_linking",
    "_optimize_final_module",
    "serialize_using_object_code",
)
_ENVIRONMENT = "_ZN08NumbaEnv"  # the names of variables that Numba sets once a function exists


class Library(_LIBRARY):  # type: ignore[misc]
    """A function and the code copied into it; functions that it only calls are kept apart."""

    _final_module: Any
    _shared_module: Any
    _linking_libraries: list[Any]
    apart: dict[Any, None]  # libraries in the order of linking: callers first
    is_copied: bool

    def finalize(self) -> None:
        """Numba's own, with fewer libraries to link."""
        self.is_copied = _is_copied(self._final_module)
        called = list(dict.fromkeys(self._linking_libraries))
        needed = {f.name for f in self._final_module.functions if f.is_declaration}
        self._linking_libraries = [lib for lib in called if not _stands_alone(lib, needed)]
        self.apart = {}
        for library in called:
            alone = () if library in self._linking_libraries else (library,)
            for needed_later in (*alone, *getattr(library, "apart", ())):
                # To the end, behind all its callers: LLVM links only what is called already.
                self.apart.pop(needed_later, None)
                self.apart[needed_later] = None
        super().finalize()

    def _optimize_final_module(self) -> None:
        if not self.is_copied:
            super()._optimize_final_module()
        self._finalized = True  # as far as callers are concerned, for whom this much is kept
        self._shared_module = self._get_module_for_linking().clone()
        self._finalized = False

    def whole(self) -> Any:
        """The module with all that it calls."""
        module = self._shared_module.clone()
        self._link_apart(module)
        return module

    def _link_apart(self, module: Any) -> None:
        for library in self.apart:
            self._reload_init.update(library._reload_init)
            module.link_in(library._get_module_for_linking(), preserve=True)

    def serialize_using_object_code(self) -> tuple[str, str, tuple[bytes, bytes]]:
        """For the disk: another process has no libraries to look into."""
        self._ensure_finalized()
        return self.name, "object", (self._get_compiled_object(), self.whole().as_bitcode())


class OuterLibrary(Library):
    """A function that Python calls as well."""

    def _finalize_final_module(self) -> None:
        self._link_apart(self._final_module)
        super()._finalize_final_module()


class InnerLibrary(Library):
    """A function to be linked into others; the machine gets the names that Numba looks for."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        stub = self._codegen._create_empty_module(self.name)
        for variable in self._final_module.global_variables:
            if variable.name.startswith(_ENVIRONMENT):
                copy = ir.GlobalVariable(stub, ir.IntType(8).as_pointer(), variable.name)
                copy.linkage = "common"
                copy.initializer = ir.Constant(copy.value_type, None)
        self._final_module = llvm.parse_assembly(str(stub))
        super()._finalize_final_module()


def _stands_alone(library: Any, needed: set[str]) -> bool:
    """Whether none of the functions that a caller needs of a library may be copied into it."""
    given = [
        function
        for function in library._get_module_for_linking().functions
        if function.name in needed and not function.is_declaration
    ]
    return bool(given) and all(
        any(b"noinline" in group for group in function.attributes) for function in given
    )


def _is_copied(module: Any) -> bool:
    """Whether a function here is to be copied into all of its callers, and optimised there."""
    return any(
        b"alwaysinline" in group
        for function in module.functions
        if not function.is_declaration
        for group in function.attributes
    )


class OuterCompiler(_COMPILER):  # type: ignore[misc]
    """Numba's compiler, with one of our libraries as its target."""

    library: Any = OuterLibrary

    def define_pipelines(self) -> list[Any]:
        """Numba's own steps: it makes a library only where none was given."""
        self.state.library = self.library(
            self.state.targetctx.codegen(), self.state.func_id.func_qualname
        )
        self.state.library.enable_object_caching()
        return [woven_into(steps) for steps in super().define_pipelines()]


class InnerCompiler(OuterCompiler):
    """The same, into an `InnerLibrary`."""

    library = InnerLibrary


class LiveCompiler(OuterCompiler):
    """The same, for a function that keeps the interpreter's lock."""

    def define_pipelines(self) -> list[Any]:
        """The lock is a matter of the way in from Python, which is made last."""
        pipelines = super().define_pipelines()
        for steps in pipelines:
            at = [step for step, _ in steps.passes].index(typed_passes.NativeLowering)
            steps.passes.insert(at, (KeepLock, "keep the lock"))
            steps.finalize()
        return pipelines


@compiler_machinery.register_pass(mutates_CFG=False, analysis_only=True)
class KeepLock(compiler_machinery.AnalysisPass):
    """Only now are the options of a live function other than those of a simulation.

    Numba compiles a rule's kernels again for a caller with other options.
    """

    _name = "evenhand_keep_lock"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Nothing else changes."""
        state.flags.release_gil = False
        return False


def options(inner: bool = False, live: bool = False) -> dict[str, Any]:
    """The options of `njit` for a function.

    Args:
        inner: whether only compiled functions call it.
        live: whether it keeps the interpreter's lock.
    """
    if not all(hasattr(_LIBRARY, name) for name in _NEEDED):
        return {"nogil": not live}
    kind = InnerCompiler if inner else LiveCompiler if live else OuterCompiler
    return {"nogil": True, "pipeline_class": kind}


def once(function: Any) -> Any:
    """Let Numba compile `function` once for all whole numbers, and not for each named in a call.

    Numba tells the types of `1` and of `LANES` apart, and even tries the value that a variable
    begins with. Where it matters what the number is, the function is copied into its caller, and
    LLVM knows it there.
    """
    choose = getattr(function, "get_call_template", None)
    if choose is not None:
        function.get_call_template = lambda args, kws: choose(
            tuple(types.unliteral(kind) for kind in args),
            {name: types.unliteral(kind) for name, kind in kws.items()},
        )
    return function
