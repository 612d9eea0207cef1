"""Every policy of evenhand behind the service: reports, pictures, reasons, decisions again."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.service import _page_parts
from evenhand.service._engine import Engine
from evenhand.service._ledger import asks
from evenhand.service._ledger.fold import restored
from evenhand.service._reasons import reasons
from evenhand.service.config import load
from serving import ARMS, check_state, write_config

POLICIES = ("TopInterval", "GroupFairTopInterval", "UniformRandom", "NaiveFair",
            "IntervalChaining", "MultiGroupFairTopInterval", "PooledGroupFair")  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_can_be_served_explained_and_compared(tmp_path, policy):
    engine = Engine(load(write_config(tmp_path, policy=policy)))
    engine.open()
    rng = np.random.default_rng(3)
    connection = engine.store.connection
    assert _page_parts.bias_of(restored(connection))["words"]  # before anything was learned
    for k in range(30):
        rows = np.column_stack([np.ones(4), rng.normal(size=(4, 2))])
        engine.state.apply(engine.store.write([engine.prepare(f"d{k}", list(ARMS), rows)]).told)
        reward = asks.Reward(f"d{k}", float(rng.normal()), None)
        engine.state.apply(engine.store.write([reward]).told)
    now = restored(connection)
    assert _page_parts.bias_of(now)["words"]
    assert _page_parts.bias_svg(now).startswith("<svg")
    first, last = (_page_parts.comparison(restored(connection, v), now) for v in (1, now.version))
    assert len(first.rows) == len(last.rows) > 0
    assert all(row[2] == row[3] for row in last.rows)  # a version compared with itself
    for k in range(30):
        why = reasons(connection, f"d{k}", now.arms, engine.encoder)
        assert why.same and len(why.candidates) == 4
        chosen, *others = [candidate.corrected_estimate for candidate in why.candidates]
        if why.decided_by == "estimate":
            assert chosen >= max(others) - 1e-9
        if why.decided_by == "width":
            assert chosen < max(others) and "because less is known about it" in why.words
    engine.close()
    check_state(f"sqlite:{tmp_path / 'loans.db'}")
