"""What pages show: tables, sentences and pictures from the rows of the ledger."""

from __future__ import annotations

from typing import Any

import pandas as pd

from evenhand import charts
from evenhand._html.tables import MISSING, Cell, Table, digits, of_frame, of_rows
from evenhand._membership import UNCERTAIN
from evenhand.policies import NaiveFair, UniformRandom
from evenhand.service._bodies import DecisionView
from evenhand.service._ledger.fold import LedgerState
from evenhand.service._policy_calls import bias_of as bias_rows
from evenhand.service.config import Config

POINTS = 60  # of a picture of time
LEVEL = 0.9
FAR = 0.05  # shares at least this far from proportional are mentioned


def percent(value: float | None) -> str:
    """A share as people read it."""
    return MISSING if value is None else f"{100 * value:.1f} %"


def share(value: float | None) -> Cell:
    """The same in a table."""
    return Cell(percent(value), number=True)


def shares_table(shares: list[dict[str, Any]], waiting: list[dict[str, Any]]) -> Table:
    """By group: choices, rewards, missing rewards and the cost of exploring."""
    waits = {row["group"]: row["waiting"] for row in waiting}
    rows = [
        [
            row["group"], row["decisions"], share(row["share"]),
            share(row["proportional_share"]), waits.get(row["group"], 0), row["rewards"],
            row["mean_reward"], share(row["missing_rate"]), row["late"], row["overridden"],
            row["exploration_cost"],
        ]
        for row in shares
    ]  # fmt: skip
    names = ["group", "decisions", "share", "proportional share", "waiting", "rewards",
             "mean reward", "missing rewards", "late", "overridden",
             "cost of exploring per decision"]  # fmt: skip
    return of_rows(names, rows)


def shares_words(
    shares: list[dict[str, Any]], waiting: list[dict[str, Any]], state: LedgerState
) -> list[str]:
    """What the table says, in sentences."""
    decided = round(sum(row["decisions"] for row in shares))
    if not decided:
        return ["No decision has been made yet."]
    words = [
        f"{decided:,} decisions were made, and {sum(r['waiting'] for r in waiting):,} of them wait "
        "for their reward."
    ]
    listed = {row["group"] for row in shares}
    likely = sum(row["waiting"] for row in waiting if row["group"] not in listed)
    if likely:
        words.append(
            f"{likely:,} of those that wait have a group that is known only by probability; the "
            "table counts them when their reward comes."
        )
    for row in shares:
        apart = 100 * (row["share"] - row["proportional_share"])
        compared = "in proportion to its candidates"
        if abs(apart) >= 0.5:
            direction = "more" if apart > 0 else "less"
            compared = f"{abs(apart):.1f} points {direction} than its part of the candidates"
        words.append(
            f"Group {row['group']} got {percent(row['share'])} of the choices, {compared}."
        )
    far = max(abs(row["share"] - row["proportional_share"]) for row in shares) >= FAR
    if far and not isinstance(state.policy, (UniformRandom, NaiveFair)):
        words.append(
            f"{type(state.policy).__name__} has no quota: it compares candidates by their features "
            f"and by what it has learned from {state.learned:,} rewards. Shares differ where the "
            "candidates of the groups differ in their features, and by chance while little is "
            "known: the page Bias has the intervals. A share alone does not show unequal treatment."
        )
    rates = [row for row in shares if row["missing_rate"] is not None]
    if len(rates) > 1:
        rates.sort(key=lambda row: row["missing_rate"])
        low, high = rates[0], rates[-1]
        if high["missing_rate"] - low["missing_rate"] >= 0.05:
            words.append(
                f"Rewards of group {high['group']} are missing more often "
                f"({percent(high['missing_rate'])}) than those of group {low['group']} "
                f"({percent(low['missing_rate'])}): what is learned rests on those who answer."
            )
    return words


def shares_svg(rows: list[dict[str, Any]], rounds: list[tuple[int, str, float]]) -> str:
    """Shares of the choices beside the groups' parts of the candidates.

    Over time or, in the first hours, over rounds: `rounds` are the latest, with the chosen groups.
    """
    frame = pd.DataFrame(rows)
    if not len(frame) or not frame["decided"].sum():
        return '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"></svg>'
    table = _by_time(frame) if frame["hour"].nunique() > 3 else _by_round(frame, rounds)
    return charts.to_svg(charts.shares_over_time(table))


