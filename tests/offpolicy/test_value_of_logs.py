"""Off-policy values and fairness metrics straight from the logs that evenhand writes.

Seeds are fixed: a test passes always or never, and its comment says how often it would fail with
another seed though the library is right.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.errors import InputError
from evenhand.fairness import fairness_report, group_sums, metric_frame
from evenhand.offpolicy import Logged, evaluate
from log_scripts import LABELS, contexts_of, make

SUFFIXES = pytest.mark.parametrize("suffix", ["parquet", "csv"])
TRUE = np.array([[1.0, 2.0], [2.0, 0.5], [0.5, 1.0], [1.5, 1.5]])  # coefficients of the four arms


def write(path, number=60, *, candidates=True, shared=False, missing=False, close=True, seed=3):
    """Decisions with rewards, some of them late; and what was seen, to compare with."""
    rng, seen = np.random.default_rng(seed), []
    logged = eh.log_to(
        path,
        make("TopInterval", exploration=0.5),
        features=["age", "income"],
        candidates=candidates,
    )
    for t in range(number):
        contexts = rng.random((4, 2))
        contexts = np.tile(contexts[0], (4, 1)) if shared else contexts
        available = np.ones(4, dtype=bool)
        if missing and t % 3 == 0:
            available[rng.integers(4)] = False
        decision = logged.select(contexts, available)
        reward = np.nan
        if t % 10 != 7:
            reward = float(TRUE[decision.arm] @ decision.context + rng.normal())
            logged.update(decision, reward)
        seen.append((contexts, available, decision, reward))
    if close:
        logged.close()
    return seen, logged


# Logged.from_log ----------------------------------------------------------------------------------


@SUFFIXES
@pytest.mark.parametrize("missing", [False, True])
def test_a_log_becomes_logged_decisions(suffix, missing, tmp_path):
    path = tmp_path / f"log.{suffix}"
    seen, _ = write(path, missing=missing)
    log = Logged.from_log(path)
    assert log.groups.labels == tuple(LABELS) and not log.shared
    assert log.arms.tolist() == [decision.arm for _, _, decision, _ in seen]
    np.testing.assert_array_equal(log.rewards, [reward for *_, reward in seen])
    np.testing.assert_array_equal(log.available, [available for _, available, _, _ in seen])
    for row, (contexts, available, decision, _) in enumerate(seen):
        np.testing.assert_array_equal(log.contexts[row][available], contexts[available])
        np.testing.assert_array_equal(log.chosen_contexts[row], decision.context)
        assert (log.all_propensities[row][~available] == 0.0).all()
    again = Logged.from_log(eh.read_log(path))
    np.testing.assert_array_equal(again.contexts, log.contexts)


def test_a_policy_is_asked_with_what_there_was(tmp_path):
    """In every round with its own contexts, among the arms that could be chosen."""
    seen, _ = write(tmp_path / "log.csv", missing=True)
    target = make("GroupFairTopInterval", exploration=0.3)
    target.absorb([d.arm for _, _, d, _ in seen[:20]], [d.context for _, _, d, _ in seen[:20]],
                  np.arange(20.0))  # fmt: skip
    chances = eh.offpolicy.policy_probabilities(target, Logged.from_log(tmp_path / "log.csv"))
    expected = [target.propensities(contexts, available) for contexts, available, _, _ in seen]
    np.testing.assert_array_equal(chances, expected)
    missing = np.array([available for _, available, _, _ in seen])
    assert (chances[~missing] == 0.0).all() and (~missing).sum() == 20
    values = [
        evaluate(log, asked, after=0).to_frame()
        for log in (
            tmp_path / "log.csv",
            str(tmp_path / "log.csv"),
            eh.read_log(tmp_path / "log.csv"),
            Logged.from_log(tmp_path / "log.csv"),
        )
        for asked in (target, chances)
    ]
    for other in values[1:]:
        pd.testing.assert_frame_equal(other, values[0])
    assert {"ips", "snips", "dr", "logged"} <= set(values[0]["estimator"])
    with eh.log_to(tmp_path / "other.csv", target) as logging:  # a policy that logs is one too
        again = evaluate(tmp_path / "log.csv", logging, after=0).to_frame()
    pd.testing.assert_frame_equal(again, values[0])


def test_contexts_of_the_round_are_shared(tmp_path):
    seen, _ = write(tmp_path / "log.parquet", shared=True)
    log = Logged.from_log(tmp_path / "log.parquet")
    assert log.shared and log.contexts.shape == (60, 2)
    np.testing.assert_array_equal(log.contexts, [contexts[0] for contexts, *_ in seen])
    target = make("TopInterval")
    expected = [target.propensities(contexts) for contexts, *_ in seen]
    np.testing.assert_array_equal(eh.offpolicy.policy_probabilities(target, log), expected)


def test_without_candidates_a_policy_cannot_be_asked(tmp_path):
    seen, _ = write(tmp_path / "log.csv", candidates=False)
    log = Logged.from_log(tmp_path / "log.csv")
    assert not log.shared and log.available is None and log.contexts.shape == (60, 2)
    with pytest.raises(ValueError, match="keeps all candidates, with candidates=True"):
        evaluate(log, make())
    values = evaluate(tmp_path / "log.csv", "uniform")
    assert set(values.to_frame()["estimator"]) == {"ips", "snips", "logged", "target"}
    weights = np.array([0.25 / d.propensity for _, _, d, reward in seen if reward == reward])
    rewards = np.array([reward for *_, reward in seen if reward == reward])
    assert values.overall.loc[("observed", "ips"), "estimate"] == pytest.approx(
        np.mean(weights * rewards)
    )


def test_uniform_is_over_what_was_available(tmp_path):
    seen, _ = write(tmp_path / "log.csv", missing=True)
    log = Logged.from_log(tmp_path / "log.csv")
    even = np.array([available / available.sum() for _, available, _, _ in seen])
    first, two = evaluate(log, "uniform"), evaluate(log, even)
    pd.testing.assert_frame_equal(first.to_frame(), two.to_frame())
    assert first.overlap["unsupported"].max() == 0.0
    # Probabilities on an arm that could not be chosen are told, though it was chosen elsewhere.
    blind = evaluate(log, np.full((60, 4), 0.25))
    assert blind.overlap["unsupported"][0] == pytest.approx(20 / 60 / 4, abs=0.02)
    assert not blind.trusted and "could not or did not choose" in blind.to_words()
    with pytest.raises(ValueError, match="target is 'best'; allowed is one of uniform"):
        evaluate(log, "best")


class Plain:
    """A target of somebody else's, which knows nothing of missing arms."""

    def propensities(self, contexts):
        return np.full(len(contexts), 1.0 / len(contexts))


