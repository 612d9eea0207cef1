"""The general form of the model, and its posterior (Gaussian, in closed form).

    y = z . M + delta_i . x + noise           z = w (x) x, w: the weights of the candidate
    delta_i ~ N(0, tau^2 I)                   what is the arm's own; none where arms come once
    M ~ N(0, P)                               a vector per column: the mean of all, the effects of
                                              levels, and those of intersections

P has a block per column, which is the same for all columns of a kind: one variance along v, the
leading direction of contexts, and one across it. With A_i = sum x x', C_i = sum z x' and b_i =
sum x y of arm i, and delta_i integrated out,

    S_i = (A_i / sigma^2 + I / tau^2)^-1,  u_i = S_i b_i / sigma^2,  D_i = S_i C_i' / sigma^2
    V = (P^-1 + sum z z' / sigma^2 - sum_i C_i D_i / sigma^2)^-1
    M^ = V (sum z y - sum_i C_i u_i) / sigma^2,  delta_i^ = u_i - D_i M^

With one attribute whose levels are the groups of the arms, this is the model of
`evenhand.policies.pooled_group_fair._posterior` with one tau for all groups.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand._compile import subroutine
from evenhand._compile.intrinsics import stays_a_function
from evenhand.leastsquares._simd import place
from evenhand.leastsquares._small_matrices import invert

ROUNDING = 1e-12  # of a sum: a smaller difference is rounding


class Data(NamedTuple):
    """The sums, in units of the root mean square of features and rewards."""

    G: NDArray[np.float64]  # (qd, qd), sum of z z'
    h: NDArray[np.float64]  # (qd,), sum of z y
    total: NDArray[np.float64]  # sum of y y, and how many rewards there are
    C: NDArray[np.float64]  # (arms, qd, d); its first d rows are A
    b: NDArray[np.float64]  # (arms, d)
    number: NDArray[np.float64]  # how many rewards each arm has


class Variances(NamedTuple):
    """The hyperparameters."""

    sigma2: NDArray[np.float64]  # of the noise: one number
    tau2: NDArray[np.float64]  # of what is the arms' own: one number
    along: NDArray[np.float64]  # per kind of column: the variance in the direction v
    across: NDArray[np.float64]  # per kind: that in all other directions
    v: NDArray[np.float64]  # (d,)


class Posterior(NamedTuple):
    """The posterior of arms, and of the effects M."""

    S: NDArray[np.float64]  # (arms, d, d)
    u: NDArray[np.float64]  # (arms, d)
    D: NDArray[np.float64]  # (arms, d, qd)
    V: NDArray[np.float64]  # (qd, qd)
    M: NDArray[np.float64]  # (qd,)
    r: NDArray[np.float64]  # (qd,), V^-1 M
    precision: NDArray[np.float64]  # (qd, qd): V^-1 without that of the prior


@subroutine
def blank_posterior(n, size, d):  # type: ignore[no-untyped-def]
    """Memory for a posterior of n arms, d features, and `size` effects."""
    stays_a_function()
    return Posterior(
        np.empty((n, d, d)),
        np.empty((n, d)),
        np.empty((n, d, size)),
        np.empty((size, size)),
        np.empty(size),
        np.empty(size),
        np.empty((size, size)),
    )


@subroutine
def units_of(sums, size, d):  # type: ignore[no-untyped-def]
    """The root mean square of every feature, and that of rewards; 1 where all were 0.

    The first column is 1 for all, so the first d rows of z z' are those of x x'.
    """
    stays_a_function()
    unit, number = np.empty(d), max(sums[sums.size - 1], 1.0)
    for k in range(d):
        unit[k] = np.sqrt(sums[k * size + k] / number)
        if not unit[k] > 1e-150:
            unit[k] = 1.0
    of_rewards = np.sqrt(sums[sums.size - 2] / number)
    return unit, of_rewards if of_rewards > 1e-150 else 1.0


@subroutine
def add_in_units(data, sums, of_arms, unit, of_rewards):  # type: ignore[no-untyped-def]
    """Add the sums of a state to `data`, for features and rewards divided by their units."""
    stays_a_function()
    d, size = unit.size, data.h.size
    for k in range(size):
        for j in range(size):
            data.G[k, j] += sums[k * size + j] / unit[k % d] / unit[j % d]
        data.h[k] += sums[size * size + k] / unit[k % d] / of_rewards
    data.total[0] += sums[size * size + size] / of_rewards / of_rewards
    data.total[1] += sums[size * size + size + 1]
    for i in range(data.number.size):
        for k in range(size):
            for j in range(d):
                data.C[i, k, j] += of_arms[i, k * d + j] / unit[k % d] / unit[j]
        for k in range(d):
            data.b[i, k] += of_arms[i, size * d + k] / unit[k] / of_rewards
        data.number[i] += of_arms[i, size * d + d]


@subroutine
def blank_data(n, size, d):  # type: ignore[no-untyped-def]
    """Sums of nothing."""
    stays_a_function()
    return Data(
        np.zeros((size, size)),
        np.zeros(size),
        np.zeros(2),
        np.zeros((n, size, d)),
        np.zeros((n, d)),
        np.zeros(n),
    )


@subroutine
def work_out(data, kinds, variances, post):  # type: ignore[no-untyped-def]
    """Fill in the posterior, given the variances of the model.

    V^-1 as written above is a small difference of large numbers where sigma is small. So the
    weights of a candidate are split into their mean w_i for the arm and the rest: with
    E_i = C_i - w_i (x) A_i, and I - A_i S_i / sigma^2 = S_i / tau^2, the parts of the mean are
    small by themselves, and E_i is zero where an arm's membership is fixed.
    """
    stays_a_function()
    size, per_noise = data.h.size, 1.0 / variances.sigma2[0]
    d, n = variances.v.size, data.number.size
    for k in range(size):
        post.r[k] = data.h[k]
        for j in range(size):
            post.V[k, j] = data.G[k, j]  # the part explained by arms' means is taken off below
            post.precision[k, j] = 0.0
    room = np.empty((2, size, d))
    for i in range(n):
        _work_out_arm(data, variances, post, i, room[0], room[1])
    for k in range(size):
        # What is left of sum (z - w (x) x) y. Where membership is fixed it is 0 but for rounding,
        # which 1 / sigma^2 would blow up. Where arms come once nothing has been taken off, and
        # nothing is rounding.
        small = ROUNDING * abs(data.h[k]) if n else 0.0
        post.r[k] = post.r[k] * per_noise if abs(post.r[k]) > small else 0.0
        for j in range(size):
            # The same for the matrix, by the Cauchy-Schwarz bound of its element.
            small = ROUNDING * np.sqrt(data.G[k, k] * data.G[j, j]) if n else 0.0
            if abs(post.V[k, j]) > small:
                post.precision[k, j] += post.V[k, j] * per_noise
    for i in range(n):
        _add_arm_to_r(data, variances, post, i)
    work_out_effects(kinds, variances, post)


@subroutine
def mean_weight(C, c, d):  # type: ignore[no-untyped-def]
    """The mean of an arm's weights of a column, by the squares of contexts."""
    of_column = of_all = 0.0
    for k in range(d):
        of_column += C[c + k, k]
        of_all += C[k, k]
    return of_column / of_all if of_all > 0.0 else 0.0


