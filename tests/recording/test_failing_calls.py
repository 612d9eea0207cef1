"""Calls that fail, and writers in each other's way: nothing of another call is changed."""

from __future__ import annotations

import json
import os
import threading

import numpy as np
import pytest

import evenhand as eh
from evenhand.errors import DamagedError
from evenhand.events.event import DecisionMade, RewardObserved
from evenhand.recording._replay import checksum
from evenhand.service import SqlLedger
from log_scripts import bits, contexts_of, make
from memory_ledger import MemoryLedger

ONES = np.ones((2, 1))


def of_two(**settings):
    return eh.TopInterval(["F", "M"], n_features=1, seed=1, **settings)


def test_a_second_writer_is_refused_for_good(tmp_path):
    """It knows nothing of what the first one learned, so none of its calls may be kept."""
    url = f"sqlite:{tmp_path}/log.db"
    writer = eh.log_to(SqlLedger(url), of_two())
    first = writer.select(ONES)
    two = eh.log_to(SqlLedger(url))
    writer.update(first, 1.0)
    for _ in range(3):
        with pytest.raises(eh.InputError, match="open the log again") as error:
            two.select(ONES)
        assert not isinstance(error.value, DamagedError)
    with pytest.raises(eh.InputError, match="open the log again"):
        two.update(first.round, 7.0)
    writer.update(writer.select(ONES), 2.0)
    replayed = eh.replay(SqlLedger(url, write=False))
    assert bits(replayed) == bits(writer.policy)
    two.ledger.release()
    writer.close()


def test_what_another_writer_was_told_is_kept_stays(tmp_path):
    """A ledger that refuses to append has kept nothing that could be taken back."""
    shared = []

    class Cached(MemoryLedger):
        """Knows its head from its own calls, as a ledger in files does."""

        def __init__(self):
            super().__init__()
            self.events = shared
            self.known = len(shared)

        @property
        def head(self):
            return self.known

        def append(self, events):
            if events[0].seq != len(shared) + 1:
                raise KeyError("this number is taken")
            super().append(events)
            self.known = len(shared)

    writer = eh.log_to(Cached(), of_two())
    waiting = writer.select(ONES)
    second = Cached()
    second.about = writer.ledger.about
    two = eh.log_to(second)
    writer.update(waiting, 1.0)
    writer.select(ONES)
    for call in (lambda: two.select(ONES), lambda: two.update(1, 2.0)):
        with pytest.raises(KeyError):
            call()
    assert len(shared) == 3


class Fails(eh.Policy):
    """Fails to learn one reward, after its regressions have learned it.

    It does not say what it keeps, so there may be more than what can be undone.
    """

    def learn(self, arm, context, reward):
        if reward == 13.0:
            raise ZeroDivisionError("a mistake of its author")

    def score(self, contexts):
        return contexts[:, 0]


class FailsCleanly(Fails):
    """The same, and it keeps nothing of its own."""

    def learns(self):
        return super().learns()


def test_a_policy_that_fails_while_it_learns_has_learned_nothing(tmp_path):
    path = tmp_path / "log.csv"
    logged = eh.log_to(path, FailsCleanly(["F", "M"], n_features=1, seed=1))
    made = [logged.select(ONES) for _ in range(3)]
    before = bits(logged.policy)
    for call in (
        lambda: logged.update(made[0], 13.0),
        lambda: logged.update(made, [1.0, 2.0, 13.0]),
        lambda: logged.absorb([0, 1], ONES, [1.0, 13.0]),
    ):
        with pytest.raises(ZeroDivisionError):
            call()
        assert bits(logged.policy) == before and logged.waiting == [1, 2, 3]
    logged.update(made, [1.0, 2.0, 3.0])
    logged.close()
    assert bits(eh.replay(path)) == bits(logged.policy)


def test_a_policy_that_may_have_learned_elsewhere_is_not_asked_again(tmp_path):
    path = tmp_path / "log.csv"
    logged = eh.log_to(path, Fails(["F", "M"], n_features=1, seed=1))
    decision = logged.select(ONES)
    with pytest.raises(ZeroDivisionError):
        logged.update(decision, 13.0)
    with pytest.raises(eh.InputError, match=r"failed while learning.*open the log again"):
        logged.update(decision, 5.0)
    logged.ledger.release()
    with eh.log_to(path) as again:
        again.update(1, 5.0)
    assert again.counts.sum() == 1 and checksum(eh.replay(path)) == checksum(again.policy)


