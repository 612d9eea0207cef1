"""Decisions that can no longer change: no override, no review; and missing rewards."""

from __future__ import annotations

import time

import numpy as np
import pytest

from evenhand.service import _queries
from evenhand.service._engine import Engine
from evenhand.service._ledger import asks, review_queue, transaction
from evenhand.service.config import load
from serving import ARMS, write_config

ROWS = np.column_stack([np.ones(4), np.arange(8.0).reshape(4, 2)])


@pytest.fixture
def clock(monkeypatch):
    """How many nanoseconds the clock is ahead of the real one."""
    later = [0]
    monkeypatch.setattr(transaction, "time_ns", lambda: time.time_ns() + later[0])
    return later


def start(folder, **settings) -> Engine:
    engine = Engine(load(write_config(folder, wait="1 hour", **settings)))
    engine.open()
    return engine


def settle(engine, *given):
    engine.state.apply(engine.store.write(list(given)).told)
    return [(ask.status, ask.answer) for ask in given]


def other_arm(engine, id):
    arm = _queries.body_and_seed(engine.store.connection, id)[0].arm
    return asks.Override(id, (arm + 1) % 4, lambda _: "F", "because", "Ada")


def queued(engine):
    rows = review_queue.queue(engine.store.connection, 0, 50, engine.rules.confirmed)
    return [row["id"] for row in rows]


def listed(engine, status):
    page = _queries.page(
        engine.store.connection, engine.state, None, 50, engine.rules.confirmed, status=status
    )
    return {line.id: line.missing for line in page.decisions}


@pytest.mark.slow
def test_settled_decisions_are_neither_overridden_nor_reviewed(tmp_path, store, clock):
    engine = start(tmp_path, store=store)
    for k in range(4):
        settle(engine, engine.prepare(f"d{k}", list(ARMS), ROWS), review_queue.AskReview(f"d{k}"))
    assert queued(engine) == ["d0", "d1", "d2", "d3"]
    (claimed,) = settle(engine, review_queue.ReviewClaim("d3", "Bo", 1e9))
    assert claimed[0] == 201
    settle(engine, asks.Reward("d1", 1.0, None), other_arm(engine, "d2"))
    assert queued(engine) == ["d0", "d3"]
    for id in ("d1", "d2"):
        for ask in (review_queue.ReviewClaim(id, "Ada", 60.0), review_queue.AskReview(id)):
            assert settle(engine, ask) == [(409, review_queue.SETTLED)]
    assert listed(engine, "missing") == {}
    clock[0] = 2 * 3600 * 10**9
    settle(engine, asks.Expire())
    refused = settle(engine, other_arm(engine, "d0"))
    assert refused == [
        (410, "the decision no longer waits for its reward; it cannot be changed now")
    ]
    assert queued(engine) == []
    assert settle(engine, review_queue.ReviewClaim("d0", "Ada", 60.0)) == [
        (409, review_queue.SETTLED)
    ]
    # A reviewer who claimed it before may still accept it, but can change nothing.
    judge = review_queue.Judge("d3", "Bo", "too late", 2, lambda _: "F")
    assert settle(engine, judge)[0][0] in (409, 410)
    assert settle(engine, review_queue.Judge("d3", "Bo", "", None, lambda _: "F"))[0][0] == 201
    assert listed(engine, "missing") == {"d0": True, "d2": True, "d3": True}
    assert listed(engine, None) == {"d0": True, "d1": False, "d2": True, "d3": True}
    assert listed(engine, "waiting") == {}
    settle(engine, asks.Reward("d0", 1.0, None))  # late, but recorded
    assert listed(engine, "missing") == {"d2": True, "d3": True}
    now = time.time_ns() // 1000
    stands = {
        id: review_queue.standing(engine.store.connection, id, "Ada", now, False)
        for id in ("d0", "d3")
    }
    assert stands == {"d0": ("settled", False), "d3": ("reviewed", False)}
    engine.close()


def test_where_use_is_confirmed_a_decision_waits_from_its_use(tmp_path, store, clock):
    engine = start(tmp_path, store=store, use="confirmed")
    for k in range(2):
        settle(engine, engine.prepare(f"d{k}", list(ARMS), ROWS), review_queue.AskReview(f"d{k}"))
    settle(engine, asks.Use("d1"))
    assert queued(engine) == ["d0", "d1"] and listed(engine, "missing") == {}
    clock[0] = 2 * 3600 * 10**9
    settle(engine, asks.Expire())
    assert queued(engine) == ["d0"] and listed(engine, "missing") == {"d1": True}
    assert settle(engine, other_arm(engine, "d1"))[0][0] == 410
    assert settle(engine, other_arm(engine, "d0"))[0][0] == 201  # it was never used
    engine.close()
