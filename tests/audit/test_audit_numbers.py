"""The audit against statsmodels, and what it does with every kind of column."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import evenhand as eh
from audit_logs import assert_same, differences, interacted, made_log, page_of


def by_group_fits(log, features):
    """Each group's own regression: errors with its own noise, and of their differences."""
    out = {}
    for name, part in log.groupby("group"):
        x = np.column_stack([np.ones(len(part)), part[features].to_numpy(dtype=float)])
        out[name] = sm.OLS(part["reward"].to_numpy(), x).fit()
    return out


@pytest.mark.parametrize("shift", [0.0, 1e4, -1e6])
@pytest.mark.parametrize("groups", [("F", "M"), ("A", "B", "C", "D")])
def test_is_that_of_statsmodels_whatever_the_means(shift, groups):
    log = made_log(1, shift=shift, groups=groups)
    log["reward"] += 1e5
    report = eh.audit(log, reference=groups[-1], errors="classical").bias
    centred = log.assign(**{f"x{k}": log[f"x{k}"] - shift for k in range(3)})
    fits = by_group_fits(
        centred.assign(reward=log["reward"] - round(log["reward"].mean())), ["x0", "x1", "x2"]
    )
    # statsmodels itself loses digits far from zero: compare there, and go back by hand.
    move = np.eye(4)
    move[0, 1:] = -shift
    last = fits[groups[-1]]
    for g, name in enumerate(groups[:-1]):
        estimate = move @ (fits[name].params - last.params)
        both = move @ (fits[name].cov_params() + last.cov_params()) @ move.T
        table = report.to_frame().iloc[4 * g : 4 * g + 4]
        errors = np.sqrt(np.diag(both))
        np.testing.assert_allclose(table["estimate"], estimate, rtol=1e-8, atol=1e-8 * errors.min())
        np.testing.assert_allclose(table["standard_error"], errors, rtol=1e-8)


def test_levels_are_in_the_units_of_the_reward():
    log = made_log(2, shift=50.0)
    log["reward"] += 1000.0
    report = eh.audit(log, errors="classical").bias
    fits = by_group_fits(log, ["x0", "x1", "x2"])
    at = np.append(1.0, log[["x0", "x1", "x2"]].mean())
    levels = sorted(float(at @ fits[name].params) for name in fits)
    assert report.ratio().estimate == pytest.approx(levels[0] / levels[1], rel=1e-9)
    np.testing.assert_allclose(report.overall, at, rtol=1e-12)


def test_robust_errors_are_hc1():
    log = made_log(3)
    log["reward"] = (log["reward"] > 1.0).astype(int)
    audit = eh.audit(log, reference="M")
    assert audit.facts.errors == "robust"
    names, model = interacted(log, ["x0", "x1", "x2"])
    expected = differences(model.fit(cov_type="HC1"), names, "M", 4)
    assert_same(audit.bias, expected)


def test_cluster_errors_are_cr1():
    log = made_log(4, groups=("A", "B", "C"))
    log["person"] = log.groupby("group").cumcount() // 4
    log["person"] = log["group"] + log["person"].astype(str)
    log["reward"] += log["person"].map(hash_of)
    audit = eh.audit(log, reference="C", cluster="person")
    names, model = interacted(log, ["x0", "x1", "x2"])
    fitted = model.fit(cov_type="cluster", cov_kwds={"groups": pd.factorize(log["person"])[0]})
    assert_same(audit.bias, differences(fitted, names, "C", 4))
    assert audit.facts.clusters == log.groupby("group")["person"].nunique().to_dict()


def hash_of(text):
    return sum(text.encode()) % 7 - 3.0


