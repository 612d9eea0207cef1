"""What another policy would have earned in the rounds of a log, overall and per group.

`evaluate` needs logged decisions with their propensities (`Logged`, or `read_logged` of a file).
`policy_probabilities` gives what a policy would do. There is a warning if a policy has learned from
the rows that it is evaluated on.
"""

from evenhand.offpolicy._evaluation import evaluate
from evenhand.offpolicy._read_logs import read_logged
from evenhand.offpolicy._targets import policy_probabilities
from evenhand.offpolicy.logged import Logged
from evenhand.offpolicy.report import ValueReport

__all__ = ["Logged", "ValueReport", "evaluate", "policy_probabilities", "read_logged"]
