"""Rewards beside true rewards, per group, from the sums that the audit has anyway."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from evenhand._prose import records
from evenhand.audit._sums.cells import Cells
from evenhand.fairness.calibration import calibration
from evenhand.fairness.error_rates import ErrorRates, error_rates

NAMES = ["r_n", "y_r", "yy_r", "r", "rr", "yr"]


@dataclass(frozen=True, eq=False)
class KnownTruth:
    """What the rows with a true reward say of each group. Weights of rows do not count here.

    Attributes:
        calibration: mean reward beside mean true reward, and the slope, by group.
        errors: error rates, where both are 0 or 1, or None.
    """

    calibration: pd.DataFrame
    errors: ErrorRates | None

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "calibration": records(self.calibration.reset_index()),
            "error_rates": None if self.errors is None else self.errors.to_dict(),
        }


def known_truth(cells: Cells, reward_centre: float, level: float) -> KnownTruth | None:
    """Calibration and error rates; None where no true reward is known.

    Args:
        cells: the sums.
        reward_centre: what was subtracted from the rewards.
        level: of the intervals.
    """
    if "r_n" not in cells.frame:
        return None
    total = cells.frame[NAMES].astype(float).fillna(0.0)
    total = total.groupby(cells.frame["g"].astype(str)).sum()
    total = total[total["r_n"] > 0.0].rename_axis("group")
    if total.empty:
        return None
    n, centre = total["r_n"], reward_centre
    score = total["y_r"] + n * centre
    square = total["yy_r"] + 2.0 * centre * total["y_r"] + n * centre**2
    product = total["yr"] + centre * total["r"]
    table = calibration(
        pd.DataFrame(
            {
                "n": n,
                "score": score,
                "score_square": square,
                "truth": total["r"],
                "truth_square": total["rr"],
                "product": product,
            }
        ),
        level,
    )
    # Only 0 and 1 are their own squares, so only then do the sums of both agree.
    binary = centre == 0.0 and (score == square).all() and (total["r"] == total["rr"]).all()
    if not binary:
        return KnownTruth(table, None)
    counts = pd.DataFrame(
        {
            "true_positives": product,
            "false_positives": score - product,
            "false_negatives": total["r"] - product,
            "true_negatives": n - score - total["r"] + product,
        }
    )
    return KnownTruth(table, error_rates(counts.round(), level))