def test_a_target_that_knows_no_missing_arms(tmp_path):
    write(tmp_path / "all.csv")
    write(tmp_path / "some.csv", missing=True)
    assert evaluate(tmp_path / "all.csv", Plain()).shares["estimate"]["target", "F"] == 0.5
    with pytest.raises(ValueError, match="without a parameter 'available'"):
        evaluate(tmp_path / "some.csv", Plain())


def test_overrides_and_history_are_no_decisions_of_the_policy(tmp_path):
    path = tmp_path / "log.parquet"
    seen, logged = write(path, 100, close=False)
    for seed in range(5):
        decision = logged.select(contexts_of(seed))
        logged.override(decision, (decision.arm + 1) % 4, [1.0, 2.0])
        logged.update(decision, 1000.0)
    logged.absorb([0, 1], [[1.0, 2.0]] * 2, [1000.0, 1000.0])
    log = Logged.from_log(path)  # while it is being written
    logged.close()
    assert log.n == 105 and log.overridden.sum() == 5 and np.isnan(log.rewards[100:]).all()
    assert np.nanmax(log.rewards) < 100.0
    report = evaluate(path, "uniform")
    words = report.to_words()
    assert "Decisions that a human overrode are left out" in words
    lost = sum(1 for *_, reward in seen if np.isnan(reward))
    assert lost == 10 and "Rows without a reward are left out" in words
    clean = Logged.from_log(eh.read_log(path)[:100])
    assert "overrode" not in evaluate(clean, "uniform").to_words()
    kept = report.overall.loc["observed", "estimate"].to_dict()
    expected = evaluate(clean, "uniform").overall.loc["observed", "estimate"].to_dict()
    assert kept == pytest.approx(expected)
    # A reward in such a row is not the arm's, whoever wrote it there.
    wrong = Logged([0, 1], [1.0, 9.0], [0.5, 0.5], ["F", "M"], overridden=[False, True])
    assert np.isnan(wrong.rewards[1])


