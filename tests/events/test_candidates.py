"""Logs that keep all arms of a decision: what is written, what comes back, what is refused."""

import base64
import json
from itertools import cycle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand as eh
from evenhand.events import find_columns
from evenhand.events._candidates import candidates
from evenhand.events._journal import journal_of
from evenhand.events._tables import beside
from log_scripts import (
    FEATURES,
    LABELS,
    OURS,
    Calls,
    alike,
    bits,
    contexts_of,
    event_of,
    killed,
    make,
    same_decisions,
    signed,
)

SUFFIXES = pytest.mark.parametrize("suffix", ["parquet", "csv"])
ARMS, CHANCES = "candidate_contexts", "candidate_propensities"


@SUFFIXES
def test_a_decision_has_all_arms_and_other_rows_have_none(suffix, tmp_path):
    path, twin = tmp_path / f"log.{suffix}", make()
    with eh.log_to(path, make(), features=["age", "income"], candidates=True) as logged:
        calls = [
            (contexts_of(1), None),
            (contexts_of(2), [0, 3]),
            (np.tile(contexts_of(3)[0], (4, 1)), None),  # the same for all arms
            (np.tile(contexts_of(3)[0], (4, 1)), [True, False, True, True]),
            (contexts_of(4).tolist(), {1, 2, 0, 3}),
        ]
        chances = []
        for contexts, available in calls:
            chances.append(twin.propensities(contexts, available))
            twin.update(twin.select(contexts, available), 1.0)
            decision = logged.select(contexts, available)
            logged.update(decision, 1.0)
        last = logged.select(contexts_of(5))
        logged.override(last, (last.arm + 1) % 4, [1.0, 2.0])
        logged.absorb([3], [[0.25, 0.5]], [9.0])
        writing = eh.read_log(path)
    log = eh.read_log(path)
    pd.testing.assert_frame_equal(log, writing)
    assert list(log.columns)[-4:] == ["age", "income", ARMS, CHANCES]
    assert log[ARMS].notna().tolist() == log[CHANCES].notna().tolist() == [True] * 6 + [False] * 2
    expected = [np.array(contexts) for contexts, _ in calls]
    np.testing.assert_array_equal(log[ARMS][0], expected[0].ravel())
    expected[1][[1, 2]] = np.nan
    np.testing.assert_array_equal(log[ARMS][1], expected[1].ravel())
    np.testing.assert_array_equal(log[ARMS][2], expected[2][0])  # stored once
    expected[3][1] = np.nan
    np.testing.assert_array_equal(log[ARMS][3], expected[3].ravel())
    np.testing.assert_array_equal(log[ARMS][4], expected[4].ravel())
    for row, expected in enumerate(chances):
        np.testing.assert_array_equal(log[CHANCES][row], expected)
    read_back = candidates(log[:5], 4, ["age", "income"])
    assert read_back.contexts.shape == (5, 4, 2) and read_back.available.sum(axis=1).tolist() == [
        *(4, 2, 4, 3, 4)
    ]
    np.testing.assert_array_equal(read_back.contexts[2], np.tile(contexts_of(3)[0], (4, 1)))
    assert candidates(log[2:3], 4, ["age", "income"]).contexts.shape == (1, 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "suffix"), list(zip(OURS, cycle(["parquet", "csv"]), strict=False))
)
def test_every_policy_comes_back_bit_for_bit(name, suffix, tmp_path):
    path = tmp_path / f"log.{suffix}"
    alone = Calls(1).many(make(name), 100)
    with eh.log_to(path, make(name), candidates=True) as logged:
        Calls(1).many(logged, 100)
    again = eh.replay(path)
    assert bits(again) == bits(logged.policy) == bits(alone)
    same_decisions(again, alone)
    log = eh.read_log(path)
    decisions = log[log["propensity_score"].notna()]
    own = [
        chances[arm] for chances, arm in zip(decisions[CHANCES], decisions["item_id"], strict=True)
    ]
    np.testing.assert_allclose(own, decisions["propensity_score"], rtol=0, atol=1e-9)


