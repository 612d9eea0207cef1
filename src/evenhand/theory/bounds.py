"""The regret bounds of the paper's Theorems 1 and 2 as functions, with every constant explicit.

The theorems hide constants in an O(.); here they are, as the proofs (Appendix B) give them. Write n
for the arms, d for the features, l for the smallest eigenvalue, x for the largest norm of a context
(so that L = x^2), M for the largest regret of one round, and

    S = sum of t^(-1/3) over t = 1..T      delta' = min(1 / (3nT), 1 / T^(1/3))
    A = (d n L / l) (ln^2(2 / delta') + ln d), for m groups with a factor m
    T_1 = (25 A)^(3/2)

    exploring rounds       M S
    rounds before T_1      M min(T, T_1)
    exploiting rounds      widths sigma x sqrt(tail ln(2nT / delta)) sqrt(2nd / (alpha l)) S
                           + failures n delta' T M

with widths = 6 for two groups and 4 for m groups, tail = 2, alpha = 1/2, failures = 4.

The paper has T_1 with exponent 3/2 in its proofs, and the same term with exponent 2/3 in the
statements of its theorems. The bound follows from the proofs, so 3/2 is the default here.
docs/explanation/theory.md says where each constant comes from, and where the theorems do not apply.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand import _checks
from evenhand._checks import unmasked
from evenhand.errors import InputError, setting

PROOFS, THEOREMS = 3 / 2, 2 / 3  # the exponent of T_1 in the proofs, and as the theorems print it

_MOST_ROUNDS = 10**30  # far more than can be simulated
_SUMMED = 1000  # terms of S added one by one; the rest is an integral with its first corrections


class RegretBound(NamedTuple):
    """A bound on cumulative true regret, split into the three sums of the proofs.

    `trivial` is T times the largest regret of a round, which nothing can exceed. Before T_1 the
    theorems say no more than that.

    Example:
        >>> from evenhand.theory import RegretBound
        >>> bound = RegretBound(exploring=150.0, concentrating=500.0, exploiting=200.0, trivial=1e3)
        >>> bound.total, bound.informative
        (850.0, True)
    """

    exploring: float
    concentrating: float
    exploiting: float
    trivial: float

    @property
    def total(self) -> float:
        """The bound: the sum of its three terms."""
        return self.exploring + self.concentrating + self.exploiting

    @property
    def informative(self) -> bool:
        """Whether the bound says more than the trivial one."""
        return self.total < self.trivial


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
    """delta' = min(1 / (3nT), 1 / T^(1/3)), the probability of each event to fail in a round.

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
        delta: the probability of each event to fail. The paper writes delta, delta' and
            delta / (nT) in different places; the sums over rounds need delta', `failure_chance`.
        smallest_eigenvalue: l, the smallest `expected_smallest_eigenvalue` of all arms and groups.
            (The paper prints the minimum of T_1 over arms and groups; all have to be concentrated,
            so it must be the maximum.)
        largest_norm: the largest norm of a context, whose square is the paper's L.
        n_groups: m for Theorem 2, whose T_1 has a factor m in A; leave it out for Theorem 1.
        alpha: the fraction of the expected eigenvalue that is required.
        constant: by default 1 + (2/3) max(36, 4 / (1 - alpha)^2), which is 25 for alpha up to 2/3.
            It is enough for delta up to 0.7.
        exponent: 3/2 as in the proofs, or 2/3 as the theorems print (see the module).

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


