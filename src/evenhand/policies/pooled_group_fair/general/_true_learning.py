"""The sums of true rewards in the general form, their units, and how they enter the posterior."""

from __future__ import annotations

import numpy as np

from evenhand._compile import subroutine
from evenhand._compile.intrinsics import stays_a_function
from evenhand.leastsquares._simd import place
from evenhand.policies._kernels import kernel, learn_true
from evenhand.policies._state import round_learned
from evenhand.policies.pooled_group_fair._layout import IN_USE, OFFSET, SCALE
from evenhand.policies.pooled_group_fair._true_learning import (
    add_to_line,
    add_to_row,
    count,
    keep,
    units_of_line,
)
from evenhand.policies.pooled_group_fair.general._layout import (
    GeneralRule,
    add_reward,
    fill_weights,
    is_reference,
)
from evenhand.policies.pooled_group_fair.general._posterior import add_in_units, blank_data
from evenhand.policies.pooled_group_fair.general._true_posterior import after_truth, blend


@kernel(learn_true, GeneralRule)
def _learn_true(rule, state, arm, group, x, value, observed):  # type: ignore[no-untyped-def]
    _take(rule, state.own, arm, x, value, observed)
    count(state.own, round_learned(state))


@subroutine
def _take(rule, own, arm, x, value, observed):  # type: ignore[no-untyped-def]
    """Add a true reward to the sums; `observed` is NaN where the feedback is unknown."""
    stays_a_function()
    d, q = rule.n_features, rule.kinds.size
    weights, size = np.empty(q), q * d
    fill_weights(rule, arm, x, weights)
    add_reward(rule, own.true, own.true_arms, arm, weights, x, value)
    has_feedback = observed == observed
    # Behind the sums that `add_reward` makes: sum z and sum r, from which an offset can be added
    # later; and, of those with a known feedback y, sum z, sum y and 1, for the test of arrival.
    first, of_arm = size * size + size + 2, size * d + d + 1
    last = first + size + 1
    for column in range(q):
        for k in range(d):
            here = weights[column] * x[k]
            own.true[first + column * d + k] += here
            if has_feedback:
                own.true[last + column * d + k] += here
    own.true[first + size] += value
    if has_feedback:
        own.true[last + size] += observed
        own.true[last + size + 1] += 1.0
    if rule.recurs:
        for k in range(d):
            own.true_arms[arm, of_arm + k] += x[k]
            if has_feedback:
                own.true_arms[arm, of_arm + d + k] += x[k]
    if is_reference(rule, weights):
        row = arm if rule.recurs else 0
        add_to_row(own.true_reference[row], x, value, d)


@subroutine
def take_in(rule, own, data, variances, post, unit, of_rewards):  # type: ignore[no-untyped-def]
    """Work out the maps of `Blend` from the settled feedback and all true rewards."""
    stays_a_function()
    scale, offset = units_of_truth(rule, own.true_reference, post, unit, of_rewards)
    own.truth[IN_USE] = 1.0 if scale > 0.0 else 0.0
    own.truth[SCALE], own.truth[OFFSET] = scale, offset
    if not scale > 0.0:
        return
    size = own.m_at_0.size
    truth = truth_in_units(own.true, own.true_arms, size, scale, offset, unit, of_rewards)
    kinds, reference, none = rule.kinds, rule.reference, np.empty((0, 0))
    keep(own, blend(data, kinds, variances, post, truth, reference, rule.free, none, -1.0))


@subroutine
def show(rule, own):  # type: ignore[no-untyped-def]
    """Apply the maps to the current effects, for scores."""
    stays_a_function()
    size, d = own.m_at_0.size, rule.n_features
    M, e = np.empty(size), np.empty(size if rule.free else size - d)
    after_truth(own, own.means[0], M, e)
    for k in range(size):
        own.after[0, k] = M[k]
        # What is distortion in an effect: the effect less the true difference eta. The column of
        # all has no eta.
        own.after[1, k] = M[k] - e[k - d] if k >= d else M[k]
    for k in range(d):
        own.after[2, k] = e[size - d + k] if rule.free else 0.0


@subroutine
def truth_in_units(sums, of_arms, size, scale, offset, unit, of_rewards):  # type: ignore[no-untyped-def]
    """The sums of offset + scale z, in units of the root mean square of features and rewards."""
    stays_a_function()
    n, d = of_arms.shape[0], unit.size
    truth = blank_data(n, size, d)
    add_in_units(truth, sums, of_arms, unit, of_rewards)
    first, of_arm = size * size + size + 2, size * d + d + 1
    by_unit = offset / of_rewards
    for k in range(size):
        truth.h[k] = scale * truth.h[k] + by_unit * sums[first + k] / unit[k % d]
    squares = 2.0 * by_unit * sums[first + size] / of_rewards + scale * truth.total[0]
    truth.total[0] = scale * squares + by_unit * by_unit * truth.total[1]
    for i in range(n):
        for k in range(d):
            moved = by_unit * of_arms[i, of_arm + k] / unit[k]
            truth.b[i, k] = scale * truth.b[i, k] + moved
    return truth


@subroutine
def units_of_truth(rule, of_reference, post, unit, of_rewards):  # type: ignore[no-untyped-def]
    """Scale and offset that turn true rewards into units of feedback; scale 0 if not known yet.

    Where they are estimated: true rewards of the reference are a straight line in what its
    candidates are worth by feedback, ref (x) x . M + delta_i . x.
    """
    stays_a_function()
    if rule.true_scale > 0.0:
        return rule.true_scale, rule.true_offset
    d, size, line = unit.size, post.M.size, np.zeros(6)
    theta = np.empty(d)
    for i in range(of_reference.shape[0]):
        for k in range(d):
            worth = post.u[i, k] if rule.recurs else 0.0
            for c in range(size):
                if rule.recurs:
                    worth -= post.D[i, k, c] * post.M[c]
                if c % d == k:
                    worth += rule.reference[c // d] * post.M[c]
            theta[k] = worth * of_rewards / unit[k]
        add_to_line(line, place(of_reference, i * of_reference.shape[1]), place(theta, 0), d)
    theta[0] = 0.0  # keeps the array alive up to here: its place is in use
    return units_of_line(line)
