"""The feedback beside the true reward of the same rows: bias without assuming equal averages.

Where a row has both, its feedback less its true reward is what the judgement added. A regression of
that on the features, group by group, finds the bias itself: what the arms are worth cancels.
"""

from __future__ import annotations

from dataclasses import replace

from evenhand.audit.looking import Look
from evenhand.audit.settings import Settings
from evenhand.audit.sources import Source
from evenhand.audit.values import as_number, is_missing
from evenhand.bias.fitting import PULLS

DISTORTION = "evenhand_distortion"
ASSUMPTION = (
    "This needs no equal averages. It speaks for the rows whose true reward is known, and trusts "
    "that reward."
)


def beside_truth(source: Source, look: Look, settings: Settings) -> tuple[Source, Look, Settings]:
    """The same log with feedback less true reward as the reward, of the rows that have both.

    Arms do not matter there, and neither do time windows.
    """
    columns, table = look.columns, source.table
    true = table[columns.true_reward]
    known = table.filter(~is_missing(true) & ~is_missing(table[columns.reward]))
    added = as_number(known[columns.reward]) - as_number(known[columns.true_reward])
    return (
        replace(source, table=known.mutate(**{DISTORTION: added})),
        replace(
            look,
            columns=replace(columns, reward=DISTORTION, true_reward=None, timestamp=None),
            times=None,
            by_arm=False,
            reward_centre=0.0,
        ),
        replace(settings, weighting=PULLS, windows=0),
    )