@subroutine
def _work_out_arm(data, variances, post, i, E, SE):  # type: ignore[no-untyped-def]
    """S_i, u_i and D_i, and what they add to the precision of the effects.

    The precision of the effects is sum z z' / sigma^2 less C_i S_i C_i' / sigma^4 of every arm: its
    own part takes away what cannot be told from it. Take the blocks of two columns, with the mean
    weights v and w, and write A for the arm's sum of x x'. Then C_i has the blocks v A + E and
    w A + F, where E and F are what the weights vary by, and the arm takes off

        (v A + E) S (w A + F) / sigma^4

    S^-1 = A / sigma^2 + p I gives A S / sigma^2 = I - p S, and with it
    A S A / sigma^4 = A / sigma^2 - p (I - p S). So the arm's part of sum z z' / sigma^2, less that,
    is

        (part of z z' - v w A - v F - w E) / sigma^2
        + p (v w (I - p S) + (v S F + w E S) / sigma^2)  -  E S F / sigma^4

    The first line is collected in `post.V` and is exactly what is left of z z' beside the means;
    the second goes to `post.precision`. Nothing in it is of the size of A / sigma^2 where
    membership is fixed (E = F = 0): only v w p (I - p S) is left, which is between 0 and v w p
    however small sigma is.

    D_i = S C_i' / sigma^2 has the blocks v (I - p S) + S E / sigma^2, by the same identity. Blocks
    of sums of w x x' are symmetric, so no transposes are needed.
    """
    stays_a_function()
    size, d, per_noise = data.h.size, variances.v.size, 1.0 / variances.sigma2[0]
    S, u, D, C, p = post.S[i], post.u[i], post.D[i], data.C[i], 1.0 / variances.tau2[0]
    for k in range(d):
        u[k] = 0.0
        for j in range(d):
            S[k, j] = C[k, j] * per_noise
        S[k, k] += p
        for j in range(size):
            D[k, j] = 0.0
    if data.number[i] == 0.0:  # nothing seen: S_i = tau^2 I
        for k in range(d):
            S[k, k] = variances.tau2[0]
        return
    # A / sigma^2 is positive semidefinite, so no eigenvalue is below p.
    invert(place(S, 0), p, d)
    for k in range(d):
        for j in range(d):
            u[k] += S[k, j] * data.b[i, j] * per_noise
    for c in range(0, size, d):
        mean = mean_weight(C, c, d)
        for k in range(d):
            post.r[c + k] -= mean * data.b[i, k]
            for j in range(d):
                E[c + k, j] = C[c + k, j] - mean * C[k, j]
        for k in range(d):
            for j in range(d):
                total = 0.0
                for q in range(d):
                    total += S[k, q] * E[c + q, j]
                SE[c + k, j] = total * per_noise
                # p S is between 0 and I, so I - p S is as well.
                D[k, c + j] = mean * ((k == j) - p * S[k, j]) + SE[c + k, j]
    for c in range(0, size, d):
        first = mean_weight(C, c, d)
        if first == 0.0 and not _any(E, c, d):  # the arm has never been in this column
            continue
        for e in range(0, size, d):
            second = mean_weight(C, e, d)
            if second == 0.0 and not _any(E, e, d):
                continue
            # With the mean weights v and w of both columns, the precision of their effects gains
            # p (v w (I - p S) + (v S E_e + w E_c S) / sigma^2) - E_c S E_e / sigma^4.
            for k in range(d):
                for j in range(d):
                    known = first * second * C[k, j] + first * E[e + k, j] + second * E[c + k, j]
                    post.V[c + k, e + j] -= known
                    of_means = first * second * ((k == j) - p * S[k, j])
                    of_means += first * SE[e + k, j] + second * SE[c + j, k]
                    of_rest = 0.0
                    for q in range(d):
                        of_rest += E[c + k, q] * SE[e + q, j]
                    post.precision[c + k, e + j] += p * of_means - of_rest * per_noise


