"""The schema of a log: what is written, what is refused, and logs of other programs."""

import functools

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.errors import DataError, InputError
from evenhand.events import ROLES, find_columns
from evenhand.events._formats import FORMATS
from evenhand.events._journal import journal_of
from evenhand.events._schema import NAMES
from evenhand.events._tables import beside
from log_scripts import Calls, bits, contexts_of, make

SUFFIXES = pytest.mark.parametrize("suffix", ["parquet", "csv"])
TYPES = {
    "timestamp": "datetime64[us, UTC]",
    "round": "Int64",
    "item_id": "int64",
    "position": "Int64",
    "reward": "float64",
    "propensity_score": "float64",
    "group": "str",
    "true_reward": "float64",
    "override": "Int64",
    "explored": "boolean",
    "learned": "Int64",
    "decision_id": "str",
    "seq": "Int64",
    "reward_seq": "Int64",
    "reward_at": "datetime64[us, UTC]",
    "true_seq": "Int64",
    "true_at": "datetime64[us, UTC]",
}


@SUFFIXES
def test_a_row_says_what_happened(suffix, tmp_path):
    path = tmp_path / f"log.{suffix}"
    before = pd.Timestamp.now("UTC").floor("us")
    with eh.log_to(path, make(), features=["age", "income, net"]) as logged:
        decisions = [logged.select(contexts_of(t), available=[1, 2]) for t in range(4)]
        logged.update(decisions[2], 0.5)
        logged.update(decisions[:2], [1.5, 2.5])
        logged.true_reward(decisions[0], 7.0)
        logged.absorb([3], [[0.25, 0.5]], [9.0])
        writing = eh.read_log(path)  # while it is open
    log = eh.read_log(path)
    assert log.equals(writing)
    types = {name: str(kind) for name, kind in log.dtypes.items()}
    assert list(types) == [*TYPES, "age", "income, net"]
    assert {name: types[name] for name in TYPES} == TYPES
    assert log["round"].tolist() == [1, 2, 3, 4, pd.NA]
    assert log["item_id"].tolist() == [*(decision.arm for decision in decisions), 3]
    assert log["group"].tolist() == [*("FMFM"[decision.arm] for decision in decisions), "M"]
    assert log["propensity_score"][:4].tolist() == [decision.propensity for decision in decisions]
    assert log["explored"][:4].tolist() == [decision.explored for decision in decisions]
    assert log["learned"].tolist() == [2, 3, 1, pd.NA, 4]
    assert log["seq"].tolist() == [1, 2, 3, 4, 9]
    assert log["reward_seq"].tolist() == [6, 7, 5, pd.NA, 9]
    assert log["true_seq"].tolist() == [8, *[pd.NA] * 4]
    assert log["decision_id"][:4].tolist() == [logged.id_of(decision) for decision in decisions]
    assert log["decision_id"].isna().tolist() == [False] * 4 + [True]
    np.testing.assert_array_equal(log["reward"], [1.5, 2.5, 0.5, np.nan, 9.0])
    np.testing.assert_array_equal(log["true_reward"], [7.0] + [np.nan] * 4)
    np.testing.assert_array_equal(
        log[["age", "income, net"]], [*(decision.context for decision in decisions), [0.25, 0.5]]
    )
    assert log["timestamp"][:4].between(before, pd.Timestamp.now("UTC")).all()
    assert log["timestamp"][:4].is_monotonic_increasing and pd.isna(log["timestamp"][4])
    assert log["override"].isna().all() and (log["position"] == 0).all()


@SUFFIXES
def test_awkward_names_of_groups_survive(suffix, tmp_path):
    labels = ["NA", "", 'a "b", c', "Zoë\n2"]
    with eh.log_to(tmp_path / f"log.{suffix}", eh.UniformRandom(labels, n_features=1)) as logged:
        logged.absorb([0, 1, 2, 3], np.ones((4, 1)), [1.0] * 4)
    assert eh.read_log(tmp_path / f"log.{suffix}")["group"].tolist() == labels
    assert eh.replay(tmp_path / f"log.{suffix}").groups.labels == tuple(labels)