def test_some_of_the_rows_keep_their_groups(tmp_path):
    write(tmp_path / "log.csv", 40)
    frame = eh.read_log(tmp_path / "log.csv")
    for part in (frame[frame["round"] > 20], frame.query("round > 20"), frame.iloc[20:]):
        log = Logged.from_log(part)
        assert log.n == 20 and log.groups.labels == tuple(LABELS)
    with pytest.raises(ValueError, match="log has lost its column 'age'; give all columns"):
        Logged.from_log(frame.drop(columns="age"))
    assert not group_sums(frame.drop(columns="age")).has("chances")


@pytest.mark.parametrize("what", ["frame", "file"])
def test_logs_of_others_are_not_guessed_at(what, tmp_path):
    frame = pd.DataFrame({"item_id": [0, 1], "reward": [1.0, 0.0], "propensity_score": [0.5, 0.5]})
    log = frame
    if what == "file":
        frame.to_csv(log := tmp_path / "log.csv", index=False)
    for read in (Logged.from_log, lambda log: evaluate(log, "uniform")):
        with pytest.raises(ValueError, match="does not come from a log of evenhand's") as error:
            read(log)
        assert "Logged.from_frame" in str(error.value) and "\n" not in str(error.value)
    with pytest.raises(ValueError, match="where there is no log"):
        evaluate(tmp_path / "nothing.csv", "uniform")
    with pytest.raises(ValueError, match="log is a int; allowed is a log that evenhand wrote"):
        evaluate(5, "uniform")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"available": [[True, False], [True, False]]}, "available has no arm 1 in row 1"),
        ({"available": [True, True]}, "available has shape"),
        ({"available": [[2, 1], [1, 1]]}, "available has 2; allowed are true and false"),
        ({"overridden": [True]}, "overridden has shape"),
    ],
)
def test_bad_flags(change, message):
    with pytest.raises(ValueError, match=message):
        Logged([0, 1], [1.0, 0.0], [0.5, 0.5], ["F", "M"], **change)


