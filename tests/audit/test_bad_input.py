"""Mistakes that people make with audits: each is told, in one line, with what to do about it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from audit_logs import made_log, refused, refused_with_flags, warned_at_first
from evenhand.audit._input.first_look import alike_groups
from evenhand.cli import main
from evenhand.cli._log_options import marks_of


def called(capsys, *call):
    """The exit code and the lines on the error stream."""
    code = main(["audit", *map(str, call)])
    return code, capsys.readouterr().err.strip().splitlines()


def warned(table, **options):
    """What an audit warns of, and the audit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        audit = eh.audit(table, **options)
    return [str(warning.message) for warning in caught], audit


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "log.csv"
    made_log(81).round(3).to_csv(path, index=False)
    return path


# Commas in numbers


@pytest.mark.slow
def test_a_reward_with_a_decimal_comma_is_not_made_larger():
    log = made_log(82)
    log["reward"] = log["reward"].map(lambda value: f"{value:.2f}".replace(".", ","))
    first = log["reward"].value_counts().index[0]
    said = refused(log)
    assert 'decimal=","' in said and first.replace(",", "") not in said


# Marks


def words_with(*marks, n=600):
    log = made_log(83, n=n)
    log["reward"] = np.where(log["reward"] > 1.0, "approved", "denied")
    for i, mark in enumerate(marks):
        log.loc[log.index[i::40], "reward"] = mark
    return log


@pytest.mark.parametrize(
    ("mark", "flag"),
    [
        ("?", "--missing-marks '?'"),
        ("N/A", "--missing-marks N/A"),
        ("-", "--missing-marks=-"),
        ("", "--missing-marks ''"),
        ("None", "--missing-marks None"),
        ("unknown", "--missing-marks unknown"),
        (".", "--missing-marks ."),
    ],
)
def test_a_mark_gets_no_number_in_the_advice(mark, flag):
    said = refused_with_flags(words_with(mark))
    assert f"--reward-values approved=1,denied=0 {flag}, or" in said


@pytest.mark.slow
def test_the_flags_of_the_advice_work(tmp_path, capsys):
    path, out = tmp_path / "log.csv", tmp_path / "r.json"
    words_with("?", "-").to_csv(path, index=False)
    code, (said,) = called(capsys, path, "--out", out)
    assert code == 2
    (advised,) = re.findall(r"(--reward-values .*), or name another", said)
    flags = [*shlex.split(advised), "--missing", "drop", "--no-logistic"]
    assert called(capsys, path, *flags, "--out", out) == (0, [])
    assert json.loads(out.read_text(encoding="utf-8"))["rows_used"] == 600 - 30


def by_column():
    """-1 stands for nothing in one column, and is a number in the other."""
    log = made_log(84)
    log["a"] = np.random.default_rng(84).integers(-1, 6, size=len(log))
    log["b"] = np.random.default_rng(85).integers(-1, 6, size=len(log))
    plain = log.assign(a=log["a"].astype(float).where(log["a"] != -1))
    return log, plain


@cache
def without_marks():
    """The audit of the log in which nothing stands in the place of -1."""
    return eh.audit(by_column()[1], missing="drop")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["frame", "parquet", "csv"])
@pytest.mark.parametrize("marks", [{"a": [-1]}, {"a": -1}, {"a": ["-1"], "*": []}])
def test_marks_of_one_column_leave_the_others_alone(form, marks, tmp_path):
    log, _ = by_column()
    table = log
    if form != "frame":
        table = tmp_path / f"log.{form}"
        log.to_parquet(table) if form == "parquet" else log.to_csv(table, index=False)
    expected = without_marks()
    audit = eh.audit(table, missing="drop", missing_marks=marks)
    assert audit.facts.used == expected.facts.used == (log["a"] != -1).sum()
    np.testing.assert_allclose(
        audit.bias.to_frame()["estimate"], expected.bias.to_frame()["estimate"], rtol=1e-9
    )


@pytest.mark.slow
def test_marks_of_columns_on_the_command_line_and_in_a_file(tmp_path, capsys):
    log, _ = by_column()
    log["x0"] = log["x0"].astype(object)
    log.loc[log.index[::50], "x0"] = "?"
    log.to_csv(tmp_path / "log.csv", index=False)
    gone = int(((log["a"] == -1) | (log["x0"] == "?")).sum())
    (tmp_path / "c.toml").write_text('[missing_marks]\na = [-1]\n"*" = ["?"]\n')
    out = tmp_path / "r.json"
    for flags in (
        ["--missing-marks", "?,a=-1"],
        ["--missing-marks", "a=-1", "--missing-marks", "x0=?"],
        ["--columns", tmp_path / "c.toml"],
    ):
        call = [tmp_path / "log.csv", "--missing", "drop", *flags, "--out", out]
        assert called(capsys, *call) == (0, [])
        assert json.loads(out.read_text(encoding="utf-8"))["rows_used"] == len(log) - gone


