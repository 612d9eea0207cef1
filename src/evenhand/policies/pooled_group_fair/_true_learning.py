"""The sums of true rewards, their units, and how they enter the posterior."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand._compile import subroutine
from evenhand._compile.intrinsics import stays_a_function
from evenhand.leastsquares._simd import place
from evenhand.leastsquares._small_matrices import dot, form
from evenhand.policies._kernels import kernel, learn_true
from evenhand.policies._state import round_learned
from evenhand.policies.pooled_group_fair._layout import (
    FIRST_TRUE,
    IN_USE,
    KAPPA2,
    NUMBER,
    OFFSET,
    SCALE,
    STALE,
    TRUE_NUMBER,
    TRUE_SIGMA2,
    PooledRule,
)
from evenhand.policies.pooled_group_fair._true_posterior import Truth, blend

# Units are estimated from FEWEST true rewards of the reference or more, and only where the slope is
# more than CLEAR standard errors above 0: a slope near 0 could turn a true reward into anything.
FEWEST, CLEAR = 4, 3.0


@kernel(learn_true, PooledRule)
def _learn_true(rule, state, arm, group, x, value, observed):  # type: ignore[no-untyped-def]
    own, d = state.own, rule.n_features
    row = place(own.true, arm * own.true.shape[1])
    add_to_row(row, x, value, d)
    # NaN, which stands for an unknown feedback, is not equal to itself.
    if observed == observed:
        last = d * d + 2 * d + 3
        for k in range(d):
            row[last + k] += x[k]
        row[last + d] += observed
        row[last + d + 1] += 1.0
    count(own, round_learned(state))


@subroutine
def add_to_row(row, x, value, d):  # type: ignore[no-untyped-def]
    """Add a true reward z to sums of x x', x z, z^2, 1, x, z."""
    for k in range(d):
        for j in range(d):
            row[k * d + j] += x[k] * x[j]
        row[d * d + k] += x[k] * value
        row[d * d + d + 2 + k] += x[k]
    row[d * d + d] += value * value
    row[d * d + d + 1] += 1.0
    row[d * d + 2 * d + 2] += value


@subroutine
def count(own, t):  # type: ignore[no-untyped-def]
    """Count a true reward of a decision of round t; what true rewards teach is worked out again."""
    # The earliest round, not that of the first to come: it must not depend on the order.
    first = own.truth[FIRST_TRUE]
    if t > 0 and (first == 0.0 or t < first):
        own.truth[FIRST_TRUE] = t
    own.truth[TRUE_NUMBER] += 1.0
    own.common[STALE] = 1.0


@subroutine
def take_in(rule, own, data, variances, post, unit, of_rewards):  # type: ignore[no-untyped-def]
    """Work out the maps of `Blend` from the settled feedback and all true rewards."""
    stays_a_function()
    scale, offset = units_of_truth(rule, own.true, post, variances, unit, of_rewards)
    # Without units a true reward is only counted. It is used, with all others, as soon as enough of
    # them are of the reference.
    own.truth[IN_USE] = 1.0 if scale > 0.0 else 0.0
    own.truth[SCALE], own.truth[OFFSET] = scale, offset
    if not scale > 0.0:
        return
    truth = truth_in_units(own.true, scale, offset, unit, of_rewards)
    keep(own, blend(data, variances, post, truth, rule.weights, rule.free, -1.0))


@subroutine
def keep(own, after):  # type: ignore[no-untyped-def]
    """Keep the maps of a `Blend` for the rewards that follow."""
    stays_a_function()
    own.truth[KAPPA2], own.truth[TRUE_SIGMA2] = after.numbers[0], after.numbers[1]
    n_e, size = after.e_map.shape
    for k in range(size):
        own.m_at_0[k] = after.m_at_0[k]
        for c in range(size):
            own.m_map[k, c] = after.m_map[k, c]
    for k in range(n_e):
        own.e_at_0[k] = after.e_at_0[k]
        for c in range(size):
            own.e_map[k, c] = after.e_map[k, c]


