"""The probe of the general form: the candidate who says most about a doubtful correction.

As in `evenhand.policies.pooled_group_fair._probe.probe`: take the leader and the best rival with
other weights. Their corrections differ by k . M. If the gap between them is below two standard
deviations of what more data could still teach about that, pull the candidate who reduces its
variance most for the cost. A reward of a candidate takes off (k' V g)^2 / (g' V g + x' S_i x +
sigma^2), with g = z - D_i' x as in a step of learning. There is no probe where groups come with the
round.
"""

from __future__ import annotations

import math

import numpy as np

from evenhand._compile import subroutine
from evenhand._compile.intrinsics import stays_a_function
from evenhand.policies.pooled_group_fair._layout import N_NUMBERS, REWARD_UNIT, SIGMA2
from evenhand.policies.pooled_group_fair._probe import PROBE, UNKNOWN, VALUE
from evenhand.policies.pooled_group_fair.general._layout import fill_weights


@subroutine
def probed(rule, own, contexts, work, available, allowed):  # type: ignore[no-untyped-def]
    """`probe`, worked out once a round, however many probabilities are asked for."""
    if work[PROBE, 1] == UNKNOWN:
        work[PROBE, 1] = probe(rule, own, contexts, work, available, allowed)
    return int(work[PROBE, 1])


@subroutine
def probe(rule, own, contexts, work, available, allowed):  # type: ignore[no-untyped-def]
    """The candidate who teaches most about the leader's lead, or -1 where nothing is in doubt."""
    stays_a_function()
    n, d, q = available.size, rule.n_features, rule.kinds.size
    weights, x, leader, rival = np.empty((n, q)), np.empty((n, d)), -1, -1
    for i in range(n):
        if available[i] != allowed[i]:  # there is a level without any reward
            return -1
        fill_weights(rule, i, contexts[i], weights[i])
        for k in range(d):
            x[i, k] = contexts[i, k] * own.common[N_NUMBERS + k]
        if available[i] and (leader < 0 or work[VALUE, i] > work[VALUE, leader]):
            leader = i
    if leader < 0:
        return -1
    for i in range(n):
        other = available[i] and not _same(weights, i, leader)
        if other and (rival < 0 or work[VALUE, i] > work[VALUE, rival]):
            rival = i
    if rival < 0:
        return -1
    difference, spread = np.empty(q * d), np.zeros(q * d)
    for column in range(q):
        reference = rule.reference[column]
        for k in range(d):
            first = (weights[leader, column] - reference) * x[leader, k]
            second = (weights[rival, column] - reference) * x[rival, k]
            # k, whose product with M is the difference of the corrections of leader and rival.
            difference[column * d + k] = first - second
    for k in range(q * d):
        for j in range(q * d):
            spread[k] += own.means[1 + k, j] * difference[j]
    if rule.recurs:
        doubt = _of_averages(own, weights, x, leader) + _of_averages(own, weights, x, rival)
    else:
        doubt = 0.0
        for k in range(q * d):
            doubt += difference[k] * spread[k]
    doubt = math.sqrt(max(doubt, 0.0)) * own.common[REWARD_UNIT]
    top = work[VALUE, leader]
    if not top - work[VALUE, rival] < 2.0 * doubt < np.inf:
        return -1
    arm, most = -1, 0.0
    for i in range(n):
        if available[i]:
            cost = top - work[VALUE, i] + doubt
            worth = _gain(rule, own, i, weights[i], x[i], spread) / (cost * cost)
            if worth > most:
                arm, most = i, worth
    return arm


@subroutine
def _same(weights, i, other):  # type: ignore[no-untyped-def]
    """Whether two candidates have the same weights."""
    apart = 0.0
    for column in range(weights.shape[1]):
        apart = max(apart, abs(weights[i, column] - weights[other, column]))
    return apart == 0.0


@subroutine
def _of_averages(own, weights, x, at):  # type: ignore[no-untyped-def]
    """The variance that more data could remove from the average of the arms with `at`'s weights.

    It is taken at the context of `at`. A fixed number of arms leaves a floor that no data remove.
    """
    stays_a_function()
    d, total, size = x.shape[1], 0.0, 0.0
    for i in range(weights.shape[0]):
        if _same(weights, i, at):
            size += 1.0
            for k in range(d):
                for j in range(d):
                    total += x[at, k] * own.arms[i, k * d + j] * x[at, j]
    return total / (size * size)


@subroutine
def _gain(rule, own, i, weights, x, spread):  # type: ignore[no-untyped-def]
    """By how much a reward of candidate i reduces the variance of the difference.

    The difference of the corrections is k . M, with the variance k' V k. For M, a reward of the
    candidate is one of g . M with the variance c = x' S_i x + sigma^2, where g = z - D_i' x. It
    takes V g g' V / (g' V g + c) off V, and so

        (k' V g)^2 / (g' V g + x' S_i x + sigma^2)

    off the variance of the difference. `spread` is V k.
    """
    stays_a_function()
    d, size = x.size, spread.size
    g, variance, covariance = np.empty(size), own.common[SIGMA2], 0.0
    for column in range(weights.size):
        for k in range(d):
            g[column * d + k] = weights[column] * x[k]
    if rule.recurs:
        for k in range(d):
            for j in range(d):
                variance += x[k] * own.arms[i, k * d + j] * x[j]
            for j in range(size):
                g[j] -= x[k] * own.arms[i, d * d + d + k * size + j]
    for k in range(size):
        covariance += g[k] * spread[k]
        row = 0.0
        for j in range(size):
            row += own.means[1 + k, j] * g[j]
        variance += g[k] * row
    return covariance * covariance / variance if variance > 0.0 else 0.0
