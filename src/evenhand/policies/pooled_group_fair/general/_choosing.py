"""The candidate of a round in the general form: scores, the start, and the probe (`_probe`).

The score is the estimate, corrected by what the candidate's weights add to those of the reference,
and a bonus for what is not known: about the arm itself or, where arms come once, about the
regression that all share.
"""

from __future__ import annotations

import math

import numpy as np

from evenhand._compile import subroutine
from evenhand._compile.intrinsics import stays_a_function
from evenhand._random import uniform
from evenhand.leastsquares._triangle import HUGE
from evenhand.policies._kernels import PICKS, chance, draw, kernel, score
from evenhand.policies._state import (
    CORRECTION,
    CORRECTION_WIDTH,
    ESTIMATE,
    UPPER,
    WIDTH,
)
from evenhand.policies.pooled_group_fair._choosing import (
    PROBES,
    envelope,
    half_normal_draw,
    highest,
)
from evenhand.policies.pooled_group_fair._layout import (
    EMPTY,
    IN_USE,
    N_NUMBERS,
    NUMBER,
    REWARD_UNIT,
)
from evenhand.policies.pooled_group_fair._probe import BONUS, PROBE, UNKNOWN, VALUE
from evenhand.policies.pooled_group_fair.general._layout import GeneralRule, fill_weights
from evenhand.policies.pooled_group_fair.general._probe import probed


@kernel(score, GeneralRule)
def _score(rule, memory, t):  # type: ignore[no-untyped-def]
    work, n = memory.work, memory.settings.n_arms
    # Groups that come with the round vary by themselves, which teaches their effects for free.
    late, fixed = t > n * rule.n_features, rule.levels.shape[0] > 0
    work[PROBE, 0] = 1.0 / math.sqrt(t) if rule.probes and late and fixed else 0.0
    work[PROBE, 1] = UNKNOWN
    _fill_in(rule, memory.own, memory.contexts, work, n)


@subroutine
def _fill_in(rule, own, contexts, work, n):  # type: ignore[no-untyped-def]
    """Estimate, correction and bonus of every candidate.

    The bonus says what is not known about the candidate alone: x' S_i x of an arm. Where arms come
    once there is no such part, and it is the variance of the mean of the reference at x: the same
    for all candidates at the same x, so it favours no group.

    With true rewards, `effects` is M after truth and `distortion` is M - eta, the part of an effect
    that is bias. What the reference itself is off by, psi_0 . x, is taken off all candidates.

    A number that has overflowed is replaced before it meets another: infinity less infinity is NaN,
    which no comparison would choose or reject.
    """
    stays_a_function()
    d, unit = rule.n_features, own.common[REWARD_UNIT]
    weights, x = np.empty(rule.kinds.size), np.empty(d)
    effects = distortion = own.means[0]
    if own.truth[IN_USE] > 0.0:
        effects, distortion = own.after[0], own.after[1]
    for i in range(n):
        for k in range(d):
            x[k] = contexts[i, k] * own.common[N_NUMBERS + k]
        fill_weights(rule, i, contexts[i], weights)
        estimate, correction, value = _mean_at(effects, distortion, weights, rule.reference, x)
        if own.truth[IN_USE] > 0.0:
            for k in range(d):
                correction -= own.after[2, k] * x[k]
                value -= own.after[2, k] * x[k]
        if rule.recurs:
            own_part, variance = _own_at(own, i, effects, x)
            estimate += own_part
            value += own_part
        else:
            variance = _variance_at(own, rule.reference, x)
        estimate, correction, value = estimate * unit, correction * unit, value * unit
        finite = abs(value) < HUGE and abs(estimate) < HUGE and abs(correction) < HUGE
        estimate = estimate if abs(estimate) < HUGE else 0.0
        correction = correction if abs(correction) < HUGE else 0.0
        # A variance is a difference after steps of learning, so it may be slightly negative.
        bonus = unit * np.sqrt(max(variance, 0.0)) if variance < HUGE else np.inf
        # Without any reward all candidates are tied.
        if own.common[NUMBER] == 0.0:
            bonus = np.inf
        work[ESTIMATE, i], work[CORRECTION, i] = estimate, correction
        work[WIDTH, i] = work[BONUS, i] = bonus
        work[CORRECTION_WIDTH, i] = 0.0
        # `value` is the estimate and the correction added up in another order, see `_mean_at`.
        work[VALUE, i] = value if finite else estimate + correction
        work[UPPER, i] = estimate + bonus + correction