@SUFFIXES
def test_a_log_without_rows(suffix, tmp_path):
    eh.log_to(tmp_path / f"log.{suffix}", make()).close()
    assert eh.read_log(tmp_path / f"log.{suffix}").empty
    assert bits(eh.replay(tmp_path / f"log.{suffix}")) == bits(make())


def test_a_plain_reader_of_parquet_sees_missing_values(tmp_path):
    """Not NaN: engines distinguish the two."""
    import pyarrow.parquet

    with eh.log_to(tmp_path / "log.parquet", make()) as logged:
        logged.select(contexts_of(1))
    table = pyarrow.parquet.read_table(tmp_path / "log.parquet")
    for name in ("reward", "true_reward", "override", "learned"):
        assert table[name].null_count == 1, name
    assert str(table.schema.field("timestamp").type) == "timestamp[us, tz=UTC]"


def test_an_audit_finds_its_columns_in_a_log(tmp_path):
    with eh.log_to(tmp_path / "log.csv", make(), features=["age", "income"]) as logged:
        logged.select(contexts_of(1))
    columns = find_columns(list(eh.read_log(tmp_path / "log.csv").columns))
    assert columns.features == ("age", "income")
    assert (columns.arm, columns.learned, columns.round) == ("item_id", "learned", "round")
    assert set(NAMES) <= set(ROLES)


def test_a_reward_counts_once(tmp_path):
    with eh.log_to(tmp_path / "log.csv", make()) as logged:
        decisions = [logged.select(contexts_of(t)) for t in range(5)]
        logged.update(decisions[1], 1.0)
        before = bits(logged.policy)
        for wrong in (decisions[1], 2, [decisions[0], decisions[1]], [decisions[1]]):
            with pytest.raises(ValueError, match="round 2 already has its reward; it counts once"):
                logged.update(wrong, [1.0] * len(wrong) if isinstance(wrong, list) else 1.0)
        with pytest.raises(ValueError, match="names a round twice"):
            logged.update([decisions[0], 1], [1.0, 2.0])
        assert bits(logged.policy) == before and logged.waiting == [1, 3, 4, 5]
    assert bits(eh.replay(tmp_path / "log.csv")) == before


def test_rewards_find_their_decision_after_a_restart(tmp_path):
    path, alone = tmp_path / "log.parquet", make()
    decisions = [alone.select(contexts_of(t)) for t in range(5)]
    with eh.log_to(path, make()) as logged:
        old = [logged.select(contexts_of(t)) for t in range(5)]
        logged.update(old[4], 5.0)
    with eh.log_to(path) as logged:
        assert logged.waiting == [1, 2, 3, 4]
        logged.update(3, 3.0)
        logged.update([np.int64(1), old[1]], [1.0, 2.0])
    for number in (4, 2, 0, 1):
        alone.update(decisions[number], number + 1.0)
    assert bits(eh.replay(path)) == bits(logged.policy) == bits(alone)


def test_bad_calls_are_refused_and_leave_no_trace(tmp_path):
    path = tmp_path / "log.csv"
    other = make(seed=99)
    with eh.log_to(path, make()) as logged:
        decisions = [logged.select(contexts_of(t)) for t in range(3)]
        strange = [other.select(contexts_of(50 + t)) for t in range(4)]
        decisions[2].context[0] += 1.0
        before, journal = bits(logged.policy), journal_of(path).read_bytes()
        good = contexts_of(0)[0]
        for words, call in [
            ("contexts of arm", lambda: logged.select(contexts_of(0) * np.nan)),
            ("available leaves no arm", lambda: logged.select(contexts_of(0), [False] * 4)),
            ("reward is nan", lambda: logged.update(decisions[0], np.nan)),
            ("reward is 'x'", lambda: logged.update(decisions[0], "x")),
            ("rewards in row 1", lambda: logged.update(decisions[:2], [1.0, np.inf])),
            ("rewards has shape", lambda: logged.update(decisions[:2], [1.0])),
            ("one number for one", lambda: logged.update(1, [1.0])),
            ("differs from that of round 1", lambda: logged.update(strange[0], 1.0)),
            ("differs from that of round 3", lambda: logged.update(decisions[2], 1.0)),
            ("round 4 is not in this log", lambda: logged.update(strange[3], 1.0)),
            ("round 0 is not in this log", lambda: logged.update(0, 1.0)),
            ("decision is 'one'", lambda: logged.update("one", 1.0)),
            ("decision is True", lambda: logged.update(True, 1.0)),
            ("arms is", lambda: logged.absorb([4], [good], [1.0])),
            ("which the policy chose", lambda: logged.override(1, decisions[0].arm, good)),
            ("arms is", lambda: logged.override(1, 9, good)),
            ("contexts has shape", lambda: logged.override(1, 1 - decisions[0].arm % 2, [1.0])),
            (
                "contexts in row 0",
                lambda: logged.override(1, 1 - decisions[0].arm % 2, good * np.nan),
            ),
            ("round 9 is not in this log", lambda: logged.true_reward(9, 1.0)),
            ("reward is None", lambda: logged.true_reward(1, None)),
        ]:
            with pytest.raises(ValueError, match=words) as error:
                call()
            if words.startswith(("decision is", "which", "one number")):
                assert "\n" not in str(error.value)
            assert (bits(logged.policy), journal_of(path).read_bytes()) == (before, journal), words
        logged.update([], [])  # nothing to do, as with a policy
    for call in (lambda: logged.select(contexts_of(0)), lambda: logged.update(decisions[0], 1.0)):
        with pytest.raises(ValueError, match="is closed; open it again"):
            call()
    logged.close()  # again: nothing to do


