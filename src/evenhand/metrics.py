"""Numbers about runs: shares, regret, the price of fairness, and intervals around their means."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from evenhand import _checks
from evenhand._checks import numbers
from evenhand.errors import InputError, setting
from evenhand.groups import Groups


def summarise(
    table: pd.DataFrame, by: Sequence[str], value: str, level: float = 0.95
) -> pd.DataFrame:
    """n, mean, standard deviation and Student interval of a column, by the columns `by`.

    Groups keep the order in which they first appear. The interval of a single value is missing,
    never zero.

    Example:
        >>> import pandas as pd
        >>> from evenhand.metrics import summarise
        >>> table = pd.DataFrame({"policy": ["a", "a", "b"], "share": [0.4, 0.6, 0.5]})
        >>> summarise(table, ["policy"], "share").round(3).values.tolist()
        [['a', 2, 0.5, 0.141, -0.771, 1.771], ['b', 1, 0.5, nan, nan, nan]]
    """
    from scipy.special import stdtrit

    _checks.number("level", level, 0.0, 1.0, open_ends=True)
    grouped = table.groupby(list(by), sort=False, observed=True)[value]
    means = grouped.agg(n="count", mean="mean", sd="std").reset_index()
    freedom = np.maximum(means["n"] - 1, 1)
    half_width = (
        stdtrit(freedom, 0.5 + level / 2) * means["sd"] / np.sqrt(np.maximum(means["n"], 1))
    )
    means["low"], means["high"] = means["mean"] - half_width, means["mean"] + half_width
    return means


def shares(arms: ArrayLike, groups: Groups) -> pd.DataFrame:
    """The share of choices of each group, beside its share under proportional and equal parity.

    Example:
        >>> import evenhand as eh
        >>> groups = eh.Groups(["F", "M", "M", "M"], sensitive="F")
        >>> eh.metrics.shares([0, 1, 2, 3, 3], groups)[["group", "pulls", "share"]].values.tolist()
        [['F', 1, 0.2], ['M', 4, 0.8]]
    """
    given = numbers("arms", arms)
    if given.size and not (given.min() >= 0 and given.max() < groups.n_arms):
        raise InputError(f"{setting('arms')} has numbers outside 0 to {groups.n_arms - 1}")
    chosen = given.astype(np.int64)
    if (chosen != given).any():
        raise InputError(
            f"{setting('arms')} has numbers that are not whole; allowed are the numbers of arms"
        )
    pulls = np.bincount(groups.of[chosen], minlength=len(groups))
    return pd.DataFrame(
        {
            "group": groups.names,
            "pulls": pulls,
            "share": pulls / max(chosen.size, 1),
            "proportional_share": groups.sizes / groups.n_arms,
            "equal_share": 1.0 / len(groups),
        }
    )


def price_of_fairness(
    regret: float, regret_of_top: float, share: float, share_of_top: float
) -> float:
    """The perceived regret paid per point (0.01) of share gained over TopInterval.

    It is missing where no share was gained.

    Example:
        >>> from evenhand.metrics import price_of_fairness
        >>> round(price_of_fairness(regret=7.0, regret_of_top=4.0, share=0.5, share_of_top=0.2), 3)
        0.1
    """
    gained = 100.0 * (share - share_of_top)
    return float((regret - regret_of_top) / gained) if gained > 0.0 else float("nan")


def prices(runs: pd.DataFrame, reference: str = "TopInterval", level: float = 0.95) -> pd.DataFrame:
    """The price of fairness of every policy against `reference`, paired over replications.

    Args:
        runs: a row per run with `policy`, `replication`, `share` and `perceived_regret`. All
            policies of a replication meet the same rounds, so differences between them vary less
            than their own values.
        reference: the policy to compare with.
        level: the level of the intervals.

    The columns say by how much `share` and `perceived_regret` are higher, with the half-widths of
    their intervals, and give the `price` of one point (0.01) of share. The price is missing unless
    the interval of the share gained is above zero.

    Example:
        >>> import evenhand as eh
        >>> world = eh.SyntheticWorld()
        >>> policies = [eh.TopInterval, eh.GroupFairTopInterval]
        >>> runs = eh.simulate(policies, world, horizon=500, replications=20, seed=1).runs
        >>> eh.metrics.prices(runs)[["policy", "share_gained", "price"]].round(2).values.tolist()
        [['GroupFairTopInterval', 0.32, 0.09]]
    """
    metrics = ["share", "perceived_regret"]
    wide = runs.pivot(index="replication", columns="policy", values=metrics)
    if reference not in wide["share"]:
        raise InputError(
            f"{setting('reference')} is {reference!r}; the runs have {', '.join(wide['share'])}",
            value=reference,
        )
    rows = []
    for policy in dict.fromkeys(runs["policy"]):
        if policy == reference:
            continue
        gained, paid = (wide[metric][policy] - wide[metric][reference] for metric in metrics)
        frame = pd.DataFrame({"a": gained, "b": paid}).melt(var_name="which")
        means = summarise(frame, ["which"], "value", level)
        share, regret = (float(value) for value in means["mean"])
        share_reach, regret_reach = (float(value) for value in means["high"] - means["mean"])
        gained_share = share > share_reach
        price = price_of_fairness(regret, 0.0, share, 0.0) if gained_share else float("nan")
        rows.append((policy, share, share_reach, regret, regret_reach, price))
    columns = ["policy", "share_gained", "share_reach", "regret_paid", "regret_reach", "price"]
    return pd.DataFrame(rows, columns=columns)
