"""A state machine over the ledger: any order of calls, crashes, restarts, erasures and snapshots.

It drives the engine that the server runs, without the network, and compares with a plain model.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from evenhand.groups import PER_ROUND
from evenhand.service import _policy_calls, _queries
from evenhand.service._engine import Engine
from evenhand.service._features import membership_rows
from evenhand.service._ledger import asks
from evenhand.service._ledger import entries as kinds
from evenhand.service._ledger.asks import Keep, Note
from evenhand.service._ledger.erasure import EraseAsk
from evenhand.service._ledger.fold import restored
from evenhand.service._ledger.membership import ERASED
from evenhand.service.config import load
from serving import ARMS, GIVEN, check_chain, rows_of, write_config


class Ledgers(RuleBasedStateMachine):
    """What callers were told, compared with what the ledger says."""

    settings: ClassVar[dict[str, str]] = {"policy": "TopInterval"}

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="evenhand-"))
        self.config = load(write_config(self.folder, **self.settings))
        self.decided: dict[str, str] = {}
        self.rewards: dict[str, float] = {}
        self.overridden: dict[str, int] = {}
        self.erased: set[str] = set()
        self.people: dict[str, str] = {}
        self.engine = self.opened()

    def opened(self) -> Engine:
        engine = Engine(self.config)
        engine.open()
        return engine

    def write(self, *some: asks.Ask) -> None:
        committed = self.engine.store.write(some)
        before = self.engine.state.pinned
        if self.engine.state.apply(committed.told):
            self.engine._use_state(restored(self.engine.store.connection))
        elif self.engine.state.pinned != before:
            self.engine._use_state(self.engine.state)

    def contexts(self, rng: np.random.Generator) -> np.ndarray:
        rows = rng.normal(size=(4, 3)).round(3)
        if self.engine.state.given is None:
            return rows
        levels = ["F", "M", None, {"F": 0.3, "M": 0.7}]
        groups = [levels[k] for k in rng.integers(4, size=4)]
        return np.column_stack([rows, membership_rows(self.config.groups, groups)])

    def some_id(self, data) -> str:
        return data.draw(st.sampled_from(sorted(self.decided)))

    @rule(seed=st.integers(0, 999), person=st.sampled_from(["p1", "p2", "p3"]))
    def decide(self, seed, person):
        rows = self.contexts(np.random.default_rng(seed))
        id = f"d{len(self.decided)}"
        ask = self.engine.prepare(id, list(ARMS), rows, person=person)
        self.write(ask)
        assert ask.status == 201
        self.decided[id], self.people[id] = ARMS[ask.answer.arm], person

    @precondition(lambda self: self.decided)
    @rule(data=st.data(), value=st.floats(-9, 9))
    def reward(self, data, value):
        id = self.some_id(data)
        ask = asks.Reward(id, value, None)
        self.write(ask)
        if id in self.erased:
            expected = 410
        elif id in self.rewards:
            expected = 200 if self.rewards[id] == value else 409
        else:
            expected = 201
            self.rewards[id] = value
        assert ask.status == expected

    @precondition(lambda self: self.decided)
    @rule(data=st.data(), arm=st.integers(0, 3))
    def override(self, data, arm):
        id = self.some_id(data)
        ask = asks.Override(id, arm, lambda _: "F", "because", "Ada")
        self.write(ask)
        if id in self.erased:
            expected = 410
        elif id in self.overridden:
            expected = 200 if self.overridden[id] == arm else 409
        elif ARMS[arm] == self.decided[id] or id in self.rewards:
            expected = 409
        else:
            expected = 201
            self.overridden[id] = arm
        assert ask.status == expected

    @precondition(lambda self: self.decided)
    @rule(data=st.data())
    def use(self, data):
        ask = asks.Use(self.some_id(data))
        self.write(ask)
        assert ask.status in (200, 201)

    @precondition(lambda self: self.decided)
    @rule(person=st.sampled_from(["p1", "p2", "p3"]))
    def erase(self, person):
        ask = EraseAsk(self.engine.pseudonym(person), "Ada", "asked to", 0, True)
        known = {i for i, p in self.people.items() if p == person} - self.erased
        self.write(ask)
        assert ask.status == (200 if known else 404)
        self.erased |= known

    @rule()
    def snapshot(self):
        state = restored(self.engine.store.connection)
        self.write(Keep(state.version, state.to_bytes()))

    @precondition(lambda self: len(self.engine.state.arms) < len(ARMS) + 2)
    @rule(group=st.sampled_from(["F", "M"]))
    def add_arm(self, group):
        """Also after an erasure, when nothing can be learned from the beginning."""
        number = len(self.engine.state.arms)
        group = PER_ROUND if self.engine.state.given is not None else group
        self.write(Note(kinds.ARM, kinds.Arm("add", number, f"new-{number}", group, "Ada")))
        assert self.engine.state.policy.n_arms == number + 1

    @rule(what=st.sampled_from(["pause", "resume"]))
    def stop_and_go(self, what):
        self.write(Note(kinds.CONTROL, kinds.Control(what, "Ada", "why")))
        assert self.engine.state.paused == (what == "pause")

    @rule(back=st.booleans())
    def roll_back(self, back):
        version = self.engine.state.version if back else 0
        self.write(Note(kinds.CONTROL, kinds.Control("rollback", "Ada", "why", version)))
        assert self.engine.decider.version == (version or self.engine.state.version)

    @rule(written=st.booleans())
    def crash(self, written):
        """The process ends within a transaction, before or after its last statement."""
        store = self.engine.store
        ask = self.engine.prepare("lost", list(ARMS), self.contexts(np.random.default_rng(0)))
        from evenhand.service._ledger.transaction import Transaction

        tx = Transaction(store.connection, "", store.rules)
        ask.settle(tx)
        if written:
            tx.flush()
        store.drop()  # without a commit
        self.engine = self.opened()

    @rule()
    def restart(self):
        self.engine.close()
        self.engine = self.opened()

    @invariant()
    def everything_acknowledged_is_there_once(self):
        place = self.folder / "loans.db"
        check_chain(place)
        ids = [row[0] for row in rows_of(place, "SELECT id FROM decisions")]
        assert sorted(ids) == sorted(self.decided)
        rewards = dict(rows_of(place, "SELECT d.id, r.reward FROM rewards r JOIN decisions d "
                                   "ON d.seq = r.decision"))  # fmt: skip
        assert rewards == {i: v for i, v in self.rewards.items() if i not in self.erased}

    @invariant()
    def the_state_is_the_fold(self):
        folded = restored(self.engine.store.connection)
        state = self.engine.state
        assert folded.checksum() == state.checksum()
        assert (folded.round, folded.paused, folded.pinned) == (
            state.round, state.paused, state.pinned,
        )  # fmt: skip
        if not self.erased:
            whole = restored(self.engine.store.connection, snapshots=False)
            assert whole.checksum() == state.checksum()

    @invariant()
    def groups_are_counted_and_erased(self):
        place = self.folder / "loans.db"
        ((counted,),) = rows_of(place, "SELECT SUM(decided) FROM tallies")
        assert (counted or 0.0) == pytest.approx(len(self.decided))
        if self.engine.state.given is None:
            return
        labels = dict(rows_of(place, "SELECT id, grp FROM decisions"))
        assert {id for id, label in labels.items() if label == ERASED} == self.erased
        sql = "SELECT kind, body FROM entries WHERE body IS NOT NULL AND kind = 'decision'"
        bodies = [kinds.decode(kind, bytes(body)) for kind, body in rows_of(place, sql)]
        assert len(bodies) == len(self.decided) - len(self.erased)

    @precondition(lambda self: self.decided.keys() - self.erased and not self.erased)
    @rule(data=st.data())
    def make_again(self, data):
        connection = self.engine.store.connection
        body, seed = _queries.body_and_seed(connection, self.some_id(data))
        again = _policy_calls.again(restored(connection, body.version), body, seed)
        assert (again.decision.arm, again.scores) == (body.arm, body.scores)

    def teardown(self) -> None:
        self.engine.store.drop()
        self.engine.database.close()
        shutil.rmtree(self.folder)


Ledgers.TestCase.settings = settings(max_examples=12, stateful_step_count=30)


class LedgersOfGivenGroups(Ledgers):
    """The same, with candidates that bring their groups."""

    settings: ClassVar[dict[str, str]] = {"policy": "PooledGroupFair", **GIVEN}


LedgersOfGivenGroups.TestCase.settings = settings(max_examples=8, stateful_step_count=25)
TestLedgers = Ledgers.TestCase
TestLedgersOfGivenGroups = LedgersOfGivenGroups.TestCase
TestLedgersOfGivenGroups.pytestmark = [pytest.mark.slow]
TestLedgers.pytestmark = [pytest.mark.slow]
