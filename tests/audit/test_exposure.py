"""Exploration and exposure in audits, against the same metrics from rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from audit_logs import made_log


def log_of(seed, first=1, n=900):
    rng = np.random.default_rng(seed)
    log = made_log(seed, n=n, groups=("A", "B", "C"))
    log["reward"] += 1e4  # far from zero: sums are about a centre
    log["explored"] = rng.random(n) < 0.3
    log["position"] = first + rng.integers(3, size=n)
    return log


def assert_same_metrics(measured, expected):
    mine, theirs = (
        report.to_frame()
        .set_index(["metric", "group"])[["estimate", "low", "high", "n"]]
        .sort_index()
        for report in (measured, expected)
    )
    for name in ("exploration_rate", "exploration_cost", "exposure_share"):
        pd.testing.assert_frame_equal(mine.loc[[name]], theirs.loc[[name]], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("missing", [False, True])
def test_are_those_from_rows(first, missing):
    log = log_of(1, first)
    if missing:
        log.loc[::7, "reward"] = np.nan
        log.loc[::11, "x1"] = np.nan
    metrics = eh.audit(log, missing="drop").metrics
    log["place"] = log["position"] + (1 - first)
    sums = eh.fairness.group_sums(log.drop(columns="position"), position="place")
    assert_same_metrics(metrics, eh.fairness.fairness_report(sums))


def test_flags_that_are_missing_are_no_metrics():
    """History has no flag: a part of "all decisions" would be wrong."""
    log = log_of(2)
    log["explored"] = log["explored"].astype("boolean")
    log.loc[:10, "explored"] = pd.NA
    metrics = set(eh.audit(log).metrics.to_frame()["metric"])
    assert "exploration_rate" not in metrics and "exposure_share" in metrics


def test_one_position_for_all_is_no_exposure():
    log = log_of(3).assign(position=0)
    assert "exposure_share" not in set(eh.audit(log).metrics.to_frame()["metric"])
