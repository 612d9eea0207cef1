"""Small vectors and symmetric matrices, compiled: at d = 2, a call of LAPACK takes longer.

They are places in memory (`evenhand.leastsquares._simd.place`): d numbers, or d x d by rows.
"""

from __future__ import annotations

import numpy as np

from evenhand._compile import compiled, inlined, subroutine
from evenhand._compile.intrinsics import stays_a_function
from evenhand.leastsquares._simd import place

TINY = 1e-200


@subroutine
def invert(matrix, least, d):  # type: ignore[no-untyped-def]
    """Invert a symmetric matrix in place (Gauss-Jordan), whose eigenvalues are `least` or more.

    Then no pivot can be smaller, except by rounding, which could even make it negative.
    """
    stays_a_function()
    if d == 2:
        invert_here(matrix, least, 2)
    else:
        invert_here(matrix, least, d)


@inlined
def invert_here(matrix, least, d):  # type: ignore[no-untyped-def]
    """`invert`, copied into its caller."""
    for k in range(d):
        row = place(matrix, k * d)
        # A pivot is a Schur complement, and no smaller than the smallest eigenvalue.
        pivot = 1.0 / max(row[k], least)
        row[k] = 1.0
        for j in range(d):
            row[j] *= pivot
        for i in range(d):
            if i != k:
                other = place(matrix, i * d)
                # Row operations on (matrix | I) at once: column k of the left is known to become
                # e_k, so its place holds the column of the right.
                factor = other[k]
                other[k] = 0.0
                for j in range(d):
                    other[j] -= factor * row[j]
    for i in range(d):  # make both halves equal to the last bit
        for j in range(i):
            mean = 0.5 * (matrix[i * d + j] + matrix[j * d + i])
            matrix[i * d + j] = mean
            matrix[j * d + i] = mean


@inlined
def times_vector(matrix, vector, out, d):  # type: ignore[no-untyped-def]
    """out = matrix vector."""
    for k in range(d):
        out[k] = dot(place(matrix, k * d), vector, d)


@inlined
def dot(a, b, d):  # type: ignore[no-untyped-def]
    """a . b."""
    total = 0.0
    for k in range(d):
        total += a[k] * b[k]
    return total


@inlined
def form(a, matrix, b, d):  # type: ignore[no-untyped-def]
    """a' matrix b."""
    total = 0.0
    for k in range(d):
        total += a[k] * dot(place(matrix, k * d), b, d)
    return total


@inlined
def clear(numbers, size):  # type: ignore[no-untyped-def]
    """Set the first `size` numbers to 0; a slice would take ten times as long to compile."""
    for k in range(size):
        numbers[k] = 0.0


@subroutine
def product(a, b, out, d):  # type: ignore[no-untyped-def]
    """out = a b, for two matrices of which b is symmetric."""
    stays_a_function()
    if d == 2:
        product_here(a, b, out, 2)
    else:
        product_here(a, b, out, d)


@inlined
def product_here(a, b, out, d):  # type: ignore[no-untyped-def]
    """`product`, copied into its caller.

    Row k of a b is b' a_k, with a_k row k of a. b is symmetric, so that is b a_k: both are read by
    rows. For a b that is not symmetric the result would be a b'.
    """
    for k in range(d):
        times_vector(b, place(a, k * d), place(out, k * d), d)


@compiled
def leading_direction(matrix):  # type: ignore[no-untyped-def]
    """The eigenvector of the largest eigenvalue, and that eigenvalue.

    The matrix is squared ten times, which raises the ratio of every other eigenvalue to the largest
    to the power of 1024. Two equal eigenvalues leave a mixture of their directions, which will do.

    Example:
        >>> import numpy as np
        >>> from evenhand.leastsquares._small_matrices import leading_direction
        >>> direction, value = leading_direction(np.array([[2.0, 1.0], [1.0, 2.0]]))
        >>> np.abs(direction).round(6).tolist(), round(value, 6)
        ([0.707107, 0.707107], 3.0)
    """
    stays_a_function()
    d = matrix.shape[0]
    power, square = matrix.copy(), np.empty((d, d))
    for _ in range(10):
        trace = 0.0
        for k in range(d):
            trace += power[k, k]
        if not trace > TINY:
            break
        for k in range(d):
            for j in range(d):
                # By the trace, which is the sum of the eigenvalues: the largest stays between 1 / d
                # and 1, and squares neither overflow nor vanish.
                power[k, j] /= trace
        product(place(power, 0), place(power, 0), place(square, 0), d)
        power, square = square, power
    # The power is close to v v', each of whose columns is v times a number. The longest one has
    # lost the fewest digits, and its diagonal element, v_k^2, is the largest.
    best = 0
    for k in range(1, d):
        if power[k, k] > power[best, best]:
            best = k
    direction, length = np.zeros(d), 0.0
    for k in range(d):
        length += power[best, k] * power[best, k]
    if length > TINY:
        for k in range(d):
            direction[k] = power[best, k] / np.sqrt(length)
    else:
        direction[0] = 1.0
    value = form(place(direction, 0), place(matrix, 0), place(direction, 0), d)
    return direction, value
