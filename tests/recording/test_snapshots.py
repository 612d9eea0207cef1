"""Opening a log again starts from a snapshot, which changes nothing but the time it takes."""

import json
import shutil
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand as eh
from evenhand.events._journal import journal_of
from evenhand.events._snapshot_files import snapshot_files
from evenhand.service import SqlLedger
from evenhand.service._ledger.sqlite_and_postgres import Connection, Unavailable
from log_scripts import OURS, Calls, bits, contexts_of, fill, killed, make, same_decisions
from memory_ledger import MemoryLedger


def opened(ledger):
    """The log of a ledger as another process finds it, and the event after which it read."""
    other = ledger.again()
    logged = eh.log_to(other)
    return logged, other.reads


def test_only_what_came_after_the_snapshot_is_read():
    ledger = MemoryLedger()
    logged, calls = eh.log_to(ledger, make(), snapshot_every=10), Calls(2)
    for _ in range(80):
        calls.one(logged)
        again, reads = opened(ledger)
        assert bits(again.policy) == bits(logged.policy) == bits(eh.replay(ledger))
        assert again.waiting == logged.waiting and reads[-1] >= ledger.head - 13
    fill(logged)
    seqs = [seq for seq, _ in ledger.snapshots]
    assert len(seqs) > 5 and min(b - a for a, b in pairwise(seqs)) >= 10
    logged.close()
    again, reads = opened(ledger)
    assert reads == [ledger.head]
    same_decisions(again.policy, eh.replay(ledger))


@pytest.mark.parametrize("name", OURS)
def test_every_policy_comes_back_bit_for_bit(name, tmp_path):
    path = tmp_path / "log.csv"
    with eh.log_to(path, make(name), snapshot_every=7) as logged:
        Calls(1).many(logged, 60)
    assert all(file.exists() for file in snapshot_files(path))
    full = eh.replay(path)
    with eh.log_to(path) as again:
        assert bits(again.policy) == bits(full) == bits(logged.policy)
        same_decisions(again.policy.clone(), full.clone())


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("crash", [False, True])
def test_waiting_overridden_and_named_decisions_come_back(suffix, crash, tmp_path):
    path = tmp_path / f"log.{suffix}"
    logged = eh.log_to(path, make(), snapshot_every=3)
    decisions = [logged.select(contexts_of(t), id=f"loan {t}") for t in range(6)]
    logged.override("loan 2", (decisions[2].arm + 1) % 4, [1.0, 2.0])
    logged.update("loan 4", 0.5)
    killed(logged) if crash else logged.close()
    with eh.log_to(path) as again:
        assert again.waiting == [1, 2, 3, 4, 6]
        with pytest.raises(ValueError, match="already overridden"):
            again.override(3, decisions[2].arm, [1.0, 2.0])
        with pytest.raises(ValueError, match="which the decision of round 1 has"):
            again.select(contexts_of(1), id="loan 0")
        again.update("loan 2", 2.0)
        again.update(decisions[5], 3.0)
        with pytest.raises(ValueError, match="already has its reward"):
            again.update("loan 4", 1.0)
    assert bits(eh.replay(path)) == bits(again.policy)


