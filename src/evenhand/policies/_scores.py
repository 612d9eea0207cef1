"""The two numbers per arm and group that every policy starts from: an estimate and its width.

The estimate of a group is the fit to all of its data or, by `group_averages`, the plain average of
its arms. In the fit, arms that are pulled often weigh more. So where they differ, it is not the
average that the paper assumes to be equal between groups (docs/explanation/theory.md). In the plain
average every arm of a group weighs the same: psi_j = mean of beta_hat_i over the arms i of P_j,
whose variance is the sum of theirs over |P_j|^2, because arms are fitted to different data. It
takes a solve of every arm's regression at every corrected context, O(n^2 d^2) a round.
"""

from __future__ import annotations

import numpy as np

from evenhand._compile import compiled, woven
from evenhand._compile.intrinsics import stays_a_function
from evenhand.leastsquares import LANES, solve_each, solve_shared
from evenhand.leastsquares._simd import broadcast, four, place, put, root, times
from evenhand.leastsquares._triangle import HUGE
from evenhand.policies._quantiles import normal_quantile, student_quantile
from evenhand.policies._state import (
    ARM,
    CORRECTION,
    CORRECTION_WIDTH,
    ESTIMATE,
    GROUP_ESTIMATE,
    GROUP_WIDTH,
    NOISE,
    QUANTILE,
    SIZE,
    TINY,
    UPPER,
    VARIANCE,
    WIDEST,
    WIDTH,
    check_group,
    level,
)

# How a group's estimate weighs its arms: by their pulls, or equally.
PULLS, ARMS = "pulls", "arms"
GROUP_AVERAGES = (PULLS, ARMS)


@woven
def _quantile(memory, whose, t):  # type: ignore[no-untyped-def]
    """The upper quantile for the width of group `whose`, or of an ARM."""
    levels, settings = memory.levels, memory.settings
    freedom, size = levels[NOISE, 1], levels[SIZE, whose]
    if freedom > 0.0:
        return student_quantile(level(settings, t, size, whose == ARM), freedom)
    if settings.by_round or t > settings.horizon:
        return normal_quantile(level(settings, t, size, whose == ARM))
    return levels[QUANTILE, whose]


@woven
def _widths(memory, row, quantile, n):  # type: ignore[no-untyped-def]
    """|Q| of N(0, sigma^2 x (X'X)^-1 x') for n arms, which is Q sigma sqrt(x (X'X)^-1 x').

    With by_variance, the variance takes the place of the standard deviation.
    """
    work, noise = memory.work, memory.levels[NOISE, 0]
    by_variance = memory.settings.by_variance
    # Above 0: 0 times an infinite variance is NaN, and an arm that was never seen must stay
    # infinitely wide.
    factor = max(quantile * (noise if by_variance else np.sqrt(noise)), TINY)
    if not factor < WIDEST:  # the noise has no estimate yet, or the factor would overflow
        for i in range(n):
            work[row, i] = np.inf if work[VARIANCE, i] > 0.0 else 0.0
    elif by_variance:
        for i in range(n):
            width = factor * work[VARIANCE, i]
            work[row, i] = width if width < HUGE else np.inf
    else:
        cells, columns, times_root = place(work, 0), work.shape[1], broadcast(factor)
        for i in range(0, n, LANES):
            variance = four(cells, VARIANCE * columns + i)
            put(cells, row * columns + i, times(times_root, root(variance)))


@woven
def score_arms(memory, t):  # type: ignore[no-untyped-def]
    """Estimate and width of every arm (Algorithm 1, lines 7 to 9), without a correction.

    Example:
        >>> from typing import NamedTuple
        >>> from evenhand.policies.compiled import add_up, kernel, score, score_arms
        >>> class MyRule(NamedTuple):
        ...     pass
        >>> @kernel(score, MyRule)
        ... def my_score(rule, memory, t):
        ...     score_arms(memory, t)
        ...     add_up(memory)
    """
    score_arms_at(memory, _quantile(memory, ARM, t))


