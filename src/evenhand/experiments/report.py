"""The report: one HTML file that needs nothing else and no network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from evenhand.experiments._introduction import Facts, introduction, table_in_words, world_in_words
from evenhand.experiments.claims import (
    CLAIMS,
    HOLDS,
    PARTLY,
    REAL_CLAIMS,
    TOP,
    Claim,
    Means,
    Verdict,
)
from evenhand.experiments.model import HORIZON, Experiment
from evenhand.html import page
from evenhand.metrics import prices, summarise
from evenhand.prose import in_digits

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
    body = [f"<h1>{escape(facts.title)}</h1>", introduction(experiments, readings, facts)]
    verdicts = check_claims(experiments, runs)
    if verdicts:
        body += [
            "<h2 id='claims'>What the paper says, and what the numbers say</h2>",
            _claims(verdicts, readings),
        ]
    for experiment in experiments:
        mine = [figure for figure in figures if figure.experiment == experiment.name]
        body.append(_section(experiment, runs[runs["experiment"] == experiment.name], mine))
    body += ["<h2 id='how'>How this was made</h2>", _method(experiments, facts)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(facts.title, "".join(body)), encoding="utf-8")
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


def _claims(verdicts: list[tuple[Claim, dict[str, Verdict]]], readings: Sequence[str]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in readings)
    rows = []
    for claim, by_reading in verdicts:
        cells = []
        for name in readings:
            verdict = by_reading.get(name)
            if verdict is None:
                cells.append("<td class='note'>not run</td>")
                continue
            kind = {HOLDS: "yes", PARTLY: "partly"}.get(verdict.verdict, "no")
            cells.append(
                f"<td><span class='{kind}'>{escape(verdict.verdict)}</span>: "
                f"{escape(verdict.numbers)}</td>"
            )
        link = f"<a href='#{claim.experiment}'>figure</a>"
        rows.append(f"<tr><td>{escape(claim.says)} ({link})</td>{''.join(cells)}</tr>")
    return f"<table><tr><th>claim</th>{head}</tr>{''.join(rows)}</table>"


def _section(experiment: Experiment, runs: pd.DataFrame, figures: Sequence[Figure]) -> str:
    source = f"In the paper: {escape(experiment.in_paper)}. " if experiment.in_paper else ""
    parts = [
        f"<h2 id='{escape(experiment.name)}'>{escape(experiment.title)}</h2>",
        f"<p class='note'>{source}{escape(experiment.note)}</p>",
    ]
    parts.append((table_in_words if experiment.is_table else world_in_words)(experiment))
    wide = " wide" if experiment.panels else ""
    for reading in dict.fromkeys(runs["conventions"]):
        drawn = [figure for figure in figures if figure.conventions == reading]
        pictures = "".join(
            f"<figure>{figure.svg}<figcaption>{escape(reading)}: {_caption(figure, experiment)}"
            "</figcaption></figure>"
            for figure in drawn
        )
        mine = runs[runs["conventions"] == reading]
        parts.append(f"<div class='figures{wide}'>{pictures}</div>")
        if _has_prices(experiment, mine):
            parts.append(_prices(mine, experiment, reading))
        parts.append(_table(mine, experiment, reading))
    return "".join(parts)


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


def _has_prices(experiment: Experiment, runs: pd.DataFrame) -> bool:
    """Whether there is a share to gain over TopInterval, and more than one run to tell it from."""
    compared = TOP in set(runs["policy"]) and runs["policy"].nunique() > 1
    repeated = runs["replication"].nunique() > 1
    return experiment.is_table and compared and repeated and bool(runs["share"].notna().any())


def _prices(runs: pd.DataFrame, experiment: Experiment, reading: str) -> str:
    """The price of fairness at the last x, by panel."""
    rows: list[str] = []
    last = runs[runs["x"] == runs["x"].max()]
    for panel, mine in last.groupby("panel", sort=False):
        for policy, share, share_reach, regret, regret_reach, price in prices(mine).to_numpy():
            rows.append(
                f"<tr><td>{escape(str(panel))}</td><td>{escape(policy)}</td>"
                f"<td class='number'>{100 * share:+.1f} &plusmn; {100 * share_reach:.1f}</td>"
                f"<td class='number'>{_plain(regret, sign=True)} &plusmn; "
                f"{_plain(regret_reach)}</td>"
                f"<td class='number'>{_price(price)}</td></tr>"
            )
    head = (
        "<tr><th></th><th>policy</th><th>points of share gained</th>"
        "<th>perceived regret paid</th><th>price of a point</th></tr>"
    )
    each = last["policy"].nunique() - 1
    more = (
        f"<details><summary>the same for the other panels</summary><table>{head}"
        f"{''.join(rows[each:])}</table></details>"
        if len(rows) > each
        else ""
    )
    return (
        f"<p class='note'>The price of fairness at {escape(_at_last(experiment))}, "
        f"{escape(reading)}: "
        "against TopInterval in the same rounds, with 95 % intervals. There is no price where no "
        f"share was gained.</p><table>{head}{''.join(rows[:each])}</table>{more}"
    )


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


def _table(runs: pd.DataFrame, experiment: Experiment, reading: str) -> str:
    columns = [
        name for name in ("share", "perceived_regret", "true_regret") if runs[name].notna().any()
    ]
    keys = ["panel", "x", "policy"] if experiment.panels else ["x", "policy"]
    names = {"panel": "", "x": escape(experiment.axis), "policy": "policy"}
    head = "".join(f"<th>{names[key]}</th>" for key in keys)
    head += "".join(f"<th>{name.replace('_', ' ')}</th>" for name in columns)
    tables = {name: summarise(runs, keys, name) for name in columns}
    rows = []
    for i, key in enumerate(tables[columns[0]][keys].itertuples(index=False)):
        cells = "".join(
            f"<td>{escape(one)}</td>"
            if isinstance(one, str)
            else f"<td class='number'>{in_digits(one)}</td>"
            for one in key
        )
        cells += "".join(
            f"<td class='number'>{_with_reach(tables[name].iloc[i])}</td>" for name in columns
        )
        rows.append(f"<tr>{cells}</tr>")
    return (
        f"<details><summary>the numbers, {escape(reading)}</summary>"
        f"<table><tr>{head}</tr>{''.join(rows)}</table></details>"
    )


def _with_reach(row: pd.Series[float]) -> str:
    """A mean with as many digits as its interval is worth, and at least three behind the point."""
    reach = row["high"] - row["mean"]
    size = abs(row["mean"]) if pd.isna(reach) or not reach > 0 else reach
    small = -math.floor(math.log10(size)) + 1 if 0.0 < size < 0.01 else 3
    digits = 0 if abs(row["mean"]) >= 1000 else min(small, 15)
    text = f"{row['mean']:,.{digits}f}"
    return text + ("" if pd.isna(reach) else f" &plusmn; {reach:,.{digits}f}")


def _method(experiments: Sequence[Experiment], facts: Facts) -> str:
    took = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in facts.seconds.items())
    seeds = sorted({one.seed for one in experiments})
    sentences = [
        f"evenhand {escape(facts.version)}, seed {', '.join(map(str, seeds))}; all policies "
        "meet the same worlds, contexts and noise in a replication.",
        f"Time, compiling aside: {escape(took)}.",
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
    return f"<p>{' '.join(sentences)}</p>"
