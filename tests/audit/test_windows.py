"""Time: where level and mix of the groups shift together, people of a period are compared."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

import evenhand as eh


def shifting(seed=1, n=3000, slope=-3.0, mix=0.6, gap=0.0):
    """Rewards fall over time, and the part of F rises; between people of one time `gap`."""
    rng = np.random.default_rng(seed)
    when = rng.random(n)
    woman = rng.random(n) < 0.5 + mix * (when - 0.5)
    log = pd.DataFrame({"group": np.where(woman, "F", "M"), "x": rng.normal(size=n)})
    log["timestamp"] = when
    log["reward"] = slope * when + log["x"] + gap * woman + rng.normal(size=n)
    return log


def in_windows(log, count=8):
    when = log["timestamp"]
    width = (when.max() - when.min()) / count
    return np.minimum(((when - when.min()) / width).astype(int), count - 1)


@pytest.mark.slow
@pytest.mark.parametrize("cluster", [False, True])
def test_the_gap_within_windows_is_that_of_statsmodels(cluster):
    log = shifting().assign(person=lambda frame: np.arange(len(frame)) // 3)
    # "auto" makes up for what windows take from clusters that are in one each.
    how = {"cluster": "person", "errors": "robust"} if cluster else {"leave_out": ["person"]}
    audit = eh.audit(log, reference="M", **how)
    log["w"] = in_windows(log)
    model = smf.ols("reward ~ C(group, Treatment('M')) * (x + C(w))", log)
    robust = {"cov_type": "cluster", "cov_kwds": {"groups": log["person"]}}
    fit = model.fit(**robust) if cluster else model.fit(cov_type="HC1")
    part = (log["w"].value_counts() / len(log)).to_dict()
    contrast = np.zeros(len(fit.params))
    for i, name in enumerate(fit.params.index):
        if "[T.F]" in name:
            other = name.split(":")[1] if ":" in name else ""
            contrast[i] = 1.0 if not other else log["x"].mean()
            if "C(w)" in other:
                contrast[i] = part[int(other.split("T.")[1].rstrip("]"))]
    row = audit.within.by_group.loc["F"]
    # Shares of windows are written into the query with six digits.
    assert row["estimate"] == pytest.approx(contrast @ fit.params, abs=1e-5)
    error = np.sqrt(contrast @ fit.cov_params() @ contrast)
    assert row["standard_error"] == pytest.approx(error, rel=1e-4)
    slope = audit.within.to_frame().set_index(["group", "feature"]).loc[("F", "x")]
    name = "C(group, Treatment('M'))[T.F]:x"
    assert slope["estimate"] == pytest.approx(fit.params[name], rel=1e-8)
    assert slope["standard_error"] == pytest.approx(fit.bse[name], rel=1e-8)


def test_a_shift_of_level_and_mix_is_no_bias():
    audit = eh.audit(shifting(), reference="M")
    assert audit.believe == "within windows"
    said = audit.summary
    parts = audit.decomposition.set_index("part")["estimate"]
    assert parts["left"] == pytest.approx(audit.within.by_group.loc["F", "estimate"])
    assert "differences in time for" in said[1]
    total = parts["explained"] + parts["time"] + parts["left"]
    assert total == pytest.approx(parts["unadjusted"])
    assert said[2].startswith(
        "Within time windows, among people with the same features, the mean reward of group F "
        "cannot be told apart from"
    )
    whole = next(sentence for sentence in said if sentence.startswith("Over the whole log"))
    assert "lower than that of group M" in whole
    assert "Rely on the one within time windows" in " ".join(said)
    assert audit.to_dict()["believe"] == "within windows"
    assert audit.to_dict()["within_windows"]["totals"]


def test_a_bias_that_a_shift_hides_is_found():
    audit = eh.audit(shifting(slope=3.0, gap=-0.5), reference="M")
    assert audit.within.by_group.loc["F", "high"] < 0.0
    assert audit.believe == "within windows"
    assert audit.summary[2].startswith("The direction of the gap reverses")
    assert audit.summary[2].endswith(
        "lower between people with the same features at the same time."
    )
    assert "lower than that of group M" in audit.summary[3]


@pytest.mark.slow
def test_without_a_shift_both_say_the_same_and_are_shown():
    audit = eh.audit(shifting(slope=0.0, mix=0.0, gap=-1.0), reference="M")
    assert audit.believe == "whole log"
    assert audit.summary[2].startswith(
        "Among people with the same features, the mean reward of group F is 0.99"
    )
    assert audit.summary[3].startswith(
        "Within time windows, among people with the same features, the mean reward"
    )
    page = audit.to_html()
    assert "over the whole log" in page and "within time windows" in page


@pytest.mark.slow
def test_unbiased_logs_that_shift_raise_no_alarm():
    """Level and mix shift in all of them. With 12 logs at 95 %, more than 3 alarms: 1 in 400."""
    alarms = 0
    for seed in range(12):
        audit = eh.audit(shifting(seed, n=1500), reference="M")
        headline = next(
            line for line in audit.summary if "among people with the same features" in line.lower()
        )
        alarms += "cannot be told" not in headline
    assert alarms <= 3


def test_windows_without_a_group_are_left_out():
    log = shifting()
    log = log[(log["group"] == "M") | (log["timestamp"] < 0.7)]
    audit = eh.audit(log, reference="M")
    kept = in_windows(log) <= 5
    assert audit.within.observations == tuple(
        int((kept & (log["group"] == name)).sum()) for name in ("F", "M")
    )


def test_groups_that_are_hardly_there_do_not_stop_the_others():
    log = shifting()
    few = log.iloc[:3].assign(group="X", timestamp=0.5)
    audit = eh.audit(pd.concat([log, few], ignore_index=True), reference="M", windows=8)
    table = audit.within.by_group
    assert np.isfinite(table.loc["F", "estimate"])
    assert np.isnan(table.loc["X", "estimate"])


def test_groups_that_never_meet_are_not_compared():
    log = shifting(n=800)
    log["timestamp"] = np.where(log["group"] == "F", log["timestamp"] + 5.0, log["timestamp"])
    assert eh.audit(log, reference="M", windows=4).within is None
