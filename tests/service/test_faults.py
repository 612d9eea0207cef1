"""The store fails: a full disk, an fsync that fails, a database that stops, a clock that steps.

Each test proves that its fault took effect.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

import postgres
import waiting
from evenhand.service._engine import Engine
from evenhand.service._ledger import asks, transaction
from evenhand.service._ledger.sqlite_and_postgres import Connection, InDoubt, Unavailable
from evenhand.service.config import load
from forking import Forked
from serving import (
    ARMS,
    Server,
    check_acknowledged,
    check_chain,
    check_state,
    free_port,
    make_key,
    rows_of,
    write_config,
)


def engine_in(folder: Path, **settings) -> Engine:
    engine = Engine(load(write_config(folder, policy="TopInterval", **settings)))
    engine.open()
    return engine


def decide(engine: Engine, id: str) -> asks.Decide:
    ask = engine.prepare(id, list(ARMS), np.ones((4, 3)))
    engine.state.apply(engine.store.write([ask]).told)
    return ask


# SQLite -----------------------------------------------------------------------------------------


def test_a_full_disk_is_an_error_and_nothing_is_half_written(tmp_path):
    engine = engine_in(tmp_path)
    decide(engine, "before")
    pages = engine.store.connection.row("PRAGMA page_count")[0]
    engine.store.connection.rows(f"PRAGMA max_page_count = {pages + 3}")
    acknowledged = {"before"}
    with pytest.raises(Unavailable, match="full"):
        for number in range(500):
            decide(engine, f"d{number}")
            acknowledged.add(f"d{number}")
    assert 0 < len(acknowledged) < 500
    engine.store.connection.rows("PRAGMA max_page_count = 1000000")
    assert decide(engine, "after").status == 201
    engine.close()
    check_chain(tmp_path / "loans.db")
    check_acknowledged(tmp_path / "loans.db", {*acknowledged, "after"}, {})
    check_state(f"sqlite:{tmp_path / 'loans.db'}")


FSYNC = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int fails(void) { const char *path = getenv("FAULT"); return path && !access(path, F_OK); }
static int tell(void) {
    FILE *file = fopen(getenv("BIT"), "a");
    if (file) { fputs("x", file); fclose(file); }
    errno = EIO;
    return -1;
}
int fsync(int fd) {
    static int (*real)(int);
    if (!real) real = dlsym(RTLD_NEXT, "fsync");
    return fails() ? tell() : real(fd);
}
int fdatasync(int fd) {
    static int (*real)(int);
    if (!real) real = dlsym(RTLD_NEXT, "fdatasync");
    return fails() ? tell() : real(fd);
}
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_an_fsync_that_fails_is_never_acknowledged(tmp_path):
    source, library = tmp_path / "fault.c", tmp_path / "fault.so"
    source.write_text(FSYNC)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    fault, bit = tmp_path / "fault", tmp_path / "bit"
    config = write_config(tmp_path)
    env = {"LD_PRELOAD": str(library), "FAULT": str(fault), "BIT": str(bit)}
    server = Server(config, make_key(config), env=env)
    with server:
        assert server.decide("before").status_code == 201
        fault.touch()
        assert server.decide("during").status_code == 503
        assert bit.read_text()  # the fault took effect
        fault.unlink()
        while server.decide("after").status_code != 201:
            waiting.pause(0.05)
        assert server.decide("during").status_code in (200, 201)  # the same id counts once
    check_chain(tmp_path / "loans.db")
    check_acknowledged(tmp_path / "loans.db", {"before", "during", "after"}, {})


def test_time_does_not_run_backwards_in_the_ledger(tmp_path, monkeypatch):
    engine = engine_in(tmp_path, wait="1 hour")
    decide(engine, "first")
    real = time.time_ns
    for step in (-7200, +86_400, -3600):
        monkeypatch.setattr(transaction, "time_ns", lambda step=step: real() + step * 10**9)
        decide(engine, f"step{step}")
    engine.store.write([expire := asks.Expire()])
    monkeypatch.undo()
    times = [
        row[0] for row in rows_of(tmp_path / "loans.db", "SELECT at FROM entries ORDER BY seq")
    ]
    assert times == sorted(times)
    assert max(times) - min(times) > 80_000 * 10**6  # the clock did step
    assert expire.answer >= 1  # decisions that waited during the step have expired
    late = asks.Reward("first", 1.0, None)
    engine.store.write([late])
    assert late.status == 410
    engine.close()
    check_chain(tmp_path / "loans.db")


def test_late_duplicated_and_reordered_rewards(tmp_path):
    engine = engine_in(tmp_path)
    ids = [f"d{number}" for number in range(12)]
    for id in ids:
        decide(engine, id)
    values = {id: float(number) for number, id in enumerate(ids)}
    for id in [*ids[::-1], *ids, *ids[::2]]:
        ask = asks.Reward(id, values[id], None)
        engine.state.apply(engine.store.write([ask]).told)
        assert ask.status in (200, 201)
    assert engine.state.learned == len(ids)
    engine.close()
    check_acknowledged(tmp_path / "loans.db", set(ids), values)
    check_state(f"sqlite:{tmp_path / 'loans.db'}")


def test_rewards_are_learned_after_the_wait_if_asked(tmp_path, monkeypatch):
    engine = engine_in(tmp_path, learn="after wait", wait="1 hour")
    for id in ("early", "silent"):
        decide(engine, id)
    ask = asks.Reward("early", 2.0, None)
    engine.state.apply(engine.store.write([ask]).told)
    assert (ask.status, engine.state.learned) == (201, 0)
    real = time.time_ns
    monkeypatch.setattr(transaction, "time_ns", lambda: real() + 2 * 3600 * 10**9)
    engine.state.apply(engine.store.write([asks.Expire()]).told)
    monkeypatch.undo()
    assert engine.state.learned == 1
    late = asks.Reward("silent", 1.0, None)
    engine.state.apply(engine.store.write([late]).told)
    assert (late.status, engine.state.learned) == (410, 1)
    engine.close()
    check_state(f"sqlite:{tmp_path / 'loans.db'}")


def test_a_reward_that_never_comes_is_not_zero_unless_asked_for(tmp_path, monkeypatch):
    real = time.time_ns
    for more, learned in (("", 0), ("default_reward = -1.0", 1)):
        folder = tmp_path / str(learned)
        folder.mkdir()
        engine = engine_in(folder, wait="1 hour", more=more)
        decide(engine, "silent")
        with monkeypatch.context() as patch:
            patch.setattr(transaction, "time_ns", lambda: real() + 2 * 3600 * 10**9)
            engine.state.apply(engine.store.write([asks.Expire()]).told)
        assert engine.state.learned == learned
        assert rows_of(folder / "loans.db", "SELECT SUM(missing) FROM tallies") == [(1,)]
        engine.close()


def test_a_decision_that_was_not_used_never_waits(tmp_path):
    engine = engine_in(tmp_path, use="confirmed")
    decide(engine, "idle")
    assert rows_of(tmp_path / "loans.db", "SELECT COUNT(*) FROM waiting") == [(0,)]
    refused, use, reward = asks.Reward("idle", 1.0, None), asks.Use("idle"), None
    engine.store.write([refused])
    assert refused.status == 409
    engine.store.write([use])
    assert rows_of(tmp_path / "loans.db", "SELECT COUNT(*) FROM waiting") == [(1,)]
    engine.store.write([reward := asks.Reward("idle", 1.0, None)])
    assert reward.status == 201
    engine.close()


# PostgreSQL -------------------------------------------------------------------------------------

needs_postgres = pytest.mark.skipif(postgres.MISSING, reason=postgres.REASON)


@pytest.mark.slow
def test_a_commit_in_doubt_is_looked_up(server_of_postgres, tmp_path, monkeypatch):
    """The connection is lost during COMMIT, once after it took place and once before."""
    url = server_of_postgres.database(f"doubt{time.time_ns()}")
    engine = engine_in(tmp_path, store=url)
    real, happened = Connection.commit, []

    def lost(self):
        if len(happened) == 0:
            real(self)
        happened.append(1)
        self.raw.close()
        raise InDoubt("lost")

    monkeypatch.setattr(Connection, "commit", lost)
    assert decide(engine, "kept").status == 201
    with pytest.raises(Unavailable):
        decide(engine, "gone")
    monkeypatch.undo()
    assert len(happened) == 2
    assert decide(engine, "gone").status == 201
    engine.close()
    check_chain(url)
    check_acknowledged(url, {"kept", "gone"}, {})


@pytest.mark.slow
@needs_postgres
def test_the_database_stops_starts_and_is_cut_off(nursery, tmp_path):
    database = postgres.Postgres()
    database.start()
    url = database.database("loans")
    config = write_config(tmp_path, store=url)
    server = Forked(nursery, config, make_key(config))
    decided = set()
    try:
        with server:
            for number in range(3):
                assert server.decide(f"up{number}").status_code == 201
                decided.add(f"up{number}")
                database.stop("immediate" if number else "fast")
                assert server.decide(f"down{number}").status_code == 503  # the fault took effect
                while server.call("GET", "/readyz").status_code != 503:
                    waiting.pause(0.05)
                database.start()
                server.wait_ready()
            # A partition: the server exists but does not answer.
            leader = int((database.data / "postmaster.pid").read_text().split()[0])
            children = subprocess.run(
                ["ps", "-o", "pid=", "--ppid", str(leader)], capture_output=True, text=True
            ).stdout.split()
            pids = [leader, *map(int, children)]
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            try:
                body = {"id": "cut", "candidates": [{"arm": "f1", "features": [20, 30]}]}
                headers = {"Authorization": f"Bearer {server.key}"}
                url_ = f"{server.url}/v1/decisions"
                assert waiting.stays_silent(url_, json=body, headers=headers)
            finally:
                for pid in pids:
                    os.kill(pid, signal.SIGCONT)
            server.wait_ready()
            again = server.decide("cut", candidates=[{"arm": "f1", "features": [20, 30]}])
            assert again.status_code in (200, 201)
            decided.add("cut")
        check_chain(url)
        check_acknowledged(url, decided, {})
        check_state(url)
    finally:
        database.close()


@pytest.mark.slow
@needs_postgres
def test_a_second_replica_sees_a_reward(server_of_postgres, nursery, tmp_path):
    url = server_of_postgres.database(f"seen{time.time_ns()}")
    configs = [
        write_config(tmp_path, store=url, name=f"{name}.toml", port=free_port())
        for name in ("one", "two")
    ]
    key = make_key(configs[0])
    with Forked(nursery, configs[0], key) as first, Forked(nursery, configs[1], key) as second:
        decision = first.decide("here").json()
        assert second.reward("here", 3.0).status_code == 201
        assert first.reward("here", 3.0).status_code == 200
        assert first.reward("here", 4.0).status_code == 409
        assert second.decide("here").json() == decision
        version = second.call("GET", "/v1/model/versions").json()["newest"]
        while first.call("GET", "/v1/model/versions").json()["newest"] < version:
            waiting.pause(0.01)
        learned = [s.call("GET", "/v1/model/versions").json()["learned"] for s in (first, second)]
        assert learned == [1, 1]
        starts = rows_of(url, "SELECT COUNT(*) FROM entries WHERE kind = 'start'")
        assert starts == [(2,)]
    check_state(url)
