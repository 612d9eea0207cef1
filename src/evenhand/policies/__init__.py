"""A file per policy, or a package for one with a state of its own; importing this registers all."""

from evenhand.policies._settings import POLICIES
from evenhand.policies.base import Policy
from evenhand.policies.decision import Decision, Scores
from evenhand.policies.group_fair import GroupFairTopInterval
from evenhand.policies.group_fair_chaining import GroupFairIntervalChaining
from evenhand.policies.interval_chaining import IntervalChaining
from evenhand.policies.multi_group_fair import MultiGroupFairTopInterval
from evenhand.policies.naive_fair import NaiveFair
from evenhand.policies.pooled_group_fair import PooledGroupFair
from evenhand.policies.saving import load
from evenhand.policies.top_interval import TopInterval
from evenhand.policies.uniform_random import UniformRandom

__all__ = [
    "POLICIES",
    "Decision",
    "GroupFairIntervalChaining",
    "GroupFairTopInterval",
    "IntervalChaining",
    "MultiGroupFairTopInterval",
    "NaiveFair",
    "Policy",
    "PooledGroupFair",
    "Scores",
    "TopInterval",
    "UniformRandom",
    "load",
]