@pytest.mark.slow
@settings(max_examples=12)
@given(
    seed=st.integers(0, 2**32 - 1),
    parts=st.lists(st.tuples(st.integers(0, 15), st.sampled_from(["close", "crash"])), max_size=4),
    suffix=st.sampled_from(["parquet", "csv"]),
)
def test_closed_or_crashed_anywhere_it_continues(tmp_path_factory, seed, parts, suffix):
    """The oracle writes the same calls in one run."""
    folder = tmp_path_factory.mktemp("log")
    path, whole = folder / f"log.{suffix}", folder / "whole.csv"
    mine, its, policy = Calls(seed), Calls(seed), make()
    with eh.log_to(whole, make(), candidates=True) as oracle:
        for number, end in parts:
            logged = eh.log_to(path, policy, candidates=True)
            mine.many(logged, number)
            its.many(oracle, number)
            if end == "close":
                logged.close()
            else:
                killed(logged)  # what a killed process leaves
            policy = eh.replay(path)
            assert bits(policy) == bits(oracle.policy)
            log, expected = (alike(eh.read_log(file)) for file in (path, whole))
            pd.testing.assert_frame_equal(log, expected)


ROUND = st.lists(
    st.floats(-1e100, 1e100, allow_subnormal=True),
    min_size=len(LABELS) * FEATURES,
    max_size=len(LABELS) * FEATURES,
)


@pytest.mark.slow
@settings(max_examples=10)
@given(rounds=st.lists(ROUND, min_size=1, max_size=6), suffix=st.sampled_from(["parquet", "csv"]))
def test_no_digit_is_lost(tmp_path_factory, rounds, suffix):
    path = tmp_path_factory.mktemp("log") / f"log.{suffix}"
    given = [np.reshape(values, (len(LABELS), FEATURES)) for values in rounds]
    with eh.log_to(path, make("UniformRandom"), candidates=True) as logged:
        for contexts in given:
            logged.select(contexts)
    for kept, contexts in zip(eh.read_log(path)[ARMS], given, strict=True):
        once = len({row.tobytes() for row in contexts}) == 1
        assert kept.tobytes() == (contexts[0] if once else contexts).tobytes()


@SUFFIXES
def test_a_log_continues_as_it_began(suffix, tmp_path):
    for wide in (False, True):
        path = tmp_path / f"{wide}.{suffix}"
        logged = eh.log_to(path, make(), candidates=wide)
        logged.select(contexts_of(1))
        first, line, _ = journal_of(path).read_bytes().split(b"\n")
        assert json.loads(first)["version"] == 3 and ("candidates" in json.loads(first)) == wide
        assert len(event_of(line)) == 9 + 2 * wide
        logged.close()
        log = eh.read_log(path)
        assert (ARMS in log) == (CHANCES in log) == wide
        if suffix == "csv":
            assert json.loads(beside(path).read_text())["version"] == 3
        with eh.log_to(path) as logged:  # continues as it began
            logged.select(contexts_of(2))
        assert (ARMS in eh.read_log(path)) == wide
        with pytest.raises(ValueError, match=f"candidates is {not wide}, but the log began with"):
            eh.log_to(path, candidates=not wide)
    with pytest.raises(ValueError, match="candidates is 'yes'; allowed is True or False"):
        eh.log_to(tmp_path / "new.csv", make(), candidates="yes")
    assert not (tmp_path / "new.csv.journal").exists()