@SUFFIXES
def test_an_override_has_its_own_row(suffix, tmp_path):
    """The reward is with the arm that earned it, and the propensity with the chosen one."""
    path = tmp_path / f"log.{suffix}"
    with eh.log_to(path, make()) as logged:
        decisions = [logged.select(contexts_of(t)) for t in range(2)]
        others = [(decision.arm + 1) % 4 for decision in decisions]
        for decision, other in zip(decisions, others, strict=True):
            logged.override(decision, other, [float(other), 1.0])
        with pytest.raises(ValueError, match="was already overridden"):
            logged.override(1, others[0], [1.0, 1.0])
        logged.update(decisions[0], 4.0)
        logged.true_reward(decisions[0], 6.0)
        assert logged.waiting == [2]
    log = eh.read_log(path)
    assert log["round"].tolist() == [1, 2, 1, 2]
    assert log["item_id"].tolist() == [decisions[0].arm, decisions[1].arm, *others]
    assert log["override"].tolist() == [*others, pd.NA, pd.NA]
    assert log["propensity_score"].notna().tolist() == [True, True, False, False]
    np.testing.assert_array_equal(log["reward"], [np.nan, np.nan, 4.0, np.nan])
    np.testing.assert_array_equal(log["true_reward"], [np.nan, np.nan, 6.0, np.nan])
    assert log["x1"][2:].tolist() == others
    with eh.log_to(path) as logged:  # both kinds come back
        assert logged.waiting == [2]
        with pytest.raises(ValueError, match="already has its reward"):
            logged.update(1, 1.0)
        with pytest.raises(ValueError, match="was already overridden"):
            logged.override(2, decisions[1].arm, [1.0, 1.0])
        logged.update(decisions[1], 2.0)
    assert eh.replay(path).counts.tolist() == np.bincount(others, minlength=4).tolist()


def test_the_rest_is_the_policys_own(tmp_path):
    with eh.log_to(tmp_path / "log.csv", make()) as logged:
        Calls(1).many(logged, 40)
        assert logged.counts.tolist() == logged.policy.counts.tolist()
        logged.save(tmp_path / "policy.json")
        with pytest.raises(AttributeError):
            _ = logged.nothing
    assert bits(eh.load(tmp_path / "policy.json")) == bits(logged.policy)


@pytest.mark.parametrize(
    ("words", "change"),
    [
        ("ends in .parquet or .csv", {"path": "log.txt"}),
        ("a folder that exists", {"path": "nowhere/log.csv"}),
        ("there is no log; give a policy", {"policy": None}),
        ("policy is <class", {"policy": eh.TopInterval}),
        ("2 different names", {"features": ["a"]}),
        ("2 different names", {"features": ["a", "a"]}),
        ("allowed is a list of 2", {"features": "ab"}),
        ("'click', which is the name of another column", {"features": ["a", "click"]}),
        ("sync is -1", {"sync": -1}),
        ("give its values as a list", {"policy": lambda: make(exploration=lambda t: 1 / t)}),
    ],
)
def test_bad_logs_are_not_begun(words, change, tmp_path):
    given = {"path": "log.csv", "policy": make(), **change}
    if callable(given["policy"]) and not isinstance(given["policy"], type):
        given["policy"] = given["policy"]()
    with pytest.raises(ValueError, match=words):
        eh.log_to(tmp_path / given.pop("path"), **given)
    assert not list(tmp_path.iterdir())


