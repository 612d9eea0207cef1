"""Arithmetic on four numbers at once, as one instruction of the processor.

The compiler does not find these by itself: Numba leaves LLVM's pass for it off, and sums must keep
their order, because live decisions and simulations have to agree bit by bit. Every operation here
rounds like four single operations. LLVM splits it where registers are shorter.
"""
# ruff: noqa: ARG001  # an intrinsic is called with the types of its arguments, and says which it takes

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, errors, types
from numba.extending import models, register_model

from evenhand._compile.intrinsics import operation

LANES = 4  # doubles in an AVX2 register


class FourType(types.Type):
    """Four doubles in a register."""

    def __init__(self) -> None:
        super().__init__(name="Four")


FOUR, NUMBER, NUMBERS = FourType(), types.float64, types.CPointer(types.float64)
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_ROOT = f"llvm.sqrt.v{LANES}f64"
_ORDER = ir.VectorType(ir.IntType(32), LANES)


@register_model(FourType)
class _FourModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


def _written(signature: Any, write: Callable[..., Any]) -> Any:
    """The result of an intrinsic for Numba; `write` takes LLVM's builder and the arguments."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        value = write(builder, *given)
        if isinstance(signature.return_type, types.UniTuple):
            return context.make_tuple(builder, signature.return_type, value)
        return context.get_dummy_value() if signature.return_type == types.none else value

    return signature, code


# Memory -----------------------------------------------------------------------------------------


@operation
def place(typing: Any, numbers: Any, p: Any) -> Any:
    """The address of number p of an array in C order, or of number p behind another place.

    Numbers from there on are `place(array, p)[q]`, without a check of bounds and without Numba's
    reference counts, which cost more than a small solve. So the array must be an argument, or be
    used again after the last use of its places.
    """
    if numbers == NUMBERS:
        return _written(NUMBERS(numbers, types.intp), lambda builder, at, p: builder.gep(at, [p]))
    if not (isinstance(numbers, types.Array) and numbers.layout == "C"):
        raise errors.TypingError(f"place in {numbers}; allowed is an array in C order, or a place")

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        array, p = given
        return builder.gep(context.make_array(numbers)(context, builder, array).data, [p])

    return types.CPointer(numbers.dtype)(numbers, types.intp), code


@operation
def few_numbers(typing: Any) -> Any:
    """Working memory of sixteen numbers for the calling function, until it returns.

    Where places in it are known at compile time, the numbers stay in registers.
    """

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        room = cgutils.alloca_once(builder, ir.ArrayType(ir.DoubleType(), 4 * LANES))
        return builder.bitcast(room, ir.DoubleType().as_pointer())

    return NUMBERS(), code


@operation
def check_list(typing: Any, arms: Any) -> Any:
    """Refuse, at compile time, a mask in place of a list of arms: it would be read as a list."""
    if not (isinstance(arms, types.Array) and isinstance(arms.dtype, types.Integer)):
        raise errors.TypingError(f"arms are {arms}; allowed is a list, as `listed` makes of a mask")

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return context.get_dummy_value()

    return types.none(arms), code


@operation
def four(typing: Any, numbers: Any, p: Any) -> Any:
    """The numbers p to p + 3."""

    def write(builder: Any, numbers: Any, p: Any) -> Any:
        return builder.load(_address(builder, numbers, p), align=8)

    return _written(FOUR(NUMBERS, types.intp), write)


@operation
def put(typing: Any, numbers: Any, p: Any, value: Any) -> Any:
    """Write four numbers to the places p to p + 3."""

    def write(builder: Any, numbers: Any, p: Any, value: Any) -> Any:
        builder.store(value, _address(builder, numbers, p), align=8)

    return _written(types.none(NUMBERS, types.intp, FOUR), write)


def _address(builder: Any, numbers: Any, p: Any) -> Any:
    return builder.bitcast(builder.gep(numbers, [p]), _VECTOR.as_pointer())


# Arithmetic -------------------------------------------------------------------------------------


@operation
def added(typing: Any, a: Any, b: Any) -> Any:
    """a + b."""
    return _written(FOUR(FOUR, FOUR), lambda builder, a, b: builder.fadd(a, b))


@operation
def times(typing: Any, a: Any, b: Any) -> Any:
    """a * b."""
    return _written(FOUR(FOUR, FOUR), lambda builder, a, b: builder.fmul(a, b))


@operation
def plus_product(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """a + b * c, rounded twice."""

    def write(builder: Any, a: Any, b: Any, c: Any) -> Any:
        return builder.fadd(a, builder.fmul(b, c))

    return _written(FOUR(FOUR, FOUR, FOUR), write)


@operation
def minus_product(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """a - b * c, rounded twice."""

    def write(builder: Any, a: Any, b: Any, c: Any) -> Any:
        return builder.fsub(a, builder.fmul(b, c))

    return _written(FOUR(FOUR, FOUR, FOUR), write)


@operation
def over(typing: Any, a: Any, b: Any) -> Any:
    """a / b."""
    return _written(FOUR(FOUR, FOUR), lambda builder, a, b: builder.fdiv(a, b))


@operation
def root(typing: Any, a: Any) -> Any:
    """The square roots."""

    def write(builder: Any, a: Any) -> Any:
        kind = ir.FunctionType(_VECTOR, [_VECTOR])
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, _ROOT), [a])

    return _written(FOUR(FOUR), write)


@operation
def below(typing: Any, a: Any, limit: Any, other: Any) -> Any:
    """a if |a| is below the limit, and the other if it is not, or is NaN."""

    def write(builder: Any, a: Any, limit: Any, other: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", _size(builder, a), limit), a, other)

    return _written(FOUR(FOUR, FOUR, FOUR), write)


@operation
def at_least(typing: Any, a: Any, limit: Any) -> Any:
    """a where it is above the limit; the limit where it is not, or is NaN."""

    def write(builder: Any, a: Any, limit: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", a, limit), a, limit)

    return _written(FOUR(FOUR, FOUR), write)


@operation
def is_new(typing: Any, factors: Any, features: Any, least: Any) -> Any:
    """Whether any of four features is `least` or larger and has a factor of 0."""

    def write(builder: Any, factors: Any, features: Any, least: Any) -> Any:
        none = builder.fcmp_ordered("==", factors, ir.Constant(_VECTOR, [0.0] * LANES))
        large = builder.fcmp_ordered(">=", _size(builder, features), least)
        lanes = builder.bitcast(builder.and_(none, large), ir.IntType(LANES))
        return builder.icmp_unsigned("!=", lanes, ir.Constant(ir.IntType(LANES), 0))

    return _written(types.boolean(FOUR, FOUR, FOUR), write)


def _size(builder: Any, a: Any) -> Any:
    """|a|, by clearing the four sign bits."""
    whole = ir.VectorType(ir.IntType(64), LANES)
    mask = ir.Constant(whole, [2**63 - 1] * LANES)
    return builder.bitcast(builder.and_(builder.bitcast(a, whole), mask), _VECTOR)


# Between four and single numbers ----------------------------------------------------------------


@operation
def broadcast(typing: Any, value: Any) -> Any:
    """One number four times."""

    def write(builder: Any, value: Any) -> Any:
        first = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), value, _lane(0))
        return _mixed(builder, first, first, 0, 0, 0, 0)

    return _written(FOUR(NUMBER), write)


@operation
def packed(typing: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Four single numbers."""

    def write(builder: Any, *values: Any) -> Any:
        vector = ir.Constant(_VECTOR, ir.Undefined)
        for lane, value in enumerate(values):
            vector = builder.insert_element(vector, value, _lane(lane))
        return vector

    return _written(FOUR(NUMBER, NUMBER, NUMBER, NUMBER), write)


