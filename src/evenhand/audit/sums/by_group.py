"""Sums per group for the metrics, from the same aggregation."""

from __future__ import annotations

import numpy as np
import pandas as pd

from evenhand.audit.sums.cells import Cells
from evenhand.audit.sums.exposure import attention
from evenhand.audit.sums.missing import Gaps


def is_binary(frame: pd.DataFrame, reward_centre: float) -> bool:
    """Whether all rewards are 0 or 1: only then is the sum of their squares their sum."""
    if reward_centre != 0.0 or frame["low"].min() < 0.0 or frame["high"].max() > 1.0:
        return False
    return bool(frame["yy"].sum() == frame["y"].sum())


def group_sums(cells: Cells, gaps: Gaps, reward_centre: float, binary: bool) -> pd.DataFrame:
    """A row per group as `fairness_report` reads it; weights are not used here."""
    frame, centre, groups = cells.frame, reward_centre, list(cells.groups())
    names = [name for name in ("n", "y", "yy", "r_n", "r", "rr") if name in frame]
    total = frame[names].astype(float).fillna(0.0).groupby(frame["g"].astype(str)).sum().loc[groups]
    every, told = total["n"], attention(frame, frame["g"].astype(str), total["n"], centre)
    if gaps.sums is not None:  # rows that only lack a feature have a reward all the same
        centre, every = gaps.centre, pd.Series(gaps.by_group).astype(float).loc[groups]
        total[["n", "y", "yy"]] = gaps.sums.loc[groups, ["n", "y", "yy"]].astype(float).fillna(0.0)
        whole = gaps.sums.loc[groups].rename_axis("g").reset_index()
        told = attention(whole, whole["g"].astype(str), every, centre)
        binary = binary and bool((total["y"] == total["yy"]).all())
    n = total["n"].to_numpy()
    square = total["yy"] + 2.0 * centre * total["y"] + n * centre**2
    found = {
        "group": list(total.index),
        "n": every.to_numpy(),
        "n_reward": n,
        "sum_reward": (total["y"] + n * centre).to_numpy(),
        "square_reward": square.to_numpy(),
        **told,
    }
    if binary:
        found["positives"] = total["y"].round().to_numpy()
        found["sum_reward"] = found["square_reward"] = found["positives"]
    if "r" in total and (total["r_n"] > 0.0).any():
        found |= {
            "n_true_reward": total["r_n"].to_numpy(),
            "sum_true_reward": total["r"].to_numpy(),
            "square_true_reward": total["rr"].to_numpy(),
        }
    if "a" in frame:
        pairs = frame[["g", "a"]].astype(str).drop_duplicates()
        if not pairs["a"].duplicated().any():  # arms that serve several groups are no shares
            counts = pairs.groupby("g").size()
            found["arms"] = np.array([float(counts[name]) for name in total.index])
    return pd.DataFrame(found)


def extra_sums(cells: Cells) -> pd.DataFrame:
    """A row per group of what else was summed up: weights, inverse propensities, overrides."""
    names = {
        "w": "sum_weight",
        "ww": "square_weight",
        "chances": "n_propensity",
        "p": "sum_inverse_propensity",
        "pp": "square_inverse_propensity",
        "o": "overrides",
    }
    have = {short: name for short, name in names.items() if short in cells.frame}
    numbers = cells.frame[list(have)].astype(float).fillna(0.0).rename(columns=have)
    total = numbers.groupby(cells.frame["g"].astype(str)).sum()
    return total.loc[list(cells.groups())].rename_axis("group").reset_index()


def by_arm(cells: Cells, reward_centre: float) -> pd.DataFrame | None:
    """A row per group and arm: pulls and mean reward; None without arms."""
    if "a" not in cells.frame:
        return None
    named = cells.frame[["g", "a"]].astype(str).set_axis(["group", "arm"], axis=1)
    named = named.assign(n=cells.frame["n"], y=cells.frame["y"])
    total = named.groupby(["group", "arm"]).sum().astype(float).reset_index()
    total["mean_reward"] = total["y"] / total["n"] + reward_centre
    total["n"] = total["n"].astype(np.int64)
    return total.drop(columns="y")
