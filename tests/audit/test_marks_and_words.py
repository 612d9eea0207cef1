"""Logs as people have them: rewards in words, marks for missing values, features that give away."""

from __future__ import annotations

import json
import os
import signal
import sys
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand as eh
from audit_logs import made_log, refused, refused_with_flags
from evenhand.audit._input.engines import answer_of
from evenhand.cli import main
from evenhand.cli._log_options import worth_of
from marked_logs import MARKS, assert_same, both, marked
from postgres import write_table


def in_words():
    """A log with a reward in words, and the same with numbers."""
    plain = made_log(51)
    plain["reward"] = (plain["reward"] > 1.0).astype(float)
    return plain.assign(reward=plain["reward"].map({1.0: "approved", 0.0: "denied"})), plain


# Rewards in words


@cache
def in_numbers():
    """The audit of the log with numbers."""
    return eh.audit(in_words()[1], reference="M", logistic=False)


@pytest.mark.slow
def test_a_reward_in_words_is_that_in_numbers():
    words, _ = in_words()
    audit = eh.audit(words, reference="M", reward_values={"approved": 1, "denied": 0})
    assert_same(audit, in_numbers())
    assert audit.facts.binary
    assert "The values of reward count as 'approved' 1, 'denied' 0." in audit.method
    assert json.loads(audit.to_json())["reward_values"] == {"approved": 1.0, "denied": 0.0}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (lambda y: y.map({1.0: 1, 0.0: 2}), {1: 1, 2: 0}),
        (lambda y: y.map({1.0: 1.5, 0.0: 2.0}), {"1.5": 1, "2": 0}),
        (lambda y: y.map({1.0: 1.5, 0.0: 0.1}).astype(np.float32), {1.5: 1, 0.1: 0}),
        (lambda y: y.map({1.0: False, 0.0: True}), {"true": 0, "false": 1}),
        (lambda y: y.map({1.0: "  yes", 0.0: "no "}), {"yes": 1, "no": 0}),
        (lambda y: y.astype(bool), None),
    ],
)
def test_any_value_can_have_a_number(kind, values):
    _, plain = in_words()
    table = plain.assign(reward=kind(plain["reward"]))
    audit = eh.audit(table, reference="M", reward_values=values, logistic=False)
    assert_same(audit, in_numbers())


@pytest.mark.slow
def test_a_value_without_a_number_is_counted_and_named():
    words, _ = in_words()
    words.loc[words.index[::50], "reward"] = "pending"
    given = {"approved": 1, "denied": 0}
    said = refused(words, reward_values=given)
    assert "'reward' has 'pending' in 12 rows, which reward_values does not name" in said
    assert "it names approved, denied" in said
    choice = {"missing_marks": ["pending"], "missing": "drop", "logistic": False}
    audit = eh.audit(words, reward_values=given, **choice)
    assert audit.facts.used == len(words) - 12


def test_text_is_refused_with_the_flag_to_paste():
    words, _ = in_words()
    said = refused(words)
    counts = words["reward"].value_counts()
    for name in ("approved", "denied"):
        assert f"{name!r} in {counts[name]} rows" in said
    assert 'reward_values={"approved": 1, "denied": 0}' in said
    odd = words.assign(reward=words["reward"].map({"approved": "it is, yes", "denied": "No"}))
    assert "--reward-values 'it is, yes=1,No=0'" in refused_with_flags(odd)
    many = words.assign(reward=[f"w{i % 30}" for i in range(len(words))])
    said = refused(many)
    assert said.count(" in 20 rows") == 6 and "and others" in said


@pytest.mark.slow
def test_the_flag_of_the_message_works(tmp_path, capsys):
    words, _ = in_words()
    words["reward"] = words["reward"].map({"approved": "it is, yes", "denied": "x=No"})
    words.to_csv(tmp_path / "log.csv", index=False)
    call = ["audit", str(tmp_path / "log.csv"), "--reference", "M", "--no-logistic"]
    assert main([*call, "--out", str(tmp_path / "r.json")]) == 2
    assert not (tmp_path / "r.json").exists()
    flag = ["--reward-values", "it is, yes=1,x=No=0"]
    assert main([*call, *flag, "--out", str(tmp_path / "r.json")]) == 0
    written = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    expected = in_numbers().to_dict()["bias"]
    assert written["bias"]["groups"] == expected["groups"]
    name = tmp_path / "columns.toml"
    name.write_text('[reward_values]\n"it is, yes" = 1\n"x=No" = 0\n')
    assert main([*call, "--columns", str(name), "--out", str(tmp_path / "t.json")]) == 0
    again = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))
    assert again["bias"] == written["bias"]
    assert main([*call, "--reward-values", "yes", "--out", str(tmp_path / "r.json")]) == 2
    assert "--reward-values is 'yes'; allowed are values with their numbers" in (
        capsys.readouterr().err
    )


