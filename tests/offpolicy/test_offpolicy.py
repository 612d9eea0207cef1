"""Off-policy evaluation: another library's numbers, closed forms, laws, and weak overlap.

Whether the intervals cover is in test_value_coverage.py.
"""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from bandit_logs import GOOD, LABELS, Bandit, draw
from evenhand.bias import Statistics, bias_report
from evenhand.offpolicy import Logged, evaluate, policy_probabilities
from evenhand.offpolicy._estimators import cross_fitted


def softmax(x):
    raised = np.exp(x - x.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


# Known numbers ------------------------------------------------------------------------------------


def test_the_open_bandit_pipeline_has_the_same_numbers():
    """Computed once with obp 0.4.1 on the same log: its IPW, SNIPW and DR."""
    rng = np.random.default_rng(20220509)
    n, k = 500, 4
    x = rng.normal(size=(n, 2))
    log = np.exp(x @ rng.normal(size=(2, k)))
    log /= log.sum(axis=1, keepdims=True)
    arms = np.array([rng.choice(k, p=p) for p in log])
    rewards = x @ np.array([1.0, -0.5]) + 0.3 * arms + rng.normal(size=n)
    target = np.exp(1.5 * x @ rng.normal(size=(2, k)))
    target /= target.sum(axis=1, keepdims=True)
    predictions = x @ rng.normal(size=(2, k))
    logged = Logged(arms, rewards, log[np.arange(n), arms], LABELS, x)
    values = evaluate(logged, target, predictions=predictions).overall["estimate"]["observed"]
    expected = {"ips": 0.48924805311274444, "snips": 0.47430458255194013, "dr": 0.8766040895238152}
    assert values[list(expected)].to_dict() == pytest.approx(expected, rel=1e-9)


def test_four_rows_by_hand():
    """Weights 1.6, 0.4, 1.6, 0.4: IPS (1.6 * 1 + 0.4 * 2 + 1.6 * 3 + 0.4 * 4) / 4 = 2.2."""
    log = Logged([1, 0, 1, 0], [1.0, 2.0, 3.0, 4.0], [0.5] * 4, ["F", "M"])
    target = np.tile([0.2, 0.8], (4, 1))
    report = evaluate(log, target, predictions=np.tile([3.0, 2.0], (4, 1)))
    value = report.overall["estimate"]["observed"]
    assert value["ips"] == pytest.approx(2.2)
    assert value["snips"] == pytest.approx(8.8 / 4.0)
    # 0.2 * 3 + 0.8 * 2, plus the mean of 1.6 * -1, 0.4 * -1, 1.6 * 1, 0.4 * 1
    assert value["dr"] == pytest.approx(2.2)
    assert value["logged"] == pytest.approx(2.5)
    group = report.by_group["estimate"]["observed"]
    assert group["ips", "contribution"].to_dict() == pytest.approx({"F": 0.6, "M": 1.6})
    assert group["ips", "within"].to_dict() == pytest.approx({"F": 3.0, "M": 2.0})
    assert group["snips", "within"].to_dict() == pytest.approx({"F": 3.0, "M": 2.0})
    assert report.overlap.set_index("group").loc["all", "effective_n"] == pytest.approx(
        16.0 / (2 * 1.6**2 + 2 * 0.4**2)
    )
    # influence of rows on the IPS value: w r - 2.2
    error = np.std([1.6 - 2.2, 0.8 - 2.2, 4.8 - 2.2, 1.6 - 2.2], ddof=1) / 2.0
    assert report.overall.loc[("observed", "ips"), "standard_error"] == pytest.approx(error)


# Overlap ------------------------------------------------------------------------------------------


def test_what_the_log_could_never_do():
    rng = np.random.default_rng(6)
    log = np.tile([0.5, 0.5, 0.0, 0.0], (1000, 1))
    arms = draw(rng, log)
    target = np.tile([0.4, 0.4, 0.2, 0.0], (1000, 1))
    for known in (log, None):  # from all propensities, or from arms that are never there
        logged = Logged(arms, rng.random(1000), np.full(1000, 0.5), LABELS, all_propensities=known)
        report = evaluate(logged, target)
        row = report.overlap.set_index("group").loc["all"]
        assert row["unsupported"] == pytest.approx(0.2) and row["could_not"] == 1.0
        assert not report.trusted
        assert (report.overall.loc["observed"].drop("logged")["evidence"] == "weak overlap").all()
        assert "20 % of the target's probability" in report.to_words()
        within = report.by_group.loc[("observed", "snips", "within", "M")]
        assert within["evidence"] == "not known" and np.isnan(within["estimate"])


def test_wrong_propensities_are_noticed():
    rng = np.random.default_rng(7)
    lean = Bandit(np.tile([0.7, 0.1, 0.1, 0.1], (2, 1)), GOOD.target)
    log, target = lean.draw(rng, 1000)
    wrong = Logged(log.arms, log.rewards, np.full(1000, 0.25), LABELS, log.contexts)
    report = evaluate(wrong, target)
    assert not report.trusted and "should be 1: the propensities are wrong" in report.to_words()


# Corrected reward ---------------------------------------------------------------------------------


def test_a_known_bias_is_taken_out():
    rng = np.random.default_rng(8)
    log, target = GOOD.draw(rng, 400)
    psi = np.array([-1.0, 2.0])
    marked = log.rewards + np.where(log.of == 0, log.contexts @ psi, 0.0)
    biased = Logged(log.arms, marked, log.propensities, LABELS, log.contexts)
    table = evaluate(biased, target, bias={"F": psi, "M": 0.0}).to_frame()
    plain = evaluate(log, target).to_frame()
    numbers = ["estimate", "standard_error", "low", "high"]
    corrected = table[table["reward"] == "corrected"][numbers].to_numpy()
    np.testing.assert_allclose(corrected, plain[plain["reward"] == "observed"][numbers], rtol=1e-9)


def test_a_bias_that_is_not_identified_is_no_number():
    rng = np.random.default_rng(10)
    log, target = GOOD.draw(rng, 1000)
    only = log.of == 1
    sums = Statistics.from_rows(log.contexts[only], log.rewards[only], ["M"] * only.sum())
    known = bias_report(
        Statistics(
            groups=("F", "M"),
            of=np.array([0, 1]),
            n=np.array([0.0, sums.n[0]]),
            gram=np.stack([0 * sums.gram[0], sums.gram[0]]),
            moment=np.stack([0 * sums.moment[0], sums.moment[0]]),
            square=np.array([0.0, sums.square[0]]),
        ),
        reference="M",
    )
    report = evaluate(log, target, bias=known)
    table = report.overall
    assert (table.loc["corrected", "evidence"] == "not known").all()
    assert (table.loc["observed", "evidence"] == "sufficient").all()
    words = report.to_words().split("\n")
    assert (
        "The corrected value is not known, neither for the target nor for the log, because the "
        "bias of group F is not identified (where it was learned: group F was never chosen)."
    ) in words
    assert "Not corrected: the bias of group F is not identified: group F was never chosen." in (
        report.warnings
    )
    # What is known of group M is said all the same, and the reason is said once for each group.
    assert sum("bias of group F" in s for s in words) == 2
    row = report.gain().loc[("corrected", "dr", "within", "M")]
    size = f"{abs(row['estimate']):.4g} {'less' if row['estimate'] < 0 else 'more'} ("
    said = next(s for s in words if s.startswith("Per decision"))
    assert f"to group M: {size}" in said
    assert said.startswith("Per decision that goes to group F: not known, because the bias of ")


# Forms of input, and laws -------------------------------------------------------------------------


def test_all_forms_of_a_target():
    rng = np.random.default_rng(11)
    log, _ = GOOD.draw(rng, 60)
    policy = eh.TopInterval(LABELS, n_features=2, exploration=0.2, seed=1)
    policy.absorb(log.arms, log.contexts, log.rewards)
    before = policy.round
    chances = policy_probabilities(policy, log)
    assert policy.round == before
    row = policy.propensities(np.tile(log.contexts[5], (4, 1)))
    np.testing.assert_array_equal(chances[5], row)
    deep = Logged(
        log.arms, log.rewards, log.propensities, LABELS, np.repeat(log.contexts[:, None], 4, axis=1)
    )
    np.testing.assert_array_equal(policy_probabilities(policy, deep), chances)
    frames = [
        evaluate(log, policy, after=0).to_frame(),
        evaluate(log, chances).to_frame(),
        evaluate(log, lambda contexts: chances).to_frame(),
        evaluate(deep, policy, after=0).to_frame(),
    ]
    for frame in frames[1:]:
        pd.testing.assert_frame_equal(frame, frames[0])
    best = chances.argmax(axis=1)
    pd.testing.assert_frame_equal(
        evaluate(log, best).to_frame(), evaluate(log, np.eye(4)[best]).to_frame()
    )


def test_laws():
    """Parts add up, units do not matter, and the logging policy itself gets what it got."""
    rng = np.random.default_rng(12)
    log, target = GOOD.draw(rng, 300)
    report = evaluate(log, target)
    value, part = report.overall["estimate"]["observed"], report.by_group["estimate"]["observed"]
    share = report.shares["estimate"]["target"]
    for name in ("ips", "snips", "dr", "logged"):
        assert part[name, "contribution"].sum() == pytest.approx(value[name])
    for name in ("ips", "dr"):
        product = part[name, "within"] * share
        assert product.to_dict() == pytest.approx(part[name, "contribution"].to_dict())
    scaled = Logged(log.arms, 10 * log.rewards, log.propensities, LABELS, 7 * log.contexts)
    numbers = report.overall[["estimate", "low", "high"]]
    tenfold = evaluate(scaled, target).overall[["estimate", "low", "high"]]
    np.testing.assert_allclose(tenfold, 10 * numbers, rtol=1e-9)
    same = evaluate(log, GOOD.log[log.contexts[:, 1].astype(int)])
    ends = same.overall.loc["observed", ["estimate"]]
    assert ends.loc["ips"].item() == pytest.approx(log.rewards.mean())
    assert ends.loc["snips"].item() == pytest.approx(log.rewards.mean())
    assert same.overlap["effective_n"][0] == pytest.approx(300)


def test_a_row_is_predicted_without_its_own_reward():
    rng = np.random.default_rng(13)
    log, _ = GOOD.draw(rng, 100)
    first = cross_fitted(log, log.rewards, 5, 1.0, seed=3)
    changed = log.rewards.copy()
    changed[17] += 100.0
    second = cross_fitted(log, changed, 5, 1.0, seed=3)
    np.testing.assert_array_equal(first[17], second[17])
    assert (first[:, log.arms[17]] != second[:, log.arms[17]]).sum() >= 70  # the other folds do
    # An arm without rows gets the mean of its group.
    few = Logged([0] * 10 + [2] * 10, np.arange(20.0), np.full(20, 0.5), LABELS)
    assert cross_fitted(few, few.rewards, 2, 1.0, 0)[:, 1].max() < 10.0


def test_the_model_makes_the_interval_narrower():
    """Rewards that hang on the context: DR's error is below IPS's in each of 50 logs."""
    rng = np.random.default_rng(14)
    for _ in range(50):
        x = rng.normal(size=(400, 2))
        chances = softmax(x @ rng.normal(size=(2, 4)) * 0.3)
        arms = draw(rng, chances)
        rewards = 5.0 + 3.0 * x[:, 0] + arms + 0.1 * rng.normal(size=400)
        log = Logged(arms, rewards, chances[np.arange(400), arms], LABELS, x)
        error = evaluate(log, np.full((400, 4), 0.25)).overall["standard_error"]["observed"]
        assert error["dr"] < error["ips"]


def test_missing_rewards_are_counted():
    rng = np.random.default_rng(15)
    log, target = GOOD.draw(rng, 400)
    rewards = log.rewards.copy()
    gone = (log.of == 0) & (rng.random(400) < 0.3)
    rewards[gone] = np.nan
    report = evaluate(Logged(log.arms, rewards, log.propensities, LABELS, log.contexts), target)
    part = gone.sum() / (log.of == 0).sum()
    assert f"Rows without a reward are left out ({100 * part:.1f} % in group F" in report.to_words()
    kept = evaluate(log.rows(~gone), target[~gone]).overall
    pd.testing.assert_frame_equal(report.overall, kept)


def test_contexts_of_chosen_arms_only():
    """As in the logs of evenhand: there is nothing to predict other arms from."""
    rng = np.random.default_rng(16)
    log, target = GOOD.draw(rng, 200)
    own = Logged(log.arms, log.rewards, log.propensities, LABELS, log.contexts, shared=False)
    assert set(evaluate(own, target).overall.index.get_level_values(1)) == {
        "ips",
        "snips",
        "logged",
    }
    with pytest.raises(ValueError, match="contexts are of chosen arms only"):
        evaluate(own, target, estimators=["dr"])
    with pytest.raises(ValueError, match="a policy cannot say what it would do"):
        evaluate(own, eh.UniformRandom(LABELS, n_features=2))


def test_from_a_frame():
    frame = pd.DataFrame(
        {
            "item_id": ["a", "b", "c"],
            "click": [1, 0, 1],
            "propensity_score": [0.5, 0.25, 0.25],
            "age": [1.0, 2.0, 3.0],
        }
    )
    log = Logged.from_frame(frame, ["F", "F", "M"], features=["age"], arm_names=["a", "b", "c"])
    assert log.arms.tolist() == [0, 1, 2] and log.contexts.tolist() == [[1.0], [2.0], [3.0]]
    with pytest.raises(ValueError, match="arm has 'c'; allowed by arm_names is a, b"):
        Logged.from_frame(frame, ["F", "F"], arm_names=["a", "b"])
    with pytest.raises(ValueError, match="propensity is not a column"):
        Logged.from_frame(frame.drop(columns="propensity_score"), LABELS, arm_names="abcd")
    with pytest.raises(ValueError, match="arm has 'a'; allowed are numbers from 0, or give arm_n"):
        Logged.from_frame(frame, LABELS)


def test_json_has_null_and_no_nan():
    log = Logged([0, 0, 1], [1.0, 2.0, 3.0], [0.5, 0.5, 0.5], LABELS)
    report = evaluate(log, np.tile([0.5, 0.0, 0.5, 0.0], (3, 1)))
    plain = json.loads(report.to_json(), parse_constant=lambda word: pytest.fail(word))
    assert plain["format"] == "evenhand value report" and plain["trusted"] is False
    assert any(row["estimate"] is None for row in plain["values"])


GIVEN = {
    "arms": [0, 1],
    "rewards": [1.0, 0.0],
    "propensities": [0.5, 0.5],
    "groups": ["F", "M"],
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"propensities": [0.0, 0.5]}, "propensities has 0 in row 0; allowed are numbers above 0"),
        ({"propensities": [0.5, 1.5]}, "propensities has 1.5 in row 1"),
        ({"arms": [0, 2]}, "arms has 2; allowed are whole numbers from 0 to 1"),
        ({"rewards": [1.0]}, "rewards has shape"),
        ({"rewards": [1.0, np.inf]}, "rewards has an infinity"),
        ({"contexts": np.ones((3, 1))}, "contexts has shape"),
        ({"all_propensities": [[0.4, 0.6], [0.5, 0.5]]}, "all_propensities has 0.4"),
    ],
)
def test_bad_logs(change, message):
    Logged(**GIVEN)
    with pytest.raises(ValueError, match=message):
        Logged(**{**GIVEN, **change})


@pytest.mark.parametrize(
    ("target", "choices", "message"),
    [
        ([[0.5, 0.6], [0.5, 0.5]], {}, "target has probabilities in row 0 that sum to 1.1"),
        ([[1.5, -0.5], [0.5, 0.5]], {}, "the least -0.5"),
        ([0, 2], {}, "target has 2; allowed are whole numbers from 0 to 1"),
        ([0, 1], {"bias": {"F": 1.0}}, "bias has no entry for group M"),
        ([0, 1], {"bias": 3.0}, "bias is a float"),
        ([0, 1], {"estimators": ["magic"]}, "estimators is 'magic'"),
        ([0, 1], {"interval": "bernstein"}, "reward_range is not given"),
        ([0, 1], {"interval": "bernstein", "reward_range": (0, 1)}, "largest_weight is not given"),
        (
            [0, 1],
            {"interval": "bernstein", "reward_range": (0, 1), "largest_weight": 1.5},
            "largest_weight is 1.5; allowed is at least 2",
        ),
        (lambda x: x, {}, "target is a function and the log has no contexts"),
    ],
)
def test_bad_questions(target, choices, message):
    with pytest.raises(ValueError, match=message):
        evaluate(Logged(**GIVEN), target, **choices)
