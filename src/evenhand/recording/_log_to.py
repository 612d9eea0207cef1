"""Opening a log: begin a new one, or continue an existing one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evenhand import _checks
from evenhand.errors import InputError
from evenhand.events._header import About
from evenhand.events._ids import new_key
from evenhand.events.file_ledger import FileLedger
from evenhand.events.ledger import Ledger
from evenhand.policies._settings import learns_by_update
from evenhand.policies.base import Policy
from evenhand.policies.saving import to_dict
from evenhand.recording._decision_records import columns_of
from evenhand.recording._pending import Pending
from evenhand.recording._replay import restored
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

    Events go to a journal beside the file before a call returns, and into the file on `close`. A
    process that is killed loses nothing: the next `log_to`, `replay` or `read_log` reads the
    journal. An existing log is continued.

    Args:
        path: a name that ends in .parquet (needs pyarrow) or .csv; or a ledger of your own, such as
            a database.
        policy: the policy that decides. For an existing log it must be in the state of the log, or
            left out: then it is restored from the log, see `LoggedPolicy.policy`.
        features: the names of the context's columns, by default x1, x2, ...
        sync: the longest time, in seconds, until events would survive a power failure, while calls
            come in; 0 makes every call wait for the disk.
        candidates: whether to keep the contexts and probabilities of all arms with every decision,
            not only those of the chosen arm. Then `evenhand.offpolicy.evaluate` can estimate from
            the log what any other policy would have earned. The default is False for a new log; an
            existing log continues as it began.
        snapshot_every: after how many events the state of the policy is saved beside the log, so
            that opening the log is quick. It is also saved on `close`.

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
        raise InputError(
            f"policy is {policy!r}; allowed is a policy, such as a TopInterval", value=policy
        )
    if candidates is not None and not isinstance(candidates, (bool, np.bool_)):
        raise InputError(
            f"candidates is {candidates!r}; allowed is True or False", value=candidates
        )
    every = _checks.whole("snapshot_every", snapshot_every)
    ledger = _ledger(path, _checks.number("sync", sync, 0.0, np.inf))
    try:
        if ledger.about is None:
            return LoggedPolicy(ledger, *_begin(ledger, policy, features, bool(candidates)), every)
        return LoggedPolicy(ledger, *_continue(ledger, policy, features, candidates), every)
    except BaseException:
        ledger.release()
        raise


def _ledger(path: Any, sync: float) -> Ledger:
    if isinstance(path, (str, Path)):
        return FileLedger(path, sync)
    if not isinstance(path, Ledger):
        raise InputError(f"path is {path!r}; allowed is a file, or a ledger", value=path)
    return path


def _begin(
    ledger: Ledger, policy: Policy | None, features: Sequence[object] | None, candidates: bool
) -> tuple[Policy, Pending]:
    """A new log."""
    if policy is None:
        raise InputError(
            f"path is {ledger.name!r}, where there is no log; give a policy", value=ledger.name
        )
    if learns_by_update(type(policy)):
        raise InputError(
            f"{type(policy).__name__} has its own update, which a replay does not call; learn in "
            "the method learn instead"
        )
    names = columns_of(features, policy)
    truth = policy.learns_truth
    about = About(names, to_dict(policy), candidates=candidates, key=new_key(), truth=truth)
    ledger.begin(about)
    return policy, Pending(about)


def _continue(
    ledger: Ledger,
    policy: Policy | None,
    features: Sequence[object] | None,
    candidates: bool | None,
) -> tuple[Policy, Pending]:
    """An existing log: its policy and its pending decisions."""
    restored_policy, pending = restored(ledger, snapshots=True)
    about = ledger.about
    assert about is not None
    if policy is not None and json.dumps(to_dict(policy)) != json.dumps(to_dict(restored_policy)):
        raise InputError(
            f"path is {ledger.name!r}, which is a log of {restored_policy!r} in another state; "
            "leave the policy out to continue the log, or use another name",
            value=ledger.name,
        )
    if features is not None and columns_of(features, restored_policy) != about.features:
        raise InputError(f"features is {list(features)}; the log has {', '.join(about.features)}")
    if candidates is not None and candidates != about.candidates:
        raise InputError(
            f"candidates is {candidates}, but the log began with {about.candidates}; leave it out "
            "to continue the log, or use another name"
        )
    return restored_policy if policy is None else policy, pending
