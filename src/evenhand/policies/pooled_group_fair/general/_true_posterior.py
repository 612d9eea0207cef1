"""The bias from true rewards in the general form: `_posterior` with a second kind of reward.

A candidate with weights w has the bias, at a context x,

    psi = (w - ref) (x) x . (M - eta) + psi_0 . x     eta ~ N(0, kappa^2 I), psi_0 ~ N(0, Omega)

as in `pooled_group_fair._true_posterior`: eta is how much better a level or an intersection truly
is, and psi_0 is the bias of the reference itself, 0 where it is named; Omega is the sum of those of
all attributes. So with f = ((w - ref) (x) x, -x) and e = (eta, psi_0), its true reward is

    ref (x) x . M + f . e + delta_i . x + noise(sigma_z^2)

Given the feedback, the arm's own delta_i is N(u_i - D_i M, S_i). With B_i = ref (x) I - D_i, and
J_i, j_i and E_i of `_blend.look_at_arm`, truth has the information B_i' J_i B_i on M. As in
`_posterior.work_out`, f of an arm's rewards is split into its mean, a_i (x) x, and the rest: where
membership is fixed there is no rest, and truth has the information a_i a_i' (x) J_i on e. Where
arms come once, there is no delta: all rewards are like those of one arm with S = 0.
"""

from __future__ import annotations

import numpy as np

from evenhand._compile import subroutine
from evenhand._compile.intrinsics import stays_a_function
from evenhand.leastsquares._blend import (
    PASSES,
    Information,
    blank_blend,
    blank_information,
    look_at_arm,
    noise_of_truth,
    work_out_blend,
)
from evenhand.policies.pooled_group_fair.general._posterior import (
    ROUNDING,
    fill_precision,
    folded,
    mean_weight,
)


@subroutine
def blend(data, kinds, variances, post, truth, reference, free, basis, kappa2):  # type: ignore[no-untyped-def]
    """The posterior after feedback and truth; kappa^2 is estimated where it is negative.

    `truth` has the sums of true rewards, as `data` has those of feedback. The means of the result
    are M, or basis' M if there is a basis (`Design.basis`): with flat priors, M itself is unknown
    in some directions, and large numbers would cancel.
    """
    stays_a_function()
    size, d = post.M.size, variances.v.size
    of_means = basis.shape[1] * d if basis.size else size
    out, sigma2 = blank_blend(of_means, size - d, d, free), variances.sigma2[0]
    for _ in range(PASSES):
        blend_in(data, kinds, variances, post, truth, reference, basis, sigma2, kappa2, out)
        sigma2 = _noise_of_truth(post, truth, reference, basis, variances.sigma2[0], out)
    return out


@subroutine
def blend_in(data, kinds, variances, post, truth, reference, basis, sigma2, kappa2, out):  # type: ignore[no-untyped-def]
    """Fill in the posterior after true rewards, if their noise is sigma2."""
    stays_a_function()
    size, d = post.M.size, variances.v.size
    info, means = blank_information(size, out.n.size), post.M.copy()
    if data.number.size:
        _information_of_truth(data, variances, post, truth, reference, sigma2, info)
    else:
        _look_at_once(truth, reference, sigma2, d, info)
    precision = np.empty((size, size))
    least = fill_precision(kinds, variances, post, precision)
    if basis.size:
        # From here on M stands for basis' M. e keeps all of its columns, because its prior is not
        # flat.
        info = Information(
            folded(folded(info.mm, basis, d).T, basis, d),
            folded(info.me, basis, d),
            info.ee,
            folded(info.of_m.reshape(size, 1), basis, d).reshape(out.m_at_0.size),
            info.of_e,
        )
        precision = folded(folded(precision, basis, d).T, basis, d)
        means = folded(means.reshape(size, 1), basis, d).reshape(out.m_at_0.size)
    for k in range(means.size):
        for c in range(means.size):
            out.R[k, c] = precision[k, c] + info.mm[k, c]
    work_out_blend(info, _omega_inverse(variances), means, least, kappa2, out)
    out.numbers[1] = sigma2


@subroutine
def _omega_inverse(variances):  # type: ignore[no-untyped-def]
    """Omega^-1, where Omega is the sum of the variances of all attributes."""
    stays_a_function()
    v, along, across = variances.v, 0.0, 0.0
    out = np.empty((v.size, v.size))
    for kind in range(1, variances.along.size - 1):
        along += variances.along[kind]
        across += variances.across[kind]
    for k in range(v.size):
        for c in range(v.size):
            out[k, c] = (1.0 / along - 1.0 / across) * v[k] * v[c]
        out[k, k] += 1.0 / across
    return out


