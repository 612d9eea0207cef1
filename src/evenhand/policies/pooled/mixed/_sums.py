"""The sums that rewards are added to, observed and true ones alike."""

from __future__ import annotations

from evenhand._compile import subroutine
from evenhand._compile.intrinsics import stays_a_function


@subroutine
def add_reward(rule, sums, of_arms, arm, weights, x, reward):  # type: ignore[no-untyped-def]
    """Add a reward to the sums of all, and to those of its arm."""
    stays_a_function()
    d, q = rule.n_features, weights.size
    size = q * d
    for column in range(q):
        weight = weights[column]
        if weight == 0.0:
            continue
        for k in range(d):
            z, here = weight * x[k], column * d + k
            for other in range(q):
                if weights[other] != 0.0:
                    for j in range(d):
                        sums[here * size + other * d + j] += z * weights[other] * x[j]
            sums[size * size + here] += z * reward
            if rule.recurs:
                for j in range(d):
                    of_arms[arm, here * d + j] += z * x[j]
    sums[size * size + size] += reward * reward
    sums[size * size + size + 1] += 1.0
    if rule.recurs:
        for k in range(d):
            of_arms[arm, size * d + k] += x[k] * reward
        of_arms[arm, size * d + d] += 1.0