def two_group_bound(
    horizon: int,
    n_arms: int,
    n_features: int,
    smallest_eigenvalue: float,
    delta: float = 0.1,
    *,
    largest_norm: float = 1.0,
    largest_regret: float = 1.0,
    noise: float = 1.0,
    widths: float = 6.0,
    tail: float = 2.0,
    alpha: float = 0.5,
    failures: float = 4.0,
    constant: float | None = None,
    exponent: float = PROOFS,
) -> RegretBound:
    """Theorem 1: a bound on the true regret of GroupFairTopInterval with two groups.

    It is an expectation over the exploring rounds, for runs in which Lemmas 1 and 2 hold, that is,
    in which all intervals cover. Lemma 2 can fail in every run: see docs/explanation/theory.md.

    Args:
        horizon: T, the number of rounds.
        n_arms: n.
        n_features: d.
        smallest_eigenvalue: l, the smallest `expected_smallest_eigenvalue` of all arms and groups.
        delta: the delta of the policy's widths.
        largest_norm: the largest norm of a context. The paper assumes 1; widths grow with it.
        largest_regret: M, the largest regret of one round. The paper has 1 in its place.
        noise: sigma. The paper has 1.
        widths: how many widths bound the regret of an exploiting round: 2 (w + b_1 + b_2), each
            at most the largest width of an arm.
        tail: a width is at most sqrt(tail ln(2nT / delta)) standard deviations. This needs 2; the
            paper writes 1, which is less than the quantile.
        alpha: the smallest eigenvalue of a design is at least this fraction of its expectation. The
            paper leaves it open.
        failures: how many events can fail per arm and round. There are 1 + 2 (n + m), at most 4 n
            with two arms or more in every group; the paper writes 6 in all.
        constant: of T_1, as in `concentration_round`.
        exponent: of T_1: 3/2 as in the proofs, or 2/3 as the theorem prints without a proof.

    Example:
        >>> from evenhand.theory import two_group_bound
        >>> bound = two_group_bound(10**10, n_arms=4, n_features=1, smallest_eigenvalue=1 / 3)
        >>> bound.informative, round(bound.total / bound.trivial, 3)
        (True, 0.224)
    """
    first = concentration_round(
        n_arms,
        n_features,
        failure_chance(horizon, n_arms),
        smallest_eigenvalue,
        largest_norm,
        None,
        alpha,
        constant,
        exponent,
    )
    width = _width(horizon, n_arms, n_features, delta, alpha * smallest_eigenvalue, tail)
    cost = _factor("widths", widths) * _factor("noise", noise) * largest_norm * width
    return _three_terms(horizon, n_arms, first, cost, largest_regret, failures)


def multi_group_bound(
    horizon: int,
    n_arms: int,
    n_features: int,
    n_groups: int,
    smallest_eigenvalue: float,
    delta: float = 0.1,
    *,
    largest_norm: float = 1.0,
    largest_regret: float = 1.0,
    noise: float = 1.0,
    widths: float = 4.0,
    tail: float = 2.0,
    alpha: float = 0.5,
    failures: float = 4.0,
    constant: float | None = None,
    exponent: float = PROOFS,
) -> RegretBound:
    """Theorem 2: the bound for m groups, whose average true reward is the known rho.

    The proof needs that average to be rho at every context. The regret of an exploiting round is
    then at most 2 (w + b_j), so `widths` is 4. MultiGroupFairTopInterval with reference="mean"
    needs no rho, and its exploiting rounds cost at most 2 + 4 (m - 1) / m widths: 4 for two groups,
    less than 6 for any number. The proof does not explain the factor m of T_1; it is kept here.

    Args:
        n_groups: m, at least two and no more than there are arms.
        widths: how many widths bound the regret of an exploiting round.

    All other arguments are those of `two_group_bound`.

    Example:
        >>> from evenhand.theory import multi_group_bound
        >>> bound = multi_group_bound(10**10, 6, 1, n_groups=3, smallest_eigenvalue=1 / 3)
        >>> [round(term / bound.trivial, 4) for term in bound[:3]]
        [0.0007, 0.0935, 0.1762]
    """
    _checks.whole("n_groups", n_groups, least=2)
    first = concentration_round(
        n_arms,
        n_features,
        failure_chance(horizon, n_arms),
        smallest_eigenvalue,
        largest_norm,
        n_groups,
        alpha,
        constant,
        exponent,
    )
    width = _width(horizon, n_arms, n_features, delta, alpha * smallest_eigenvalue, tail)
    cost = _factor("widths", widths) * _factor("noise", noise) * largest_norm * width
    return _three_terms(horizon, n_arms, first, cost, largest_regret, failures)


