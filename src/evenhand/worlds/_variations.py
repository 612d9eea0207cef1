"""Rounds of a synthetic world that departs from the paper's: its contexts, noise, rewards or drift.

The paper's own rounds are drawn by the function for `LinearInstance`, which has no choices in it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand._compile import woven
from evenhand._random import fill_uniform
from evenhand.worlds.base import draw_noise, receive, world_kernel

CONTEXTS = {"own": 0, "shared": 1, "constant": 2}
NOISE_SHAPES = {"normal": 0, "t3": 1}
REWARDS = {"numbers": 0, "binary": 1}

_SHARED, _CONSTANT, _T3, _BINARY = 1, 2, 1, 1


class VariedInstance(NamedTuple):
    """The numbers fixed during a replication. The coefficients are those of scaled features."""

    coefficients: NDArray[np.float64]  # beta, (arms, features)
    bias: NDArray[np.float64]  # psi of the arm's group, (arms, features)
    noise: float
    scales: NDArray[np.float64]  # of the features
    common: float  # the weight of the number that all features of an arm have in common
    contexts: int
    noise_shape: int
    rewards: int
    drift: int  # the round from which the bias has its full size


def weight_of_common(correlation: float) -> float:
    """The w for which features w u_0 + (1 - w) u_k have this correlation.

    u_0, which an arm's features have in common, and the u_k are independent with equal variances,
    so the correlation is w^2 / (w^2 + (1 - w)^2).

    Example:
        >>> from evenhand.worlds._variations import weight_of_common
        >>> weight_of_common(0.5)
        0.5
    """
    shared, own = math.sqrt(correlation), math.sqrt(1.0 - correlation)
    return shared / (shared + own)


@world_kernel(VariedInstance)
def _draw_round(instance, t, generator, contexts, observed, true):  # type: ignore[no-untyped-def]
    """Equation 2 as in the paper's world, with a bias that may still be growing."""
    n, d = instance.coefficients.shape
    grown = t / instance.drift if t < instance.drift else 1.0
    _draw_contexts(instance, generator, contexts)
    for i in range(n):
        worth = distortion = 0.0
        for k in range(d):
            x = contexts[i, k] * instance.scales[k]
            contexts[i, k] = x
            worth += instance.coefficients[i, k] * x
            distortion += instance.bias[i, k] * x
        true[i] = worth
        observed[i] = worth + grown * distortion


@woven
def _draw_contexts(instance, generator, contexts):  # type: ignore[no-untyped-def]
    """Contexts in [0, 1]^d, before they are scaled."""
    n, d = instance.coefficients.shape
    if instance.contexts == _CONSTANT:
        for i in range(n):
            for k in range(d):
                contexts[i, k] = 1.0
        return
    drawn = 1 if instance.contexts == _SHARED else n
    fill_uniform(generator, contexts[:drawn])
    if instance.common > 0.0:
        for i in range(drawn):
            u = generator.random()
            for k in range(d):
                contexts[i, k] += instance.common * (u - contexts[i, k])
    for i in range(drawn, n):
        for k in range(d):
            contexts[i, k] = contexts[0, k]


@world_kernel(VariedInstance, draw_noise)
def _draw_noise(instance, t, generator):  # type: ignore[no-untyped-def]
    """Normal, or Student's t with 3 degrees of freedom, whose variance is 3; uniform for 0/1."""
    if instance.rewards == _BINARY:
        return generator.random()
    if instance.noise_shape == _T3:
        return instance.noise * generator.standard_t(3.0) / np.sqrt(3.0)
    return instance.noise * generator.standard_normal()


@world_kernel(VariedInstance, receive)
def _receive(instance, t, arm, mean, noise):  # type: ignore[no-untyped-def]
    """The mean and its noise or, for 0/1 rewards, 1 with the mean as its probability."""
    if instance.rewards == _BINARY:
        return 1.0 if noise < mean else 0.0
    return mean + noise