def test_parquet_has_lists_with_nulls(tmp_path):
    """For engines that tell NaN from missing; and with a type, even without a single row."""
    import pyarrow.parquet

    with eh.log_to(tmp_path / "log.parquet", make(), candidates=True) as logged:
        logged.select(contexts_of(1), available=[0, 3])
    table = pyarrow.parquet.read_table(tmp_path / "log.parquet")
    [values] = table[ARMS].to_pylist()
    assert values[2:6] == [None] * 4 and values[:2] == contexts_of(1)[0].tolist()
    eh.log_to(tmp_path / "none.parquet", make(), candidates=True).close()
    schema = pyarrow.parquet.read_schema(tmp_path / "none.parquet")
    assert str(schema.field(ARMS).type).endswith("double>")
    assert eh.read_log(tmp_path / "none.parquet").empty


def test_a_bad_call_leaves_no_trace(tmp_path):
    path = tmp_path / "log.csv"
    with eh.log_to(path, make(), candidates=True) as logged:
        logged.select(contexts_of(0))
        before, journal = bits(logged.policy), journal_of(path).read_bytes()
        for contexts, available in [
            (contexts_of(0) * np.nan, None),
            (contexts_of(0)[:2], None),
            (contexts_of(0), []),
            (contexts_of(0), [0, 0]),
        ]:
            with pytest.raises(ValueError, match=r"contexts|available"):
                logged.select(contexts, available)
            assert (bits(logged.policy), journal_of(path).read_bytes()) == (before, journal)


class Stubborn(eh.TopInterval):
    """Decides in its own way, so that `propensities` does not match."""

    def select(self, contexts, available=None):
        decision = super().select(contexts, available)
        decision.propensity = decision.propensity / 2.0
        return decision


def test_probabilities_that_contradict_the_decision_are_not_kept(tmp_path):
    for suffix in ("csv", "parquet"):
        path = tmp_path / f"log.{suffix}"
        with eh.log_to(path, Stubborn(LABELS, FEATURES, seed=1), candidates=True) as logged:
            for seed in range(3):
                logged.select(contexts_of(seed))
            assert eh.read_log(path)[CHANCES].isna().all()
        log = eh.read_log(path)
        assert log[CHANCES].isna().all() and log[ARMS].notna().all()
        assert candidates(log, 4, ["x1", "x2"]).propensities is None


def doubles(*values):
    return base64.b64encode(np.array(values).tobytes()).decode()


def damaged(path, change):
    """A journal of two decisions, of which the second was changed."""
    logged = eh.log_to(path, make(), candidates=True)
    for seed in range(2):
        logged.select(contexts_of(seed), available=[0, 1, 2])
    killed(logged)
    first, *lines = journal_of(path).read_bytes().splitlines()
    events = [event_of(line) for line in lines]
    change(events[1])
    journal_of(path).write_bytes(signed([first, *(json.dumps(event).encode() for event in events)]))


