"""Logs of policies whose groups come with each round."""

from __future__ import annotations

import numpy as np

import evenhand as eh

ARMS, FEATURES = 4, 2


def play_rounds(path, policy, memberships, seed=0, candidates=True, missing=()):
    """Play a policy, and log it.

    Args:
        path: of the log.
        policy: with groups by round.
        memberships: the groups of the candidates of each round.
        seed: of contexts and rewards.
        candidates: whether the log keeps them.
        missing: rounds, from 0, whose reward never comes.

    Returns:
        By round the contexts, the chosen arm and the reward.
    """
    rng = np.random.default_rng(seed)
    played = []
    with eh.log_to(path, policy, candidates=candidates) as logged:
        for t, groups in enumerate(memberships):
            contexts = rng.normal(size=(ARMS, FEATURES))
            decision = logged.select(contexts, groups=groups)
            sex = groups["sex"] if isinstance(groups, dict) else groups
            reward = contexts[decision.arm] @ [1.0, 2.0] + rng.normal()
            reward -= 1.5 * (sex[decision.arm] == "F")
            if t not in missing:
                logged.update(decision, reward)
            played.append((contexts, decision.arm, reward))
    contexts, arms, rewards = map(np.array, zip(*played, strict=True))
    return contexts, arms, rewards


def drawn(levels, rounds, seed=1):
    """Groups of all candidates of so many rounds, drawn from these."""
    rng = np.random.default_rng(seed)
    return [[levels[i] for i in rng.integers(len(levels), size=ARMS)] for _ in range(rounds)]
