"""What another policy would have earned in the rounds of a log, overall and per group.

`evaluate` needs logged decisions with their propensities (`Logged`). Nothing here looks into
policies; `policy_probabilities` asks one for what it would do.
"""

from evenhand.offpolicy._evaluation import evaluate
from evenhand.offpolicy.logged import Logged
from evenhand.offpolicy.report import ValueReport
from evenhand.offpolicy.targets import policy_probabilities

__all__ = ["Logged", "ValueReport", "evaluate", "policy_probabilities"]
