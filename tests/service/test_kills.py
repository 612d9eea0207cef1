"""Servers that are killed again and again. A separate checker inspects what is left.

`kill -9` does not test a power failure: that the disk has what fsync promised is SQLite's and
PostgreSQL's own promise.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import pytest

import waiting
from forking import Forked, Nursery
from serving import (
    GIVEN,
    candidates,
    check_acknowledged,
    check_chain,
    check_state,
    free_port,
    make_key,
    rows_of,
    with_groups,
    write_config,
)

KILLS = int(os.environ.get("EVENHAND_KILLS", "100"))


class Callers:
    """Threads that decide and reward, and remember what was acknowledged."""

    def __init__(self, servers, number=4, made=candidates) -> None:
        self.servers, self.stop, self.made = servers, False, made
        self.decided: set[str] = set()
        self.rewarded: dict[str, float] = {}
        self.unanswered = 0
        self.wrong: list[str] = []
        self.threads = [threading.Thread(target=self.work, args=(n,)) for n in range(number)]
        for thread in self.threads:
            thread.start()

    def work(self, number: int) -> None:
        chance, count = random.Random(number), 0
        lines = {server: HTTPConnection("127.0.0.1", server.port) for server in self.servers}
        while not self.stop:
            server = chance.choice(self.servers)
            id, value = f"t{number}-{count}", chance.random()
            body = {"id": id, "candidates": self.made(count)}
            count += 1
            # The same id until it is answered, as a client with retries does.
            if self.answered(lines[server], server, "POST", "/v1/decisions", body):
                self.decided.add(id)
                path = f"/v1/decisions/{id}/reward"
                if self.answered(lines[server], server, "PUT", path, {"observed": value}):
                    self.rewarded[id] = value
        for line in lines.values():
            line.close()

    def answered(self, line: HTTPConnection, server: Forked, method, path, body) -> bool:
        while not self.stop:
            try:
                line.request(method, path, json.dumps(body), headers_of(server))
                answer = line.getresponse()
                text = answer.read().decode()
            except (OSError, HTTPException):
                line.close()
                self.unanswered += 1
                server.up.wait()
                continue
            if answer.status in (200, 201):
                return True
            if answer.status != 503:
                self.wrong.append(f"{answer.status} {text}")
                return False
            waiting.pause(0.005)
        return False

    def end(self) -> None:
        self.stop = True
        for server in self.servers:
            server.up.set()  # none waits any longer
        for thread in self.threads:
            thread.join()
        assert not self.wrong, self.wrong[:3]


def headers_of(server: Forked) -> dict[str, str]:
    return {"Authorization": f"Bearer {server.key}", "Content-Type": "application/json"}


def new_work(callers: Callers, more: int = 3) -> None:
    """Wait until something new was acknowledged, so that there is work before every kill."""
    least = len(callers.rewarded) + more
    while len(callers.rewarded) < least:
        assert not callers.wrong, callers.wrong[:3]
        waiting.pause(0.005)


def work_under_kills(nursery: Nursery, config: Path, store: str, times: int, **how) -> Callers:
    """Callers at work while their server is killed this many times; nothing may be lost."""
    server = Forked(nursery, config, make_key(config)).start()
    callers = Callers([server], **how)
    chance = random.Random(1)
    try:
        for _ in range(times):
            new_work(callers)
            waiting.pause(chance.random() * 0.01)
            server.kill()
            server.start()
        new_work(callers)
    finally:
        callers.end()
        server.stop()
    place = store.removeprefix("sqlite:")
    check_chain(place)
    check_acknowledged(place, callers.decided, callers.rewarded)
    check_state(store)
    return callers


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_by_kills(store, nursery, tmp_path):
    config = write_config(tmp_path, store=store, snapshot_every=150)
    callers = work_under_kills(nursery, config, store, KILLS)
    assert callers.unanswered > 0  # some requests were under way when it was killed


@pytest.mark.slow
def test_groups_of_candidates_survive_kills(nursery, tmp_path):
    config, place = write_config(tmp_path, snapshot_every=100, **GIVEN), tmp_path / "loans.db"
    made = lambda k: with_groups(candidates(k), k)  # noqa: E731
    work_under_kills(nursery, config, f"sqlite:{place}", min(KILLS, 20), made=made)
    ((decided, expected),) = rows_of(place, "SELECT SUM(decided), SUM(expected) FROM tallies")
    ((number,),) = rows_of(place, "SELECT COUNT(*) FROM decisions")
    assert decided == pytest.approx(number) and expected == pytest.approx(number)


@pytest.mark.slow
def test_one_of_two_replicas_dies_again_and_again(server_of_postgres, nursery, tmp_path):
    url = server_of_postgres.database(f"replicas{time.time_ns()}")
    configs = [
        write_config(tmp_path, store=url, name=f"{name}.toml", port=free_port(), snapshot_every=300)
        for name in ("one", "two")
    ]
    key = make_key(configs[0])
    first, second = (Forked(nursery, config, key).start() for config in configs)
    callers = Callers([first, second])
    try:
        for _ in range(KILLS):
            new_work(callers)
            second.kill()
            waiting.pause(0.02)  # the other one continues alone
            second.start()
        new_work(callers)
        newest = [
            server.call("GET", "/v1/model/versions").json()["newest"] for server in (first, second)
        ]
    finally:
        callers.end()
        first.stop()
        second.stop()
    assert min(newest) > 1
    check_chain(url)
    check_acknowledged(url, callers.decided, callers.rewarded)
    check_state(url)