def swap(place, value):
    return lambda event: event.__setitem__(place, value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "change"),
    [
        (
            "line 3 is damaged: a decision has 0 parts",
            lambda event: event.__delitem__(slice(9, 11)),
        ),
        ("line 3 is damaged", lambda event: event.append(None)),
        ("line 3 is damaged", swap(9, "not base64!")),
        ("line 3 is damaged", swap(9, "AAAA")),
        ("line 3 is damaged", swap(9, 5)),
        ("line 3 is damaged: a decision has no contexts", swap(9, None)),
        ("candidate_contexts in row 1 is of a wrong length; .* 8 numbers", swap(9, doubles(1.0))),
        ("row 1 is inconsistent with the context", swap(9, doubles(*range(8)))),
        ("row 1 is not finite", swap(9, doubles(*[np.inf] * 8))),
        ("row 1 is not finite", swap(9, doubles(1.0, np.nan, *[2.0] * 6))),
        ("candidate_propensities in row 1 is of a wrong length", swap(10, doubles(1.0))),
        ("row 1 is no distribution", swap(10, doubles(0.5, 0.5, 0.5, 0.0))),
        ("row 1 is no distribution", swap(10, doubles(np.nan, 0.5, 0.5, 0.0))),
        ("above 0 for an arm that was not available", swap(10, doubles(0.25, 0.25, 0.25, 0.25))),
        ("inconsistent with propensity_score", swap(10, doubles(0.96, 0.02, 0.02, 0.0))),
    ],
)
def test_damage_is_reported(words, change, tmp_path):
    damaged(tmp_path / "log.csv", lambda event: None)
    assert len(eh.read_log(tmp_path / "log.csv")) == 2
    journal_of(tmp_path / "log.csv").unlink()
    damaged(tmp_path / "log.csv", change)
    with pytest.raises(ValueError, match=words) as error:
        eh.read_log(tmp_path / "log.csv")
    assert "\n" not in str(error.value) and "log.csv.journal" in str(error.value)


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("candidate_contexts in row 3 is '\\[1.0,'; allowed is a JSON list", "[1.0,"),
        ("row 3 is 'soon'", "soon"),
        ("row 3 is of a wrong length", "[1.0]"),
        ("row 3 is missing or misplaced", ""),
    ],
)
def test_damage_in_csv_is_reported_with_its_line(words, value, tmp_path):
    path = tmp_path / "log.csv"
    with eh.log_to(path, make(), candidates=True) as logged:
        for seed in range(3):
            logged.select(contexts_of(seed))
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    frame.loc[1, ARMS] = value
    frame.to_csv(path, index=False)
    with pytest.raises(ValueError, match=words) as error:
        eh.read_log(path)
    assert "\n" not in str(error.value)
    frame.drop(columns=CHANCES).to_csv(path, index=False)
    with pytest.raises(ValueError, match=f"has lost its column '{CHANCES}'"):
        eh.read_log(path)


@SUFFIXES
def test_a_simulated_log_has_them_too(suffix, tmp_path):
    world = eh.SyntheticWorld(n_arms=6, n_features=3, n_sensitive=3, bias_mean=4)
    path, how = tmp_path / f"log.{suffix}", {"horizon": 200, "seed": 5}
    log = eh.simulate_log(eh.TopInterval, world, path=path, candidates=True, **how)
    plain = eh.simulate_log(eh.TopInterval, world, **how)
    pd.testing.assert_frame_equal(log.drop(columns=[ARMS, CHANCES]), plain)
    pd.testing.assert_frame_equal(eh.read_log(path), log)
    assert eh.read_log(path).attrs == log.attrs and len(log.attrs["evenhand"]["groups"]) == 6
    read_back = candidates(log, 6, ["x1", "x2", "x3"])
    assert read_back.contexts.shape == (200, 6, 3) and read_back.available.all()
    again, twin = eh.replay(path), eh.replay(path).clone()
    assert again.round == 200
    for row in range(200):  # a policy that learns the same would have done the same
        chances = twin.propensities(read_back.contexts[row])
        np.testing.assert_array_equal(chances, read_back.propensities[row])
        twin.update(twin.select(read_back.contexts[row]), log["reward"][row])
    assert bits(twin) == bits(again)


@pytest.mark.slow
@SUFFIXES
def test_audits_and_pandas_can_read_it(suffix, tmp_path):
    path = tmp_path / f"log.{suffix}"
    with eh.log_to(path, make(), features=["age", "income"], candidates=True) as logged:
        for seed in range(200):
            decision = logged.select(contexts_of(seed))
            logged.update(decision, float(decision.context.sum() + seed % 3))
            logged.true_reward(decision, 1.0)
    log = eh.read_log(path)
    assert find_columns(list(log.columns)).features == ("age", "income")
    report = eh.audit(str(path), windows=0)
    assert [str(name) for name in report.bias.features][-2:] == ["age", "income"]
    log.to_parquet(tmp_path / "copy.parquet")  # pandas can write what it read
    copy = eh.read_log(tmp_path / "copy.parquet")
    np.testing.assert_array_equal(copy[ARMS][3], log[ARMS][3])
    other = eh.replay(path, make("TopInterval"))
    assert other.counts.tolist() == logged.counts.tolist()
