"""A real server in a process of its own, and a checker that only looks from outside."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import time
from pathlib import Path

import httpx

import waiting

CONFIG = """
title = "Loans"
store = "{store}"
wait = "{wait}"
learn = "{learn}"
use = "{use}"
retention = "1 second"
snapshot_every = {snapshot_every}
{more}
[features.income]
low = 0
high = 500
unit = "1000 EUR a year"
[features.age]
low = 18
high = 120
{groups}
[policy]
name = "{policy}"
seed = 7
[server]
port = {port}
{server}
"""
ARMS = ("f1", "f2", "m1", "m2")
BY_ARM = """
[arms]
f1 = "F"
f2 = "F"
m1 = "M"
m2 = "M"
[groups]
sensitive = "F"
"""
# The same arms, whose candidates bring their groups.
GIVEN = {
    "more": f"arms = {json.dumps(ARMS)}",
    "groups": """
[groups]
given = "with each candidate"
[groups.attributes]
sex = ["F", "M"]
""",
}
TWO_ATTRIBUTES = {**GIVEN, "groups": GIVEN["groups"] + 'age = ["old", "young"]\n'}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def write_config(folder: Path, **settings) -> Path:
    usual = {
        "store": "sqlite:loans.db", "wait": "30 days", "learn": "on arrival", "use": "assumed",
        "snapshot_every": 20_000, "more": "", "groups": BY_ARM, "server": "", "port": free_port(),
        "policy": "PooledGroupFair", "name": "loans.toml",
    }  # fmt: skip
    values = {**usual, **settings}
    path = folder / values["name"]
    path.write_text(CONFIG.format(**values), encoding="utf-8")
    return path


def make_key(config: Path, roles="admin", name="boss") -> str:
    """As `evenhand serve --key` makes it, without a process for it."""
    from evenhand.service._operator_commands import make_keys

    (line,) = make_keys(config, [f"{name}={roles}"])
    return line.split()[-1]


class Server:
    """`evenhand serve` in a process of its own."""

    def __init__(self, config: Path, key: str = "", env=None) -> None:
        self.config, self.key, self.env = config, key, {**os.environ, **(env or {})}
        text = config.read_text(encoding="utf-8")
        self.port = int(text.split("port = ")[1].split()[0])
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen | None = None

    def start(self) -> Server:
        self.log = (self.config.parent / f"{self.config.stem}-{time.time_ns()}.log").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "evenhand", "serve", str(self.config)],
            stdout=self.log, stderr=self.log, env=self.env,
        )  # fmt: skip
        self.wait_ready()
        return self

    def wait_ready(self) -> None:
        while True:
            assert self.process.poll() is None, self.printed()
            try:
                if waiting.get(f"{self.url}/readyz").status_code == 200:
                    return
            except httpx.TransportError:
                pass
            waiting.pause(0.02)

    def printed(self) -> str:
        self.log.seek(0)
        return self.log.read()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        assert self.process.wait() == -signal.SIGKILL  # it was running, and the fault bit
        self.log.close()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait()
        self.log.close()

    def call(self, method: str, path: str, body=None, key=None, **more) -> httpx.Response:
        key = self.key if key is None else key
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        content = None if body is None else json.dumps(body)
        return waiting.request(method, self.url + path, content=content, headers=headers, **more)

    def decide(self, id=None, **more) -> httpx.Response:
        body = {"candidates": candidates(), **more}
        return self.call("POST", "/v1/decisions", body | ({} if id is None else {"id": id}))

    def reward(self, id: str, observed=1.0, **more) -> httpx.Response:
        return self.call("PUT", f"/v1/decisions/{id}/reward", {"observed": observed, **more})

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *_) -> None:
        self.stop()


def with_groups(given: list[dict], seed: int = 0) -> list[dict]:
    """Candidates that bring their groups: known, by probability, and not stated."""
    levels = ["F", "M", {"F": 0.25, "M": 0.75}, None]
    return [
        {**candidate, "group": levels[(place + seed) % 4]} for place, candidate in enumerate(given)
    ]


def candidates(seed: float = 0.0) -> list[dict]:
    return [
        {"arm": arm, "features": {"income": 20.0 + 10 * k + seed % 7, "age": 30.0 + 5 * k}}
        for k, arm in enumerate(ARMS)
    ]


# The checker: written from the description of the ledger, with no code of the service ------------


def rows_of(store: str | Path, sql: str) -> list[tuple]:
    if str(store).startswith("postgres"):
        import psycopg

        with psycopg.connect(str(store), autocommit=True) as connection:
            return connection.execute(sql).fetchall()
    connection = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def check_chain(store: str | Path) -> int:
    """Numbers without gaps, digests and hashes as SERVICE's description says; the last number."""
    before, last = bytes(32), 0
    columns = "seq, kind, at, subject, salt, body, digest, hash"
    for seq, kind, at, subject, salt, body, digest, hash in rows_of(
        store, f"SELECT {columns} FROM entries ORDER BY seq"
    ):
        assert seq == last + 1
        if body is not None:
            assert hashlib.sha256(bytes(salt) + bytes(body)).digest() == bytes(digest)
        text = kind if subject is None else f"{kind}\n{subject}"
        parts = before + struct.pack(">qq", seq, at) + bytes(digest) + text.encode()
        before, last = hashlib.sha256(parts).digest(), seq
        assert before == bytes(hash)
    ((head, kept),) = rows_of(store, "SELECT seq, hash FROM head")
    assert (head, bytes(kept)) == (last, before)
    return last


def check_acknowledged(store: str | Path, decided: set[str], rewarded: dict[str, float]) -> None:
    """Everything acknowledged is there, once. What was not answered may be there, once too."""
    ids = [row[0] for row in rows_of(store, "SELECT subject FROM entries WHERE kind = 'decision'")]
    assert len(ids) == len(set(ids))
    assert decided <= set(ids)
    pairs = rows_of(
        store, "SELECT d.id, r.reward FROM rewards r JOIN decisions d ON d.seq = r.decision"
    )
    kept = dict(pairs)
    assert len(kept) == len(pairs)
    assert rewarded.items() <= kept.items()
    told = [row[0] for row in rows_of(store, "SELECT subject FROM entries WHERE kind = 'reward'")]
    assert len(told) == len(set(told))
    rounds = [row[0] for row in rows_of(store, "SELECT round FROM decisions ORDER BY round")]
    assert rounds == list(range(1, len(rounds) + 1))


def check_state(url: str) -> None:
    """The state equals a replay by the library, and decisions can be made again."""
    import evenhand as eh
    from evenhand.recording._replay import checksum
    from evenhand.service import SqlLedger, _policy_calls, _queries
    from evenhand.service._ledger.fold import restored
    from evenhand.service._ledger.sqlite_and_postgres import Database

    ledger = SqlLedger(url, write=False)
    whole = eh.replay(ledger)
    with ledger.database.reading() as connection:
        from_snapshot = restored(connection)
        from_start = restored(connection, snapshots=False)
        assert checksum(whole) == from_start.checksum() == from_snapshot.checksum()
        assert whole.round == from_start.round == from_snapshot.round
        ids = connection.rows("SELECT id FROM decisions ORDER BY seq")
        step = max(len(ids) // 25, 1)
        for (id,) in ids[::step]:
            body, seed = _queries.body_and_seed(connection, id)
            again = _policy_calls.again(restored(connection, body.version), body, seed)
            assert again.decision.arm == body.arm
            assert again.decision.propensity == body.propensity
            assert (again.scores, again.contexts) == (body.scores, body.contexts)
    ledger.release()
    Database(url).close()
