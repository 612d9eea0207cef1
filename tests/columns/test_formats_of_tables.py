"""Worlds and values read the files that audits read: JSON, Excel, encodings, decimal commas."""

from __future__ import annotations

import gzip
import json
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.cli import main

N = 240


def people() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "sexe": rng.choice(["F", "M"], size=N),
            "métier": rng.choice(["maçon", "élève"], size=N),
            "dette": rng.normal(size=N).round(3),
            "payé": rng.normal(size=N).round(2),
        }
    )


def write_excel(table: pd.DataFrame, path, sheets=("May",)) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name in sheets:
        sheet = book.create_sheet(name)
        sheet.append(list(table))
        for row in table.itertuples(index=False):
            sheet.append(list(row))
    book.save(path)


WAYS = {
    "latin.csv": (
        lambda t, p: t.to_csv(p, index=False, encoding="latin-1"),
        {"encoding": "latin-1"},
    ),
    "utf16.csv": (lambda t, p: t.to_csv(p, index=False, encoding="utf-16"), {"encoding": "utf-16"}),
    "comma.csv": (lambda t, p: t.to_csv(p, index=False, sep=";", decimal=","), {"decimal": ","}),
    "lines.jsonl": (lambda t, p: t.to_json(p, orient="records", lines=True), {}),
    "array.json": (lambda t, p: t.to_json(p, orient="records"), {}),
    "sheet.xlsx": (write_excel, {}),
    "sheets.xlsx": (lambda t, p: write_excel(t, p, ("April", "May")), {"sheet": "May"}),
}


@pytest.mark.parametrize("name", WAYS)
def test_a_world_is_the_same_from_any_file(tmp_path, name):
    write, how = WAYS[name]
    table, path = people(), tmp_path / name
    write(table, path)
    said = {"group": "sexe", "reward": "payé", "arms": "métier"}
    from_file = eh.TableWorld(path, **said, **how)
    from_table = eh.TableWorld(table, **said)
    assert from_file.feature_names == from_table.feature_names
    pd.testing.assert_frame_equal(from_file.arms, from_table.arms)


@pytest.mark.parametrize(
    ("name", "how", "said"),
    [
        ("latin.csv", {}, 'that is not utf-8; say what it is, such as encoding="latin-1"'),
        (
            "sheets.xlsx",
            {},
            "which has the sheets 'April', 'May'; name one, such as sheet=\"April\"",
        ),
        ("sheets.xlsx", {"sheet": "June"}, "sheet is 'June', which"),
        ("array.json", {"encoding": "latin-1"}, "encoding is for CSV files, which array.json is"),
        ("comma.csv", {"sheet": "May"}, "sheet is for Excel files, which comma.csv is not"),
        ("comma.csv", {"decimal": "."}, "holds numbers with a decimal comma"),
        ("latin.csv", {"encoding": "klingon"}, "encoding is 'klingon'; allowed is the name of an"),
    ],
)
def test_the_words_are_those_of_audits(tmp_path, name, how, said):
    table, path = people(), tmp_path / name
    WAYS[name][0](table, path)
    with pytest.raises(eh.InputError) as error:
        eh.TableWorld(path, group="sexe", reward="payé", arms="métier", **how)
    assert said in str(error.value)


def test_json_that_is_none(tmp_path):
    for text, said in (
        ("{'a': 1}", "is not valid JSON in line 1"),
        ("[1, 2]", "has values that are not objects"),
    ):
        path = tmp_path / "log.json"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(eh.InputError, match=said):
            eh.TableWorld(path, group="sexe", reward="payé")


def decisions() -> pd.DataFrame:
    rng = np.random.default_rng(6)
    log = pd.DataFrame({"arm": rng.choice(["a", "b", "c"], size=N)})
    log["group"] = log["arm"].map({"a": "01", "b": "01", "c": "02"})
    log["reward"] = rng.normal(size=N).round(2)
    return log.assign(propensity=0.25)


