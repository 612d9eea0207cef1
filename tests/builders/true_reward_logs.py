"""Logs with true rewards in some rows."""

from __future__ import annotations

import numpy as np
import pandas as pd

BIAS = np.array([-0.5, 0.0, 0.8])  # of F: intercept, x0, x1


def log_of(seed, n=1500):
    """F is better in truth by 1 and by 1 on x0, and marked down by BIAS; a third has no truth."""
    rng = np.random.default_rng(seed)
    woman = rng.random(n) < 0.4
    x = np.column_stack([np.ones(n), rng.normal(3.0, 1.0, size=(n, 2))])
    true = x @ [2.0, 1.0, -1.0] + woman * (x @ [1.0, 1.0, 0.0]) + rng.normal(size=n)
    log = pd.DataFrame(x[:, 1:], columns=["x0", "x1"])
    log["group"] = np.where(woman, "F", "M")
    log["reward"] = true + woman * (x @ BIAS) + rng.normal(size=n)
    log["true_reward"] = np.where(rng.random(n) < 0.67, true, np.nan)
    log["arm"] = log["group"] + rng.integers(2, size=n).astype(str)
    return log
