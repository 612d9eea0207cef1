"""The same table in every format and encoding gives the same numbers."""

from __future__ import annotations

import gzip
import json
import sys

import pytest

import evenhand as eh
from audit_logs import made_log, refused, refused_with_flags
from evenhand._columns.file_formats import Reading
from evenhand.cli import main
from evenhand.errors import MissingExtraError
from log_formats import OPTIONS, assert_near, numbers, write, written_log


@pytest.fixture(scope="module")
def log():
    return written_log()


@pytest.fixture(scope="module")
def expected(log, tmp_path_factory):
    path = tmp_path_factory.mktemp("csv") / "log.csv"
    log.to_csv(path, index=False)
    return numbers(eh.audit(path, **OPTIONS))


def assert_alike(audit, expected):
    assert_near(numbers(audit), expected, "")


FORMATS = [
    "latin.csv", "windows.csv", "utf16.csv", "bom.csv", "comma.csv", "latin-comma.csv.gz",
    "packed.csv.gz", "log.jsonl", "log.ndjson.gz", "log.json", "log.xlsx",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_numbers(name, log, expected, tmp_path):
    said = write(log, tmp_path / name)
    assert_alike(eh.audit(tmp_path / name, **OPTIONS, **said), expected)


@pytest.mark.slow
def test_any_character_may_stand_between_columns(log, tmp_path):
    said = write(log, tmp_path / "colon.csv")
    log.drop(columns="timestamp").to_csv(tmp_path / "log.csv", index=False)
    expected = numbers(eh.audit(tmp_path / "log.csv", **OPTIONS))
    assert_alike(eh.audit(tmp_path / "colon.csv", **OPTIONS, **said), expected)


@pytest.mark.slow
def test_several_files_of_a_folder(log, expected, tmp_path):
    for form, write_part in {
        "jsonl": lambda part, path: part.to_json(path, orient="records", lines=True),
        "latin": lambda part, path: part.to_csv(path, index=False, encoding="latin-1"),
    }.items():
        folder = tmp_path / form
        folder.mkdir()
        ending = "jsonl" if form == "jsonl" else "csv"
        table = log.assign(timestamp=log["timestamp"].astype(str))
        write_part(table.iloc[:300], folder / f"a.{ending}")
        write_part(table.iloc[300:], folder / f"b.{ending}")
        (folder / "about.json").write_text("{}")  # a report, and no part of the log
        said = {"encoding": "latin-1"} if form == "latin" else {}
        assert_alike(eh.audit(folder, **OPTIONS, **said), expected)


@pytest.mark.slow
def test_marks_and_labels_of_all_formats(tmp_path):
    log = made_log(42, n=300, d=2, groups=("01", "1"))
    log["x1"] = log["x1"].round(3).astype(object)
    log.loc[::9, "x1"] = "?"
    log.to_csv(tmp_path / "log.csv", index=False)
    comma = log.assign(x1=[str(value).replace(".", ",") for value in log["x1"]])
    comma.to_csv(tmp_path / "comma.csv", index=False, sep=";", decimal=",")
    log.to_excel(tmp_path / "log.xlsx", index=False)
    (tmp_path / "log.json").write_text(json.dumps(log.to_dict(orient="records")))
    for marks in (["?"], {"x1": ["?"]}):
        chosen = {"missing_marks": marks, "missing": "drop", "reference": "01"}
        expected = numbers(eh.audit(tmp_path / "log.csv", **chosen))
        assert [row["group"] for row in expected["groups"]] == ["01", "1"]
        assert expected["columns"]["features"] == ["x0", "x1"]
        assert_alike(eh.audit(tmp_path / "comma.csv", decimal=",", **chosen), expected)
        assert_alike(eh.audit(tmp_path / "log.xlsx", **chosen), expected)
        assert_alike(eh.audit(tmp_path / "log.json", **chosen), expected)


def test_a_key_that_comes_late_is_a_column(tmp_path):
    rows = made_log(43, n=300, d=1).to_dict(orient="records")
    rows[-1]["late"] = 5.0
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    assert "late 299" in refused(path)


# What cannot be read, in one line


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_damaged_gzip_file_is_told(encoding, tmp_path):
    path, content = tmp_path / "log.csv.gz", gzip.compress(b"group,x,reward\na,1,2\n" * 50, mtime=0)
    for at in range(10, len(content) - 8, 3):  # after the header
        path.write_bytes(content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
        assert refused(path, encoding=encoding).startswith(str(path))


def test_a_byte_that_is_no_utf8_names_the_file_and_the_flag(log, tmp_path, capsys):
    path = tmp_path / "log.csv"
    log.to_csv(path, index=False, encoding="latin-1")
    said = refused(path)
    assert str(path) in said and 'encoding="latin-1"' in said
    assert "--encoding latin-1" in refused_with_flags(path)
    assert main(["audit", str(path), "--out", str(tmp_path / "a.html")]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    said = refused(path, encoding="ascii")
    assert str(path) in said and "not ascii" in said and "near line" in said
    log.to_csv(path, index=False, encoding="utf-16")
    assert 'encoding="utf-16"' in refused(path)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"encoding": "klingon"}, "encoding is 'klingon'; allowed is the name of an encoding"),
        ({"encoding": "base64"}, "encoding is 'base64'; allowed is the name of an encoding"),
        ({"encoding": 8}, "encoding is 8; allowed is a string"),
        ({"decimal": ";"}, "decimal is ';'"),
        ({"delimiter": ";;"}, "delimiter is ';;'; allowed is a single character"),
        ({"delimiter": ""}, "delimiter is ''; allowed is a single character"),
        ({"sheet": "May"}, "sheet is for Excel files, which log.csv is not"),
    ],
)
def test_settings_that_are_wrong(said, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made_log(44, n=60, d=1).to_csv("log.csv", index=False)
    assert refused("log.csv", **said).startswith(words)


def test_settings_of_other_kinds_of_logs(tmp_path):
    log = made_log(44, n=60, d=1)
    log.to_parquet(tmp_path / "log.parquet")
    assert "encoding is for CSV files" in refused(tmp_path / "log.parquet", encoding="latin-1")
    assert "decimal is for CSV files, which a frame is not" in refused(log, decimal=",")
    assert "sheet is for Excel files" in refused("duckdb:///x.db::t", sheet="May")
    assert Reading(delimiter="\\t").delimiter == Reading(delimiter="tab").delimiter == "\t"


def test_sheets_of_excel(log, tmp_path, monkeypatch):
    path = tmp_path / "log.xlsx"
    write(log, path)
    said = refused(path)
    assert "has the sheets 'Mai', 'Notes'" in said and 'sheet="Mai"' in said
    assert "there are 'Mai', 'Notes'" in refused(path, sheet="May")
    path.write_text("no Excel")
    assert f"{path} is not an Excel file, or is incomplete" in refused(path)
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'evenhand\[excel\]'"):
        eh.audit(path)


def test_json_that_is_broken(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"group": "a", "reward": 1}\n{"group":\n')
    assert "log.jsonl" in refused(path)
    path = tmp_path / "log.json"
    path.write_text('{"data": [{"group": "a"}]}')
    assert refused(path)


def test_messages_name_the_file_and_not_its_copy(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes("a;b\n1;2\n3;4;5;6\n".encode("utf-16"))
    said = refused(path, encoding="utf-16")
    assert "utf8-" not in said and "evenhand-" not in said


# The command line, and files of columns


@pytest.mark.slow
def test_flags_and_keys(log, expected, tmp_path, capsys):
    said = write(log, tmp_path / "latin-comma.csv.gz")
    call = ["audit", str(tmp_path / "latin-comma.csv.gz"), "--missing", "fill"]
    call += ["--reference", "Männer", "--nominal", "code", "--title", "Audit"]
    flags = [part for name, value in said.items() for part in (f"--{name}", value)]
    assert main([*call, *flags, "--out", str(tmp_path / "a.json")]) == 0
    (tmp_path / "c.toml").write_text("".join(f'{k} = "{v}"\n' for k, v in said.items()))
    named = ["--columns", str(tmp_path / "c.toml"), "--out", str(tmp_path / "b.json")]
    assert main([*call, *named]) == 0
    for name in ("a.json", "b.json"):
        written = json.loads((tmp_path / name).read_text())
        assert_near(written["bias"], expected["bias"], "")
    (tmp_path / "c.toml").write_text('\nencoding = "klingon"\n')
    capsys.readouterr()
    assert main([*call, *named]) == 2
    assert "c.toml, line 2: encoding is 'klingon'" in capsys.readouterr().err
