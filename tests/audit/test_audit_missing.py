"""Missing values, bad input and the command line of the audit."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import evenhand as eh
from audit_logs import made_log, refused
from evenhand.cli import main


def gappy():
    log = made_log(31, n=500)
    log["town"] = np.random.default_rng(31).choice(["a", "b"], size=len(log), p=[0.6, 0.4])
    log.loc[log.index[::20], "x1"] = np.nan
    log.loc[log.index[::33], "town"] = None
    log.loc[log.index[::41], "reward"] = np.nan
    return log


def fits(log, columns):
    out = {}
    for name, part in log.groupby("group"):
        x = np.column_stack([np.ones(len(part)), part[columns].to_numpy(dtype=float)])
        out[name] = sm.OLS(part["reward"].to_numpy(), x).fit().params
    return out


@pytest.mark.slow
def test_missing_values_are_an_error_that_counts_them():
    log = gappy()
    with pytest.raises(ValueError, match=r"in 52 of 500 rows \(x1 25, town 16, reward 13\)"):
        eh.audit(log)


def test_rows_that_lack_a_value_are_left_out_and_told():
    log = gappy()
    audit = eh.audit(log, reference="M", missing="drop")
    whole = log.dropna()
    rows = whole.assign(b=whole["town"] == "b")
    own = fits(rows, ["x0", "x1", "x2", "b"])
    mine = audit.bias.to_frame()["estimate"][:5]
    np.testing.assert_allclose(mine, own["F"] - own["M"], rtol=1e-8)
    assert f"{500 - len(whole)} of 500 rows are left out" in audit.to_words()
    counted = audit.missing.set_index(["group", "column"])["missing"]
    for name, part in log.groupby("group"):
        assert counted[name, "x1"] == part["x1"].isna().sum()
    # A row that only lacks a feature has a reward all the same.
    counted = audit.groups.set_index("group")
    rewards = log.dropna(subset="reward").groupby("group")["reward"]
    assert counted["n"].to_dict() == log.groupby("group").size().to_dict()
    assert counted["n_reward"].to_dict() == rewards.size().to_dict()
    np.testing.assert_allclose(counted["sum_reward"], rewards.sum(), rtol=1e-12)


def test_filling_keeps_the_rows_with_a_column_that_says_where():
    log = gappy()
    audit = eh.audit(log, reference="M", missing="fill")
    kept = log[log["reward"].notna()]
    rows = kept.assign(
        x1=kept["x1"].fillna(0.0),
        gap=kept["x1"].isna(),
        b=kept["town"] == "b",
        none=kept["town"].isna(),
    )
    own = fits(rows, ["x0", "x1", "gap", "x2", "b", "none"])
    mine = audit.bias.to_frame().set_index(["group", "feature"])["estimate"]["F"]
    expected = dict(
        zip(
            ["intercept", "x0", "x1", "x1 is missing", "x2", "town=b", "town=missing"],
            own["F"] - own["M"],
            strict=True,
        )
    )
    for name, value in expected.items():
        if name != "x1 is missing":  # what this is depends on the value filled in
            assert mine[name] == pytest.approx(value, rel=1e-7), name
    assert audit.facts.used == len(kept)
    assert "rows have values filled in" in audit.to_words()


def test_nan_in_parquet_is_missing_too(tmp_path):
    import duckdb

    path = tmp_path / "nan.parquet"
    duckdb.execute(
        f"""COPY (SELECT CASE WHEN i % 2 = 0 THEN 'F' ELSE 'M' END AS "group",
        CASE WHEN i = 7 THEN 'NaN'::DOUBLE ELSE sin(i) END AS x, cos(i * 3) AS reward
        FROM range(100) AS t(i)) TO '{path}' (FORMAT parquet)"""
    )
    with pytest.raises(ValueError, match=r"missing values in 1 of 100 rows \(x 1\)"):
        eh.audit(path)
    assert eh.audit(path, missing="drop").facts.used == 99


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({}, {"group": "sex"}, "group is 'sex', which is not a column"),
        ({"x0": np.inf}, {}, "column 'x0' has an infinity"),
        ({"reward": np.inf}, {}, "column 'reward' has an infinity"),
        ({"reward": "good"}, {}, "reward is 'reward', a column of text"),
        ({}, {"level": 2.0}, "level is 2.0"),
        ({}, {"missing": "ignore"}, "missing is 'ignore'"),
        ({}, {"errors": "none"}, "errors is 'none'"),
        ({}, {"weighting": "arms"}, "no column is the arm"),
        ({}, {"reference": "Z"}, "reference is 'Z'"),
        ({}, {"nominal_columns": ["town"]}, "nominal_columns has 'town'"),
        ({}, {"nominal_columns": "x0"}, "nominal_columns is 'x0'; allowed is a list"),
        ({}, {"leave_out": ["town"]}, "leave_out has 'town'"),
        ({}, {"weigh_by_propensity": True}, "no column is the propensity"),
        (
            {"propensity": 0.0},
            {"weigh_by_propensity": True},
            "is 'propensity', which has",
        ),
        (
            {"propensity": 1.5},
            {"weigh_by_propensity": True},
            "is 'propensity', which has",
        ),
        ({"w": -1.0}, {"weight": "w"}, "weight is 'w', which has values of 0"),
        ({"when": pd.Timestamp("2026-01-01")}, {}, "feature 'when' holds dates or times"),
        ({"timestamp": "noon"}, {}, "timestamp is 'timestamp', a column of text"),
        ({"c": "one"}, {"cluster": "c"}, "has a single cluster"),
        ({}, {"engine": "abacus"}, "engine is 'abacus'"),
        ({}, {"features": []}, "features is empty"),
    ],
)
def test_bad_input_is_told_in_one_line(change, options, words):
    with pytest.raises(ValueError) as error:
        eh.audit(made_log(32).assign(**change), **options)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_identifiers_are_no_features_and_no_groups():
    log = made_log(33, n=3000)
    log["name"] = [f"n{i}" for i in range(len(log))]
    log["name"] = log["name"].where(log.index < 1400, "n0")  # one that differs in most is left out
    with pytest.raises(ValueError, match="categories, as an identifier does"):
        eh.audit(log)
    with pytest.raises(ValueError, match="allowed are up to 200 groups"):
        eh.audit(log, group="name")
    with pytest.raises(ValueError, match="has no rows"):
        eh.audit(log.iloc[:0])


def test_numbers_as_text_are_not_taken_for_categories():
    log = made_log(35, n=600)
    log["my age"] = [str(20 + i % 40) if i % 25 else "unknown" for i in range(len(log))]
    with pytest.raises(ValueError, match="'my age' holds numbers as text and words, such as 'unk"):
        eh.audit(log)
    with pytest.raises(ValueError, match=r'leave_out=\["my age"\]'):  # to be pasted
        eh.audit(log)
    named = eh.audit(log, nominal_columns=["my age"])
    assert any(feature.startswith("my age") for feature in named.bias.features)


@pytest.fixture
def file(tmp_path):
    log = made_log(34).rename(columns={"group": "sex", "reward": "paid"})
    log["note"] = "x" + (np.arange(len(log)) % 3).astype(str)
    log.to_parquet(tmp_path / "log.parquet")
    return tmp_path / "log.parquet"


@pytest.mark.slow
def test_the_command_writes_a_page_and_json(file, tmp_path, capsys):
    out = tmp_path / "out" / "report.html"
    flags = ["--group", "sex", "--reward", "paid", "--leave-out", "note", "--reference", "M"]
    assert main(["audit", str(file), *flags, "--out", str(out), "--title", "Loans <2026>"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("600 rows in 2 groups")
    plain = json.loads(out.with_suffix(".json").read_text(encoding="utf-8"))
    assert plain["columns"]["features"] == ["x0", "x1", "x2"]
    page = out.read_text(encoding="utf-8")
    assert "Loans &lt;2026&gt;" in page and "<svg" in page


def test_columns_from_a_file_and_flags_before_it(file, tmp_path, capsys):
    names = tmp_path / "columns.toml"
    names.write_text('group = "note"\nreward = "paid"\nfeatures = ["x0", "x2"]\n')
    out = tmp_path / "report.json"
    call = ["audit", str(file), "--columns", str(names), "--group", "sex", "--out", str(out)]
    assert main(call) == 0
    plain = json.loads(out.read_text(encoding="utf-8"))
    assert plain["columns"] == {"group": "sex", "reward": "paid", "features": ["x0", "x2"]}
    assert not out.with_suffix(".html").exists()
    names.write_text('gruop = "sex"\n')
    assert main(call) == 2
    assert "gruop is unknown; did you mean 'group'? allowed are arm" in capsys.readouterr().err


def test_bad_input_ends_with_2_and_one_line(file, tmp_path, capsys):
    for call in (
        ["audit", str(file)],
        ["audit", "nowhere.parquet"],
        ["audit", str(file), "--group", "sex", "--reward", "paid", "--out", "report.docx"],
        ["audit", str(file), "--group", "sex", "--reward", "paid", "--level", "7"],
    ):
        assert main(call) == 2
        lines = capsys.readouterr().err.strip().splitlines()
        assert lines[-1].startswith("evenhand: ") and "Traceback" not in "".join(lines)


@pytest.mark.slow
def test_what_is_missing_is_chosen_by_column(tmp_path):
    log = made_log(36, n=600)
    log.loc[log.index[::30], "x0"] = np.nan
    log.loc[log.index[1::40], "x1"] = np.nan
    audit = eh.audit(log, reference="M", missing={"x0": "fill", "others": "drop"})
    same = eh.audit(log.dropna(subset="x1"), reference="M", missing="fill")
    # Only that coefficient depends on the value that is filled in.
    mine, other = (
        each.bias.to_frame().query("feature != 'x0 is missing'") for each in (audit, same)
    )
    np.testing.assert_allclose(mine["estimate"], other["estimate"], atol=1e-9)
    assert audit.facts.used == 600 - 15 and "x0 is missing" in audit.bias.features
    assert "x1 is missing" not in audit.bias.features
    assert "missing values in 15 of 600 rows (x1 15)" in refused(log, missing={"x0": "drop"})
    assert "missing names 'x9', which is not a used column" in refused(log, missing={"x9": "drop"})
    log.to_parquet(tmp_path / "log.parquet")
    out = tmp_path / "r.json"
    call = ["audit", str(tmp_path / "log.parquet"), "--reference", "M", "--out", str(out)]
    assert main([*call, "--missing", "x0=fill,others=drop"]) == 0
    assert json.loads(out.read_text(encoding="utf-8"))["rows_used"] == audit.facts.used