def _width(
    horizon: int, n_arms: int, n_features: int, delta: float, eigenvalue: float, tail: float
) -> float:
    """The c for which widths in round t >= T_1 are at most c t^(-1/3), for noise and norms of 1.

    From T_1 on, floor(G / d) is at least t^(2/3) / (2nd), where G counts an arm's explored pulls.
    """
    _checks.number("delta", delta, 0.0, 1.0, open_ends=True)
    quantile = math.sqrt(_factor("tail", tail) * math.log(2.0 * n_arms * horizon / delta))
    return quantile * math.sqrt(2.0 * n_arms * n_features / eigenvalue)


def _three_terms(
    horizon: int, n_arms: int, first: float, cost: float, largest_regret: float, failures: float
) -> RegretBound:
    """The bound; its last sum is over all rounds, as in the last step of the proofs."""
    explored, worst = exploration_rounds(horizon), _factor("largest_regret", largest_regret)
    failing = _factor("failures", failures) * n_arms * failure_chance(horizon, n_arms) * horizon
    return RegretBound(
        exploring=worst * explored,
        concentrating=worst * min(float(horizon), first),
        exploiting=cost * explored + worst * failing,
        trivial=worst * horizon,
    )


def _factor(name: str, value: float) -> float:
    return _checks.number(name, value, 0.0, math.inf)


def rate(horizon: float) -> float:
    """T^(2/3), the rate of both theorems without constants and logarithms.

    Example:
        >>> from evenhand.theory import rate
        >>> round(rate(8000) / rate(1000), 9)
        4.0
    """
    return float(_checks.number("horizon", horizon, 1.0, math.inf) ** (2 / 3))


def rate_through(rounds: ArrayLike, at: float, regret: float) -> NDArray[np.float64]:
    """The curve c t^(2/3) through a measured cumulative `regret` in round `at`.

    Beside a measured curve it shows to the eye what `growth_exponent` says in a number.

    Example:
        >>> from evenhand.theory import rate_through
        >>> rate_through([1000, 8000, 27000], at=1000, regret=50.0).round(6).tolist()
        [50.0, 200.0, 450.0]
    """
    _checks.number("at", at, 0.0, math.inf, open_ends=True)
    _checks.number("regret", regret, 0.0, math.inf)
    times = _positive("rounds", rounds, least=0)
    curve: NDArray[np.float64] = regret * (times / at) ** (2 / 3)
    return curve


def growth_exponent(rounds: ArrayLike, cumulative_regret: ArrayLike) -> float:
    """The g for which regret grows as t^g: the least squares slope of log regret on log rounds.

    Give rounds that are evenly spread on a log scale (1000, 2000, 4000, ...). Otherwise the last
    rounds, which lie close together there, dominate the fit. The exploring rounds alone give
    slightly more than 2/3 at finite T (0.669 between 1000 and 16000), because S is about
    1.5 T^(2/3) - 1.

    Example:
        >>> from evenhand.theory import growth_exponent
        >>> round(growth_exponent([1, 8, 64], [5.0, 20.0, 80.0]), 6)
        0.666667
    """
    x = np.log(_positive("rounds", rounds, least=2))
    y = np.log(_positive("cumulative_regret", cumulative_regret, least=2))
    if x.size != y.size or np.ptp(x) == 0.0:
        raise InputError(
            f"{setting('rounds')} and cumulative_regret have {x.size} and {y.size} values; allowed "
            "are equally many of both, at rounds that are not all equal"
        )
    centred = x - x.mean()
    return float(centred @ y / (centred @ centred))


def _positive(name: str, values: ArrayLike, least: int) -> NDArray[np.float64]:
    unmasked(name, values)
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size < least or not (np.isfinite(array) & (array > 0.0)).all():
        some = f"at least {least}" if least else "a list of"
        raise InputError(
            f"{setting(name)} is {values!r}; allowed are {some} finite numbers above 0",
            value=values,
        )
    return array


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
    if least > norm**2:
        raise InputError(
            f"{setting('smallest_eigenvalue')} is {smallest_eigenvalue!r}; allowed is at most "
            f"{norm**2:g}, the square of largest_norm {largest_norm!r}",
            value=smallest_eigenvalue,
        )
    return norm**2 / least