@given(
    st.dictionaries(
        st.text("ab=, é'", min_size=1).map(str.strip).filter(bool),
        st.floats(-1e6, 1e6).map(lambda value: round(value, 3)),
        min_size=1,
        max_size=5,
    )
)
@settings(max_examples=60)
def test_what_is_written_is_what_is_read(worth):
    assert worth_of(",".join(f"{name}={value!r}" for name, value in worth.items())) == worth


@pytest.mark.slow
def test_true_rewards_take_the_same_numbers():
    words, plain = in_words()
    words["true_reward"] = words["reward"]
    plain["true_reward"] = plain["reward"]
    values = {"approved": 1, "denied": 0}
    audit = eh.audit(words, reward_values=values, logistic=False)
    pd.testing.assert_frame_equal(audit.groups, eh.audit(plain, logistic=False).groups)
    # Numbers that are not among the values are numbers.
    words["true_reward"] = plain["true_reward"] = np.linspace(0.0, 1.0, len(words))
    audit = eh.audit(words, reward_values=values, logistic=False)
    pd.testing.assert_frame_equal(audit.groups, eh.audit(plain, logistic=False).groups)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"reward_values": {"a": "b"}}, "reward_values['a'] is 'b'"),
        ({"reward_values": {}}, "reward_values is {}; allowed is a number for every value"),
        ({"reward_values": {1: 1, "1": 0}}, "it has the same value twice"),
        ({"missing_marks": 3}, "missing_marks is 3; allowed is a list"),
        ({"missing_marks": [None]}, "missing_marks has None; allowed are strings and numbers"),
        ({"reward_values": {"?": 0}, "missing_marks": ["?"]}, "both have '?'"),
    ],
)
def test_bad_values_and_marks(options, words):
    assert words in refused(made_log(53), **options)


# Marks for missing values


@cache
def unmarked(missing):
    """The audit of the log with nothing in the place of marks."""
    return eh.audit(marked()[1], reference="M", missing=missing, weight="w")


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["drop", "fill"])
@pytest.mark.parametrize("form", ["frame", "parquet", "csv"])
def test_marks_are_missing_values(form, missing, tmp_path):
    words, plain = marked()
    table = words
    if form != "frame":
        table = tmp_path / f"log.{form}"
        words.to_parquet(table) if form == "parquet" else words.to_csv(table, index=False)
    options = {"reference": "M", "missing": missing, "weight": "w"}
    audit = eh.audit(table, missing_marks=MARKS, **options)
    assert_same(audit, unmarked(missing))
    assert {"x0", "age", "x1"} <= set(audit.bias.features)  # numbers, not categories
    counted = audit.missing.groupby("column")["missing"].sum()
    for name in ("x0", "age", "town", "group", "w"):
        assert counted[name] == plain[name].isna().sum() > 0
    assert "'?', 'NA', '-9', and empty text" in " ".join(audit.method)


def test_without_marks_they_are_refused_with_the_way_out():
    words, _ = marked()
    said = refused(words, leave_out=["w"])
    assert "feature 'x0' holds numbers as text and words, such as '?'" in said
    assert 'missing_marks=["?"]' in said
    # Marks that are known are named again beside the new one.
    more = words.assign(x0=words["x0"].replace({" ?": "?"}).where(words.index % 30 != 7, "-"))
    assert "--missing-marks '?,NA,-9,-'" in refused_with_flags(more, missing_marks=MARKS)
    assert "weight is 'w', a column of text that holds numbers as text and words" in (
        refused(words, weight="w", missing_marks=["?"])
    )


def test_text_without_marks_stays_text():
    log = made_log(54)
    log["code"] = np.where(np.arange(len(log)) % 2, "01", "02")
    log["x0"] = log["x0"].round(3).astype(str)
    assert "'x0' holds numbers as text" in refused(log, missing_marks=["?"])
    audit = eh.audit(log, missing_marks=["?"], leave_out=["x0"])
    assert any(name.startswith("code=0") for name in audit.bias.features)