def test_the_value_is_the_one_that_the_world_has(tmp_path):
    """A saved policy as the target, contexts of its own for every arm, arms missing.

    What it is worth in these rounds is a sum over arms. Three intervals at 99.9 %, and DR far
    closer than chance: a false alarm once in 300 seeds.
    """
    rng, path = np.random.default_rng(5), tmp_path / "log.parquet"
    rounds = []
    with eh.log_to(path, eh.UniformRandom(LABELS, 2, seed=2), candidates=True) as logged:
        for _ in range(1500):
            contexts, available = rng.random((4, 2)), rng.random(4) < 0.8
            available[rng.integers(4)] = True
            decision = logged.select(contexts, available)
            logged.update(decision, TRUE[decision.arm] @ decision.context + 0.3 * rng.normal())
            rounds.append((contexts, available))
    target = eh.TopInterval(LABELS, n_features=2, exploration=0.1, seed=3)
    x, arms = rng.random((300, 2)), rng.integers(4, size=300)
    target.absorb(arms, x, (TRUE[arms] * x).sum(axis=1) + 0.3 * rng.normal(size=300))
    target.save(tmp_path / "target.json")
    chances = np.array([target.propensities(*asked) for asked in rounds])
    means = np.array([(TRUE * contexts).sum(axis=1) for contexts, _ in rounds])
    truth = float(np.mean(np.sum(chances * means, axis=1)))
    values = evaluate(path, eh.load(tmp_path / "target.json"), after=0, level=0.999)
    for name in ("ips", "snips", "dr"):
        row = values.overall.loc[("observed", name)]
        assert row["low"] <= truth <= row["high"] and row["evidence"] == "sufficient", name
    # The rounds are given here, so only rewards are chance: DR is off by about 0.02.
    assert abs(values.overall.loc[("observed", "dr"), "estimate"] - truth) < 0.06
    even = np.array([available / available.sum() for _, available in rounds])
    more = float(np.mean(np.sum((chances - even) * means, axis=1)))
    gain = values.gain().loc[("observed", "dr", "value", "all")]
    assert gain["low"] <= more <= gain["high"] and gain["low"] > 0.0


# group_sums ---------------------------------------------------------------------------------------


def overridden_log(path, candidates=False):
    """Ten decisions; the human takes arm 1 of M in place of those of rounds 3 and 4."""
    policy = make("UniformRandom", exploration=0.5)
    with eh.log_to(path, policy, candidates=candidates) as logged:
        made = [logged.select(contexts_of(t), available=[0, 2, 3]) for t in range(10)]
        for decision in made[2:4]:
            logged.override(decision, 1, [1.0, 1.0])
        logged.update(made[2], 5.0)
        logged.update(made[5:], np.arange(5.0))
        logged.absorb([0, 2], np.ones((2, 2)), [100.0, 100.0])
    return made


@SUFFIXES
def test_sums_are_about_what_was_done_in_the_end(suffix, tmp_path):
    path = tmp_path / f"log.{suffix}"
    made = overridden_log(path)
    arms = np.array([decision.arm for decision in made])
    arms[2:4] = 1
    rewards = np.full(10, np.nan)
    rewards[[2, 5, 6, 7, 8, 9]] = [5.0, *range(5)]
    explored = np.array([decision.explored for decision in made])
    explored[2:4] = False
    of = np.array(LABELS)[arms]
    table = group_sums(eh.read_log(path)).table
    for group in ("F", "M"):
        own = of == group
        assert table.loc[group, "n"] == own.sum()
        assert table.loc[group, "n_reward"] == (own & ~np.isnan(rewards)).sum()
        assert table.loc[group, "sum_reward"] == np.nansum(rewards[own])
        assert table.loc[group, "explored"] == (own & explored).sum()
        assert table.loc[group, "sum_explored_reward"] == np.nansum(rewards[own & explored])
        assert table.loc[group, "arms"] == 2
    assert table["n"].sum() == 10 and table["sum_reward"].sum() == 15.0
    by_arm = group_sums(eh.read_log(path).drop(columns="group"), groups=LABELS)
    pd.testing.assert_frame_equal(by_arm.table, table)
    assert fairness_report(group_sums(eh.read_log(path))).by_group.loc[("share", "M"), "n"] == 10


def test_a_group_that_was_never_chosen_is_there(tmp_path):
    with eh.log_to(tmp_path / "log.csv", make("UniformRandom")) as logged:
        for t in range(20):
            logged.select(contexts_of(t), available=[0, 2])
    report = fairness_report(group_sums(eh.read_log(tmp_path / "log.csv")))
    assert report.by_group.loc[("share", "M"), "estimate"] == 0.0