@pytest.mark.slow
def test_a_mark_of_one_column_that_a_csv_file_shows_late(tmp_path):
    """DuckDB looks at the first 100,000 rows to find the kinds of columns."""
    log = made_log(86, n=110_000, d=2).round(2).astype({"x0": object})
    log.loc[105_000, "x0"] = "?"
    log.to_csv(tmp_path / "log.csv", index=False)
    audit = eh.audit(tmp_path / "log.csv", missing_marks={"x0": ["?"]}, missing="drop")
    assert audit.facts.used == len(log) - 1
    assert audit.bias.features == ("intercept", "x0", "x1")


def test_marks_by_column_are_read_and_checked():
    assert marks_of("?,age=-1,NA,age=x=y,=") == {"*": ["?", "NA", "="], "age": ["-1", "x=y"]}
    log = made_log(87)
    assert "missing_marks names 'y', which is not a column" in refused(
        log, missing_marks={"y": "?"}
    )
    assert "missing_marks has 3 for a column" in refused(log, missing_marks={3: ["?"]})
    words = words_with("?")
    given_twice = {"reward_values": {"approved": 1, "denied": 0, "?": 0}}
    said = refused(words, missing_marks={"reward": ["?"]}, **given_twice)
    assert "reward_values and missing_marks both have '?'" in said
    # Marks that are known are named again, with their column.
    log["x0"] = log["x0"].round(3).astype(str).where(log.index % 9 != 0, "gone")
    log["x1"] = log["x1"].where(log.index % 9 != 1, -1.0)
    said = refused(log, missing_marks={"x1": [-1]})
    assert 'missing_marks={"x1": ["-1"], "*": ["gone"]}' in said
    said = refused_with_flags(log, missing_marks={"x1": [-1]})
    assert "--missing-marks x1=-1,gone" in said


@pytest.mark.slow
@pytest.mark.parametrize("form", ["frame", "object", "parquet", "csv"])
def test_a_mark_that_marks_nothing_is_told(form, tmp_path):
    log = made_log(88).round(3)
    log["town"] = np.where(log.index % 2, "a", " NA")
    log["x1"] = log["x1"].where(log.index % 30 != 0, -9.0)
    table = log
    if form == "object":
        table = log.astype({"x1": object, "town": object})
    elif form != "frame":
        table = tmp_path / f"log.{form}"
        log.to_parquet(table) if form == "parquet" else log.to_csv(table, index=False)
    options = {"missing": "fill"}
    assert warned_at_first(table, missing_marks=["NA", -9], **options) == []
    said, audit = warned(table, missing_marks=["NA", -9, "zzz"], **options)
    assert (
        len(said) == 1
        and audit.facts.filled
        == (log["town"] == " NA").sum() + ((log["town"] == "a") & (log["x1"] == -9.0)).sum()
    )
    assert said[0].startswith("missing_marks has 'zzz', which is not in any column; a mark")
    # What everybody uses may be in a list that serves many logs, unless it is of one column.
    assert warned_at_first(table, missing_marks=["NA", "?", "n/a"], **options) == []
    (said,) = warned_at_first(table, missing_marks={"x0": ["?"]})
    assert said.startswith("missing_marks has '?', which is not in column 'x0'")
    (said,) = warned_at_first(table, missing_marks={"*": ["NA"], "x0": [-9]}, **options)
    assert said.startswith("missing_marks has '-9', which is not in column 'x0'")


def test_a_warning_is_a_line_with_the_flag(csv, tmp_path, capsys, recwarn):
    warnings.simplefilter("default")
    code, lines = called(capsys, csv, "--missing-marks", "zzz", "--out", tmp_path / "r.json")
    assert code == 0 and len(lines) == 1
    assert lines[0].startswith("evenhand: warning: --missing-marks has 'zzz'")


# Columns that cannot be what they are said to be


