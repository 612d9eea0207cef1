"""The ledger and the library: one protocol, verify, copy, export, erase, backup, upgrades."""

from __future__ import annotations

import json
import sqlite3

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from commands import evenhand
from evenhand.errors import DamagedError, InputError
from evenhand.events.ledger import Ledger
from evenhand.recording._replay import checksum
from evenhand.service import SqlLedger
from evenhand.service._engine import Engine
from evenhand.service._ledger import asks, sqlite_and_postgres
from evenhand.service._ledger import entries as kinds
from evenhand.service._ledger.copies import copy
from evenhand.service._ledger.erasure import EraseAsk
from evenhand.service._ledger.fold import restored
from evenhand.service._ledger.sqlite_and_postgres import Database
from evenhand.service._ledger.verification import read_head, verify, write_head
from evenhand.service.config import load
from serving import ARMS, check_chain, check_state, rows_of, write_config

pytestmark = pytest.mark.slow  # a server, or commands, in processes of their own


def play(config, number=40) -> Engine:
    """A ledger with decisions, rewards, overrides and true rewards."""
    engine = Engine(load(config))
    engine.open()
    rng = np.random.default_rng(3)
    for k in range(number):
        rows = np.column_stack([np.ones(4), rng.normal(size=(4, 2))])
        ask = engine.prepare(f"d{k}", list(ARMS), rows, person=f"p{k % 5}")
        batch = [ask]
        if k % 4 == 0:
            other = (ask.body.arm + 1) % 4
            batch.append(asks.Override(f"d{k}", other, lambda _: "F", "because", "Ada"))
        if k % 3:
            true = 1.0 if k % 2 else None
            batch.append(asks.Reward(f"d{k}", float(rng.normal()), true, engine.state.truth))
        engine.state.apply(engine.store.write(batch).told)
    return engine


def test_log_to_and_replay_work_on_sql_as_on_files(store, tmp_path):
    """The same calls on a file and on a database give the same events and the same bits."""
    assert isinstance(SqlLedger(store), Ledger)
    policies = []
    for place in (SqlLedger(store), tmp_path / "log.csv"):
        policy = eh.PooledGroupFair(["F", "F", "M", "M"], n_features=2, seed=7)
        rng = np.random.default_rng(1)
        with eh.log_to(place, policy, candidates=True) as logged:
            logged.absorb([0, 2], rng.normal(size=(2, 2)), [1.0, 2.0])
            for k in range(30):
                available = None if k % 3 else [0, 1, 2]
                decision = logged.select(rng.normal(size=(4, 2)), available)
                if k % 5 == 0:
                    logged.override(decision, (decision.arm + 1) % 3, rng.normal(size=2))
                if k % 2:
                    logged.update(decision, float(rng.normal()))
            logged.true_reward(1, 0.5)
            logged.true_reward(2, 0.75)
        policies.append(policy)
    from evenhand.events.file_ledger import FileLedger

    mine = list(SqlLedger(store, write=False).read())
    its = list(FileLedger(tmp_path / "log.csv", write=False).read())
    assert len(mine) == len(its)
    for event, other in zip(mine, its, strict=True):
        assert type(event) is type(other)
        fields = ("seq", "round", "arm", "propensity", "context", "reward")
        for name in fields:
            assert getattr(event, name, None) == getattr(other, name, None)
    again = eh.replay(SqlLedger(store, write=False))
    assert checksum(again) == checksum(policies[0]) == checksum(policies[1])
    with eh.log_to(SqlLedger(store)) as logged:  # continued, from its snapshot
        assert checksum(logged.policy) == checksum(again)
        assert len(logged.waiting) == 15
        logged.update(logged.waiting[0], 1.0)
    check_chain(store.removeprefix("sqlite:"))


def test_the_last_call_can_be_taken_back(store):
    policy = eh.TopInterval(["F", "M"], n_features=1, seed=1)
    ledger = SqlLedger(store)
    with eh.log_to(ledger, policy) as logged:
        first = logged.select([[1.0], [2.0]])
        before = ledger.head
        logged.select([[1.0], [2.0]])
        ledger.take_back(before)
        assert ledger.head == before and len(list(ledger.read())) == before
        with pytest.raises(InputError, match="the last event before the last call"):
            ledger.take_back(0)
        policy.round = 1
        assert first.round == 1
        ledger.release()
    check_chain(store.removeprefix("sqlite:"))


