"""The figures as a page of tables. Nothing is measured here."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from benchmarks.peers.harness import STEPS_OF_A_YARDSTICK

Row = dict[str, Any]

AUTHORS = 4900.0  # microseconds a round of the authors' code; measured elsewhere, cited as given
FAIR = "GroupFairTopInterval"
DISTURBED = 1.2  # times the quickest yardstick

UNITS = f"""\
Times are microseconds a round, the best of several repeats: whatever else a machine does only adds
to them. In brackets is the same in *yardsticks*: the median over repeats of the time divided by
what {STEPS_OF_A_YARDSTICK} steps of a plain Python loop took just before and after, in the same
process. Compare microseconds within this page, and yardsticks between pages. A star marks
disturbed figures: even around the best repeat a yardstick took over {DISTURBED} times as long as
at its quickest, so the microseconds are too high."""

COMPARABLE = """\
The rounds are alike: ten arms, five features, one choice and one update through each library's
public calls, 200 rounds to warm up, inputs made beforehand in the form that suits each library
best, one thread, the same clock and the same Python. The policies are not quite alike. Only Vowpal
Wabbit and evenhand take a context per arm; the other libraries are given one context a round for
all arms, which is less to read and less to check. Vowpal Wabbit fits by gradient steps, not by
least squares, and its text is made off the clock. evenhand's figure includes input checks, the
propensity and the scores of all arms that a decision carries, and random tie-breaking; the others
return an arm, or probabilities. Nearly all of these libraries are also made for batches, in which
they do better per row; here every decision is learned from before the next, as in a live service.
And nothing here is about models that are not linear, or about millions of features, for which some
of them are made.

*Learned* only shows that each of them does learn in these rounds: 0 is what uniform choice earns,
and 1 what the best arm earns in every round. It is not a ranking: contexts and numbers of rounds
differ, and settings were chosen with unequal care, after looking at it. evenhand and river are
told the true noise. The other LinUCBs were tried with alpha 0.1 and 1.0, and 1.0 was kept for all
because mabwiser learned little with 0.1 (0.25 against 0.88; contextualbandits 0.97 against 0.87,
obp 0.96 against 0.95). For Vowpal Wabbit nine sets of RegCB options were tried and learned between
0.03 and 0.76, the latter when arms were drawn from its probabilities; of those that play the most
probable arm, the best was kept (0.56). Its squarecb learned more (0.92) at about the same speed,
but is further from a UCB. Of three ways to hand it a round, the quickest was kept: parsed once, 45
to 65 microseconds in those trials, against 77 to 122 with text read twice or made on the clock.

The authors' code has no live interface. It is compared only in simulation, by a figure measured
on another machine, so that ratio is an order of magnitude and not a measurement of this run."""

LATER = """\
Rounds just after t = 1,000 and just after t = 100,000; the policies got there by learning from
uniformly chosen arms. We promise a ratio near 1: the cost of a round does not grow with t. Where
n d is not small compared with t = 1,000, most arms have not yet seen all directions at the early
round and are solved in the directions seen, one by one, which costs more than the later solve. So a
ratio below 1 there compares two states of the regressions, not two lengths of history."""


class Goal(NamedTuple):
    """Something we want to hold, what was measured, and whether it does."""

    what: str
    wanted: str
    measured: str
    met: bool


def page(results: Row) -> str:
    """The whole page, in Markdown."""
    results = with_stars(results)
    sections = [
        "# Benchmarks\n\n"
        f"Made on {results['date']} by `{results['command']}`. {_machine(results['machine'])}\n\n"
        + UNITS,
        "## In short\n\n" + _goals(results),
        "## A simulated round\n\nRounds 1 to 1,000 of a replication on one core, including "
        "the world.\n\n" + _grids(results["simulated"]) + _through_simulate(results),
        "## Early and late\n\n" + LATER + "\n\n" + _early_and_late(results["ages"]),
        f"## One long run\n\n{FAIR} at n = 10, d = 2, in a simulation of its own choices: the "
        "5,000 rounds after t.\n\n"
        + _table(["t", "a round"], [[f"{r['t']:,}", cell(r)] for r in results["long"]]),
        "## Settings that cost\n\nLive select + update at n = 10, d = 5, t = 1,000.\n\n"
        + _table(["policy", "a round"], [[r["name"], cell(r)] for r in results["settings"]]),
    ]
    if results["others"]:
        sections.append(
            "## Beside other libraries\n\nA disjoint linear UCB with n = 10 and d = 5: one choice "
            "and one update. *Times* is the least that the figures can mean: the smaller of the "
            "ratios in microseconds and in yardsticks, to the slower of our two runs.\n\n"
            + _others(results["others"])
            + "\n\n"
            + COMPARABLE
        )
    sections.append("## All figures\n\n" + _all(results))
    return "\n\n".join(section.strip() for section in sections) + "\n"


def quietest(rows: Iterable[Row]) -> float:
    """The quickest yardstick of all."""
    return min((row["yardstick"] for row in rows if "yardstick" in row), default=math.inf)


def is_disturbed(row: Row, quiet: float) -> bool:
    return bool(row.get("yardstick", 0.0) > DISTURBED * quiet)


def with_stars(results: Row) -> Row:
    """The same with a star on every row that was disturbed."""
    parts = {key: rows for key, rows in results.items() if isinstance(rows, list)}
    quiet = quietest(row for rows in parts.values() for row in rows)
    starred = {
        key: [{**row, "star": "*" if is_disturbed(row, quiet) else ""} for row in rows]
        for key, rows in parts.items()
    }
    return {**results, **starred}


def cell(figures: Row) -> str:
    """Microseconds, and yardsticks in brackets; a star if they were disturbed."""
    star = figures.get("star", "")
    return f"{short(figures['best'])}{star} ({short(figures['yardsticks'])})"


def short(value: float) -> str:
    """Three digits that matter: 0.745, 12.3, 1,230."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _machine(facts: Row) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items()) + "."


