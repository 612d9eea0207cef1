"""Opening a log: begin a new one, or go on with one that is there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evenhand import _checks
from evenhand.errors import InputError
from evenhand.events._header import About, feature_names
from evenhand.events._ids import new_key
from evenhand.events.files import FileLedger
from evenhand.events.ledger import Ledger
from evenhand.policies.base import Policy
from evenhand.policies.saving import to_dict
from evenhand.recording._replay import restored
from evenhand.recording._standing import Standing
from evenhand.recording.logged import LoggedPolicy


def log_to(
    path: str | Path | Ledger,
    policy: Policy | None = None,
    features: Sequence[object] | None = None,
    sync: float = 1.0,
    candidates: bool | None = None,
    snapshot_every: int = 100_000,
) -> LoggedPolicy:
    """A policy that logs every decision and every reward to a Parquet or CSV file.

    What happens goes to a journal beside the file before a call returns, and into the file on
    `close`. A process that is killed loses nothing: the next `log_to`, `replay` or `read_log`
    finds the journal. A log that is there already is gone on with.

    Args:
        path: ends in .parquet (needs pyarrow) or .csv; or a ledger of your own, such as a database.
        policy: the policy that decides. For a log that is there already it must be in the state
            of the log, or left out: then it is made from the log, see `LoggedPolicy.policy`.
        features: the names of the context's columns; x1, x2, ... unless given.
        sync: the most seconds, while calls come in, after which what was written outlasts a
            failure of power too; 0 makes every call wait for the disk.
        candidates: whether to keep the contexts and probabilities of all arms with every decision,
            not those of the chosen one alone. Then `evenhand.offpolicy.evaluate` can tell from
            the log what any other policy would have earned. A log that is there already goes on as
            it began; a new one does not keep them unless told to.
        snapshot_every: after how many events the state of the policy is put beside the log, as it
            is on `close`, so that opening it again need not learn everything anew.

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
    if policy is not None and not isinstance(policy, Policy):
        raise InputError(f"policy is {policy!r}; allowed is a policy, such as eh.TopInterval(...)")
    if candidates is not None and not isinstance(candidates, (bool, np.bool_)):
        raise InputError(f"candidates is {candidates!r}; allowed is True or False")
    every = _checks.whole("snapshot_every", snapshot_every)
    ledger = _ledger(path, _checks.number("sync", sync, 0.0, np.inf))
    try:
        if ledger.about is None:
            return LoggedPolicy(ledger, *_begin(ledger, policy, features, bool(candidates)), every)
        return LoggedPolicy(ledger, *_go_on(ledger, policy, features, candidates), every)
    except BaseException:
        ledger.release()
        raise


def _ledger(path: Any, sync: float) -> Ledger:
    if isinstance(path, (str, Path)):
        return FileLedger(path, sync)
    if not isinstance(path, Ledger):
        raise InputError(f"path is {path!r}; allowed is a file, or a ledger")
    return path


def _begin(
    ledger: Ledger, policy: Policy | None, features: Sequence[object] | None, candidates: bool
) -> tuple[Policy, Standing]:
    """A new log."""
    if policy is None:
        raise InputError(f"path is {ledger.name!r}, where there is no log; give a policy")
    names = feature_names(features, policy.n_features)
    about = About(names, to_dict(policy), candidates=candidates, key=new_key())
    ledger.begin(about)
    return policy, Standing(about)


def _go_on(
    ledger: Ledger,
    policy: Policy | None,
    features: Sequence[object] | None,
    candidates: bool | None,
) -> tuple[Policy, Standing]:
    """A log that is there already: its policy, and how it stands."""
    past, standing = restored(ledger, snapshots=True)
    about = ledger.about
    assert about is not None
    if policy is not None and json.dumps(to_dict(policy)) != json.dumps(to_dict(past)):
        raise InputError(
            f"path is {ledger.name!r}, where there is a log of {past!r} in another state; "
            "leave the policy out to go on with it, or take another name"
        )
    if features is not None and feature_names(features, past.n_features) != about.features:
        raise InputError(f"features is {list(features)}; the log has {', '.join(about.features)}")
    if candidates is not None and candidates != about.candidates:
        raise InputError(
            f"candidates is {candidates}, and the log began with {about.candidates}; leave it out "
            "to go on, or take another name"
        )
    return past if policy is None else policy, standing