@subroutine
def _against(table, reference, d, out):  # type: ignore[no-untyped-def]
    """Rows of f from rows of z: every column less its weight in the reference; and -x."""
    stays_a_function()
    size = reference.size * d
    for j in range(table.shape[1]):
        for k in range(d, size):
            # (w - ref) (x) x, without the column of all, in which a candidate and the reference
            # agree. For the numbers of psi_0, where there are any, the rows are those of -x.
            out[k - d, j] = table[k, j] - reference[k // d] * table[k % d, j]
        for k in range(size - d, out.shape[0]):
            out[k, j] = -table[k % d, j]


@subroutine
def _against_both(G, reference, d, n_e):  # type: ignore[no-untyped-def]
    """Sums of f f' from those of z z'."""
    stays_a_function()
    half, out = np.empty((n_e, G.shape[0])), np.empty((n_e, n_e))
    _against(G, reference, d, half)
    _against(half.T, reference, d, out)
    return out


@subroutine
def _look_at_once(truth, reference, sigma2, d, info):  # type: ignore[no-untyped-def]
    """The information of truth where arms come once.

    There is no delta, so the log-likelihood of true rewards is that of a regression on ref (x) x
    for M and on f for e, with the noise sigma_z^2:

        mm = ref ref' (x) sum x x'    me = ref (x) sum x f'    ee = sum f f'    all over sigma_z^2
        of_m = ref (x) sum x z        of_e = sum f z

    where z is the true reward. Of the candidate's own weights w only the true difference eta is
    left, in f . e. The rest of (w - ref) (x) x . M is bias, which a true reward does not have.
    """
    stays_a_function()
    size, n_e = truth.h.size, info.of_e.size
    of_values, Cf = np.empty((n_e, 1)), np.empty((n_e, d))
    _against(truth.h.reshape(size, 1), reference, d, of_values)
    _against(truth.G[:, :d], reference, d, Cf)
    ee = _against_both(truth.G, reference, d, n_e)
    for k in range(size):
        first = reference[k // d] / sigma2
        info.of_m[k] = first * truth.h[k % d]
        for c in range(size):
            info.mm[k, c] = first * reference[c // d] * truth.G[k % d, c % d]
        for c in range(n_e):
            info.me[k, c] = first * Cf[c, k % d]
    for k in range(n_e):
        info.of_e[k] = of_values[k, 0] / sigma2
        for c in range(n_e):
            info.ee[k, c] = ee[k, c] / sigma2


@subroutine
def _information_of_truth(data, variances, post, truth, reference, sigma2, info):  # type: ignore[no-untyped-def]
    """The information of truth where arms recur.

    For each arm with true rewards, whose noise sigma_z^2 is `sigma2`:

        A, b         sums of x x' and x z, over sigma_z^2
        own          S_i^-1, the precision of the arm's own part after feedback
        E, part      (own + A)^-1, and own E
        J, j         the information of truth on the arm's mean, and its value
        B            ref (x) I - D_i: the arm's mean is B M + u_i
        a, Ef        the mean of f, a number per column, and what is left of sum f x' without it
        T            part Ef' / sigma_z^2, without and with a (x) J: what M and e share
        sum_b        b, and the sum of x y over sigma^2
    """
    stays_a_function()
    size, d, n_e = post.M.size, variances.v.size, info.of_e.size
    p = 1.0 / variances.tau2[0]
    rest, of_rest = _against_both(truth.G, reference, d, n_e), np.empty((n_e, 1))
    _against(truth.h.reshape(size, 1), reference, d, of_rest)
    A, E, J, own = np.empty((d, d)), np.empty((d, d)), np.empty((d, d)), np.empty((d, d))
    part, b, j, sum_b = np.empty((d, d)), np.empty(d), np.empty(d), np.empty(d)
    B, Ef, T, a = np.empty((d, size)), np.empty((n_e, d)), np.empty((2, d, n_e)), np.empty(n_e)
    for i in range(truth.number.size):
        if truth.number[i] == 0.0:
            continue
        for k in range(d):
            b[k] = truth.b[i, k] / sigma2
            # E sum_b is what the arm is after feedback and truth, if its mean is 0: the value of e
            # is the part of sum f z that this does not explain.
            sum_b[k] = b[k] + data.b[i, k] / variances.sigma2[0]
            for c in range(d):
                A[k, c] = truth.C[i, k, c] / sigma2
                own[k, c] = data.C[i, k, c] / variances.sigma2[0]
            # S_i^-1 from its parts, without the rounding of an inverse.
            own[k, k] += p
            for c in range(size):
                B[k, c] = (reference[c // d] if c % d == k else 0.0) - post.D[i, k, c]
        look_at_arm(A, b, own, post.u[i], p, E, part, J, j)
        _take_apart(truth.C[i], reference, d, a, Ef)
        _take_off(truth, i, a, Ef, rest, of_rest)
        # T[0] = part Ef' / sigma^2; T[1] has what the mean of f adds to it.
        for k in range(d):
            for c in range(n_e):
                total = 0.0
                for o in range(d):
                    total += part[k, o] * Ef[c, o]
                T[0, k, c] = total / sigma2
                T[1, k, c] = T[0, k, c] + a[c] * J[k, c % d]
        _add_arm(B, J, j, T[1], info)
        _add_arm_to_e(E, J, j, sum_b, a, Ef, T[0], sigma2, info)
    # This keeps the arrays alive up to here: their places are in use.
    A[0, 0] = E[0, 0] = own[0, 0] = part[0, 0] = b[0] = 0.0
    for k in range(n_e):
        # As in `_posterior.work_out`: where membership is fixed the rest is 0, and a remainder of
        # rounding must not be divided by a small sigma_z^2.
        small = ROUNDING * abs(truth.h[k % d])
        if abs(of_rest[k, 0]) > small:
            info.of_e[k] += of_rest[k, 0] / sigma2
        for c in range(n_e):
            small = ROUNDING * np.sqrt(truth.G[k % d, k % d] * truth.G[c % d, c % d])
            if abs(rest[k, c]) > small:
                info.ee[k, c] += rest[k, c] / sigma2


@subroutine
def _take_apart(C, reference, d, a, Ef):  # type: ignore[no-untyped-def]
    """The mean of an arm's f per column, and what is left of sum f x' beside it."""
    stays_a_function()
    _against(C, reference, d, Ef)
    for k in range(a.size):
        if k < (reference.size - 1) * d:
            a[k] = mean_weight(C, k // d * d + d, d) - reference[k // d + 1]
        else:
            a[k] = -1.0
        for c in range(d):
            Ef[k, c] -= a[k] * C[k % d, c]


@subroutine
def _take_off(truth, i, a, Ef, rest, of_rest):  # type: ignore[no-untyped-def]
    """Subtract the part of the mean of an arm's f from the sums of f f' and f z.

    With f = a (x) x + rho, and Ef the arm's sum of rho x',

        sum f f' = a a' (x) A + a (x) Ef' + its transpose + sum rho rho'
        sum f z  = a (x) b + sum rho z

    What is subtracted from sum f f' of all is everything but the last term. So `rest` ends as the
    sum of rho rho' over all arms, and `of_rest` as that of rho z. They are the part of true rewards
    that does not pass through the arm's own delta, and where membership is fixed they are 0.
    """
    stays_a_function()
    d = Ef.shape[1]
    for k in range(a.size):
        of_rest[k, 0] -= a[k] * truth.b[i, k % d]
        for c in range(a.size):
            known = a[k] * a[c] * truth.C[i, k % d, c % d]
            rest[k, c] -= known + a[k] * Ef[c, k % d] + a[c] * Ef[k, c % d]


@subroutine
def _add_arm(B, J, j, T, info):  # type: ignore[no-untyped-def]
    """The information of an arm on M, and on M and e together: B' J B, B' T and B' j."""
    stays_a_function()
    d, size = B.shape
    JB = np.empty((d, size))
    for k in range(d):
        for c in range(size):
            JB[k, c] = 0.0
            for o in range(d):
                JB[k, c] += J[k, o] * B[o, c]
    for k in range(size):
        for o in range(d):
            left = B[o, k]
            if left != 0.0:
                info.of_m[k] += left * j[o]
                for c in range(size):
                    info.mm[k, c] += left * JB[o, c]
                for c in range(T.shape[1]):
                    info.me[k, c] += left * T[o, c]


@subroutine
def _add_arm_to_e(E, J, j, sum_b, a, Ef, T, sigma2, info):  # type: ignore[no-untyped-def]
    """The information of an arm on e.

    It is a a' (x) J + a (x) T + its transpose - E_f E E_f' / sigma_z^4, where a is the mean of f
    per column, and E_f the rest of sum f x' (`_take_apart`).
    """
    stays_a_function()
    d, n_e = T.shape
    EE = np.empty((d, n_e))  # E Ef' / sigma^2
    for k in range(d):
        for c in range(n_e):
            EE[k, c] = 0.0
            for o in range(d):
                EE[k, c] += E[k, o] * Ef[c, o] / sigma2
    for k in range(n_e):
        info.of_e[k] += a[k] * j[k % d]
        for o in range(d):
            info.of_e[k] -= EE[o, k] * sum_b[o]
        for c in range(n_e):
            total = a[k] * a[c] * J[k % d, c % d] + a[k] * T[k % d, c] + a[c] * T[c % d, k]
            for o in range(d):
                total -= Ef[k, o] * EE[o, c] / sigma2
            info.ee[k, c] += total


@subroutine
def after_truth(out, means, M, e):  # type: ignore[no-untyped-def]
    """M and e after truth, from the effects that feedback alone leads to."""
    stays_a_function()
    for k in range(means.size):
        M[k] = out.m_at_0[k]
        for c in range(means.size):
            M[k] += out.m_map[k, c] * means[c]
    for k in range(e.size):
        e[k] = out.e_at_0[k]
        for c in range(means.size):
            e[k] += out.e_map[k, c] * means[c]


@subroutine
def _noise_of_truth(post, truth, reference, basis, known, out):  # type: ignore[no-untyped-def]
    """sigma_z^2 from the residuals of true rewards.

    With g_i = ref (x) I . M + u_i - D_i M, the coefficients of an arm after truth but for its own
    delta, the residual of a true reward is z - g_i . x - f . e. Squared and summed,

        z'z - 2 e . sum f z + e' (sum f f') e
        + sum_i (g_i' A_i g_i - 2 g_i . b_i + 2 g_i' (sum x f') e)

    Given feedback, delta_i is only known up to S_i, so these squares are too large by tr(S_i A_i)
    on average; that is taken off. How many numbers of M and e truth has fitted is in `out`.
    """
    stays_a_function()
    size, n_e = post.M.size, out.n.size
    n, d = truth.b.shape
    means, e, g = post.M.copy(), np.empty(n_e), np.zeros(d)
    if basis.size:
        means = folded(means.reshape(size, 1), basis, d).reshape(out.m_at_0.size)
    M = np.empty(means.size)
    after_truth(out, means, M, e)
    if basis.size:
        # Back from the basis to all columns.
        M = folded(M.reshape(M.size, 1), basis.T, d).reshape(size)
    of_values, Cf, C = np.empty((n_e, 1)), np.empty((n_e, d)), np.empty((size, d))
    _against(truth.h.reshape(size, 1), reference, d, of_values)
    Gf, residual = _against_both(truth.G, reference, d, n_e), truth.total[0]
    for k in range(n_e):
        residual -= 2.0 * e[k] * of_values[k, 0]
        for c in range(n_e):
            residual += e[k] * Gf[k, c] * e[c]
    for i in range(max(n, 1)):  # where arms come once, all rewards are like those of one arm
        if n and truth.number[i] == 0.0:
            continue
        for k in range(size):
            for c in range(d):
                C[k, c] = truth.C[i, k, c] if n else truth.G[k, c]
        b = truth.b[i] if n else truth.h[:d]
        _against(C, reference, d, Cf)
        for k in range(d):
            g[k] = post.u[i, k] if n else 0.0
            for c in range(size):
                g[k] += (reference[c // d] if c % d == k else 0.0) * M[c]
                if n:
                    g[k] -= post.D[i, k, c] * M[c]
        for k in range(d):
            residual -= 2.0 * g[k] * b[k]
            for c in range(d):
                residual += g[k] * C[k, c] * g[c]
                if n:
                    residual -= post.S[i, k, c] * C[k, c]
            for c in range(n_e):
                residual += 2.0 * g[k] * Cf[c, k] * e[c]
    return noise_of_truth(residual, truth.total[1], out.numbers[2], known)
