"""From sums to a fairness report."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from evenhand import _checks
from evenhand.evaluation.intervals import PROPORTIONS
from evenhand.evaluation.metrics import possible
from evenhand.evaluation.report import FairnessReport
from evenhand.evaluation.sums import GroupSums

LEAST = 30


def fairness(
    sums: GroupSums | pd.DataFrame,
    *,
    level: float = 0.95,
    least: int = LEAST,
    threshold: float = 0.8,
    simultaneous: bool = False,
    proportions: str = "wilson",
    metrics: Sequence[str] | None = None,
    unfavourable: bool = False,
) -> FairnessReport:
    """Fairness metrics per group with intervals, from a row of sums per group.

    Args:
        sums: `GroupSums`, or a frame with its columns.
        level: of the intervals.
        least: a number that rests on fewer decisions (of people or rewards: of these) is called
            "insufficient evidence". It is shown all the same. With 30, the interval of a rate of
            one half is 34 points wide.
        threshold: the screening value for the ratio of selection rates. 0.8 is the "four-fifths"
            of the guidelines of the US EEOC of 1978, where it is a rule of thumb.
        simultaneous: whether the intervals of single groups shall hold for all groups at once
            (Bonferroni). Take it when there are many groups and you look for the odd one.
        proportions: "wilson", or "exact" for rates that never cover less than they say.
        metrics: which ones; all that the sums are enough for, unless given.
        unfavourable: whether a reward of 1 is the bad outcome (denied, arrested). Then the
            selection rate by reward, and the screen of it, are of rewards of 0.

    Example:
        >>> import pandas as pd, evenhand as eh
        >>> sums = pd.DataFrame({"group": ["F", "M"], "n": [300, 700], "arms": [5, 5]})
        >>> report = eh.evaluation.fairness(sums)
        >>> report.by_group.loc["share", ["estimate", "low", "high"]].round(3).values.tolist()
        [[0.3, 0.272, 0.329], [0.7, 0.671, 0.728]]
        >>> report.screening()[["group", "estimate", "high", "screen"]].round(2).values.tolist()
        [['F', 0.43, 0.49, 'below'], ['M', 1.0, 1.0, 'the highest rate']]
    """
    table = sums if isinstance(sums, GroupSums) else GroupSums(sums)
    if unfavourable:
        if not table.has("positives", "n_reward"):
            raise ValueError(
                "unfavourable is set, and the sums have no positives; allowed is that with rewards "
                "of 0 and 1: give positives and n_reward, or leave unfavourable out"
            )
        good = table.table["n_reward"] - table.table["positives"]
        table = GroupSums(table.table.assign(favourable=good))
    known = possible(table)
    wanted = known if metrics is None else list(metrics)
    for name in wanted:
        _checks.one_of("metrics", name, known)
    if "share" not in wanted:
        wanted = ["share", *wanted]
    return FairnessReport(
        sums=table,
        level=_checks.number("level", level, 0.0, 1.0, open_ends=True),
        least=_checks.whole("least", least, 1),
        threshold=_checks.number("threshold", threshold, 0.0, 1.0),
        simultaneous=bool(simultaneous),
        proportions=_checks.one_of("proportions", proportions, PROPORTIONS),
        metrics=tuple(wanted),
    )
