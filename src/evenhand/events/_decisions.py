"""Logs that evenhand wrote: which rows are decisions, and what off-policy evaluation needs.

A log has three kinds of rows. A decision has a propensity. A row with a round but no propensity is
the arm that a human chose instead. A row without a round is history that the policy learned from.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.errors import DataError, setting
from evenhand.events._candidates import CHANCES, CONTEXTS, candidates
from evenhand.events._read import ATTRS, read_log
from evenhand.events._schema import NAMES
from evenhand.events.columns import CERTAIN, membership_columns
from evenhand.groups import PER_ROUND, Groups

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
BETWEEN = " & "
GROUP, ROUND, ARM, REWARD = (NAMES[role] for role in ("group", "round", "arm", "reward"))
PROPENSITY, OVERRIDE, EXPLORED = (NAMES[role] for role in ("propensity", "override", "explored"))


def log_labels(frame: pd.DataFrame) -> list[str] | None:
    """The group of every arm, if the frame comes from a log that evenhand wrote."""
    labels: list[str] | None = frame.attrs.get(ATTRS, {}).get("groups")
    return labels


def parts_of_log(log: str | Path | pd.DataFrame) -> dict[str, Any]:
    """The arguments of `Logged` for the decisions in a log that evenhand wrote."""
    frame = log if isinstance(log, pd.DataFrame) else read_log(log)
    attrs = frame.attrs.get(ATTRS)
    if attrs is None or PROPENSITY not in frame:
        source = "a frame" if isinstance(log, pd.DataFrame) else repr(str(log))
        raise DataError(
            f"log is {source} that does not come from a log of evenhand's; give its path, or the "
            "frame of read_log or simulate_log; for another frame, use Logged.from_frame"
        )
    labels, features = attrs["groups"], attrs["features"]
    missing = [name for name in (ARM, REWARD, OVERRIDE, *features) if name not in frame]
    if missing:
        raise DataError(f"log has lost its column {missing[0]!r}; give all columns of the log")
    decisions = frame[frame[PROPENSITY].notna()]
    parts: dict[str, Any] = {
        "arms": decisions[ARM].to_numpy(dtype=np.int64),
        "rewards": decisions[REWARD].to_numpy(dtype=np.float64),
        "propensities": decisions[PROPENSITY].to_numpy(dtype=np.float64),
        "groups": Groups(labels),
        "contexts": decisions[features].to_numpy(dtype=np.float64),
        "shared": False,
        "overridden": decisions[OVERRIDE].notna().to_numpy(),
    }
    if {CONTEXTS, CHANCES} <= set(frame.columns):
        every_arm = candidates(decisions, len(labels), features)
        parts |= {
            "contexts": np.nan_to_num(every_arm.contexts),  # those of unavailable arms are not used
            "shared": every_arm.contexts.ndim == 2,
            "available": every_arm.available,
            "all_propensities": every_arm.propensities,
        }
    attributes = membership_columns(features)
    if attributes and set(labels) == {PER_ROUND}:
        parts |= _members(parts, attributes, features, len(labels))
    return parts


def _members(
    parts: dict[str, Any], attributes: dict[str, dict[str, str]], features: list[str], arms: int
) -> dict[str, Any]:
    """The groups of all candidates, in a log whose groups came with the rounds."""
    rows = parts["contexts"]
    if rows.ndim == 2 and not parts["shared"]:
        raise DataError(
            "groups came with each round, and the log keeps only the chosen candidates, so it does "
            "not say which groups the others were in; write a log that keeps all candidates, with "
            f"{setting('candidates', True)}"
        )
    groups = candidate_groups(attributes, features, rows)
    if groups.uncertain:
        raise DataError(
            f"{' and '.join(attributes)} came as probabilities for {groups.uncertain:,} "
            "candidates, and values by group need groups that are known; keep the rounds in which "
            "all groups are known, or put all arms into one group for the value over everybody"
        )
    members = groups.of if rows.ndim == 3 else np.repeat(groups.of[:, None], arms, axis=1)
    if "available" in parts:
        members = np.where(parts["available"], members, -1)
    return {"members": members, "member_names": groups.names}


def decided(log: pd.DataFrame) -> pd.DataFrame:
    """The rows that say what was done in the end, if this is a log in our format; else all rows.

    Where a human chose another arm, that row stands for the decision, and it did not explore.
    History is left out: it was not decided in this log.
    """
    if not {ROUND, PROPENSITY, OVERRIDE} <= set(log.columns):
        return log
    is_decision, is_overridden = log[PROPENSITY].notna(), log[OVERRIDE].notna()
    by_human = ~is_decision & log[ROUND].notna()
    overridden, by_humans = set(log[ROUND][is_decision & is_overridden]), set(log[ROUND][by_human])
    if overridden != by_humans:
        raise DataError(
            f"round {min(overridden ^ by_humans)} was overridden, and one of its two rows is not "
            "in the log; give both, that of the policy's arm and that of the human's"
        )
    rows = log[(is_decision & ~is_overridden) | by_human]
    if EXPLORED not in log:
        return rows
    return rows.assign(**{EXPLORED: rows[EXPLORED].where(rows[PROPENSITY].notna(), False)})


def chances_of(log: pd.DataFrame) -> dict[str, int] | None:
    """How often an arm of each group could have been chosen, if the log keeps candidates.

    An arm that a human chose counts too, even if it was not available to the policy.
    """
    attrs, needed = log.attrs.get(ATTRS), {ARM, PROPENSITY, OVERRIDE, CONTEXTS, CHANCES}
    if attrs is None or not needed | set(attrs["features"]) <= set(log.columns):
        return None
    groups = Groups(attrs["groups"])
    available = candidates(log, groups.n_arms, attrs["features"]).available
    human_arms = log[OVERRIDE][log[PROPENSITY].notna()]
    rows = np.flatnonzero(human_arms.notna())
    available[rows, human_arms.iloc[rows].to_numpy(dtype=np.int64)] = True
    counts = available.sum(axis=0)
    return {name: int(counts[groups.of == g].sum()) for g, name in enumerate(groups.names)}


class RoundGroups(NamedTuple):
    """The groups of candidates by number, -1 where unknown; and the names of the groups."""

    of: Whole
    names: tuple[str, ...]
    uncertain: int  # how many have probabilities of groups instead of a group


def candidate_groups(
    attributes: dict[str, dict[str, str]], columns: Sequence[str], rows: Array
) -> RoundGroups:
    """The groups of candidates; with several attributes, their intersections.

    Args:
        attributes: as `membership_columns` returns them.
        columns: the names of the last axis of the rows.
        rows: the numbers of candidates, with any axes before the last. A row of zeros is nobody.

    Example:
        >>> import numpy as np
        >>> from evenhand.events._decisions import candidate_groups
        >>> from evenhand.events.columns import membership_columns
        >>> columns = ["sex: F", "sex: M", "sex: not stated"]
        >>> rows = np.array([[1.0, 0, 0], [0, 0, 1.0], [0.5, 0.5, 0]])
        >>> candidate_groups(membership_columns(columns), columns, rows)
        RoundGroups(of=array([ 0,  1, -1]), names=('F', 'not stated'), uncertain=1)
    """
    shape = rows.shape[:-1]
    known, present = np.ones(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_)
    words = []
    for levels in attributes.values():
        chances = rows[..., [list(columns).index(name) for name in levels.values()]]
        words.append(np.array(list(levels), dtype=object)[chances.argmax(axis=-1)])
        known &= chances.max(axis=-1) >= CERTAIN
        present |= chances.sum(axis=-1) > 0.0
    labels = [BETWEEN.join(parts) for parts in zip(*(own[known] for own in words), strict=True)]
    names, of = np.unique(np.array(labels, dtype=str), return_inverse=True)
    numbers = np.full(shape, -1, dtype=np.int64)
    numbers[known] = of
    return RoundGroups(numbers, tuple(names.tolist()), int((present & ~known).sum()))
