"""How a policy treats groups, from logs: fairness metrics with intervals.

`fairness_report` works from sums per group, which a database or a cluster can supply;
`group_sums` makes them from rows. Where the truth is known, `error_rates` and `calibration` compare
decisions with it. Nothing here depends on policies.
"""

from evenhand.fairness._log_sums import group_sums
from evenhand.fairness.calibration import calibration
from evenhand.fairness.error_rates import ErrorRates, error_rates
from evenhand.fairness.impact import impact_table, scoring_counts
from evenhand.fairness.report import FairnessReport, fairness_report
from evenhand.fairness.sums import GroupSums
from evenhand.fairness.with_fairlearn import metric_frame

__all__ = [
    "ErrorRates",
    "FairnessReport",
    "GroupSums",
    "calibration",
    "error_rates",
    "fairness_report",
    "group_sums",
    "impact_table",
    "metric_frame",
    "scoring_counts",
]
