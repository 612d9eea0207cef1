"""Logs of evenhand's own: which rows are decisions, and what off-policy evaluation needs of them.

A log has three kinds of rows. A decision has a propensity. A row with a round and no propensity is
what a human did in its place. A row without a round is history that a policy was taught.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenhand.errors import DataError
from evenhand.events._candidates import CHANCES, CONTEXTS, candidates
from evenhand.events._schema import NAMES
from evenhand.events.read import ATTRS, read_log
from evenhand.groups import Groups

GROUP, ROUND, ARM, REWARD = (NAMES[role] for role in ("group", "round", "arm", "reward"))
PROPENSITY, OVERRIDE, EXPLORED = (NAMES[role] for role in ("propensity", "override", "explored"))


def log_labels(frame: pd.DataFrame) -> list[str] | None:
    """The group of every arm, if the frame comes from a log that evenhand wrote."""
    labels: list[str] | None = frame.attrs.get(ATTRS, {}).get("groups")
    return labels


def parts_of_log(log: str | Path | pd.DataFrame) -> dict[str, Any]:
    """What `Logged` is made from, of the decisions in a log that evenhand wrote."""
    frame = log if isinstance(log, pd.DataFrame) else read_log(log)
    told = frame.attrs.get(ATTRS)
    if told is None or PROPENSITY not in frame:
        what = "a frame" if isinstance(log, pd.DataFrame) else repr(str(log))
        raise DataError(
            f"log is {what} that does not come from a log of evenhand's; give its path, or what "
            "eh.read_log or eh.simulate_log gave, or make Logged.from_frame(frame, groups) of it"
        )
    labels, features = told["groups"], told["features"]
    lost = [name for name in (ARM, REWARD, OVERRIDE, *features) if name not in frame]
    if lost:
        raise DataError(f"log has lost its column {lost[0]!r}; give all columns of the log")
    own = frame[frame[PROPENSITY].notna()]
    parts: dict[str, Any] = {
        "arms": own[ARM].to_numpy(dtype=np.int64),
        "rewards": own[REWARD].to_numpy(dtype=np.float64),
        "propensities": own[PROPENSITY].to_numpy(dtype=np.float64),
        "groups": Groups(labels),
        "contexts": own[features].to_numpy(dtype=np.float64),
        "shared": False,
        "overridden": own[OVERRIDE].notna().to_numpy(),
    }
    if {CONTEXTS, CHANCES} <= set(frame.columns):
        every = candidates(own, len(labels), features)
        parts |= {
            "contexts": np.nan_to_num(every.contexts),  # of a missing arm nobody asks
            "shared": every.contexts.ndim == 2,
            "available": every.available,
            "all_propensities": every.propensities,
        }
    return parts


def decided(log: pd.DataFrame) -> pd.DataFrame:
    """The rows that say what was done in the end, of a log in the log format; others as they are.

    Where a human chose another arm, that row stands for the decision, and it did not explore.
    History is left out: nobody decided it in this log.
    """
    if not {ROUND, PROPENSITY, OVERRIDE} <= set(log.columns):
        return log
    made, replaced = log[PROPENSITY].notna(), log[OVERRIDE].notna()
    human = ~made & log[ROUND].notna()
    asked, found = set(log[ROUND][made & replaced]), set(log[ROUND][human])
    if asked != found:
        raise DataError(
            f"round {min(asked ^ found)} was overridden, and one of its two rows is not in the "
            "log; give both, that of the policy's arm and that of the human's"
        )
    rows = log[(made & ~replaced) | human]
    if EXPLORED not in log:
        return rows
    return rows.assign(**{EXPLORED: rows[EXPLORED].where(rows[PROPENSITY].notna(), False)})


def chances_of(log: pd.DataFrame) -> dict[str, int] | None:
    """How often an arm of each group could have been chosen, if the log keeps candidates.

    An arm that a human took though the policy was not to have it had its chance as well.
    """
    told, needed = log.attrs.get(ATTRS), {ARM, PROPENSITY, OVERRIDE, CONTEXTS, CHANCES}
    if told is None or not needed | set(told["features"]) <= set(log.columns):
        return None
    groups = Groups(told["groups"])
    available = candidates(log, groups.n_arms, told["features"]).available
    taken = log[OVERRIDE][log[PROPENSITY].notna()]
    rows = np.flatnonzero(taken.notna())
    available[rows, taken.iloc[rows].to_numpy(dtype=np.int64)] = True
    each = available.sum(axis=0)
    return {name: int(each[groups.of == g].sum()) for g, name in enumerate(groups.names)}
