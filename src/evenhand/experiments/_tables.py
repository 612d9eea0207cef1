"""The tables of a report: the price of fairness, and all means with their intervals."""

from __future__ import annotations

import math
from typing import NamedTuple

import pandas as pd

from evenhand.experiments.claims import TOP
from evenhand.experiments.model import HORIZON, Experiment
from evenhand.html.tables import Cell, Table, of_rows
from evenhand.metrics import prices, summarise
from evenhand.prose import in_digits


class Prices(NamedTuple):
    """The price of fairness in the first panel, and in the others."""

    first: Table
    others: Table


def price_tables(runs: pd.DataFrame, experiment: Experiment, reading: str) -> Prices | None:
    """The price of fairness at the last x, by panel; nothing where none can be told."""
    if not _has_prices(experiment, runs):
        return None
    last = runs[runs["x"] == runs["x"].max()]
    rows = []
    for panel, mine in last.groupby("panel", sort=False):
        for policy, share, share_reach, regret, regret_reach, price in prices(mine).to_numpy():
            rows.append(
                (
                    *([str(panel)] if experiment.panels else []),
                    policy,
                    Cell(f"{100 * share:+.1f} ± {100 * share_reach:.1f}", number=True),
                    Cell(f"{_plain(regret, sign=True)} ± {_plain(regret_reach)}", number=True),
                    Cell(_price(price), number=True),
                )
            )
    keys = ["", "policy"] if experiment.panels else ["policy"]
    names = [*keys, "points of share gained", "perceived regret paid", "price of a point"]
    caption = (
        f"The price of fairness at {_at_last(experiment)}, {reading}: against TopInterval in the "
        "same rounds, with 95 % intervals. There is no price where no share was gained."
    )
    each = last["policy"].nunique() - 1
    first = of_rows(names, rows[:each], len(keys), caption)
    return Prices(first, of_rows(names, rows[each:], len(keys)))


def _has_prices(experiment: Experiment, runs: pd.DataFrame) -> bool:
    """Whether there is a share to gain over TopInterval, and more than one run to tell it from."""
    compared = TOP in set(runs["policy"]) and runs["policy"].nunique() > 1
    repeated = runs["replication"].nunique() > 1
    return experiment.is_table and compared and repeated and bool(runs["share"].notna().any())


def _at_last(experiment: Experiment) -> str:
    """Where a figure ends on the right: "T = 240"."""
    name = "T" if experiment.sweep.own_name == HORIZON else experiment.sweep.own_name
    return f"{name} = {in_digits(max(experiment.sweep.values))}"


def _price(value: float) -> str:
    return "no share gained" if pd.isna(value) else _plain(value, sign=True)


def _plain(value: float, sign: bool = False) -> str:
    """Three digits that count, thousands with commas."""
    form = "+" if sign else ""
    digits = 0 if abs(value) >= 100 else 2 if abs(value) >= 1 else 4
    return f"{value:{form},.{digits}f}"


def numbers_table(runs: pd.DataFrame, experiment: Experiment) -> Table:
    """Means of shares and regrets with their intervals, of every point and policy."""
    shown = [
        name for name in ("share", "perceived_regret", "true_regret") if runs[name].notna().any()
    ]
    keys = ["panel", "x", "policy"] if experiment.panels else ["x", "policy"]
    names = {"panel": "", "x": experiment.axis, "policy": "policy"}
    means = {name: summarise(runs, keys, name) for name in shown}
    rows = [
        [
            *(one if isinstance(one, str) else Cell(in_digits(one), number=True) for one in key),
            *(Cell(_with_reach(means[name].iloc[i]), number=True) for name in shown),
        ]
        for i, key in enumerate(means[shown[0]][keys].itertuples(index=False))
    ]
    headings = [names[key] for key in keys] + [name.replace("_", " ") for name in shown]
    return of_rows(headings, rows, keys=len(keys))


def _with_reach(row: pd.Series[float]) -> str:
    """A mean with as many digits as its interval is worth, and at least three behind the point."""
    reach = row["high"] - row["mean"]
    size = abs(row["mean"]) if pd.isna(reach) or not reach > 0 else reach
    small = -math.floor(math.log10(size)) + 1 if 0.0 < size < 0.01 else 3
    digits = 0 if abs(row["mean"]) >= 1000 else min(small, 15)
    text = f"{row['mean']:,.{digits}f}"
    return text + ("" if pd.isna(reach) else f" ± {reach:,.{digits}f}")