@pytest.mark.slow
@pytest.mark.parametrize(("bad", "shown"), [(1.5, "1.5"), (-0.1, "-0.1"), (50.0, "50")])
@pytest.mark.parametrize("weigh", [False, True])
def test_propensities_are_between_0_and_1(bad, shown, weigh):
    log = made_log(89)
    log["p"] = np.where(log.index == 7, bad, 0.5)
    said = refused(log, propensity="p", weigh_by_propensity=weigh)
    assert f"propensity is 'p', which has values outside 0 to 1, such as {shown};" in said
    # One found by its name can be left out.
    audit = eh.audit(log.rename(columns={"p": "pscore"}), leave_out=["pscore"])
    assert audit.facts.columns.propensity is None and "pscore" not in audit.bias.features


def test_propensities_may_lack_and_be_1():
    log = made_log(89)
    log["p"] = np.where(log.index % 3, np.float32(1.0), np.nan).astype(np.float32)
    assert eh.audit(log, propensity="p").facts.used == len(log)


def test_the_group_is_no_feature():
    assert "features: 'group' is the group" in refused(made_log(90), features=["x0", "group"])


def test_groups_that_differ_by_case_or_blanks_are_told():
    log = made_log(91, groups=("Alba", "Brel", "alba "))
    audit = eh.audit(log)
    said = audit.summary[-1]
    assert said.startswith("Groups 'Alba' and 'alba ' differ only by case or blanks")
    assert "spell them alike" in said and len(audit.bias.groups) == 3
    assert alike_groups(["New  York", "new york", "Alba", "ALBA"])[0].startswith(
        "Groups 'New  York' and 'new york'"
    )
    assert len(alike_groups(["New  York", "new york", "Alba", "ALBA"])) == 2
    assert alike_groups(["NewYork", "New York", "Strasse", "Gasse"]) == []


def test_settings_that_contradict_each_other_or_do_nothing():
    log = made_log(92)
    assert "features and leave_out both have 'x0'" in refused(
        log, features=["x0", "x1"], leave_out=["x0"]
    )
    said = refused(log.assign(p=0.5), propensity="p", leave_out=["p"])
    assert "leave_out has 'p', which is also named as the propensity" in said
    assert "windows is 5, and no column is the timestamp" in refused(log, windows=5)
    assert eh.audit(log, windows=0).drift is None


def test_one_group_is_nobody_to_compare_with():
    log = made_log(93)
    said = refused(log[log["group"] == "F"])
    assert "group is 'group', with only 'F' in it; an audit compares at least two groups" in said
    assert "with no value in it" in refused(log.assign(group=None).astype({"group": "str"}))
    # Or missing values leave only one.
    log.loc[log["group"] == "F", "x1"] = np.nan
    assert "only 'M' has rows that lack nothing" in refused(log, missing="drop")


# Files


