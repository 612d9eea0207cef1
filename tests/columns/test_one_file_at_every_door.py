"""The same cells are the same features, or refused in the same words, at every door."""

from __future__ import annotations

import tomllib
import warnings

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from awkward_tables import decisions_with
from evenhand.cli import main
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
    read_as = {}
    for name, door in doors.items():
        with warnings.catch_warnings(action="ignore"):
            try:
                made = door()
            except eh.InputError as error:
                said = str(error).replace('columns["reward"]', "reward")  # the key of a value
                read_as[name] = said.partition(";")[0].partition(" (first row")[0]
                continue
        if name == "world":
            read_as[name] = sorted(made.feature_names)
        elif name == "value":
            read_as[name] = made.contexts.shape[1]
        else:
            read_as[name] = sorted(made.bias.features)
    return read_as


def same(read_as):
    """What all doors say; a value only knows how many features there are."""
    value, world = read_as.get("value"), read_as["world"]
    if isinstance(value, int):
        assert not isinstance(world, str) and value == len(read_as["world"])
    elif value is not None:
        assert value == world
    assert read_as["audit"] == world or {*read_as["audit"], "intercept"} == {*world, "intercept"}
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


@pytest.mark.parametrize("missing", ["drop", "fill"])
def test_a_row_without_a_group_is_left_out(missing, tmp_path):
    """It is no group "missing", also where features are filled in."""
    path = tmp_path / "log.csv"
    path.write_text(decisions_with(["1", "2", "4", ""]).replace("F;0.0;", ";0.0;", 1))
    with warnings.catch_warnings(action="ignore"):
        world = eh.TableWorld(path, **ROLES, features=["x"], missing=missing)
        logged = read_logged(path, features=["x"], shared=True, missing=missing)
        audit = eh.audit(path, **ROLES, features=["x"], missing=missing, logistic=False)
    rows = 59 if missing == "fill" else 44
    assert world.groups.names == logged.groups.names == audit.bias.groups == ("F", "M")
    assert world.n_rows == logged.n == audit.facts.used == rows
    assert sorted(world.feature_names) == sorted(set(audit.bias.features) - {"intercept"})


def test_a_gap_is_not_what_other_categories_are_compared_with(tmp_path):
    """However frequent it is, and also where a category is called so."""
    path = tmp_path / "log.csv"
    how = {"missing": "fill", "missing_marks": ["?"]}
    for words, expected in (
        (["?", "?", "?", "cook", "nurse"], ["intercept", "x=missing", "x=nurse"]),
        (["?", "?", "?", "cook", "missing"], ["intercept", "x=missing"]),
    ):
        path.write_text(decisions_with(words))
        assert same(at_every_door(path, **how)) == expected
    path.write_text(decisions_with(["?", "a", "b", "c", "b"]))
    expected = ["intercept", "x=a", "x=missing", "x=other"]
    assert same(at_every_door(path, **how, categories=2)) == expected


@pytest.mark.parametrize(
    ("header", "asked", "expected"),
    [
        (" x ", ["x"], ["x"]),
        ("x,X", ["x", "X_1"], ["X_1", "x"]),
        ("x,x", ["x", "x_1"], ["x", "x_1"]),
    ],
)
def test_names_in_a_header(header, asked, expected, tmp_path):
    path, values = tmp_path / "log.csv", ["1,2", "2,0", "4,1"]
    if "," not in header:
        values = ["1", "2", "4"]
    path.write_text(decisions_with(values, header).replace(";", ","))
    assert same(at_every_door(path, asked)) == expected