@pytest.mark.parametrize("clustered", [False, True])
def test_weights_are_those_of_weighted_least_squares(clustered):
    log = made_log(5)
    log["weight"] = np.random.default_rng(5).uniform(0.2, 5.0, size=len(log))
    log["person"] = log["group"] + (np.arange(len(log)) // 3).astype(str)
    names, model = interacted(log, ["x0", "x1", "x2"], weights=log["weight"])
    roles = {"weight": "weight"}
    if clustered:
        roles["cluster"] = "person"
        codes = pd.factorize(log["person"])[0]
        fitted = model.fit(cov_type="cluster", cov_kwds={"groups": codes})
        audit = eh.audit(log, reference="M", **roles)
    else:
        fitted = model.fit(cov_type="HC1")
        audit = eh.audit(log, reference="M", leave_out=["person"], **roles)
    assert_same(audit.bias, differences(fitted, names, "M", 4))


def test_inverse_propensities_take_out_the_selection_they_describe():
    """F and M are alike, and rows of F with a high reward are mostly not logged: 20,000 rows.

    A false alarm has a chance of about 5 %; the seed is fixed.
    """
    log = made_log(6, n=20_000, d=1, noise=3.0)
    high = (log["reward"] > 1.0) & (log["group"] == "F")
    log["propensity"] = np.where(high, 0.25, 1.0)
    keep = np.random.default_rng(6).random(len(log)) < log["propensity"]
    log = log[keep]
    plain = eh.audit(log, reference="M", leave_out=["propensity"]).bias.by_group.loc["F"]
    assert plain["high"] < -0.2
    audit = eh.audit(log, reference="M", weigh_by_propensity=True)
    weighed = audit.bias.by_group.loc["F"]
    assert weighed["low"] < 0.0 < weighed["high"]
    assert "inverse propensity" in " ".join(audit.limits)
    assert any("weigh_by_propensity=True" in sentence for sentence in eh.audit(log).limits)


def test_arms_are_the_report_from_rows():
    from evenhand.bias import Statistics, bias_report

    log = made_log(7, groups=("F", "M"))
    log["item_id"] = log["group"] + (np.arange(len(log)) % 3).astype(str)
    report = eh.audit(log, reference="M", weighting="arms", errors="classical").bias
    rows = np.column_stack([np.ones(len(log)), log[["x0", "x1", "x2"]]])
    stats = Statistics.from_rows(
        rows, log["reward"], log["group"].tolist(), log["item_id"].tolist()
    )
    mine = bias_report(stats, reference="M", weighting="arms").to_frame()
    theirs = report.to_frame().set_index(["group", "feature"])
    for row in mine[mine["group"] == "F"].itertuples():
        name = "intercept" if row.feature == "x1" else f"x{int(row.feature[1]) - 2}"
        for column in ("estimate", "standard_error", "freedom"):
            assert theirs.loc[("F", name), column] == pytest.approx(getattr(row, column), rel=1e-8)
    weightings = report.weightings().set_index(["group", "feature"])
    expected = bias_report(stats, reference="M", weighting="arms").weightings().query("group=='F'")
    np.testing.assert_allclose(
        weightings.loc["F", "difference"], expected["difference"], rtol=1e-7, atol=1e-9
    )


def test_robust_errors_by_arms():
    log = made_log(8, n=900)
    log["item_id"] = log["group"] + (np.arange(len(log)) % 2).astype(str)
    table = eh.audit(log, reference="M", weighting="arms", errors="robust").bias.to_frame()
    names, model = interacted(log, ["x0", "x1", "x2"], group="item_id")
    fitted = model.fit(cov_type="HC1")
    contrast = np.kron([0.5, 0.5, -0.5, -0.5], np.eye(4))
    assert names == ["F0", "F1", "M0", "M1"]
    np.testing.assert_allclose(table["estimate"][:4], contrast @ fitted.params, rtol=1e-8)
    errors = np.sqrt(np.diag(contrast @ fitted.cov_params() @ contrast.T))
    np.testing.assert_allclose(table["standard_error"][:4], errors, rtol=1e-8)


def test_categories_are_dummies_against_the_most_frequent():
    log = made_log(9, d=1, n=800)
    rng = np.random.default_rng(9)
    log["town"] = rng.choice(
        ["a", "b", "c", "d", "e"], size=len(log), p=[0.2, 0.5, 0.2, 0.06, 0.04]
    )
    log["code"] = rng.choice([1, 2, 3], size=len(log), p=[0.2, 0.3, 0.5])
    log["reward"] += (log["town"] == "c") + (log["code"] == 1)
    audit = eh.audit(log, reference="M", nominal_columns=["code"], categories=3, errors="classical")
    features = ["x0", "town=a", "town=c", "town=other", "code=2", "code=1"]
    assert set(audit.bias.features) == {"intercept", *features}
    dummies = log.assign(
        **{
            "town=a": log["town"] == "a",
            "town=c": log["town"] == "c",
            "town=other": log["town"].isin(["d", "e"]),
            "code=2": log["code"] == 2,
            "code=1": log["code"] == 1,
        }
    )
    order = [name for name in audit.bias.features if name != "intercept"]
    fits = by_group_fits(dummies, order)
    mine = audit.bias.to_frame().iloc[: len(order) + 1]
    np.testing.assert_allclose(mine["estimate"], fits["F"].params - fits["M"].params, rtol=1e-8)
    assert audit.facts.merged == {"town": 2}
    assert "2 of town" in audit.to_words()


def test_windows_add_up_and_a_change_is_found():
    """Group F is marked down in the last quarter. Without it, a false alarm has a 5 % chance."""
    log = made_log(10, n=4000, d=2)
    log["timestamp"] = pd.date_range("2026-01-01", periods=len(log), freq="h")
    calm = eh.audit(log, reference="M", windows=4)
    assert not calm.changes["changes"].any()
    late = (np.arange(len(log)) >= 3000) & (log["group"] == "F")
    audit = eh.audit(log.assign(reward=log["reward"] - 1.0 * late), reference="M", windows=4)
    table = audit.drift[audit.drift["group"] == "F"]
    assert audit.changes.set_index("group")["changes"]["F"]
    assert table["estimate"].iloc[-1] == pytest.approx(-1.0, abs=0.2)
    assert audit.drift["n"].sum() == len(log)
    quarter = log.iloc[:1000]
    means = quarter.groupby("group")["reward"].mean()
    first = audit.drift[audit.drift["window"] == 1].set_index("group")["mean_reward"]
    np.testing.assert_allclose(first, means.loc[first.index], rtol=1e-12)
    assert "changes over time" in audit.to_words()


def test_metrics_are_those_of_the_rows():
    log = made_log(11)
    log["reward"] = (log["reward"] > 1.0).astype(float)
    log["true_reward"] = 1.0
    audit = eh.audit(log)
    rows = eh.fairness.fairness_report(eh.fairness.group_sums(log))
    mine, theirs = audit.metrics.by_group, rows.by_group
    for key in mine.index:
        if key in theirs.index:
            np.testing.assert_allclose(
                mine.loc[key, ["estimate", "low", "high"]].astype(float),
                theirs.loc[key, ["estimate", "low", "high"]].astype(float),
                rtol=1e-9,
            )
    assert ("mean_reward", "F") in mine.index


@pytest.mark.slow
def test_plain_data_is_json_and_words_come_first():
    log = made_log(12)
    log["propensity_score"], log["override"] = 0.5, None
    log.loc[:9, "override"] = "x"
    audit = eh.audit(log)
    plain = json.loads(audit.to_json())
    assert list(plain)[:2] == ["$schema", "format"] and plain["version"] == 1
    assert plain["summary"][0].startswith("600 rows in 2 groups")
    assert plain["bias"]["format"] == "evenhand bias report"
    assert sum(row["overrides"] for row in plain["extras"]) == 10
    assert sum(row["sum_inverse_propensity"] for row in plain["extras"]) == 1200
    page = audit.to_html()
    assert page.index("Summary") < page.index("How this was made") < page.index("What this cannot")
    assert "http" not in page.replace("http://www.w3.org", "")


def test_rounding_is_no_bias():
    """A copy of the reward among the features, and a reward that never varies."""
    log = made_log(71)
    copied = eh.audit(log.assign(copy=log["reward"]), reference="M")
    table = copied.bias.to_frame().query("group == 'F'")
    assert (table["simultaneous_low"] <= 0.0).all() and (table["simultaneous_high"] >= 0.0).all()
    assert copied.summary[1].startswith("Feature copy by itself predicts reward")
    same = eh.audit(log.assign(reward=3.0), reference="M").bias.to_frame().query("group == 'F'")
    assert (same["simultaneous_low"] <= 0.0).all() and (same["simultaneous_high"] >= 0.0).all()


@pytest.mark.slow
def test_a_report_says_when_and_how_it_was_made():
    log = made_log(72).assign(other=1)
    audit = eh.audit(log, reference="M", leave_out=["other"], windows=0)
    plain = json.loads(audit.to_json())
    assert pd.Timestamp(plain["made"]).tzinfo is not None
    assert plain["settings"]["leave_out"] == ["other"] and plain["settings"]["reference"] == "M"
    assert plain["left_out"] == ["other"]
    page = page_of(audit)
    assert "other" in page and plain["made"][:16].replace("T", " ") in page
