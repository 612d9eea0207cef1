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
    table = made_log(21, n=900, d=2, shift=100.0)
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
        for audit, other in zip(some, others, strict=True)
        for pair in (
            (audit.bias, other.bias),
            (audit.within, other.within),
            (audit.against_truth, other.against_truth),
            (audit.blend.bias, other.blend.bias),
        )
    ]
    for report, expected in reports:
        mine, theirs = report.to_frame(), expected.to_frame()
        assert mine[["group", "feature"]].equals(theirs[["group", "feature"]])
        scale = theirs["standard_error"].to_numpy()
        for column in ("estimate", "standard_error", "low", "high"):
            apart = np.abs(mine[column] - theirs[column]).to_numpy()
            assert (apart <= tolerance * (np.abs(theirs[column]) + scale)).all(), column
    for audit, other in zip(some, others, strict=True):
        mine, theirs = audit.drift, other.drift
        for column in ("mean_reward", "estimate", "standard_error"):
            np.testing.assert_allclose(mine[column], theirs[column], rtol=1e-8, atol=1e-8)
        windows = ["window", "from", "group", "n"]
        assert mine[windows].equals(theirs[windows])
        assert audit.missing.equals(other.missing)
        mine, theirs = audit.blend, other.blend
        pd.testing.assert_frame_equal(mine.arrival, theirs.arrival, rtol=1e-7, atol=1e-8)
        assert mine.measured.p_equal == pytest.approx(theirs.measured.p_equal, rel=1e-5)


def cells_of(source, **more):
    """An audit of two group columns, by scores above the median."""
    return eh.audit(
        source, group=["group", "town"], reward="reward", features=["x0", "x1"],
        missing="drop", reference="M", **more,
    )  # fmt: skip


def assert_same_cells(audit, expected):
    """Audits of several group columns with the same numbers."""
    cells, others = audit.intersections, expected.intersections
    for name in ("cells", "impact"):
        mine, theirs = getattr(cells, name), getattr(others, name)
        pd.testing.assert_frame_equal(mine, theirs, rtol=1e-8, atol=1e-8, check_dtype=False)
    for name in ("attributes", "within", "against_truth"):
        mine, theirs = getattr(cells, name), getattr(others, name)
        assert list(mine) == list(theirs)
        for attribute, report in mine.items():
            other = theirs[attribute].to_frame()
            pd.testing.assert_frame_equal(report.to_frame(), other, rtol=1e-8, atol=1e-8)
    for attribute, tests in cells.changes.items():
        other = others.changes[attribute]
        pd.testing.assert_frame_equal(tests, other, rtol=1e-7, atol=1e-8, check_dtype=False)