def test_files_without_rows_or_columns(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("")
    assert "log.csv', which is empty; an audit needs columns and rows" in refused(path)
    path.write_text("group,x,reward\n")
    assert "log.csv has no rows; an audit needs some" in refused(path)
    assert "has no rows" in refused(path, missing_marks=["?"], reward_values={"a": 1})


@pytest.mark.parametrize("between", [",", ";"])
def test_lines_that_are_not_alike(between, tmp_path):
    path = tmp_path / "log.csv"
    lines = ["group,reward,x", "A,1,2", "B,2", "A,3,4,5"] * 50
    path.write_text("\n".join(lines).replace(",", between) + "\n")
    said = refused(path)
    assert "whose columns cannot be told apart" in said and "not a column" not in said
    assert "with 3 values, and line 3 has 2; allowed are lines with equally many values" in said


def without_internals(said, path):
    assert said.startswith(str(path))
    for word in ("Exception", "Error", "SELECT", "READ_", "ignore_errors", "Possible"):
        assert word not in said


@pytest.mark.parametrize("content", [b"PAR1", b"no parquet at all" * 10])
def test_a_file_that_is_no_parquet(content, tmp_path):
    path = tmp_path / "log.parquet"
    path.write_bytes(content)
    without_internals(refused(path), path)
    assert "is not a Parquet file, or is incomplete" in refused(path)
    made_log(94).to_parquet(tmp_path / "fine.parquet")
    without_internals(refused(tmp_path), path)  # a folder: the file is named


@pytest.mark.parametrize("at", [3, 70_000])
def test_a_file_that_is_no_utf8(at, tmp_path):
    path = tmp_path / "log.csv"
    log = made_log(95, n=80_000, d=1, groups=("Cyra", "Brel")).round(2)
    log.loc[at, "group"] = "Cÿra"
    log.to_csv(path, index=False, encoding="latin-1")
    said = refused(path)
    without_internals(said, path)
    assert f"(line {at + 2}) is not UTF-8 text" in said and 'encoding="latin-1"' in said


@pytest.mark.slow
def test_columns_without_a_name_are_left_out_and_told(tmp_path):
    log = made_log(96)
    path = tmp_path / "log.csv"
    log.to_csv(path)  # with the number of the row, as pandas writes it
    (said,), audit = warned(path)
    assert "column 1 has no name and is left out" in said
    assert audit.facts.columns.features == ("x0", "x1", "x2")
    # The same when pandas has made up a name, or a file keeps an index.
    (said,), audit = warned(pd.read_csv(path))
    assert "column 1 has no name" in said and "Unnamed: 0" not in audit.bias.features
    log.set_index(pd.Index(range(10, 610))).iloc[::-1].sample(frac=1.0, random_state=1).to_parquet(
        tmp_path / "log.parquet"
    )
    (said,), audit = warned(tmp_path / "log.parquet")
    assert "has no name" in said and audit.facts.columns.features == ("x0", "x1", "x2")
    # Nobody is told who named the features, and who asks for one gets it.
    assert warned_at_first(path, features=["x0"]) == []
    assert warned_at_first(pd.read_csv(path), leave_out=["Unnamed: 0"]) == []
    said, audit = warned(pd.read_csv(path), features=["x0", "Unnamed: 0"])
    assert said == [] and "Unnamed: 0" in audit.bias.features


@pytest.mark.slow
@pytest.mark.parametrize("between", [",", ";", "\t"])
@pytest.mark.parametrize("second", ["x0", "X0"])
def test_a_name_that_is_there_twice_is_told(between, second, tmp_path):
    log = made_log(97)
    path = tmp_path / "log.csv"
    text = log.assign(again=log["x1"] ** 2).to_csv(index=False, sep=between)
    path.write_text(text.replace("again", second, 1))
    (said,), audit = warned(path)
    made_up = audit.facts.columns.features[-1]
    assert f"column {second!r} occurs more than once, and column 6 is called {made_up!r}" in said
    assert f'leave_out=["{made_up}"]' in said
    assert warned(path, leave_out=[made_up])[0] == []
    double = pd.concat([log, log[["x0"]]], axis=1)
    assert "column 'x0' occurs more than once" in refused(double)
    cased = made_log(94).assign(Reward=0.0)
    assert "column 'Reward' occurs more than once, or in another case" in refused(cased)


# The command line


@pytest.mark.parametrize(
    ("flags", "start"),
    [
        (["--leave-out", "foo"], "--leave-out has 'foo'"),
        (["--feature", "foo"], "--feature is 'foo', which is not a column"),
        (["--feature", "x0", "--leave-out", "x0"], "--feature and --leave-out both have 'x0'"),
        (["--weigh-by-propensity"], "--weigh-by-propensity is set"),
        (["--missing-marks", "foo=-1"], "--missing-marks names 'foo'"),
        (["--reward-values", "a=1", "--missing-marks", "a"], "--reward-values and --missing-marks"),
    ],
)
def test_errors_name_flags_on_the_command_line(flags, start, csv, capsys):
    code, (said,) = called(capsys, csv, *flags, "--out", csv.with_name("r.json"))
    assert code == 2 and said.startswith(f"evenhand: {start}")
    assert "leave_out" in refused(made_log(98), leave_out=["foo"])  # and parameters in Python


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("missing = 'skip'", "line 2: missing is 'skip'; allowed is one of"),
        ("leave_out = ['foo']", "line 2: leave_out has 'foo'; allowed are x0"),
        ("[columns]\nleave-out = ['foo']", "line 3: leave_out has 'foo'; allowed are x0"),
        ("windows = 2", "line 2: windows is 2, and no column is the timestamp; name it, such as "
         "timestamp = COLUMN, or leave windows out"),
    ],
)  # fmt: skip
def test_errors_name_the_line_of_a_file_of_columns(text, told, csv, capsys, tmp_path):
    file = tmp_path / "c.toml"
    file.write_text(f"# what is what\n{text}\n")
    call = [csv, "--columns", file, "--out", tmp_path / "r.json"]
    code, (said,) = called(capsys, *call)
    assert code == 2 and said.startswith(f"evenhand: {file.name}, {told}")
    code, (said,) = called(capsys, *call, "--leave-out", "bar", "--missing", "no", "--windows", 3)
    assert code == 2 and said.startswith("evenhand: --")  # a flag comes before the file


def test_a_column_that_is_called_like_a_parameter_keeps_its_name(tmp_path, capsys):
    path = tmp_path / "log.csv"
    made_log(98).rename(columns={"x0": "leave_out", "x1": "features"}).to_csv(path, index=False)
    code, (said,) = called(capsys, path, "--leave-out", "x", "--out", tmp_path / "r.json")
    assert code == 2
    assert (
        said == "evenhand: --leave-out has 'x'; allowed are leave_out, features, x2, group, reward"
    )