GOOD = {
    "timestamp": ["2026-01-31T12:00:00Z", "2026-01-31 13:00:00+01:00", ""],
    "round": [1, 2, ""],
    "item_id": [0, 1, 0],
    "reward": [1.5, "", 2.0],
    "propensity_score": [0.5, 1, ""],
    "group": ["F", "M", "F"],
    "explored": ["True", "false", ""],
    "learned": [2, "", 1],
}


def test_reading_gives_types(tmp_path):
    pd.DataFrame(GOOD).to_csv(tmp_path / "log.csv", index=False)
    log = eh.read_log(tmp_path / "log.csv")
    assert {name: str(kind) for name, kind in log.dtypes.items()} == {n: TYPES[n] for n in GOOD}
    assert log["timestamp"][0] == log["timestamp"][1] == pd.Timestamp("2026-01-31T12:00Z")


@SUFFIXES
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("timestamp", ["2026-01-31T12:00:00Z", "soon", None]),
        ("timestamp", [None, 1700000000.0, None]),
        ("round", [1.0, 0.0, 2.0]),
        ("round", [1.0, 1.5, 2.0]),
        ("item_id", ["a", None, "b"]),
        ("reward", [1.0, np.inf, 2.0]),
        ("reward", ["1.0", "much", "2.0"]),
        ("reward", ["1.0", "nan", "2.0"]),
        ("propensity_score", [0.5, 0.0, 1.0]),
        ("propensity_score", [0.5, 1.01, 1.0]),
        ("explored", ["true", "perhaps", None]),
        ("learned", [2.0, -1.0, 1.0]),
        ("learned", [2.0, 3.0, 1.0]),  # a reward that is missing
        ("learned", [1.0, 1.0, 2.0]),
        ("round", [1.0, 1.0, 2.0]),
    ],
)
def test_reading_names_the_column_and_the_row(name, values, suffix, tmp_path):
    path = tmp_path / f"log.{suffix}"
    frame = pd.DataFrame(GOOD).replace("", None).assign(**{name: values})
    frame["reward"] = frame["reward"].astype(object if name == "reward" else float)
    if suffix == "parquet":
        for column in set(frame) - {name, "timestamp", "group", "explored"}:
            frame[column] = frame[column].astype(float)
        if name == "reward" and isinstance(values[0], float):
            frame["reward"] = frame["reward"].astype(float)
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    row = 3 if suffix == "csv" else 1
    with pytest.raises(ValueError, match=f"{name} in row {row} is") as error:
        eh.read_log(path)
    assert "\n" not in str(error.value)


def test_files_that_are_not_logs(tmp_path):
    with pytest.raises(ValueError, match="there is no log"):
        eh.read_log(tmp_path / "log.csv")
    for suffix in ("parquet", "csv"):
        path = tmp_path / f"log.{suffix}"
        for content in (b"", b"PAR1\0\0\0\0PAR1", b"\xff\xfe,\x80\n1,2\n", b"a,b\n1,2\n"):
            path.write_bytes(content)
            with pytest.raises(ValueError) as error:
                eh.read_log(path)
            assert "\n" not in str(error.value)