def test_what_broke_a_log_is_seen_at_the_end_of_its_block(tmp_path):
    with (
        pytest.raises(ZeroDivisionError),
        eh.log_to(tmp_path / "log.csv", Fails(["F", "M"], n_features=1, seed=1)) as logged,
    ):
        logged.update(logged.select(ONES), 13.0)
    with eh.log_to(tmp_path / "log.csv") as again:
        assert again.waiting == [1]


def test_an_update_of_its_own_is_not_logged(tmp_path):
    class Halved(eh.TopInterval):
        def update(self, decision, reward):
            super().update(decision, reward / 2)

    with pytest.raises(eh.InputError, match="Halved has its own update, which a replay does not"):
        eh.log_to(tmp_path / "log.csv", Halved(["F", "M"], n_features=1))


def test_what_a_replay_could_not_repeat_is_refused(tmp_path):
    path, other = tmp_path / "log.csv", of_two()
    other.absorb([0], [[1.0]], [5.0])
    with eh.log_to(path, of_two()) as logged:
        for call in (
            lambda: logged.merge(other),
            lambda: logged.learn(0, np.ones(1), 1.0),
            lambda: logged.learn_true(0, np.ones(1), 1.0, 1.0),
        ):
            with pytest.raises(eh.InputError, match=r"not logged.* absorb"):
                call()
    assert logged.counts.sum() == eh.replay(path).counts.sum() == 0


def test_what_a_policy_learned_itself_is_read_only_in_a_log():
    with eh.log_to(MemoryLedger(), pooled()) as logged:
        assert logged.own.settled.tolist() == logged.policy.own.settled.tolist()
        with pytest.raises(ValueError, match="read-only"):
            logged.own.settled[...] = 1.0
        logged.policy.own.settled[0] += 0.0  # the policy still learns


# Both rewards at once ---------------------------------------------------------------------------


def pooled(**settings):
    return eh.PooledGroupFair(["F", "F", "M", "M"], 2, seed=1, **settings)


@pytest.mark.parametrize("given", ["decision", "round", "list"])
def test_both_rewards_are_one_call(given, tmp_path):
    class Counted(MemoryLedger):
        calls = 0

        def append(self, events):
            Counted.calls += 1
            super().append(events)

    ledger = Counted()
    with eh.log_to(ledger, pooled()) as logged:
        made = [logged.select(contexts_of(seed)) for seed in range(4)]
        before, twin = Counted.calls, pooled()
        if given == "list":
            logged.update(made, [1.0, 2.0, 3.0, 4.0], true_reward=[1.5, 2.5, 3.5, 4.5])
        else:
            for place, decision in enumerate(made):
                which = decision if given == "decision" else decision.round
                logged.update(which, 1.0 + place, true_reward=1.5 + place)
        assert Counted.calls - before == (1 if given == "list" else 4)
    for seed in range(4):
        twin.select(contexts_of(seed))
    for place, decision in enumerate(made):
        twin.update(decision, 1.0 + place)
        twin.update(decision, true_reward=1.5 + place)
    np.testing.assert_allclose(
        logged.policy.select(contexts_of(9)).scores.table,
        twin.select(contexts_of(9)).scores.table,
        rtol=1e-8,
        atol=1e-8,
    )
    again = eh.replay(ledger)
    again.round = logged.policy.round
    assert bits(again) == bits(logged.policy)


def test_a_call_with_both_rewards_is_kept_as_a_whole_or_not():
    class Full(MemoryLedger):
        def append(self, events):
            if sum(isinstance(event, DecisionMade) for event in events) == 0:
                raise OSError("no room")
            super().append(events)

    logged = eh.log_to(ledger := Full(), pooled())
    decision, before = logged.select(contexts_of(0)), bits(logged.policy)
    with pytest.raises(OSError, match="no room"):
        logged.update(decision, 1.0, true_reward=2.0)
    assert len(ledger.events) == 1 and bits(logged.policy) == before and decision.reward is None


@pytest.mark.parametrize("changed", ["arm", "context", "another log's"])
def test_a_true_reward_of_another_decision_is_refused(changed, tmp_path):
    """Also after its observed reward, when the log no longer has it in memory."""
    other = eh.log_to(MemoryLedger(), pooled())
    decision = other.select(contexts_of(5))
    with eh.log_to(tmp_path / "log.csv", pooled()) as logged:
        mine = logged.select(contexts_of(0))
        logged.update(mine, 1.0)
        other.update(decision, 1.0)
        if changed != "another log's":
            plain = mine.to_dict()
            plain |= {"arm": (mine.arm + 1) % 4} if changed == "arm" else {"context": [9.0, 9.0]}
            decision = eh.Decision.from_dict(plain)
        with pytest.raises(eh.InputError, match="differs from that of round 1 in this log"):
            logged.true_reward(decision, 1.0)
        logged.true_reward(eh.Decision.from_dict(mine.to_dict()), 1.0)
    assert bits(eh.replay(tmp_path / "log.csv")) == bits(logged.policy)


