"""Spark gives the numbers of DuckDB. In a file of their own: starting Spark is most of the time."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
import group_columns
import log_formats as formats
import logistic_models
import marked_logs
import sourced_logs
from audit_logs import made_log, refused
from evenhand.audit._input.engines import open_spark
from evenhand.audit._input.opening import open_log

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="needs Java, for Spark"),
    pytest.mark.filterwarnings("ignore"),  # Spark's own
]
# For a few hundred rows, Spark's time goes into preparing queries, not into running them.
FOR_FEW_ROWS = {
    "spark.master": "local[1]",
    "spark.driver.host": "127.0.0.1",
    "spark.default.parallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.subexpressionElimination.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
# Java's second compiler pays after minutes only: without it, half of the time. Checking the byte
# code of 20,000 classes takes some seconds more.
FOR_MINUTES = (
    "-XX:+IgnoreUnrecognizedVMOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)


@pytest.fixture(scope="module", autouse=True)
def spark():
    settings = " ".join(f"--conf {name}={value}" for name, value in FOR_FEW_ROWS.items())
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setenv("JAVA_TOOL_OPTIONS", FOR_MINUTES)
        patch.setenv("PYSPARK_SUBMIT_ARGS", f"{settings} pyspark-shell")
        warnings.simplefilter("ignore")
        session = open_spark()._session
    session.conf.set("spark.sql.shuffle.partitions", "1")  # open_spark has said 8
    home = Path(urlsplit(session.conf.get("spark.sql.warehouse.dir")).path)
    known = home.exists()
    yield session
    if not known and home.exists():
        home.rmdir()  # Spark makes it, and nothing is in it


def test_the_same_numbers(parquet, roled):
    choices = sourced_logs.CHOICES[::2]
    audits = sourced_logs.audits(parquet, choices, engine="spark")
    assert audits[0].facts.engine == "pyspark"
    sourced_logs.assert_alike(audits, sourced_logs.audits(roled, choices), 1e-9)


def test_logistic_models(tmp_path):
    rows = logistic_models.roled()
    rows["reward"] = rows["reward"] == 1  # of truth values
    rows.to_parquet(tmp_path / "log.parquet")
    for choice in logistic_models.CHOICES:
        audit = eh.audit(tmp_path / "log.parquet", engine="spark", reference="C", **choice)
        expected = eh.audit(rows, reference="C", **choice)
        logistic_models.assert_alike(audit.logistic, expected.logistic)


@pytest.mark.parametrize("clusters", [{}, {"cluster": "judge"}], ids=["rows", "clusters"])
def test_several_group_columns(roled, parquet, clusters):
    audit = sourced_logs.cells_of(parquet, engine="spark", **clusters)
    sourced_logs.assert_same_cells(audit, sourced_logs.cells_of(roled, **clusters))


def test_words_and_marks(tmp_path):
    words, plain = (log.drop(columns=["x1", "x2"]) for log in marked_logs.marked())
    words, options, (plain, usual) = marked_logs.both(words, plain, logistic=False)
    words.to_csv(tmp_path / "words.csv", index=False)
    audit = eh.audit(tmp_path / "words.csv", engine="spark", **options)
    marked_logs.assert_same(audit, eh.audit(plain, **usual))
    said = refused(tmp_path / "words.csv", engine="spark")
    assert 'reward_values={"approved": 1, "denied": 0}' in said


@pytest.mark.parametrize("kind", ["whole", "halves", "truths", "digits", "codes"])
def test_names_of_groups(kind, tmp_path):
    table = group_columns.table_of(group_columns.COLUMNS[kind])
    table.to_csv(tmp_path / "log.csv", index=False)
    table.to_parquet(tmp_path / "log.parquet")
    table.to_json(tmp_path / "log.jsonl", orient="records", lines=True)
    for name in ("log.csv", "log.parquet", "log.jsonl"):
        names = group_columns.names_in_audits(tmp_path / name, "spark")
        assert names == group_columns.names_in_audits(tmp_path / name)


def test_a_view_and_a_saved_table(spark, tmp_path):
    log = made_log(57, d=2)
    log["town"] = np.array(["a", "b", "c"])[np.arange(len(log)) % 3]
    log.to_parquet(tmp_path / "log.parquet")
    rows = spark.read.parquet(str(tmp_path / "log.parquet"))
    rows.createOrReplaceTempView("decisions_view")
    spark.sql(f"CREATE DATABASE lake LOCATION '{tmp_path / 'lake'}'")
    try:
        rows.write.saveAsTable("lake.loans")
        for name in ("decisions_view", "Lake.Loans", "spark_catalog.lake.loans"):
            opened = open_log(f"spark::{name}")
            pd.testing.assert_frame_equal(opened.fetch(opened.table), log)
        audit = eh.audit("spark::Lake.Loans", reference="M")
        assert audit.facts.engine == "pyspark"
        marked_logs.assert_same(audit, eh.audit(log, reference="M"))
        assert "there is no table 'lake.nothing'; there are " in refused("spark::lake.nothing")
    finally:
        spark.catalog.dropTempView("decisions_view")
        spark.sql("DROP DATABASE lake CASCADE")


def test_labels_are_what_the_file_says(tmp_path):
    log = made_log(206, n=200, d=1, groups=("01", "1")).assign(flag="True")
    log.to_csv(tmp_path / "log[1].csv", index=False)
    log.assign(group="x").to_csv(tmp_path / "log1.csv", index=False)
    opened = open_log(tmp_path / "log[1].csv", "spark")
    assert opened.table.schema()["group"].is_string()  # Spark itself would make it numbers
    read = opened.with_labels(["group"])
    answer = read.fetch(read.table.select("group", "flag").distinct())
    assert set(answer["group"]) == {"01", "1"} and answer["flag"].tolist() == [True, True]


def test_another_order_of_columns_is_refused(tmp_path):
    log = made_log(212, n=120, d=1)
    log.iloc[:60].to_csv(tmp_path / "a.csv", index=False)
    log.iloc[60:, ::-1].to_csv(tmp_path / "b.csv", index=False)
    assert "b.csv has its columns in another order than" in refused(tmp_path, engine="spark")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A log, and the bias in an audit of it by DuckDB."""
    log = formats.written_log(300)
    path = tmp_path_factory.mktemp("written") / "plain.csv"
    log.to_csv(path, index=False)
    return log, formats.numbers(eh.audit(path, **formats.OPTIONS))["bias"]


@pytest.mark.parametrize("name", ["latin.csv", "log.jsonl", "log.json", "log.xlsx"])
def test_other_formats(name, written, tmp_path):
    log, expected = written
    said = formats.write(log, tmp_path / name)
    audit = eh.audit(tmp_path / name, engine="spark", **formats.OPTIONS, **said)
    assert audit.facts.engine == "pyspark"
    formats.assert_near(formats.numbers(audit)["bias"], expected, "")


def test_what_spark_does_not_read_is_refused(tmp_path):
    said = formats.write(formats.written_log(60), tmp_path / "comma.csv")
    told = refused(tmp_path / "comma.csv", engine="spark", **said)
    assert told.startswith("decimal is ',', which Spark does not read; leave engine out")