@subroutine
def _add_arm_to_r(data, variances, post, i):  # type: ignore[no-untyped-def]
    """What an arm adds to V^-1 M: p w_i (x) u_i - E_i u_i / sigma^2."""
    stays_a_function()
    size, d, per_noise = data.h.size, variances.v.size, 1.0 / variances.sigma2[0]
    C, u, p = data.C[i], post.u[i], 1.0 / variances.tau2[0]
    if data.number[i] == 0.0:
        return
    for c in range(0, size, d):
        mean = mean_weight(C, c, d)
        for k in range(d):
            post.r[c + k] += p * mean * u[k]
            for j in range(d):
                post.r[c + k] -= (C[c + k, j] - mean * C[k, j]) * u[j] * per_noise


@subroutine
def _any(E, c, d):  # type: ignore[no-untyped-def]
    """Whether any number of the block of a column is not 0."""
    for j in range(c, c + d):
        for q in range(d):
            if E[j, q] != 0.0:
                return True
    return False


@subroutine
def fill_precision(kinds, variances, post, out):  # type: ignore[no-untyped-def]
    """V^-1, from the data and the prior; returns a lower bound of its eigenvalues.

    The prior precision has a block for every column, (1 / along - 1 / across) v v' + I / across.
    The data add a positive semidefinite matrix, so no eigenvalue is below the smallest of the
    blocks, which is one over the largest prior variance. Inversion uses it as the least possible
    pivot.

    The two halves of the data's part come from different products and differ in their last bits.
    They are averaged: inversion takes the matrix as symmetric.
    """
    stays_a_function()
    size, d = post.M.size, variances.v.size
    least = np.inf
    for kind in range(variances.along.size):
        least = min(least, 1.0 / max(variances.along[kind], variances.across[kind]))
    for k in range(size):
        for j in range(size):
            out[k, j] = 0.5 * (post.precision[k, j] + post.precision[j, k])
    for column in range(kinds.size):
        along, across = variances.along[kinds[column]], variances.across[kinds[column]]
        for k in range(d):
            for j in range(d):
                along_v = (1.0 / along - 1.0 / across) * variances.v[k] * variances.v[j]
                out[column * d + k, column * d + j] += along_v
            out[column * d + k, column * d + k] += 1.0 / across
    return least