def test_marks_in_groups_and_categories_that_are_numbers():
    log = made_log(54)
    log["group"] = log["group"].map({"F": 1, "M": 2}).where(log.index % 40 != 0, -9)
    log["code"] = np.where(np.arange(len(log)) % 50 == 1, -9, np.arange(len(log)) % 3)
    audit = eh.audit(log, nominal_columns=["code"], missing_marks=[-9], missing="fill")
    assert audit.bias.groups == ("group=1", "group=2")
    codes = [name for name in audit.bias.features if name.startswith("code=")]
    assert len(codes) == 3 and "code=missing" in codes and "code=-9" not in codes
    counted = audit.missing.groupby("column")["missing"].sum()
    assert counted.to_dict() == {"group": 15, "code": 12}


def test_a_frame_of_numbers_and_words_together():
    log = made_log(55)
    plain = log.assign(m=[1.0, np.nan, 3.0, 5.0, 7.0] * 120)
    log["m"] = [1, "?", 3, 5, 7] * 120
    assert "feature 'm' holds numbers as text and words, such as '?'" in refused(log)
    audit = eh.audit(log, missing_marks=["?"], missing="fill")
    assert_same(audit, eh.audit(plain, missing="fill"))


@pytest.mark.slow
def test_marks_that_a_csv_file_shows_late(tmp_path):
    """DuckDB looks at the first 100,000 rows to find the kinds of columns."""
    log = made_log(56, n=120_000, d=1).round(2)
    log["x0"] = log["x0"].astype(str)
    log.loc[110_000, "x0"] = "?"
    log.to_csv(tmp_path / "log.csv", index=False)
    said = refused(tmp_path / "log.csv")
    assert "column 'x0' has '?' on line 110,002" in said and 'missing_marks=["?"]' in said
    audit = eh.audit(tmp_path / "log.csv", missing_marks=["?"], missing="drop")
    assert audit.facts.used == len(log) - 1 and audit.bias.features == ("intercept", "x0")


@pytest.mark.slow
def test_marks_from_the_command_line(tmp_path):
    words, plain = marked()
    words.to_parquet(tmp_path / "log.parquet")
    call = ["audit", str(tmp_path / "log.parquet"), "--weight", "w", "--missing", "fill"]
    out = tmp_path / "r.json"
    assert main([*call, "--missing-marks", "?,NA,-9", "--out", str(out)]) == 0
    written = json.loads(out.read_text(encoding="utf-8"))
    assert written["missing_marks"] == ["?", "NA", "-9"]
    assert written["rows_used"] == unmarked("fill").facts.used < len(plain)
    (tmp_path / "columns.toml").write_text('missing_marks = ["?", "NA", -9]\n')
    again = tmp_path / "again.json"
    assert main([*call, "--columns", str(tmp_path / "columns.toml"), "--out", str(again)]) == 0
    assert json.loads(again.read_text(encoding="utf-8"))["bias"] == written["bias"]


@pytest.mark.slow
def test_words_and_marks_in_postgresql(postgres):
    words, options, (plain, usual) = both(*marked(), logistic=False)
    write_table(postgres, "words", words)
    write_table(postgres, "plain", plain)
    expected = eh.audit(plain, **usual)
    assert_same(eh.audit(f"{postgres}::words", **options), expected)
    assert_same(eh.audit(f"{postgres}::plain", **usual), expected)  # a reward of true and false
    with pytest.raises(ValueError, match=r'reward_values={"approved": 1, "denied": 0}'):
        eh.audit(f"{postgres}::words")


# What cannot be filled in, and what the value filled in does


@pytest.mark.slow
@pytest.mark.parametrize("role", ["group", "reward", "weight", "cluster"])
@pytest.mark.parametrize("missing", ["drop", "fill"])
def test_rows_that_cannot_be_filled_in_are_left_out_and_told(role, missing):
    log = made_log(58)
    log["weight"], log["cluster"] = 1.0 + np.arange(len(log)) % 3, np.arange(len(log)) // 2
    log["cluster"] = log["group"] + log["cluster"].astype(str)
    log.loc[log.index[::40], role] = None
    log.loc[log.index[1::30], "x1"] = np.nan
    roles = {name: name for name in ("weight", "cluster") if name == role}
    rest = [name for name in ("weight", "cluster") if name != role]
    audit = eh.audit(log, missing=missing, leave_out=rest, **roles)
    left = log.dropna(subset=[role] if missing == "fill" else [role, "x1"])
    assert audit.facts.used == len(left)
    gone = len(log) - len(left)
    counted = audit.missing.groupby(["column", "done"])["missing"].sum()
    if missing == "fill":
        words = (
            f"{gone} of 600 rows are left out, because what they lack cannot be filled in (missing"
        )
        assert counted[role, "rows left out, because it cannot be filled in"] == 15
        assert counted["x1", "filled in"] == 20
        assert audit.facts.filled == left["x1"].isna().sum()
    else:
        words = f"{gone} of 600 rows are left out (missing"
        assert counted[role, "rows left out"] == 15
    assert words in audit.to_words() and f"{role} 15" in audit.to_words()
    said = refused(log, leave_out=rest, **roles)
    assert f"{role} 15" in said


