"""Impact tables of an audit: counts, weights, scores, and which outcome is the good one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from audit_logs import page_of
from evenhand.fairness import impact_table, scoring_counts
from real_tables import berkeley


def decisions(seed=0, n=400):
    rng = np.random.default_rng(seed)
    log = pd.DataFrame(
        {
            "sex": rng.choice(["F", "M"], size=n, p=[0.4, 0.6]),
            "age": rng.normal(40.0, 10.0, size=n),
            "w": rng.uniform(0.5, 2.0, size=n),
        }
    )
    log["hired"] = (rng.random(n) < np.where(log["sex"] == "F", 0.3, 0.5)).astype(int)
    log["score"] = rng.integers(20, size=n) + 3 * (log["sex"] == "M")
    return log


def selected(log, column="hired"):
    table = log.groupby("sex")[column].agg(n="size", selected="sum")
    return table.rename_axis("category").reset_index()


def table_of(log, **more):
    audit = eh.audit(log, group="sex", features=["age"], **more)
    return audit, audit.impact.drop(columns="attribute")


@pytest.mark.slow
def test_it_is_the_table_of_the_counts():
    log = decisions()
    audit, table = table_of(log, reward="hired", reference="M")
    pd.testing.assert_frame_equal(table, impact_table(selected(log), reference="M"))
    assert audit.impact["attribute"].tolist() == ["sex", "sex"]
    assert "By sex the lowest selection rate is that of F" in audit.to_words()
    assert audit.to_dict()["impact"][0]["category"] == "F"
    # Without a name, there is nobody that the others are to be compared with but the highest.
    assert table_of(log, reward="hired")[1]["reference_ratio"].isna().all()
    assert table_of(log, reward="hired", reference="mean")[1]["reference_ratio"].isna().all()


def test_where_1_is_bad_0_is_selected():
    log = decisions()
    _, table = table_of(log, reward="hired", unfavourable=True)
    flipped = log.assign(hired=1 - log["hired"])
    pd.testing.assert_frame_equal(table, impact_table(selected(flipped)))


@pytest.mark.slow
def test_rows_that_stand_for_several_people():
    audit = eh.audit(berkeley(), group="sex", reward="admitted", features=["dept"], count="people")
    row = audit.impact.set_index("category").loc["Female"]
    assert (row["n"], row["selected"]) == (1835, 557)
    assert row["fisher_p"] < 1e-20


def test_weights_count_and_have_no_exact_test():
    log = decisions()
    audit, table = table_of(log, reward="hired", weight="w")
    heavy = log.assign(hired=log["hired"] * log["w"], square=log["w"] ** 2).groupby("sex").sum()
    counts = pd.DataFrame(
        {
            "category": heavy.index,
            "n": heavy["w"],
            "selected": heavy["hired"],
            "effective": heavy["w"] ** 2 / heavy["square"],
        }
    )
    pd.testing.assert_frame_equal(table, impact_table(counts), check_dtype=False)
    assert table["fisher_p"].isna().all()
    assert "there is no exact test for rows with weights" in audit.to_words()


@pytest.mark.parametrize("unfavourable", [False, True])
def test_scores_are_compared_with_the_median(unfavourable):
    log = decisions()
    audit, table = table_of(log, reward="score", unfavourable=unfavourable)
    scores = -log["score"] if unfavourable else log["score"]
    counts = scoring_counts(log["sex"], scores).sort_values("category")
    pd.testing.assert_frame_equal(table, impact_table(counts))
    side = "below" if unfavourable else "above"
    assert f"share {side} the median score" in audit.to_words()


def test_scores_with_weights():
    log = decisions()
    _, table = table_of(log, reward="score", weight="w")
    above = log["score"] > log["score"].median()
    rate = (above * log["w"]).groupby(log["sex"]).sum() / log.groupby("sex")["w"].sum()
    np.testing.assert_allclose(table["rate"], rate)


@pytest.mark.slow
@pytest.mark.parametrize(("value", "said"), [(0, "is 0.0 %"), (1, "the same selection rate")])
def test_where_everybody_fares_the_same(value, said):
    log = decisions()
    log["hired"] = value
    log.loc[0, "hired"] = value
    audit, _ = table_of(log, reward="hired")
    assert said in " ".join(sentence for sentence in audit.summary if sentence.startswith("By sex"))
    page_of(audit)


def test_a_small_group_is_not_the_highest_rate():
    log = decisions()
    few = log.head(5).assign(sex="X", hired=1)
    audit, table = table_of(pd.concat([log, few], ignore_index=True), reward="hired")
    assert table.set_index("category").loc["X", "small"]
    assert table.loc[table["highest"], "category"].tolist() == ["M"]
    assert "1 with less than 2 % of the data excluded" in audit.to_words()
