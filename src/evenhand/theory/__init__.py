"""The regret bounds of the paper's Theorems 1 and 2 as functions, with every constant explicit.

The theorems hide constants in an O(.); here they are, as the proofs (Appendix B) give them. Write n
for the arms, d for the features, l for the smallest eigenvalue, x for the largest norm of a context
(so that L = x^2), M for the largest regret of one round, and

    S = sum of t^(-1/3) over t = 1..T      delta' = min(1 / (3nT), 1 / T^(1/3))
    A = (d n L / l) (ln^2(2 / delta') + ln d), for m groups with a factor m
    T_1 = (25 A)^(3/2)

    exploring rounds       M S
    rounds before T_1      M min(T, T_1)
    exploiting rounds      widths sigma x sqrt(tail ln(2nT / delta)) sqrt(2nd / (alpha l)) S
                           + failures n delta' T M

with widths = 6 for two groups and 4 for m groups, tail = 2, alpha = 1/2, failures = 4.

The paper has T_1 with exponent 3/2 in its proofs, and the same term with exponent 2/3 in the
statements of its theorems. The bound follows from the proofs, so 3/2 is the default here.
docs/explanation/theory.md says where each constant comes from, and where the theorems do not apply.
`floor` has the regret that no policy can avoid from biased feedback alone.
"""

from evenhand.theory.bounds import RegretBound, multi_group_bound, two_group_bound
from evenhand.theory.concentration import (
    PROOFS,
    THEOREMS,
    concentration_round,
    expected_smallest_eigenvalue,
    exploration_rounds,
    failure_chance,
)
from evenhand.theory.floor import Floor, identification_floor, unidentified
from evenhand.theory.rates import growth_exponent, rate, rate_through

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
