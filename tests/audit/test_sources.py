"""The same log from files and databases gives the same numbers."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
import logistic_models
from audit_logs import made_log
from evenhand.audit._input.opening import open_log

FOUND = shutil.which("pg_ctl")
BIN = str(Path(FOUND).resolve().parent) if FOUND else ""  # initdb is beside it

needs_postgres = pytest.mark.skipif(
    not (BIN and (Path(BIN) / "initdb").exists()),
    reason="needs PostgreSQL's initdb and pg_ctl on the path",
)

CHOICES = (
    {"missing": "drop", "cluster": "person", "leave_out": ["judge"], "count": "people"},
    {
        "missing": "drop",
        "cluster": "judge",
        "leave_out": ["person", "people"],
        "weighting": "pulls",
    },
    {"missing": "fill", "leave_out": ["person", "judge", "people"], "weigh_by_propensity": True},
)


@pytest.fixture(scope="module")
def log():
    rng = np.random.default_rng(21)
    table = made_log(21, n=900, shift=100.0)
    table["timestamp"] = pd.date_range("2026-01-01", periods=len(table), freq="min")
    table["item_id"] = table["group"] + (np.arange(len(table)) % 3).astype(str)
    table["propensity_score"] = rng.uniform(0.1, 1.0, size=len(table))
    table["town"] = rng.choice(["a", "b", "c"], size=len(table), p=[0.5, 0.3, 0.2])
    table["person"] = table["group"] + (np.arange(len(table)) // 3).astype(str)
    table["people"] = rng.integers(3, size=len(table))
    table["judge"] = rng.integers(60, size=len(table))  # of both groups
    table["true_reward"] = (table["reward"] + rng.normal(size=len(table))).where(
        rng.random(len(table)) < 0.8
    )
    table.loc[::50, "x1"] = np.nan
    table.loc[::70, "town"] = None
    return table


@pytest.fixture(scope="module")
def parquet(log, tmp_path_factory):
    folder = tmp_path_factory.mktemp("log")
    log.iloc[:400].to_parquet(folder / "a.parquet")
    log.iloc[400:].to_parquet(folder / "b.parquet")
    return folder


def audits(source, choices=CHOICES, **more):
    return [eh.audit(source, reference="M", **choice, **more) for choice in choices]


def assert_alike(some, others, tolerance):
    assert len(some) == len(others)
    reports = [
        pair
        for one, two in zip(some, others, strict=True)
        for pair in (
            (one.bias, two.bias),
            (one.within, two.within),
            (one.against_truth, two.against_truth),
            (one.blend.bias, two.blend.bias),
        )
    ]
    for one, two in reports:
        mine, theirs = one.to_frame(), two.to_frame()
        assert mine[["group", "feature"]].equals(theirs[["group", "feature"]])
        scale = theirs["standard_error"].to_numpy()
        for column in ("estimate", "standard_error", "low", "high"):
            apart = np.abs(mine[column] - theirs[column]).to_numpy()
            assert (apart <= tolerance * (np.abs(theirs[column]) + scale)).all(), column
    for one, two in zip(some, others, strict=True):
        for column in ("mean_reward", "estimate", "standard_error"):
            np.testing.assert_allclose(one.drift[column], two.drift[column], rtol=1e-8, atol=1e-8)
        assert one.drift[["window", "from", "group", "n"]].equals(
            two.drift[["window", "from", "group", "n"]]
        )
        assert one.missing.equals(two.missing)
        pd.testing.assert_frame_equal(one.blend.arrival, two.blend.arrival, rtol=1e-7, atol=1e-8)
        assert one.blend.measured.p_equal == pytest.approx(two.blend.measured.p_equal, rel=1e-5)


def cells_of(source, **more):
    """An audit of two group columns, by scores above the median."""
    return eh.audit(
        source, group=["group", "town"], reward="reward", features=["x0", "x1", "x2"],
        missing="drop", reference="M", **more,
    )  # fmt: skip


def assert_same_cells(one, two):
    """Audits of several group columns with the same numbers."""
    for name in ("cells", "impact"):
        mine, theirs = getattr(one.intersections, name), getattr(two.intersections, name)
        pd.testing.assert_frame_equal(mine, theirs, rtol=1e-8, atol=1e-8, check_dtype=False)
    for name in ("attributes", "within", "against_truth"):
        mine, theirs = getattr(one.intersections, name), getattr(two.intersections, name)
        assert list(mine) == list(theirs)
        for attribute, report in mine.items():
            other = theirs[attribute].to_frame()
            pd.testing.assert_frame_equal(report.to_frame(), other, rtol=1e-8, atol=1e-8)
    for attribute, tests in one.intersections.changes.items():
        other = two.intersections.changes[attribute]
        pd.testing.assert_frame_equal(tests, other, rtol=1e-7, atol=1e-8, check_dtype=False)


@pytest.fixture(scope="module")
def from_frame(log):
    return audits(log)


@pytest.mark.slow
def test_files_of_all_kinds(log, parquet, from_frame, tmp_path):
    log.to_csv(tmp_path / "log.csv.gz", index=False)
    assert_alike(audits(parquet), from_frame, 1e-12)
    assert_alike(audits(f"{parquet}/*.parquet", CHOICES[:1]), from_frame[:1], 1e-12)
    assert_alike(audits(tmp_path / "log.csv.gz", CHOICES[2:]), from_frame[2:], 1e-12)


@pytest.mark.slow
def test_a_table_of_duckdb(log, from_frame, tmp_path):
    import duckdb

    path = tmp_path / "log.db"
    with duckdb.connect(str(path)) as con:
        con.register("frame", log)
        con.execute("CREATE SCHEMA s; CREATE TABLE s.decisions AS SELECT * FROM frame")
    assert_alike(audits(f"duckdb://{path}::s.decisions", CHOICES[1:]), from_frame[1:], 1e-12)
    with pytest.raises(ValueError, match="there is no table 'wrong'"):
        eh.audit(f"duckdb://{path}::wrong")


@pytest.mark.slow
def test_an_ibis_table(log, from_frame):
    import ibis

    con = ibis.duckdb.connect()
    con.con.register("frame", log)
    con.raw_sql("CREATE OR REPLACE TABLE decisions AS SELECT * FROM frame")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Ibis, about DuckDB
        table = con.table("decisions")
    assert_alike(audits(table, CHOICES[1:]), from_frame[1:], 1e-12)


def free_ports(number):
    for _ in range(number):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        yield port


@pytest.fixture(scope="module")
def postgres(log):
    """A server of our own on a free port, with the log in a table."""
    import duckdb  # noqa: F401
    import psycopg

    folder = Path(tempfile.mkdtemp(prefix="evenhand-"))  # other runs of pytest tidy up theirs
    who = {}
    if os.geteuid() == 0:  # PostgreSQL does not run as root
        who = {"user": "postgres"}
        for one in (folder, *list(folder.parents)[:3]):
            one.chmod(0o777 if one == folder else 0o755)

    def run(*command, check=True):
        return subprocess.run(
            command, check=check, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            cwd=folder, **who,
        ).returncode == 0  # fmt: skip

    data, wrote = folder / "data", folder / "log"
    patient = ("-w", "-t", "1800")  # seconds; a minute unless told
    run(f"{BIN}/initdb", "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8")
    for port in free_ports(5):  # one that was free may be taken by now
        settings = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
        start = (f"{BIN}/pg_ctl", "-D", str(data), *patient, "-l", str(wrote), "-o", settings)
        if run(*start, "start", check=False):
            break
    else:
        pytest.fail(f"PostgreSQL does not start: {wrote.read_text()}")
    address = f"postgresql://postgres@127.0.0.1:{port}/postgres"
    try:
        with psycopg.connect(address, autocommit=True) as con:
            kinds = {"float64": "double precision", "datetime64[us]": "timestamp"} | {
                "int64": "bigint"
            }
            columns = ", ".join(
                f'"{name}" {kinds.get(str(kind), "text")}' for name, kind in log.dtypes.items()
            )
            con.execute(f"CREATE TABLE decisions ({columns})")
            rows = log.astype(object).where(log.notna(), None).to_numpy().tolist()
            marks = ", ".join(["%s"] * len(log.columns))
            with con.cursor() as cursor:
                cursor.executemany(f"INSERT INTO decisions VALUES ({marks})", rows)
        yield address
    finally:
        run(f"{BIN}/pg_ctl", "-D", str(data), *patient, "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
@needs_postgres
def test_a_table_of_postgresql(postgres, log, from_frame):
    assert_alike(audits(f"{postgres}::decisions"), from_frame, 1e-9)
    assert_same_cells(cells_of(f"{postgres}::decisions"), cells_of(log))
    with pytest.raises(ValueError, match="there is no table"):
        eh.audit(f"{postgres}::nothing")


@pytest.mark.slow
@needs_postgres
@pytest.mark.parametrize("cluster", ["person", "judge"])  # within groups, and across them
def test_several_attributes_with_clusters_in_postgresql(postgres, log, cluster):
    timed = {"cluster": cluster, "timestamp": "timestamp", "windows": 2}
    expected = cells_of(log, **timed)
    assert expected.facts.clusters and set(expected.intersections.within) == {"group", "town"}
    audit = cells_of(f"{postgres}::decisions", **timed)
    assert_same_cells(audit, expected)


@pytest.mark.slow
@needs_postgres
def test_logistic_models_in_postgresql(postgres):
    import psycopg

    rows = logistic_models.roled()
    with psycopg.connect(postgres, autocommit=True) as con:
        kinds = {"float64": "double precision", "int64": "bigint"}
        columns = [f'"{name}" {kinds.get(str(kind), "text")}' for name, kind in rows.dtypes.items()]
        con.execute(f"CREATE TABLE loans ({', '.join(columns)})")
        marks = ", ".join(["%s"] * len(columns))
        with con.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO loans VALUES ({marks})", rows.astype(object).to_numpy().tolist()
            )
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
@needs_postgres
def test_what_it_takes_to_repeat_an_audit_of_postgresql(postgres):
    address = postgres.replace("postgres@", "postgres:s3cret@")
    one, two = (
        eh.audit(f"{address}::decisions", missing="drop", leave_out=["judge", "person"])
        for _ in range(2)
    )
    told = one.to_dict()["provenance"]
    assert told == two.to_dict()["provenance"]
    assert "PostgreSQL" in told["checksum"]["method"] and len(told["checksum"]["value"]) == 16
    assert told["versions"]["PostgreSQL"][0].isdigit()
    assert "s3cret" not in one.to_json() and f"{postgres}::decisions" in told["command"]
