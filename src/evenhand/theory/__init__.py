"""Theory beside measurement: the regret bounds of the paper, and the floor below which none can be.

`bounds` has Theorems 1 and 2 as functions, `floor` what feedback alone cannot identify.
"""

from evenhand.theory.bounds import (
    PROOFS,
    THEOREMS,
    RegretBound,
    concentration_round,
    expected_smallest_eigenvalue,
    exploration_rounds,
    failure_chance,
    growth_exponent,
    multi_group_bound,
    rate,
    rate_through,
    two_group_bound,
)
from evenhand.theory.floor import Floor, identification_floor, unidentified

__all__ = [
    "PROOFS",
    "THEOREMS",
    "Floor",
    "RegretBound",
    "concentration_round",
    "expected_smallest_eigenvalue",
    "exploration_rounds",
    "failure_chance",
    "growth_exponent",
    "identification_floor",
    "multi_group_bound",
    "rate",
    "rate_through",
    "two_group_bound",
    "unidentified",
]
