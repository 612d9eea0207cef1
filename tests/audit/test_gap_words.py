"""A coefficient is a change of the gap and no gap: both are told as what they are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

import evenhand as eh
from audit_logs import page_of
from evenhand.bias import Statistics, bias_report

# Women are admitted more often in both departments: 80 of 100 against 60, and 21 against 20.
ADMITTED = {("A", "F"): 80, ("A", "M"): 60, ("B", "F"): 21, ("B", "M"): 20}


def departments() -> pd.DataFrame:
    rows = [
        (department, sex, int(i < admitted))
        for (department, sex), admitted in ADMITTED.items()
        for i in range(100)
    ]
    rows += [("A", "M", 0)]  # so that A is the most frequent, and M the largest
    return pd.DataFrame(rows, columns=["dept", "group", "reward"])


@pytest.fixture(scope="module")
def audit():
    return eh.audit(departments(), reference="M", level=0.9)


def test_the_gap_is_given_within_each_category(audit):
    gaps = audit.bias.gaps().set_index("at")
    assert gaps["column"].unique().tolist() == ["dept"]
    assert gaps.loc["A", "estimate"] == pytest.approx(0.80 - 60 / 101)
    assert gaps.loc["B", "estimate"] == pytest.approx(0.01)
    change = audit.bias.to_frame().set_index(["group", "feature"]).loc[("F", "dept=B"), "estimate"]
    assert change == pytest.approx(0.01 - (0.80 - 60 / 101))


def test_nobody_is_called_lower_who_is_higher(audit):
    """The coefficient of B is -0.2: that women have less in B would be false."""
    said = audit.to_words()
    assert (
        "In dept B the gap (mean reward of group F less that of group M) is 0.20 below the gap in "
        "dept A, the baseline; 90 % interval" in said
    )
    assert "0.21 higher in A" in said
    assert "not distinguishable in B" in said
    assert "lower than" not in said


def test_gaps_are_those_of_statsmodels():
    rng = np.random.default_rng(3)
    n = 900
    log = pd.DataFrame(
        {
            "group": rng.choice(["F", "M", "X"], n, p=[0.3, 0.4, 0.3]),
            "dept": rng.choice(["A", "B", "C"], n, p=[0.5, 0.3, 0.2]),
            "age": rng.normal(40.0, 9.0, n),
        }
    )
    log["reward"] = (log["dept"] == "B") * (log["group"] == "F") + log["age"] / 30
    log["reward"] += rng.normal(size=n) * np.where(log["group"] == "F", 2.0, 0.5)
    bias = eh.audit(log, reference="M").bias
    formula = "reward ~ C(group, Treatment('M')) * (C(dept) + age)"
    fit = smf.ols(formula, log).fit(cov_type="HC1")
    for at, group, value in (("A", "F", None), ("C", "X", None), ("50", "F", 50.0)):
        gaps = bias.gaps({"age": [50.0]})
        row = gaps[(gaps["at"] == at) & (gaps["group"] == group)].iloc[0]
        parts = (log["dept"].value_counts() / n).to_dict()
        if value is None:
            parts = dict.fromkeys("ABC", 0.0) | {at: 1.0}
        place = {"age": log["age"].mean() if value is None else value} | parts
        contrast = np.array([_part(name, group, place) for name in fit.params.index])
        assert row["estimate"] == pytest.approx(contrast @ fit.params, rel=1e-8)
        error = np.sqrt(contrast @ fit.cov_params() @ contrast)
        assert row["standard_error"] == pytest.approx(error, rel=1e-8)


def _part(name: str, group: str, place: dict[str, float]) -> float:
    """What a coefficient of the joint regression is multiplied with in the gap of a group."""
    if f"[T.{group}]" not in name:
        return 0.0
    if ":" not in name:
        return 1.0
    other = name.split(":")[1]
    return place["age"] if other == "age" else place[other.split("T.")[1].rstrip("]")]


def test_a_number_changes_the_gap_and_the_gap_is_told_where_there_is_somebody():
    rng = np.random.default_rng(5)
    n = 2000
    log = pd.DataFrame({"group": rng.choice(["F", "M"], n), "debt": rng.exponential(1.0, n) ** 2})
    log["reward"] = 1.0 - (log["group"] == "F") * log["debt"] + 0.1 * rng.normal(size=n)
    audit = eh.audit(log, reference="M")
    said = audit.to_words()
    assert "With every additional 10 of debt, the mean reward of group F" in said
    assert "falls by 10.0" in said
    at = audit.bias.gaps()["at"].astype(float)
    # One standard deviation below the average would be a debt that nobody has.
    assert log["debt"].mean() < log["debt"].std()
    assert at.min() == pytest.approx(log["debt"].min())
    assert (at <= log["debt"].max()).all()


def test_flags_are_no_numbers():
    rng = np.random.default_rng(6)
    n = 1000
    log = pd.DataFrame({"group": rng.choice(["F", "M"], n), "smoker": rng.integers(2, size=n)})
    log["reward"] = (log["group"] == "F") * log["smoker"] + 0.1 * rng.normal(size=n)
    bias = eh.audit(log, reference="M").bias
    assert bias.gaps()["at"].tolist() == ["0", "1"]
    assert "Where smoker is 1 the gap" in bias.to_words()
    assert "is 1.0" in bias.to_words()
    assert "above the gap where smoker is 0" in bias.to_words()


def test_the_page_shows_gaps_before_changes(audit, tmp_path):
    page = audit.to_html()
    assert page.index("dept = B") < page.index("dept=B", page.index("dept = B"))
    assert "change of the gap to group M" in page
    written = audit.to_dict()["bias"]["gaps"]
    assert [(row["column"], row["at"]) for row in written] == [("dept", "A"), ("dept", "B")]


def test_values_are_asked_of_numbers_only(audit):
    with pytest.raises(ValueError, match=r"values has 'dept', which is not a column of numbers"):
        audit.bias.gaps({"dept": [1.0]})


def test_two_groups_show_the_whole_gap_without_a_reference():
    table = departments()
    audit = eh.audit(table)
    assert audit.bias.reference == "M"
    assert "compared with group M, the largest (reference=GROUP names another)" in audit.summary[0]
    x = np.column_stack([np.ones(len(table)), table["dept"] == "B"])
    sums = Statistics.from_rows(x, table["reward"], table["group"])
    assert bias_report(sums).reference == "M"
    halves = bias_report(sums, reference="mean").by_group["estimate"]
    whole = bias_report(sums).by_group["estimate"]
    assert halves["F"] == pytest.approx(whole["F"] / 2) and halves["M"] == -halves["F"]


def test_equal_groups_are_not_called_the_largest():
    table = departments().iloc[:-1]
    assert "one of the largest" in eh.audit(table).summary[0]


@pytest.mark.slow
def test_one_number_has_one_interval():
    """Summary and page had different intervals for the gap at the average context."""
    rng = np.random.default_rng(8)
    log = pd.DataFrame({"group": rng.choice(["F", "M", "X"], 600), "x": rng.normal(size=600)})
    log["reward"] = log["x"] - 3.0 * (log["group"] == "F") + rng.normal(size=600)
    audit = eh.audit(log)
    row = audit.bias.by_group.loc["F"]
    low, high = -row["simultaneous_high"], -row["simultaneous_low"]
    assert f"95 % interval {low:.2f} to {high:.2f}." in audit.to_words()
    bias = page_of(audit).split('id="bias"')[1]
    cells = bias.split('<th scope="row">F</th>')[1].split("</tr>")[0]
    assert (
        f"{row['simultaneous_low']:,.3g}" in cells and f"{row['simultaneous_high']:,.3g}" in cells
    )
    assert f"{row['low']:,.5g}" not in cells


@pytest.mark.slow
def test_a_policy_compares_two_groups_with_the_one_that_is_not_sensitive():
    groups = eh.Groups(["F", "F", "M", "M"], sensitive="F")
    policy = eh.TopInterval(groups, n_features=1, seed=1)
    policy.absorb([0, 0, 1, 1, 1, 2, 2, 3, 3], np.ones((9, 1)), [1, 2, 2, 3, 3, 5, 6, 6, 7])
    assert policy.bias().reference == "M"
    assert policy.bias(reference="mean").reference is None


def test_words_for_one_and_for_none():
    rng = np.random.default_rng(1)
    log = pd.DataFrame({"group": ["F"] * 30 + ["M"] * 60, "x": rng.normal(size=90)})
    log["reward"] = [1] + [0] * 29 + [0, 1] * 30
    said = eh.audit(log).to_words()
    assert "Group F has only 1 row with reward = 1" in said
    assert "-0.0" not in said
    x = np.column_stack([np.ones(8), [0.0] * 4 + [1.0] * 4])
    apart = Statistics.from_rows(x, np.arange(8.0), ["F"] * 4 + ["M"] * 4)
    assert "inf" not in bias_report(apart).to_words()
    assert "without any overlap from group" in bias_report(apart).to_words()
    assert "inf" not in " ".join(bias_report(apart).to_frame()["why"])
    many = np.column_stack([np.ones(200), rng.normal(size=(200, 2))])
    y = np.where(np.arange(200) < 100, many @ [1.0, 5.0, 9.0], 0.0) + 0.01 * rng.normal(size=200)
    report = bias_report(Statistics.from_rows(many, y, ["F"] * 100 + ["M"] * 100), reference="M")
    assert "1 more interval excludes zero" in report.to_words(most=1)


def test_names_with_blanks_are_quoted():
    rng = np.random.default_rng(2)
    log = pd.DataFrame(
        {"the group": rng.choice(["New York", "Hull"], 200), "x y": rng.normal(size=200)}
    )
    log["reward"] = (log["the group"] == "Hull") * 2.0 + rng.normal(size=200)
    said = eh.audit(log, group="the group", reference="Hull").summary
    assert "group 'New York' is" in said[1]
    assert "by 'the group'" in said[0]