@subroutine
def work_out_effects(kinds, variances, post):  # type: ignore[no-untyped-def]
    """V and M^ from the precision of the data; returns the logarithm of V's determinant."""
    stays_a_function()
    size = post.M.size
    least = fill_precision(kinds, variances, post, post.V)
    determinant = invert_with_determinant(post.V, least)
    for k in range(size):
        post.M[k] = 0.0
        for j in range(size):
            post.M[k] += post.V[k, j] * post.r[j]
    return determinant


@subroutine
def folded(table, basis, d):  # type: ignore[no-untyped-def]
    """(basis (x) I)' table."""
    stays_a_function()
    out = np.zeros((basis.shape[1] * d, table.shape[1]))
    for column in range(basis.shape[0]):
        for row in range(basis.shape[1]):
            share = basis[column, row]
            if share != 0.0:
                for k in range(d):
                    for j in range(table.shape[1]):
                        out[row * d + k, j] += share * table[column * d + k, j]
    return out


@subroutine
def work_out_in(basis, kinds, variances, post):  # type: ignore[no-untyped-def]
    """V and M^ in the directions of a basis (`Design.basis`) alone.

    With flat priors they are unknown in all others, and large numbers would cancel.
    """
    stays_a_function()
    size, d = post.M.size, variances.v.size
    precision = np.empty((size, size))
    least = fill_precision(kinds, variances, post, precision)
    V = folded(folded(precision, basis, d).T, basis, d)
    invert_with_determinant(V, least)
    r, back = folded(post.r.reshape(size, 1), basis, d), basis.T
    # Back in all columns: those outside the basis have an effect of 0, exactly, and no variance.
    half = folded(folded(V, back, d).T, back, d)
    M = np.zeros((V.shape[0], 1))
    for k in range(V.shape[0]):
        for c in range(V.shape[0]):
            M[k, 0] += V[k, c] * r[c, 0]
    M = folded(M, back, d)
    for k in range(size):
        post.M[k] = M[k, 0]
        for c in range(size):
            post.V[k, c] = half[k, c]


@subroutine
def invert_with_determinant(matrix, least):  # type: ignore[no-untyped-def]
    """Invert a symmetric matrix in place; returns the log-determinant of its inverse.

    No eigenvalue is below `least`. For rewards without noise, a precision is a difference with
    errors of 1e-13 of its diagonal: dividing by pivots that small would overflow.
    """
    stays_a_function()
    size, total = matrix.shape[0], 0.0
    smallest = np.empty(size)
    for k in range(size):
        # Of the diagonal before anything is subtracted from it.
        smallest[k] = max(least, 1e-11 * matrix[k, k])
    for k in range(size):
        pivot = max(matrix[k, k], smallest[k])
        # The product of the pivots is the determinant of the matrix.
        total -= np.log(pivot)
        matrix[k, k] = 1.0
        for j in range(size):
            matrix[k, j] /= pivot
        for i in range(size):
            factor = matrix[i, k]
            if i != k and factor != 0.0:
                matrix[i, k] = 0.0
                for j in range(size):
                    matrix[i, j] -= factor * matrix[k, j]
    for i in range(size):  # make both halves equal to the last bit
        for j in range(i):
            mean = 0.5 * (matrix[i, j] + matrix[j, i])
            matrix[i, j] = mean
            matrix[j, i] = mean
    return total