def test_rows_without_a_time_are_told():
    log = made_log(59, n=2000)
    log["timestamp"] = pd.date_range("2026-01-01", periods=len(log), freq="h")
    log.loc[log.index[::100], "timestamp"] = pd.NaT
    audit = eh.audit(log, windows=2)
    assert audit.facts.used == len(log)
    assert "20 rows have no timestamp, and no time window." in audit.to_words()


def test_a_group_that_is_called_missing():
    log = made_log(60, groups=("F", "M", "missing"))
    log.loc[log.index[::40], "group"] = None
    audit = eh.audit(log, missing="drop")
    assert audit.bias.groups == ("F", "M", "missing")
    counted = audit.missing.set_index("group")["missing"]
    assert counted["(missing)"] == 15 and counted["missing"] == 0


def test_the_value_filled_in_changes_no_other_coefficient():
    """At 0, at the mean, at the median, far away: the other coefficients are the same to 1e-9."""
    log = made_log(61, shift=3.0)
    log.loc[log.index[::7], "x1"] = np.nan
    audit = eh.audit(log, reference="M", missing="fill", errors="classical")
    mine = audit.bias.to_frame().set_index(["group", "feature"])["estimate"]["F"]
    names = ["intercept", "x0", "x1", "x1 is missing", "x2"]
    gaps = []
    for value in (0.0, log["x1"].mean(), log["x1"].median(), -50.0):
        fits = {}
        everyone = []
        for name, part in log.groupby("group"):
            gap = part["x1"].isna().astype(float)
            x1 = part["x1"].fillna(value)
            x = np.column_stack([np.ones(len(part)), part["x0"], x1, gap, part["x2"]])
            fits[name] = np.linalg.lstsq(x, part["reward"].to_numpy(), rcond=None)[0]
            everyone.append(x)
        bias = dict(zip(names, fits["F"] - fits["M"], strict=True))
        for name in ("intercept", "x0", "x1", "x2"):
            assert mine[name] == pytest.approx(bias[name], rel=1e-9, abs=1e-9), (value, name)
        # Nor does it change the bias at the average context.
        total = np.vstack(everyone).mean(axis=0) @ (fits["F"] - fits["M"])
        assert audit.bias.by_group.loc["F", "estimate"] == pytest.approx(total, rel=1e-9, abs=1e-9)
        gaps.append(bias["x1 is missing"])
    assert np.ptp(gaps) > 1e-3  # that column takes it up


@pytest.mark.slow
def test_features_without_values_or_with_a_single_one():
    log = made_log(62)
    log["c"] = pd.Series(["a"] * len(log), dtype="str")
    alone = eh.audit(log[["group", "reward", "c"]])
    means = log.groupby("group")["reward"].mean()
    gap = alone.bias.by_group.loc["F", "estimate"] - alone.bias.by_group.loc["M", "estimate"]
    assert gap == pytest.approx(means["F"] - means["M"], rel=1e-9)
    log.loc[log.index[::30], "c"] = None
    assert "missing values in 20 of 600 rows (c 20)" in refused(log)
    assert eh.audit(log, missing="drop").facts.used == 580
    assert "c=missing" in eh.audit(log, missing="fill").bias.features
    log["c"] = pd.Series([None] * len(log), dtype="str")
    assert "'c' has no value in any row" in refused(log, missing="fill")
    log["c"] = np.nan
    assert "'c' has no value in any row" in refused(log, missing="fill")


# Features that give away the reward or the group


def copies(audit):
    return [
        sentence for sentence in audit.summary if "Holding it constant hides the bias" in sentence
    ]


def stand_ins(audit):
    return [sentence for sentence in audit.summary if "so the groups do not overlap" in sentence]


