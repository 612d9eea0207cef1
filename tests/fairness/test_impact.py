"""Impact tables against SciPy, Fairlearn, statsmodels and hand calculation."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from evenhand.errors import InputError
from evenhand.fairness.impact import fisher_exact, impact_table, scoring_counts
from real_tables import berkeley, one_row_each


def counts(**categories):
    rows = [(name, n, selected) for name, (n, selected) in categories.items()]
    return pd.DataFrame(rows, columns=["category", "n", "selected"])


def by_category(table, **more):
    return impact_table(table, **more).set_index("category")


# A table of the shape that rules on Local Law 144 ask for: applicants and selected, worked by hand.
RULES = counts(male=(1390, 667), female=(1181, 555))


def test_the_example_of_the_rules_by_hand():
    table = by_category(RULES)
    assert table.loc["male", "rate"] == pytest.approx(667 / 1390)
    assert table.loc["female", "ratio"] == pytest.approx((555 / 1181) / (667 / 1390))
    assert table["highest"].tolist() == [True, False]
    assert table.loc["male", ["ratio", "low", "high"]].tolist() == [1.0, 1.0, 1.0]
    assert np.isnan(table.loc["male", "fisher_p"])
    assert not table["below_four_fifths"].any()
    assert not table["beyond_two_deviations"].any()


@pytest.mark.parametrize("seed", range(5))
def test_fisher_is_scipys(seed):
    rng = np.random.default_rng(seed)
    for _ in range(100):
        n, m = (int(10 ** rng.uniform(0.2, 4.0)) for _ in range(2))
        k, j = int(rng.integers(n + 1)), int(rng.integers(m + 1))
        expected = stats.fisher_exact([[k, n - k], [j, m - j]]).pvalue
        assert fisher_exact(k, n, j, m) == pytest.approx(expected, rel=1e-9, abs=1e-200)


def test_fisher_of_many_people():
    n = 10**8
    p_value = fisher_exact(30_000_000, n, 30_010_000, n)
    expected = stats.fisher_exact([[30_000_000, n - 30_000_000], [30_010_000, n - 30_010_000]])
    assert p_value == pytest.approx(expected.pvalue, rel=1e-5)


def test_intervals_and_deviations_are_those_of_statsmodels():
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    table = by_category(counts(a=(400, 100), b=(600, 240), c=(90, 12)), level=0.9)
    for name, n, k in (("a", 400, 100), ("c", 90, 12)):
        low, high = proportion.confint_proportions_2indep(
            k, n, 240, 600, method="log", compare="ratio", alpha=0.1
        )
        assert table.loc[name, "low"] == pytest.approx(low)
        assert table.loc[name, "high"] == pytest.approx(high)
        z, _ = proportion.proportions_ztest([k, 240], [n, 600])
        assert table.loc[name, "deviations"] == pytest.approx(z)


def test_rates_and_ratios_are_fairlearns():
    fairlearn = pytest.importorskip("fairlearn.metrics")
    rows = one_row_each(berkeley())
    table = by_category(
        rows.groupby("dept")["admitted"].agg(n="size", selected="sum").rename_axis("category")
        .reset_index()
    )  # fmt: skip
    frame = fairlearn.MetricFrame(
        metrics=fairlearn.selection_rate,
        y_true=rows["admitted"],
        y_pred=rows["admitted"],
        sensitive_features=rows["dept"],
    )
    np.testing.assert_allclose(table["rate"], frame.by_group.loc[table.index])
    assert table["ratio"].min() == pytest.approx(frame.ratio())


def test_a_small_category_is_shown_and_not_compared_with():
    table = by_category(counts(few=(19, 19), some=(481, 240), most=(500, 200)))
    assert table["small"].tolist() == [True, False, False]
    assert table["highest"].tolist() == [False, True, False]
    assert table.loc["few", "ratio"] > 1.0
    assert "less than 2 % of the data" in table.loc["few", "note"]
    assert by_category(RULES.assign(n=RULES["n"]), least_part=1.0)["highest"].sum() == 1


def test_against_a_reference_as_well():
    table = by_category(counts(a=(100, 50), b=(100, 40), c=(100, 20)), reference="b")
    assert table.loc["c", "ratio"] == pytest.approx(0.4)
    assert table.loc["c", "reference_ratio"] == pytest.approx(0.5)
    expected = stats.fisher_exact([[20, 80], [40, 60]]).pvalue
    assert table.loc["c", "reference_fisher_p"] == pytest.approx(expected)
    assert np.isnan(table.loc["b", "reference_fisher_p"])
    assert by_category(counts(a=(9, 5), b=(9, 4)))["reference_ratio"].isna().all()


def test_weights_have_no_exact_test_and_their_own_number_of_people():
    plain = counts(a=(400, 100), b=(600, 240))
    table = by_category(plain.assign(effective=[100.0, 150.0]))
    assert table["fisher_p"].isna().all()
    assert "weights" in table.loc["a", "note"]
    quarter = by_category(counts(a=(100, 25), b=(150, 60)))
    for column in ("ratio", "low", "high", "deviations"):
        assert table.loc["a", column] == pytest.approx(quarter.loc["a", column])
    broken = by_category(counts(a=(400.5, 100.0), b=(600, 240)))
    assert broken["fisher_p"].isna().all()
    assert "not whole" in broken.loc["a", "note"]


@pytest.mark.parametrize(
    ("given", "ratio", "note"),
    [
        (counts(a=(50, 0), b=(50, 0)), np.nan, "nobody is selected"),
        (counts(a=(50, 0), b=(50, 10)), 0.0, ""),
        (counts(a=(50, 50), b=(50, 50)), 1.0, ""),
        (counts(a=(0, 0), b=(50, 10)), np.nan, "nobody is in it"),
        (counts(a=(1, 0), b=(1, 1)), 0.0, ""),
    ],
)
def test_extremes(given, ratio, note):
    table = by_category(given)
    row = table.loc["a"]
    assert row["ratio"] == pytest.approx(ratio, nan_ok=True)
    assert note in row["note"]
    if not np.isnan(ratio):
        assert row["low"] <= row["ratio"] <= row["high"] < np.inf
        assert 0.0 <= np.nan_to_num(row["fisher_p"]) <= 1.0


def test_scores_above_the_median():
    rng = np.random.default_rng(3)
    groups, scores = rng.choice(["F", "M"], size=201), rng.integers(10, size=201)
    table = scoring_counts(groups, scores).set_index("category")
    for name in ("F", "M"):
        assert table.loc[name, "selected"] == (scores[groups == name] > np.median(scores)).sum()


@pytest.mark.parametrize(
    ("given", "more", "said"),
    [
        (RULES.drop(columns="n"), {}, "no column 'n'"),
        (RULES.assign(selected=5000), {}, "5000 selected of 1390"),
        (RULES.assign(category="a"), {}, "a category twice"),
        (RULES.assign(n=0, selected=0), {}, "nobody in any category"),
        (RULES, {"reference": "x"}, "allowed are male, female"),
        (RULES, {"level": 2}, "level is 2"),
    ],
)
def test_errors_in_one_line(given, more, said):
    with pytest.raises(InputError, match=said) as error:
        impact_table(given, **more)
    assert "\n" not in str(error.value)


def test_coverage_of_the_interval():
    """Of 95 % intervals of a ratio to a fixed other category, 94 to 96 % hold it: n 100 and 200.

    Computed by going through all outcomes, but for one in a million: no chance is involved.
    A category's interval hangs on its own count and the other's, so one table has all of its own.
    """
    selected, inside = np.arange(1, 101), 0.0
    for other in range(60, 141):
        rows = [*((f"a{k}", 100, k) for k in selected), ("b", 200, other)]
        table = pd.DataFrame(rows, columns=["category", "n", "selected"])
        table["effective"] = table["n"]  # leaves Fisher's test out, which takes long
        table = by_category(table, reference="b").drop("b")
        covers = table["reference_low"].le(0.6) & table["reference_high"].ge(0.6)
        chance = stats.binom.pmf(selected, 100, 0.3) * stats.binom.pmf(other, 200, 0.5)
        inside += (chance * covers).sum()
    assert 0.94 <= inside <= 0.96
