"""The bias report in words, pictures and files."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bias_rows import rows_of, statistics
from evenhand.bias import bias_report
from evenhand.bias._sentences import ASSUMPTION


@pytest.fixture
def loans():
    rng = np.random.default_rng(32)
    n = 4000
    arms = rng.integers(4, size=n)
    groups = np.array(["F", "F", "M", "M"])[arms]
    income = rng.normal(30_000.0, 3000.0, n)
    x = np.column_stack([np.ones(n), income, rng.integers(2, size=n), rng.normal(size=n)])
    y = x @ [1.0, 1e-4, 0.5, 1.0] + 0.1 * rng.normal(size=n)
    y -= (groups == "F") * (1.0 + 1e-4 * income + 0.3 * x[:, 2])
    order = np.argsort(arms, kind="stable")
    return statistics(x[order], y[order], groups[order], arms[order])


NAMES = ["one", "income", "married", "wit"]


def test_sentences(loans):
    said = bias_report(loans, reference="M", feature_names=NAMES).to_words().splitlines()
    assert said[0].startswith("At the average context the feedback for group F is 4.1")
    # Numbers with as many digits as they are worth; the most important first.
    starts = [
        "With every additional 1,000 of income, the feedback for group F falls by 0.099",
        "Where married is 1 the gap (feedback for group F less that for group M) is 0.3",
        "The feedback for group F compared with that for group M, by married, with all other "
        "features at their average: ",
        "It is not clear whether the gap changes for group F with wit (by 0.011 or more), where ",
    ]
    assert [
        sentence[: len(start)] for sentence, start in zip(said[1:], starts, strict=False)
    ] == starts
    assert " relative to that for group M; 95 % interval 0." in said[1]
    assert " below the gap where married is 0; 95 % interval 0." in said[2]
    assert said[-1] == ASSUMPTION
    assert str(bias_report(loans, "M", feature_names=NAMES)) == "\n".join(said)
    short = bias_report(loans, "M").to_words(most=1).splitlines()
    assert short[2] == "1 more interval excludes zero: see the table of all features."


def test_sentences_agree_with_the_table(loans):
    report = bias_report(loans, "M", 0.9, feature_names=NAMES, units={"income": 500.0})
    row = report.to_frame().query("feature == 'income' and group == 'F'").iloc[0]
    low, high = -500.0 * row["simultaneous_high"], -500.0 * row["simultaneous_low"]
    digits = int(1 - np.floor(np.log10((high - low) / 2.0)))
    expected = (
        "With every additional 500 of income, the feedback for group F falls by "
        f"{-500.0 * row['estimate']:.{digits}f} relative to that for group M; 90 % interval "
        f"{low:.{digits}f} to {high:.{digits}f}."
    )
    assert expected in report.to_words().splitlines()


def test_two_groups_against_their_mean_are_said_once(loans):
    said = bias_report(loans, "mean", feature_names=NAMES).to_words()
    assert said.count("of income, the feedback") == 1
    assert "group F is" in said and "lower than the average of the groups" in said
    assert "higher" not in said


def test_nothing_that_stands_out_is_said_as_such():
    x, _, groups, _ = rows_of(33)
    report = bias_report(statistics(x, np.random.default_rng(0).normal(size=len(x)), groups))
    said = report.to_words().splitlines()
    assert said[0] == (
        "At the average context the feedback for all 3 groups cannot be told apart from the "
        "average of the groups. In each of them, a gap of 0.3 or more would have been found "
        "with 80 % power."
    )
    assert said[1].startswith("It is not clear whether the gap changes for 6 of 6 pairs")
    assert "no proof" in said[1]


@pytest.mark.parametrize(
    ("spread", "unit"), [(2600.0, 1000.0), (0.29, 0.1), (0.5, 1.0), (9.0, 10.0)]
)
def test_units_are_powers_of_ten_near_the_spread(spread, unit):
    rng = np.random.default_rng(34)
    values = rng.normal(size=100)
    values = 5.0 + spread * (values - values.mean()) / values.std()
    sums = statistics(np.column_stack([np.ones(100), values]), values, ["F", "M"] * 50)
    assert bias_report(sums).units == pytest.approx((1.0, unit))


def test_json_has_everything_and_no_nan(loans):
    for reference in (None, "M"):
        report = bias_report(loans, reference, noise=0.1, feature_names=NAMES)
        read = json.loads(report.to_json(), parse_constant=lambda word: pytest.fail(word))
        assert read == report.to_dict()
        assert (read["format"], read["version"]) == ("evenhand bias report", 1)
        table = report.to_frame()
        for row, (_, expected) in zip(read["bias"], table.iterrows(), strict=True):
            for name in table.columns.difference(["freedom", "disagrees"]):
                value = expected[name]
                missing = isinstance(value, float) and np.isnan(value)
                assert row[name] is None if missing else row[name] == value
            assert row["freedom"] is None  # infinite: the noise is known
        assert read["totals"][0]["context"] == "own"
        assert read["words"] == report.to_words()


def test_the_chart_shows_every_row(loans, tmp_path):
    from evenhand import charts

    x, y, groups, _ = rows_of(35)
    report = bias_report(statistics(np.column_stack([x, x[:, 1]]), y, groups), reference="X")
    chart = report.chart("A title")
    rows = json.loads(chart.to_json())["datasets"].values()
    shown = {(row["group"], row["feature"]): row for part in rows for row in part if "group" in row}
    assert set(shown) == {(g, f"x{k}") for g in "FM" for k in (1, 2, 3, 4)}
    assert shown["F", "x2"]["estimate"] is None and "collinear" in shown["F", "x2"]["why"]
    assert shown["F", "x3"]["low"] < shown["F", "x3"]["estimate"] < shown["F", "x3"]["high"]
    text = charts.save(chart, tmp_path / "bias.svg")[0].read_text()
    assert "A title" in text and "change of the gap to group X" in text
    assert text.count("not identified</text>") == 4
    units = bias_report(loans, feature_names=NAMES).chart().to_json()
    assert "income, per 1,000" in units
    with pytest.raises(ValueError, match="bias has no column 'why'"):
        charts.bias_chart(report.to_frame().drop(columns="why"))


def test_by_group_is_a_row_per_group(loans):
    table = bias_report(loans, "M", feature_names=NAMES).by_group
    assert table.index.tolist() == ["F", "M"]
    assert table["observations"].sum() == 4000 and table["arms"].tolist() == [2, 2]
    assert table.loc["F", "estimate"] == pytest.approx(-4.15, abs=0.05)