@pytest.mark.parametrize("name", WAYS)
def test_values_are_the_same_from_any_file(tmp_path, name, capsys):
    write, how = WAYS[name]
    log = decisions()
    write(log, tmp_path / name)
    log.to_csv(tmp_path / "plain.csv", index=False)
    flags = [part for key, value in how.items() for part in (f"--{key}", value)]
    for file, more in ((name, flags), ("plain.csv", [])):
        out = tmp_path / f"{file}.out.json"
        assert main(["value", str(tmp_path / file), "--uniform", *more, "--out", str(out)]) == 0
    values, plain = (
        json.loads((tmp_path / f"{file}.out.json").read_text()) for file in (name, "plain.csv")
    )
    assert values == plain


def test_settings_of_files_are_for_logs_of_others(tmp_path):
    policy = eh.TopInterval(["F", "M"], n_features=1, seed=1)
    with eh.log_to(tmp_path / "log.csv", policy) as logged:
        logged.update(logged.select(np.ones((2, 1))), 1.0)
    with pytest.raises(eh.InputError, match="encoding is for logs that evenhand did not write"):
        eh.offpolicy.read_logged(tmp_path / "log.csv", encoding="latin-1")


def compressed(table: pd.DataFrame, path) -> None:
    """The table as CSV or lines of JSON, compressed as the name says."""
    is_json = ".jsonl" in path.suffixes
    text = table.to_json(orient="records", lines=True) if is_json else table.to_csv(index=False)
    if path.suffix.lower() == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    elif path.suffix.lower() == ".zst":
        pyarrow = pytest.importorskip("pyarrow")
        with pyarrow.output_stream(str(path), compression="zstd") as file:
            file.write(text.encode())
    elif path.suffix.lower() == ".zip":
        with ZipFile(path, "w") as archive:
            archive.writestr("people.csv", text)
    else:
        path.write_text(text)


READ = (
    "a.csv",
    "a.txt",
    "a.csv.gz",
    "a.CSV.ZST",
    "a.csv.zip",
    "a.zip",
    "a.jsonl.gz",
    "a.jsonl.zst",
)


@pytest.mark.parametrize("name", READ)
def test_compressed_files_are_read_by_worlds_and_audits(tmp_path, name):
    table, path = people(), tmp_path / name
    compressed(table, path)
    roles = {"group": "sexe", "reward": "payé"}
    table.to_csv(tmp_path / "plain.csv", index=False)
    worlds = [
        eh.TableWorld(data, arms="métier", features=["dette"], **roles).bias(reference="M")
        for data in (path, table)
    ]
    pd.testing.assert_frame_equal(worlds[0].by_group, worlds[1].by_group)
    audits = [
        eh.audit(str(log), **roles).to_dict()["bias"] for log in (path, tmp_path / "plain.csv")
    ]
    assert audits[0] == audits[1]


@pytest.mark.parametrize(
    "name", ["a.parquet.gz", "a.xlsx.gz", "a.json.zip", "a.gz", "a.doc", "a", "a.csv.bz2"]
)
def test_what_no_door_reads_is_refused_by_all_alike(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"x")
    roles, said = {"group": "sexe", "reward": "payé"}, set()
    doors = (
        lambda: eh.TableWorld(path, arms="métier", features=["dette"], **roles),
        lambda: eh.audit(str(path), **roles),
        lambda: eh.offpolicy.read_logged(path, columns={**roles, "arm": "métier"}),
    )
    for door in doors:
        with pytest.raises(eh.InputError, match="allowed are files that end in") as raised:
            door()
        said.add(str(raised.value).partition("allowed are")[2])
    assert len(said) == 1


def test_a_note_beside_tables_is_not_one_of_them(tmp_path):
    people().to_csv(tmp_path / "log.csv", index=False)
    (tmp_path / "README.txt").write_text("what this is")
    audit = eh.audit(str(tmp_path), group="sexe", reward="payé")
    assert sum(audit.to_dict()["bias"]["observations"]) == N
