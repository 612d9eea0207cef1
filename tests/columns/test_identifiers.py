"""Columns that are no quantities: identifiers are left out and told of, codes are not counted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand import charts
from evenhand._columns.identifiers import identifiers
from evenhand._columns.words import shown

N = 600
ROLES = {"group": "sex", "sensitive": "F", "arms": {"age": 2}, "reward": "paid"}


@pytest.fixture
def people():
    """Regions have nothing to do with the reward but for women of one, by far."""
    draw = np.random.default_rng(3)
    sex, region = draw.choice(["F", "M"], N), draw.choice(["north", "south", "west"], N)
    paid = 50.0 + draw.normal(0.0, 1.0, N) - 9.0 * ((sex == "F") & (region == "west"))
    columns = {"sex": sex, "age": draw.integers(18, 80, N), "region": region, "paid": paid}
    return pd.DataFrame({**columns, "income": draw.integers(10**4, 10**6, N)})


def shuffled(values):
    return np.random.default_rng(5).permutation(values)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("id", shuffled(np.arange(N) * 7 + 1000)),
        ("person_id", shuffled(np.arange(N)) % (N - 50)),  # some people twice
        ("PersonID", shuffled(np.arange(N))),
        ("applicant", shuffled(np.arange(N))),
        ("Unnamed: 0", shuffled(np.arange(N))),
        ("customerid", shuffled(np.arange(N)).astype(float)),
        ("loan no.", [f"L{k:05d}" for k in range(N)]),
        ("surname", [f"name {k}" for k in range(N)]),
        ("what", np.arange(N)),  # counts the rows, whatever it is called
        ("what", np.arange(N) + 17),
    ],
)
def test_identifiers_and_row_numbers_are_left_out_and_told_of(people, name, values):
    table = people.assign(**{name: values})
    with pytest.warns(UserWarning, match=f"column {shown([name])} tells rows apart"):
        world = eh.TableWorld(table, **ROLES)
    assert world.identifiers == (name,)
    assert world.feature_names == ("intercept", "region=south", "region=west", "income")
    named = eh.TableWorld(table.assign(**{name: shuffled(np.arange(N))}), **ROLES,
                          features=["income", name])  # fmt: skip
    assert named.feature_names == ("income", name) and named.identifiers == ()
    assert eh.TableWorld(table, **ROLES, leave_out=[name]).identifiers == ()


def test_gaps_in_an_identifier_are_no_matter(people):
    with pytest.warns(UserWarning, match="column person_id tells rows apart"):
        world = eh.TableWorld(people.assign(person_id=[None, *range(1, N)]), **ROLES)
    assert world.n_rows == N


def test_quantities_and_categories_stay(people):
    """Also those that differ in every row, or have a name that could be an identifier's."""
    table = people.assign(
        wage=shuffled(np.arange(N)) * 10_001,
        number_of_rooms=np.arange(N) % 9,
        case_worker=np.arange(N) % 40,
        bid=shuffled(np.arange(N)) // 2 + 500,
        score=np.linspace(0.0, 1.0, N),
        town=[f"town {k % 50}" for k in range(N)],
        kind=pd.Categorical([f"kind {k % 40}" for k in range(N)]),
    )
    world = eh.TableWorld(table, **ROLES, nominal="codes")
    assert world.identifiers == () and set(table) - set(world.feature_names) == {
        "sex",
        "age",
        "paid",
    }
    assert identifiers(pd.DataFrame({"x": [1, 2, 3]}), ["x"]) == ()  # three numbers may do so


def test_numbers_as_text_are_still_refused(people):
    """They are a mistake in the table, and no identifiers."""
    table = people.assign(wealth=[f"{1000 + k:,}" for k in range(N)])
    with pytest.raises(ValueError, match="feature 'wealth' holds numbers with separators"):
        eh.TableWorld(table, **ROLES)


@pytest.mark.parametrize("scale", ["none", "standardise"])
def test_words_do_not_count_codes_of_categories(people, scale):
    people["job"] = people["region"].map({"north": "cook", "south": "cook", "west": "judge"})
    world = eh.TableWorld(people, **ROLES, scale=scale, nominal="codes")
    assert set(world.codes) == {"region", "job"} and set(world.codes["region"]) == {
        "north",
        "south",
        "west",
    }
    words = (
        eh.TableWorld(people.drop(columns="job"), **ROLES, scale=scale, nominal="codes")
        .bias()
        .to_words()
    )
    assert "additional 1 of region" not in words and "of region" not in words
    assert "Nothing is said about the bias on region: the numbers stand for categories" in words
    # Two categories can be compared, by their names.
    first, second = world.codes["job"]
    two = (
        eh.TableWorld(people.drop(columns="region"), **ROLES, scale=scale, nominal="codes")
        .bias()
        .to_words()
    )
    assert f"Where job is {second} the gap (feedback for group" in two
    assert f"the gap where job is {first}" in two
    assert "of job" not in two and "job is 1" not in two
    hot = eh.TableWorld(people.drop(columns="job"), **ROLES).bias().to_words()
    assert "Nothing is said" not in hot and "In region west the gap" in hot


def test_charts_say_what_is_a_code(people):
    bias = eh.TableWorld(people, **ROLES, scale="standardise", nominal="codes").bias()
    svg = charts.to_svg(bias.chart())
    assert "region (code)" in svg and "region, per" not in svg


def test_the_difference_of_two_categories_is_that_of_the_fits(people):
    """Women less men: by how much `judge` is apart from `cook` in the fit to each."""
    people["job"] = np.where(people["region"] == "west", "judge", "cook")
    table = people.drop(columns=["region", "income"])
    world = eh.TableWorld(table, **ROLES, scale="standardise", nominal="codes")
    report = world.bias(reference="M", weighting="pulls")
    sign = 1.0 if world.codes["job"] == ("cook", "judge") else -1.0
    gaps = {
        sex: mine.loc[mine["job"] == "judge", "paid"].mean()
        - mine.loc[mine["job"] == "cook", "paid"].mean()
        for sex, mine in table.groupby("sex")
    }
    row = report.to_frame().set_index(["group", "feature"]).loc[("F", "job")]
    assert row["estimate"] * sign == pytest.approx(gaps["F"] - gaps["M"])
    assert f"is {abs(row['estimate']):.2f}" in report.to_words()
