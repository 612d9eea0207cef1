"""Errors of audits: clusters that cross groups and arms, time windows, and how often they cover."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from audit_logs import assert_same, differences, interacted, made_log
from bare_audits import bias_of
from evenhand.audit._inference import drift_tests
from evenhand.audit._inference.bias_by_window import Parts, make_windows
from evenhand.audit._inference.drift import changes
from evenhand.audit._inference.drift_tests import _drawn, _welch, dependent
from evenhand.audit._inference.regression_scores import fits_of, in_windows
from evenhand.audit._inference.standard_errors import Errors
from evenhand.bias import Statistics, bias_report

LEVEL = 0.95
FEATURES = ["x0", "x1", "x2"]


def crossing_log(seed, n=900, groups=("A", "B", "C")):
    """Persons with about five rows each, in any group and window, and a noise of their own."""
    log = made_log(seed, n=n, groups=groups)
    rng = np.random.default_rng(seed)
    log["person"] = rng.integers(n // 5, size=n)
    log["reward"] += rng.normal(size=n)[log["person"]]
    return log


def cr1(log, model):
    return model.fit(cov_type="cluster", cov_kwds={"groups": pd.factorize(log["person"])[0]})


def test_clusters_across_groups_are_those_of_statsmodels():
    log = crossing_log(1)
    audit = eh.audit(log, reference="C", cluster="person")
    names, model = interacted(log, FEATURES)
    assert_same(audit.bias, differences(cr1(log, model), names, "C", 4))
    assert audit.facts.crossing > 100
    assert any("rows in more than one group" in sentence for sentence in audit.summary)


@pytest.mark.parametrize("weighted", [False, True])
def test_clusters_across_arms_are_those_of_statsmodels(weighted):
    log = crossing_log(2, groups=("F", "M"))
    log["item_id"] = log["group"] + (np.arange(len(log)) % 3).astype(str)
    roles = {}
    if weighted:
        log["weight"] = np.random.default_rng(3).uniform(0.5, 3.0, size=len(log))
        roles["weight"] = "weight"
    report = eh.audit(log, reference="M", cluster="person", **roles).bias
    assert report.weighting == "arms"
    names, model = interacted(log, FEATURES, group="item_id", weights=log.get("weight"))
    assert names == ["F0", "F1", "F2", "M0", "M1", "M2"]
    fitted = cr1(log, model)
    contrast = np.kron(np.repeat([1 / 3, -1 / 3], 3), np.eye(4))
    table = report.to_frame()[:4]
    np.testing.assert_allclose(table["estimate"], contrast @ fitted.params, rtol=1e-8)
    errors = np.sqrt(np.diag(contrast @ fitted.cov_params() @ contrast.T))
    np.testing.assert_allclose(table["standard_error"], errors, rtol=1e-8)


def windowed(log, features, how):
    """statsmodels with an intercept and all features for each group in each window."""
    cells = log.assign(cell=log["group"] + log["window"].astype(str))
    names, model = interacted(cells, features, group="cell")
    at = np.append(1.0, log[features].mean())
    levels = np.kron(np.eye(len(names)), at)
    fitted = cr1(log, model) if how == "cluster" else model.fit(cov_type="HC1")
    return names, levels @ fitted.params, levels @ fitted.cov_params() @ levels.T


@pytest.mark.parametrize("how", ["robust", "cluster"])
def test_windows_have_the_errors_of_the_whole(how):
    """Estimates, errors and the test for change, against one regression with all windows."""
    log = crossing_log(4, n=2400, groups=("F", "M"))
    log["timestamp"] = np.arange(len(log))
    log["window"] = np.minimum(log["timestamp"] // (len(log) // 4), 3)
    log["reward"] *= 1.0 + log["window"]  # unequal noise
    roles = {"cluster": "person"} if how == "cluster" else {"leave_out": ["person", "window"]}
    audit = eh.audit(
        log,
        reference="M",
        features=FEATURES,
        windows=4,
        errors="robust",
        timestamp="timestamp",
        **roles,
    )
    names, levels, covariance = windowed(log, FEATURES, how)
    contrast = np.zeros((4, len(names)))
    for window in range(4):
        contrast[window, names.index(f"F{window}")] = 1.0
        contrast[window, names.index(f"M{window}")] = -1.0
    table = audit.drift[audit.drift["group"] == "F"]
    expected, spread = contrast @ levels, contrast @ covariance @ contrast.T
    np.testing.assert_allclose(table["estimate"], expected, rtol=1e-7)
    np.testing.assert_allclose(table["standard_error"], np.sqrt(np.diag(spread)), rtol=1e-7)
    assert audit.facts.errors == how and audit.facts.windows == ("pulls", how)
    if how == "cluster":
        apart = np.diff(np.eye(4), axis=0)  # the same in all windows: three equations
        gap = apart @ expected
        distance = gap @ np.linalg.solve(apart @ spread @ apart.T, gap)
        # F of as many as there are clusters or so, of which there are hundreds.
        assert audit.changes["statistic"].iloc[0] == pytest.approx(distance / 3.0, rel=2e-2)


def test_the_tests_for_change_are_welchs_and_hotellings():
    """Against statsmodels: means of independent samples, and of columns of the same sample."""
    from statsmodels.stats.multivariate import test_mvmean as mean_test
    from statsmodels.stats.oneway import anova_oneway

    rng = np.random.default_rng(5)
    samples = [rng.normal(0.3 * i, 1.0 + i, size=8 + 5 * i) for i in range(4)]
    means = np.array([sample.mean() for sample in samples])
    errors = np.diag([sample.var(ddof=1) / len(sample) for sample in samples])
    freedom = np.array([len(sample) - 1.0 for sample in samples])
    expected = anova_oneway(samples, use_var="unequal")
    tested = _welch(means, np.diag(errors), freedom)
    assert tested == pytest.approx((expected.statistic, expected.pvalue), rel=1e-9)

    rows = rng.normal(size=(20, 4)) @ rng.normal(size=(4, 4))
    expected = mean_test(np.diff(rows, axis=1))
    covariance = np.cov(rows.T) / len(rows)
    tested = dependent(rows.mean(axis=0), covariance, [covariance], [19.0])
    assert tested == pytest.approx((expected.statistic, expected.pvalue), rel=1e-9)
    assert dependent(rows.mean(axis=0), covariance, [covariance], [2.0])[1] == 1.0


def test_where_welchs_test_is_good_chance_says_the_same():
    """20,000 draws: the two agree to 4 standard errors, and the draws are always the same."""
    rng = np.random.default_rng(6)
    estimate, variance, freedom = rng.normal(size=5), rng.uniform(0.5, 2.0, 5), np.full(5, 200.0)
    expected, drawn = (
        _welch(estimate, variance, freedom)[1],
        _drawn(estimate, variance, freedom),
    )
    assert abs(drawn - expected) < 4.0 * np.sqrt(expected * (1.0 - expected) / 20_000)
    assert _drawn(estimate, variance, freedom) == drawn


@pytest.mark.slow
@pytest.mark.parametrize(("windows", "fewest"), [(4, 4), (8, 4), (20, 4), (20, 8)])
def test_the_test_for_change_holds_its_level_with_few_rows(monkeypatch, windows, fewest):
    """Normal windows of unlike variance, half of them with few degrees of freedom: 600 draws.

    Welch's F raises up to 12 % alarms here. The bound is 8 %, which 600 tests with an alarm in 5 %
    exceed once in 1,500 sets of seeds; these are fixed.
    """
    monkeypatch.setattr(drift_tests, "DRAWS", 1000)
    rng = np.random.default_rng(7)
    freedom = np.where(np.arange(windows) % 2 == 0, float(fewest), 40.0)
    variance, alarms = 1.0 / (freedom + 2.0), 0
    for _ in range(600):
        estimate = rng.normal(size=windows) * np.sqrt(variance)
        known = variance * rng.chisquare(freedom) / freedom
        alarms += drift_tests.independent(estimate, known, freedom)[1] < 0.05
    assert alarms / 600 <= 0.08


def few_rows(seed):
    """Eight rows of the smaller group in a window, and no bias."""
    rng = np.random.default_rng(seed)
    log = pd.DataFrame({"x": rng.normal(size=240), "timestamp": np.arange(240)})
    log["group"] = rng.choice(["F", "M"], size=240, p=[0.2, 0.8])
    log.loc[::40, "group"] = "F"  # at least one in every window
    log["reward"] = log["x"] + rng.normal(size=240)
    return log


def changes_of(log):
    """The tests for change in six windows without an engine, where errors are classical."""
    log = log.sort_values("group", kind="stable")
    x = np.column_stack([np.ones(len(log)), log["x"]])
    window = (log["timestamp"] // 40).to_numpy()
    every = [np.ones(len(log), dtype=bool), *(window == t for t in range(6))]
    whole, *parts = (
        Statistics.from_rows(x[here], log["reward"][here], log["group"][here]) for here in every
    )
    fits = in_windows([fits_of(stats, "pulls", {}) for stats in parts])
    report = bias_report(whole, "M", weighting="pulls")
    windows = make_windows(
        None, None, Parts(parts, "pulls", fits), None, report, Errors("classical"), False
    )
    return changes(windows, report.groups, LEVEL)


@pytest.mark.slow
def test_few_rows_in_windows_raise_no_alarms(monkeypatch):
    """200 logs; more than 23 of them have an alarm by chance once in 13,000 sets of seeds.

    Alarms in 15 % of logs would be noticed in 90 % of sets.
    """
    audit = eh.audit(few_rows(0), reference="M", windows=6)
    pd.testing.assert_frame_equal(audit.changes, changes_of(few_rows(0)), rtol=1e-9)
    monkeypatch.setattr(drift_tests, "DRAWS", 1000)
    assert sum(changes_of(few_rows(seed))["changes"].any() for seed in range(200)) <= 23


def test_windows_by_arms_do_not_take_a_change_of_arms_for_one_of_bias():
    """The arms of F are worth 0 and 4, and the better one is chosen more and more; M has 2 and 2.

    By pulls the feedback of F rises by about 2 from the first window to the last. The test for
    change by arms has a false alarm in 5 % of seeds; this one is fixed.
    """
    rng = np.random.default_rng(8)
    n = 4000
    when = np.arange(n)
    group = rng.choice(["F", "M"], size=n)
    second = rng.random(n) < np.where(group == "F", 0.2 + 0.6 * when / n, 0.5)
    x = rng.normal(size=n)
    worth = np.where(group == "F", 4.0 * second, 2.0)
    log = pd.DataFrame({"timestamp": when, "group": group, "x": x})
    log["item_id"] = log["group"] + second.astype(int).astype(str)
    log["reward"] = x + worth + rng.normal(size=n)
    audit = eh.audit(log, reference="M", windows=4)
    assert audit.bias.weighting == "arms"
    assert not audit.changes["changes"].any()
    leaning = eh.audit(log, reference="M", windows=4, weighting="pulls")
    assert leaning.changes.set_index("group").loc["F", "changes"]


def test_windows_by_pulls_where_arms_do_not_suffice_say_so():
    log = made_log(9, n=800)
    log["timestamp"] = np.arange(len(log))
    log["item_id"] = log["group"] + (np.arange(len(log)) % 2).astype(str)
    late = log["item_id"].eq("F1") & (log["timestamp"] < 400)
    log.loc[late, "item_id"] = "F0"
    audit = eh.audit(log, reference="M", windows=4)
    assert audit.bias.weighting == "arms"
    assert any("within a window arms count by how often" in sentence for sentence in audit.summary)


def persons_in_both(seed):
    """Persons with rows in both groups, and a noise of their own twice as large as a row's."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(80), 6)
    log = pd.DataFrame({"person": person, "x": rng.normal(size=len(person))})
    log["group"] = rng.choice(["F", "M"], size=len(log))
    log["timestamp"] = rng.permutation(len(log))
    own = rng.normal(size=80)[person]
    log["reward"] = log["x"] + 2.0 * own + rng.normal(size=len(log))
    return log