# Snapshots --------------------------------------------------------------------------------------


def test_a_snapshot_that_is_useless_is_not_asked_for_again():
    class Stubborn(MemoryLedger):
        """Has one snapshot, whatever it is asked for."""

        def newest_snapshot(self, before=None):
            from evenhand.events.ledger import Snapshot

            return Snapshot(1, {"round": "nonsense"})

    with eh.log_to(ledger := Stubborn(), make()) as logged:
        logged.update(logged.select(contexts_of(0)), 1.0)
    assert bits(eh.log_to(ledger).policy) == bits(logged.policy)


def test_a_disk_that_fails_is_not_hidden_by_a_snapshot(tmp_path, monkeypatch):
    """What could not be synced once may be lost, though a second try finds nothing to do."""
    logged = eh.log_to(tmp_path / "log.csv", make(), sync=1000.0, snapshot_every=2)
    for seed in range(2):
        logged.select(contexts_of(seed))

    def fails(_):
        monkeypatch.undo()
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="Input/output"):
        logged.select(contexts_of(2))
    with pytest.raises(eh.InputError, match="its disk failed; open the log again"):
        logged.flush()
    logged.ledger.release()


def test_true_rewards_after_the_end_are_no_learning_outside_the_log(tmp_path, recwarn):
    path = tmp_path / "log.csv"
    with eh.log_to(path, pooled()) as logged:
        for seed in range(6):
            logged.update(logged.select(contexts_of(seed)), 1.0)
    logged = eh.log_to(path)
    logged.true_reward(3, 1.0)
    assert bits(eh.replay(path)) == bits(logged.policy)
    assert not [str(w.message) for w in recwarn if "outside" in str(w.message)]


# Threads ----------------------------------------------------------------------------------------


def test_asking_for_propensities_of_another_round_disturbs_nobody():
    """A score in plain Python goes by the round, which other threads see."""
    seen, stop = set(), threading.Event()

    class ByRound(eh.Policy):
        def score(self, contexts):
            return contexts[:, 0] + self.round

    policy = ByRound(["F", "M"], n_features=1, seed=1, exploration="none")

    def ask():
        while not stop.is_set():
            policy.propensities(ONES, round=50)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for _ in range(20_000):
            seen.add(policy.round)
    finally:
        stop.set()
        asking.join()
    assert seen == {0} and policy.propensities(ONES, round=50).sum() == 1.0


def test_events_of_the_same_call_have_the_numbers_that_follow():
    with eh.log_to(ledger := MemoryLedger(), make()) as logged:
        logged.update([logged.select(contexts_of(0)), logged.select(contexts_of(1))], [1.0, 2.0])
    assert [event.seq for event in ledger.events] == [1, 2, 3, 4]
    assert [type(event) for event in ledger.events[2:]] == [RewardObserved] * 2


def test_masked_values_are_refused(tmp_path):
    """NumPy would use the numbers below the mask."""
    with eh.log_to(tmp_path / "log.csv", of_two()) as logged:
        decision = logged.select(ONES)
        for masked in (np.ma.masked, np.ma.array([0.5], mask=[True])):
            with pytest.raises(eh.InputError, match="true_reward has masked values"):
                logged.true_reward(decision, masked)
        with pytest.raises(eh.InputError, match="context has masked values"):
            context = np.ma.array(ONES[0], mask=True)
            logged.override(decision, arm=1 - decision.arm, context=context)
        assert logged.ledger.head == 1
        with pytest.raises(eh.InputError, match="differs from that of round 1"):
            logged.true_reward(of_two().select(2.0 * ONES), 1.0)


def test_closing_does_not_replace_an_older_snapshot(tmp_path):
    path = tmp_path / "log.csv"
    with eh.log_to(path, of_two(), snapshot_every=2) as logged:
        for _ in range(3):
            logged.update(logged.select(ONES), 1.0)
    newest, before = (json.loads(path.with_name(f"log.csv.{name}").read_text().split("\n")[0])
                      for name in ("snapshot", "snapshot.before"))  # fmt: skip
    assert newest["seq"] == 6 and before["seq"] == 4
