"""Audits of logs whose groups are known by probability, used as they are."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from jsonschema import Draft202012Validator
from scipy.stats import t as student

import evenhand as eh
from evenhand.cli import main
from evenhand.errors import DataError, InputError
from round_logs import ARMS, FEATURES, drawn, play_rounds

GROUPS = {"a": "p_a", "b": "p_b", "c": "p_c"}
BETA = np.array([[0.0, 1.0, -1.0], [-1.0, 0.5, -1.0], [0.3, 1.0, -1.0]])
COLUMNS = ["estimate", "standard_error", "low", "high", "p_value"]


def made(seed, n=3000, spread=1.0, certain=False):
    """Groups drawn by their probabilities, which are so calibrated at any features."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2)) + 2.0
    chances = rng.dirichlet([spread, spread, 2.0 * spread], size=n)
    own = (chances.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    rewards = np.einsum("nk,nk->n", np.column_stack([np.ones(n), x]), BETA[own])
    if certain:
        chances = np.eye(3)[own]
    log = pd.DataFrame(x, columns=["x0", "x1"]).assign(reward=rewards + rng.normal(size=n))
    log[list(GROUPS.values())] = chances
    return log, np.array(list(GROUPS))[own]


def design(log):
    x = np.column_stack([np.ones(len(log)), log["x0"], log["x1"]])
    return np.einsum("ng,nk->ngk", log[list(GROUPS.values())], x).reshape(len(log), -1)


def against_first(fitted, d):
    """Of statsmodels: the coefficients of b and c less those of a, and their errors."""
    apart = np.kron(np.array([[-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]]), np.eye(d))
    covariance = apart @ np.asarray(fitted.cov_params()) @ apart.T
    return apart @ np.asarray(fitted.params), np.sqrt(np.diag(covariance))


def test_the_scale_of_weights_does_not_matter():
    """It changed the degrees of freedom: what could be detected was .18 or .92 by the scale."""
    log, _ = made(7, n=600)
    log["w"] = np.random.default_rng(0).uniform(0.5, 2.0, len(log))
    tables = [
        eh.audit(
            log.assign(w=log["w"] * scale), group_probability=GROUPS, reference="a", weight="w"
        ).bias.by_group.select_dtypes("number")
        for scale in (1e-3, 1.0, 1e6)
    ]
    for table in tables[1:]:
        np.testing.assert_allclose(table, tables[0], rtol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["plain", "weights", "clusters"])
def test_is_the_regression_on_features_times_probabilities(how):
    log, _ = made(1)
    rng = np.random.default_rng(0)
    log["w"], log["person"] = rng.uniform(0.5, 2.0, len(log)), rng.integers(400, size=len(log))
    keep = {"plain": [], "weights": ["w"], "clusters": ["person"]}[how]
    options = {"weights": {"weight": "w"}, "clusters": {"cluster": "person"}}.get(how, {})
    used = log.drop(columns=[name for name in ("w", "person") if name not in keep])
    audit = eh.audit(used, group_probability=GROUPS, reference="a", **options)
    kind = {"cov_type": "HC1"}
    if how == "clusters":
        kind = {"cov_type": "cluster", "cov_kwds": {"groups": log["person"].to_numpy()}}
    weights = log["w"].to_numpy() if how == "weights" else np.ones(len(log))
    fitted = sm.WLS(log["reward"].to_numpy(), design(log), weights=weights).fit(**kind)
    estimate, error = against_first(fitted, 3)
    table = audit.bias.to_frame().query("group != 'a'")
    assert table["estimate"].to_numpy() == pytest.approx(estimate, rel=1e-8, abs=1e-9)
    assert table["standard_error"].to_numpy() == pytest.approx(error, rel=1e-8)


@pytest.mark.slow
def test_means_before_adjustment_have_the_errors_of_a_jackknife():
    """The fit of a group at its average features; leaving out a row (or cluster) at a time."""
    log, _ = made(9, n=240)
    log["person"] = np.arange(len(log)) // 2

    def means(rows):
        x = np.column_stack([np.ones(len(rows)), rows[["x0", "x1"]]])
        beta = np.linalg.lstsq(design(rows), rows["reward"].to_numpy(), rcond=None)[0]
        chances = rows[list(GROUPS.values())].to_numpy()
        average = chances.T @ x / chances.sum(axis=0)[:, None]
        level = np.einsum("gk,gk->g", beta.reshape(3, 3), average)
        return (level - level[0])[1:]

    for cluster, parts in ((None, log.index.to_numpy()), ("person", log["person"].to_numpy())):
        options = {"cluster": cluster} if cluster else {}
        used = log if cluster else log.drop(columns="person")
        audit = eh.audit(used, group_probability=GROUPS, reference="a", **options)
        table = audit.by_probability.unadjusted.to_frame().query("group != 'a'")
        assert table["estimate"].to_numpy() == pytest.approx(means(log), rel=1e-8)
        left = np.array([means(log[parts != part]) for part in np.unique(parts)])
        many = len(left)
        error = np.sqrt((many - 1) / many * ((left - left.mean(axis=0)) ** 2).sum(axis=0))
        assert table["standard_error"].to_numpy() == pytest.approx(error, rel=0.05)


def test_means_before_adjustment_are_right_where_probabilities_depend_on_features():
    """Where p is made of x, the regression on p alone is off; this is not."""
    rng = np.random.default_rng(3)
    n = 40_000
    x = rng.normal(size=n)
    chance = np.clip(1.0 / (1.0 + np.exp(-x - rng.normal(size=n))), 0.01, 0.99)
    # Calibrated given x and p: the group is drawn by p itself.
    woman = rng.random(n) < chance
    reward = x - 0.5 * woman + rng.normal(size=n)
    log = pd.DataFrame({"x": x, "p": chance, "q": 1.0 - chance, "reward": reward})
    audit = eh.audit(log, group_probability={"F": "p", "M": "q"}, reference="M")
    truth = reward[woman].mean() - reward[~woman].mean()
    row = audit.by_probability.unadjusted.to_frame().iloc[0]
    assert row["estimate"] == pytest.approx(truth, abs=4.0 * row["standard_error"])
    assert row["standard_error"] < 0.05
    z = np.column_stack([chance, 1.0 - chance])
    beta = np.linalg.lstsq(z, reward, rcond=None)[0]
    assert abs(beta[0] - beta[1] - truth) > 0.5  # the world, not us


def test_certain_probabilities_are_the_ordinary_audit():
    log, own = made(2, certain=True)
    mine = eh.audit(log, group_probability=GROUPS, reference="a")
    known = log.drop(columns=list(GROUPS.values())).assign(group=own)
    its = eh.audit(known, reference="a", errors="robust")
    for given, expected in (
        (mine.bias.to_frame(), its.bias.to_frame()),
        (mine.bias.by_group, its.bias.by_group),
    ):
        assert given[COLUMNS].to_numpy(float) == pytest.approx(
            expected[COLUMNS].to_numpy(float), rel=1e-9, abs=1e-9, nan_ok=True
        )
    assert mine.bias.observations == its.bias.observations
    assert "All probabilities are 0 or 1, so every group is known." in mine.summary


def intervals(log, level):
    """The bias of b and c without an engine: estimates, and the ends of their intervals (HC1)."""
    z, y = design(log), log["reward"].to_numpy()
    inverse = np.linalg.inv(z.T @ z)
    beta = inverse @ z.T @ y
    scores = (y - z @ beta)[:, None] * z
    covariance = len(z) / (len(z) - 9) * inverse @ scores.T @ scores @ inverse
    apart = np.kron(np.array([[-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]]), np.eye(3))
    freedom = (log[list(GROUPS.values())] ** 2).sum().to_numpy() - 3.0
    fewest = np.repeat(np.minimum(freedom[1:], freedom[0]), 3)
    reach = student.ppf(0.5 + level / 2.0, fewest) * np.sqrt(np.diag(apart @ covariance @ apart.T))
    return apart @ beta, apart @ beta - reach, apart @ beta + reach


@pytest.mark.slow
def test_intervals_cover_and_thresholding_misses():
    """100 logs with calibrated probabilities: the likelier group makes the bias of b look smaller.

    The bound of the coverage of 90 % is 4 standard errors, counted over logs: a false alarm in
    15,000. Errors that are a fifth too small, which cover in 81 % with a standard error of 1.8 %,
    would be noticed in 80 % of sets of seeds.
    """
    log, _ = made(0, n=1500)
    audit = eh.audit(log, group_probability=GROUPS, reference="a", level=0.9)
    table = audit.bias.to_frame().query("group != 'a'")
    for name, mine in zip(("estimate", "low", "high"), intervals(log, 0.9), strict=True):
        assert mine == pytest.approx(table[name].to_numpy(), rel=1e-8, abs=1e-9)
    covered, ratio, thresholded = [], [], []
    truth = (BETA - BETA[0])[1:].ravel()
    for seed in range(100):
        log, _ = made(seed, n=1500)
        estimate, low, high = intervals(log, 0.9)
        covered.append(((low <= truth) & (truth <= high)).mean())
        ratio.append(estimate[:2] / truth[:2])
        likelier = np.eye(3)[log[list(GROUPS.values())].to_numpy().argmax(axis=1)]
        z = np.einsum("ng,nk->ngk", likelier, design(log)[:, :3] / log[["p_a"]].to_numpy())
        z = z.reshape(len(log), -1)
        beta = np.linalg.solve(z.T @ z, z.T @ log["reward"].to_numpy())
        thresholded.append((beta[3:6] - beta[:3])[1] / truth[1])
    assert np.mean(covered) == pytest.approx(0.9, abs=4.0 * np.std(covered) / np.sqrt(100))
    assert np.mean(ratio, axis=0) == pytest.approx([1.0, 1.0], abs=0.15)
    assert np.mean(thresholded) < 0.8


def test_words_say_what_it_rests_on_and_what_is_left_out():
    log, _ = made(3)
    log["arm"], log["true_reward"] = "one", log["reward"]
    audit = eh.audit(log, group_probability=GROUPS, reference="a")
    words = audit.to_words()
    assert "3,000 rows in 3 groups, known by probability (expected: a " in words
    assert "In 3,000 of 3,000 rows the group is uncertain." in words
    assert "calibrated at the same features" in words and "BISG" in words
    assert "The log also has columns for arm, true reward: they are not used with groups" in words
    assert audit.metrics is None and audit.impact.empty and audit.logistic is None
    assert audit.facts.columns.features == ("x0", "x1")
    plain = json.loads(audit.to_json())
    errors = Draft202012Validator(eh.audit.Audit.schema()).iter_errors(plain)
    assert [f"{error.json_path}: {error.message[:100]}" for error in errors] == []
    assert list(plain) == list(eh.audit.Audit.schema()["properties"])
    assert plain["by_probability"]["columns"] == GROUPS


@pytest.mark.slow
def test_page_and_command(tmp_path, capsys):
    log, _ = made(4, n=600)
    log.to_csv(tmp_path / "log.csv", index=False)
    flags = [f"--group-probability={group}={column}" for group, column in GROUPS.items()]
    out = tmp_path / "audit.html"
    assert main(["audit", str(tmp_path / "log.csv"), *flags, "--out", str(out)]) == 0
    assert "known by probability" in capsys.readouterr().out
    page = out.read_text()
    assert 'id="probabilities"' in page and 'id="metrics"' not in page
    plain = json.loads(out.with_suffix(".json").read_text())
    assert "--group-probability" in plain["provenance"]["command"]
    again = plain["provenance"]["command"].split()[1:]
    assert main([*again, "--out", str(tmp_path / "again.json")]) == 0
    second = json.loads((tmp_path / "again.json").read_text())
    assert second["bias"] == plain["bias"]


def test_rows_without_any_probability_are_not_stated():
    log, _ = made(5)
    log.loc[:299, list(GROUPS.values())] = np.nan
    audit = eh.audit(log, group_probability=GROUPS, reference="a")
    assert audit.bias.groups == ("a", "b", "c", "not stated")
    assert audit.bias.observations[3] == 300
    assert '"not stated"' in audit.to_words()
    rest = eh.audit(log.iloc[300:], group_probability=GROUPS, reference="a").bias.to_frame()
    mine = audit.bias.to_frame().query("group != 'not stated'")
    assert mine["estimate"].to_numpy() == pytest.approx(rest["estimate"].to_numpy(), abs=1e-9)


def test_probabilities_that_are_rounded_are_divided_by_their_sum():
    log, _ = made(6)
    rounded = log.assign(**{name: log[name].round(3) for name in GROUPS.values()})
    total = rounded[list(GROUPS.values())].sum(axis=1)
    exact = rounded.assign(**{name: rounded[name] / total for name in GROUPS.values()})
    divided, expected = (
        eh.audit(each, group_probability=GROUPS, reference="a").bias.to_frame()
        for each in (rounded, exact)
    )
    assert divided["estimate"].to_numpy() == pytest.approx(
        expected["estimate"].to_numpy(), abs=1e-9
    )


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"p_a": 0.9}, {}, "do not sum to 1 in"),
        ({"p_a": -0.5}, {}, "do not sum to 1 in"),
        ({"p_a": "high"}, {}, "is the probability of a, and is not a number"),
        ({}, {"group_probability": {"a": "p_a", "b": "p_z"}}, "'p_z' for b, which is not a column"),
        ({}, {"group_probability": {"a": "p_a"}}, "allowed is a column for each of two"),
        ({}, {"group_probability": {"a": "p_a", "b": "p_a"}}, "allowed is a column for each"),
        ({}, {"errors": "classical"}, "noise is not equal where groups are mixed"),
        ({}, {"weighting": "arms"}, "arms are not compared then"),
        ({}, {"group": "x0"}, "groups are known, or known by probability"),
        ({}, {"reference": "z"}, "reference is 'z'"),
        ({"p_a": 0.2, "p_b": 0.3, "p_c": 0.5}, {}, "is the same in every row"),
    ],
)
def test_mistakes_are_told_in_a_line(change, options, message):
    log, _ = made(7, n=200)
    with pytest.raises((InputError, DataError), match=message) as error:
        eh.audit(log.assign(**change), **{"group_probability": GROUPS, **options})
    assert "\n" not in str(error.value)


