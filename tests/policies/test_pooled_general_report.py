"""What the general form reports: coverage, borrowing, and words that are true of any table."""

import numpy as np
import pytest

import evenhand as eh
from evenhand.bias._rests_on import ASSUMPTION
from evenhand.simulation._compiled_rounds import run
from evenhand.simulation._plain_rounds import each_round

ATTRIBUTES = {"sex": ["F", "M"], "age": ["old", "young"]}


def learned(values, per_arm=20, noise=0.1, reference=None, counts=None, **settings):
    """A policy with arms of 2 x 2 intersections that earn these values, in order."""
    arms = len(values)
    table = {"sex": (["F", "F", "M", "M"] * arms)[:arms], "age": (["old", "young"] * arms)[:arms]}
    policy = eh.PooledGroupFair(
        eh.Groups.of_attributes(table), 1, reference=reference, seed=1, **settings
    )
    generator = np.random.default_rng(3)
    rows = np.repeat(np.arange(arms), per_arm if counts is None else counts)
    rewards = np.asarray(values)[rows] + noise * generator.standard_normal(len(rows))
    policy.absorb(rows, np.ones((len(rows), 1)), rewards)
    return policy


def level(frame, name):
    [row] = frame[frame.group == name].to_dict("records")
    return row


def test_levels_and_intersections_of_a_table_that_adds_up():
    values = np.tile([1.0, 3.0, 6.0, 8.0], 4) + np.repeat([-0.2, -0.1, 0.1, 0.2], 4)
    report = learned(values, reference="M & young").bias()
    frame = report.to_frame()
    assert level(frame, "sex: F")["estimate"] == pytest.approx(-5.0, abs=0.15)
    assert level(frame, "age: old")["estimate"] == pytest.approx(-2.0, abs=0.15)
    assert level(frame, "F & old")["estimate"] == pytest.approx(-7.0, abs=0.2)
    assert level(frame, "M & young")["why"] == "the reference"
    words = report.to_words().splitlines()
    assert "the feedback for sex F falls by 4.97 relative to that for sex M" in words[0]
    assert "No intersection can be distinguished from the sum of its levels." in words
    assert words[-1] == ASSUMPTION


def test_an_intersection_that_adds_much_is_named():
    """F & old is 6 below what the others add up to; in a 2 x 2 table that is 1.5 for every cell."""
    values = np.tile([-5.0, 3.0, 6.0, 8.0], 5) + np.repeat([-0.2, -0.1, 0.0, 0.1, 0.2], 4)
    report = learned(values, reference="M & young").bias()
    frame = report.to_frame()
    assert level(frame, "F & old")["estimate"] == pytest.approx(-13.0, abs=0.3)
    assert level(frame, "sex: F")["estimate"] == pytest.approx(-8.0, abs=0.3)
    assert level(frame, "sex: F")["low"] > -8.6 and level(frame, "sex: F")["high"] < -7.4
    cells = frame[frame.kind == "intersection"]
    assert cells.beyond.tolist() == pytest.approx([-1.5, 1.5, 1.5, -1.5], abs=0.1)
    assert (cells.own > 0.9).all()
    words = report.to_words()
    assert "for F & old falls by 1.51 relative to the sum of its levels" in words
    assert "No intersection" not in words and "borrow" not in words


def test_intersections_with_little_of_their_own_borrow():
    """One with a single arm and a single reward, beside others with many."""
    sexes, ages = [*(["F", "F", "M", "M", "X"] * 5), "X"], [*(["o", "y", "o", "y", "y"] * 5), "o"]
    values = np.array([*([-5.0, 3.0, 6.0, 8.0, 4.0] * 5), 1.0])
    groups = eh.Groups.of_attributes({"sex": sexes, "age": ages})
    policy = eh.PooledGroupFair(groups, 1, reference="M & y", seed=1)
    rows = np.repeat(np.arange(26), [20] * 25 + [1])
    noise = 20.0 * np.random.default_rng(1).standard_normal(len(rows))
    policy.absorb(rows, np.ones((len(rows), 1)), values[rows] + noise)
    own = dict(zip(policy._design.names, policy.beliefs().own_share(), strict=True))
    assert own["X & o"] == pytest.approx(min(own.values()))
    borrows = [name for name, share in own.items() if share < 0.5]
    words = policy.bias().to_words()
    assert borrows == ["X & y", "X & o"]
    assert "X & y, X & o borrow from their levels: there is too little" in words


def test_an_intersection_that_shares_no_level_cannot_differ_from_its_levels():
    values = [1.0, 3.0, 6.0, 8.0, 2.0, 2.1]
    groups = eh.Groups.of_attributes({"sex": list("FFMMXX"), "age": list("oyoyzz")})
    policy = eh.PooledGroupFair(groups, 1, reference="M & y", seed=1)
    policy.absorb(np.tile(np.arange(6), 9), np.ones((54, 1)), values * 9)
    own = policy.beliefs().own_share()
    assert np.isnan(own[-1]) and np.isfinite(own[:4]).all()
    assert "X & z" not in policy.bias().to_words()