def test_exports_are_logs_and_can_be_audited_and_evaluated(tmp_path):
    config = write_config(tmp_path)
    engine = play(config, 200)
    result = evenhand("ledger", "export", config, tmp_path / "out.parquet")
    assert result.returncode == 0, result.stderr
    again = eh.replay(tmp_path / "out.parquet")
    assert checksum(again) == engine.state.checksum()
    live = eh.replay(SqlLedger(engine.config.store, write=False))
    assert checksum(live) == engine.state.checksum()
    engine.state.policy.save(tmp_path / "policy.json")
    for log in (tmp_path / "out.parquet", config):  # an export, and the live ledger
        valued = evenhand("value", log, "--uniform")
        assert valued.returncode == 0, valued.stderr
        audited = evenhand(
            "audit", log, "--missing", "drop", "--out", tmp_path / f"{log.stem}-audit.html"
        )
        assert audited.returncode == 0, audited.stderr
    refused = evenhand("ledger", "export", config, tmp_path / "out.parquet")
    assert refused.returncode == 2 and "already exists" in refused.stderr
    engine.close()


def test_a_changed_ledger_is_detected(tmp_path):
    config = write_config(tmp_path)
    engine = play(config)
    engine.close()
    url, path = engine.config.store, tmp_path / "loans.db"
    verified = verify(url)
    assert verified.entries == check_chain(path)
    write_head(tmp_path / "head", verified)
    verify(url, tmp_path / "head")
    for change in (
        "UPDATE entries SET body = X'00' WHERE seq = 5",
        "UPDATE entries SET at = at + 1 WHERE seq = 5",
        "UPDATE entries SET subject = 'other' WHERE kind = 'decision' AND seq > 5",
        "DELETE FROM entries WHERE seq = 9",
        "DELETE FROM entries WHERE seq = (SELECT MAX(seq) FROM entries)",
        "DELETE FROM decisions WHERE seq = (SELECT MIN(seq) FROM decisions)",
    ):
        raw = sqlite3.connect(path)
        raw.execute("BEGIN")
        raw.execute(change)
        raw.execute("COMMIT")
        with pytest.raises(DamagedError):
            verify(url)
        raw.close()
        path.unlink()
        play(config).close()
    # Everything rewritten, so that the chain is whole again: only a head kept elsewhere shows it.
    verify(url)
    with pytest.raises(DamagedError):
        verify(url, tmp_path / "head")
    assert read_head(tmp_path / "head")[0] == verified.entries


def test_a_ledger_moves_to_another_store_as_it_is(store, server_of_postgres, tmp_path):
    config = write_config(tmp_path, store="sqlite:first.db")
    engine = play(config)
    state = engine.state.checksum()
    engine.close()
    target = store if store.startswith("postgres") else f"sqlite:{tmp_path / 'second.db'}"
    copied = evenhand("ledger", "copy", config, target)
    assert copied.returncode == 0, copied.stderr
    database = Database(target)
    with database.reading() as connection:
        assert restored(connection).checksum() == state
    database.close()
    check_state(target)
    back = copy(target, f"sqlite:{tmp_path / 'back.db'}")
    assert back == verify(f"sqlite:{tmp_path / 'first.db'}")
    refused = evenhand("ledger", "copy", config, target)
    assert refused.returncode == 2 and "already" in refused.stderr


def test_a_backup_is_made_while_others_write_and_can_be_served(tmp_path):
    config = write_config(tmp_path)
    engine = play(config)
    result = evenhand("ledger", "backup", config, tmp_path / "copy.db")
    assert result.returncode == 0, result.stderr
    engine.close()
    again = Engine(load(write_config(tmp_path, store="sqlite:copy.db", name="again.toml")))
    again.open()
    assert again.state.checksum() == engine.state.checksum()
    again.close()


