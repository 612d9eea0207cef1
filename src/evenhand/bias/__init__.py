"""What the feedback does to each group: estimates, intervals, and where nothing can be known.

A report is made from sums (`Statistics`) that a policy, a database or a cluster can supply;
`bias_report` turns them into a `BiasReport`. Nothing here looks into policies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evenhand.bias.gaps import Gap
from evenhand.bias.making import bias_report
from evenhand.bias.report import BiasReport
from evenhand.bias.statistics import Statistics

if TYPE_CHECKING:
    from evenhand.bias.learned import statistics_of

__all__ = ["BiasReport", "Gap", "Statistics", "bias_report", "statistics_of"]


def __getattr__(name: str) -> Any:
    """`statistics_of` when it is asked for: it loads Numba, which an audit does not need."""
    if name == "statistics_of":
        from evenhand.bias.learned import statistics_of

        return statistics_of
    raise AttributeError(f"module 'evenhand.bias' has no attribute {name!r}")
