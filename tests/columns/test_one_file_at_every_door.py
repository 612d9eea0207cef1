"""The same cells are the same features, or refused in the same words, at every door."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from awkward_tables import decisions_with
from evenhand.offpolicy import read_logged

ROLES = {"group": "group", "reward": "reward"}


def at_every_door(table, features=("x",), **how):
    """The features, or the beginning of the refusal, of a world, a value and an audit."""
    doors = {
        "world": lambda: eh.TableWorld(table, **ROLES, features=list(features), **how),
        "value": lambda: read_logged(table, features=list(features), shared=True, **how),
        "audit": lambda: eh.audit(
            table, **ROLES, features=list(features), logistic=False, windows=0, **how
        ),
    }
    if isinstance(table, pd.DataFrame):
        del doors["value"]
    found = {}
    for name, door in doors.items():
        with warnings.catch_warnings(action="ignore"):
            try:
                made = door()
            except eh.InputError as error:
                said = str(error).replace('columns["reward"]', "reward")  # the key of a value
                found[name] = said.partition(";")[0].partition(" (first row")[0]
                continue
        if name == "world":
            found[name] = sorted(made.feature_names)
        elif name == "value":
            found[name] = made.contexts.shape[1]
        else:
            found[name] = sorted(made.bias.features)
    return found


def same(found):
    """What all doors say; a value only knows how many features there are."""
    value, world = found.get("value"), found["world"]
    if isinstance(value, int):
        assert not isinstance(world, str) and value == len(found["world"])
    elif value is not None:
        assert value == world
    assert found["audit"] == world or {*found["audit"], "intercept"} == {*world, "intercept"}
    return world


CODES = "feature 'x' holds numbers as text"
CELLS = {
    "codes": (["01", "02", "10"], {}, CODES),
    "two codes": (["01", "02"], {}, ["intercept", "x=02"]),
    "named codes": (["01", "02", "10"], {"nominal_columns": ["x"]}, ["intercept", "x=02", "x=10"]),
    "codes and gaps": (["01", "02", ""], {"missing": "drop"}, ["intercept", "x=02"]),
    "codes and marks": (
        ["01", "02", "?"],
        {"missing": "drop", "missing_marks": ["?"]},
        ["intercept", "x=02"],
    ),
    "codes and own marks": (
        ["01", "02", "?"],
        {"missing": "drop", "missing_marks": {"x": ["?"]}},
        ["intercept", "x=02"],
    ),
    "codes below zero": (["-05", "06", "7"], {}, CODES),
    "spelled": (["1", "1.0", "2"], {"nominal_columns": ["x"]}, ["intercept", "x=1.0", "x=2"]),
    "zeros": (["0", "0.5", "10"], {}, ["x"]),
    "signs": (["+5", "+6", "7"], {}, ["x"]),
    "signs and marks": (
        ["+5", "?", "7"],
        {"missing_marks": ["?"], "missing": "drop"},
        ["x"],
    ),
    "signs and words": (["+", "+a", "b"], {}, ["intercept", "x=+a", "x=b"]),
    "base 16": (["0x1F", "0x2A", "0x11"], {}, ["intercept", "x=0x1F", "x=0x2A"]),
    "times": (["12:30", "13:30", "09:11"], {}, "feature 'x' holds dates or times"),
    "two dates": (["2024-01-31", "2024-02-01"], {}, "feature 'x' holds dates or times"),
    "NaN": (
        ["1", "2.5", "NaN"],
        {"missing": "drop"},
        "feature 'x' holds numbers as text and words, such as 'NaN'",
    ),
    "nan": (["1", "nan"], {}, "feature 'x' holds numbers as text and words, such as 'nan'"),
    "a mark NaN": (["1", "2.5", "NaN"], {"missing": "drop", "missing_marks": ["NaN"]}, ["x"]),
    "truths and marks": (
        ["true", "false", "?"],
        {"missing": "drop", "missing_marks": ["?"]},
        ["x"],
    ),
    "base 2": (["0b11", "0b10"], {}, ["intercept", "x=0b11"]),
}


@pytest.mark.parametrize("name", CELLS)
def test_cells_of_a_csv_file(name, tmp_path):
    values, how, expected = CELLS[name]
    path = tmp_path / "log.csv"
    path.write_text(decisions_with(values))
    assert same(at_every_door(path, **how)) == expected


FRAMES = {
    "whole categories": (pd.Categorical([1, 2, 3] * 20), {}, ["x=2", "x=3"]),
    "categories that are texts": (pd.Categorical(["1", "2", "3"] * 20), {}, ["x=2", "x=3"]),
    "categories of truths": (pd.Categorical([True, False] * 30), {}, ["x=True"]),
    "named numbers": (np.array([1.0, 2.5, 3.0] * 20), {"nominal_columns": ["x"]}, ["x=2.5", "x=3"]),
    "named truths": ([True, False] * 30, {"nominal_columns": ["x"]}, ["x=True"]),
    "several kinds": ([1, "a", "b"] * 20, {}, ["x=a", "x=b"]),
    "truths and text": ([True, "b"] * 30, {}, ["x=b"]),
}


@pytest.mark.parametrize("name", FRAMES)
def test_columns_of_a_frame(name):
    values, how, expected = FRAMES[name]
    log = pd.DataFrame({"group": ["F", "M"] * 30, "reward": np.arange(60.0) % 7, "x": values})
    assert same(at_every_door(log, **how)) == ["intercept", *expected]


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
def test_rewards_as_text(form, tmp_path):
    """They are numbers if all are, and the same at every door."""
    log = pd.DataFrame({"group": ["F", "M"] * 30, "arm": [0, 1] * 30, "x": np.arange(60.0) % 7})
    log = log.assign(reward=["1", "0", "1"] * 20, propensity="0.5")
    path = tmp_path / f"log.{form}"
    write = {
        "csv": lambda: log.to_csv(path, index=False),
        "parquet": lambda: log.to_parquet(path),
        "jsonl": lambda: log.to_json(path, orient="records", lines=True),
    }
    write[form]()
    assert same(at_every_door(path)) == ["x"]
    log.assign(reward=["1", "0", "won"] * 20).to_parquet(tmp_path / "words.parquet")
    assert "'reward', a column of text" in same(at_every_door(tmp_path / "words.parquet"))


def test_a_code_that_comes_late_keeps_all_zeros(tmp_path):
    """Whatever pandas made of the rows before it; other columns stay numbers."""
    path = tmp_path / "log.csv"
    path.write_text(decisions_with(["7"] * 59 + ["007"]))
    with pytest.warns(eh.errors.InputWarning, match="group: a single arm"):
        world = eh.TableWorld(path, **ROLES, features=["x", "arm"])
    assert world.feature_names == ("intercept", "x=007", "arm")