@woven
def score_arms_at(memory, quantile):  # type: ignore[no-untyped-def]
    """The same with a width of `quantile` standard deviations."""
    work = memory.work
    solve_each(memory.arms, memory.room, memory.contexts, work, ESTIMATE, VARIANCE)
    _widths(memory, WIDTH, quantile, work.shape[1])
    for i in range(memory.settings.n_arms):
        work[CORRECTION, i] = 0.0
        work[CORRECTION_WIDTH, i] = 0.0


@woven
def score_group(memory, group, arms, t):  # type: ignore[no-untyped-def]
    """psi_j . x_i and b_j for the listed arms, group j (Algorithm 1, lines 4, 5 and 11 to 14).

    The list comes from `evenhand.leastsquares.listed`. Column k of GROUP_ESTIMATE and GROUP_WIDTH
    is that of its arm k. It is an error unless the class has `learns_groups`.

    Example:
        >>> from typing import NamedTuple
        >>> from evenhand.policies.compiled import CORRECTION, GROUP_ESTIMATE, add_up
        >>> from evenhand.policies.compiled import kernel, score, score_arms, score_group
        >>> class MyRule(NamedTuple):
        ...     pass
        >>> @kernel(score, MyRule)
        ... def my_score(rule, memory, t):
        ...     score_arms(memory, t)
        ...     score_group(memory, 0, memory.members.everyone, t)
        ...     for i in range(memory.settings.n_arms):
        ...         memory.work[CORRECTION, i] = -memory.work[GROUP_ESTIMATE, i]
        ...     add_up(memory)
    """
    check_group(memory, group)
    solve_shared(
        memory.groups,
        group,
        memory.room,
        memory.contexts,
        arms,
        memory.work,
        GROUP_ESTIMATE,
        VARIANCE,
    )
    group_widths(memory, group, arms.size, t)


@woven
def group_widths(memory, group, number, t):  # type: ignore[no-untyped-def]
    """b_j from the variances of `number` arms."""
    _widths(memory, GROUP_WIDTH, _quantile(memory, group, t), number)


@woven
def add_up(memory):  # type: ignore[no-untyped-def]
    """The upper bound: estimate + width + correction + correction width.

    Example:
        >>> from typing import NamedTuple
        >>> from evenhand.policies.compiled import add_up, kernel, score, score_arms
        >>> class MyRule(NamedTuple):
        ...     pass
        >>> @kernel(score, MyRule)
        ... def my_score(rule, memory, t):
        ...     score_arms(memory, t)
        ...     add_up(memory)
    """
    work = memory.work
    for i in range(memory.settings.n_arms):
        work[UPPER, i] = (
            work[ESTIMATE, i] + work[WIDTH, i] + work[CORRECTION, i] + work[CORRECTION_WIDTH, i]
        )


@compiled
def group_averages(regressions, members, contexts, room, arms):  # type: ignore[no-untyped-def]
    """psi_j . x_i and its variance / sigma^2, by group j, for the listed arms i."""
    stays_a_function()
    n, columns, d = regressions.number, contexts.shape[0], regressions.n_features
    averages = np.zeros((2, members.sizes.size, arms.size))
    points, solved = np.empty((columns, d)), np.empty((2, columns))
    for at in range(arms.size):
        # A list is padded with its first arm, whose result is there already: a solve for all arms
        # is not done twice.
        if at > 0 and arms[at] == arms[0]:  # padding
            for g in range(members.sizes.size):
                averages[0, g, at] = averages[0, g, 0]
                averages[1, g, at] = averages[1, g, 0]
            continue
        for i in range(columns):
            for k in range(d):
                points[i, k] = contexts[arms[at], k]
        solve_each(regressions, room, points, solved, 0, 1)
        for i in range(n):
            g = members.group_of[i]
            averages[0, g, at] += solved[0, i] / members.sizes[g]
            # The arms were fitted to different rows, so the variances of their estimates add up.
            averages[1, g, at] += solved[1, i] / members.sizes[g] ** 2
    return averages


@woven
def score_average(memory, averages, group, arms, t):  # type: ignore[no-untyped-def]
    """The same as `score_group`, from `group_averages`."""
    for k in range(arms.size):
        memory.work[GROUP_ESTIMATE, k] = averages[0, group, k]
        memory.work[VARIANCE, k] = averages[1, group, k]
    group_widths(memory, group, arms.size, t)
