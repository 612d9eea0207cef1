"""The report: one HTML file that needs nothing else and no network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from evenhand._files import write_whole
from evenhand.experiments._introduction import Facts, introduction, table_in_words, world_in_words
from evenhand.experiments._tables import numbers_table, price_tables
from evenhand.experiments.claims import CLAIMS, HOLDS, PARTLY, REAL_CLAIMS, Claim, Means, Verdict
from evenhand.experiments.model import Experiment
from evenhand.html import drawn, render

if TYPE_CHECKING:
    from evenhand.experiments.run import Figure


def write(
    path: Path,
    experiments: Sequence[Experiment],
    runs: pd.DataFrame,
    figures: Sequence[Figure],
    facts: Facts,
) -> Path:
    """Write the report to `path`."""
    readings = list(dict.fromkeys(runs["conventions"]))
    sections = []
    for experiment in experiments:
        mine = [figure for figure in figures if figure.experiment == experiment.name]
        sections.append(_section(experiment, runs[runs["experiment"] == experiment.name], mine))
    page = render(
        "report.html",
        title=facts.title,
        readings=readings,
        introduction=introduction(experiments, readings, facts),
        claims=_claims(check_claims(experiments, runs), readings),
        sections=sections,
        method=_method(experiments, facts),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, page)
    return path


def check_claims(
    experiments: Sequence[Experiment], runs: pd.DataFrame
) -> list[tuple[Claim, dict[str, Verdict]]]:
    """Every claim of the paper that these runs can speak to, under each reading."""
    of_paper = {one.name for one in experiments if one.in_paper}
    by_reading = {str(name): table for name, table in runs.groupby("conventions", sort=False)}
    found = []
    for claim in (*CLAIMS, *REAL_CLAIMS):
        verdicts = {
            name: verdict
            for name, table in by_reading.items()
            if claim.experiment in of_paper & set(table["experiment"])
            and (verdict := _checked(claim, table)) is not None
        }
        if verdicts:
            found.append((claim, verdicts))
    return found


def _checked(claim: Claim, runs: pd.DataFrame) -> Verdict | None:
    """Nothing where a copy of the paper's file lacks the policies that the claim speaks of."""
    try:
        return claim.check(Means(runs))
    except KeyError:
        return None


def _claims(
    verdicts: list[tuple[Claim, dict[str, Verdict]]], readings: Sequence[str]
) -> list[dict[str, Any]]:
    """A row per claim, with its verdict under each reading, or None where it was not run."""
    kinds = {HOLDS: "yes", PARTLY: "partly"}
    return [
        {
            "says": claim.says,
            "experiment": claim.experiment,
            "verdicts": [
                {**found._asdict(), "kind": kinds.get(found.verdict, "no")} if found else None
                for found in map(by_reading.get, readings)
            ],
        }
        for claim, by_reading in verdicts
    ]


def _section(
    experiment: Experiment, runs: pd.DataFrame, figures: Sequence[Figure]
) -> dict[str, Any]:
    """What the report says about one experiment."""
    source = f"In the paper: {experiment.in_paper}. " if experiment.in_paper else ""
    place = (table_in_words if experiment.is_table else world_in_words)(experiment)
    readings = []
    for reading in dict.fromkeys(runs["conventions"]):
        mine = runs[runs["conventions"] == reading]
        pictures = [
            (drawn(figure.svg), f"{reading}: {_caption(figure, experiment)}")
            for figure in figures
            if figure.conventions == reading
        ]
        readings.append(
            {
                "name": reading,
                "figures": pictures,
                "prices": price_tables(mine, experiment, reading),
                "numbers": numbers_table(mine, experiment),
            }
        )
    return {
        "name": experiment.name,
        "title": experiment.title,
        "notes": [words for words in (source + experiment.note, place.words) if words],
        "learned": place.learned,
        "wide": bool(experiment.panels),
        "readings": readings,
    }


def _caption(figure: Figure, experiment: Experiment) -> str:
    single = len(experiment.sweep.values) == 1
    crosses = "; crosses: published" if figure.published and not single else ""
    if figure.shows == "share":
        return "share of sensitive pulls; dotted: proportional" + crosses
    if experiment.chart == "rate":
        return "true regret; grey: growth as T^(2/3) from the first point on"
    if experiment.is_table and "true_reward" not in experiment.place:
        return "perceived regret; true regret cannot be known from this table"
    if single:
        return "perceived regret as dots, true regret as squares"
    return "perceived regret solid, true regret dashed" + crosses


def _method(experiments: Sequence[Experiment], facts: Facts) -> list[str]:
    """How the numbers were made, in sentences."""
    took = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in facts.seconds.items())
    seeds = sorted({one.seed for one in experiments})
    sentences = [
        f"evenhand {facts.version}, seed {', '.join(map(str, seeds))}; all policies "
        "meet the same worlds, contexts and noise in a replication.",
        f"Time, compiling aside: {took}.",
        "Perceived regret is the best mean observed reward less the reward received, true regret "
        "the best true reward less that of the chosen arm, without noise.",
    ]
    if any(len(one.sweep.values) > 1 for one in experiments):
        sentences.insert(
            1,
            "The points of a figure share their random numbers, so curves are smoother than their "
            "bands.",
        )
    if any(one.is_table for one in experiments):
        sentences.append(
            "In a table, a round draws one row per arm with replacement, and the row's reward is "
            "the observed one; what it would be without bias is not known."
        )
    if any(one.in_paper and not one.is_table for one in experiments):
        sentences.append(
            "Coefficients are uniform on [30, 30 + c], as in the authors' code; the appendix says "
            "[0, c]. Published values were read off the pictures that the authors published with "
            "their code (means of about 10 seeds; those of GroupFairTopInterval come from an "
            "earlier version of it, and NaiveFair is not in them)."
        )
    return sentences