@operation
def unpacked(typing: Any, a: Any) -> Any:
    """The four numbers as a tuple."""

    def write(builder: Any, a: Any) -> Any:
        return [builder.extract_element(a, _lane(lane)) for lane in range(LANES)]

    return _written(types.UniTuple(NUMBER, LANES)(FOUR), write)


@operation
def transposed(typing: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Rows to columns: the first numbers of all four, the second, the third, the fourth."""

    def write(builder: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
        even_ab, even_cd = _mixed(builder, a, b, 0, 4, 2, 6), _mixed(builder, c, d, 0, 4, 2, 6)
        odd_ab, odd_cd = _mixed(builder, a, b, 1, 5, 3, 7), _mixed(builder, c, d, 1, 5, 3, 7)
        return [
            _mixed(builder, even_ab, even_cd, 0, 1, 4, 5),
            _mixed(builder, odd_ab, odd_cd, 0, 1, 4, 5),
            _mixed(builder, even_ab, even_cd, 2, 3, 6, 7),
            _mixed(builder, odd_ab, odd_cd, 2, 3, 6, 7),
        ]

    return _written(types.UniTuple(FOUR, LANES)(FOUR, FOUR, FOUR, FOUR), write)


def _lane(lane: int) -> Any:
    return ir.Constant(ir.IntType(32), lane)


def _mixed(builder: Any, a: Any, b: Any, *order: int) -> Any:
    """Four of the eight numbers of two vectors."""
    return builder.shuffle_vector(a, b, ir.Constant(_ORDER, list(order)))
