"""The bounds of Theorems 1 and 2: three sums of the proofs, with every constant explicit."""

from __future__ import annotations

import math
from typing import NamedTuple

from evenhand import _checks
from evenhand.theory.concentration import (
    PROOFS,
    concentration_round,
    exploration_rounds,
    failure_chance,
)


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
    # P(Z > z) <= exp(-z^2 / 2), so the quantile at delta / (2 n T) is at most sqrt(2 ln(2 n T /
    # delta)).
    quantile = math.sqrt(_factor("tail", tail) * math.log(2.0 * n_arms * horizon / delta))
    return quantile * math.sqrt(2.0 * n_arms * n_features / eigenvalue)


def _three_terms(
    horizon: int, n_arms: int, first: float, cost: float, largest_regret: float, failures: float
) -> RegretBound:
    """The bound; its last sum is over all rounds, as in the last step of the proofs."""
    explored, worst = exploration_rounds(horizon), _factor("largest_regret", largest_regret)
    # A union bound: failures times n events a round, each with the chance delta', and a failed
    # round costs no more than the worst one.
    failing = _factor("failures", failures) * n_arms * failure_chance(horizon, n_arms) * horizon
    return RegretBound(
        exploring=worst * explored,
        concentrating=worst * min(float(horizon), first),
        exploiting=cost * explored + worst * failing,
        trivial=worst * horizon,
    )


def _factor(name: str, value: float) -> float:
    return _checks.number(name, value, 0.0, math.inf)
