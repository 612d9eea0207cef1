"""What callers ask of the writer. Each ask settles inside a transaction, in the order of arrival.

An ask sets `status`, as HTTP would, and `answer`. It may find that the same was asked before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from evenhand.service._ledger import entries as kinds
from evenhand.service._ledger.transaction import Known, Transaction, decision_of


class Ask:
    """The base class of all asks."""

    status = 0
    answer: Any = None
    error: Exception | None = None

    def ids(self) -> Iterable[str]:
        """The decisions that have to be looked up first."""
        return ()

    def settle(self, tx: Transaction) -> None:
        """Find the answer, and add the entries for it."""
        raise NotImplementedError


class OfDecision(Ask):
    """An ask about one decision."""

    id: str

    def ids(self) -> Iterable[str]:
        """The decision."""
        return (self.id,)


class Decide(Ask):
    """A decision that the policy made, to be recorded."""

    def __init__(
        self,
        id: str,
        own_id: bool,
        body: kinds.Decision,
        group: str,
        parts: Mapping[str, float],
        expected: Mapping[str, float],
        cost: float,
        review: bool = False,
        chosen: kinds.Override | None = None,
        chosen_group: str = "",
    ) -> None:
        self.id, self.own_id, self.body, self.group = id, own_id, body, group
        self.parts, self.expected, self.cost, self.review = parts, expected, cost, review
        self.chosen, self.chosen_group = chosen, chosen_group

    def ids(self) -> Iterable[str]:
        """Its own, if the caller chose it: then the decision may already exist."""
        return () if self.own_id else (self.id,)

    def settle(self, tx: Transaction) -> None:
        """Record it, unless it already exists."""
        known = None if self.own_id else tx.known(self.id)
        if known is not None:
            before = decision_of(known)
            if before is None:
                self.status = 410
            else:
                self.status = 200 if before.request == self.body.request else 409
                self.answer = known
            return
        tx.chain.round += 1
        body, rules = msgspec.structs.replace(self.body, round=tx.chain.round), tx.rules
        entry = tx.append(kinds.DECISION, self.id, body, event=True)
        at, group = entry.at, self.group
        tx.write("decisions", entry.seq, self.id, body.round, at, body.arm, group, body.person)
        known = Known(self.id, entry.seq, body.round, at, body.arm, group, body=entry.body)
        if not rules.confirmed:
            known.due = at + rules.wait
        if self.chosen is not None:
            override = msgspec.structs.replace(self.chosen, decision=entry.seq)
            _override(tx, known, override, self.chosen_group)
        if known.due is not None:
            tx.write("waiting", entry.seq, known.due, known.group_in_force)
        if self.review:
            tx.write("reviews", entry.seq, at)
        tx.tally(at, self.expected, expected=1)
        tx.tally(at, self.parts, decided=1, explored=body.explored, cost=self.cost)
        if not self.own_id:
            tx.remember(known)
        self.status, self.answer = 201, known


class Reward(OfDecision):
    """An observed reward, a true reward, or both."""

    def __init__(
        self, id: str, observed: float | None, true: float | None, learns_truth: bool = False
    ) -> None:
        self.id, self.observed, self.true = id, observed, true
        self.learns_truth = learns_truth

    def settle(self, tx: Transaction) -> None:
        """Record what is new; refuse what contradicts."""
        known = tx.known(self.id)
        if known is None:
            self.status, self.answer = 404, "there is no decision with this id"
            return
        if known.body is None:
            self.status, self.answer = 410, "the decision was erased"
            return
        if self.observed is not None and known.reward not in (None, self.observed):
            self.status, self.answer = 409, "a different observed reward is already recorded"
            return
        if self.true is not None and known.truth not in (None, self.true):
            self.status, self.answer = 409, "a different true reward is already recorded"
            return
        unused = tx.rules.confirmed and known.used is None
        if self.observed is not None and unused:
            self.status, self.answer = 409, "the decision was not used; PUT use first"
            return
        new = False
        if self.observed is not None and known.reward is None:
            self._observe(tx, known, self.observed)
            new = True
        if self.true is not None and known.truth is None:
            entry = tx.append(
                kinds.TRUE, self.id, true_of(known, self.true, self.learns_truth), True
            )
            tx.write("truths", known.seq, entry.seq, entry.at, self.true)
            known.truth, new = self.true, True
        self.status = 201 if new else 200
        if known.late and self.observed is not None:
            self.status, self.answer = 410, "the reward came too late: recorded, not learned"

    def _observe(self, tx: Transaction, known: Known, value: float) -> None:
        in_time, held = known.waits, tx.rules.after_wait
        body = reward_of(known, value, learned=in_time and not held)
        kind = kinds.REWARD if in_time else kinds.LATE
        entry = tx.append(kind, known.id, body, event=body.learned)
        tx.write("rewards", known.seq, entry.seq, entry.at, value, int(not in_time))
        parts = tx.parts(known.group_in_force, body.context)
        if in_time:
            tx.write("held" if held else "settled", known.seq)
            tx.tally(entry.at, parts, rewarded=1, earned=value)
        else:
            tx.tally(entry.at, parts, late=1)
        known.reward, known.late = value, int(not in_time)
        known.rewarded, known.due = (1, known.due) if held else (known.rewarded, None)


class Override(OfDecision):
    """A human chooses another arm."""

    def __init__(
        self, id: str, arm: int | None, groups: Callable[[int], str], reason: str, by: str
    ) -> None:
        self.id, self.arm, self.groups = id, arm, groups
        self.reason, self.by = reason, by

    def settle(self, tx: Transaction) -> None:
        """Record it, while the decision waits for its reward."""
        known = tx.known(self.id)
        body = None if known is None else decision_of(known)
        if known is None or body is None:
            missing = (404, "there is no decision with this id")
            self.status, self.answer = (
                missing if known is None else (410, "the decision was erased")
            )
            return
        if known.override is not None:
            same = known.override == self.arm
            self.status = 200 if same else 409
            self.answer = "" if same else "the decision is already overridden"
            return
        row = None if self.arm is None else body.row(self.arm)
        if self.arm is None or row is None:
            self.status, self.answer = 422, "arm"
            return
        if self.arm == known.arm:
            self.status, self.answer = 409, "this is the arm that was chosen"
            return
        if known.reward is not None:
            self.status, self.answer = 409, "the decision has its reward; it cannot be changed now"
            return
        if tx.is_over(known):
            self.status = 410
            self.answer = "the decision no longer waits for its reward; it cannot be changed now"
            return
        override = kinds.Override(known.seq, self.arm, row, self.reason, self.by)
        _override(tx, known, override, tx.label(self.groups(self.arm), row))
        self.status = 201


def _override(tx: Transaction, known: Known, body: kinds.Override, group: str) -> None:
    entry = tx.append(kinds.OVERRIDE, known.id, body, event=True)
    tx.write(
        "overrides", known.seq, entry.seq, entry.at, body.arm, group, body.reason, body.by,
        int(body.shadow),
    )  # fmt: skip
    known.override, known.override_grp, known.override_body = body.arm, group, entry.body
    chosen = decision_of(known)
    if not body.shadow and chosen is not None:
        tx.tally(entry.at, tx.parts(known.grp, chosen.row(known.arm) or b""), overridden=1)


class Use(OfDecision):
    """A decision was used."""

    def __init__(self, id: str) -> None:
        self.id = id

    def settle(self, tx: Transaction) -> None:
        """From now on it waits for a reward, where use has to be confirmed."""
        known = tx.known(self.id)
        if known is None:
            self.status, self.answer = 404, "there is no decision with this id"
        elif known.used is not None:
            self.status = 200
        else:
            entry = tx.append(kinds.USE, self.id, kinds.Use(known.seq))
            tx.write("uses", known.seq, entry.seq, entry.at)
            known.used = entry.seq
            if tx.rules.confirmed and known.reward is None:
                known.due = entry.at + tx.rules.wait
                tx.write("waiting", known.seq, known.due, known.group_in_force)
            self.status = 201


class Note(Ask):
    """Any other entry, which needs no decision: a start, a pause, an arm, a key."""

    def __init__(self, kind: str, body: Any, subject: str | None = None) -> None:
        self.kind, self.body, self.subject = kind, body, subject

    def settle(self, tx: Transaction) -> None:
        """Record it."""
        self.answer = tx.append(self.kind, self.subject, self.body)
        self.status = 201


class Call(Ask):
    """Anything else that has to be written, such as a session; it may come with an entry."""

    def __init__(
        self, function: Callable[..., Any], *arguments: Any, note: tuple[str, Any] | None = None
    ) -> None:
        self.function, self.arguments, self.note = function, arguments, note

    def settle(self, tx: Transaction) -> None:
        """Do it, on the connection of the writer."""
        self.answer = self.function(tx.connection, *self.arguments)
        if self.note is not None and self.answer is not False:
            tx.append(self.note[0], None, self.note[1])
        self.status = 201


class Keep(Ask):
    """A snapshot, to be kept beside the entries. It only saves time."""

    def __init__(self, seq: int, state: bytes) -> None:
        self.seq, self.state = seq, state

    def settle(self, tx: Transaction) -> None:
        """Keep it with the hash of its entry, so that no other ledger uses it by mistake."""
        row = tx.connection.row("SELECT hash FROM entries WHERE seq = ?", (self.seq,))
        if row is not None:
            tx.connection.rows(
                "INSERT INTO snapshots (seq, hash, state) VALUES (?, ?, ?) "
                "ON CONFLICT (seq) DO NOTHING",
                (self.seq, bytes(row[0]), self.state),
            )
        self.status = 201


class Expire(Ask):
    """Settle the decisions that have waited long enough."""

    most = 2000

    def settle(self, tx: Transaction) -> None:
        """Learn the rewards that were held back; record which did not come."""
        rows = tx.connection.rows(
            "SELECT w.decision, d.id FROM waiting w "
            "JOIN decisions d ON d.seq = w.decision WHERE w.due <= ? "
            "ORDER BY w.due, w.decision LIMIT ?",
            (tx.now, self.most),
        )
        tx.look_up(row[1] for row in rows)
        missing = []
        for seq, id in rows:
            known = tx.known(id)
            if known is None or known.due is None:
                continue  # settled in this transaction
            parts = _parts_in_force(tx, known)
            tx.write("settled", seq)
            known.due = None
            if known.rewarded and known.reward is not None:
                tx.append(kinds.LEARN, id, reward_of(known, known.reward, learned=True), True)
            elif tx.rules.default_reward is not None and known.body is not None:
                value = tx.rules.default_reward
                body = msgspec.structs.replace(reward_of(known, value, True), default=True)
                entry = tx.append(kinds.REWARD, id, body, event=True)
                tx.write("rewards", seq, entry.seq, entry.at, value, 0)
                known.reward, known.late = value, 0
                tx.tally(tx.now, parts, missing=1)
            else:
                missing.append(seq)
                tx.tally(tx.now, parts, missing=1)
        if missing:
            tx.append(kinds.EXPIRED, None, kinds.Expired(missing))
        self.status, self.answer = 200, len(rows)


def _parts_in_force(tx: Transaction, known: Known) -> Mapping[str, float]:
    """The groups of the arm that counts; a body is read only where candidates bring them."""
    row = b"" if tx.rules.given is None else reward_of(known, 0.0, learned=False).context
    return tx.parts(known.group_in_force, row)


def true_of(known: Known, value: float, learned: bool) -> kinds.TrueReward:
    """A true reward with what is needed to learn it."""
    if not learned:
        return kinds.TrueReward(known.seq, value)
    learnable = reward_of(known, value, learned)
    counted = known.reward is not None and not known.late and known.due is None
    observed = known.reward if counted else None
    return kinds.TrueReward(
        known.seq, value, True, learnable.round, learnable.arm, learnable.context, observed
    )


def reward_of(known: Known, value: float, learned: bool) -> kinds.Reward:
    """A reward of the arm in force, with what is needed to learn it."""
    if known.override_body is not None:
        chosen: kinds.Override = kinds.decode(kinds.OVERRIDE, bytes(known.override_body))
        return kinds.Reward(known.seq, known.round, chosen.arm, chosen.context, value, learned)
    body = decision_of(known)
    row = None if body is None else body.row(known.arm)
    assert row is not None
    return kinds.Reward(known.seq, known.round, known.arm, row, value, learned)
