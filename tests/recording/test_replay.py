"""Replaying a log gives the same state, bit for bit."""

import json
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand as eh
from evenhand.events._tables import beside
from log_scripts import (
    FEATURES,
    LABELS,
    OURS,
    Calls,
    bits,
    contexts_of,
    make,
    older,
    same_decisions,
)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("name", OURS)
def test_every_policy_comes_back_bit_for_bit(name, suffix, tmp_path):
    path = tmp_path / f"log.{suffix}"
    alone = Calls(1).many(make(name), 150)
    with eh.log_to(path, make(name)) as logged:
        Calls(1).many(logged, 150)
    assert alone.counts.sum() > 50 and alone.round > 30
    again = eh.replay(path)
    assert type(again) is type(alone) and bits(again) == bits(logged.policy) == bits(alone)
    same_decisions(again, alone)


def test_threads_take_turns(tmp_path):
    """Each decision gets its own id, context and reward, in the policy and in its log."""
    path, failed = tmp_path / "log.csv", []
    before = sys.getswitchinterval()
    logged = eh.log_to(path, make(), snapshot_every=20)

    def decide(who):
        try:
            for number in range(50):
                name = f"{who}-{number}"
                decision = logged.select(contexts_of(100 * who + number), id=name)
                assert logged.id_of(decision) == name
                logged.update(name if number % 2 else decision, float(who))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=decide, args=(who,)) for who in range(4)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert not failed, failed
    logged.close()
    assert logged.round == logged.counts.sum() == 200
    assert bits(eh.replay(path)) == bits(logged.policy)
    rows = eh.read_log(path)
    assert sorted(rows["round"]) == list(range(1, 201))
    for name, arm, reward, context in zip(
        rows["decision_id"],
        rows["item_id"],
        rows["reward"],
        rows[["x1", "x2"]].to_numpy(),
        strict=True,
    ):
        who, number = map(int, name.split("-"))
        assert reward == who
        np.testing.assert_array_equal(context, contexts_of(100 * who + number)[arm])


@pytest.mark.parametrize(
    "change",
    [
        {"noise": "estimate"},
        {"ridge": 0.3},
        {"horizon": None},
        {"conventions": eh.AUTHORS_CODE},
        {"exploration": [0.5, 0.25]},
        {"seed": 2**64 - 1},
    ],
    ids=str,
)
def test_settings_come_back(change, tmp_path):
    with eh.log_to(tmp_path / "log.csv", make(**change)) as logged:
        Calls(3).many(logged, 60)
    again = eh.replay(tmp_path / "log.csv")
    assert again.settings() == logged.settings() and bits(again) == bits(logged.policy)


FLOATS = st.floats(-1e100, 1e100, allow_subnormal=True)


@pytest.mark.slow
@settings(max_examples=10)
@given(
    values=st.lists(st.tuples(FLOATS, FLOATS, FLOATS), min_size=1, max_size=12),
    suffix=st.sampled_from(["parquet", "csv"]),
)
def test_no_digit_is_lost(tmp_path_factory, values, suffix):
    path, rows = tmp_path_factory.mktemp("log") / f"log.{suffix}", np.array(values)
    with eh.log_to(path, make("TopInterval")) as logged:
        logged.absorb([1] * len(rows), rows[:, :2], rows[:, 2])
    log = eh.read_log(path)[["x1", "x2", "reward"]].to_numpy(float)
    np.testing.assert_array_equal(log, rows)
    np.testing.assert_array_equal(np.signbit(log), np.signbit(rows))


class Careful(eh.Policy):
    """A user's own policy in plain Python, with a setting of its own."""

    def __init__(self, groups, n_features, care=0.5, **common):
        super().__init__(groups, n_features, **common)
        self.care = care

    def score(self, contexts):
        estimate, width = self.intervals(contexts)
        return estimate + self.care * width


def test_a_users_own_policy_comes_back(tmp_path):
    path = tmp_path / "log.parquet"
    with eh.log_to(path, Careful(LABELS, FEATURES, care=0.75, seed=2)) as logged:
        Calls(2).many(logged, 60)
    again = eh.replay(path)
    assert again.care == 0.75 and bits(again) == bits(logged.policy)


def test_a_policy_that_already_knows_something(tmp_path):
    policy = Calls(4).many(make(), 50)
    before = policy.round
    with eh.log_to(tmp_path / "log.csv", policy) as logged:
        decision = logged.select(contexts_of(1))
        logged.update(decision, 2.0)
    assert eh.read_log(tmp_path / "log.csv")["round"].tolist() == [before + 1]
    assert bits(eh.replay(tmp_path / "log.csv")) == bits(policy)


