"""A first look: real mortgage applications, three policies, and what the feedback is biased on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from evenhand import charts, datasets
from evenhand._atomic_files import write_whole
from evenhand._html import drawn, render
from evenhand._html.tables import Cell, Table, of_rows
from evenhand.bias import BiasReport
from evenhand.metrics import summarise
from evenhand.policies import GroupFairTopInterval, Policy, PooledGroupFair, TopInterval
from evenhand.simulation import Simulation, simulate
from evenhand.worlds import TableWorld

ROUNDS, REPLICATIONS = 1000, 40
POLICIES: dict[str, Callable[..., Policy]] = {
    "TopInterval": TopInterval,
    "GroupFairTopInterval": GroupFairTopInterval,
    # No group's decisions are known to be right, so both are compared with their mean.
    "PooledGroupFair": partial(PooledGroupFair, reference="mean"),
}
ADVISED: dict[str, Any] = {"ridge": 1.0, "noise": "estimate"}
FEATURES = {  # what the columns are called on the page
    "intercept": "anybody",
    "hrat": "housing expense, % of income",
    "obrat": "other obligations, % of income",
    "loanprc": "loan, as a fraction of the price",
    "unem": "unemployment in the industry, %",
    "dep": "dependents",
    "sch": "more than 12 years of school",
    "chist": "no delinquent accounts",
    "pubrec": "filed for bankruptcy",
    "vr": "many vacancies in the tract",
}


class Demo(NamedTuple):
    """The results of the demo."""

    world: TableWorld
    dropped: int
    simulated: Simulation
    bias: BiasReport


def play() -> Demo:
    """Play the policies on the applications, and estimate what the feedback is biased on."""
    columns = [name for name in FEATURES if name != "intercept"]
    with warnings.catch_warnings():  # the page says how many rows are left out
        warnings.simplefilter("ignore", UserWarning)
        world = TableWorld(
            datasets.load("mortgage"),
            group="race",
            sensitive="black",
            others="together",
            arms={"loanprc": {"quantiles": 3}},
            reward="approve",
            features=columns,
            scale="standardise",
            missing="drop",
        )
    simulated = simulate(POLICIES, world, ROUNDS, REPLICATIONS, seed=1, **ADVISED)
    policy = GroupFairTopInterval(world.groups, world.n_features, **ADVISED)
    policy.absorb(*world.observations())  # every application once
    names = [FEATURES[name] for name in world.feature_names]
    bias = policy.bias(
        weighting="pulls",  # what a fair policy corrects by
        reference="not black",
        feature_names=names,
        scales=world.scales["deviation"],
        units={FEATURES[name]: 1.0 for name in ("sch", "chist", "pubrec", "vr")},  # yes or no
    )
    return Demo(world, world.dropped_rows, simulated, bias)


def table(demo: Demo) -> pd.DataFrame:
    """A row per policy: the share of choices of each group, and the approvals missed."""
    shares = demo.simulated.groups
    rows = []
    for policy in dict.fromkeys(shares["policy"]):
        by_group = summarise(shares[shares["policy"] == policy], ["group"], "share")
        runs = demo.simulated.runs[demo.simulated.runs["policy"] == policy]
        missed = summarise(runs, ["policy"], "perceived_regret").iloc[0]
        cells = [_percent(by_group.iloc[g]) for g in range(len(demo.world.groups))]
        rows.append((policy, *cells, _percent(missed)))
    return pd.DataFrame(rows, columns=["policy", *demo.world.groups.names, "approvals missed"])


def _percent(row: pd.Series[float]) -> str:
    return f"{100 * row['mean']:.0f} % +- {100 * (row['high'] - row['mean']):.1f}"


def sentences(demo: Demo) -> list[str]:
    """What happened, in words."""
    share = demo.simulated.runs.groupby("policy")["share"].mean()
    missed = demo.simulated.runs.groupby("policy")["perceived_regret"].mean()
    top, paper, pooled = (share[name] for name in POLICIES)
    return [
        f"{demo.world.n_rows:,} mortgage applications in Boston, 1990. In each of {ROUNDS:,} "
        "rounds there are six applicants, three of them black, and one gets the loan; the reward "
        "is what the lender really decided about that person.",
        f"TopInterval trusts those decisions and gives black applicants {100 * top:.0f} % of the "
        "loans, where 50 % would be in proportion.",
        "PooledGroupFair, the policy to use unless you have a reason for another one, learns how "
        "the decisions differ between the groups, treats the difference as bias and corrects both "
        f"groups towards their mean: {100 * pooled:.0f} %. It misses "
        f"{100 * missed['PooledGroupFair']:.0f} % of the approvals, and TopInterval, which also "
        f"chooses at random now and then, {100 * missed['TopInterval']:.0f} %.",
        "GroupFairTopInterval, the paper's policy, corrects too, and adds its uncertainty about "
        f"the groups' averages to black applicants only. After {ROUNDS:,} rounds that is still "
        f"large, so it gives them {100 * paper:.0f} %, more than in proportion.",
    ]


def write(demo: Demo, path: Path) -> Path:
    """Write a small page that needs nothing else."""
    page = render(
        "demo.html",
        title="A first look",
        sentences=sentences(demo),
        shares=_shares(table(demo)),
        learned=demo.bias.to_words().splitlines(),
        picture=drawn(charts.to_svg(demo.bias.chart(title=""))),
        dropped=demo.dropped,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, page)
    return path


def _shares(frame: pd.DataFrame) -> Table:
    """The table of the page, with a plus-minus sign, which some terminals lack."""
    rows = [
        [policy, *(Cell(text.replace("+-", "±"), number=True) for text in cells)]
        for policy, *cells in frame.itertuples(index=False, name=None)
    ]
    return of_rows(
        list(frame.columns),
        rows,
        caption="Share of the choices by group, and approvals missed against the best choice of "
        f"each round; means of {REPLICATIONS} replications with 95 % intervals.",
    )
