"""Groups are called alike in audits, worlds and values, whatever file or engine they are in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenhand as eh
from audit_logs import made_log, refused
from evenhand._columns.buckets import group_labels
from evenhand._columns.table_files import read_table
from group_columns import COLUMNS, names_in_audits, table_of

WRITERS = {
    "log.csv": lambda table, path: table.to_csv(path, index=False),
    "log.parquet": lambda table, path: table.to_parquet(path),
    "log.jsonl": lambda table, path: table.to_json(path, orient="records", lines=True),
    "log.xlsx": lambda table, path: table.to_excel(path, index=False),
}


def names_in_worlds(log):
    return set(group_labels(read_table(log, labels=["g"]), ["g"])) - {"missing"}


# Excel has no numbers with as many digits as the large ones.
PAIRS = [
    (name, kind) for name in WRITERS for kind in COLUMNS if (name, kind) != ("log.xlsx", "large")
]


@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_audits_and_worlds_agree(name, kind, tmp_path):
    path = tmp_path / name
    WRITERS[name](table_of(COLUMNS[kind]), path)
    assert names_in_audits(path) == names_in_worlds(path)


@pytest.mark.parametrize("kind", COLUMNS)
def test_frames_with_and_without_gaps(kind):
    table = table_of(COLUMNS[kind])
    assert names_in_audits(table) == names_in_worlds(table)
    table["g"] = [None, *table["g"][1:]]
    assert names_in_audits(table) == names_in_worlds(table)


def test_by_hand(tmp_path):
    expected = {
        "whole": {"g=0", "g=1"},
        "large": {f"g={2**60}", f"g={2**60 + 1}", "g=3"},
        "floats": {"g=1", "g=2"},
        "halves": {"g=0.5", "g=1", "g=-2.25"},
        "truths": {"g=True", "g=False"},
        "digits": {"0", "1"},
        "codes": {"01", "2"},
    }
    for kind, names in expected.items():
        assert names_in_audits(table_of(COLUMNS[kind])) == names
    table_of(COLUMNS["digits"]).to_csv(tmp_path / "log.csv", index=False)  # where all is text
    assert names_in_audits(tmp_path / "log.csv") == {"g=0", "g=1"}


@given(st.lists(st.sampled_from(["0", "1", "-1", "1.0", "01", "1e3", "x", "true", "True", " 1"]),
                min_size=4, max_size=4))  # fmt: skip
def test_any_file_of_text(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("log") / "log.csv"
    table_of(values).to_csv(path, index=False)
    assert names_in_audits(path) == names_in_worlds(path)


def test_marks_leave_numbers_and_decimal_commas_are_read(tmp_path):
    table = table_of(["0", "1", "?", "0"])
    table.to_csv(tmp_path / "marks.csv", index=False)
    assert names_in_audits(tmp_path / "marks.csv") == {"0", "1", "?"}
    assert names_in_audits(tmp_path / "marks.csv", missing_marks=["?"]) == {"g=0", "g=1"}
    log = made_log(70)
    log["group"] = np.where(log["group"] == "F", 0.5, 1.5)
    log.to_csv(tmp_path / "log.csv", index=False, sep=";", decimal=",")
    audit = eh.audit(tmp_path / "log.csv", decimal=",", delimiter=";", reference="1.5")
    assert audit.bias.groups == ("group=0.5", "group=1.5")
    assert audit.bias.reference == "group=1.5"


def test_what_our_own_logs_call_a_group_stays(tmp_path):
    """Groups there have names, which the policy has as well."""
    path, rng = tmp_path / "log.csv", np.random.default_rng(73)
    groups = eh.Groups(["0", "0", "1", "1"], sensitive="0")
    with eh.log_to(path, eh.PooledGroupFair(groups, n_features=1, seed=1)) as logged:
        for _ in range(60):
            decision = logged.select(rng.random((4, 1)))
            logged.update(decision, rng.random())
    assert set(eh.audit(path).bias.groups) == {"0", "1"}


def test_several_columns_are_named_as_in_a_world():
    rng = np.random.default_rng(71)
    log = made_log(71, n=400).assign(black=rng.integers(0, 2, 400), young=rng.random(400) < 0.5)
    known = eh.TableWorld(log, group=["group", "black"], reward="reward", arms="young")
    audits = [
        eh.audit(log, group=["group", "black"], leave_out=["young"], reference=reference)
        for reference in ({"group": "M", "black": 0}, "M,black=0", "M & black=0", "M,0")
    ]
    for audit in audits:
        assert set(audit.bias.groups) == set(known.groups.labels)
        assert audit.bias.reference == "M & black=0"
    audit = eh.audit(log, group=["black", "young"], leave_out=["group"], reference="young=true,1")
    assert audit.bias.reference == "black=1 & young=True"
    said = refused(log, group=["group", "black"], leave_out=["young"], reference={"black": 2})
    assert "allowed for black are black=0, black=1" in said
    said = refused(log, group=["group", "black"], leave_out=["young"], reference="group=F,race=0")
    assert "race=0 is a category of none" in said


def test_a_name_of_text_in_a_column_of_numbers(tmp_path):
    """A word after many numbers makes all of them words."""
    log = made_log(72, n=25_000, d=1)
    log["group"] = np.where(log["group"] == "F", "1", "2")
    log.to_csv(tmp_path / "numbers.csv", index=False)
    log.loc[24_000:, "group"] = "other"
    log.to_csv(tmp_path / "words.csv", index=False)
    how = {"logistic": False, "reference": 1}
    assert eh.audit(tmp_path / "numbers.csv", **how).bias.groups == ("group=1", "group=2")
    assert eh.audit(tmp_path / "words.csv", **how).bias.groups == ("1", "2", "other")
