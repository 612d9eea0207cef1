"""Whether the feedback changes over time: every group in every window, and a test."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from evenhand.audit._inference.bias_by_window import Windows
from evenhand.audit._inference.cluster_reward_means import WindowErrors
from evenhand.audit._inference.drift_tests import LEAST_FREEDOM, dependent, independent
from evenhand.audit._input.first_look import Times
from evenhand.bias._contrasts import NOT
from evenhand.bias.report import BiasReport

SINGLE = "a group that is compared has a single cluster in this window"


def drift(
    frame: pd.DataFrame,
    windows: Windows | None,
    times: Times,
    report: BiasReport,
    reward_centre: float,
    of_clusters: WindowErrors | None = None,
) -> pd.DataFrame:
    """A row per window and group: counts, mean rewards, and the bias at everyone's average context.

    Args:
        frame: n, y and yy by group g and window t.
        windows: the fit of each, or None where only means are known.
        times: the windows.
        report: of the whole log, about the centres.
        reward_centre: what was subtracted from the rewards.
        of_clusters: the errors of mean rewards where rows belong together.
    """
    table = _rewards(frame, times, report, reward_centre, of_clusters)
    if windows is None:
        return table
    bias = [_bias(windows, window) for window in range(times.count)]
    keys = ["window", "group"]
    return table.join(pd.concat(bias, keys=range(1, times.count + 1), names=keys), on=keys)


def _rewards(
    frame: pd.DataFrame,
    times: Times,
    report: BiasReport,
    reward_centre: float,
    of_clusters: WindowErrors | None,
) -> pd.DataFrame:
    """Counts and mean rewards of all windows and groups; those without rows have a count of 0.

    Every pair of a window and a group has a row, also without data, so that tables and charts of
    different logs have the same shape. The interval of a mean is Student's: yy / n - mean^2 has the
    divisor n, and divided by n - 1 it is the variance of the mean. Where rows belong together, that
    comes from the clusters, and so do the degrees of freedom. Rewards are about their centre, which
    is added at the end: that way their squares keep their digits.
    """
    windows, groups = range(times.count), list(report.groups)
    counted = frame.dropna(subset="t").groupby(["t", "g"])[["n", "y", "yy"]].sum()
    every = counted.reindex(pd.MultiIndex.from_product([windows, groups], names=["t", "g"]))
    n, y, yy = every.fillna(0.0).to_numpy(dtype=np.float64).T
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = y / n
        variance = np.maximum(yy / n - mean**2, 0.0) / (n - 1.0)
        freedom = n - 1.0
        if of_clusters is not None:
            variance, freedom = of_clusters.variance.ravel(), of_clusters.clusters.ravel() - 1.0
        # A single row, or cluster, has no error: NaN, not 0.
        known = np.where(freedom > 0.0, freedom, np.nan)
        half_width = stdtrit(known, 0.5 + report.level / 2.0) * np.sqrt(variance)
        share = n / np.repeat(n.reshape(times.count, -1).sum(axis=1), len(groups))
    return pd.DataFrame(
        {
            "window": np.repeat(np.arange(1, times.count + 1), len(groups)),
            "from": np.repeat([times.label(window) for window in windows], len(groups)),
            "group": groups * times.count,
            "n": n.astype(np.int64),
            "share": share,
            "mean_reward": mean + reward_centre,
            "mean_low": mean + reward_centre - half_width,
            "mean_high": mean + reward_centre + half_width,
        }
    )


def _bias(windows: Windows, window: int) -> pd.DataFrame:
    table = windows.reports[window].by_group
    groups = range(len(table))
    variance = np.array([windows.covariance(g)[window, window] for g in groups])
    freedom = np.array([windows.freedoms(g)[window] for g in groups])
    known = (table["estimate"].notna() & (freedom > 0.0)).to_numpy()
    error = np.where(known, np.sqrt(np.maximum(variance, 0.0)), np.nan)
    half_width = (
        stdtrit(np.where(known, freedom, np.nan), 0.5 + windows.reports[0].level / 2.0) * error
    )
    reference = ~np.array([windows.contrast(g)[window].any() for g in groups])
    # An estimate without an error is not shown: it would look as certain as the others.
    kept = table["estimate"].where(known | reference)
    why = table["why"].where(known | reference | table["estimate"].isna(), NOT + SINGLE)
    return pd.DataFrame(
        {
            "estimate": kept,
            "standard_error": np.where(reference & kept.notna(), 0.0, error),
            "low": kept - np.where(reference, 0.0, half_width),
            "high": kept + np.where(reference, 0.0, half_width),
            "why": why,
        },
        index=table.index,
    )


def changes(windows: Windows | None, groups: tuple[str, ...], level: float) -> pd.DataFrame:
    """A row per group: whether its bias at the average context is the same in all windows.

    The test is of the windows' estimates around their best common value. It is Welch's where
    windows are independent, and Hotelling's where the same clusters are in several. Its p-value is
    for all groups at once (Bonferroni). `windows` is how many have rows or clusters enough for it.

    Args:
        windows: the fit of each, or None where only means are known.
        groups: their names.
        level: one minus the probability of a false alarm.
    """
    rows = []
    for g, group in enumerate(groups if windows is not None else ()):
        assert windows is not None
        tested = change(windows, g)
        if tested is not None:
            rows.append((group, *tested))
    tests = pd.DataFrame(rows, columns=["group", "windows", "statistic", "p_value"])
    distinct = len(tests) if len(groups) > 2 else 1  # of two, one mirrors the other
    tests["p_value"] = np.minimum(tests["p_value"] * distinct, 1.0)
    tests["changes"] = tests["p_value"] < 1.0 - level
    return tests


def change(windows: Windows, group: int) -> tuple[int, float, float] | None:
    """How many windows the bias of a group is tested in, the statistic, and its p-value."""
    estimate, covariance = windows.estimates[:, group], windows.covariance(group)
    known = ~np.isnan(estimate) & (np.diag(covariance) > 0.0)
    # By the groups' own freedom: that of a difference is large just where chance makes the variance
    # of the small group small, and windows chosen by that would seem to differ.
    compared = windows.contrast(group) != 0.0
    fewest = np.min(np.where(compared, np.nan_to_num(windows.freedom), np.inf), axis=1)
    known &= fewest >= LEAST_FREEDOM
    if known.sum() < 2:
        return None
    if not windows.shared:
        variance, freedom = np.diag(covariance)[known], windows.freedoms(group)[known]
        return int(known.sum()), *independent(estimate[known], variance, freedom)
    block = np.ix_(known, known)
    needed = windows.contrast(group)[known].any(axis=0)
    parts = [windows.part(group, g)[block] for g in np.flatnonzero(needed).tolist()]
    fewest = windows.freedom[known][:, needed].min(axis=0)
    return int(known.sum()), *dependent(estimate[known], covariance[block], parts, fewest.tolist())