@pytest.mark.filterwarnings("ignore::evenhand.errors.InputWarning")
def test_a_column_of_a_repeated_name_is_told_alike(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(decisions_with(["1,2", "2,0", "4,1"], "x,x").replace(";", ","))
    said = "log.csv: column 'x' occurs more than once, and column 6 is called 'x_1' here; leave it"
    for door in (eh.TableWorld, eh.audit):
        with pytest.warns(eh.errors.InputWarning, match=said):
            door(path, **ROLES)


REFUSED = {
    "a text for a list": ({"features": "x"}, "features is 'x'; allowed is a list of columns"),
    "a text for names": (
        {"nominal_columns": "x"},
        "nominal_columns is 'x'; allowed is a list of columns",
    ),
    "the group": ({"features": ["x", "group"]}, "features: 'group' is the group; a group cannot"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_worlds_and_audits_refuse_alike(name, tmp_path):
    how, said = REFUSED[name]
    path = tmp_path / "log.csv"
    path.write_text(decisions_with(["1", "2", "4"]))
    for door in (eh.TableWorld, eh.audit):
        with pytest.raises(eh.InputError, match=said):
            door(path, **ROLES, **how)
    if "group" not in how.get("features", ()):
        with pytest.raises(eh.InputError, match=said):
            read_logged(path, **how)


def test_a_reward_is_one_column_and_a_delimiter_has_one_name(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(decisions_with(["1", "2", "4"]))
    with pytest.raises(eh.InputError, match=r"reward is .*; allowed is the name of one column"):
        eh.TableWorld(path, group="group", reward=["reward"], features=["x"])
    with pytest.raises(eh.InputError, match="delimiter and separator are both given"):
        eh.TableWorld(path, **ROLES, features=["x"], delimiter=";", separator=";")


def test_a_folder_is_said_to_be_one(tmp_path, capsys):
    for door in (lambda: eh.TableWorld(tmp_path, **ROLES), lambda: read_logged(tmp_path)):
        with pytest.raises(eh.InputError, match="which is a folder; give the path of a file in it"):
            door()
    new = str(tmp_path / "new.toml")
    assert main(["init", new, "--data", str(tmp_path)]) == 2
    assert main(["serve", "--init", str(tmp_path), new]) == 2
    assert capsys.readouterr().err.count("which is a folder; give the path of a file in it") == 2


@pytest.mark.parametrize("groups", [200, 201])
@pytest.mark.filterwarnings("ignore::evenhand.errors.InputWarning")
def test_how_many_groups_there_may_be(groups):
    rows = np.arange(groups * 4)
    log = pd.DataFrame({"group": [f"g{i}" for i in rows % groups], "reward": rows % 3, "x": 0.0})
    log["x"] = rows % 5 / 7
    doors = (lambda: eh.TableWorld(log, **ROLES), lambda: eh.audit(log, **ROLES, logistic=False))
    for door in doors:
        if groups == 200:
            door()
        else:
            with pytest.raises(eh.InputError, match=r"group.* 201 values"):
                door()


def written_by(command, path, folder, *more):
    """The text of the file that `evenhand init` or `serve --init` writes."""
    new = folder / f"{command}.toml"
    data = ["init", str(new), "--data", str(path)]
    if command == "serve":
        data = ["serve", "--init", str(path), str(new), "--group", "group", "--reward", "reward"]
    assert main([*data, *more]) == 0
    return new.read_text()


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_codes_in_the_files_that_are_written(form, tmp_path):
    path = tmp_path / f"log.{form}"
    path.write_text(decisions_with(["10", "02", "02", "01", "02", "01"]))
    if form == "jsonl":
        log = pd.read_csv(path, sep=";", dtype={"x": str})
        log.to_json(path, orient="records", lines=True)
    assert "3 values: 02, 01, 10" in written_by("init", path, tmp_path)
    feature = tomllib.loads(written_by("serve", path, tmp_path))["features"]["x"]
    assert feature == {"type": "category", "values": ["02", "01", "10"]}


def test_truth_values_with_a_gap_are_a_yes_or_no_of_the_service(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(decisions_with(["True", "False", "True", ""]))
    feature = tomllib.loads(written_by("serve", path, tmp_path))["features"]["x"]
    assert feature == {"type": "yes-no"}


@pytest.mark.parametrize("command", ["init", "serve"])
@pytest.mark.filterwarnings("always::evenhand.errors.InputWarning")
def test_a_decimal_comma_is_named(command, tmp_path, capsys):
    path = tmp_path / "log.csv"
    path.write_text(decisions_with(["1,5", "2,25", "4,0"]))
    said = "column 'x' holds numbers with a decimal comma, such as '1,5'"
    written_by(command, path, tmp_path)
    told = capsys.readouterr().err
    assert said in told and "--decimal ," in told
    (tmp_path / f"{command}.toml").unlink()
    written_by(command, path, tmp_path, "--decimal", ",")
    assert not capsys.readouterr().err


def test_a_column_has_one_role_in_a_service(tmp_path, capsys):
    path = tmp_path / "log.csv"
    path.write_text(decisions_with(["1", "2", "4"]))
    named = ["--group", "group", "--reward", "group"]
    assert main(["serve", "--init", str(path), str(tmp_path / "new.toml"), *named]) == 2
    said = capsys.readouterr().err
    assert "--group and --reward are both 'group'; give each column one role" in said