def test_a_typo_makes_no_folders(csv, tmp_path, capsys):
    out = tmp_path / "no" / "such" / "a.json"
    code, (said,) = called(capsys, csv, "--out", out)
    assert code == 2 and f"there is no folder {str(tmp_path / 'no')!r}" in said
    assert not (tmp_path / "no").exists()
    assert "is not a folder" in called(capsys, csv, "--out", csv / "a.json")[1][0]
    assert called(capsys, csv, "--out", tmp_path / "new" / "a.json")[0] == 0
    assert (tmp_path / "new" / "a.json").exists()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="pipes of Unix")
def test_a_reader_that_goes_away_is_no_error(csv, tmp_path):
    """The reading end of the pipe is closed before anything is written."""
    call = ["audit", str(csv), "--out", str(tmp_path / "r.json")]
    with subprocess.Popen(
        [sys.executable, "-m", "evenhand", *call], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        said = process.stderr.read().decode()
        assert process.wait() == 0
    assert "pipe" not in said.lower() and (tmp_path / "r.json").exists()


def test_settings_in_the_file_of_columns(tmp_path, capsys):
    log = made_log(99, n=2000).assign(when=np.arange(2000))
    log["town"] = np.array(["a", "b", "c", "d"])[log.index % 4]
    log.loc[log.index[::50], "x0"] = np.nan
    log.to_parquet(tmp_path / "log.parquet")
    (tmp_path / "c.toml").write_text(
        'timestamp = "when"\nreference = "M"\nlevel = 0.9\nmissing = "drop"\nerrors = "classical"\n'
        'weighting = "pulls"\nwindows = 3\ncategories = 2\ntitle = "Loans"\n'
    )
    out = tmp_path / "r.json"
    call = [tmp_path / "log.parquet", "--columns", tmp_path / "c.toml", "--out", out]
    assert called(capsys, *call) == (0, [])
    written = json.loads(out.read_text(encoding="utf-8"))
    assert written["title"] == "Loans" and written["errors"] == "classical"
    assert written["rows_used"] == 1960 and written["merged"] == {"town": 2}
    assert written["bias"]["reference"] == "M" and written["bias"]["level"] == 0.9
    assert max(row["window"] for row in written["drift"]) == 3
    # Flags come first.
    flags = ["--level", "0.5", "--reference", "F", "--missing", "fill", "--title", "Mine"]
    assert called(capsys, *call, *flags) == (0, [])
    written = json.loads(out.read_text(encoding="utf-8"))
    assert written["bias"]["level"] == 0.5 and written["bias"]["reference"] == "F"
    assert written["rows_used"] == 2000 and written["title"] == "Mine"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("reference = [1]\n", "reference is [1]; allowed is a group, or a category"),
        ("title = 3\n", "title is 3; allowed is a string"),
        ('level = "high"\n', "level is 'high'; allowed is a number between 0 and 1"),
        ("windows = -1\n", "windows is -1; allowed is a whole number"),
        ("[columns]\nfoo = 1\n", "c.toml, line 2: columns.foo is unknown; allowed are arm, "),
        ('missing = "maybe"\n[columns]\ngroup = "group"\n', "missing is 'maybe'"),
    ],
)
def test_bad_settings_in_the_file_of_columns(text, words, csv, capsys):
    names = csv.with_name("c.toml")
    names.write_text(text)
    code, (said,) = called(capsys, csv, "--columns", names, "--out", csv.with_name("r.json"))
    assert code == 2 and words in said


def test_a_rare_category_does_not_take_the_headline():
    """One row of a category in one group only: it counts as the most frequent one, and is named."""
    log = made_log(95, d=1)
    rng = np.random.default_rng(95)
    log["town"] = rng.choice(["a", "b"], size=len(log), p=[0.7, 0.3])
    log.loc[log.index[log["group"] == "F"][:2], "town"] = "z"
    audit = eh.audit(log, reference="M")
    as_first = eh.audit(log.replace({"town": {"z": "a"}}), reference="M")
    pd.testing.assert_frame_equal(audit.bias.to_frame(), as_first.bias.to_frame())
    assert any("z count as a" in sentence for sentence in audit.summary)
    half = eh.audit(log.assign(town=log["town"].where(log["group"] == "M", "q")), reference="M")
    assert "town=q" in half.bias.features  # no rare one: it is said to be unknown