def test_an_erased_person_is_gone_and_the_chain_is_whole(tmp_path):
    config = write_config(tmp_path)
    engine = play(config)
    before = engine.state.checksum()
    kept = EraseAsk(engine.pseudonym("p1"), "Ada", "asked to", 10**15, force=False)
    engine.store.write([kept])
    assert kept.status == 409  # within the retention
    engine.close()
    result = evenhand("ledger", "erase", config, "p1", "--reason", "asked to", "--force")
    assert result.returncode == 0, result.stderr
    path = tmp_path / "loans.db"
    check_chain(path)
    verify(f"sqlite:{path}")
    erased = rows_of(path, "SELECT d.id FROM decisions d JOIN entries e ON e.seq = d.seq "
                         "WHERE e.body IS NULL AND e.salt IS NULL")  # fmt: skip
    assert [id for (id,) in erased] == [f"d{k}" for k in range(1, 40, 5)]
    again = Engine(load(config))
    again.open()
    assert again.state.checksum() == before  # what was learned is kept
    with pytest.raises(InputError, match="erased"):
        eh.replay(SqlLedger(again.config.store, write=False))
    again.close()
    secret = evenhand("ledger", "erase", config, "p1")
    assert secret.returncode == 2 and "nothing is known" in secret.stderr


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_what_an_erasure_leaves_is_exported_and_audited_but_not_replayed(tmp_path, suffix):
    config = write_config(tmp_path)
    play(config).close()
    whole = tmp_path / f"whole.{suffix}"
    assert evenhand("ledger", "export", config, whole).returncode == 0
    result = evenhand("ledger", "erase", config, "p1", "--reason", "asked to", "--force")
    assert result.returncode == 0, result.stderr
    refused = evenhand("ledger", "export", config, tmp_path / "left.txt")
    assert "allowed is a name that ends in .parquet or .csv" in refused.stderr
    left = tmp_path / f"left.{suffix}"
    result = evenhand("ledger", "export", config, left)
    assert result.returncode == 0 and "erased decisions are not in it" in result.stdout, (
        result.stderr
    )
    read = pd.read_parquet if suffix == "parquet" else pd.read_csv
    before, after = read(whole), read(left)
    erased = {f"d{k}" for k in range(1, 40, 5)}
    assert set(before["decision_id"]) - set(after["decision_id"]) == erased
    numbers = ["seq", "reward_seq", "true_seq", "learned"]  # of events: renumbered
    stays = before[~before["decision_id"].isin(erased)].reset_index(drop=True)
    pd.testing.assert_frame_equal(after.drop(columns=numbers), stays.drop(columns=numbers))
    for log in (left, config):  # the table, and the live ledger
        audited = evenhand("audit", log, "--missing", "drop", "--out", tmp_path / "audit.html")
        assert audited.returncode == 0, audited.stderr
    with pytest.raises(InputError, match="left"):
        eh.replay(left)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_values_of_what_an_erasure_leaves(tmp_path, suffix):
    """Those of the remaining decisions: the reward of an override is not a reward of the policy."""
    config = write_config(tmp_path)
    engine = play(config, 200)
    engine.state.policy.save(tmp_path / "policy.json")
    engine.close()
    whole, left = tmp_path / f"whole.{suffix}", tmp_path / f"left.{suffix}"
    assert evenhand("ledger", "export", config, whole).returncode == 0
    assert evenhand("ledger", "erase", config, "p1", "--reason", "asked", "--force").returncode == 0
    assert evenhand("ledger", "export", config, left).returncode == 0
    result = evenhand("value", left, "--uniform", "--out", tmp_path / "value.json")
    assert result.returncode == 0, result.stderr
    log = eh.offpolicy.Logged.from_log(whole)
    numbers = [k for k in range(200) if k % 5 != 1]
    stays = eh.offpolicy.Logged(
        log.arms[numbers], log.rewards[numbers], log.propensities[numbers], log.groups,
        overridden=log.overridden[numbers],
    )  # fmt: skip
    expected = json.loads(eh.offpolicy.evaluate(stays, "uniform").to_json())
    assert json.loads((tmp_path / "value.json").read_text())["values"] == expected["values"]
    assert "human" in result.stdout  # chose another arm in some of them
    refused = evenhand("value", left, "--policy", tmp_path / "policy.json")
    assert refused.returncode == 2 and "without the header of their log" in refused.stderr


def test_the_person_is_nowhere_in_the_file(tmp_path):
    config = write_config(tmp_path)
    engine = Engine(load(config))
    engine.open()
    rows = np.column_stack([np.ones(4), np.ones((4, 2))])
    engine.store.write([engine.prepare("d", list(ARMS), rows, person="ada.lovelace@example.org")])
    engine.close()
    for file in tmp_path.iterdir():
        assert b"lovelace" not in file.read_bytes()


def test_a_database_of_the_previous_schema_is_upgraded(store):
    sqlite_and_postgres.upgrade(store, "0001")
    place = store.removeprefix("sqlite:")
    with pytest.raises(Exception, match="reviews"):
        rows_of(place, "SELECT * FROM reviews")
    Database(store).upgrade()
    assert rows_of(place, "SELECT * FROM reviews") == []
    assert rows_of(place, "SELECT version_num FROM alembic_version") == [
        (sqlite_and_postgres.NEWEST,)
    ]
    Database(store).upgrade()  # nothing to do


def test_migrations_make_the_tables_of_the_schema(store):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext
    from sqlalchemy import create_engine

    from evenhand.service._ledger import schema

    Database(store).upgrade()
    engine = create_engine(sqlite_and_postgres.for_sqlalchemy(store))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, schema.metadata) == []
    engine.dispose()


def test_a_store_of_a_newer_schema_is_refused(tmp_path):
    url = f"sqlite:{tmp_path / 'new.db'}"
    Database(url).upgrade()
    raw = sqlite3.connect(tmp_path / "new.db")
    raw.execute("UPDATE alembic_version SET version_num = '9999'")
    raw.commit()
    raw.close()
    with pytest.raises(InputError, match="newer evenhand"):
        Database(url).upgrade()


