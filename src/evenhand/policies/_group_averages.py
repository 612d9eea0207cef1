"""The plain average of a group's arms, in place of the fit to all of its data.

In the fit, arms that are pulled often weigh more. So where they differ, it is not the average that
the paper assumes to be equal between groups (docs/explanation/theory.md). Here every arm of a group
weighs the same: psi_j = mean of beta_hat_i over the arms i of P_j, whose variance is the sum of
theirs over |P_j|^2, because arms are fitted to different data.

It takes a solve of every arm's regression at every corrected context, O(n^2 d^2) a round.
"""

from __future__ import annotations

import numpy as np

from evenhand._borrow import stays_a_function
from evenhand._compile import compiled, woven
from evenhand.leastsquares import solve_each
from evenhand.policies._scores import group_widths
from evenhand.policies._state import GROUP_ESTIMATE, VARIANCE

PULLS, ARMS = "pulls", "arms"
GROUP_AVERAGES = (PULLS, ARMS)


@compiled
def group_averages(regressions, members, contexts, room, arms):  # type: ignore[no-untyped-def]
    """psi_j . x_i and its variance / sigma^2, by group j, for the listed arms i."""
    stays_a_function()
    n, columns, d = regressions.number, contexts.shape[0], regressions.n_features
    averages = np.zeros((2, members.sizes.size, arms.size))
    points, solved = np.empty((columns, d)), np.empty((2, columns))
    for place in range(arms.size):
        if place > 0 and arms[place] == arms[0]:  # padding
            for g in range(members.sizes.size):
                averages[0, g, place] = averages[0, g, 0]
                averages[1, g, place] = averages[1, g, 0]
            continue
        for i in range(columns):
            for k in range(d):
                points[i, k] = contexts[arms[place], k]
        solve_each(regressions, room, points, solved, 0, 1)
        for i in range(n):
            g = members.group_of[i]
            averages[0, g, place] += solved[0, i] / members.sizes[g]
            averages[1, g, place] += solved[1, i] / members.sizes[g] ** 2
    return averages


@woven
def score_average(memory, averages, group, arms, t):  # type: ignore[no-untyped-def]
    """What `score_group` does, from `group_averages`."""
    for k in range(arms.size):
        memory.work[GROUP_ESTIMATE, k] = averages[0, group, k]
        memory.work[VARIANCE, k] = averages[1, group, k]
    group_widths(memory, group, arms.size, t)
