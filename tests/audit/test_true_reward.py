"""Audits of logs that hold true rewards: bias without the assumption of equal averages."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from audit_logs import assert_same, differences, interacted, page_of
from true_reward_logs import BIAS, log_of


def test_is_the_regression_of_the_difference():
    log = log_of(1)
    audit = eh.audit(log, reference="M")
    known = log.dropna(subset="true_reward")
    known = known.assign(reward=known["reward"] - known["true_reward"])
    names, model = interacted(known, ["x0", "x1"])
    assert_same(audit.against_truth, differences(model.fit(cov_type="HC1"), names, "M", 3))
    assert audit.against_truth.observations == tuple(known.groupby("group").size())
    assert audit.bias.observations == tuple(log.groupby("group").size())


def test_tells_bias_from_a_true_difference():
    """The plain report has both together; that against the truth has the bias alone.

    All three intervals at once miss in at most 5 % of seeds, in each report; this seed is fixed.
    """
    audit = eh.audit(log_of(3), reference="M")
    plain = audit.bias.to_frame().query("group == 'F'")
    both = BIAS + np.array([1.0, 1.0, 0.0])
    assert (plain["simultaneous_low"].to_numpy() <= both).all()
    assert (plain["simultaneous_high"].to_numpy() >= both).all()
    assert plain["simultaneous_low"].iloc[1] > 0.0  # on x0, where there is no bias
    table = audit.against_truth.to_frame().query("group == 'F'")
    assert (table["simultaneous_low"].to_numpy() <= BIAS).all()
    assert (table["simultaneous_high"].to_numpy() >= BIAS).all()
    assert table["simultaneous_low"].iloc[2] > 0.0


@pytest.mark.slow
def test_is_in_words_page_and_json():
    audit = eh.audit(log_of(3), reference="M")
    said = [
        sentence for sentence in audit.summary if sentence.startswith("true_reward is known in")
    ]
    assert len(said) == 1 and " of " in said[0]
    assert any(
        sentence.startswith("Against true_reward, among people with the same")
        for sentence in audit.summary
    )
    assert "This does not assume equal averages." in audit.to_words()
    assert 'id="truth"' in page_of(audit)
    plain = json.loads(audit.to_json())["against_truth"]
    assert plain["assumption"].startswith("This does not assume equal averages")
    assert any("see what is measured against them" in sentence for sentence in audit.limits)


def test_a_group_without_true_rewards_is_said_to_be_unknown():
    log = log_of(4)
    log.loc[log["group"] == "F", "true_reward"] = np.nan
    audit = eh.audit(log, reference="M")
    assert audit.against_truth is None
    assert any("true_reward is known in too few groups" in sentence for sentence in audit.summary)
    third = log_of(5)
    third.loc[:200, "group"] = "X"
    third.loc[third["group"] == "X", "true_reward"] = np.nan
    third = third.drop(columns="arm")
    among = eh.audit(third, reference="M")
    assert among.against_truth.groups == ("F", "M")
    assert any("X 0 of 201" in sentence for sentence in among.summary)


def test_feedback_that_is_the_truth_has_no_bias():
    log = log_of(6)
    log["reward"] = log["true_reward"].fillna(0.0)
    table = eh.audit(log, reference="M").against_truth.to_frame().query("group == 'F'")
    assert table["estimate"].to_numpy() == pytest.approx(np.zeros(3), abs=1e-12)
    assert not (table["p_value"] < 0.05).any()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["weight", "cluster"])
def test_takes_weights_and_clusters_along(how):
    log = log_of(7)
    rng = np.random.default_rng(7)
    log["weight"] = rng.uniform(0.5, 2.0, size=len(log))
    log["cluster"] = rng.integers(300, size=len(log))
    other = "cluster" if how == "weight" else "weight"
    audit = eh.audit(log.drop(columns=other), reference="M", **{how: how})
    known = log.dropna(subset="true_reward")
    known = known.assign(reward=known["reward"] - known["true_reward"])
    weights = known["weight"] if how == "weight" else None
    names, model = interacted(known, ["x0", "x1"], weights=weights)
    codes = {"groups": pd.factorize(known["cluster"])[0]}
    fitted = (
        model.fit(cov_type="HC1")
        if how == "weight"
        else model.fit(cov_type="cluster", cov_kwds=codes)
    )
    assert_same(audit.against_truth, differences(fitted, names, "M", 3))


def test_other_units_are_refused():
    """A score of about 50 beside 0 and 1, and beside the same in cents: nothing is subtracted."""
    log = log_of(8)
    repaid = log.assign(true_reward=(log["true_reward"] > 5.0).where(log["true_reward"].notna()))
    audit = eh.audit(repaid.astype({"true_reward": float}), reference="M")
    assert audit.against_truth is None
    assert any(
        "not seem to be in the same units: true_reward is 0 or 1, and reward is not" in sentence
        for sentence in audit.summary
    )
    cents = eh.audit(log.assign(true_reward=100.0 * log["true_reward"]), reference="M")
    assert cents.against_truth is None
    assert "in the same units: one changes" in cents.to_words()


@pytest.mark.slow
def test_a_truth_that_depends_on_the_decision_is_doubted():
    """Only loans that were given can be repaid; or only high scores were followed up."""
    log = log_of(9)
    given = log["reward"] > log["reward"].median()
    followed = eh.audit(log.assign(true_reward=log["true_reward"].where(given)), reference="M")
    assert followed.against_truth is not None
    assert any(
        sentence.startswith("WARNING: this holds if whether") for sentence in followed.summary
    )
    approved = log.assign(reward=given.astype(int), true_reward=(given * 1.0).where(given))
    audit = eh.audit(approved, reference="M")
    assert audit.against_truth is None
    assert "reward is 1 in every row whose true_reward is known" in audit.to_words()
    assert "WARNING" not in eh.audit(log, reference="M").to_words()
