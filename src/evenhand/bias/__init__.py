"""What the feedback does to each group: estimates, intervals, and where nothing can be known.

A report is made from sums (`Statistics`) that a policy, a database or a cluster can supply;
`bias_report` turns them into a `BiasReport`. Nothing here looks into policies.
"""

from evenhand.bias.gaps import Gap
from evenhand.bias.learned import statistics_of
from evenhand.bias.making import bias_report
from evenhand.bias.report import BiasReport
from evenhand.bias.statistics import Statistics

__all__ = ["BiasReport", "Gap", "Statistics", "bias_report", "statistics_of"]
