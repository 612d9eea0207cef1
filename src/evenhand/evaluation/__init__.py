"""How a policy treats groups, from logs: fairness metrics, and what another policy would do.

`fairness` works from sums per group, so that a database or a cluster can supply them; `group_sums`
makes them from rows. `off_policy` says what another policy would have earned, overall and per
group. Nothing here looks into policies.
"""

from evenhand.evaluation.evaluating import off_policy
from evenhand.evaluation.logged import Logged
from evenhand.evaluation.making import fairness
from evenhand.evaluation.report import FairnessReport
from evenhand.evaluation.rows import group_sums
from evenhand.evaluation.sums import GroupSums
from evenhand.evaluation.targets import policy_probabilities
from evenhand.evaluation.values import ValueReport
from evenhand.evaluation.with_fairlearn import metric_frame

__all__ = [
    "FairnessReport",
    "GroupSums",
    "Logged",
    "ValueReport",
    "fairness",
    "group_sums",
    "metric_frame",
    "off_policy",
    "policy_probabilities",
]