def unequal_noise(seed):
    """A noise that grows with the feature."""
    rng = np.random.default_rng(seed)
    log = pd.DataFrame({"x": rng.normal(size=500)})
    log["group"] = rng.choice(["F", "M"], size=500)
    log["reward"] = log["x"] + np.abs(log["x"]) * rng.normal(size=500)
    return log


def unequal_arms(seed, bias, own, each=400):
    """Arms with coefficients of their own, chosen unequally; averages of the groups are equal."""
    rng = np.random.default_rng(seed)
    count, d = len(bias), bias.shape[1] - 1
    n = each * count
    of, arm = rng.integers(count, size=n), rng.choice(3, size=n, p=[0.6, 0.3, 0.1])
    x = np.column_stack([np.ones(n), rng.normal(size=(n, d)) + 0.5 * rng.normal(size=(n, 1))])
    log = pd.DataFrame(x[:, 1:], columns=[f"x{k}" for k in range(d)])
    log["group"] = ["ABCD"[g] for g in of]
    log["arm"] = [f"{'ABCD'[g]}{a}" for g, a in zip(of, arm, strict=True)]
    log["reward"] = np.sum(x * (1.0 + own[of, arm] + bias[of]), axis=1) + rng.normal(size=n)
    return log


def drawn_arms(d, count):
    """The bias of the groups, and what the arms of each add to it, which is nothing on average."""
    rng = np.random.default_rng(d)
    bias = rng.normal(size=(count, d + 1)) * (rng.random((count, d + 1)) < 0.5)
    bias[-1] = 0.0
    own = rng.normal(size=(count, 3, d + 1))
    return bias, own - own.mean(axis=1, keepdims=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "errors"),
    [
        ("noise", "robust"),
        ("few rows", "classical"),
        ("arms", "robust"),
        ("arms with few rows", "classical"),
        ("clusters", "cluster"),
        ("crossing clusters", "cluster"),
    ],
)
def test_without_an_engine_it_is_the_same(kind, errors):
    """What the studies below, and those of other files, compute for many logs."""
    cluster = "person" if "clusters" in kind else None
    if "arms" in kind:
        log = unequal_arms(1, *drawn_arms(2, 2), each=400 if "few" in kind else 800)
    elif cluster is None:
        log = unequal_noise(1)[: 60 if "few" in kind else 500]
    else:
        log = persons_in_both(1).drop(columns="timestamp")
        if "crossing" not in kind:
            log["group"] = np.where(log["person"] % 3, "M", "F")
    reference = max(log["group"])
    audit = eh.audit(log, reference=reference, cluster=cluster)
    features = [name for name in log.columns if name.startswith("x")]
    mine, its = bias_of(log, features, reference, cluster), audit.bias
    assert mine.weighting == its.weighting == ("arms" if "arms" in kind else "pulls")
    assert audit.facts.errors == errors
    assert (audit.facts.crossing > 0) == ("crossing" in kind)
    names = ["estimate", "standard_error", "low", "high", "p_value", "simultaneous_p_value"]
    for name in [*names, "simultaneous_low", "simultaneous_high"]:
        np.testing.assert_allclose(mine.to_frame()[name], its.to_frame()[name], 1e-8, 1e-10)
        np.testing.assert_allclose(mine.by_group[name], its.by_group[name], 1e-8, 1e-10)