def test_a_parquet_file_cut_off_anywhere_is_reported(tmp_path):
    with eh.log_to(tmp_path / "log.parquet", make()) as logged:
        Calls(1).many(logged, 30)
    whole = (tmp_path / "log.parquet").read_bytes()
    for end in range(0, len(whole), len(whole) // 40):
        (tmp_path / "log.parquet").write_bytes(whole[:end])
        with pytest.raises(ValueError, match="not a Parquet file, or is damaged"):
            eh.replay(tmp_path / "log.parquet")


# Logs of other programs ------------------------------------------------------------------------


def others_log(number=60):
    """Like the Open Bandit data: names of arms, clicks, several positions."""
    generator = np.random.default_rng(3)
    arms = generator.integers(4, size=number)
    return arms, pd.DataFrame(
        {
            "timestamp": pd.date_range("2019-11-24", periods=number, tz="UTC"),
            "item_id": np.array(["north", "east", "south", "west"])[arms],
            "position": generator.integers(1, 4, size=number),
            "click": np.where(generator.random(number) < 0.2, np.nan, arms % 2),
            "propensity_score": 0.25,
            "age": generator.standard_normal(number),
            "income": generator.standard_normal(number),
        }
    )


@pytest.mark.parametrize("way", ["frame", "parquet", "csv", "semicolons"])
def test_a_policy_learns_from_a_log_of_another_program(way, tmp_path):
    arms, frame = others_log()
    log = frame
    if way == "parquet":
        frame.to_parquet(log := tmp_path / "log.parquet")
    elif way != "frame":
        mark = ";" if way == "semicolons" else ","
        frame.to_csv(log := tmp_path / "log.csv", index=False, sep=mark)
    policy, expected = make(), make()
    names = ["north", "east", "south", "west"]
    learned = eh.replay(log, policy, arms=names, features=["age", "income"])
    rewarded = frame["click"].notna().to_numpy()
    contexts = frame[["age", "income"]].to_numpy()
    expected.absorb(arms[rewarded], contexts[rewarded], frame["click"].to_numpy()[rewarded])
    assert learned is policy and bits(policy) == bits(expected) and policy.round == 0
    backwards = make()
    mapping = {name: number for number, name in enumerate(names)}
    renamed = frame.rename(columns={"click": "paid", "item_id": "branch"})
    roles = {"reward": "paid", "arm": "branch"}
    eh.replay(renamed, backwards, mapping, roles, ["age", "income"])
    assert bits(backwards) == bits(expected)


def test_a_file_of_another_program_with_its_own_names(tmp_path):
    _, frame = others_log()
    renamed = frame.rename(columns={"click": "paid", "item_id": "branch"})
    renamed.to_csv(tmp_path / "log.csv", index=False)
    roles = {"reward": "paid", "arm": "branch"}
    with pytest.raises(ValueError, match="no column is the arm"):
        eh.read_log(tmp_path / "log.csv")
    read = eh.read_log(tmp_path / "log.csv", columns=roles)
    np.testing.assert_array_equal(read["paid"], frame["click"])
    assert "evenhand" not in read.attrs
    names = ["north", "east", "south", "west"]
    learned, expected = (
        eh.replay(log, make(), names, roles, ["age", "income"])
        for log in (tmp_path / "log.csv", renamed)
    )
    assert bits(learned) == bits(expected) and learned.counts.sum() > 0


def test_a_log_of_another_program_is_read_like_any_table(tmp_path):
    _, frame = others_log()
    frame = frame.assign(sex=np.where(frame["age"] > 0, "01", "NA"), new=frame["age"] > 0)
    frame.to_csv(tmp_path / "log.csv", index=False, sep=";")
    read = eh.read_log(tmp_path / "log.csv", columns={"group": "sex"})
    assert read["sex"].tolist() == frame["sex"].tolist()  # a code, and no missing values
    assert read["new"].dtype == bool and read.index.tolist() == list(range(60))
    np.testing.assert_array_equal(read["age"], frame["age"])
    frame.loc[3, "propensity_score"] = 2.0
    frame.to_csv(tmp_path / "log.csv", index=False, sep=";")
    with pytest.raises(DataError, match="propensity_score in row 5 is 2"):
        eh.read_log(tmp_path / "log.csv")


def test_files_of_other_programs_are_read_as_they_were_written(tmp_path):
    text = "item_id;click;Größe\n0;0,5;1,5\n1;1,5;2,25\n"
    (log := tmp_path / "log.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(DataError, match='not utf-8; say what it is, such as encoding="latin-1"'):
        eh.read_log(log)
    how = {"encoding": "latin-1", "decimal": ","}
    assert eh.read_log(log, **how)["Größe"].tolist() == [1.5, 2.25]
    policy, expected = (eh.TopInterval(["F", "M"], n_features=1, seed=1) for _ in range(2))
    expected.absorb([0, 1], [[1.5], [2.25]], [0.5, 1.5])
    assert bits(eh.replay(log, policy, features=["Größe"], **how)) == bits(expected)
    with pytest.raises(InputError, match="decimal is for CSV files, which a frame is not"):
        eh.replay(pd.DataFrame({"arm": [0], "reward": [1.0]}), policy, decimal=",")
    with pytest.raises(InputError, match="encoding needs a policy"):
        eh.replay(log, encoding="latin-1")


@pytest.mark.parametrize("given", [{"columns": {"reward": "paid"}}, {"delimiter": ";"}])
def test_our_own_log_needs_no_description(given, tmp_path):
    with eh.log_to(tmp_path / "log.csv", make()) as logged:
        Calls(1).many(logged, 5)
    with pytest.raises(InputError, match="for logs that evenhand did not write"):
        eh.read_log(tmp_path / "log.csv", **given)


@pytest.mark.parametrize("number", [0, 1])
def test_groups_that_are_numbers_may_be_called_as_worlds_call_them(number):
    policy = eh.TopInterval(["black=0", "black=1"], n_features=1)
    log = pd.DataFrame({"arm": [number], "reward": [1.0], "black": [1], "x1": [1.0]})
    if number == 1:
        assert eh.replay(log, policy, columns={"group": "black"}).counts.tolist() == [0, 1]
    else:
        with pytest.raises(DataError, match="black in row 0 is '1', but the policy has arm 0"):
            eh.replay(log, policy, columns={"group": "black"})


def test_our_own_log_teaches_another_policy(tmp_path):
    with eh.log_to(tmp_path / "log.csv", make(), features=["age", "income"]) as logged:
        Calls(1).many(logged, 60)
    other = eh.replay(tmp_path / "log.csv", make("TopInterval"))
    assert other.counts.tolist() == logged.counts.tolist() and other.round == 0
    again = eh.replay(eh.read_log(tmp_path / "log.csv"), make(), features=["age", "income"])
    again.round = logged.round
    assert bits(again) == bits(logged.policy)


@pytest.mark.parametrize(
    ("words", "change", "given"),
    [
        ("item_id in row 1 is 'north', allowed are arms 0 to 3", {}, {"arms": None}),
        ("item_id in row .* is 'west', which is not among arms", {}, {"arms": ["north", "east"]}),
        ("arms has number 7", {}, {"arms": {"north": 7}}),
        ("no column 'x1'; give features", {}, {"features": None}),
        ("the policy has 2 features", {}, {"features": ["age"]}),
        ("no column 'wage'", {}, {"features": ["age", "wage"]}),
        ("no column is the reward", {"click": None}, {}),
        ("click in row 1 is inf", {"click": [1.0, np.inf] * 30}, {}),
        ("age in row 1 is missing", {"age": [1.0, np.nan] * 30}, {}),
        ("group in row 1 is 'X', but the policy has arm 0 in group 'F'", {"group": "X"}, {}),
        ("which is not a column; did you mean 'click'", {}, {"columns": {"reward": "clik"}}),
        ("policy is 5", {}, {"policy": 5}),
        ("give a policy that learns", {}, {"policy": None, "arms": None, "features": None}),
        ("arms needs a policy", {}, {"policy": None}),
        ("log is 5", {}, {"log": 5}),
    ],
)
def test_logs_that_do_not_fit_are_refused(words, change, given):
    _, frame = others_log()
    frame = frame.assign(**change).dropna(axis="columns", how="all")
    policy = make()
    arguments = {
        "log": frame,
        "policy": policy,
        "arms": ["north", "east", "south", "west"],
        "features": ["age", "income"],
        **given,
    }
    with pytest.raises(ValueError, match=words) as error:
        eh.replay(**arguments)
    assert "\n" not in str(error.value) and policy.counts.sum() == 0


def test_evenhand_does_not_write_into_logs_of_other_programs(tmp_path):
    others_log()[1].to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(ValueError, match="a log that evenhand did not write"):
        eh.log_to(tmp_path / "log.csv", make())
    assert [file.name for file in tmp_path.iterdir()] == ["log.csv"]


# Simulated runs ---------------------------------------------------------------------------------

WORLD = eh.SyntheticWorld(n_arms=6, n_features=3, n_sensitive=3, bias_mean=4)


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(eh.GroupFairTopInterval, id="GroupFairTopInterval"),
        pytest.param(
            functools.partial(eh.NaiveFair, inside="thompson"),
            id="NaiveFair",
            marks=pytest.mark.slow,
        ),
    ],
)
@pytest.mark.parametrize("replication", [0, 2])
def test_a_simulated_log_is_that_of_simulate(policy, replication):
    log = eh.simulate_log(policy, WORLD, 400, seed=5, replication=replication, delta=0.2)
    traces = eh.simulate({"it": policy}, WORLD, 400, 3, seed=5, trace=True, delta=0.2).trace
    trace = traces[traces["replication"] == replication]
    assert log["item_id"].tolist() == trace["arm"].tolist()
    assert log["explored"].tolist() == trace["explored"].tolist()
    assert log["reward"].tolist() == trace["reward"].tolist()
    assert log["round"].tolist() == log["learned"].tolist() == trace["round"].tolist()
    assert log["group"].tolist() == [WORLD.groups.labels[arm] for arm in trace["arm"]]
    # true regret is the best true reward minus the true reward: never more than the best
    best = log["true_reward"].to_numpy() + trace["true_regret"].to_numpy()
    assert (best >= log["true_reward"].to_numpy()).all() and log["true_reward"].nunique() > 300


