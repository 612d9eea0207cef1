"""Names of outcomes that are bad for people: a reward called so is most often the wrong way round.

It is a list of words and no more than a reason to ask.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# The beginnings of words; in front of each there is no letter.
BAD = (
    "abandon", "accident", "arrest", "attrition", "bad", "bankrupt", "chargeoff", "churn",
    "convict", "death", "declin", "default", "delinq", "denial", "denie", "deny", "deport",
    "detain", "detention", "dismiss", "dropout", "evict", "expell", "fail", "fatal",
    "fired", "foreclos", "fraud", "incarcerat", "injur", "jail", "mortality", "offend", "overdue",
    "penalt", "prison", "readmi", "recid", "refus", "reincarcerat", "reject", "reoffen",
    "suspend", "suspension", "terminated", "unemploy", "unpaid", "violat",
)  # fmt: skip
YES = ("yes", "y", "true", "t", "1", "x")
WORDS = re.compile(rf"^(?:{'|'.join(BAD)})")


def bad_outcome(reward: str, values: Mapping[str, float] | None = None) -> str | None:
    """The word that says that a high reward is bad: the reward's name, or its highest value.

    Args:
        reward: the name of the column.
        values: the numbers for a reward in words.

    Example:
        >>> from evenhand.columns.outcomes import bad_outcome
        >>> bad_outcome("deny"), bad_outcome("two_year_recid"), bad_outcome("isDefault")
        ('deny', 'two_year_recid', 'isDefault')
        >>> bad_outcome("paid"), bad_outcome("mortgage")
        (None, None)
        >>> bad_outcome("action", {"denied": 1.0, "approved": 0.0})
        'denied'
        >>> bad_outcome("deny", {"yes": 1.0, "no": 0.0})
        'deny'
    """
    best = max((values or {}).values(), default=0.0)
    top = [word for word, worth in (values or {}).items() if worth == best]
    for word in top:
        if is_bad(word):
            return word
    # "yes" says nothing by itself, and so do numbers: then the name does.
    return reward if is_bad(reward) and all(word.lower() in YES for word in top) else None


def is_bad(name: str) -> bool:
    """Whether a name has a word in it that is bad for people.

    Example:
        >>> from evenhand.columns.outcomes import is_bad
        >>> is_bad("denied"), is_bad("loan_default"), is_bad("approved")
        (True, True, False)
    """
    parts = re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()
    return any(WORDS.match(part) for part in re.split(r"[^a-z]+", parts))
