"""Errors by group, and later passes over a log that must see the rows of the first."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from audit_logs import assert_same, differences, in_duckdb, interacted, made_log


def unequal(seed=0, third=3):
    """Two groups with unequal noise along x, and a third of a few rows."""
    rng = np.random.default_rng(seed)
    log = made_log(seed, n=500, d=2, noise=0.0)
    log["reward"] += rng.normal(size=500) * np.abs(log["x0"])
    few = made_log(seed + 1, n=third, d=2, groups=("F", "M")).assign(group="X")
    return pd.concat([log, few], ignore_index=True)


def test_a_tiny_third_group_leaves_the_others_their_robust_errors():
    log = unequal()
    audit = eh.audit(log, reference="M")
    names, model = interacted(log[log["group"] != "X"], ["x0", "x1"])
    fitted = model.fit(cov_type="HC1")
    expected = differences(fitted, names, "M", 3)
    table = audit.bias.to_frame().set_index(["group", "feature"])
    # HC1 counts all rows and coefficients of the log, those of the third group included.
    n, d = len(log) - 3, 6
    factor = np.sqrt((len(log) / (len(log) - 9)) / (n / (n - d)))
    for k, name in enumerate(("intercept", "x0", "x1")):
        estimate, error = expected["F", k]
        assert table.loc[("F", name), "estimate"] == pytest.approx(estimate, rel=1e-8)
        assert table.loc[("F", name), "standard_error"] == pytest.approx(factor * error, rel=1e-6)
    assert audit.facts.errors == "robust"
    assert audit.facts.classical == ("X",)
    assert "Group X has fewer than 20 rows for every coefficient" in audit.to_words()


def test_a_small_group_has_the_classical_errors_of_its_own():
    log = unequal(third=12)
    auto = eh.audit(log, reference="M").bias._fit.covariances
    classical = eh.audit(log, reference="M", errors="classical").bias._fit.covariances
    robust = eh.audit(log, reference="M", errors="robust").bias._fit.covariances
    np.testing.assert_allclose(auto[2], classical[2], rtol=1e-9)
    np.testing.assert_allclose(auto[:2], robust[:2], rtol=1e-9)
    assert not np.allclose(auto[2], robust[2], rtol=1e-2)


def test_windows_choose_their_errors_by_group_too():
    log = unequal(third=20).assign(timestamp=lambda frame: np.arange(len(frame)) % 100)
    audit = eh.audit(log, reference="M", windows=2)
    drift = audit.drift.set_index(["group", "window"])
    robust = eh.audit(log[log["group"] != "X"], reference="M", windows=2, errors="robust").drift
    robust = robust.set_index(["group", "window"])
    # The correction and the average context count all rows, so they are near and not equal.
    np.testing.assert_allclose(
        drift.loc["F", "standard_error"], robust.loc["F", "standard_error"], rtol=0.004
    )
    classical = eh.audit(log, reference="M", windows=2, errors="classical").drift
    classical = classical.set_index(["group", "window"]).loc["F", "standard_error"]
    assert (np.abs(classical / robust.loc["F", "standard_error"] - 1.0) > 0.008).any()


@pytest.mark.parametrize("step", ["robust errors", "errors of clusters", "time windows"])
def test_a_log_that_changes_between_passes_stops_the_audit(step):
    log = made_log(3, n=400, d=1).assign(person=np.arange(400) // 4, time=np.arange(400) % 50)
    con, table = in_duckdb(log)

    def tell(words: str) -> None:
        if step in words:
            con.execute("DELETE FROM log WHERE person = 7")

    # Windows of clusters have a query of their own; others are part of the second pass.
    how = {"leave_out": ["person"]} if step == "robust errors" else {"cluster": "person"}
    how["leave_out"] = [*how.get("leave_out", []), *(["time"] if step != "time windows" else [])]
    with pytest.raises(ValueError, match=r"rows in one pass and [\d,]+ in the next; .*a copy"):
        eh.audit(table, reference="M", tell=tell, **how)


def test_rewards_that_change_between_passes_stop_the_audit():
    con, table = in_duckdb(made_log(4, n=400, d=1))

    def tell(words: str) -> None:
        if "robust" in words:
            con.execute("UPDATE log SET reward = reward + 1")

    with pytest.raises(ValueError, match="other rewards in one pass than in the next"):
        eh.audit(table, reference="M", tell=tell)


def test_a_group_that_a_later_pass_writes_in_another_way_is_noticed(monkeypatch):
    """What made errors of 1e-8: the query over residuals matched no row of a group."""
    from evenhand.audit._inference import cluster_errors, second_pass
    from evenhand.audit._sums.batches import Coding

    def renamed(rows, fits):
        labels = tuple((f"{label[0]}!",) for label in fits.labels)
        return numbered(rows, fits.__class__(**{**vars(fits), "labels": labels}))

    def relabelled(rows, coding, features):
        others = [(f"{label[0]}!",) for label in coding.labels]
        return columns(rows, Coding(coding.keys, others, coding.times), features)

    numbered, columns = cluster_errors.numbered, second_pass._columns
    monkeypatch.setattr(cluster_errors, "numbered", renamed)
    monkeypatch.setattr(second_pass, "_columns", relabelled)
    log = made_log(5, n=300).assign(person=np.arange(300) // 3)
    for roles in ({"leave_out": ["person"]}, {"cluster": "person"}):
        with pytest.raises(ValueError, match=r"had \d+ rows in one pass and 0 in the next"):
            eh.audit(log, reference="M", **roles)


# Rows that stand for several people --------------------------------------------------------------


def counted(seed=0):
    rng = np.random.default_rng(seed)
    many = rng.integers(0, 6, size=200)
    log = made_log(seed, n=200, d=2).assign(people=many, reward=rng.integers(2, size=200))
    return log, log.loc[log.index.repeat(many)].reset_index(drop=True).drop(columns="people")


def test_counts_give_the_numbers_of_a_row_per_person():
    log, single = counted()
    summed, other = eh.audit(log, count="people", reference="M"), eh.audit(single, reference="M")
    assert (log["people"] == 0).any()
    for name in ("by_group", "to_frame", "gaps", "totals"):
        tables = [getattr(audit.bias, name) for audit in (summed, other)]
        left, right = (table() if callable(table) else table for table in tables)
        pd.testing.assert_frame_equal(left, right, rtol=1e-10)
    pd.testing.assert_frame_equal(summed.groups, other.groups)
    pd.testing.assert_frame_equal(summed.metrics.to_frame(), other.metrics.to_frame())
    assert summed.facts.used == len(single)
    names, model = interacted(single, ["x0", "x1"])
    assert_same(summed.bias, differences(model.fit(cov_type="HC1"), names, "M", 3))
    assert any("as many people as people says" in sentence for sentence in summed.method)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda many: many - 1, "has a value of -1; allowed are whole numbers from 0 on"),
        (lambda many: many + 0.5, "has 200 values that are not whole"),
        (lambda many: many.where(many.index > 3), "has 4 missing values of 200"),
        (lambda many: many * 0, "has a sum of 0"),
        (lambda many: many * 10**6, "allowed are 1 to 50,000,000 people"),
        (lambda many: many.astype(str) + "x", "a column of text"),
    ],
)
def test_counts_are_whole_numbers_from_0_on(change, words):
    log, _ = counted()
    with pytest.raises(ValueError, match="count") as error:
        eh.audit(log.assign(people=change(log["people"])), count="people")
    assert words in str(error.value)


def test_weights_that_look_like_counts_are_asked_about():
    log, _ = counted()
    audit = eh.audit(log.assign(people=log["people"] + 1), weight="people", reference="M")
    assert "name the column in count instead" in audit.to_words()
    assert np.isfinite(audit.bias.by_group["standard_error"]).all()
    with pytest.raises(ValueError, match="in count, where 0 is allowed"):
        eh.audit(log, weight="people")
    real = eh.audit(log.assign(people=log["people"] + 0.5), weight="people", reference="M")
    assert "name the column in count" not in real.to_words()


def test_weights_of_rare_events_leave_a_covariance():
    """With weights of hundreds the variance that few events add was negative."""
    log = made_log(6, n=40, d=1).assign(reward=[0, 1] * 20, weight=np.arange(40) * 50 + 1.5)
    audit = eh.audit(log, weight="weight", reference="M")
    scaled = eh.audit(log.assign(weight=log["weight"] / 1e4), weight="weight", reference="M")
    pd.testing.assert_frame_equal(audit.bias.by_group, scaled.bias.by_group, rtol=1e-6)


# Rewards where 1 is bad --------------------------------------------------------------------------


def denied():
    """20 of 100 of F are denied, and 5 of 100 of M."""
    rng = np.random.default_rng(0)
    rows = [("F", int(i < 20)) for i in range(100)] + [("M", int(i < 5)) for i in range(100)]
    return pd.DataFrame(rows, columns=["group", "deny"]).assign(x=rng.normal(size=200))


@pytest.mark.slow
def test_unfavourable_rewards_are_screened_by_what_is_good():
    good = eh.audit(denied(), reward="deny", unfavourable=True).metrics.screening()
    row = good.set_index("group").loc["F"]
    assert row["estimate"] == pytest.approx(0.80 / 0.95)
    assert good.set_index("group").loc["M", "screen"] == "the highest rate"
    bad = eh.audit(denied(), reward="deny").metrics.screening().set_index("group")
    assert bad.loc["M", "estimate"] == pytest.approx(0.25)  # the wrong side
    said = eh.audit(denied(), reward="deny", unfavourable=True)
    assert (
        said.summary[1]
        == "A higher deny is worse for people; those with deny = 0 count as selected."
    )
    assert "favourable outcome (rewards of 0 over rewards)" in said.metrics.to_words()


def test_a_bad_outcome_is_asked_about():
    assert "set unfavourable=True" in eh.audit(denied(), reward="deny").summary[1]
    paid = denied().rename(columns={"deny": "paid"})
    assert "unfavourable=True" not in eh.audit(paid, reward="paid").to_words()
    assert (
        "unfavourable=True" not in eh.audit(denied(), reward="deny", unfavourable=True).to_words()
    )


def test_unfavourable_needs_rewards_of_0_and_1_in_sums():
    with pytest.raises(ValueError, match="the sums have no positives"):
        eh.fairness.fairness_report(pd.DataFrame({"group": ["F"], "n": [3]}), unfavourable=True)