@SUFFIXES
def test_a_simulated_log_can_be_replayed(suffix, tmp_path):
    path = tmp_path / f"log.{suffix}"
    log = eh.simulate_log(eh.MultiGroupFairTopInterval, WORLD, 200, seed=5, path=path)
    again = eh.replay(path)
    assert again.round == again.counts.sum() == 200
    pd.testing.assert_frame_equal(eh.read_log(path), log)
    taught = eh.replay(log, again.clone())
    taught.round = 200
    assert bits(taught) == bits(again)
    with pytest.raises(ValueError, match="already exists"):
        eh.simulate_log(eh.TopInterval, WORLD, 10, path=path)
    assert beside(path).exists() == (suffix == "csv")


def test_simulated_rewards_are_the_worlds():
    """Without noise, both rewards follow from context, arm and group."""
    coefficients, bias = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0.0, -5.0], [0.0, 0.0]])
    world = eh.LinearWorld(["F", "M"], coefficients, bias, noise=0.0)
    log = eh.simulate_log(eh.UniformRandom, world, 300, seed=1)
    arms, contexts = log["item_id"].to_numpy(), log[["x1", "x2"]].to_numpy()
    true = (coefficients[arms] * contexts).sum(axis=1)
    np.testing.assert_allclose(log["true_reward"], true, rtol=1e-12)
    np.testing.assert_allclose(log["reward"], true + (bias[arms] * contexts).sum(axis=1))


