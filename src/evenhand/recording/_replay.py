"""A policy from a log: the one that wrote it, bit for bit, or another that learns from it.

Events lead to the same state, bit for bit, from the beginning or from a snapshot.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._columns.file_formats import Reading
from evenhand.errors import DamagedError, DataError, InputError, blank, entries_of, setting
from evenhand.events._formats import format_of
from evenhand.events._header import NUMBERED, About
from evenhand.events._read import of_another, read_whole, refuse_for_own
from evenhand.events._schema import checked
from evenhand.events._tables import log_path
from evenhand.events.columns import ROLES, find_roles
from evenhand.events.event import (
    DecisionMade,
    Event,
    RewardObserved,
    RowsAbsorbed,
    TrueRewardObserved,
)
from evenhand.events.file_ledger import FileLedger
from evenhand.events.ledger import Ledger, Snapshot
from evenhand.policies._settings import learns_in_python
from evenhand.policies.base import Policy
from evenhand.policies.saving import from_dict, to_dict
from evenhand.recording._decision_records import Past, columns_of, past_decisions
from evenhand.recording._pending import Pending


def start(about: About, snapshot: Snapshot | None) -> tuple[Policy, Pending]:
    """The policy and the pending decisions of a log at a snapshot, or at its beginning."""
    if snapshot is None:
        return from_dict(about.policy), Pending(about)
    pending = Pending.from_dict(about, snapshot.seq, snapshot.state)
    return from_dict(snapshot.state.get("policy", {})), pending


class _Batch:
    """Rewards that are learned in one call, in the order in which they came."""

    def __init__(self, policy: Policy, pending: Pending) -> None:
        self._policy, self._pending = policy, pending
        self._clear()

    def _clear(self) -> None:
        self._arms: list[int] = []
        self._contexts: list[Any] = []
        self._rewards: list[float] = []
        self._rounds: list[int] = []

    def add(self, arms: Any, contexts: Any, rewards: Any, rounds: Any) -> None:
        self._arms.extend(arms)
        self._contexts.extend(contexts)
        self._rewards.extend(rewards)
        self._rounds.extend(rounds)

    def learn(self) -> None:
        policy = self._policy
        if self._rewards:
            table = np.array(self._contexts, dtype=np.float64).reshape(-1, policy._shape[1])
            by_round = {"rounds": self._rounds} if policy.learns_by_round else {}
            arms = np.array(self._arms, dtype=np.int64)
            policy.round = self._pending.round
            policy.absorb(arms, table, np.array(self._rewards), **by_round)
        self._clear()


def fold(policy: Policy, pending: Pending, ledger: Ledger) -> None:
    """Apply the events that come next; rewards are learned in the order in which they came.

    What learns in plain Python may read `policy.round`. So it learns between the same decisions as
    it did live; compiled code learns all rewards at once.
    """
    events: Iterable[Event] = ledger.read(pending.seq)
    past: dict[str, Past] = {}
    if pending.learns_truth:
        # A true reward needs the context and the round of its decision, which may be long before
        # the first of these events.
        events = list(events)
        true = {event.id for event in events if isinstance(event, TrueRewardObserved)}
        past = past_decisions(ledger.read(), true) if true else past
    batch, reads_rounds = _Batch(policy, pending), learns_in_python(type(policy))
    for event in events:
        if reads_rounds and isinstance(event, DecisionMade):
            batch.learn()
        earned = pending.take(event)
        if earned is not None and isinstance(event, RewardObserved):
            batch.add([earned[0]], [earned[1]], [event.reward], [earned[2]])
        elif isinstance(event, RowsAbsorbed):
            rounds = [0] * len(event.rewards)
            batch.add(event.arms, event.contexts, event.rewards, rounds)
        elif pending.learns_truth and isinstance(event, TrueRewardObserved):
            # Rewards that came before a true reward are learned before it.
            batch.learn()
            policy.round = pending.round
            policy.update(past[event.id].learned, true_reward=event.reward)
    batch.learn()
    policy.round = pending.round


def state_of(policy: Policy, pending: Pending) -> dict[str, Any]:
    """The state that a snapshot keeps."""
    return {**pending.to_dict(), "policy": to_dict(policy)}


def replay(
    log: str | Path | pd.DataFrame | Ledger,
    policy: Policy | None = None,
    arms: Sequence[object] | Mapping[Any, int] | None = None,
    columns: Mapping[str, str] | None = None,
    features: Sequence[str] | None = None,
    *,
    encoding: str | None = None,
    decimal: str | None = None,
    delimiter: str | None = None,
) -> Policy:
    """The policy that wrote a log, in the same state, bit for bit; or one that learns from a log.

    Without `policy`, the log must be one that `log_to` or `simulate_log` wrote. The policy that it
    began with learns all rewards again in their order; snapshots are not used. Its next decision is
    the one that the original policy would have made.

    With `policy`, any log will do. The rows that have a reward are learned, in the order of the
    column `learned` if there is one, or in that of the rows. Rounds are not counted, as with
    `absorb`. Nothing is learned if any row is bad.

    Args:
        log: a Parquet or CSV file, a frame, or a ledger of your own.
        policy: the policy that learns from the log; it is changed, and returned.
        arms: the names of the arms in the policy's order, or a mapping from names to numbers. By
            default the log has numbers.
        columns: the roles of columns with other names, such as {"reward": "paid"}.
        features: the columns of the context, in the policy's order; by default the log's own, or
            x1, x2, ...
        encoding: of a CSV file that evenhand did not write, such as "latin-1"; UTF-8 unless given.
        decimal: "," for such a file that writes 1,5 for one and a half.
        delimiter: between the columns of such a file; detected unless given.

    Example:
        >>> import numpy as np, evenhand as eh, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "decisions.csv"
        >>> with eh.log_to(path, eh.TopInterval(["F", "M"], n_features=1, seed=1)) as logged:
        ...     logged.update(logged.select(np.ones((2, 1))), reward=0.5)
        >>> again = eh.replay(path)
        >>> again, again.counts.tolist()
        (TopInterval(n_arms=2, groups=F, M, n_features=1, rounds=1), [1, 0])
    """
    reading = Reading(encoding, decimal, delimiter)
    if policy is not None:
        with entries_of("columns", ROLES):
            about, frame = _rows_of(log, columns, reading)
            first = format_of(log_path(log, "log")).first_row if isinstance(log, (str, Path)) else 0
            frame.index = pd.RangeIndex(first, first + len(frame))  # the row numbers of errors
            _learn_from(frame, policy, about, arms, columns, features)
        return policy
    given = {"arms": arms, "columns": columns, "features": features, **reading.chosen}
    wrong = [name for name, value in given.items() if value is not None]
    if wrong:
        raise InputError(f"{wrong[0]} needs a policy; give the policy that learns from the log")
    return restored(_ledger(log), snapshots=False)[0]


def _ledger(log: Any) -> Ledger:
    """The log as a ledger, if it says which policy wrote it."""
    if isinstance(log, (str, Path)):
        ledger = FileLedger(log, write=False)
        if ledger.about is not None:
            return ledger
        if not ledger.path.exists():
            raise InputError(f"log is {str(log)!r}, where there is no log")
    elif isinstance(log, Ledger):
        return log
    elif not isinstance(log, pd.DataFrame):
        raise InputError(
            f"log is {log!r}; allowed is a file, a pandas frame or a ledger", value=log
        )
    source = "a frame" if isinstance(log, pd.DataFrame) else str(log)
    raise InputError(
        f"log is {source}, which does not say which policy wrote it; give a policy that learns "
        "from it"
    )


def restored(ledger: Ledger, snapshots: bool) -> tuple[Policy, Pending]:
    """The policy of a log after all of its events, and the pending decisions.

    Args:
        ledger: a log that has begun.
        snapshots: whether to start from the newest usable snapshot, not from the beginning.
    """
    about, before = ledger.about, None
    if about is None:
        raise InputError(f"log is {ledger.name!r}, where there is no log", value=ledger.name)
    while True:
        snapshot = ledger.newest_snapshot(before) if snapshots else None
        # Otherwise this would go round for ever.
        if snapshot is not None and before is not None and snapshot.seq >= before:
            snapshot = None  # it was useless before: the ledger does not go by `before`
        try:
            policy, pending = start(about, snapshot)
            fold(policy, pending, ledger)
            # A ledger that ends early would give an older state without a word.
            if pending.seq != ledger.head:
                raise DamagedError(f"events end at {pending.seq}, not at {ledger.head}")
        except InputError as error:
            if snapshot is None:
                raise DamagedError(f"{ledger.name}: {error.message}") from error
        else:
            if _is_as_it_ended(about, policy, pending):
                return policy, pending
            if snapshot is None:
                warnings.warn(
                    f"{ledger.name}: the policy had another state when this log was closed: it "
                    "learned outside its log, or on a machine or version that computes "
                    "differently",
                    UserWarning,
                    stacklevel=3,
                )
                return policy, pending
        # A snapshot only saves time. If it does not lead to the state in which the log was closed,
        # the next older one is tried, and in the end the beginning.
        before = snapshot.seq


def _is_as_it_ended(about: About, policy: Policy, pending: Pending) -> bool:
    """Whether the state is that in which the log was closed, or the log continued after it."""
    state = about.state or {}
    same = (pending.round, pending.learned) == (state.get("round"), state.get("learned"))
    if about.version >= NUMBERED:  # older logs do not say which event was the last
        same = same and pending.seq == about.head
    # A log that went on after it was closed has no state to compare with.
    return not same or checksum(policy) == state["sha256"]


def checksum(policy: Policy) -> str:
    """A checksum of everything that a policy has learned, bit for bit."""
    state, _ = policy._learned_so_far()
    parts = (state.arms.table, state.groups.table, *state.own)
    return hashlib.sha256(
        b"".join(np.ascontiguousarray(part).tobytes() for part in parts)
    ).hexdigest()


def _rows_of(
    log: Any, columns: Mapping[str, str] | None, reading: Reading
) -> tuple[About | None, pd.DataFrame]:
    if isinstance(log, pd.DataFrame):
        reading.check("", "a frame")
        return None, log.copy(deep=False)
    if not isinstance(log, (str, Path)):
        raise InputError(f"log is {log!r}; allowed is a file or a pandas frame", value=log)
    whole = read_whole(log_path(log, "log"), partial(of_another, columns=columns, reading=reading))
    if whole is None:
        raise InputError(f"log is {str(log)!r}, where there is no log")
    refuse_for_own(whole, log, **reading.chosen)
    return whole.about, whole.frame


def _in_order(frame: pd.DataFrame, roles: Mapping[str, str]) -> pd.DataFrame:
    """The rows to learn from, in the order in which they were learned."""
    if "learned" in roles and (is_learned := frame[roles["learned"]].notna()).any():
        # Stable: rows with the same number keep the order of the log.
        return frame[is_learned].sort_values(roles["learned"], kind="stable")
    return frame[frame[roles["reward"]].notna()]


def _learn_from(
    frame: pd.DataFrame,
    policy: Policy,
    about: About | None,
    arms: Sequence[object] | Mapping[Any, int] | None,
    columns: Mapping[str, str] | None,
    features: Sequence[str] | None,
) -> None:
    if not isinstance(policy, Policy):
        raise InputError(
            f"policy is {policy!r}; allowed is a policy, such as a TopInterval", value=policy
        )
    roles = find_roles([str(name) for name in frame.columns], columns, needed=("arm", "reward"))
    width = policy._shape[1]  # membership that came with the round follows the features
    if features is None:
        usual = columns_of(None, policy)
        features = usual if about is None else about.features
        lost = [name for name in features if name not in frame]
        if lost or len(features) != width:
            wanted = setting("features", [blank("COLUMN")])
            raise DataError(
                f"the log has no column {lost[0]!r}; give {wanted}, the columns of the {width} "
                "features in the policy's order"
                if lost
                else f"the log has {len(features)} features; the policy has {width}"
            )
    listed = [features] if isinstance(features, str) else list(features)
    if len(listed) != width:
        raise DataError(f"features is {listed}; the policy has {width} features")
    frame = checked(frame, listed, columns, first=int(frame.index[0]) if len(frame) else 0)
    rows = _in_order(frame, roles)
    numbers = _arm_numbers(rows[roles["arm"]], arms, policy.n_arms)
    if "group" in roles:
        _same_groups(rows[roles["group"]], numbers, policy)
    if len(rows):
        contexts = rows[listed].to_numpy(dtype=np.float64)
        policy.absorb(numbers, contexts, rows[roles["reward"]].to_numpy(dtype=np.float64))


def _arm_numbers(
    names: pd.Series, arms: Sequence[object] | Mapping[Any, int] | None, n_arms: int
) -> NDArray[np.int64]:
    if arms is None:
        known: Mapping[Any, int] = {number: number for number in range(n_arms)}
        listed = setting("arms", [blank("NAME")])
        hint = f"allowed are arms 0 to {n_arms - 1}: give {listed} if the log has names"
    else:
        known = (
            arms
            if isinstance(arms, Mapping)
            else {name: number for number, name in enumerate(arms)}
        )
        hint = "which is not among arms"
        outside = [number for number in known.values() if number not in range(n_arms)]
        if outside:
            raise DataError(f"arms has number {outside[0]!r}; allowed are 0 to {n_arms - 1}")
    numbers = names.map(known)
    unknown = np.flatnonzero(numbers.isna().to_numpy())
    if unknown.size:
        row = int(unknown[0])
        value = names.iloc[row]
        shown = repr(value.item() if hasattr(value, "item") else value)
        raise DataError(f"{names.name} in row {names.index[row]} is {shown}, {hint}")
    return numbers.to_numpy(dtype=np.int64)


def _same_groups(groups: pd.Series, numbers: NDArray[np.int64], policy: Policy) -> None:
    if policy.groups.changes:  # the contexts have the groups
        return
    expected = np.array(policy.groups.labels, dtype=object)[numbers]
    written, start = groups.to_numpy(dtype=object), f"{groups.name}="  # worlds call 1 "black=1"
    bare = np.array([label.removeprefix(start) for label in expected], dtype=object)
    wrong = np.flatnonzero((written != expected) & (written != bare))
    if wrong.size:
        row = int(wrong[0])
        raise DataError(
            f"{groups.name} in row {groups.index[row]} is {groups.iloc[row]!r}, but the policy has "
            f"arm {numbers[row]} in group {expected[row]!r}; leave the column out if it means "
            "something else"
        )