def test_overridden_decisions_teach_the_arm_in_force(tmp_path):
    path, alone = tmp_path / "log.parquet", make()
    with eh.log_to(path, make()) as logged:
        decision = logged.select(contexts_of(1))
        assert alone.select(contexts_of(1)).arm == decision.arm
        other = (decision.arm + 1) % 4
        logged.override(decision, other, context=[0.5, 2.0])
        logged.update(decision, 3.0)
    alone.absorb([other], [[0.5, 2.0]], [3.0])
    assert bits(eh.replay(path)) == bits(logged.policy) == bits(alone)


def written(path):
    with eh.log_to(path, make()) as logged:
        Calls(1).many(logged, 60)
    return logged.policy


def change_about(path, change):
    header = json.loads(beside(path).read_text())
    change(header)
    beside(path).write_text(json.dumps(header))


def put(*keys):
    """Set the value at the end of a path of keys."""

    def change(told):
        for key in keys[:-2]:
            told = told[key]
        told[keys[-2]] = keys[-1]

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put("version", 4), "version of the log is 4"),
        (put("version", 2), "damaged: candidates"),  # which it does not have
        (put("candidates", True), "has lost its column 'candidate_contexts'"),
        (put("format", "cookies"), "not a log of evenhand's"),
        (put("policy", "version", 9), "version is 9"),
        (put("policy", "policy", "Nobody"), "import the module"),
        (put("policy", "arms", [[1.0]]), "damaged"),
        (put("policy", []), "damaged"),
        (put("policy", "settings", {}), "damaged"),
        (put("features", ["x1"]), "damaged"),
        (put("features", ["x1", "x3"]), "no column 'x3'"),
    ],
)
def test_the_header_of_a_log_is_checked(change, words, tmp_path):
    written(tmp_path / "log.csv")
    change_about(tmp_path / "log.csv", change)
    early = "version of the log|not a log of evenhand's"
    with pytest.raises(ValueError, match=f"{early}|it was changed after it was written"):
        eh.replay(tmp_path / "log.csv")
    older(tmp_path / "log.csv")  # as older logs are
    with pytest.raises(ValueError, match=words) as error:
        eh.replay(tmp_path / "log.csv")
    assert "\n" not in str(error.value)


def test_a_cut_off_header_is_reported_at_every_byte(tmp_path):
    written(tmp_path / "log.csv")
    whole = beside(tmp_path / "log.csv").read_bytes()
    for end in range(0, len(whole), 40):
        beside(tmp_path / "log.csv").write_bytes(whole[:end])
        with pytest.raises(ValueError, match="damaged"):
            eh.replay(tmp_path / "log.csv")


@pytest.mark.parametrize("column", ["learned", "round"])
def test_a_lost_row_is_reported(column, tmp_path):
    path = tmp_path / "log.csv"
    written(path)
    frame = pd.read_csv(path)
    lost = frame[frame[column].notna()].index[3]
    frame.drop(index=lost).to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"and should have \d+ rounds"):
        eh.replay(path)
    older(path)
    with pytest.raises(ValueError, match=r"and should have \d+ rounds"):
        eh.replay(path)
    change_about(path, put("state", None))  # only the rows themselves are left
    with pytest.raises(ValueError, match=r"(learned|round) has no \d+"):
        eh.replay(path)


def test_learning_outside_the_log_is_detected(tmp_path):
    with eh.log_to(tmp_path / "log.csv", make()) as logged:
        Calls(1).many(logged, 30)
        logged.policy.absorb([0], [[1.0, 2.0]], [3.0])
    with pytest.warns(UserWarning, match="learned outside its log"):
        eh.replay(tmp_path / "log.csv")


def test_deciding_outside_the_log_is_refused(tmp_path):
    logged = eh.log_to(tmp_path / "log.csv", make())
    logged.policy.select(contexts_of(0))
    with pytest.raises(ValueError, match="decided outside its log"):
        logged.select(contexts_of(0))
    logged.close()


def test_a_log_continues_only_with_its_own_policy(tmp_path):
    path = tmp_path / "log.parquet"
    policy = written(path)
    for wrong in (make(), make(seed=6), Calls(2).many(make(), 60)):
        with pytest.raises(ValueError, match="in another state; leave the policy out"):
            eh.log_to(path, wrong)
    with pytest.raises(ValueError, match="the log has x1, x2"):
        eh.log_to(path, features=["a", "b"])
    assert not (tmp_path / "log.parquet.journal").exists()
    eh.log_to(path, policy).close()
    with eh.log_to(path) as logged:
        assert bits(logged.policy) == bits(policy)
    names = {file.name.removesuffix(".before") for file in tmp_path.iterdir()}
    assert names == {"log.parquet", "log.parquet.snapshot"}
