"""How a policy treats groups, from logs: fairness metrics with intervals.

`fairness_report` works from sums per group, which a database or a cluster can supply;
`group_sums` makes them from rows. Nothing here depends on policies.
"""

from evenhand.fairness._rows import group_sums
from evenhand.fairness.report import FairnessReport, fairness_report
from evenhand.fairness.sums import GroupSums
from evenhand.fairness.with_fairlearn import metric_frame

__all__ = ["FairnessReport", "GroupSums", "fairness_report", "group_sums", "metric_frame"]
