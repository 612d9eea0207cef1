"""Logs of a small bandit whose values are sums that can be written down."""

from __future__ import annotations

import numpy as np

from evenhand.offpolicy import Logged

LEVEL = 0.95


LABELS = ["F", "F", "M", "M"]


def draw(rng, chances):
    return (rng.random(len(chances))[:, None] > np.cumsum(chances, axis=1)).sum(axis=1)


def below(rate, nominal, replications):
    """Three standard errors below: by chance once in 740 rates."""
    return rate < nominal - 3.0 * np.sqrt(nominal * (1.0 - nominal) / replications)


class Bandit:
    """Two kinds of rounds, four arms in two groups, rewards of mean `mean` and noise 1.

    Everything about the target is a sum over the two kinds of rounds.
    """

    def __init__(self, log, target, mean=None):
        self.chance = np.array([0.6, 0.4])
        self.log, self.target = np.array(log), np.array(target)
        self.mean = np.array(mean if mean is not None else [[1, 2, 3, 0], [2, 0, 1, 4]], float)

    def truth(self, group=None):
        """Value, or contribution and value within; and the share of a group."""
        arms = slice(None) if group is None else slice(2 * group, 2 * group + 2)
        part = (self.chance[:, None] * self.target * self.mean)[:, arms].sum()
        share = (self.chance[:, None] * self.target)[:, arms].sum()
        return part, part / share, share

    def draw(self, rng, n, noise=1.0):
        kind = (rng.random(n) < self.chance[1]).astype(int)
        arms = draw(rng, self.log[kind])
        rewards = self.mean[kind, arms] + noise * rng.standard_normal(n)
        x = np.column_stack([np.ones(n), kind])
        log = Logged(arms, rewards, self.log[kind, arms], LABELS, x)
        return log, self.target[kind]


GOOD = Bandit(
    log=[[0.25, 0.25, 0.25, 0.25], [0.4, 0.3, 0.2, 0.1]],
    target=[[0.1, 0.2, 0.6, 0.1], [0.3, 0.1, 0.1, 0.5]],
)
