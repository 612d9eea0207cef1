"""What every policy remembers, and the two numbers per arm that every policy starts from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand._compile import compiled, inlined
from evenhand.leastsquares import (
    Regressions,
    absorb,
    noise_variance,
    padded,
    regressions,
    solve_each,
    solve_shared,
)
from evenhand.quantiles import normal_quantile, student_quantile

# The rows of Memory.work. The first five are the scores that a decision shows.
ESTIMATE, WIDTH, CORRECTION, CORRECTION_WIDTH, UPPER = range(5)
_VARIANCE, GROUP_ESTIMATE, GROUP_WIDTH = 5, 6, 7
N_SCORES, _N_WORK = 5, 8


class Settings(NamedTuple):
    """The numbers behind the widths, the same for every policy."""

    n_arms: int
    delta: float
    horizon: int  # 0: none, the level goes by the round
    noise: float  # the known sigma; negative: estimated from the residuals
    by_round: bool
    by_variance: bool
    first_of_ties: bool
    arm_quantile: float  # at the horizon's level, where it is the same in every round
    group_quantiles: NDArray[np.float64]
    group_shares: NDArray[np.float64]  # |P_j| / n as it stands in the level of a group's width


class Memory(NamedTuple):
    """Sufficient statistics by arm and by group, and room to work in."""

    arms: Regressions
    groups: Regressions
    group_of: NDArray[np.int64]
    settings: Settings
    contexts: NDArray[np.float64]  # of this round, padded to whole blocks of arms
    work: NDArray[np.float64]


def make_memory(
    group_of: NDArray[np.int64],
    group_shares: NDArray[np.float64],
    n_features: int,
    learn_groups: bool,
    singular: str,
    ridge: float,
    settings: Settings,
) -> Memory:
    """An empty memory. Group regressions are kept only for policies that use them."""
    n = group_of.size
    return Memory(
        arms=regressions(n, n_features, singular, ridge),
        groups=regressions(
            group_shares.size if learn_groups else 0, n_features, singular, ridge, shared=True
        ),
        group_of=group_of,
        settings=settings,
        contexts=np.zeros((padded(n), n_features)),
        work=np.zeros((_N_WORK, padded(n))),
    )


@inlined
def remember(memory, arm, x, reward):  # type: ignore[no-untyped-def]
    """Add an observation to the arm's regression and, where they are kept, to its group's."""
    absorb(memory.arms, arm, x, reward)
    if memory.groups.rank.size:
        absorb(memory.groups, memory.group_of[arm], x, reward)


@compiled
def level(settings, t, share):  # type: ignore[no-untyped-def]
    """delta / (2 n T) for an arm (share 1), delta / (2 (n / |P_j|) T) for a group (share |P_j|).

    Algorithm 1, lines 9, 13 and 14. Without a horizon, or where the convention says so, by round.
    """
    rounds = t if settings.by_round else max(settings.horizon, t)
    return min(settings.delta * share / (2.0 * settings.n_arms * rounds), 0.5)


@inlined
def _noise(memory):  # type: ignore[no-untyped-def]
    """sigma^2 and the degrees of freedom of its estimate; 0 of them: it is known."""
    if memory.settings.noise >= 0.0:
        return memory.settings.noise**2, 0.0
    variance, freedom = noise_variance(memory.arms)
    return variance, max(freedom, 1.0)


@inlined
def _quantile(settings, t, share, known, freedom):  # type: ignore[no-untyped-def]
    """The upper quantile at the level of an arm or a group; `known` is its value at the horizon."""
    if freedom > 0.0:
        return student_quantile(level(settings, t, share), freedom)
    if settings.by_round or t > settings.horizon:
        return normal_quantile(level(settings, t, share))
    return known


@inlined
def _width(settings, quantile, variance, noise):  # type: ignore[no-untyped-def]
    """|Q| of N(0, sigma^2 x (X'X)^-1 x'); by_variance takes the variance for the deviation."""
    if variance == 0.0 or noise == 0.0 or quantile == 0.0:
        return 0.0  # and not 0 * inf
    if settings.by_variance:
        return quantile * noise * variance
    return quantile * np.sqrt(noise * variance)


@inlined
def score_arms(memory, t):  # type: ignore[no-untyped-def]
    """Estimate and width of every arm (Algorithm 1, lines 7 to 9); no correction yet."""
    settings = memory.settings
    _, freedom = _noise(memory)
    score_arms_at(memory, _quantile(settings, t, 1.0, settings.arm_quantile, freedom))


@inlined
def score_arms_at(memory, quantile):  # type: ignore[no-untyped-def]
    """The same with a width of `quantile` standard deviations."""
    work, settings = memory.work, memory.settings
    noise, _ = _noise(memory)
    solve_each(memory.arms, memory.contexts, work[ESTIMATE], work[_VARIANCE])
    for i in range(settings.n_arms):
        work[WIDTH, i] = _width(settings, quantile, work[_VARIANCE, i], noise)
        work[CORRECTION, i] = 0.0
        work[CORRECTION_WIDTH, i] = 0.0


@inlined
def score_group(memory, group, wanted, t):  # type: ignore[no-untyped-def]
    """psi_j . x_i and b_j for the wanted arms, group j (Algorithm 1, lines 4, 5 and 11 to 14)."""
    work, settings = memory.work, memory.settings
    noise, freedom = _noise(memory)
    share = settings.group_shares[group] * settings.n_arms
    quantile = _quantile(settings, t, share, settings.group_quantiles[group], freedom)
    solve_shared(
        memory.groups, group, memory.contexts, wanted, work[GROUP_ESTIMATE], work[_VARIANCE]
    )
    for i in range(settings.n_arms):
        if wanted[i]:
            work[GROUP_WIDTH, i] = _width(settings, quantile, work[_VARIANCE, i], noise)


@inlined
def add_up(memory):  # type: ignore[no-untyped-def]
    """The upper bound: estimate + width + correction + correction width."""
    work = memory.work
    for i in range(memory.settings.n_arms):
        work[UPPER, i] = (
            work[ESTIMATE, i] + work[WIDTH, i] + work[CORRECTION, i] + work[CORRECTION_WIDTH, i]
        )
