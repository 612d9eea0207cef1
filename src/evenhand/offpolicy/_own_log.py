"""Logs that evenhand wrote, as decisions to evaluate a policy on."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from evenhand import _checks
from evenhand.errors import InputError, setting
from evenhand.events._header import About
from evenhand.events._read import labelled, read_whole
from evenhand.events._schema import NAMES
from evenhand.events._tables import log_path
from evenhand.offpolicy._leakage import Origin, rewards_by_arm
from evenhand.offpolicy.logged import Logged


def read_own(path: str | Path, after: int | None) -> Logged:
    """The decisions of a file that evenhand wrote; other files are refused."""
    whole = read_whole(log_path(path))
    if whole is None or whole.about is None:
        return Logged.from_log(path)  # which says what is wrong
    return of_own(later(whole.frame, after), whole.about)


def of_own(frame: pd.DataFrame, about: About) -> Logged:
    """The decisions of a log that evenhand wrote, with the header of the log."""
    log = Logged.from_log(labelled(frame, about))
    n_arms = log.groups.n_arms
    learned = rewards_by_arm(frame[NAMES["arm"]], frame[NAMES["reward"]], n_arms)
    return log.of_origin(Origin(about, learned, rounds=True))


def later(frame: pd.DataFrame, after: int | None) -> pd.DataFrame:
    """The rows after a round; all rows if None."""
    if after is None:
        return frame
    after = _checks.whole("after", after, least=0)
    if "round" not in frame:
        raise InputError(f"{setting('after')} is {after}, and the log has no column round")
    kept = frame[(frame["round"] > after).fillna(False).astype(bool)]
    if kept.empty:
        raise InputError(
            f"{setting('after')} is {after}; the log has rounds up to {frame['round'].max()}",
            value=after,
        )
    return kept