def _by_time(frame: pd.DataFrame) -> pd.DataFrame:
    first, last = int(frame["hour"].min()), int(frame["hour"].max())
    width = max((last - first) // POINTS + 1, 1)
    frame = frame.assign(time=(frame["hour"] - first) // width * width + first)
    sums = frame.groupby(["time", "group"], as_index=False)[["decided", "expected"]].sum()
    totals = sums.groupby("time")["decided"].transform("sum")
    sums, totals = sums[totals > 0], totals[totals > 0]
    sums = sums.assign(
        chosen=sums["decided"] / totals,
        proportional=sums["expected"] / totals,
        at=pd.to_datetime(sums["time"] * 3600, unit="s"),
    )
    return sums.melt(["at", "group"], ["chosen", "proportional"], "kind", "share")


def _by_round(frame: pd.DataFrame, rounds: list[tuple[int, str, float]]) -> pd.DataFrame:
    """The latest rounds in up to 20 parts; the proportional share is that of all of them."""
    sums = frame.groupby("group")[["decided", "expected"]].sum()
    proportional = sums["expected"] / sums["decided"].sum()
    table = pd.DataFrame(rounds, columns=["round", "group", "part"])
    first, last = int(table["round"].min()), int(table["round"].max())
    width = max((last - first) // 20 + 1, 1)
    table["at"] = (table["round"] - first) // width * width + first
    listed = []
    for at, piece in table.groupby("at"):
        parts = piece.groupby("group")["part"].sum() / piece["part"].sum()
        for group in proportional.index:
            listed.append((at, group, float(parts.get(group, 0.0)), "chosen"))
    chosen = pd.DataFrame(listed, columns=["at", "group", "share", "kind"])
    even = chosen.assign(share=chosen["group"].map(proportional), kind="proportional")
    return pd.concat([chosen, even], ignore_index=True)


def bias_of(state: LedgerState) -> dict[str, Any]:
    """The report of the bias as a page shows it."""
    report = bias_rows(state, LEVEL)
    frame = pd.DataFrame(report["rows"])
    known = frame[frame["estimate"].notna() & (frame["why"] != "the reference")]
    columns = [c for c in ("group", "feature", "estimate", "low", "high") if c in frame]
    unknown = frame[frame["estimate"].isna()] if len(frame) else frame
    lacks = []
    if "why" in unknown:
        reasons = [str(words) for words in unknown["why"]]
        for words in dict.fromkeys(reasons):
            if words and words != "the reference":
                lacks.append(f"{reasons.count(words)} of {len(frame)} rows: {words}")
    table = of_frame(known[columns], keys=2) if len(known) else None
    return {"words": report["words"], "table": table, "lacks": lacks,
            "level": f"{100 * LEVEL:.0f} %"}  # fmt: skip


def comparison(then: LedgerState, now: LedgerState) -> Table:
    """The bias that two versions have learned, side by side."""
    # By group and feature: a group may be the reference in one of them only.
    listed = [
        {(row["group"], row["feature"]): row for row in bias_rows(state, LEVEL)["rows"]}
        for state in (then, now)
    ]
    rows = [[*key, *(_estimate(table.get(key)) for table in listed)] for key in listed[1]]
    names = ["group", "feature", f"version {then.version}", f"version {now.version}"]
    return of_rows(names, rows, keys=2)


def _estimate(row: dict[str, Any] | None) -> Cell:
    """An estimate with its interval."""
    if row is None or row["estimate"] is None:
        return Cell("not identified", number=True)
    if row.get("why") == "the reference":
        return Cell("the reference", number=True)
    ends = [row[name] for name in ("estimate", "low", "high")]
    words = [MISSING if end is None else digits(float(end)) for end in ends]
    return Cell(f"{words[0]} ({words[1]} to {words[2]})", number=True)


def bias_svg(state: LedgerState) -> str:
    """The picture of the bias."""
    report: Any = state.policy.bias(level=LEVEL, feature_names=state.features)
    return charts.to_svg(report.chart(title=""))


def scores_table(view: DecisionView) -> Table:
    """Every candidate's estimate, correction and width."""
    scores = view.candidates
    rows = [
        [
            scores.arm[k], scores.group[k], "chosen" if scores.arm[k] == view.policy_arm else "",
            scores.estimate[k], scores.correction[k],
            scores.estimate[k] + scores.correction[k],
            scores.width[k] if scores.known[k] else "not known", share(scores.propensity[k]),
        ]
        for k in range(len(scores.arm))
    ]  # fmt: skip
    names = ["candidate", "group", "by the policy", "estimate", "correction", "corrected",
             "width", "probability"]  # fmt: skip
    return of_rows(names, rows)


def reviewers_table(people: list[dict[str, Any]]) -> Table | None:
    """How often reviewers change anything, and how long they look."""
    if not people:
        return None
    rows = [
        [row["reviewer"], row["reviewed"], share(row["changed"]), round(row["median_seconds"])]
        for row in people
    ]
    return of_rows(["reviewer", "reviewed", "changed", "median seconds"], rows)


def card(config: Config, state: LedgerState, decider: LedgerState) -> list[tuple[str, str]]:
    """What the model is, as pairs of a name and a description."""
    settings = ", ".join(f"{name} = {value}" for name, value in config.settings.items())
    waits = "as they arrive" if config.learn == "on arrival" else "after the same wait for all"
    shown = [f"{f.name} ({f.allowed}{', ' + f.unit if f.unit else ''})" for f in config.features]
    return [
        ("policy", type(state.policy).__name__),
        ("settings", settings or "the defaults"),
        ("groups", _groups_in_words(state)),
        ("features", "; ".join(shown)),
        ("assumption", "the true averages of the groups are equal at the same features; feedback "
                       "alone cannot check it"),
        ("rewards learned", f"{state.learned:,}, {waits}"),
        ("decisions", f"{state.round:,}"),
        ("newest version", f"{state.version:,}"),
        ("deciding version", f"{decider.version:,}"),
    ]  # fmt: skip


def group_names(state: LedgerState) -> list[str]:
    """The groups that decisions can be searched by."""
    if state.given is not None:
        return [*state.given.names, UNCERTAIN]
    return sorted({arm.group for arm in state.arms})


def _groups_in_words(state: LedgerState) -> str:
    """The groups of the arms, or the levels of the attributes that candidates bring."""
    if state.given is not None:
        attributes = state.given.groups.attributes
        levels = [f"{name} ({', '.join(listed)})" for name, listed in attributes]
        return f"{', '.join(levels)}; given with each candidate"
    sizes: dict[str, int] = {}
    for arm in state.arms:
        sizes[arm.group] = sizes.get(arm.group, 0) + (not arm.retired)
    return ", ".join(f"{name} with {number} arms" for name, number in sizes.items())
