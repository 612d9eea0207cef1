"""Calibration per group: scores or decisions beside what came true, from sums.

Calibrated in the large means that the mean score is the mean outcome. If the slope of the outcome
on the score is 1, scores are as far apart as outcomes are; if it is below 1, too far.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from evenhand import _checks
from evenhand._checks import Array
from evenhand.errors import DataError, setting

SUMS = ("n", "score", "score_square", "truth", "truth_square", "product")


def calibration(sums: pd.DataFrame, level: float = 0.95) -> pd.DataFrame:
    """A row per group: mean score and mean truth, their difference, and the slope of the truth.

    Args:
        sums: a column `group`, or groups as the index, and of the rows whose truth is known: how
            many there are (`n`), the sums of `score`, `score_square`, `truth`, `truth_square`, and
            of score times truth (`product`).
        level: of the intervals, Student's; errors of the slope are classical.

    Example:
        >>> import pandas as pd
        >>> from evenhand.fairness import calibration
        >>> sums = pd.DataFrame({"group": ["F"], "n": [4], "score": [2.0], "score_square": [1.5],
        ...     "truth": [3.0], "truth_square": [3.0], "product": [2.0]})
        >>> table = calibration(sums)
        >>> table.loc["F", ["mean_score", "mean_truth", "difference", "slope"]].tolist()
        [0.5, 0.75, -0.25, 1.0]
    """
    _checks.number("level", level, 0.0, 1.0, open_ends=True)
    table = sums.set_index("group") if "group" in sums else sums
    missing = [name for name in SUMS if name not in table]
    if missing:
        raise DataError(
            f"{setting('sums')} has no column {missing[0]!r}; needed are {', '.join(SUMS)}"
        )
    n, s, ss, t, tt, st = (table[name].to_numpy(dtype=np.float64) for name in SUMS)
    with np.errstate(divide="ignore", invalid="ignore"):
        score, truth = s / n, t / n
        inside = [_positive(square / n - mean**2) for square, mean in ((ss, score), (tt, truth))]
        covariance = st / n - score * truth
        gap = _positive(inside[0] + inside[1] - 2.0 * covariance)
        half_width = np.where(n > 1, stdtrit(np.maximum(n - 1, 1), (1 + level) / 2), np.nan)
        half_width = half_width * np.sqrt(gap / (n - 1))
        slope = np.where(inside[0] > 0.0, covariance / inside[0], np.nan)
        residual = _positive(inside[1] - slope * covariance)
        wide = np.where(n > 2, stdtrit(np.maximum(n - 2, 1), (1 + level) / 2), np.nan)
        wide = wide * np.sqrt(residual / inside[0] / (n - 2))
    columns = {
        "n": n.astype(np.int64),
        "mean_score": score,
        "mean_truth": truth,
        "difference": score - truth,
        "low": score - truth - half_width,
        "high": score - truth + half_width,
        "slope": slope,
        "slope_low": slope - wide,
        "slope_high": slope + wide,
    }
    return pd.DataFrame(columns, index=table.index.rename("group"))


def _positive(values: Array) -> Array:
    """Variances: numbers below zero are rounding."""
    return np.maximum(values, 0.0)
