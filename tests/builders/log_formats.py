"""The same log in every format, and what must be alike in audits of it."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pandas as pd
import pytest

from audit_logs import made_log

OPTIONS = {"missing": "fill", "reference": "Männer", "nominal_columns": ["code"]}


def written_log(n=700):
    rng = np.random.default_rng(41)
    log = made_log(41, n=n, d=2, groups=("Frauen", "Männer"))
    log["town"] = rng.choice(["Köln", "Zürich", 'a "b", c;d'], size=n)
    log["code"] = rng.choice([1, 2, 7], size=n)
    log["owns"] = rng.random(n) < 0.4
    log["timestamp"] = pd.date_range("2026-01-01", periods=n, freq="h").astype("datetime64[us]")
    log.loc[::50, "x1"] = np.nan
    log.loc[::70, "town"] = None
    return log


def numbers(audit):
    """All that is not about where the rows were."""
    plain = audit.to_dict()
    return {key: value for key, value in plain.items() if key not in ("log", "made", "method")} | {
        "provenance": None
    }


def assert_near(actual, expected, where):
    assert type(actual) is type(expected) or isinstance(actual, (int, float)), where
    if isinstance(actual, dict):
        assert list(actual) == list(expected), where
        for key in actual:
            assert_near(actual[key], expected[key], f"{where}.{key}")
    elif isinstance(actual, list):
        assert len(actual) == len(expected), where
        for k, (a, b) in enumerate(zip(actual, expected, strict=True)):
            assert_near(a, b, f"{where}[{k}]")
    elif isinstance(actual, float):
        assert actual == pytest.approx(expected, rel=1e-7, abs=1e-9), where
    else:
        assert actual == expected, where


def lines_of(log):
    times = log["timestamp"].dt.strftime("%Y-%m-%d %H:%M:%S")
    rows = log.assign(timestamp=times).astype(object).where(log.notna(), None)
    return rows.to_dict(orient="records")


def write(log, path):
    """The log in the format of the path's name, and what has to be said about it."""
    name = path.name
    if name == "latin.csv":
        log.to_csv(path, index=False, encoding="latin-1")
        return {"encoding": "latin-1"}
    if name == "windows.csv":
        log.to_csv(path, index=False, encoding="windows-1252")
        return {"encoding": "cp1252"}
    if name == "utf16.csv":
        log.to_csv(path, index=False, encoding="utf-16")
        return {"encoding": "utf-16"}
    if name == "bom.csv":
        log.to_csv(path, index=False, encoding="utf-8-sig")
        return {}
    if name == "comma.csv":
        log.to_csv(path, index=False, decimal=",", sep=";")
        return {"decimal": ",", "delimiter": ";"}
    if name == "latin-comma.csv.gz":
        log.to_csv(path, index=False, decimal=",", sep=";", encoding="latin-1")
        return {"decimal": ",", "encoding": "latin-1"}
    if name == "colon.csv":
        log.drop(columns="timestamp").to_csv(path, index=False, sep=":")
        return {"delimiter": ":"}
    if name.endswith(".csv.gz"):
        log.to_csv(path, index=False)
    elif name.endswith(".jsonl"):
        text = "\n".join(json.dumps(row, ensure_ascii=False) for row in lines_of(log))
        path.write_text(text, encoding="utf-8")
    elif name.endswith(".ndjson.gz"):
        text = "\n".join(
            json.dumps({key: value for key, value in row.items() if value is not None or k == 0})
            for k, row in enumerate(lines_of(log))
        )
        path.write_bytes(gzip.compress(text.encode()))
    elif name.endswith(".json"):
        path.write_text(json.dumps(lines_of(log), indent=1), encoding="utf-8")
    elif name.endswith(".xlsx"):
        with pd.ExcelWriter(path) as book:
            log.to_excel(book, sheet_name="Mai", index=False)
            pd.DataFrame({"note": ["x"]}).to_excel(book, sheet_name="Notes", index=False)
        return {"sheet": "Mai"}
    return {}