@pytest.mark.parametrize(
    ("words", "change"),
    [
        ("not a class of policies", {"policy": 3}),
        ("world is 3", {"world": 3}),
        ("horizon is 0", {"horizon": 0}),
        ("replication is -1", {"replication": -1}),
        ("policy TopInterval: .*'care'", {"care": 3}),
        ("3 different names", {"features": ["a"]}),
    ],
)
def test_bad_simulated_logs_are_refused(words, change):
    with pytest.raises(ValueError, match=words):
        eh.simulate_log(**{"policy": eh.TopInterval, "world": WORLD, "horizon": 5, **change})


@SUFFIXES
def test_a_new_format_is_an_entry_of_the_table(suffix, tmp_path, monkeypatch):
    """Everything that writes or reads a log asks the table, whatever the file is called."""
    monkeypatch.setitem(FORMATS, ".log", FORMATS[f".{suffix}"])
    path = tmp_path / "decisions.log"
    with eh.log_to(path, make()) as logged:
        logged.update(logged.select(contexts_of(1)), 0.5)
    assert beside(path).exists() == (suffix == "csv")
    assert bits(eh.replay(path)) == bits(logged.policy)
    assert eh.replay(path, make()).counts.sum() == 1
    assert eh.offpolicy.Logged.from_log(path).n == 1
    with pytest.raises(ValueError, match=r"ends in .parquet or .csv or .log"):
        eh.log_to(tmp_path / "decisions.txt", make())
