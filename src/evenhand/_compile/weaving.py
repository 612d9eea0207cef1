"""Woven functions are analysed once, and not again at each of their calls.

Numba puts the lines of a function with `inline="always"` into each of its callers. Before that it
reads the function's bytecode, and does the same with the functions woven into it, anew for every
call: with the copies that it makes, that was a seventh of the time to compile. Here the lines are
kept after the first time. What a caller gets is a copy, as before, so the code that runs is the
same.

This depends on some classes inside Numba (measured with 0.68). Where they are missing, Numba does
it in its own way. For `evenhand._compile` alone.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

from numba.core import (
    bytecode,
    compiler,
    compiler_machinery,
    inline_closurecall,
    ir,
    untyped_passes,
)

# A Numba without these weaves in its own way.
_PASS: Any = getattr(untyped_passes, "InlineInlinables", object)
_WORKER: Any = getattr(inline_closurecall, "InlineWorker", object)
_KNOWN = hasattr(_PASS, "_do_work") and all(
    hasattr(_WORKER, name) for name in ("inline_ir", "run_untyped_passes")
)

_KEPT: dict[Any, Any] = {}  # the analysed lines of our own functions, by function


def woven_into(steps: Any) -> Any:
    """Numba's steps with `Weaving` in place of its own pass."""
    if _KNOWN:
        steps.passes = [(Weaving if step is _PASS else step, text) for step, text in steps.passes]
        steps.finalize()
    return steps


class Weaving(_PASS):  # type: ignore[misc]
    """Numba's pass, with lines that are kept."""

    _name = "evenhand_weaving"

    def _do_work(self, *call: Any) -> Any:
        worker = call[-1]
        if "inline_ir" not in vars(worker):
            worker._compiler_pipeline = _steps_before_types
            worker.run_untyped_passes = partial(_lines_of, worker, worker.run_untyped_passes)
            worker.inline_ir = partial(_put, worker.inline_ir)
        return super()._do_work(*call)


if _KNOWN:
    compiler_machinery.register_pass(mutates_CFG=True, analysis_only=False)(Weaving)


def _steps_before_types(state: Any) -> Any:
    return woven_into(compiler.DefaultPassBuilder.define_untyped_pipeline(state))


def _lines_of(worker: Any, analyse: Callable[..., Any], function: Any) -> Any:
    """The analysed lines of a function, for one call of it.

    A user's function may be defined anew, or call one that is: it is analysed each time.
    """
    if not function.__module__.startswith("evenhand."):
        return analyse(function)
    if function not in _KEPT:
        _KEPT[function] = analyse(function)
    worker.flags.enable_ssa = False  # as `analyse` leaves it
    return _copy(_KEPT[function], function)


class _Once(ir.Block):
    """A block that is put in one place only, and so need not be copied again."""

    def __deepcopy__(self, memo: dict[int, Any]) -> _Once:
        return self


def _copy(kept: Any, function: Any) -> Any:
    """A copy of lines. Numba's own would copy all names of the function for each of its blocks."""
    lines = kept.copy()
    # Its variables are named by it in the caller: each call has its own.
    lines.func_id = bytecode.FunctionIdentity.from_function(function)
    memo: dict[int, Any] = {}
    lines.blocks = {}
    for label, block in kept.blocks.items():
        lines.blocks[label] = here = _Once(copy.deepcopy(block.scope, memo), block.loc)
        here.body = [copy.deepcopy(line, memo) for line in block.body]
    return lines


def _put(put: Callable[..., Any], caller: Any, *call: Any, **named: Any) -> Any:
    """Put lines into a caller; once they are there, they are like all others."""
    placed = put(caller, *call, **named)
    for block in caller.blocks.values():
        block.__class__ = ir.Block
    return placed
