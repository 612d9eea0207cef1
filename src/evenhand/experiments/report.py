"""The report: one HTML file that needs nothing else and no network."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from evenhand.experiments.claims import CLAIMS, HOLDS, PARTLY, Claim, Means, Verdict
from evenhand.experiments.sweep import Sweep
from evenhand.metrics import summarise

if TYPE_CHECKING:
    from evenhand.experiments.paper_run import Figure

READINGS = {
    "AUTHORS_CODE": "as the authors' code does it; crosses are the published curves",
    "PAPER": "as the text and proofs say it",
}

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 68rem; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.7rem; } h2 { margin-top: 2.5rem; border-top: 1px solid #ddd; padding-top: 1rem; }
table { border-collapse: collapse; margin: .5rem 0; font-size: .92rem; }
th, td { text-align: left; padding: .3rem .7rem; border-bottom: 1px solid #e4e4e4;
         vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
.figures { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1rem; }
@media (max-width: 50rem) { .figures { grid-template-columns: 1fr; } }
figure { margin: 0; } figcaption { font-size: .85rem; color: #555; }
figure svg { max-width: 100%; height: auto; }
.yes { color: #00694b; font-weight: 600; } .partly { color: #8a5a00; font-weight: 600; }
.no { color: #a33000; font-weight: 600; } .note { color: #555; font-size: .92rem; }
details { margin: .5rem 0; } summary { cursor: pointer; color: #0060a0; }
"""


class Facts(NamedTuple):
    """About the run itself."""

    rounds: int
    seconds: dict[str, float]
    version: str


def write(
    path: Path,
    sweeps: Sequence[Sweep],
    runs: pd.DataFrame,
    figures: Sequence[Figure],
    facts: Facts,
) -> Path:
    """Write the report to `path`."""
    readings = list(dict.fromkeys(runs["conventions"]))
    verdicts = check_claims(runs)
    body = [
        "<h1>Group fairness in bandits with biased feedback: the synthetic experiments</h1>",
        _introduction(sweeps, readings, facts),
        "<h2 id='claims'>What the paper says, and what the numbers say</h2>",
        _claims(verdicts, readings),
    ]
    for sweep in sweeps:
        body.append(_section(sweep, runs, [f for f in figures if f.sweep == sweep.name]))
    body += ["<h2 id='how'>How this was made</h2>", _method(sweeps, facts)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width'>"
        "<title>Group fairness in bandits with biased feedback, by evenhand</title>"
        f"<style>{STYLE}</style></head>"
        f"<body>{''.join(body)}</body></html>",
        encoding="utf-8",
    )
    return path


def check_claims(runs: pd.DataFrame) -> list[tuple[Claim, dict[str, Verdict]]]:
    """Every claim that these runs can speak to, under each reading."""
    by_reading = {str(name): table for name, table in runs.groupby("conventions", sort=False)}
    found = []
    for claim in CLAIMS:
        verdicts = {
            name: claim.check(Means(table))
            for name, table in by_reading.items()
            if claim.sweep in set(table["sweep"])
        }
        if verdicts:
            found.append((claim, verdicts))
    return found


def _introduction(sweeps: Sequence[Sweep], readings: Sequence[str], facts: Facts) -> str:
    counts = sorted({sweep.replications for sweep in sweeps}, reverse=True)
    replications = " or ".join(str(count) for count in counts)
    told = "; ".join(f"<b>{name}</b>, {READINGS.get(name, '')}" for name in readings)
    return (
        f"<p>{facts.rounds:,} rounds of the sweeps of Schumann, Lang, Mattei and Dickerson (AAMAS "
        f"2022), {replications} replications for every point, under "
        f"{told}. Lines are means over replications, bands their 95 % intervals; regret is per "
        "round.</p>"
    )


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
        link = f"<a href='#{claim.sweep}'>figure</a>"
        rows.append(f"<tr><td>{escape(claim.says)} ({link})</td>{''.join(cells)}</tr>")
    return f"<table><tr><th>claim</th>{head}</tr>{''.join(rows)}</table>"


def _section(sweep: Sweep, runs: pd.DataFrame, figures: Sequence[Figure]) -> str:
    parts = [
        f"<h2 id='{sweep.name}'>{escape(sweep.title)}</h2>",
        f"<p class='note'>In the paper: {escape(sweep.in_paper)}. {escape(sweep.note)}</p>",
    ]
    for reading in dict.fromkeys(figure.conventions for figure in figures):
        drawn = [figure for figure in figures if figure.conventions == reading]
        pictures = "".join(
            f"<figure>{figure.svg}<figcaption>{escape(reading)}: {_caption(figure.name)}"
            "</figcaption></figure>"
            for figure in drawn
        )
        mine = runs[(runs["sweep"] == sweep.name) & (runs["conventions"] == reading)]
        parts.append(f"<div class='figures'>{pictures}</div>{_table(mine, sweep, reading)}")
    return "".join(parts)


def _caption(name: str) -> str:
    crosses = "; crosses: published" if _has_published(name) else ""
    if "-share-" in name:
        return "share of sensitive pulls; dotted: proportional" + crosses
    if name.startswith("rate"):
        return "true regret; grey: growth as T^(2/3) from the first point on"
    return "perceived regret solid, true regret dashed" + crosses


def _has_published(name: str) -> bool:
    return name.endswith("AUTHORS_CODE") and name.split("-")[0] in ("T", "arms", "error", "ratio")


def _table(runs: pd.DataFrame, sweep: Sweep, reading: str) -> str:
    head = f"<tr><th>{escape(sweep.axis)}</th><th>policy</th>"
    columns = ("share", "perceived_regret", "true_regret")
    head += "".join(f"<th>{name.replace('_', ' ')}</th>" for name in columns) + "</tr>"
    tables = {name: summarise(runs, ["x", "policy"], name) for name in columns}
    rows = []
    for i, (x, policy) in enumerate(tables["share"][["x", "policy"]].itertuples(index=False)):
        cells = "".join(
            f"<td class='number'>{_with_reach(tables[name].iloc[i])}</td>" for name in columns
        )
        rows.append(f"<tr><td class='number'>{x:g}</td><td>{escape(policy)}</td>{cells}</tr>")
    return (
        f"<details><summary>the numbers, {escape(reading)}</summary>"
        f"<table>{head}{''.join(rows)}</table></details>"
    )


def _with_reach(row: pd.Series[float]) -> str:
    reach = row["high"] - row["mean"]
    return f"{row['mean']:.3f}" + ("" if pd.isna(reach) else f" &plusmn; {reach:.3f}")


def _method(sweeps: Sequence[Sweep], facts: Facts) -> str:
    took = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in facts.seconds.items())
    seeds = sorted({sweep.seed for sweep in sweeps})
    return (
        f"<p>evenhand {escape(facts.version)}, seed {', '.join(map(str, seeds))}; all policies "
        "meet the same worlds, contexts and noise in a replication. "
        "The points of a sweep share their random numbers, so curves are smoother than their "
        f"bands. Time, compiling aside: {escape(took)}. Perceived regret is the "
        "best mean observed reward less the reward received, true regret the best true reward "
        "less that of the chosen arm, without noise. Coefficients are uniform on [30, 30 + c], as "
        "in the authors' code; the appendix says [0, c]. Published values were read off the "
        "pictures that the authors published with their code (means of about 10 seeds; those of "
        "GroupFairTopInterval come from an earlier version of it, and NaiveFair is not in them)."
        "</p>"
    )