def test_features_that_cannot_be_told_apart_are_named():
    log, _ = made(8, n=400)
    with pytest.raises(DataError, match=r"tell groups apart by .*x0.*twice"):
        eh.audit(log.assign(twice=2.0 * log["x0"]), group_probability=GROUPS)


@pytest.mark.slow
def test_a_log_of_a_policy_with_probabilities_is_taken_as_it_is(tmp_path):
    path, rng = tmp_path / "log.parquet", np.random.default_rng(1)
    groups = drawn(["F", "M"], 300)
    for t in range(0, 300, 2):
        chance = float(rng.random())
        groups[t] = [{"F": chance, "M": 1.0 - chance}] * ARMS
    policy = eh.PooledGroupFair(
        eh.Groups.per_round(ARMS, {"sex": ["F", "M"]}), FEATURES, reference="M", seed=7
    )
    contexts, arms, rewards = play_rounds(path, policy, groups)
    audit = eh.audit(path, reference="M")
    assert audit.bias.groups == ("F", "M") and audit.facts.columns.group == "sex"
    assert audit.by_probability.membership.uncertain == 150
    chosen = contexts[np.arange(len(arms)), arms]
    chances = np.array(
        [
            own[arm]["F"] if isinstance(own[arm], dict) else float(own[arm] == "F")
            for own, arm in zip(groups, arms, strict=True)
        ]
    )
    x = np.column_stack([np.ones(len(chosen)), chosen])
    z = np.hstack([chances[:, None] * x, (1.0 - chances)[:, None] * x])
    beta = np.linalg.lstsq(z, rewards, rcond=None)[0]
    table = audit.bias.to_frame().query("group == 'F'")
    assert table["estimate"].to_numpy() == pytest.approx(beta[:3] - beta[3:], abs=1e-9)
    left = eh.audit(path, reference="M", missing="drop")
    assert left.by_probability is None and sum(left.bias.observations) == 150