def test_a_copy_of_the_reward_is_told():
    log = made_log(63, noise=2.0)
    assert not copies(eh.audit(log))
    rng = np.random.default_rng(63)
    spread = log["reward"].std()
    for noise, expected in ((0.0, 1), (0.01, 1), (0.1, 0)):  # R squared 1, 0.9999, 0.99
        log["my copy"] = 3.0 * log["reward"] + 3.0 * spread * noise * rng.normal(size=len(log))
        audit = eh.audit(log)
        assert len(copies(audit)) == expected, noise
    log["my copy"] = np.where(log["group"] == "F", 2.0, -1.0) * log["reward"] + 1e6
    (said,) = copies(eh.audit(log))
    assert "Feature my copy by itself predicts reward" in said and 'leave_out=["my copy"]' in said


def test_r_squared_is_that_of_statsmodels():
    """Each group its own line; adjusted for the coefficients."""
    log = made_log(64)
    log["copy"] = log["reward"] + 0.01 * np.random.default_rng(64).normal(size=len(log))
    fit = eh.audit(log).facts.giveaways.reward["copy"]
    left = total = 0.0
    for _, part in log.groupby("group"):
        slope, level = np.polyfit(part["copy"], part["reward"], 1)
        left += ((part["reward"] - slope * part["copy"] - level) ** 2).sum()
        total += ((part["reward"] - part["reward"].mean()) ** 2).sum()
    expected = 1.0 - (left / (len(log) - 4)) / (total / (len(log) - 2))
    assert fit == pytest.approx(expected, abs=1e-12)


def test_categories_that_make_the_reward_count_together():
    log = made_log(65)
    grade = np.random.default_rng(65).choice(list("ABCDEF"), size=len(log))
    log["reward"] = pd.Series(grade).map(dict(zip("ABCDEF", [1, 5, 2, 7, 0, 3], strict=True)))
    log["grade"] = grade
    audit = eh.audit(log)
    assert audit.facts.giveaways.reward == {"grade": pytest.approx(1.0)}
    assert len(copies(audit)) == 1
    # Of as many categories as rows some fit by chance; that is not counted.
    few = made_log(66, n=60)
    few["c"] = [f"k{i // 3}" for i in range(60)]
    assert not copies(eh.audit(few, features=["c"]))


@pytest.mark.slow
def test_a_stand_in_for_the_group_is_told():
    log = made_log(67)
    assert not stand_ins(eh.audit(log))
    rng = np.random.default_rng(67)
    women, men = ["Mrs", "Ms", "Miss", "Lady"], ["Mr", "Sir", "Lord", "Dr"]
    of_women, of_men = rng.choice(women, size=len(log)), rng.choice(men, size=len(log))
    log["title"] = np.where(log["group"] == "F", of_women, of_men)
    audit = eh.audit(log)
    (said,) = stand_ins(audit)
    assert "Feature title separates the groups" in said and 'leave_out=["title"]' in said
    assert audit.facts.giveaways.group == {"title": ("F", "M")}
    few = rng.random(len(log)) < 0.005
    log.loc[few, "title"] = np.where(log["group"] == "F", of_men, of_women)[few]
    assert stand_ins(eh.audit(log))
    many = rng.random(len(log)) < 0.1
    log.loc[many, "title"] = rng.choice([*women, *men], size=many.sum())
    assert not stand_ins(eh.audit(log))


def test_one_group_of_several_can_be_told_alone():
    log = made_log(68, groups=("A", "B", "C"))
    log["mark"] = np.where(log["group"] == "B", "x", np.where(np.arange(len(log)) % 2, "y", "z"))
    audit = eh.audit(log)
    assert audit.facts.giveaways.group == {"mark": ("B",)}
    assert "separates group B from the others" in audit.to_words()


# Numbers with separators


@pytest.mark.parametrize("n", [600, 4000])
@pytest.mark.parametrize(
    ("write", "example"),
    [(lambda i: f"{1000 + i * 7:,}", "1,"), (lambda i: f"${1000 + i * 7}", "$1")],
)
def test_numbers_with_separators_are_told_as_such(n, write, example):
    log = made_log(69, n=n)
    log["pay"] = [write(i) for i in range(n)]
    said = refused(log)
    assert f"feature 'pay' holds numbers with separators or signs, such as '{example}" in said
    assert "write them without" in said and "cluster=" not in said
    said = refused(log.assign(reward=log["pay"]), leave_out=["pay"])
    assert "reward is 'reward', a column of text that holds numbers with separators" in said