@subroutine
def truth_in_units(sums, scale, offset, unit, of_rewards):  # type: ignore[no-untyped-def]
    """The sums of offset + scale z, in units of the root mean square of features and rewards."""
    stays_a_function()
    n, d = sums.shape[0], unit.size
    truth = Truth(np.empty((n, d, d)), np.empty((n, d)), np.empty(n), np.empty(n))
    for i in range(n):
        number, total = sums[i, d * d + d + 1], sums[i, d * d + 2 * d + 2]
        for k in range(d):
            for j in range(d):
                truth.A[i, k, j] = sums[i, k * d + j] / unit[k] / unit[j]
            # Sums of offset + scale z follow from those of z, of x and of 1: units may be estimated
            # anew without the rows.
            moved = scale * sums[i, d * d + k] + offset * sums[i, d * d + d + 2 + k]
            truth.b[i, k] = moved / unit[k] / of_rewards
        squares = scale * (scale * sums[i, d * d + d] + 2.0 * offset * total)
        truth.zz[i] = (squares + offset * offset * number) / of_rewards / of_rewards
        truth.number[i] = number
    return truth


@subroutine
def units_of_truth(rule, sums, post, variances, unit, of_rewards):  # type: ignore[no-untyped-def]
    """Scale and offset that turn true rewards into units of feedback; scale 0 if not known yet.

    Where they are estimated: the feedback of the reference is undistorted, so its true rewards are
    a straight line in the feedback that its arms would give, theta_i^ . x.
    """
    stays_a_function()
    if rule.true_scale > 0.0:
        return rule.true_scale, rule.true_offset
    d, theta, line = unit.size, np.empty(unit.size), np.zeros(6)
    for i in range(sums.shape[0]):
        g = rule.group_of[i]
        # Other groups' feedback is distorted, and would bend the line.
        if rule.weights[g] == 0.0 or sums[i, d * d + d + 1] == 0.0:
            continue
        for k in range(d):
            pull = dot(place(post.S, (i * d + k) * d), place(post.m, g * d), d)
            theta[k] = (post.u[i, k] + pull / variances.tau2[g]) * of_rewards / unit[k]
        add_to_line(line, place(sums, i * sums.shape[1]), place(theta, 0), d)
    theta[0] = 0.0  # keeps the array alive up to here: its place is in use
    return units_of_line(line)


@subroutine
def add_to_line(line, row, theta, d):  # type: ignore[no-untyped-def]
    """Add the true rewards of an arm to the sums of their line in theta . x.

    The sums are those of 1, y, z, y^2, y z and z^2, where y = theta . x is the feedback that the
    arm would give. The rows themselves are not kept: sum y = theta . sum x, sum y^2 = theta' (sum x
    x') theta, and sum y z = theta . sum x z.

    theta is a posterior mean, so its error is uncorrelated with it. Such errors in a predictor
    add to the noise of the line, but do not flatten its slope, as errors of a measurement would.
    """
    line[0] += row[d * d + d + 1]
    line[1] += dot(theta, place(row, d * d + d + 2), d)
    line[2] += row[d * d + 2 * d + 2]
    line[3] += form(theta, row, theta, d)
    line[4] += dot(theta, place(row, d * d), d)
    line[5] += row[d * d + d]


@subroutine
def units_of_line(line):  # type: ignore[no-untyped-def]
    """Scale and offset from the least-squares line z = slope y + ..., if the slope is clear enough.

    The line is turned around: y = offset + scale z, with scale = 1 / slope.
    """
    number, of_y, of_z = line[0], line[1], line[2]
    if number < FEWEST:
        return 0.0, 0.0
    # Sums about the means.
    yy = line[3] - of_y * of_y / number
    yz = line[4] - of_y * of_z / number
    zz = line[5] - of_z * of_z / number
    slope = yz / yy if yy > 0.0 else 0.0
    # The standard error of a slope: sqrt(residuals / (n - 2) / sum (y - mean)^2).
    error = np.sqrt(max(zz - slope * yz, 0.0) / (number - 2.0) / yy) if yy > 0.0 else np.inf
    if not slope > CLEAR * error:
        return 0.0, 0.0
    # The line goes through both means, which gives the offset.
    return 1.0 / slope, (of_y - of_z / slope) / number


def merge_truth(mine: Any, its: Any) -> None:
    """Count the true rewards of another policy; what follows from them is worked out again."""
    mine.truth[TRUE_NUMBER] += its.truth[TRUE_NUMBER]
    rounds = [r for r in (mine.truth[FIRST_TRUE], its.truth[FIRST_TRUE]) if r > 0.0]
    mine.truth[FIRST_TRUE] = min(rounds, default=0.0)
    if mine.truth[TRUE_NUMBER] or mine.common[NUMBER]:
        mine.common[STALE] = 1.0
