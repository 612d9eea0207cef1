"""How a policy treats groups, from logs: fairness metrics with intervals.

`fairness_report` works from sums per group, so that a database or a cluster can supply them;
`group_sums` makes them from rows. Nothing here looks into policies.
"""

from evenhand.fairness._rows import group_sums
from evenhand.fairness.impact import impact_table, scoring_counts
from evenhand.fairness.report import FairnessReport, fairness_report
from evenhand.fairness.sums import GroupSums
from evenhand.fairness.with_fairlearn import metric_frame

__all__ = [
    "FairnessReport",
    "GroupSums",
    "fairness_report",
    "group_sums",
    "impact_table",
    "metric_frame",
    "scoring_counts",
]
