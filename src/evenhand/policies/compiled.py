"""The building blocks of a compiled policy; docs/how-to/write-a-policy.md shows how to use them.

`kernel` marks the functions of a rule. In `score`, the rows of `memory.work` are ESTIMATE, WIDTH,
CORRECTION, CORRECTION_WIDTH and UPPER, with a column per arm. PICKS is the place of the random
number that picks an arm; a rule that draws more numbers has the places from FREE on.
"""

from evenhand._random import uniform
from evenhand.policies._best_arm import best, best_chance, pick
from evenhand.policies._kernels import (
    FREE,
    PICKS,
    chance,
    draw,
    explore,
    explore_chance,
    kernel,
    learn,
    learn_true,
    score,
    settle,
)
from evenhand.policies._scores import add_up, score_arms, score_group
from evenhand.policies._state import (
    CORRECTION,
    CORRECTION_WIDTH,
    ESTIMATE,
    GROUP_ESTIMATE,
    GROUP_WIDTH,
    UPPER,
    WIDTH,
    absorb_reward,
    arm_count,
    group_count,
    round_learned,
)

__all__ = [
    "CORRECTION",
    "CORRECTION_WIDTH",
    "ESTIMATE",
    "FREE",
    "GROUP_ESTIMATE",
    "GROUP_WIDTH",
    "PICKS",
    "UPPER",
    "WIDTH",
    "absorb_reward",
    "add_up",
    "arm_count",
    "best",
    "best_chance",
    "chance",
    "draw",
    "explore",
    "explore_chance",
    "group_count",
    "kernel",
    "learn",
    "learn_true",
    "pick",
    "round_learned",
    "score",
    "score_arms",
    "score_group",
    "settle",
    "uniform",
]
