"""Small symmetric matrices, compiled: LAPACK's calls would take longer than the work at d = 2."""

from __future__ import annotations

import numpy as np

from evenhand._compile import compiled, inlined

TINY = 1e-250


@inlined
def invert(matrix):  # type: ignore[no-untyped-def]
    """Invert a symmetric positive definite matrix in place (Gauss and Jordan).

    A pivot that rounding has made 0 or negative stands for a direction without any precision: it
    counts as a tiny number, so that the inverse is large there and not NaN.
    """
    d = matrix.shape[0]
    for k in range(d):
        pivot = 1.0 / max(matrix[k, k], TINY)
        matrix[k, k] = 1.0
        for j in range(d):
            matrix[k, j] *= pivot
        for i in range(d):
            if i != k:
                factor = matrix[i, k]
                matrix[i, k] = 0.0
                for j in range(d):
                    matrix[i, j] -= factor * matrix[k, j]
    for i in range(d):  # both halves alike, to the last bit
        for j in range(i):
            mean = 0.5 * (matrix[i, j] + matrix[j, i])
            matrix[i, j] = mean
            matrix[j, i] = mean


@inlined
def times_vector(matrix, vector, out):  # type: ignore[no-untyped-def]
    """out = matrix vector, for a symmetric matrix: by columns, which the compiler vectorises."""
    d = vector.size
    for k in range(d):
        out[k] = 0.0
    for j in range(d):
        for k in range(d):
            out[k] += matrix[j, k] * vector[j]


@compiled
def leading_direction(matrix):  # type: ignore[no-untyped-def]
    """The eigenvector of the largest eigenvalue, and that eigenvalue.

    By squaring the matrix ten times, which leaves of the other directions what they have to the
    power of 1024. Two equal eigenvalues leave a mixture of their directions, as good as any.

    Example:
        >>> import numpy as np
        >>> from evenhand.policies.pooled._linear import leading_direction
        >>> direction, value = leading_direction(np.array([[2.0, 1.0], [1.0, 2.0]]))
        >>> np.abs(direction).round(6).tolist(), round(value, 6)
        ([0.707107, 0.707107], 3.0)
    """
    d = matrix.shape[0]
    power, square = matrix.copy(), np.empty((d, d))
    for _ in range(10):
        trace = 0.0
        for k in range(d):
            trace += power[k, k]
        if not trace > 0.0:
            break
        for i in range(d):
            for j in range(d):
                square[i, j] = 0.0
            for k in range(d):
                factor = power[i, k] / trace / trace
                for j in range(d):
                    square[i, j] += factor * power[k, j]
        power, square = square, power
    best = 0
    for k in range(1, d):
        if power[k, k] > power[best, best]:
            best = k
    direction = power[best].copy()
    length = np.sqrt(np.sum(direction * direction))
    if not length > 0.0:
        direction[:] = 0.0
        direction[0] = length = 1.0
    direction /= length
    value = 0.0
    for i in range(d):
        for j in range(d):
            value += direction[i] * matrix[i, j] * direction[j]
    return direction, value
