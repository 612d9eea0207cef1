"""Opening a log: begin a new one, or go on with one that is there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evenhand import _checks
from evenhand.events.header import About, feature_names
from evenhand.events.journal import Journal
from evenhand.events.read import read_whole
from evenhand.events.schema import NAMES
from evenhand.events.tables import log_path, stop_if_unwritable
from evenhand.policies.base import Policy
from evenhand.policies.saving import to_dict
from evenhand.recording._pending import Waiting
from evenhand.recording._replay import restored
from evenhand.recording.logged import LoggedPolicy


def log_to(
    path: str | Path,
    policy: Policy | None = None,
    features: Sequence[object] | None = None,
    sync: float = 1.0,
    candidates: bool | None = None,
) -> LoggedPolicy:
    """A policy that logs every decision and every reward to a Parquet or CSV file.

    What happens goes to a journal beside the file before a call returns, and into the file on
    `close`. A process that is killed loses nothing: the next `log_to`, `replay` or `read_log`
    finds the journal. A log that is there already is gone on with.

    Args:
        path: ends in .parquet (needs pyarrow) or .csv.
        policy: the policy that decides. For a log that is there already it must be in the state
            of the log, or left out: then it is made from the log, see `LoggedPolicy.policy`.
        features: the names of the context's columns; x1, x2, ... unless given.
        sync: the most seconds, while calls come in, after which what was written outlasts a
            failure of power too; 0 makes every call wait for the disk.
        candidates: whether to keep the contexts and probabilities of all arms with every decision,
            not those of the chosen one alone. Then `evenhand.offpolicy.evaluate` can tell from
            the log what any other policy would have earned. A log that is there already goes on as
            it began; a new one does not keep them unless told to.

    Example:
        >>> import numpy as np, evenhand as eh, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "decisions.csv"
        >>> policy = eh.TopInterval(["F", "M"], n_features=1, horizon=10, seed=1)
        >>> with eh.log_to(path, policy, features=["age"]) as logged:
        ...     first, second = (logged.select(np.ones((2, 1))) for _ in range(2))
        ...     logged.update(second, reward=1.0)
        >>> with eh.log_to(path) as logged:  # days later
        ...     logged.waiting
        ...     logged.update(1, reward=0.5)
        [1]
        >>> eh.read_log(path)[["round", "reward", "learned", "age"]]
           round  reward  learned  age
        0      1     0.5        2  1.0
        1      2     1.0        1  1.0
    """
    file = log_path(path)
    if policy is not None and not isinstance(policy, Policy):
        raise ValueError(f"policy is {policy!r}; allowed is a policy, such as eh.TopInterval(...)")
    if candidates is not None and not isinstance(candidates, (bool, np.bool_)):
        raise ValueError(f"candidates is {candidates!r}; allowed is True or False")
    journal = Journal(file, _checks.number("sync", sync, 0.0, np.inf))
    try:
        found = read_whole(file)
        if found is None:
            begun = _begin(file, policy, features, bool(candidates))
        else:
            begun = _go_on(file, *found, policy, features, candidates)
        journal.begin(begun[0])
        return LoggedPolicy(file, journal, *begun)
    except BaseException:
        journal.release()
        raise


def _begin(
    path: Path, policy: Policy | None, features: Sequence[object] | None, candidates: bool
) -> tuple[About, Policy, Waiting, int]:
    """A new log."""
    if policy is None:
        raise ValueError(f"path is {str(path)!r}, where there is no log; give a policy")
    names = feature_names(features, policy.n_features)
    about = About(names, to_dict(policy), candidates=candidates)
    stop_if_unwritable(path, about)
    return About.from_json(about.to_json(), path), policy, Waiting(), 0


def _go_on(
    path: Path,
    about: About | None,
    frame: Any,
    policy: Policy | None,
    features: Sequence[object] | None,
    candidates: bool | None,
) -> tuple[About, Policy, Waiting, int]:
    """A log that is there already: what it is about, its policy, who waits, what was learned."""
    if about is None:
        raise ValueError(
            f"path is {str(path)!r}, a log that evenhand did not write; take another name"
        )
    past = restored(about, frame, path)
    if policy is not None and json.dumps(to_dict(policy)) != json.dumps(to_dict(past)):
        raise ValueError(
            f"path is {str(path)!r}, where there is a log of {past!r} in another state; "
            "leave the policy out to go on with it, or take another name"
        )
    if features is not None and feature_names(features, past.n_features) != about.features:
        raise ValueError(f"features is {list(features)}; the log has {', '.join(about.features)}")
    if candidates is not None and candidates != about.candidates:
        raise ValueError(
            f"candidates is {candidates}, and the log began with {about.candidates}; leave it out "
            "to go on, or take another name"
        )
    learned = int(frame[NAMES["learned"]].notna().sum())
    waiting = Waiting.of_log(frame, about.features)
    return about, past if policy is None else policy, waiting, learned