@pytest.mark.parametrize("arms", ["recurring", "once"])
def test_nothing_is_claimed_before_anything_is_known(arms):
    groups = eh.Groups.of_attributes({"sex": ["F", "M"], "age": ["o", "y"]})
    policy = eh.PooledGroupFair(groups, 2, arms=arms, seed=1)
    assert policy.bias().to_words().splitlines() == ["Nothing has been learned yet.", ASSUMPTION]
    policy.absorb([0], [[1.0, 0.0]], [3.0])
    report = policy.bias()
    words, frame = report.to_words(), report.to_frame()
    assert "relative to" not in words and "not enough feedback yet" in words
    assert np.isinf(frame[frame.why == "not enough feedback yet"].high).all()
    assert len(report.at([[1.0, 2.0], [0.0, 1.0]])) == 2 * 6


def test_who_did_not_say_is_a_level_and_one_attribute_has_no_intersections():
    groups = eh.Groups.per_round(3, {"sex": ["F", "M"]})
    policy = eh.PooledGroupFair(groups, 1, reference="M", seed=1)
    given = ["F", "M", None] * 40
    rewards = np.tile([1.0, 5.0, 2.0], 40) + np.random.default_rng(1).normal(0, 0.3, 120)
    policy.absorb(np.repeat([0, 1, 2], 40), np.ones((120, 1)), rewards, groups=given)
    report = policy.bias()
    frame = report.to_frame()
    assert list(frame.group) == ["sex: F", "sex: M", "sex: not stated"]
    assert level(frame, "sex: not stated")["estimate"] == pytest.approx(-3.0, abs=0.3)
    assert "intersection" not in report.to_words()
    explained = policy.explain(
        policy.select(np.ones((3, 1)), groups=["F", None, {"F": 0.5, "M": 0.5}])
    )
    assert explained.group.tolist() == ["F", "not stated", "F 50 %, M 50 %"]


def test_no_bias_is_seldom_claimed_where_there_is_none():
    """At a level of 90 % for all sentences at once: 40 tables, at most 11 with a claim (1 %)."""
    claims = 0
    for seed in range(40):
        generator = np.random.default_rng(seed)
        policy = learned(generator.normal(5.0, 1.0, 12), reference="M & young")
        words = policy.bias().to_words()
        claims += "relative to" in words
    assert claims <= 11


@pytest.mark.slow
def test_intervals_cover():
    """60 worlds, 500 rounds of the policy's own choices; at least 80 % at a nominal 90 %."""
    world = eh.CrossedWorld(ATTRIBUTES, [3, 2, 2, 3])
    held = []
    for seed in range(60):
        stream = np.random.SeedSequence((5, seed))
        truth = world.begin(np.random.default_rng(stream))
        policy = eh.PooledGroupFair(world.groups, 2, reference="M & young", seed=seed)
        run(policy, world, 500, stream)
        frame = policy.bias().to_frame()
        for name, arm in (("sex: F", 3), ("age: old", 5), ("F & old", 0)):
            mine = frame[frame.group == name]
            held += ((mine.low <= truth.bias[arm]) & (truth.bias[arm] <= mine.high)).tolist()
        estimate, width = policy.corrected_intervals(np.ones((10, 2)))
        held += (np.abs(estimate - truth.coefficients.sum(axis=1)) <= width).tolist()
    assert np.mean(held) > 0.8


@pytest.mark.slow
def test_probabilities_recover_the_bias_and_the_likelier_level_does_not():
    world = eh.PeopleWorld(6, {"sex": {"F": 0.5, "M": 0.5}}, concentration=1.0)
    held, other_held, ratio = [], [], []
    for seed in range(15):
        stream = np.random.SeedSequence((7, seed))
        truth = world.begin(np.random.default_rng(stream)).effects[0]
        policy = eh.PooledGroupFair(world.groups, 2, reference="M", seed=seed)
        other = policy.clone()
        made = [
            (now.decision.arm, now.decision.row, now.reward)
            for now in each_round(policy, world, 500, stream)
        ]
        arms, rows, rewards = (np.array(column) for column in zip(*made, strict=True))
        likely = np.column_stack([rows[:, :2], rows[:, 2] > 0.5, rows[:, 2] <= 0.5, rows[:, 4]])
        other.absorb(arms, likely, rewards)
        for learner, into in ((policy, held), (other, other_held)):
            frame = learner.bias().to_frame()
            mine = frame[frame.group == "sex: F"]
            into += ((mine.low <= truth) & (truth <= mine.high)).tolist()
        ratio += (mine.estimate / truth).tolist()
    assert np.mean(held) >= 0.85 and np.mean(other_held) <= 0.4 and np.mean(ratio) < 0.8


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["F", "F", "M", "M"], None),
        (["F", "F", "M"], "group M has a single arm: how much of a gap is the arm's own is known"),
        (["F", "F", "M", "X"], "group M, group X have a single arm each"),
        (["F", "M"], "Every group has a single arm: its own worth cannot be told apart from bias"),
    ],
)
@pytest.mark.parametrize("attributes", [False, True])
def test_groups_of_a_single_arm_are_named(labels, said, attributes):
    groups = labels
    if attributes:
        groups = eh.Groups.of_attributes({"sex": labels, "age": ["old"] * len(labels)})
    policy = eh.PooledGroupFair(groups, 1, seed=1)
    arms = np.repeat(np.arange(len(labels)), 10)
    policy.absorb(arms, np.ones((len(arms), 1)), np.random.default_rng(1).random(len(arms)))
    words = policy.bias().to_words()
    if said is None:
        assert "single arm" not in words
    elif attributes:
        said = said.replace("Every group", "Every level of sex").replace("group ", "sex ")
        assert words.count("single arm") == 1 and said in words
    else:
        assert said in words
