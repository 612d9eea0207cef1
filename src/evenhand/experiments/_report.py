"""The report: one HTML file with figures, tables and claims, which needs no network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from evenhand._atomic_files import write_whole
from evenhand._html import drawn, render
from evenhand._html.tables import Cell, Table, of_rows
from evenhand._prose import in_digits
from evenhand.experiments._claims import (
    CLAIMS,
    HOLDS,
    PARTLY,
    REAL_CLAIMS,
    TOP,
    Claim,
    MeansByPoint,
    Verdict,
)
from evenhand.experiments._figures import Figure
from evenhand.experiments._introduction import (
    RunFacts,
    introduction,
    table_in_words,
    world_in_words,
)
from evenhand.experiments._pooled_in_paper import OWN_CLAIMS, known_share, shown
from evenhand.experiments.model import HORIZON, Experiment
from evenhand.metrics import prices, summarise
from evenhand.worlds import TableWorld


class Prices(NamedTuple):
    """The price of fairness in the first panel, and in the others."""

    first: Table
    others: Table


def price_tables(runs: pd.DataFrame, experiment: Experiment, reading: str) -> Prices | None:
    """The price of fairness at the last x, by panel; None if it is not known."""
    if not _has_prices(experiment, runs):
        return None
    last = runs[runs["x"] == runs["x"].max()]
    rows = []
    for panel, own in last.groupby("panel", sort=False):
        for policy, share, share_reach, regret, regret_reach, price in prices(own).to_numpy():
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
        f"The price of fairness at {_at_last(experiment)}, {reading}: compared with TopInterval in "
        "the same rounds, with 95 % intervals. There is no price if no share was gained."
    )
    per_panel = last["policy"].nunique() - 1
    first = of_rows(names, rows[:per_panel], len(keys), caption)
    return Prices(first, of_rows(names, rows[per_panel:], len(keys)))


def _has_prices(experiment: Experiment, runs: pd.DataFrame) -> bool:
    """Whether there are shares to compare with TopInterval's, in more than one replication."""
    compared = TOP in set(runs["policy"]) and runs["policy"].nunique() > 1
    repeated = runs["replication"].nunique() > 1
    return experiment.is_table and compared and repeated and bool(runs["share"].notna().any())


def _at_last(experiment: Experiment) -> str:
    """The right end of a figure, such as "T = 240"."""
    name = "T" if experiment.sweep.own_name == HORIZON else experiment.sweep.own_name
    return f"{name} = {in_digits(max(experiment.sweep.values))}"


def _price(value: float) -> str:
    return "no share gained" if pd.isna(value) else _plain(value, sign=True)


def _plain(value: float, sign: bool = False) -> str:
    """About three significant digits, with commas for thousands."""
    form = "+" if sign else ""
    digits = 0 if abs(value) >= 100 else 2 if abs(value) >= 1 else 4
    return f"{value:{form},.{digits}f}"


def numbers_table(runs: pd.DataFrame, experiment: Experiment) -> Table:
    """Means of shares and regrets with their intervals, for every point and policy."""
    shown = [
        name for name in ("share", "perceived_regret", "true_regret") if runs[name].notna().any()
    ]
    keys = ["panel", "x", "policy"] if experiment.panels else ["x", "policy"]
    names = {"panel": "", "x": experiment.axis, "policy": "policy"}
    means = {name: summarise(runs, keys, name) for name in shown}
    rows = [
        [
            *(
                value if isinstance(value, str) else Cell(in_digits(value), number=True)
                for value in key
            ),
            *(Cell(_with_half_width(means[name].iloc[i]), number=True) for name in shown),
        ]
        for i, key in enumerate(means[shown[0]][keys].itertuples(index=False))
    ]
    headings = [names[key] for key in keys] + [name.replace("_", " ") for name in shown]
    return of_rows(headings, rows, keys=len(keys))


def _with_half_width(row: pd.Series[float]) -> str:
    """A mean with the digits that its interval warrants, and at least three decimals."""
    half_width = row["high"] - row["mean"]
    size = abs(row["mean"]) if pd.isna(half_width) or not half_width > 0 else half_width
    small = -math.floor(math.log10(size)) + 1 if 0.0 < size < 0.01 else 3
    digits = 0 if abs(row["mean"]) >= 1000 else min(small, 15)
    text = f"{row['mean']:,.{digits}f}"
    return text + ("" if pd.isna(half_width) else f" ± {half_width:,.{digits}f}")


def write(
    path: Path,
    experiments: Sequence[Experiment],
    runs: pd.DataFrame,
    figures: Sequence[Figure],
    facts: RunFacts,
) -> Path:
    """Write the report to `path`."""
    readings = list(dict.fromkeys(runs["conventions"]))
    sections: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
    for experiment in experiments:
        drawn_figures = [figure for figure in figures if figure.experiment == experiment.name]
        section = _section(experiment, shown(experiment, runs), drawn_figures)
        sections[bool(experiment.beside)].append(section)
    own = [experiment for experiment in experiments if experiment.beside]
    own_names = {name for experiment in own for name in experiment.conventions}
    own_readings = [name for name in readings if name in own_names]
    page = render(
        "report.html",
        title=facts.title,
        readings=readings,
        introduction=introduction(experiments, readings, facts),
        claims=_claims(check_claims(experiments, runs), readings),
        sections=sections[False],
        beyond=sections[True],
        own_readings=own_readings,
        own_claims=_claims(check_own_claims(own, runs), own_readings),
        method=_method(experiments, facts),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, page)
    return path