@subroutine
def _mean_at(effects, distortion, weights, reference, x):  # type: ignore[no-untyped-def]
    """The sum of the effects of a candidate's columns, its correction, and both together.

    The last is worked out separately: without true rewards it is that of the reference, to the last
    bit, so that candidates who differ in nothing else are tied, whatever their groups.
    """
    d, mean, correction, value = x.size, 0.0, 0.0, 0.0
    for column in range(weights.size):
        here = distorted = 0.0
        for k in range(d):
            here += effects[column * d + k] * x[k]
            distorted += distortion[column * d + k] * x[k]
        mean += weights[column] * here
        correction += (reference[column] - weights[column]) * distorted
        value += reference[column] * here
        value += (weights[column] - reference[column]) * (here - distorted)
    return mean, correction, value


@subroutine
def _own_at(own, i, effects, x):  # type: ignore[no-untyped-def]
    """The arm's own part, delta_i . x, and x' S_i x."""
    d, size, total, variance = x.size, own.means.shape[1], 0.0, 0.0
    for k in range(d):
        delta = own.arms[i, d * d + k]
        for j in range(size):
            delta -= own.arms[i, d * d + d + k * size + j] * effects[j]
        total += x[k] * delta
        for j in range(d):
            variance += x[k] * own.arms[i, k * d + j] * x[j]
    return total, variance


@subroutine
def _variance_at(own, weights, x):  # type: ignore[no-untyped-def]
    """The variance of the mean reward of a candidate with these weights."""
    d, total = x.size, 0.0
    for column in range(weights.size):
        if weights[column] == 0.0:
            continue
        for k in range(d):
            left = weights[column] * x[k]
            for other in range(weights.size):
                if weights[other] != 0.0:
                    for j in range(d):
                        variance = own.means[1 + column * d + k, other * d + j]
                        total += left * variance * weights[other] * x[j]
    return total


@kernel(draw, GeneralRule)
def _draw(rule, memory, available, key):  # type: ignore[no-untyped-def]
    work, allowed = memory.work, start(rule, memory.own, memory.contexts, available)
    if work[PROBE, 0] > 0.0 and uniform(key, PROBES) < work[PROBE, 0]:
        arm = probed(rule, memory.own, memory.contexts, work, available, allowed)
        if arm >= 0:
            return arm
    return highest(work, allowed, half_normal_draw(key), uniform(key, PICKS))


@kernel(chance, GeneralRule)
def _chance(rule, memory, available, arm):  # type: ignore[no-untyped-def]
    work, allowed = memory.work, start(rule, memory.own, memory.contexts, available)
    total, probability = envelope(work, allowed, arm), work[PROBE, 0]
    if probability > 0.0:
        candidate = probed(rule, memory.own, memory.contexts, work, available, allowed)
        if candidate >= 0:
            total *= 1.0 - probability
            if candidate == arm:
                total += probability
    return total


@subroutine
def start(rule, own, contexts, available):  # type: ignore[no-untyped-def]
    """The candidates who may be chosen: while a level has no reward yet, those who have it."""
    stays_a_function()
    if own.common[EMPTY] == 0.0:
        return available
    unseen, allowed, weights = False, np.zeros_like(available), np.empty(rule.kinds.size)
    for i in range(available.size):
        if available[i]:
            fill_weights(rule, i, contexts[i], weights)
            for level in range(own.mass.size):
                allowed[i] |= weights[1 + level] > 0.0 and own.mass[level] == 0.0
            unseen |= allowed[i]
    return allowed if unseen else available
