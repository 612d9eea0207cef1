"""Mean rewards and selection rates of rows that belong together, and groups of a single cluster."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.stats import t as student

import evenhand as eh
from audit_logs import differences, interacted, made_log


def belonging(seed, n=900, crossing=False, binary=False):
    """Persons with about six rows each, in one group or in any, and a level of their own."""
    rng = np.random.default_rng(seed)
    log = made_log(seed, n=n, groups=("A", "B", "C"))
    log["person"] = rng.integers(n // 6, size=n)
    if not crossing:
        log["group"] = np.array(list("ABC"))[log["person"] % 3]
    own = rng.normal(size=n)[log["person"]]
    log["reward"] += 2.0 * own + 10.0
    if binary:
        log["reward"] = (rng.random(n) < 1.0 / (1.0 + np.exp(-own))).astype(int)
    return log


def of_dummies(log):
    """statsmodels: a dummy per group, and CR1 without the correction for the dummies."""
    dummies = pd.get_dummies(log["group"]).astype(float)
    groups = pd.factorize(log["person"])[0]
    fit = sm.OLS(log["reward"].astype(float), dummies).fit(
        cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False}
    )
    return fit.params, fit.cov_params()


@pytest.mark.parametrize("crossing", [False, True])
def test_mean_rewards_have_the_errors_of_statsmodels(crossing):
    log = belonging(1, crossing=crossing)
    metrics = eh.audit(log, reference="C", cluster="person").metrics
    mean, covariance = of_dummies(log)
    clusters = log.groupby("group")["person"].nunique()
    factor = np.sqrt(clusters / (clusters - 1.0))
    expected = covariance * np.outer(factor, factor)
    table = metrics.by_group.loc["mean_reward"]
    np.testing.assert_allclose(table["estimate"], mean, rtol=1e-10)
    reach = student.ppf(0.975, clusters - 1.0) * np.sqrt(np.diag(expected))
    np.testing.assert_allclose(table["high"] - table["estimate"], reach, rtol=1e-8)
    assert (table["why"] == "").all()
    # Of all pairs at once: Bonferroni over three.
    pairs = metrics.pairs("mean_reward").query("what == 'difference'")
    for row in pairs.to_dict("records"):
        a, b = row["higher"], row["lower"]
        variance = expected.loc[a, a] + expected.loc[b, b] - 2.0 * expected.loc[a, b]
        own = np.array([expected.loc[a, a], expected.loc[b, b]])
        many = clusters[[a, b]].to_numpy() - 1.0
        freedom = many.min() if crossing else own.sum() ** 2 / np.sum(own**2 / many)
        reach = student.ppf(1.0 - 0.05 / 6.0, freedom) * np.sqrt(variance)
        assert row["high"] - row["estimate"] == pytest.approx(reach, rel=1e-8)


def test_the_mean_of_all_has_the_errors_of_statsmodels():
    log = belonging(2, crossing=True)
    row = eh.audit(log, reference="C", cluster="person").metrics.overall.loc["mean_reward"]
    fit = sm.OLS(log["reward"], np.ones(len(log))).fit(
        cov_type="cluster", cov_kwds={"groups": log["person"], "use_correction": False}
    )
    many = log["person"].nunique()
    reach = fit.bse.iloc[0] * np.sqrt(many / (many - 1.0)) * student.ppf(0.975, many - 1.0)
    assert row["high"] - row["estimate"] == pytest.approx(reach, rel=1e-8)


def test_mean_rewards_of_windows_have_the_errors_of_clusters():
    log = belonging(3)
    log["timestamp"] = np.arange(len(log))
    log["window"] = log["timestamp"] // 300
    windows = eh.audit(log, cluster="person", windows=3, leave_out=["window"]).drift
    for (window, group), part in log.groupby(["window", "group"]):
        row = windows[(windows["window"] == window + 1) & (windows["group"] == group)].iloc[0]
        left = (part["reward"] - part["reward"].mean()).groupby(part["person"]).sum()
        many = len(left)
        error = np.sqrt(np.sum(left**2) * many / (many - 1.0)) / len(part)
        reach = student.ppf(0.975, many - 1.0) * error
        assert row["mean_high"] - row["mean_reward"] == pytest.approx(reach, rel=1e-8)


@pytest.mark.slow
def test_rates_stay_between_0_and_1_and_other_metrics_say_what_they_ignore():
    log = belonging(4, binary=True)
    log.loc[log["group"] == "A", "reward"] = 1
    metrics = eh.audit(log, cluster="person").metrics
    plain = eh.audit(log, leave_out=["person"]).metrics
    table = metrics.by_group.loc["selection_rate_by_reward"]
    assert table["high"].max() <= 1.0 and table.loc["A", "low"] < 1.0
    wide = table["high"] - table["low"]
    alone = plain.by_group.loc["selection_rate_by_reward"]
    assert (wide > 1.1 * (alone["high"] - alone["low"])).all()
    screen = metrics.screening().query("selection == 'selection_rate_by_reward'")
    assert (screen["low"] <= screen["estimate"]).all()
    ignoring = metrics.by_group.loc["share"]
    assert (ignoring["why"] == "this interval ignores clusters").all()
    assert "Those of other metrics ignore clusters, and may be too narrow" in metrics.to_words()
    assert "share" in metrics.to_dict()["ignoring_clusters"]
    assert plain.to_dict()["ignoring_clusters"] == []


@pytest.mark.slow
def test_a_group_of_a_single_cluster_does_not_stop_the_others():
    """Against statsmodels: the regression with all groups, and the errors of the other two."""
    log = belonging(5).assign(timestamp=np.arange(900) % 97)
    log.loc[log["group"] == "C", "person"] = -1
    audit = eh.audit(log, cluster="person", windows=3)
    assert audit.bias.reference in ("A", "B")
    other = "B" if audit.bias.reference == "A" else "A"
    names, model = interacted(log, ["x0", "x1", "x2"])
    fit = model.fit(cov_type="cluster", cov_kwds={"groups": pd.factorize(log["person"])[0]})
    expected = differences(fit, names, audit.bias.reference, 4)
    table = audit.bias.to_frame().query("group == @other")
    for k, row in enumerate(table.to_dict("records")):
        numbers = row["estimate"], row["standard_error"]
        assert numbers == pytest.approx(expected[other, k], rel=1e-8)
    lone = audit.bias.by_group.loc["C"]
    assert np.isnan(lone["estimate"])
    assert lone["why"] == "not identified: group C has a single cluster"
    assert audit.within.by_group["why"]["C"] == "not identified: group C has a single cluster"
    assert audit.drift.query("group == 'C'")["estimate"].isna().all()
    assert "C" not in set(audit.changes["group"])
    metric = audit.metrics.by_group.loc[("mean_reward", "C")]
    assert np.isnan(metric["low"]) and metric["why"] == "a single cluster"
    assert any("Group C has a single cluster" in sentence for sentence in audit.summary)
    with pytest.raises(ValueError, match="reference is 'C', and group C has a single cluster"):
        eh.audit(log, cluster="person", reference="C")
    with pytest.raises(ValueError, match="group C has a single cluster, and fewer than two"):
        eh.audit(log[log["group"] != "A"], cluster="person")
