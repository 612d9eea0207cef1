"""Logs with marks for missing values and rewards in words."""

from __future__ import annotations

import numpy as np
import pandas as pd

from audit_logs import made_log

COLUMNS = ["estimate", "standard_error", "low", "high"]


def assert_same(audit, other, rtol=1e-9):
    mine, theirs = audit.bias.to_frame(), other.bias.to_frame()
    assert mine[["group", "feature"]].equals(theirs[["group", "feature"]])
    for name in COLUMNS:
        np.testing.assert_allclose(mine[name], theirs[name], rtol=rtol, atol=rtol)
    pd.testing.assert_frame_equal(audit.missing, other.missing)
    assert audit.facts.used == other.facts.used and audit.facts.filled == other.facts.filled


def marked(n=600):
    """A log with marks in every kind of column, and the same with nothing in their place."""
    rng = np.random.default_rng(52)
    plain = made_log(52, n=n)
    plain["x0"] = plain["x0"].round(4)
    plain["age"] = rng.integers(18, 90, size=n).astype(float)
    plain["town"] = rng.choice(["a", "b", "c"], size=n, p=[0.5, 0.3, 0.2])
    plain["w"] = rng.uniform(0.5, 2.0, size=n).round(3)
    words = plain.astype({"x0": str, "w": str})
    for name, mark in {"x0": " ?", "age": -9.0, "town": "NA", "group": "?", "w": "NA"}.items():
        here = rng.random(n) < 0.04
        words.loc[here, name] = mark
        plain.loc[here, name] = None
    return words, plain


MARKS = ("?", "NA", -9)


def both(words, plain, **options):
    """The log with marks and a reward in words, and the same audit of plain numbers."""
    kind = plain["reward"] > plain["reward"].median()
    words = words.assign(reward=np.where(kind, "approved", "denied"))
    plain = plain.assign(reward=kind)
    options |= {"reference": "M", "missing": "fill", "weight": "w"}
    values = {"approved": 1, "denied": 0}
    return words, {**options, "missing_marks": MARKS, "reward_values": values}, (plain, options)
