"""The gap explained by logistic models: an identity, errors as of the bootstrap, one interval."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import evenhand as eh
from audit_logs import page_of


def log_of(seed: int, n: int = 3000, odds: float = -0.8) -> pd.DataFrame:
    """Chances far from a straight line, and groups that differ in their features."""
    rng = np.random.default_rng(seed)
    log = pd.DataFrame({"group": np.where(rng.random(n) < 0.4, "F", "M")})
    log["x0"] = rng.normal(size=n) + 0.7 * (log["group"] == "F")
    log["x1"] = rng.normal(size=n)
    score = -2.0 + 1.6 * log["x0"] + log["x1"] + odds * (log["group"] == "F")
    return log.assign(reward=(rng.random(n) < 1.0 / (1.0 + np.exp(-score))).astype(int))


def parts_of(audit: eh.Audit) -> pd.DataFrame:
    return audit.decomposition.set_index(["part", "column"])


@pytest.mark.slow
def test_the_parts_are_those_of_the_logistic_models_where_these_fit():
    log = log_of(1)
    audit = eh.audit(log, reference="M")
    assert audit.logistic is not None and audit.logistic.fits == "logistic"
    parts = parts_of(audit)
    assert set(parts["model"]) == {"logistic"}
    estimate = parts["estimate"]
    means = log.groupby("group")["reward"].mean()
    assert estimate["unadjusted", ""] == pytest.approx(means["F"] - means["M"])
    assert estimate["explained", ""] + estimate["left", ""] == pytest.approx(
        means["F"] - means["M"]
    )
    assert estimate["feature"].sum() == pytest.approx(estimate["explained", ""], abs=1e-9)
    row = audit.logistic.by_group.set_index("group").loc["F"]
    ends = row[["gap", "gap_simultaneous_low", "gap_simultaneous_high"]].tolist()
    assert parts.loc[("left", ""), ["estimate", "low", "high"]].tolist() == pytest.approx(ends)
    # x0 is what the groups differ in.
    assert estimate["feature", "x0"] > 0.1
    assert abs(estimate["feature", "x1"]) < 0.03
    said = audit.to_words()
    assert "is left between people with the same features, by logistic models" in said
    assert "The adjustment is by logistic models." in page_of(audit)


@pytest.mark.slow
def test_errors_are_those_of_the_bootstrap():
    """The same parts by Newton's method on the rows, of the log and of 400 resamples.

    A standard deviation of 400 is known to 3.5 %, so chance alone explains no 15 %.
    """
    log = log_of(2, n=2000)
    parts = parts_of(eh.audit(log, reference="M"))
    half = (parts["high"] - parts["low"]) / 2.0
    woman = (log["group"] == "F").to_numpy()
    x, y = np.column_stack([np.ones(len(log)), log[["x0", "x1"]]]), log["reward"].to_numpy()
    names = [("unadjusted", ""), ("explained", ""), ("left", ""), ("feature", "x0")]
    assert parts["estimate"][names].tolist() == pytest.approx(by_hand(x, y, woman), rel=1e-6)
    rng = np.random.default_rng(3)
    resamples = (rng.integers(len(log), size=len(log)) for _ in range(400))
    spread = np.std([by_hand(x[rows], y[rows], woman[rows]) for rows in resamples], axis=0)
    # Two features share the level: 97.5 % each.
    errors = half[names].to_numpy() / [1.96, 1.96, 1.96, 2.24]
    assert errors == pytest.approx(spread, rel=0.15)


def by_hand(x, y, woman):
    """Unadjusted, explained, left, and what x0 explains."""
    rows = (woman, ~woman)
    beta = np.array([newton(x[own], y[own]) for own in rows])
    chance = expit(x @ beta.T).mean(axis=0)  # as if all were of either group
    mean = np.array([y[own].mean() for own in rows])
    away = np.array(
        [x[woman].mean(axis=0) - x.mean(axis=0), x.mean(axis=0) - x[~woman].mean(axis=0)]
    )
    slope = np.array([mean[0] - chance[0], chance[1] - mean[1]]) / (away * beta).sum(axis=1)
    gap, left = mean[0] - mean[1], chance[0] - chance[1]
    return [gap, gap - left, left, (slope * away[:, 1] * beta[:, 1]).sum()]


def newton(x, y):
    beta = np.zeros(x.shape[1])
    for _ in range(12):
        chance = expit(x @ beta)
        information = (x * (chance * (1.0 - chance))[:, None]).T @ x
        beta = beta + np.linalg.solve(information, x.T @ (y - chance))
    return beta


@pytest.mark.slow
def test_straight_lines_where_these_fit():
    rng = np.random.default_rng(4)
    log = log_of(4).assign(reward=lambda frame: rng.integers(2, size=len(frame)))
    parts = parts_of(eh.audit(log, reference="M"))
    assert set(parts["model"]) == {"straight lines"}


def test_too_many_coefficients_are_said_at_the_top(monkeypatch):
    monkeypatch.setattr("evenhand.audit._inference.logistic_groups.MOST_CHANCES", 3)
    audit = eh.audit(log_of(5), reference="M")
    said = "there is no logistic model: 2 regressions with 3 coefficients each are too many for one"
    assert audit.logistic is not None and "at most 3 coefficients in all" in audit.logistic.why
    assert said in audit.to_words()
    assert "no change of a gap with a feature is claimed" in audit.to_words()
    page = page_of(audit)
    assert said in page[: page.index('<section id="summary">')]


def test_the_gap_is_of_the_rows_that_are_used():
    """Rows that lack a feature are not compared, and do not count as explained."""
    rng = np.random.default_rng(6)
    log = pd.DataFrame({"group": ["F", "M"] * 300, "x": rng.normal(size=600)})
    log["reward"] = log["x"] + rng.normal(size=600)
    lost = (log["group"] == "F") & (log.index < 200)
    log = log.assign(x=log["x"].mask(lost), reward=log["reward"] + 50.0 * lost)
    parts = parts_of(eh.audit(log, reference="M", missing="drop"))["estimate"]
    means = log[~lost].groupby("group")["reward"].mean()
    assert parts["unadjusted", ""] == pytest.approx(means["F"] - means["M"])
    assert abs(parts["explained", ""]) < 0.3
