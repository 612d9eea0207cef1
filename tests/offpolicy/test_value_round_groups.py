"""Off-policy values by groups that came with each round, beside what they are by hand."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.cli import main
from evenhand.errors import DataError, InputError
from round_logs import ARMS, FEATURES, drawn, play_rounds

GROUPS = eh.Groups.per_round(ARMS, {"sex": ["F", "M"]})


def uniform():
    return eh.UniformRandom(GROUPS, n_features=FEATURES, seed=3)


def target(tmp_path):
    """A policy that learned elsewhere."""
    policy = eh.PooledGroupFair(GROUPS, n_features=FEATURES, reference="M", seed=5)
    play_rounds(tmp_path / "elsewhere.parquet", policy, drawn(["F", "M", None], 60, seed=8), seed=9)
    return policy


@pytest.fixture
def played(tmp_path):
    path, groups = tmp_path / "log.parquet", drawn(["F", "M", None], 300)
    contexts, arms, rewards = play_rounds(path, uniform(), groups, missing=(4, 9))
    names = np.array([[name or "not stated" for name in own] for own in groups])
    return path, groups, names, contexts, arms, rewards


def test_shares_and_values_are_those_of_the_candidates_groups(tmp_path, played):
    path, groups, names, contexts, arms, rewards = played
    policy = target(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = eh.offpolicy.evaluate(path, policy, after=0)
    assert report.groups == ("F", "M", "not stated")
    chances = np.array(
        [policy.propensities(x, groups=own) for x, own in zip(contexts, groups, strict=True)]
    )
    table = report.to_frame().set_index(["estimator", "quantity", "group"])["estimate"]
    seen = ~np.isin(np.arange(len(arms)), (4, 9))
    rows = np.arange(len(arms))
    weight, chosen = chances[rows, arms] * ARMS, names[rows, arms]
    for name in report.groups:
        there = np.where(names == name, chances, 0.0).sum(axis=1)
        inside = (chosen == name) & seen
        assert table["target", "share", name] == pytest.approx(there.mean())
        assert table["logged", "share", name] == pytest.approx((chosen == name).mean())
        earned = (weight * rewards)[inside].sum()
        assert table["ips", "contribution", name] == pytest.approx(earned / seen.sum())
        assert table["ips", "within", name] == pytest.approx(earned / there[seen].sum())
        assert table["snips", "within", name] == pytest.approx(earned / weight[inside].sum())
        assert table["logged", "within", name] == pytest.approx(rewards[inside].mean())
    assert sum(table["target", "share", name] for name in report.groups) == pytest.approx(1.0)


def test_values_of_a_log_on_the_command_line(tmp_path, played, capsys):
    assert main(["value", str(played[0]), "--uniform"]) == 0
    said = capsys.readouterr().out
    assert "Group not stated would get" in said and "per round" not in said.split("Intervals")[1]


def test_a_bias_by_group_is_taken_off(played):
    path, _, names, _, arms, rewards = played
    report = eh.offpolicy.evaluate(path, "uniform", bias={"F": -1.5, "M": 0.0, "not stated": 0.0})
    table = report.to_frame().set_index(["reward", "estimator", "quantity", "group"])["estimate"]
    there = names[np.arange(len(arms)), arms] == "F"
    there &= ~np.isin(np.arange(len(arms)), (4, 9))
    assert table["corrected", "logged", "within", "F"] == pytest.approx(rewards[there].mean() + 1.5)
    observed, corrected = (table[kind, "dr", "within", "F"] for kind in ("observed", "corrected"))
    assert corrected - observed == pytest.approx(1.5, abs=0.2)


def test_the_bias_that_a_policy_learned_is_taken_off(tmp_path, played, capsys):
    """By hand: feature by feature from the rows of its report, and wider by its interval."""
    path, _, names, contexts, arms, rewards = played
    policy = target(tmp_path)
    policy.save(tmp_path / "policy.json")
    out = tmp_path / "value.json"
    given = ["--correct", "--reference", "M", "--after", "0", "--out", str(out)]
    assert main(["value", str(path), "--policy", str(tmp_path / "policy.json"), *given]) == 0
    assert "In corrected reward" in capsys.readouterr().out
    told = pd.DataFrame(json.loads(out.read_text())["values"])
    table = told.set_index(["reward", "estimator", "quantity", "group"])
    report = policy.bias("M", level=0.95)
    rows, seen = np.arange(len(arms)), ~np.isin(np.arange(len(arms)), (4, 9))
    for name in ("F", "M", "not stated"):
        own = report.at(np.eye(FEATURES)).query(f"group == 'sex: {name}'")["estimate"].to_numpy()
        inside = seen & (names[rows, arms] == name)
        chosen = contexts[rows, arms][inside]
        corrected = table.loc[("corrected", "logged", "within", name)]
        assert corrected["estimate"] == pytest.approx((rewards[inside] - chosen @ own).mean())
        at = report.at(chosen.mean(axis=0)).set_index("group").loc[f"sex: {name}"]
        plain = (corrected["high"] - corrected["low"]) / 2.0 - (at["high"] - at["low"]) / 2.0
        spread = (rewards[inside] - chosen @ own).std(ddof=1) / np.sqrt(inside.sum())
        assert plain == pytest.approx(1.96 * spread, rel=0.05)


@pytest.mark.parametrize(
    ("kind", "more", "words"),
    [
        (eh.TopInterval, (), "TopInterval learns no bias of groups that come with each round"),
        (eh.PooledGroupFair, ("--weighting", "arms"), "--weighting is for groups of arms"),
    ],
)
def test_a_bias_that_nobody_learned_is_refused(tmp_path, played, capsys, kind, more, words):
    kind(GROUPS, n_features=FEATURES, seed=5).save(tmp_path / "policy.json")
    given = ["--policy", str(tmp_path / "policy.json"), "--correct", "--after", "0", *more]
    assert main(["value", str(played[0]), *given]) == 2
    assert words in capsys.readouterr().err


def test_what_a_log_cannot_say_is_refused(tmp_path):
    path = tmp_path / "chosen.parquet"
    play_rounds(path, uniform(), drawn(["F", "M"], 30), candidates=False)
    with pytest.raises(DataError, match=r"keeps only the chosen candidates.*candidates=True"):
        eh.offpolicy.evaluate(path, "uniform")
    groups = drawn(["F", "M"], 30)
    groups[2] = [{"F": 0.7, "M": 0.3}] * ARMS
    play_rounds(tmp_path / "chances.parquet", uniform(), groups)
    with pytest.raises(DataError, match="came as probabilities for 4 candidates"):
        eh.offpolicy.evaluate(tmp_path / "chances.parquet", "uniform")


def test_members_are_checked():
    given = {"arms": [0, 1], "rewards": [1.0, 0.0], "propensities": [0.5, 0.5]}
    groups = ["per round", "per round"]
    members = np.array([[0, 1], [1, 0]])
    log = eh.offpolicy.Logged(**given, groups=groups, members=members, member_names=("F", "M"))
    assert log.of.tolist() == [0, 0] and log.names == ("F", "M")
    with pytest.raises(InputError, match="numbers of the 1 groups"):
        eh.offpolicy.Logged(**given, groups=groups, members=members, member_names=("F",))
