"""Error rates and calibration by group: beside Fairlearn, statsmodels and closed forms."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from fairlearn.metrics import (
    MetricFrame,
    equalized_odds_difference,
    false_positive_rate,
    selection_rate,
    true_positive_rate,
)
from sklearn.metrics import precision_score
from statsmodels.stats.proportion import proportion_confint

import evenhand as eh
from evenhand.fairness import calibration, error_rates


def log_of(seed: int, n: int = 900) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    group = rng.choice(list("FMX"), n, p=[0.4, 0.4, 0.2])
    skill = rng.normal(size=n)
    truth = (skill + rng.normal(size=n) > 0).astype(float)
    chosen = (skill - 0.6 * (group == "F") + rng.normal(size=n) > 0).astype(float)
    log = pd.DataFrame({"group": group, "skill": skill, "reward": chosen, "true_reward": truth})
    log.loc[rng.random(n) < 0.2, "true_reward"] = np.nan
    return log


@pytest.fixture(scope="module")
def audited():
    log = log_of(1, 4000)
    return log.dropna(), eh.audit(log, reference="M")


def test_as_fairlearn_has_them(audited):
    known, audit = audited
    measures = {
        "true_positive_rate": true_positive_rate,
        "false_positive_rate": false_positive_rate,
        "selection_rate": selection_rate,
        "precision": precision_score,
    }
    columns = {"sensitive_features": known["group"]}
    both = {"y_true": known["true_reward"], "y_pred": known["reward"]}
    frame = MetricFrame(metrics=measures, **both, **columns)
    errors = audit.truth.errors
    for name in measures:
        ours = errors.by_group.loc[name, "estimate"]
        np.testing.assert_allclose(ours, frame.by_group[name].loc[ours.index])
    theirs = equalized_odds_difference(known["true_reward"], known["reward"], **columns)
    assert errors.equalized_odds_difference == pytest.approx(theirs)


def test_intervals_are_wilsons(audited):
    known, audit = audited
    part = known[(known["group"] == "F") & (known["true_reward"] == 1)]
    row = audit.truth.errors.by_group.loc[("true_positive_rate", "F")]
    ends = proportion_confint(part["reward"].sum(), len(part), method="wilson")
    assert [row["low"], row["high"]] == pytest.approx(ends) and row["n"] == len(part)


def test_calibration_beside_statsmodels(audited):
    known, audit = audited
    for group, part in known.groupby("group"):
        row = audit.truth.calibration.loc[group]
        gap = sm.stats.DescrStatsW(part["reward"] - part["true_reward"])
        assert row["difference"] == pytest.approx(gap.mean)
        assert [row["low"], row["high"]] == pytest.approx(gap.tconfint_mean())
        line = sm.OLS(part["true_reward"], sm.add_constant(part["reward"])).fit()
        assert row["slope"] == pytest.approx(line.params["reward"])
        assert [row["slope_low"], row["slope_high"]] == pytest.approx(line.conf_int().loc["reward"])


def test_scores_have_calibration_and_no_error_rates():
    log = log_of(2)
    rng = np.random.default_rng(0)
    log["reward"] = 1 / (1 + np.exp(-log["skill"] - rng.normal(size=len(log))))
    truth = eh.audit(log, reference="M").truth
    assert truth.errors is None
    known = log.dropna()
    means = known.groupby("group")[["reward", "true_reward"]].mean()
    ours = truth.calibration[["mean_score", "mean_truth"]]
    np.testing.assert_allclose(ours, means.loc[ours.index])


@pytest.mark.slow
def test_sentences_name_who_is_higher(audited):
    _, audit = audited
    lines = audit.truth.errors.to_words()
    rates = audit.truth.errors.by_group.loc["true_positive_rate", "estimate"]
    line = next(line for line in lines if line.startswith("The true positive rate is"))
    assert f"{100 * rates.max():.1f} % for group {rates.idxmax()}" in line
    assert f"{100 * rates.min():.1f} % for group {rates.idxmin()}" in line
    assert all(line in audit.summary for line in lines)
    json.dumps(audit.to_dict()["truth"], allow_nan=False)
    assert "Where the true outcome is known" in audit.to_html()


def test_rates_of_nobody_are_not_known():
    counts = pd.DataFrame(
        [["F", 0, 3, 0, 5], ["M", 4, 1, 2, 6]],
        columns=["group", "true_positives", "false_positives", "false_negatives", "true_negatives"],
    )
    rates = error_rates(counts)
    assert np.isnan(rates.by_group.loc[("true_positive_rate", "F"), "estimate"])
    assert np.isnan(rates.differences.loc["true_positive_rate", "estimate"])
    assert not any("true positive rate" in line for line in rates.to_words())


def test_without_a_true_reward_there_is_nothing():
    audit = eh.audit(log_of(3).drop(columns="true_reward"), reference="M")
    assert audit.truth is None and audit.to_dict()["truth"] is None


@pytest.mark.parametrize("broken", [{"n": -1}, None])
def test_mistakes_are_told(broken):
    if broken is None:
        with pytest.raises(eh.InputError, match="no column 'score'"):
            calibration(pd.DataFrame({"group": ["F"], "n": [2]}))
        with pytest.raises(eh.InputError, match="no column 'true_positives'"):
            error_rates(pd.DataFrame({"group": ["F"]}))
    else:
        table = pd.DataFrame({"group": ["F"], "true_positives": [-1], "false_positives": [0]})
        with pytest.raises(eh.InputError, match="below 0"):
            error_rates(table.assign(false_negatives=0, true_negatives=0))
