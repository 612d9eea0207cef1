"""Rows for the tests of the bias report, and what several of them need."""

from __future__ import annotations

import numpy as np

from evenhand.bias import Statistics

NUMBERS = ["estimate", "standard_error", "freedom", "low", "high", "p_value"]


def rows_of(seed=0, n=300, d=3, labels=("F", "F", "M", "M", "X", "X", "X"), noise=1.0):
    """Contexts with an intercept, rewards, and the arm and group of each row."""
    rng = np.random.default_rng(seed)
    arms = rng.integers(len(labels), size=n)
    groups = np.array(labels)[arms]
    x = np.column_stack([np.ones(n), rng.normal(1.0, 2.0, size=(n, d - 1))])
    own = rng.normal(size=(len(labels), d))
    return x, np.sum(x * own[arms], axis=1) + noise * rng.normal(size=n), groups, arms


def statistics(*rows):
    return Statistics.from_rows(*rows)


def frame(report, *columns):
    return report.to_frame().set_index(["group", "feature"])[list(columns)]