@pytest.mark.slow
def test_clusters_across_groups_cover():
    """300 logs: fewer than 3 or more than 31 misses come once in 12,000 sets of seeds.

    Intervals that miss in 15 % would be noticed in 98.8 % of sets. Were the groups' estimates taken
    as independent, intervals would be too long and miss in 0.1 %, which 99.7 % of sets notice: what
    two rows of a person have in common cancels.
    """
    misses = 0
    for seed in range(300):
        row = bias_of(persons_in_both(seed), ["x"], "M", "person").by_group.loc["F"]
        misses += not row["low"] <= 0.0 <= row["high"]
    assert 3 <= misses <= 31


@pytest.mark.slow
def test_the_test_for_change_holds_its_level_with_clusters_across_groups():
    """Gaps of means in three windows, of 400 logs: more than 38 alarms come once in 14,000 sets of
    seeds, and alarms in 15 % of logs would be noticed in 99.9 % of sets.

    The effect of a person on a mean is the sum of what its rows are above it, over all rows.
    """
    alarms = 0
    for seed in range(400):
        log = persons_in_both(seed)
        person, of = log["person"].to_numpy(), (log["group"] == "M").to_numpy().astype(int)
        cell = 2 * (log["timestamp"].to_numpy() // 160) + of
        y, n = (log["reward"] - log["x"]).to_numpy(), np.bincount(cell)
        means = np.bincount(cell, y) / n
        effects = np.zeros((80, 6))
        np.add.at(effects, (person, cell), (y - means[cell]) / n[cell])
        spread = (80 / 79 * effects.T @ effects).reshape(3, 2, 3, 2)
        signs = np.array([1.0, -1.0])
        covariance = np.einsum("g,sgth,h->st", signs, spread, signs)
        clusters = np.count_nonzero(effects, axis=0).reshape(3, 2)
        p_value = dependent(
            means.reshape(3, 2) @ signs,
            covariance,
            [spread[:, g, :, g] for g in range(2)],
            (clusters - 1.0).min(axis=0),
        )[1]
        alarms += p_value < 1.0 - LEVEL
    assert alarms <= 38


@pytest.mark.slow
def test_unequal_noise_is_covered_without_being_asked_for():
    """300 logs: fewer than 3 or more than 31 misses come once in 12,000 sets of seeds.

    Classical errors would miss in 15 %, which is noticed in 98.8 % of sets.
    """
    misses = 0
    for seed in range(300):
        table = bias_of(unequal_noise(seed), ["x"], "M").to_frame()
        row = table.set_index(["group", "feature"]).loc[("F", "x")]
        misses += not row["low"] <= 0.0 <= row["high"]
    assert 3 <= misses <= 31


@pytest.mark.slow
@pytest.mark.parametrize(("d", "count", "rounds"), [(2, 2, 100), (5, 4, 60)])
def test_unequal_arms_are_covered_without_being_asked_for(d, count, rounds):
    """The bound is 4 standard errors from the rate, counted over logs: a false alarm in 15,000."""
    hits, (bias, own) = [], drawn_arms(d, count)
    last, features = "ABCD"[count - 1], [f"x{k}" for k in range(d)]
    for seed in range(rounds):
        table = bias_of(unequal_arms(1000 + seed, bias, own), features, last).to_frame()
        table, truth = table[table["group"] != last], bias[:-1].ravel()
        hits.append(np.mean((table["low"] <= truth) & (truth <= table["high"])))
    assert abs(np.mean(hits) - LEVEL) < 4.0 * np.std(hits) / np.sqrt(rounds)


def test_arms_whose_rows_are_one_cluster_have_no_errors_of_their_own():
    """A branch is its arm's only cluster: its scores sum to zero, so arms count by their rows."""
    log = made_log(31, n=1200)
    log["branch"] = log["group"] + (np.arange(len(log)) % 12).astype(str)
    log["judge"] = log["branch"]
    audit = eh.audit(log, reference="M", arm="branch", cluster="judge")
    assert audit.bias.weighting == "pulls"
    assert any(
        "because an arm has only 1 cluster, too few for standard errors" in sentence
        for sentence in audit.summary
    )
    assert (audit.bias.to_frame().query("group == 'F'")["standard_error"] > 0.01).all()
    with pytest.raises(
        ValueError, match="weighting is 'arms' with clusters, and an arm has only 1"
    ):
        eh.audit(log, reference="M", arm="branch", cluster="judge", weighting="arms")


def test_arms_may_be_called_anything():
    """Arms called "b in F" of their own group, and pairs of names that look alike when joined."""
    log = made_log(32, n=900)
    log["arm"] = [f"b{i % 3} in {g}" for i, g in enumerate(log["group"])]
    plain = log.assign(arm=[f"{g}{i % 3}" for i, g in enumerate(log["group"])])
    columns = ["estimate", "standard_error", "low", "high"]
    pd.testing.assert_frame_equal(
        eh.audit(log, reference="M").bias.to_frame()[columns],
        eh.audit(plain, reference="M").bias.to_frame()[columns],
    )
    twin = log.assign(group=np.where(log["group"] == "F", "b in c", "c"))
    twin["arm"] = np.where(np.arange(900) % 2 == 0, "x", "x in b")
    audit = eh.audit(twin, reference="c")
    assert audit.bias.arms == (2, 2) and audit.bias.weighting == "arms"
    assert audit.bias.observations == tuple(twin.groupby("group").size().sort_index())


def test_a_group_that_comes_late_does_not_move_the_others():
    """Against the mean of the groups, and C is there from the middle on."""
    rng = np.random.default_rng(33)
    log = pd.DataFrame({"timestamp": np.arange(3000), "x": rng.normal(size=3000)})
    log["group"] = np.where(
        log["timestamp"] < 1500, rng.choice(["A", "B"], 3000), rng.choice(["A", "B", "C"], 3000)
    )
    shift = log["group"].map({"A": -1.0, "B": 0.0, "C": 1.0})
    log["reward"] = log["x"] + shift + 0.5 * rng.normal(size=3000)
    audit = eh.audit(log, windows=4, reference="mean")
    assert not audit.changes.set_index("group").loc[["A", "B"], "changes"].any()
    assert any("compared with the mean of A, B" in sentence for sentence in audit.summary)


def test_hardly_any_events():
    """Nobody of 80 in F has a reward of 1, and 1 % of M: no finding, and a word of caution."""
    rng = np.random.default_rng(34)
    log = pd.DataFrame({"x": rng.normal(size=3080), "group": ["F"] * 80 + ["M"] * 3000})
    log["reward"], log["w"] = (np.arange(3080) % 100 == 99).astype(int), rng.uniform(1, 2, 3080)
    for choice in ({}, {"errors": "classical"}, {"weight": "w"}):
        audit = eh.audit(log, reference="M", logistic=False, **choice)
        row = audit.bias.by_group.loc["F"]
        assert row["low"] < 0.0 < row["high"]
        assert any("Group F has no row with reward = 1" in sentence for sentence in audit.summary)


def test_nan_is_no_group_arm_or_true_reward(tmp_path):
    """DuckDB keeps NaN apart from NULL; a log may hold either."""
    import duckdb

    log = made_log(35, n=400)
    log["code"] = np.where(log["group"] == "F", 1.0, 2.0)
    log.loc[:9, "code"] = np.nan
    log["true_reward"] = log["reward"].where(np.arange(400) % 2 == 0)
    path = tmp_path / "log.db"
    with duckdb.connect(str(path)) as con:
        con.register("frame", log.drop(columns="group"))
        con.execute(
            "CREATE TABLE log AS SELECT * REPLACE (coalesce(true_reward, 'nan'::DOUBLE) AS "
            "true_reward, coalesce(code, 'nan'::DOUBLE) AS code) FROM frame"
        )
    audit = eh.audit(f"duckdb://{path}::log", group="code", missing="drop")
    assert audit.bias.groups == ("code=1", "code=2") and audit.facts.rows - audit.facts.used == 10
    known = log[10:].groupby("code")["true_reward"].mean()
    metrics = audit.metrics.by_group.loc["mean_true_reward", "estimate"]
    assert metrics.loc["code=1"] == pytest.approx(known[1.0])


def test_a_column_of_ones_leaves_rewards_binary():
    log = made_log(36, d=1).assign(ones=1.0)
    log["reward"] = (log["reward"] > 1.0).astype(int)
    audit = eh.audit(log, reference="M", logistic=False)
    assert audit.facts.binary and audit.facts.constant == {"ones": 1.0}
    assert "selection_rate_by_reward" in set(audit.metrics.to_frame()["metric"])


def test_times_with_a_zone_and_nanoseconds(tmp_path):
    log = made_log(37)
    when = pd.date_range("2026-01-01", periods=len(log), freq="h", tz="UTC").as_unit("ns")
    log["timestamp"] = when
    log.to_parquet(tmp_path / "log.parquet")
    for source in (log, tmp_path / "log.parquet"):
        assert eh.audit(source, windows=3).drift["from"].iloc[0] == "2026-01-01"
