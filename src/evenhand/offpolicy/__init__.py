"""What another policy would have earned in the rounds of a log, overall and per group.

`evaluate` needs logged decisions with their propensities (`Logged`, or `read_logged` of a file).
`policy_probabilities` asks a policy for what it would do, and one that has learned from the rows
that judge it is warned of.
"""

from evenhand.offpolicy._evaluation import evaluate
from evenhand.offpolicy._targets import policy_probabilities
from evenhand.offpolicy.logged import Logged
from evenhand.offpolicy.reading import read_logged
from evenhand.offpolicy.report import ValueReport

__all__ = ["Logged", "ValueReport", "evaluate", "policy_probabilities", "read_logged"]