def check_claims(
    experiments: Sequence[Experiment], runs: pd.DataFrame
) -> list[tuple[Claim, dict[str, Verdict]]]:
    """Every claim of the paper that these runs can check, under each reading."""
    of_paper = {experiment.name for experiment in experiments if experiment.in_paper}
    by_reading = {str(name): table for name, table in runs.groupby("conventions", sort=False)}
    checked = []
    for claim in (*CLAIMS, *REAL_CLAIMS):
        verdicts = {
            name: verdict
            for name, table in by_reading.items()
            if claim.experiment in of_paper & set(table["experiment"])
            and (verdict := _checked(claim, table)) is not None
        }
        if verdicts:
            checked.append((claim, verdicts))
    return checked


def check_own_claims(
    experiments: Sequence[Experiment], runs: pd.DataFrame
) -> list[tuple[Claim, dict[str, Verdict]]]:
    """Every claim of our own about PooledGroupFair in the experiments of the paper."""
    checked = []
    for claim in OWN_CLAIMS:
        for experiment in experiments:
            if experiment.name == claim.experiment:
                verdict = _checked(claim, shown(experiment, runs))
                checked.append((claim, {experiment.conventions[0]: verdict} if verdict else {}))
    return [(claim, verdicts) for claim, verdicts in checked if verdicts]


def _checked(claim: Claim, runs: pd.DataFrame) -> Verdict | None:
    """The verdict; None if a copy of the paper's file lacks the policies of the claim."""
    try:
        return claim.check(MeansByPoint(runs))
    except KeyError:
        return None


def _claims(
    verdicts: list[tuple[Claim, dict[str, Verdict]]], readings: Sequence[str]
) -> list[dict[str, Any]]:
    """A row per claim, with its verdict under each reading, or None if it was not run."""
    kinds = {HOLDS: "yes", PARTLY: "partly"}
    return [
        {
            "says": claim.says,
            "experiment": claim.experiment,
            "verdicts": [
                {**verdict._asdict(), "kind": kinds.get(verdict.verdict, "no")} if verdict else None
                for verdict in map(by_reading.get, readings)
            ],
        }
        for claim, by_reading in verdicts
    ]


def _section(
    experiment: Experiment, runs: pd.DataFrame, figures: Sequence[Figure]
) -> dict[str, Any]:
    """The section of one experiment."""
    source = f"In the paper: {experiment.in_paper}. " if experiment.in_paper else ""
    place = (table_in_words if experiment.is_table else world_in_words)(experiment)
    readings = []
    for reading in dict.fromkeys(runs["conventions"]):
        own = runs[runs["conventions"] == reading]
        pictures = [
            (drawn(figure.svg), f"{reading}: {_caption(figure, experiment)}")
            for figure in figures
            if figure.conventions == reading
        ]
        readings.append(
            {
                "name": reading,
                "figures": pictures,
                "prices": price_tables(own, experiment, reading),
                "numbers": numbers_table(own, experiment),
            }
        )
    return {
        "name": experiment.name,
        "title": experiment.title,
        "notes": [
            words for words in (source + experiment.note, place.words, _known(experiment)) if words
        ],
        "learned": place.learned,
        "wide": bool(experiment.panels),
        "readings": readings,
    }


def _known(experiment: Experiment) -> str:
    """For PooledGroupFair in a table: the share that perfect knowledge would give."""
    world = next(experiment.points(next(iter(experiment.readings().values())))).world
    if not (experiment.beside and isinstance(world, TableWorld)) or len(world.groups) != 2:
        return ""
    share = 100 * known_share(world)
    return (
        "If the coefficients of every arm were known, by least squares over all of its rows, and "
        f"the averages of the groups were equal, sensitive arms would be chosen in {share:.1f} % "
        "of the rounds. Arms of different people are not exchangeable, so this need not be a half."
    )


def _caption(figure: Figure, experiment: Experiment) -> str:
    single = len(experiment.sweep.values) == 1
    crosses = "; crosses: published" if figure.published and not single else ""
    if figure.shows == "share":
        return "share of sensitive pulls; dotted: proportional" + crosses
    if experiment.chart == "rate":
        return "true regret; grey: growth as T^(2/3) from the first point"
    if experiment.chart == "share and true regret":
        return "true regret, on a logarithmic axis; zeros are not drawn"
    if experiment.is_table and "true_reward" not in experiment.place:
        return "perceived regret; true regret cannot be known from this table"
    if single:
        return "perceived regret as dots, true regret as squares"
    return "perceived regret solid, true regret dashed" + crosses


def _method(experiments: Sequence[Experiment], facts: RunFacts) -> list[str]:
    """How the numbers were made, in sentences."""
    took = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in facts.seconds.items())
    seeds = sorted({experiment.seed for experiment in experiments})
    sentences = [
        f"evenhand {facts.version}, seed {', '.join(map(str, seeds))}; all policies "
        "meet the same worlds, contexts and noise in a replication.",
        f"Time, without compiling: {took}.",
        "Perceived regret is the best mean observed reward minus the reward received; true regret "
        "is the best true reward minus that of the chosen arm, without noise.",
    ]
    if any(len(experiment.sweep.values) > 1 for experiment in experiments):
        sentences.insert(
            1,
            "The points of a figure share their random numbers, so curves are smoother than their "
            "bands.",
        )
    if any(experiment.is_table for experiment in experiments):
        sentences.append(
            "In a table, a round draws one row per arm with replacement, and the row's reward is "
            "the observed one; what the reward would be without bias is not known."
        )
    if any(experiment.in_paper and not experiment.is_table for experiment in experiments):
        sentences.append(
            "Coefficients are uniform on [30, 30 + c], as in the authors' code; the appendix says "
            "[0, c]. Published values were read from the figures that the authors published with "
            "their code (means of about 10 seeds; those of GroupFairTopInterval come from an "
            "earlier version of the code, and NaiveFair is not in them)."
        )
    return sentences
