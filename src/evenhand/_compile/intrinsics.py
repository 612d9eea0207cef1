"""Two things that Numba does not offer, for code that runs in every simulated round.

`borrowed`: arrays without the counting of references. Numba counts references to every array of a
tuple whenever the tuple, or a field of it, is named or passed on. It was a third of a simulated
round at n = 10, d = 2 (1.04 against 0.69 microseconds). Borrowing is safe where somebody else holds
the arrays for as long as they are used here: the caller of a compiled function holds its arguments
until it returns. So only the arguments of functions that are called from Python are borrowed, at
their beginning, and nothing borrowed is ever returned or kept.

`stays_a_function`: a function that is not copied into its callers. LLVM copies functions that it
thinks small enough, and copies again in the copies. Rare code inside code that runs in every round
takes registers from the lines around it, and is optimised again in every caller, which was most of
the time to compile.
"""
# ruff: noqa: ARG001  # an intrinsic is called with the types of its arguments, and says which it takes

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic


def operation(function: Callable[..., Any]) -> Any:
    """Numba's `intrinsic`, typed as Any: a type checker would misread its result."""
    return intrinsic(function)


def _ownerless(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """The value without reference counts, in tuples however deep."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        kinds: Any = kind
        members = [
            _ownerless(context, builder, member, builder.extract_value(value, at))
            for at, member in enumerate(kinds)
        ]
        return context.make_tuple(builder, kind, members)
    if isinstance(kind, types.NumPyRandomGeneratorType):
        proxy = cgutils.create_struct_proxy(kind)(context, builder, value)
        proxy.meminfo = cgutils.get_null_value(proxy.meminfo.type)
        return proxy._getvalue()
    return value


@operation
def borrowed(typing: Any, value: Any) -> Any:
    """The value, with arrays whose references nobody counts: valid as long as the caller's are."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return _ownerless(context, builder, signature.args[0], given[0])

    return value(value), code


@operation
def stays_a_function(typing: Any) -> Any:
    """At the beginning of a compiled function: LLVM must not copy it into its callers."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.none(), code
