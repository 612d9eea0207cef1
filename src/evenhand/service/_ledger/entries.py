"""Entries of the ledger: their kinds, their bodies, and the chain of hashes.

An entry is (seq, kind, at, subject, salt, body). Its digest is the SHA-256 of salt and body. Its
hash is that of the hash before it, seq, kind, at, subject and digest. So a body can be erased, and
the chain still holds; the salt is erased too, because a body of few features could be guessed.
"""

from __future__ import annotations

import hashlib
import os
from struct import Struct
from typing import Any, NamedTuple

import msgspec

GENESIS = bytes(32)
SALT = 16
NAN = Struct("<d").pack(float("nan"))  # stands for an arm that was not available
_NUMBERS = Struct(">qq")

BEGIN, START, DECISION, REWARD, LEARN, TRUE = (
    "begin",
    "start",
    "decision",
    "reward",
    "learn",
    "true",
)
OVERRIDE, USE, EXPIRED, LATE, ARM = "override", "use", "expired", "late", "arm"
CONTROL, ERASE, SNAPSHOT, REVIEW, ROWS, KEY = (
    "control",
    "erase",
    "snapshot",
    "review",
    "rows",
    "key",
)
KINDS = (
    BEGIN, START, DECISION, REWARD, LEARN, TRUE, OVERRIDE, USE, EXPIRED, LATE, ARM, CONTROL, ERASE,
    SNAPSHOT, REVIEW, ROWS, KEY,
)  # fmt: skip


class Begin(msgspec.Struct, array_like=True, frozen=True):
    """The ledger begins: the header of the log as JSON, the names of arms, and the features."""

    about: str
    arms: list[str]
    features: list[str]


class Start(msgspec.Struct, array_like=True, frozen=True):
    """A process started, and draws its random numbers from this seed."""

    seed: int
    release: str


class Decision(msgspec.Struct, array_like=True, frozen=True):
    """A decision. Contexts and propensities are little-endian doubles, scores are floats.

    `context` is that of the chosen arm or, if `contexts` has it, the number of features.
    `version` is the entry up to which the policy had learned, `start` the entry with the seed, and
    `draw` the round whose random numbers were used: with these, the decision can be made again.
    """

    round: int
    arm: int
    propensity: float
    explored: bool
    context: bytes | int
    contexts: bytes | None
    propensities: bytes | None
    version: int = 0
    start: int = 0
    draw: int = 0
    scores: bytes = b""
    request: bytes = b""
    person: bytes | None = None
    shadow: bool = False
    hashed: bytes = b""  # of the texts of every candidate, by the number of its arm: 16 bytes each

    @property
    def width(self) -> int:
        """The number of bytes of a context."""
        return 8 * self.context if isinstance(self.context, int) else len(self.context)

    def row(self, arm: int) -> bytes | None:
        """The context of an arm; None if it was no candidate."""
        if arm == self.arm and isinstance(self.context, bytes):
            return self.context
        if self.contexts is None or arm < 0:
            return None
        width = self.width
        if len(self.contexts) == width:  # all arms have the same one
            return self.contexts
        row = self.contexts[arm * width : (arm + 1) * width]
        return row if len(row) == width and row[:8] != NAN else None


class Reward(msgspec.Struct, array_like=True, frozen=True):
    """An observed reward, with what is needed to learn it.

    `learned` is False if it waits until all have had the same time to answer (`learn`), or came too
    late (`late`). `default` says that none came, and the configured one was taken.
    """

    decision: int
    round: int
    arm: int
    context: bytes
    reward: float
    learned: bool = True
    default: bool = False


class TrueReward(msgspec.Struct, array_like=True, frozen=True):
    """A true reward; with what is needed to learn it, if the policy learns from true rewards.

    `observed` is the observed reward of the decision, if it was learned before.
    """

    decision: int
    reward: float
    learned: bool = False
    round: int = 0
    arm: int = -1
    context: bytes = b""
    observed: float | None = None


class Override(msgspec.Struct, array_like=True, frozen=True):
    """An arm other than the policy's: a human's choice or, in shadow mode, the caller's."""

    decision: int
    arm: int
    context: bytes
    reason: str = ""
    by: str = ""
    shadow: bool = False


class Use(msgspec.Struct, array_like=True, frozen=True):
    """A decision was used, so it waits for a reward from now on."""

    decision: int


