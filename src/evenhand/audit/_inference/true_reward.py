"""The feedback beside the true reward of the same rows: bias without assuming equal averages.

Where a row has both, its feedback less its true reward is what the judgement added. A regression of
that on the features, group by group, finds the bias itself: the true value of the arms cancels.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from evenhand.audit._input.expressions import as_number, is_missing
from evenhand.audit._input.first_look import Look
from evenhand.audit._input.sources import Source
from evenhand.audit._settings import AuditSettings
from evenhand.bias._fit import PULLS

DISTORTION = "evenhand_distortion"
MOST_SLOPE = 2.0  # bias may make one vary more than the other, but hardly as much as this
ASSUMPTION = (
    "This does not assume equal averages. It applies to the rows whose true reward is known, and "
    "takes that reward to be right."
)


def beside_truth(
    source: Source, look: Look, settings: AuditSettings
) -> tuple[Source, Look, AuditSettings]:
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
            rows=0,  # not counted
            times=None,
            by_arm=False,
            reward_centre=0.0,
            middle=None,
        ),
        replace(settings, weighting=PULLS, windows=0),
    )


def objection(frame: pd.DataFrame, reward_centre: float, reward: str, true: str) -> str:
    """Why nothing can be measured against the true rewards, from the sums; empty if it can.

    Feedback less true reward makes sense only in the same units. Their covariance cannot be much
    more than the variance of either, unless the units differ.
    """
    total = _within(frame)
    n = float(total["r_n"].sum())
    if n < 2.0:
        return ""
    first = total["y_r"].sum() / n + reward_centre
    whole = total["yy_r"].sum() / n - (total["y_r"].sum() / n) ** 2
    if whole <= 1e-12 * max(first**2, 1.0):
        return (
            f"{reward} is {first:.6g} in every row whose {true} is known, so the bias cannot be "
            "measured against it"
        )
    y, r, covariance = (float(total[name].sum()) / n for name in ("var_y", "var_r", "cov"))
    flags = (_is_flag(total, "y_r", "yy_r", reward_centre), _is_flag(total, "r", "rr", 0.0))
    units = f"{reward} and {true} do not seem to be in the same units"
    # Only 0 and 1 are their own squares, so sums that agree with sums of squares tell a flag.
    if flags[0] != flags[1]:
        which = (reward, true) if flags[0] else (true, reward)
        return f"{units}: {which[0]} is 0 or 1, and {which[1]} is not"
    least = min(y, r)
    if least > 0.0:
        slope, apart = covariance / least, max(y * r - covariance**2, 0.0)
        error = (apart / n) ** 0.5 / least
        # Four standard errors: this refuses an analysis, so it must not be chance.
        if slope - 4.0 * error > MOST_SLOPE:
            return f"{units}: one changes {slope:.3g} times as much as the other"
    return ""


def _within(frame: pd.DataFrame) -> pd.DataFrame:
    """Sums by group, and n times the variances and covariance within it, of rows with a truth."""
    names = ["n", "y", "yy", "r_n", "r", "rr", "y_r", "yy_r", "yr"]
    total = frame[names].astype(float).fillna(0.0).groupby(frame["g"].astype(str)).sum()
    n = total["r_n"].clip(lower=1.0)
    total["var_y"] = (total["yy_r"] - total["y_r"] ** 2 / n).clip(lower=0.0)
    total["var_r"] = (total["rr"] - total["r"] ** 2 / n).clip(lower=0.0)
    total["cov"] = total["yr"] - total["y_r"] * total["r"] / n
    return total


def _is_flag(total: pd.DataFrame, total_name: str, square: str, centre: float) -> bool:
    return bool(centre == 0.0 and (total[total_name] == total[square]).all())
