"""Random numbers in compiled code: for policies by a counter, for worlds from NumPy's generator.

Those of a policy come from a counter and a mixer, which are cheap, exact and portable: they depend
only on the policy's seed and the number of the round. So they cost two nanoseconds, the live
decision and the simulation draw the same ones, and a saved policy needs no generator state besides
its seed and round. The mixer is SplitMix64 (Steele, Lea and Flood, 2014).

Those of a world are the numbers that `generator.random()` gives, by NumPy's PCG64, inlined. Numba
calls a function of NumPy for every single number. Here the state of the generator stays in
registers while many are drawn: 2 nanoseconds a number instead of 5, which saves a sixth of a round
at n = 10, d = 2. The state is written back, so NumPy continues from there. The step is O'Neill's
PCG XSL RR 128/64: state * multiplier + increment modulo 2^128. The upper and the lower half are
xored, and rotated by the six highest bits.
"""
# ruff: noqa: ARG001  # an intrinsic is called with the types of its arguments

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import overload

from evenhand._compile import INLINED, compiled, woven
from evenhand._compile.intrinsics import operation
from evenhand.errors import InputError, setting

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_ONE = np.uint64(1)


@woven
def mix(key, position):  # type: ignore[no-untyped-def]
    """64 well mixed bits, a function of `key` and `position` only."""
    z = np.uint64(key) + _GOLDEN * (np.uint64(position) + _ONE)
    z = (z ^ (z >> _S30)) * _FIRST
    z = (z ^ (z >> _S27)) * _SECOND
    return z ^ (z >> _S31)


@woven
def uniform(key, position):  # type: ignore[no-untyped-def]
    """A number in [0, 1) for the place `position` of the stream `key`.

    Example:
        >>> import numpy as np
        >>> from evenhand._random import uniform
        >>> draws = [uniform(np.uint64(7), place) for place in range(1000)]
        >>> bool(0.45 < np.mean(draws) < 0.55)
        True
    """
    return float(mix(key, position) >> _S11) * (1.0 / 9007199254740992.0)


@compiled
def normal(key, position):  # type: ignore[no-untyped-def]
    """A standard normal number for the place `position` of the stream `key` (Box and Muller)."""
    # In (0, 1]: the logarithm of 0 is infinite.
    first = 1.0 - uniform(key, 2 * position)
    return np.sqrt(-2.0 * np.log(first)) * np.cos(2.0 * np.pi * uniform(key, 2 * position + 1))


_MULTIPLIER = (2549297995355413924 << 64) | 4865540595714422341
_WIDE, _WORD, _NUMBER = ir.IntType(128), ir.IntType(64), ir.DoubleType()


def fill_uniform(generator: Any, numbers: Any) -> None:
    """Fill a C array of doubles with uniform numbers in [0, 1).

    Example:
        >>> import numpy as np
        >>> from evenhand._random import fill_uniform
        >>> row = np.empty((1, 3))
        >>> fill_uniform(np.random.default_rng(1), row)
        >>> bool((row == np.random.default_rng(1).random((1, 3))).all())
        True
    """
    generator.random(out=numbers)


@overload(fill_uniform, jit_options=INLINED)
def _fill_uniform(generator, numbers):  # type: ignore[no-untyped-def]
    def by_numpy(generator, numbers):  # type: ignore[no-untyped-def]
        for i in range(numbers.shape[0]):
            for k in range(numbers.shape[1]):
                numbers[i, k] = generator.random()

    def here(generator, numbers):  # type: ignore[no-untyped-def]
        _fill(generator, numbers, numbers.size)

    return here if layout_is_known() and numbers.layout == "C" else by_numpy


@cache
def layout_is_known() -> bool:
    """Whether NumPy stores the state and the increment of a PCG64 as `_fill` reads them."""
    generator = np.random.PCG64(1)
    state = generator.state["state"]
    wanted = state["state"] + (state["inc"] << 128)
    if sys.byteorder != "little":
        return False
    at = ctypes.c_void_p.from_address(generator.ctypes.state_address).value
    return at is not None and ctypes.string_at(at, 32) == wanted.to_bytes(32, "little")


def check_generator(generator: np.random.Generator) -> None:
    """Refuse other bit generators: compiled code would misread their state."""
    if type(generator.bit_generator) is not np.random.PCG64:
        raise InputError(
            f"{setting('generator')} has a {type(generator.bit_generator).__name__}; allowed is a "
            "PCG64: make it with np.random.default_rng"
        )


@operation
def _fill(typing: Any, generator: Any, numbers: Any, size: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind, array_kind, _ = signature.args
        generator, array, size = given
        proxy = cgutils.create_struct_proxy(kind)(context, builder, generator)
        bits = cgutils.create_struct_proxy(types.NumPyRandomBitGeneratorType("bits"))(
            context, builder, proxy.bit_generator
        )
        at = builder.load(builder.inttoptr(bits.state_address, _WIDE.as_pointer().as_pointer()))
        step = builder.load(builder.gep(at, [ir.Constant(ir.IntType(32), 1)]), align=8)
        state = cgutils.alloca_once_value(builder, builder.load(at, align=8))
        data = context.make_array(array_kind)(context, builder, array).data
        with cgutils.for_range(builder, size) as loop:
            now = builder.add(
                builder.mul(builder.load(state), ir.Constant(_WIDE, _MULTIPLIER)), step
            )
            builder.store(now, state)
            builder.store(_uniform(builder, now), builder.gep(data, [loop.index]))
        builder.store(builder.load(state), at, align=8)
        return context.get_dummy_value()

    return types.none(generator, numbers, types.intp), code


def _uniform(builder: Any, state: Any) -> Any:
    """The number in [0, 1) of a state: 53 of its bits."""
    high = builder.trunc(builder.lshr(state, ir.Constant(_WIDE, 64)), _WORD)
    mixed = builder.xor(high, builder.trunc(state, _WORD))
    turn = builder.lshr(high, ir.Constant(_WORD, 58))
    back = builder.and_(builder.neg(turn), ir.Constant(_WORD, 63))
    turned = builder.or_(builder.lshr(mixed, turn), builder.shl(mixed, back))
    whole = builder.sitofp(builder.lshr(turned, ir.Constant(_WORD, 11)), _NUMBER)
    return builder.fmul(whole, ir.Constant(_NUMBER, 2.0**-53))