def test_many_numbers_with_marks_are_no_identifier():
    log = made_log(70, n=4000)
    log["pay"] = [str(i) if i % 10 else "?" for i in range(4000)]
    assert 'missing_marks=["?"]' in refused(log)
    log["pay"] = [str(i) for i in range(4000)]
    assert "if so, turn it into numbers" in refused(log) and 'cluster="pay"' in refused(log)


# Waiting


ENDLESS = "SELECT i % 2 AS g, sum(sin(i)) FROM range(1000000000000) AS t(i) GROUP BY g"


def test_a_query_tells_how_far_it_is_and_can_be_stopped():
    import duckdb

    con = duckdb.connect()
    con.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
    parts = []

    def progress(percent):
        parts.append(percent)
        if percent > parts[0]:  # it goes on; to the end it would take days
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        answer_of(lambda: con.execute(ENDLESS).fetchall(), con, progress)
    assert parts == sorted(parts) and parts[0] >= 0.0 and parts[-1] < 100.0
    assert con.execute("SELECT 1").fetchall() == [(1,)]
    with pytest.raises(duckdb.Error):
        answer_of(lambda: con.execute("SELECT nothing"), con)


def test_reports_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    from evenhand.audit._report.result import Audit

    audit = eh.audit(made_log(71))
    (tmp_path / "r.json").write_text("before")

    def stop(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Audit, "to_html", stop)
    with pytest.raises(KeyboardInterrupt):
        audit.save(tmp_path / "r.html")
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]
    assert (tmp_path / "r.json").read_text() == "before"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal of Unix")
def test_control_c_ends_an_audit_that_shows_its_percentage(tmp_path):
    """A process in a terminal of its own, with a log that has no end; stopped when it shows a %."""
    import pty

    import duckdb

    with duckdb.connect(str(tmp_path / "log.db")) as con:
        con.execute(
            """CREATE VIEW log AS SELECT CASE WHEN i % 2 = 0 THEN 'F' ELSE 'M' END AS "group",
            sin(i) AS x, cos(i * 3) AS reward FROM range(1000000000000) AS t(i)"""
        )
    out = tmp_path / "out" / "r.html"
    call = ["audit", f"duckdb://{tmp_path / 'log.db'}::log", "--out", str(out)]
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, [sys.executable, "-m", "evenhand", *call])
    said, asked = b"", False
    while True:
        try:
            more = os.read(terminal, 4096)
        except OSError:  # the other end is closed
            break
        if not more:
            break
        said += more
        if not asked and b"%" in said:
            os.kill(child, signal.SIGINT)
            asked = True
    os.close(terminal)
    assert asked, said.decode(errors="replace")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 130
    assert b"stopped; no report was written" in said and b"Traceback" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["log.db"]


def test_a_feature_that_never_varies_is_left_out_and_named():
    """A log of a policy has an intercept among its features; the audit has its own."""
    log = made_log(61)
    without = eh.audit(log, reference="M").bias.to_frame()
    audit = eh.audit(log.assign(ones=1.0, tenth=0.1), reference="M")
    assert audit.facts.constant == {"ones": 1.0, "tenth": 0.1}
    assert any("ones is 1 in every row: it is left out" in sentence for sentence in audit.summary)
    pd.testing.assert_frame_equal(audit.bias.to_frame(), without, rtol=1e-6)


def test_columns_of_the_format_that_are_empty_are_as_if_they_were_not_there(tmp_path):
    log = made_log(62)
    log.assign(true_reward=None, propensity_score=None).to_csv(tmp_path / "log.csv", index=False)
    audit = eh.audit(tmp_path / "log.csv", reference="M")
    pd.testing.assert_frame_equal(
        audit.bias.to_frame(), eh.audit(log, reference="M").bias.to_frame(), rtol=1e-9
    )
    assert not any("true_reward" in sentence for sentence in audit.summary)
    with pytest.raises(ValueError, match="true_reward is 'true_reward'"):
        eh.audit(tmp_path / "log.csv", reference="M", true_reward="true_reward")


def test_a_column_may_be_called_self():
    table = made_log(52)
    words = table["x0"].astype(str).where(np.arange(len(table)) % 9 > 0, "NA")
    table = table.rename(columns={"x0": "self"})
    table["self"] = words
    report = eh.audit(table, missing_marks=["NA"], missing="drop", windows=0)
    assert report.facts.used == len(table) - (len(table) + 8) // 9
