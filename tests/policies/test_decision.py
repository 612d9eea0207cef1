"""A decision goes elsewhere as JSON and comes back, bit for bit."""

import json

import numpy as np
import pytest

import evenhand as eh
from log_scripts import OURS, Calls, bits, contexts_of, make

FIELDS = ("arm", "propensity", "explored", "round")


def there_and_back(decision):
    return eh.Decision.from_dict(json.loads(json.dumps(decision.to_dict(), allow_nan=False)))


@pytest.mark.parametrize("name", OURS)
def test_a_decision_comes_back_bit_for_bit(name):
    policy, twin = Calls(1).many(make(name), 12), Calls(1).many(make(name), 12)
    for seed in range(8):
        first, two = (
            policy.select(contexts_of(seed)),
            there_and_back(twin.select(contexts_of(seed))),
        )
        for field in FIELDS:
            assert getattr(first, field) == getattr(two, field)
        assert first.context.tobytes() == two.context.tobytes()
        assert first.scores.table.tobytes() == two.scores.table.tobytes()
        policy.update(first, 0.5)
        twin.update(two, 0.5)
    assert bits(policy) == bits(twin)


def test_a_true_reward_may_come_after_the_journey():
    """It is learned with the observed reward, which the decision carries."""
    policy, twin = (Calls(1).many(make("PooledGroupFair"), 12) for _ in range(2))
    first, two = policy.select(contexts_of(1)), twin.select(contexts_of(1))
    policy.update(first, 0.5)
    twin.update(two, 0.5)
    policy.update(first, true_reward=2.0)
    twin.update(there_and_back(two), true_reward=2.0)
    assert bits(policy) == bits(twin)
    old = first.to_dict()
    del old["reward"]
    assert eh.Decision.from_dict(old).reward is None and there_and_back(first).reward == 0.5


def test_scores_that_json_has_no_word_for():
    table = np.array([[0.1, -0.0], [np.inf, 5e-324], [-np.inf, 1.0], [np.nan, 0.0], [np.inf, 1.0]])
    decision = eh.Decision(np.int64(1), np.float64(0.5), np.bool_(True), 3, np.ones(2), None)
    decision.scores = type(make().select(contexts_of(0)).scores)(table)
    told = decision.to_dict()
    assert told["scores"]["width"] == [None, 5e-324] and told["scores"]["upper"] == [None, 1.0]
    np.testing.assert_array_equal(there_and_back(decision).scores.table, table)


def test_a_log_takes_a_decision_that_was_elsewhere(tmp_path):
    with eh.log_to(tmp_path / "log.csv", make()) as logged:
        made = [there_and_back(logged.select(contexts_of(seed))) for seed in range(3)]
        logged.update(made[0], 1.0)
        logged.update(made[1:], [2.0, 3.0])
    assert bits(eh.replay(tmp_path / "log.csv")) == bits(logged.policy)


@pytest.mark.parametrize(
    "change",
    [
        lambda told: told.pop("arm"),
        lambda told: told.update(arm=1.5),
        lambda told: told.update(round="three"),
        lambda told: told.update(context=["a"]),
        lambda told: told["scores"].pop("width"),
        lambda told: told["scores"].update(width=[1.0]),
        lambda told: told.update(scores=None),
        lambda told: told.update(reward="much"),
        lambda told: told.update(reward=float("nan")),
        lambda told: told.update(reward="1.0"),
        lambda told: told.update(arm=-1),
        lambda told: told.update(arm=4),
        lambda told: told.update(arm=True),
        lambda told: told.update(round=-3),
        lambda told: told.update(explored="false"),
        lambda told: told.update(explored=0),
        *(
            lambda told, chance=chance: told.update(propensity=chance)
            for chance in (7.0, -0.1, float("nan"), "0.5", None, True)
        ),
        *(
            lambda told, context=context: told.update(context=context)
            for context in (5.0, [[1.0, 2.0], [3.0, 4.0]], ["1", "2"], [None, 1.0], [1e101, 0.0])
        ),
        lambda told: told["scores"].update(width=["inf", 1.0, 1.0, 1.0]),
        lambda told: told["scores"].update(width=[True, 1.0, 1.0, 1.0]),
    ],
)
def test_what_is_no_decision_is_told(change):
    told = make().select(contexts_of(0)).to_dict()
    change(told)
    with pytest.raises(
        eh.errors.DataError, match=r"allowed is the result of Decision\.to_dict"
    ) as error:
        eh.Decision.from_dict(told)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "groups",
    [
        [1],
        [[1.0, 0.0]],
        [[0.0, 0.0, 0.0]] * 2,
        [[5.0, 0.0, 0.0]] * 2,
        [[-1.0, 1.0, 1.0]] * 2,
        [[float("nan")] * 3] * 2,
        [["F", "F", "M"]] * 2,
        [[1.0, 0.0, 0.0]] * 3,
        [[1.0, 0.0, 0.0], [1.0, 0.0]],
        [],
        "FM",
    ],
)
def test_what_is_no_membership_is_told(groups):
    per_round = eh.Groups.per_round(2, {"sex": ["F", "M"]})
    policy = eh.TopInterval(per_round, n_features=1, seed=1)
    told = policy.select(np.ones((2, 1)), groups=["F", {"F": 0.25, "M": 0.75}]).to_dict()
    np.testing.assert_array_equal(eh.Decision.from_dict(told).groups, told["groups"])
    with pytest.raises(eh.errors.DataError, match=r"allowed is the result of Decision\.to_dict"):
        eh.Decision.from_dict({**told, "groups": groups})