def test_chances_are_those_of_available_arms(tmp_path):
    """Three arms in every round, and arm 1 twice more, when a human took it."""
    overridden_log(tmp_path / "log.csv", candidates=True)
    sums = group_sums(eh.read_log(tmp_path / "log.csv"))
    assert sums.table["chances"].to_dict() == {"F": 20.0, "M": 12.0}
    arms = group_sums(eh.read_log(tmp_path / "log.csv"), arms={"F": 2, "M": 2})
    assert not arms.has("chances")


def test_fairlearn_counts_the_same_rows(tmp_path):
    path = tmp_path / "log.csv"
    overridden_log(path)
    log = eh.read_log(path)
    frame, table = metric_frame(log, selection="pulls"), group_sums(log).table
    assert frame.by_group["count"].to_dict() == table["n"].to_dict()
    means = (table["sum_reward"] / table["n_reward"]).to_dict()
    assert frame.by_group["mean_reward"].to_dict() == pytest.approx(means)


@pytest.mark.parametrize("kind", ["boolean", "object", "float"])
def test_flags_of_any_type(kind, tmp_path):
    """As pandas reads them, if one does not use `read_log`."""
    overridden_log(tmp_path / "log.csv")
    log = eh.read_log(tmp_path / "log.csv")
    expected = group_sums(log).table["explored"].to_dict()
    flags = log["explored"].astype("object").where(log["explored"].notna(), np.nan)
    given = {"boolean": log["explored"], "object": flags, "float": flags.astype(float)}[kind]
    assert group_sums(log.assign(explored=given)).table["explored"].to_dict() == expected


def test_half_of_an_override_is_refused(tmp_path):
    overridden_log(tmp_path / "log.csv")
    log = eh.read_log(tmp_path / "log.csv")
    human = log["propensity_score"].isna() & log["round"].notna()
    for part in (log[~human], log[log["override"].isna()]):
        with pytest.raises(ValueError, match="round 3 was overridden, and one of its two rows"):
            group_sums(part)


def test_a_missing_flag_elsewhere_is_refused():
    log = pd.DataFrame({"group": ["F", "M"], "reward": [1.0, 2.0]})
    for missing in (pd.array([True, None], dtype="boolean"), [1.0, np.nan]):
        with pytest.raises(ValueError, match="explored has no value in row 1; allowed are true"):
            group_sums(log.assign(explored=missing))


def test_positions_are_not_guessed():
    log = pd.DataFrame({"group": ["F", "M", "M"], "reward": 1.0, "position": [1, 2, 3]})
    from_one = group_sums(log, position="position").table
    assert from_one["sum_exposure"].to_dict() == pytest.approx(
        {"F": 1.0, "M": 1 / np.log2(3) + 0.5}
    )
    zero = log.assign(position=log["position"] - 1)
    with pytest.raises(ValueError, match=r"position has 0; .* first_position=0 if the log counts"):
        group_sums(zero, position="position")
    from_zero = group_sums(zero, position="position", first_position=0).table
    pd.testing.assert_frame_equal(from_zero, from_one)
    with pytest.raises(ValueError, match=r"first_position is 0\.5"):
        group_sums(zero, position="position", first_position=0.5)
    with pytest.raises(ValueError, match=r"position has -1; allowed are positions from 0$"):
        group_sums(zero.assign(position=-1), position="position", first_position=0)


@pytest.mark.parametrize(
    ("column", "missing"),
    [
        (["2026-01-31", "2026-02-01", "2026-02-02"], "error"),
        ([None] * 3, "fill"),
        ([None] * 3, "drop"),
    ],
    ids=["dates", "nothing to fill in", "nothing left"],
)
def test_no_advice_names_a_setting_that_there_is_not(column, missing):
    """Audits and worlds have `leave_out`; here features are named one by one."""
    frame = pd.DataFrame({"arm": [0, 1, 1], "click": [1, 0, 1], "pscore": 0.5, "when": column})
    with pytest.raises(InputError, match="leave ") as error:
        eh.offpolicy.Logged.from_frame(frame, ["F", "M"], features=["when"], missing=missing)
    assert "leave_out" not in str(error.value)