def ways_to_spoil(raw, other):
    yield "lost", None
    yield "empty", b""
    yield "of another log", other
    for end in range(0, len(raw) - 1, len(raw) // 5):
        yield f"cut off at {end}", raw[:end]
    for place in range(0, len(raw), len(raw) // 5):
        yield f"changed at {place}", raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :]
    yield "nested", b"[" * 100_000 + b"\n00000000\n"


@pytest.mark.slow
@pytest.mark.parametrize("crash", [False, True])
def test_damaged_snapshots_are_ignored(crash, tmp_path):
    path, other = tmp_path / "log.csv", tmp_path / "other.csv"
    for file in (path, other):
        logged = eh.log_to(file, make(), snapshot_every=10)
        Calls(3).many(logged, 45)
        killed(logged) if crash else logged.close()
    files, strange = snapshot_files(path), snapshot_files(other)[0].read_bytes()
    raws, expected = [file.read_bytes() for file in files], bits(logged.policy)
    for which in ([0], [1], [0, 1]):
        for what, wrong in ways_to_spoil(raws[which[0]], strange):
            for number in which:
                if wrong is None:
                    files[number].unlink()
                else:
                    files[number].write_bytes(wrong)
            again = eh.log_to(path)
            assert bits(again.policy) == expected, what
            killed(again)
            if not crash:
                journal_of(path).unlink()  # it has only a first line
            for file, raw in zip(files, raws, strict=True):
                file.write_bytes(raw)


def test_a_snapshot_that_cannot_be_used_is_skipped():
    """It is undamaged, but this evenhand cannot read it; or it contradicts the log."""
    ledger = MemoryLedger()
    with eh.log_to(ledger, make(), snapshot_every=10) as logged:
        Calls(3).many(logged, 45)
    seq, text = ledger.snapshots[-1]
    for change in (
        lambda state: state.clear(),
        lambda state: state.pop("policy"),
        lambda state: state.update(policy=None),
        lambda state: state.update(policy=[]),
        lambda state: state.update(round="3"),
        lambda state: state.update(learned=None),
        lambda state: state["policy"].update(version=99),
        lambda state: state["policy"].update(round=3),
        lambda state: state.update(waiting=[[1, "!"]]),
        lambda state: state.update(waiting=[[1, "AAAA"]]),
    ):
        state = json.loads(text)
        change(state)
        ledger.snapshots[-1] = (seq, json.dumps(state))
        again, reads = opened(ledger)
        assert bits(again.policy) == bits(logged.policy)
        assert reads[-1] == (ledger.snapshots[-2][0]), reads


def test_a_restored_log_does_not_continue_from_its_future(tmp_path):
    """Then the snapshots belong to events that never happened."""
    path, old = tmp_path / "log.csv", tmp_path / "old"
    logged, calls = eh.log_to(path, make(), snapshot_every=5), Calls(3)
    calls.many(logged, 12)
    logged.close()
    old.mkdir()
    for file in tmp_path.glob("log.csv*"):
        if "snapshot" not in file.name:
            shutil.copy(file, old / file.name)
    with eh.log_to(path, snapshot_every=5) as logged:
        calls.many(logged, 12)
    for file in old.iterdir():
        shutil.copy(file, path.parent / file.name)
    with eh.log_to(path, snapshot_every=1000) as logged:
        Calls(4).many(logged, 40)
        killed(logged)
        logged._open = False
    full = eh.replay(path)
    assert bits(full) == bits(logged.policy)
    with eh.log_to(path) as again:
        assert bits(again.policy) == bits(full)


def test_what_was_learned_outside_the_log_is_not_kept(tmp_path):
    path = tmp_path / "log.csv"
    with eh.log_to(path, make(), snapshot_every=5) as logged:
        Calls(1).many(logged, 30)
        logged.policy.absorb([0], [[1.0, 2.0]], [3.0])
        Calls(2).many(logged, 30)
    with pytest.warns(UserWarning, match="learned outside its log"):
        full = eh.replay(path)
    with pytest.warns(UserWarning, match="learned outside its log"):
        again = eh.log_to(path)
    assert bits(again.policy) == bits(full) != bits(logged.policy)
    again.close()


class Counting(eh.TopInterval):
    """Knows more than is saved."""

    learned = 0

    def absorb(self, arms, contexts, rewards):
        super().absorb(arms, contexts, rewards)
        self.learned += len(rewards)


def test_a_policy_that_learns_in_its_own_way_is_replayed(tmp_path):
    path = tmp_path / "log.csv"
    with eh.log_to(path, Counting(["F", "M"], n_features=1, seed=1), snapshot_every=1) as logged:
        for _ in range(3):
            logged.absorb([0], [[1.0]], [1.0])
    assert not snapshot_files(path)[0].exists()
    with eh.log_to(path) as again:
        assert again.policy.learned == 3


def test_a_snapshot_that_cannot_be_written_stops_nothing(tmp_path):
    path = tmp_path / "log.csv"
    snapshot_files(path)[0].mkdir()  # so that no file can take its place
    with (
        pytest.warns(UserWarning, match="log.csv could not keep a snapshot, so opening it again"),
        eh.log_to(path, make(), snapshot_every=1) as logged,
    ):
        Calls(1).many(logged, 20)
    assert bits(eh.replay(path)) == bits(logged.policy)
    assert not list(tmp_path.glob("*.part"))
    with pytest.raises(ValueError, match="snapshot_every is 0"):
        eh.log_to(tmp_path / "new.csv", make(), snapshot_every=0)


class OfTheDatabase(Exception):
    """An error of no class that evenhand knows."""


def test_a_database_that_refuses_a_snapshot_stops_nothing():
    class Refusing(MemoryLedger):
        def snapshot(self, state, seq):
            raise OfTheDatabase("the table is\nlocked")

    logged = eh.log_to(ledger := Refusing(), make(), snapshot_every=2)
    with pytest.warns(UserWarning, match="memory could not keep .* takes longer: the table is lo"):
        Calls(1).many(logged, 12)
    with pytest.warns(UserWarning, match="could not keep a snapshot"):
        logged.close()
    assert ledger.ended["round"] == logged.round
    assert bits(eh.replay(ledger)) == bits(logged.policy)


def test_a_snapshot_that_sqlite_refuses_leaves_no_transaction_open(tmp_path, monkeypatch):
    """It raises an error of its own, and the next event needs a transaction of its own."""
    url, rows = f"sqlite:{tmp_path}/log.db", Connection.rows

    def refuse(self, sql, parameters=()):
        if "log snapshot" in sql and sql.startswith("INSERT"):
            raise Unavailable("database or disk is full")
        return rows(self, sql, parameters)

    monkeypatch.setattr(Connection, "rows", refuse)
    logged = eh.log_to(SqlLedger(url), make(), snapshot_every=2)
    with pytest.warns(UserWarning, match="could not keep a snapshot.*: database or disk is full"):
        Calls(1).many(logged, 12)
        logged.close()
    assert bits(eh.replay(SqlLedger(url, write=False))) == bits(logged.policy)


@pytest.mark.slow
@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    every=st.integers(1, 20),
    given=st.booleans(),
    parts=st.lists(st.tuples(st.integers(0, 15), st.sampled_from(["close", "crash"])), max_size=5),
    suffix=st.sampled_from(["parquet", "csv"]),
)
def test_closed_or_crashed_anywhere_it_continues(
    tmp_path_factory, seed, every, given, parts, suffix
):
    """However often the log is closed and opened, the state is that of a policy without a log."""
    path = tmp_path_factory.mktemp("log") / f"log.{suffix}"
    alone, its, mine, policy = make(), Calls(seed), Calls(seed), make()
    for number, end in parts:
        logged = eh.log_to(path, policy, snapshot_every=every)
        assert bits(logged.policy) == bits(alone)
        its.many(alone, number)
        mine.many(logged, number)
        if number % 2:
            assert bits(eh.replay(path)) == bits(alone)  # also while it is being written
        killed(logged) if end == "crash" else logged.close()
        policy = eh.replay(path)
        assert bits(policy) == bits(alone)
        policy = policy if given else None  # otherwise it comes from the log


def test_another_log_in_the_same_place_ignores_the_first(tmp_path):
    """Simulated logs of the same seed have the same key."""
    path, world = tmp_path / "log.csv", eh.SyntheticWorld(n_arms=4, n_features=2, n_sensitive=2)
    for kind in (eh.TopInterval, eh.UniformRandom):
        for file in tmp_path.glob("log.csv*"):
            if "snapshot" not in file.name:
                file.unlink()
        eh.simulate_log(kind, world, 20, seed=1, path=path)
        logged = eh.log_to(path)
        logged.select(contexts_of(1))
        killed(logged) if kind is eh.UniformRandom else logged.close()
    full = eh.replay(path)
    with eh.log_to(path) as again:
        assert type(again.policy) is eh.UniformRandom and bits(again.policy) == bits(full)
