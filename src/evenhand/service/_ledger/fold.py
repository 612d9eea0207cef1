"""The state of a service as the fold of its entries, from the beginning or from a snapshot."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from evenhand.errors import DamagedError, InputError
from evenhand.events._header import About
from evenhand.groups import Groups
from evenhand.policies._learned import with_more_arms
from evenhand.policies.base import Policy
from evenhand.policies.decision import Decision, Scores
from evenhand.policies.saving import from_dict, to_dict
from evenhand.recording._replay import checksum
from evenhand.service._ledger import entries as kinds
from evenhand.service._ledger.entries import Entry
from evenhand.service._ledger.membership import Membership, membership_of
from evenhand.service._ledger.sqlite_and_postgres import Connection

# What changes the state, besides the number of rounds.
_TOLD = (kinds.REWARD, kinds.LEARN, kinds.TRUE, kinds.ROWS, kinds.CONTROL)
_WORDS = ", ".join(f"'{kind}'" for kind in _TOLD)


@dataclass(slots=True)
class LedgerArm:
    """An arm by its number: its name and group, and whether it can still be chosen."""

    name: str
    group: str
    retired: bool = False


@dataclass
class LedgerState:
    """What is known after entry `version`."""

    policy: Policy
    arms: list[LedgerArm]
    features: tuple[str, ...]
    version: int = 0
    round: int = 0
    learned: int = 0
    paused: bool = False
    pinned: int = 0
    truth: bool = False  # whether true rewards are learned
    numbers: dict[str, int] = field(default_factory=dict)
    given: Membership | None = None  # of groups that candidates bring

    def __post_init__(self) -> None:
        self._number()
        self.given = membership_of(self.policy.groups, len(self.features))

    def _number(self) -> None:
        self.numbers = {arm.name: number for number, arm in enumerate(self.arms)}

    def apply(self, entries: Iterable[tuple[Entry, Any]]) -> bool:
        """Apply entries in their order. True if arms were added: then all is learned again."""
        rewards: list[kinds.Reward] = []
        grown = False
        for entry, body in entries:
            kind = entry.kind
            if kind == kinds.DECISION:
                self.round = body.round
            elif kind in (kinds.REWARD, kinds.LEARN):
                if body is None:
                    raise erased(entry.seq)
                if body.learned:
                    rewards.append(body)
            elif kind == kinds.TRUE:
                if body is not None and body.learned:
                    # Rewards are collected and learned in one call, which is much faster. Whatever
                    # else changes the policy must find those before it learned, so that the order
                    # is that of the ledger.
                    self._learn(rewards)
                    rewards = []
                    self._learn_true(body)
            elif kind == kinds.CONTROL:
                self._control(body)
            elif kind == kinds.ARM:
                grown = self._arm(body) or grown
            elif kind == kinds.ROWS:
                self._learn(rewards)
                rewards = []
                self._rows(body)
            self.version = entry.seq
        self._learn(rewards)
        return grown

    def _learn(self, rewards: list[kinds.Reward]) -> None:
        if not rewards:
            return
        arms = np.array([reward.arm for reward in rewards], dtype=np.int64)
        rows = np.frombuffer(b"".join([r.context for r in rewards])).reshape(len(rewards), -1)
        values = np.array([reward.reward for reward in rewards])
        rounds: dict[str, Any] = {}
        if self.policy.learns_by_round:
            rounds["rounds"] = [reward.round for reward in rewards]
        self.policy.absorb(arms, rows, values, **rounds)
        self.learned += len(rewards)

    def _learn_true(self, body: kinds.TrueReward) -> None:
        row = np.frombuffer(body.context).copy()
        decision = Decision(body.arm, np.nan, False, body.round, row, Scores(np.empty((5, 0))))
        decision.reward = body.observed
        self.policy.update(decision, true_reward=body.reward)

    def _rows(self, body: kinds.Rows) -> None:
        rows = np.frombuffer(body.contexts).reshape(len(body.arms), -1)
        self.policy.absorb(np.array(body.arms), rows, np.array(body.rewards))
        self.learned += len(body.arms)

    def _control(self, body: kinds.Control) -> None:
        if body.what in ("pause", "resume"):
            self.paused = body.what == "pause"
        elif body.what == "rollback":
            self.pinned = body.version

    def _arm(self, body: kinds.Arm) -> bool:
        if body.what == "add":
            if any(arm.name == body.name for arm in self.arms):
                return False  # two replicas were asked at the same time
            self.arms.append(LedgerArm(body.name, body.group))
        else:
            arm = self.arms[body.number]
            arm.name, arm.retired = (
                body.name,
                body.what == "retire" or (arm.retired and body.what == "rename"),
            )
        self._number()
        return body.what == "add"

    def checksum(self) -> str:
        """A checksum of everything learned, bit for bit."""
        return checksum(self.policy)

    def to_bytes(self) -> bytes:
        """The state for a snapshot."""
        self.policy.round = self.round
        data = {
            "policy": to_dict(self.policy),
            "version": self.version,
            "round": self.round,
            "learned": self.learned,
        }
        return zlib.compress(json.dumps(data, allow_nan=False).encode(), 1)


def erased(seq: int) -> InputError:
    """The error for entries whose bodies are needed but were erased."""
    return InputError(
        f"entry {seq} was erased, so the ledger cannot be replayed from before it; "
        "states after the erasure are restored from its snapshot"
    )


def restored(
    connection: Connection, upto: int | None = None, snapshots: bool = True
) -> LedgerState:
    """The state after entry `upto`, by default the last.

    Args:
        connection: for reading.
        upto: the entry.
        snapshots: whether to begin from the newest snapshot before it.
    """
    last = connection.row("SELECT seq FROM head WHERE one = 1")
    if last is None:
        raise InputError("there is no ledger yet; start the service once")
    seq = last[0] if upto is None else min(upto, last[0])
    header = described(connection, seq)
    about, arms = header.about, header.arms
    state = LedgerState(
        _beginning(about, arms), arms, header.features, 1, paused=header.paused,
        pinned=header.pinned, truth=about.truth,
    )  # fmt: skip
    state.round = int(about.policy["round"])
    # The hash of the entry is compared in the query: a snapshot of another history is not usable.
    kept = [_from_snapshot(state, *row) for row in _snapshots(connection, seq) if snapshots]
    usable = [snapshot for snapshot in kept if snapshot is not None]
    # A snapshot from before an arm was added has fewer arms; without an erasure all is learned
    # again with today's.
    complete = [snapshot for snapshot in usable if snapshot.policy.n_arms == len(arms)]
    if complete:
        state = complete[0]
    elif usable and is_erased(connection, seq):
        # The beginning is gone, so later arms are added at the entries that added them.
        state = usable[0]
        for added in header.added:
            if added > state.version:
                _fold(connection, state, added)
                state.policy = with_more_arms(
                    state.policy, grown(state.policy.groups, arms[: state.policy.n_arms + 1])
                )
    _fold(connection, state, seq)
    return state


def is_erased(connection: Connection, upto: int | None = None) -> bool:
    """Whether anything was erased, so that a replay from the beginning is impossible."""
    before = "" if upto is None else " AND seq <= ?"
    sql = f"SELECT 1 FROM entries WHERE kind = 'erase'{before} LIMIT 1"
    return connection.row(sql, () if upto is None else (upto,)) is not None


class Described(NamedTuple):
    """What is known about a ledger up to an entry, besides what was learned."""

    about: About
    arms: list[LedgerArm]
    features: tuple[str, ...]
    paused: bool
    pinned: int
    added: list[int]  # the entries that added an arm


def described(connection: Connection, seq: int) -> Described:
    """The header, arms and controls up to an entry."""
    row = connection.row("SELECT body FROM entries WHERE seq = 1 AND kind = 'begin'")
    if row is None or row[0] is None:
        raise DamagedError("the ledger has no beginning; use an undamaged copy")
    begin: kinds.Begin = kinds.decode(kinds.BEGIN, bytes(row[0]))
    about = About.from_json(begin.about, "the ledger")
    state = LedgerState.__new__(LedgerState)
    state.arms = [LedgerArm(*pair) for pair in zip(begin.arms, about.labels, strict=True)]
    state.paused, state.pinned = False, 0
    sql = (
        "SELECT seq, kind, body FROM entries WHERE kind IN ('arm', 'control') AND seq <= ? "
        "ORDER BY seq"
    )
    added = []
    for number, kind, body in connection.rows(sql, (seq,)):
        change = kinds.decode(kind, bytes(body))
        if kind == kinds.CONTROL:
            state._control(change)
        elif state._arm(change):
            added.append(number)
    return Described(about, state.arms, tuple(begin.features), state.paused, state.pinned, added)


def _beginning(about: About, arms: list[LedgerArm]) -> Policy:
    """The policy before it learned anything, with the arms of today.

    An arm that came later counts as one that was not available before.
    """
    policy = from_dict(about.policy)
    if policy.n_arms == len(arms):
        return policy
    if policy.counts.any():
        raise InputError("the ledger began with a policy that had learned; arms cannot be added")
    return policy.clone(groups=grown(policy.groups, arms))


def grown(groups: Groups, arms: list[LedgerArm]) -> Groups:
    """The groups of all arms. An added arm has the group of an existing one."""
    if groups.changes:
        levels = {attribute.name: attribute.levels for attribute in groups.attributes}
        return Groups.per_round(len(arms), levels)
    labels = [arm.group for arm in arms]
    if not groups.attributes:
        return Groups(labels, sensitive=groups.sensitive)
    levels_of = dict(zip(groups.labels, groups._levels, strict=True))
    table = {
        attribute.name: [levels_of[label][k] for label in labels]
        for k, attribute in enumerate(groups.attributes)
    }
    return Groups.of_attributes(table, sensitive=groups.sensitive)


def _snapshots(connection: Connection, seq: int) -> Iterable[tuple[Any, ...]]:
    sql = (
        "SELECT s.state FROM snapshots s JOIN entries e ON e.seq = s.seq AND e.hash = s.hash "
        "WHERE s.seq <= ? ORDER BY s.seq DESC LIMIT 3"
    )
    return connection.rows(sql, (seq,))


def _from_snapshot(state: LedgerState, packed: bytes) -> LedgerState | None:
    """The state of a snapshot; None if it is damaged."""
    try:
        data = json.loads(zlib.decompress(bytes(packed)))
        policy = from_dict(data["policy"])
        return LedgerState(
            policy, state.arms, state.features, int(data["version"]), int(data["round"]),
            int(data["learned"]), state.paused, state.pinned, state.truth,
        )  # fmt: skip
    except (ValueError, LookupError, TypeError, RecursionError, zlib.error):
        return None


def _fold(connection: Connection, state: LedgerState, upto: int) -> None:
    """Learn what came after the state. Decisions are only counted; their bodies are not read."""
    sql = (
        f"SELECT seq, kind, body FROM entries WHERE seq > ? AND seq <= ? AND kind IN ({_WORDS}) "
        "ORDER BY seq"
    )
    batch: list[tuple[Entry, Any]] = []
    for seq, kind, body in connection.stream(sql, (state.version, upto)):
        # An erased body that would have been learned: from here on only a snapshot can give the
        # state.
        if body is None and (kind != kinds.TRUE or state.truth):
            raise erased(seq)
        if kind == kinds.CONTROL or body is None:
            continue  # applied by `described`, or nothing to learn
        entry = Entry(seq, kind, 0, None, None, None, None, b"", b"")
        batch.append((entry, kinds.decode(kind, bytes(body))))
        if len(batch) >= 10_000:
            state.apply(batch)
            batch.clear()
    state.apply(batch)
    row = connection.row(
        "SELECT round FROM decisions WHERE seq <= ? ORDER BY seq DESC LIMIT 1", (upto,)
    )
    if row is not None:
        state.round = row[0]
    state.version = upto
    # Rounds of decisions without a reward are not in what was learned.
    state.policy.round = state.round
