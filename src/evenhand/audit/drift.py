"""Whether the feedback changes over time: every group in every window, and a test."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import chdtrc

from evenhand.audit.cells import Cells
from evenhand.audit.looking import Times
from evenhand.bias.making import bias_report
from evenhand.bias.report import BiasReport

COLUMNS = ["window", "from", "group", "n", "share", "mean_reward", "mean_low", "mean_high"]
BIAS = ["estimate", "standard_error", "low", "high", "why"]


def drift(
    frame: pd.DataFrame,
    cells: Cells | None,
    times: Times,
    report: BiasReport,
    reward_centre: float,
) -> pd.DataFrame:
    """A row per window and group: counts, mean rewards, and the bias at everyone's average context.

    Args:
        frame: n, y and yy by group g and window t.
        cells: full sums by window, or None where only means are known.
        times: the windows.
        report: of the whole log, about the centres.
        reward_centre: what was subtracted from the rewards.
    """
    known = frame.dropna(subset="t")
    counted = known.groupby(["t", "g"])[["n", "y", "yy"]].sum()
    parts = []
    for window in range(times.count):
        table = _rewards(counted, window, report, reward_centre)
        table.insert(0, "from", times.label(window))
        table.insert(0, "window", window + 1)
        found = None if cells is None else _bias(cells, window, report)
        parts.append(table if found is None else table.join(found, on="group"))
    return pd.concat(parts, ignore_index=True)


def _rewards(
    counted: pd.DataFrame, window: int, report: BiasReport, reward_centre: float
) -> pd.DataFrame:
    index = pd.MultiIndex.from_product([[window], report.groups], names=["t", "g"])
    here = counted.reindex(index).fillna(0.0).astype(float).droplevel("t")
    n = here["n"]
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = here["y"] / n
        variance = np.maximum(here["yy"] / n - mean**2, 0.0) * n / (n - 1.0)
        reach = 1.959963984540054 * np.sqrt(variance / n)
        share = n / n.sum()
    return pd.DataFrame(
        {
            "group": list(report.groups),
            "n": n.to_numpy(dtype=np.int64),
            "share": share.to_numpy(),
            "mean_reward": (mean + reward_centre).to_numpy(),
            "mean_low": (mean + reward_centre - reach).to_numpy(),
            "mean_high": (mean + reward_centre + reach).to_numpy(),
        }
    )


def _bias(cells: Cells, window: int, report: BiasReport) -> pd.DataFrame:
    here = bias_report(
        cells.statistics(report.groups, window),
        reference=report.reference,
        level=report.level,
        feature_names=report.features,
        average=report.overall,
    )
    return here.by_group[BIAS]


def changes(table: pd.DataFrame, level: float) -> pd.DataFrame:
    """A row per group: whether its bias at the average context is the same in all windows.

    The test is of the windows' estimates around their weighted mean, chi-squared; its p-value is
    for all groups at once (Bonferroni).
    """
    rows = []
    if "estimate" not in table:
        return pd.DataFrame(columns=["group", "windows", "statistic", "p_value", "changes"])
    for group, part in table.groupby("group", sort=False):
        part = part[part["standard_error"] > 0.0]
        if len(part) < 2:
            continue
        weight = 1.0 / part["standard_error"] ** 2
        mean = (weight * part["estimate"]).sum() / weight.sum()
        statistic = float((weight * (part["estimate"] - mean) ** 2).sum())
        p = float(chdtrc(len(part) - 1, statistic))
        rows.append((group, len(part), statistic, p))
    found = pd.DataFrame(rows, columns=["group", "windows", "statistic", "p_value"])
    found["p_value"] = np.minimum(found["p_value"] * len(found), 1.0)
    found["changes"] = found["p_value"] < 1.0 - level
    return found