def _find(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    return [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]


def _grids(rows: list[Row]) -> str:
    """For every n, policies by d."""
    parts = []
    features = sorted({row["d"] for row in rows})
    names = list(dict.fromkeys(row["policy"] for row in rows))
    for n in sorted({row["n"] for row in rows}):
        lines = []
        for name in names:
            by_features = [_find(rows, policy=name, n=n, d=d) for d in features]
            lines.append([name, *(cell(matches[0]) if matches else "" for matches in by_features)])
        parts.append(_table([f"n = {n:,}", *(f"d = {d}" for d in features)], lines))
    return "\n\n".join(parts)


def _through_simulate(results: Row) -> str:
    figures = results["through_simulate"][0]
    return (
        f"\n\nThrough `evenhand.simulate` with one worker, {FAIR} at n = 10, d = 2, 200 "
        f"replications, including making policies and tables: {cell(figures)}."
    )


def _early_and_late(rows: list[Row]) -> str:
    lines = []
    for row in _find(rows, kind="simulated", t="early"):
        key = {name: row[name] for name in ("policy", "n", "d")}
        line = [row["policy"], f"{row['n']:,}", str(row["d"])]
        for kind in ("simulated", "live"):
            early, late = (_find(rows, kind=kind, t=t, **key)[0] for t in ("early", "late"))
            line += [cell(early), cell(late), f"{late['best'] / early['best']:.2f}"]
        lines.append(line)
    head = ["policy", "n", "d"]
    for kind in ("simulated", "live"):
        head += [f"{kind}, 1,000", f"{kind}, 100,000", "ratio"]
    return _table(head, lines)


def _others(rows: list[Row]) -> str:
    lines, notes = [], []
    for row in rows:
        name = row["name"] + (f" ({row['when']})" if "when" in row else "")
        notes.append(f"- {row['name']}: {row['what']}")
        if "reason" in row:
            lines.append([name, row.get("version", ""), row["reason"], "", "", ""])
            continue
        times = ratio(row, rows, "evenhand TopInterval")
        figures = [cell(row), short(row["median"]), f"{row['learned']:.2f}"]
        figures.append("" if "when" in row or times is None else _times(times))
        lines.append([name, f"{row['version']}, NumPy {row['numpy']}", *figures])
    head = ["library", "version", "a round", "median", "learned", "times evenhand TopInterval"]
    return _table(head, lines) + "\n\n" + "\n".join(dict.fromkeys(notes))


def _times(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio < 100 else f"{ratio:.0f}"


def ratio(other: Row, rows: list[Row], name: str) -> float | None:
    """How many times as long `other` takes as we do: the least that the figures can mean.

    They come from processes that ran one after the other. So the smaller one of the ratios in
    microseconds and in yardsticks, and our slower figure of the two, before and after the others.
    """
    ours = [row for row in _find(rows, name=name) if "best" in row]
    keys = ("best", "yardsticks")
    return min((other[key] / row[key] for key in keys for row in ours), default=None)


def _goals(results: Row) -> str:
    lines = [
        [goal.what, goal.wanted, goal.measured, "yes" if goal.met else "**no**"]
        for goal in goals(results)
    ]
    return _table(["what", "wanted", "measured", "met"], lines)


def goals(results: Row) -> list[Goal]:
    """What we want of speed, beside what was measured; goals without figures are left out."""
    made: list[Goal] = []

    def at_most(what: str, limit: float, rows: list[Row]) -> None:
        if rows:
            worst = max(rows, key=lambda row: row["best"])
            measured = short(worst["best"]) + worst.get("star", "")
            made.append(Goal(what, f"at most {limit:g}", measured, worst["best"] <= limit))

    simulated = _find(results["simulated"], policy=FAIR, n=10, d=2)
    at_most(f"simulated {FAIR}, n = 10, d = 2, a round", 1.1, simulated)
    if simulated:
        times = AUTHORS / simulated[0]["cpu"]
        measured = f"{times:,.0f} times (CPU {short(simulated[0]['cpu'])})"
        what = "less CPU than the authors' code, 4.9 ms a round (cited)"
        made.append(Goal(what, "at least 4,000 times", measured, times >= 4000))
    ends = [row for t in (1_000, 100_000) for row in _find(results["long"], t=t)]
    if len(ends) == 2:
        growth = ends[1]["best"] / ends[0]["best"]
        what = "the same from t = 1,000 to t = 100,000"
        made.append(Goal(what, "at most 1.1 times", f"{growth:.2f} times", growth <= 1.1))
    for n, limit, slowest in ((10, 7.0, 15.0), (1000, 40.0, 150.0)):
        for t, when in _WHEN.items():
            live = _find(results["ages"], kind="live", t=t, n=n, d=5)
            where = f"n = {n:,}, d = 5, {when}"
            at_most(f"live select + update, {FAIR}, {where}", limit, _find(live, policy=FAIR))
            at_most(f"the slowest policy, {where}", slowest, live)
    others = [row for row in results["others"] if "best" in row and "when" not in row]
    for name in ("evenhand TopInterval", f"evenhand {FAIR}"):
        times = {row["name"]: ratio(row, results["others"], name) for row in others}
        known = {other: value for other, value in times.items() if value is not None}
        if known:
            nearest = min(known, key=lambda other: known[other])
            what = f"{name}, n = 10, d = 5, faster than every library beside it"
            measured = f"{_times(known[nearest])} times ({nearest})"
            made.append(Goal(what, "at least 8 times", measured, known[nearest] >= 8))
    return made


def _all(results: Row) -> str:
    """Every figure with its median and CPU time, for those who look closer."""
    named: list[tuple[Callable[[Row], str], list[Row]]] = [
        (lambda r: f"simulated, rounds 1 to 1,000: {_where(r)}", results["simulated"]),
        (lambda _: f"through simulate: {FAIR}, 10, 2", results["through_simulate"]),
        (lambda r: f"{r['kind']}, {_WHEN[r['t']]}: {_where(r)}", results["ages"]),
        (lambda r: f"long run, t = {r['t']:,}", results["long"]),
        (lambda r: f"settings: {r['name']}", results["settings"]),
        (lambda r: f"library: {r['name']}", [r for r in results["others"] if "best" in r]),
    ]
    lines = []
    for name, rows in named:
        for row in rows:
            figures = (row[key] for key in ("best", "median", "cpu", "yardsticks"))
            counts = [f"{row['rounds']:,}", str(row["repeats"])]
            shown = [short(value) for value in figures]
            lines.append([name(row) + row.get("star", ""), *shown, *counts])
    head = ["what (policy, n, d)", "best", "median", "CPU", "yardsticks", "rounds", "repeats"]
    return _table(head, lines)


_WHEN = {"early": "t = 1,000", "late": "t = 100,000"}


def _where(row: Row) -> str:
    return f"{row['policy']}, {row['n']:,}, {row['d']}"
