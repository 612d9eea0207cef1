"""The same log from files and databases gives the same numbers."""

from __future__ import annotations

import warnings

import pytest

import evenhand as eh
import logistic_models
from evenhand.audit._input.opening import open_log
from group_columns import COLUMNS, names_in_audits, table_of
from postgres import write_table
from sourced_logs import CHOICES, assert_alike, assert_same_cells, audits, cells_of


@pytest.mark.slow
def test_files_of_all_kinds(roled, parquet, from_frame, tmp_path):
    roled.to_csv(tmp_path / "log.csv.gz", index=False)
    assert_alike(audits(parquet, CHOICES[:1]), from_frame[:1], 1e-12)
    assert_alike(audits(f"{parquet}/*.parquet", CHOICES[2:]), from_frame[2:], 1e-12)
    assert_alike(audits(tmp_path / "log.csv.gz", CHOICES[2:]), from_frame[2:], 1e-12)


@pytest.mark.slow
def test_a_table_of_duckdb(roled, from_frame, tmp_path):
    import duckdb

    path = tmp_path / "log.db"
    with duckdb.connect(str(path)) as con:
        con.register("frame", roled)
        con.execute("CREATE SCHEMA s; CREATE TABLE s.decisions AS SELECT * FROM frame")
    assert_alike(audits(f"duckdb://{path}::s.decisions", CHOICES[1:2]), from_frame[1:2], 1e-12)
    with pytest.raises(ValueError, match="there is no table 'wrong'"):
        eh.audit(f"duckdb://{path}::wrong")


@pytest.mark.slow
def test_an_ibis_table(roled, from_frame):
    import ibis

    con = ibis.duckdb.connect()
    con.con.register("frame", roled)
    con.raw_sql("CREATE OR REPLACE TABLE decisions AS SELECT * FROM frame")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Ibis, about DuckDB
        table = con.table("decisions")
    assert_alike(audits(table, CHOICES[2:]), from_frame[2:], 1e-12)


@pytest.mark.slow
def test_a_table_of_postgresql(postgres, roled, from_frame):
    assert_alike(audits(f"{postgres}::decisions"), from_frame, 1e-9)
    assert_same_cells(cells_of(f"{postgres}::decisions"), cells_of(roled))
    with pytest.raises(ValueError, match="there is no table"):
        eh.audit(f"{postgres}::nothing")


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["person", "judge"])  # within groups, and across them
def test_several_attributes_with_clusters_in_postgresql(postgres, roled, cluster):
    timed = {"cluster": cluster, "timestamp": "timestamp", "windows": 2}
    expected = cells_of(roled, **timed)
    assert expected.facts.clusters and set(expected.intersections.within) == {"group", "town"}
    audit = cells_of(f"{postgres}::decisions", **timed)
    assert_same_cells(audit, expected)


@pytest.mark.parametrize("kind", ["whole", "large", "halves", "truths", "digits", "codes"])
def test_names_of_groups_in_postgresql(kind, postgres):
    table = table_of(COLUMNS[kind])
    write_table(postgres, f"groups_{kind}", table)
    assert names_in_audits(f"{postgres}::groups_{kind}") == names_in_audits(table)


@pytest.mark.slow
def test_logistic_models_in_postgresql(postgres):
    rows = logistic_models.roled()
    write_table(postgres, "loans", rows)
    for choice in logistic_models.CHOICES:
        models = eh.audit(f"{postgres}::loans", reference="C", **choice).logistic
        logistic_models.assert_alike(models, eh.audit(rows, reference="C", **choice).logistic)


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("nowhere.parquet", "which matches no file"),
        ("mysql://host/db::table", "allowed for a table is duckdb:///FILE::TABLE"),
        ("duckdb:///nowhere.db::table", "there is no file"),
    ],
)
def test_a_log_that_is_not_there(log, words):
    with pytest.raises(ValueError, match=words) as error:
        open_log(log)
    assert "\n" not in str(error.value)


def test_folders_and_files_of_other_kinds(tmp_path):
    with pytest.raises(ValueError, match="a folder without Parquet, CSV, JSON or Excel files"):
        open_log(tmp_path)
    (tmp_path / "log.docx").write_text("")
    with pytest.raises(ValueError, match="allowed are files that end in"):
        open_log(tmp_path / "log.docx")
    (tmp_path / "bad.parquet").write_text("no Parquet")
    with pytest.raises(ValueError, match=r"bad\.parquet") as error:
        open_log(tmp_path / "bad.parquet")
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_what_it_takes_to_repeat_an_audit_of_postgresql(postgres):
    address = postgres.replace("postgres@", "postgres:s3cret@")
    audit, again = (
        eh.audit(f"{address}::decisions", missing="drop", features=["x0"]) for _ in range(2)
    )
    told = audit.to_dict()["provenance"]
    assert told == again.to_dict()["provenance"]
    assert "PostgreSQL" in told["checksum"]["method"] and len(told["checksum"]["value"]) == 16
    assert told["versions"]["PostgreSQL"][0].isdigit()
    assert "s3cret" not in audit.to_json() and f"{postgres}::decisions" in told["command"]
