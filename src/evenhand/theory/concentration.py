"""The parts of the bounds: exploring rounds, chances of failure, eigenvalues, and T_1."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from evenhand import _checks
from evenhand._checks import unmasked
from evenhand.errors import InputError, setting

PROOFS, THEOREMS = 3 / 2, 2 / 3  # the exponent of T_1 in the proofs, and as the theorems print it

_MOST_ROUNDS = 10**30  # far more than can be simulated
_SUMMED = 1000  # terms of S added one by one; the rest is an integral with its first corrections


def exploration_rounds(horizon: int) -> float:
    """S, the expected number of exploring rounds: the sum of t^(-1/3) over t = 1..T.

    Exact to about 1e-12 of its value, in constant time. It lies between 1.5 ((T+1)^(2/3) - 1) and
    1.5 T^(2/3) - 0.5, which is the paper's Theta(T^(2/3)) with its constants.

    Example:
        >>> from evenhand.theory import exploration_rounds
        >>> exploration_rounds(1), round(exploration_rounds(1000), 3)
        (1.0, 149.077)
    """
    last = _checks.whole("horizon", horizon, most=_MOST_ROUNDS)
    first = np.arange(1, min(last, _SUMMED) + 1, dtype=np.float64)
    head = float(np.sum(first ** (-1 / 3)))
    return head if last <= _SUMMED else head + _antiderivative(last) - _antiderivative(_SUMMED)


def _antiderivative(t: int) -> float:
    """The sum of t^(-1/3) up to a constant (Euler-Maclaurin); the rest is < 1e-12 from 1000 on."""
    return float(1.5 * t ** (2 / 3) + 0.5 * t ** (-1 / 3) - t ** (-4 / 3) / 36.0)


def failure_chance(horizon: int, n_arms: int) -> float:
    """delta' = min(1 / (3nT), 1 / T^(1/3)), the probability that an event fails in a round.

    The first term is always the smaller one; both are here because the proofs have them.

    Example:
        >>> from evenhand.theory import failure_chance
        >>> failure_chance(horizon=1000, n_arms=10) * 30_000
        1.0
    """
    rounds = _checks.whole("horizon", horizon, most=_MOST_ROUNDS)
    n = _checks.whole("n_arms", n_arms, least=2)
    return float(min(1.0 / (3.0 * n * rounds), rounds ** (-1 / 3)))


def expected_smallest_eigenvalue(contexts: ArrayLike) -> float:
    """The proofs' lambda_min of an arm or group, estimated from a sample of its contexts.

    It is the expected smallest eigenvalue of X'X for a design X of d contexts. So the rows are used
    d at a time, in their order, and those left over at the end are ignored. A bound needs the
    smallest value of all arms and groups.

    Example:
        >>> from evenhand.theory import expected_smallest_eigenvalue
        >>> expected_smallest_eigenvalue([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0], [0.0, 4.0]])
        5.0
    """
    unmasked("contexts", contexts)
    rows = np.asarray(contexts, dtype=np.float64)
    if rows.ndim != 2 or not 1 <= rows.shape[1] <= rows.shape[0] or not np.isfinite(rows).all():
        raise InputError(
            f"{setting('contexts')} has shape {rows.shape}; allowed are finite numbers, one row "
            "per context and at least as many rows as features"
        )
    d = rows.shape[1]
    # Designs of d contexts, each used once, so that they are independent.
    designs = rows[: rows.shape[0] // d * d].reshape(-1, d, d)
    smallest = np.linalg.eigvalsh(np.swapaxes(designs, 1, 2) @ designs)[:, 0]
    return float(np.mean(np.maximum(smallest, 0.0)))


def concentration_round(
    n_arms: int,
    n_features: int,
    delta: float,
    smallest_eigenvalue: float,
    largest_norm: float = 1.0,
    n_groups: int | None = None,
    alpha: float = 0.5,
    constant: float | None = None,
    exponent: float = PROOFS,
) -> float:
    """T_1, the round from which the estimates are concentrated: (constant A)^exponent.

    A = (d n L / l) (ln^2(2 / delta) + ln d). The proofs need 36 A exploring rounds before T_1: with
    36 n ln^2(2 / delta) of them every arm was explored at least half as often as expected, and with
    4 / (1 - alpha)^2 (d n L / l) (ln(1 / delta) + ln d) the eigenvalues are at least alpha times
    their expectation. There are 1.5 (t^(2/3) - 1) exploring rounds before round t, so
    t = (1 + 24 A)^(3/2) is enough, which is at most (25 A)^(3/2).

    Args:
        n_arms: n.
        n_features: d.
        delta: the probability that an event fails. The paper writes delta, delta' and
            delta / (nT) in different places; the sums over rounds need delta', `failure_chance`.
        smallest_eigenvalue: l, the smallest `expected_smallest_eigenvalue` of all arms and groups.
            (The paper prints the minimum of T_1 over arms and groups; all have to be concentrated,
            so it must be the maximum.)
        largest_norm: the largest norm of a context, whose square is the paper's L.
        n_groups: m for Theorem 2, whose T_1 has a factor m in A; leave it out for Theorem 1.
        alpha: the fraction of the expected eigenvalue that is required.
        constant: by default 1 + (2/3) max(36, 4 / (1 - alpha)^2), which is 25 for alpha up to 2/3.
            It is enough for delta up to 0.7.
        exponent: 3/2 as in the proofs, or 2/3 as the theorems print (see `evenhand.theory`).

    Example:
        >>> from evenhand.theory import THEOREMS, concentration_round
        >>> arms = dict(n_arms=2, n_features=1, delta=0.1, smallest_eigenvalue=1.0)
        >>> round(concentration_round(**arms))
        9505
        >>> round(concentration_round(**arms, exponent=THEOREMS))
        59
    """
    n, d = _checks.whole("n_arms", n_arms, least=2), _checks.whole("n_features", n_features)
    _checks.number("delta", delta, 0.0, 1.0, open_ends=True)
    _checks.number("alpha", alpha, 0.0, 1.0, open_ends=True)
    _checks.number("exponent", exponent, 0.0, math.inf, open_ends=True)
    if constant is None:
        constant = 1.0 + 2.0 / 3.0 * max(36.0, 4.0 / (1.0 - alpha) ** 2)
    _checks.number("constant", constant, 0.0, math.inf, open_ends=True)
    m = 1 if n_groups is None else _groups(n_groups, n)
    ratio = _norm_over_eigenvalue(smallest_eigenvalue, largest_norm)
    needed = d * n * m * ratio * (math.log(2.0 / delta) ** 2 + math.log(d))
    return float((constant * needed) ** exponent)


def _groups(n_groups: int, n: int) -> int:
    m = _checks.whole("n_groups", n_groups, least=2)
    if m > n:
        raise InputError(
            f"{setting('n_groups')} is {n_groups}; allowed is 2 to {n}, the number of arms"
        )
    return m


def _norm_over_eigenvalue(smallest_eigenvalue: float, largest_norm: float) -> float:
    """L / l, which is at least 1: the d eigenvalues of d contexts sum to at most d L."""
    norm = _checks.number("largest_norm", largest_norm, 0.0, math.inf, open_ends=True)
    least = _checks.number(
        "smallest_eigenvalue", smallest_eigenvalue, 0.0, math.inf, open_ends=True
    )
    # d contexts have d eigenvalues, whose sum is the trace of X'X, at most d L. The smallest is at
    # most the mean of them.
    if least > norm**2:
        raise InputError(
            f"{setting('smallest_eigenvalue')} is {smallest_eigenvalue!r}; allowed is at most "
            f"{norm**2:g}, the square of largest_norm {largest_norm!r}",
            value=smallest_eigenvalue,
        )
    return norm**2 / least
