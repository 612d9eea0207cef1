"""The bias of the feedback for each group: estimates, intervals, and where nothing can be known.

A report is computed from sums (`Statistics`) that a policy, a database or a cluster can supply;
`bias_report` turns them into a `BiasReport`. Nothing here looks inside policies.
"""

from evenhand.bias._contrasts import Gap
from evenhand.bias.estimate import bias_report
from evenhand.bias.report import BiasReport
from evenhand.bias.statistics import Statistics, statistics_of

__all__ = ["BiasReport", "Gap", "Statistics", "bias_report", "statistics_of"]
