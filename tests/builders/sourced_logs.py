"""A log with every role, for the same audits of it from files and databases."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from audit_logs import made_log

CHOICES = (
    {"missing": "drop", "cluster": "person", "leave_out": ["judge"], "count": "people"},
    {
        "missing": "drop",
        "cluster": "judge",
        "leave_out": ["person", "people"],
        "weighting": "pulls",
    },
    {"missing": "fill", "leave_out": ["person", "judge", "people"], "weigh_by_propensity": True},
)


def roled_log():
    rng = np.random.default_rng(21)
    table = made_log(21, n=900, shift=100.0)
    table["timestamp"] = pd.date_range("2026-01-01", periods=len(table), freq="min")
    table["item_id"] = table["group"] + (np.arange(len(table)) % 3).astype(str)
    table["propensity_score"] = rng.uniform(0.1, 1.0, size=len(table))
    table["town"] = rng.choice(["a", "b", "c"], size=len(table), p=[0.5, 0.3, 0.2])
    table["person"] = table["group"] + (np.arange(len(table)) // 3).astype(str)
    table["people"] = rng.integers(3, size=len(table))
    table["judge"] = rng.integers(60, size=len(table))  # of both groups
    table["true_reward"] = (table["reward"] + rng.normal(size=len(table))).where(
        rng.random(len(table)) < 0.8
    )
    table.loc[::50, "x1"] = np.nan
    table.loc[::70, "town"] = None
    return table


def audits(source, choices=CHOICES, **more):
    return [eh.audit(source, reference="M", **choice, **more) for choice in choices]


def assert_alike(some, others, tolerance):
    assert len(some) == len(others)
    reports = [
        pair
        for one, two in zip(some, others, strict=True)
        for pair in (
            (one.bias, two.bias),
            (one.within, two.within),
            (one.against_truth, two.against_truth),
            (one.blend.bias, two.blend.bias),
        )
    ]
    for one, two in reports:
        mine, theirs = one.to_frame(), two.to_frame()
        assert mine[["group", "feature"]].equals(theirs[["group", "feature"]])
        scale = theirs["standard_error"].to_numpy()
        for column in ("estimate", "standard_error", "low", "high"):
            apart = np.abs(mine[column] - theirs[column]).to_numpy()
            assert (apart <= tolerance * (np.abs(theirs[column]) + scale)).all(), column
    for one, two in zip(some, others, strict=True):
        for column in ("mean_reward", "estimate", "standard_error"):
            np.testing.assert_allclose(one.drift[column], two.drift[column], rtol=1e-8, atol=1e-8)
        assert one.drift[["window", "from", "group", "n"]].equals(
            two.drift[["window", "from", "group", "n"]]
        )
        assert one.missing.equals(two.missing)
        pd.testing.assert_frame_equal(one.blend.arrival, two.blend.arrival, rtol=1e-7, atol=1e-8)
        assert one.blend.measured.p_equal == pytest.approx(two.blend.measured.p_equal, rel=1e-5)


def cells_of(source, **more):
    """An audit of two group columns, by scores above the median."""
    return eh.audit(
        source, group=["group", "town"], reward="reward", features=["x0", "x1", "x2"],
        missing="drop", reference="M", **more,
    )  # fmt: skip


def assert_same_cells(one, two):
    """Audits of several group columns with the same numbers."""
    for name in ("cells", "impact"):
        mine, theirs = getattr(one.intersections, name), getattr(two.intersections, name)
        pd.testing.assert_frame_equal(mine, theirs, rtol=1e-8, atol=1e-8, check_dtype=False)
    for name in ("attributes", "within", "against_truth"):
        mine, theirs = getattr(one.intersections, name), getattr(two.intersections, name)
        assert list(mine) == list(theirs)
        for attribute, report in mine.items():
            other = theirs[attribute].to_frame()
            pd.testing.assert_frame_equal(report.to_frame(), other, rtol=1e-8, atol=1e-8)
    for attribute, tests in one.intersections.changes.items():
        other = two.intersections.changes[attribute]
        pd.testing.assert_frame_equal(tests, other, rtol=1e-7, atol=1e-8, check_dtype=False)
