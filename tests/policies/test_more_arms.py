"""More arms for a policy that has learned: the same as if they had been there all along."""

from __future__ import annotations

import numpy as np
import pytest

import evenhand as eh
from evenhand.policies._learned import with_more_arms

PLAIN = (["F", "F", "M", "M"], ["F", "F", "M", "M", "F", "M"])
TABLE = {"sex": ["F", "F", "M", "M"], "age": ["old", "young"] * 2}
MORE = {"sex": [*TABLE["sex"], "F", "M"], "age": [*TABLE["age"], "old", "old"]}
POLICIES = ("TopInterval", "UniformRandom", "GroupFairTopInterval", "NaiveFair", "IntervalChaining",
            "MultiGroupFairTopInterval", "GroupFairIntervalChaining",
            "PooledGroupFair")  # fmt: skip


def cases():
    for name in POLICIES:
        settings = {"sensitive": "F"} if name != "MultiGroupFairTopInterval" else {}
        yield pytest.param(name, *(eh.Groups(labels, **settings) for labels in PLAIN), id=name)
    both = (eh.Groups.of_attributes(table) for table in (TABLE, MORE))
    yield pytest.param("PooledGroupFair", *both, id="attributes")
    per_round = (eh.Groups.per_round(n, {"sex": ["F", "M"]}) for n in (4, 6))
    yield pytest.param("PooledGroupFair", *per_round, id="groups by round")


@pytest.mark.parametrize(("name", "before", "after"), list(cases()))
def test_it_is_the_policy_that_had_them_all_along(name, before, after):
    kind = getattr(eh, name)
    few, many = (kind(groups, n_features=2, seed=7) for groups in (before, after))
    rng = np.random.default_rng(1)

    def learn(policies, number):
        for _ in range(number):
            arm, row, reward = int(rng.integers(4)), rng.normal(size=2), float(rng.normal())
            given = {"groups": [rng.choice(["F", "M"])]} if before.changes else {}
            for policy in policies:
                rounds = {"rounds": [policy.round + 1]} if policy.learns_by_round else {}
                policy.round += 1
                policy.absorb([arm], row[None], [reward], **rounds, **given)

    learn((few, many), 60)
    grown = with_more_arms(few, after)
    learn((grown, many), 20)  # and what comes afterwards
    rows = rng.normal(size=(6, 2))
    given = {"groups": ["F", "M"] * 3} if before.changes else {}
    mine, its = (policy.select(rows, **given).scores.table for policy in (grown, many))
    assert grown.round == many.round
    np.testing.assert_allclose(mine, its, rtol=1e-7, atol=1e-7)


def test_other_groups_are_refused():
    policy = eh.TopInterval(["F", "M"], n_features=1)
    with pytest.raises(ValueError, match="more arms of the same groups"):
        with_more_arms(policy, eh.Groups(["F", "M", "X"]))