def test_true_rewards_are_learned_in_the_order_of_the_ledger(tmp_path):
    """The state is that of a replay, and the report says that true rewards were used."""
    engine = play(write_config(tmp_path))
    policy = engine.state.policy
    assert engine.state.truth and policy.measured().number == 13
    assert checksum(eh.replay(SqlLedger(engine.config.store, write=False))) == checksum(policy)
    assert "There are 13 true rewards" in policy.bias().to_words()
    again = restored(engine.store.connection, snapshots=False)
    assert again.checksum() == engine.state.checksum()


@pytest.mark.parametrize("learn", ["on arrival", "after wait"])
def test_rewards_that_were_not_learned_are_exported(tmp_path, learn):
    """Late ones and, where all get the same time, those that are held back."""
    wait = "0 seconds" if learn == "on arrival" else "1 hour"
    config = write_config(tmp_path, wait=wait, learn=learn)
    engine = Engine(load(config))
    engine.open()
    rows = np.column_stack([np.ones(4), np.ones((4, 2))])
    for k in range(3):
        engine.state.apply(engine.store.write([engine.prepare(f"d{k}", list(ARMS), rows)]).told)
    arms = dict(rows_of(tmp_path / "loans.db", "SELECT id, arm FROM decisions"))
    other = (arms["d1"] + 1) % 4
    batch = [asks.Override("d1", other, lambda _: "F", "because", "Ada"), asks.Expire()]
    engine.state.apply(engine.store.write(batch).told)
    late = [asks.Reward(f"d{k}", float(k), None) for k in range(2)]
    engine.state.apply(engine.store.write(late).told)
    assert {ask.status for ask in late} == ({410} if learn == "on arrival" else {201})
    assert engine.state.learned == 0
    result = evenhand("ledger", "export", config, tmp_path / "out.csv")
    assert result.returncode == 0, result.stderr
    frame = eh.read_log(tmp_path / "out.csv").set_index("seq")
    assert frame["learned"].isna().all() and frame["reward_seq"].isna().all()
    paid = frame[frame["reward"].notna()]
    assert paid[["decision_id", "item_id", "reward"]].values.tolist() == [
        ["d0", arms["d0"], 0.0], ["d1", other, 1.0],
    ]  # fmt: skip
    assert paid["reward_at"].notna().all()
    assert checksum(eh.replay(tmp_path / "out.csv")) == engine.state.checksum()
    engine.close()


def test_a_rollback_outlives_an_erasure(tmp_path):
    """The version that decides can be restored, although entries before it are gone."""
    config = write_config(tmp_path)
    engine = play(config)
    version = engine.state.version - 5
    back = asks.Note(kinds.CONTROL, kinds.Control("rollback", "Ada", "why", version))
    erase = EraseAsk(engine.pseudonym("p1"), "Ada", "asked to", 0, force=True)
    for ask in (back, erase):
        engine.state.apply(engine.store.write([ask]).told)
    assert erase.status == 200
    engine.close()
    again = Engine(load(config))
    again.open()
    assert again.decider.version == version
    again.close()


def test_arms_can_be_added_after_an_erasure(tmp_path):
    config = write_config(tmp_path, snapshot_every=10)
    engine = play(config)
    erase = EraseAsk(engine.pseudonym("p1"), "Ada", "asked to", 0, force=True)
    engine.state.apply(engine.store.write([erase]).told)
    new = asks.Note(kinds.ARM, kinds.Arm("add", 4, "f3", "F", "Ada"))
    assert engine.state.apply(engine.store.write([new]).told)
    state = restored(engine.store.connection)
    assert state.policy.n_arms == 5 and state.policy.counts.tolist()[4] == 0
    assert state.policy.counts.sum() == engine.state.policy.counts.sum()
    engine._use_state(state)
    rows = np.column_stack([np.ones(5), np.random.default_rng(5).normal(size=(5, 2))])
    batch = [engine.prepare("with-f3", [*ARMS, "f3"], rows), asks.Reward("with-f3", 1.0, None)]
    engine.state.apply(engine.store.write(batch).told)
    before = engine.state.checksum()
    engine.close()
    again = Engine(load(config))  # from the snapshot of five arms, and from the one of four
    again.open()
    assert again.state.checksum() == before
    raw = sqlite3.connect(tmp_path / "loans.db")
    last = "SELECT MAX(seq) FROM entries WHERE kind = 'erase'"
    raw.execute(f"DELETE FROM snapshots WHERE seq > ({last})")
    raw.commit()
    raw.close()
    assert restored(again.store.connection).checksum() == before
    again.close()