class Expired(msgspec.Struct, array_like=True, frozen=True):
    """These decisions waited long enough, and no reward came."""

    decisions: list[int]


class Arm(msgspec.Struct, array_like=True, frozen=True):
    """An arm was added, renamed, retired or brought back."""

    what: str
    number: int
    name: str
    group: str
    by: str = ""


class Control(msgspec.Struct, array_like=True, frozen=True):
    """Pause, resume, or the version that decides (0 for the newest)."""

    what: str
    by: str = ""
    reason: str = ""
    version: int = 0


class Erase(msgspec.Struct, array_like=True, frozen=True):
    """Bodies of these entries were removed."""

    entries: list[int]
    by: str = ""
    reason: str = ""


class Snapshot(msgspec.Struct, array_like=True, frozen=True):
    """The state after this entry is kept; its checksum."""

    sha256: str
    learned: int


class Review(msgspec.Struct, array_like=True, frozen=True):
    """A human looked at a decision: accepted it, or overrode it (then there is an `override`)."""

    decision: int
    verdict: str
    by: str
    reason: str = ""


class Rows(msgspec.Struct, array_like=True, frozen=True):
    """Rows that the policy learned and that are not decisions of this ledger."""

    arms: list[int]
    contexts: bytes
    rewards: list[float]


class Key(msgspec.Struct, array_like=True, frozen=True):
    """A key or a login was made or withdrawn; never the key itself."""

    what: str
    name: str
    roles: list[str]
    by: str = ""


Body = (
    Begin | Start | Decision | Reward | TrueReward | Override | Use | Expired | Arm | Control
    | Erase | Snapshot | Review | Rows | Key
)  # fmt: skip
_TYPES: dict[str, type] = {
    BEGIN: Begin, START: Start, DECISION: Decision, REWARD: Reward, LEARN: Reward, LATE: Reward,
    TRUE: TrueReward, OVERRIDE: Override, USE: Use, EXPIRED: Expired, ARM: Arm, CONTROL: Control,
    ERASE: Erase, SNAPSHOT: Snapshot, REVIEW: Review, ROWS: Rows, KEY: Key,
}  # fmt: skip
_DECODERS: dict[str, Any] = {kind: msgspec.msgpack.Decoder(type) for kind, type in _TYPES.items()}
encode = msgspec.msgpack.Encoder().encode


def decode(kind: str, body: bytes) -> Any:
    """The body of an entry."""
    return _DECODERS[kind].decode(body)


class Entry(NamedTuple):
    """A row of the ledger. `event` is its number among the events of the log, if it is one."""

    seq: int
    kind: str
    at: int
    subject: str | None
    event: int | None
    salt: bytes | None
    body: bytes | None
    digest: bytes
    hash: bytes


def link(before: bytes, seq: int, kind: str, at: int, subject: str | None, digest: bytes) -> bytes:
    """The hash of an entry. The kind has no line break, so no two entries are the same text."""
    # Numbers and digests have fixed lengths, and the text comes last: so no other entry gives the
    # same bytes.
    text = f"{kind}\n{subject}" if subject is not None else kind
    return hashlib.sha256(before + _NUMBERS.pack(seq, at) + digest + text.encode()).digest()


def digest_of(salt: bytes, body: bytes) -> bytes:
    """The digest of a body."""
    return hashlib.sha256(salt + body).digest()


class Chain:
    """The growing end of a chain."""

    __slots__ = ("at", "events", "hash", "round", "seq")

    def __init__(self, seq: int, hash: bytes, at: int, round: int, events: int) -> None:
        self.seq, self.hash, self.at, self.round, self.events = seq, hash, at, round, events

    def copy(self) -> Chain:
        """A copy of this end, to continue from without changing this one."""
        return Chain(self.seq, self.hash, self.at, self.round, self.events)

    def add(self, kind: str, subject: str | None, body: Any, at: int, event: bool) -> Entry:
        """The next entry. Time never runs backwards in a ledger, whatever the clock does."""
        self.seq += 1
        self.at = max(self.at, at)
        self.events += event
        # A salt of its own for every entry: equal bodies have different digests, so an erased one
        # cannot be found by comparing.
        salt, packed = os.urandom(SALT), encode(body)
        digest = digest_of(salt, packed)
        self.hash = link(self.hash, self.seq, kind, self.at, subject, digest)
        number = self.events if event else None
        return Entry(self.seq, kind, self.at, subject, number, salt, packed, digest, self.hash)
