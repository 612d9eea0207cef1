"""Impact ratios in an audit: sentences for the summary, and the tables of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from evenhand._html.tables import Table, of_frame
from evenhand._prose import quoted

if TYPE_CHECKING:
    from evenhand.audit._report.result import Audit

NO_ADVICE = (
    "Impact ratios compare plain rates, with no feature held constant. The highest rate is picked "
    "from the data, so ratios below 1 are to be expected; the tests are of one comparison each. "
    "The tables are numbers and no legal advice."
)
REFERENCE = "reference_"


def impact_sentences(audit: Audit) -> list[str]:
    """The smallest impact ratio of every group column and of the cells, and the tests of it."""
    tables = audit.impact.groupby("attribute", sort=False)
    return [_sentence(audit, str(name), table) for name, table in tables]


def rate_name(audit: Audit) -> str:
    """What is compared: who was selected, or whose score is beyond the median."""
    if audit.facts.binary:
        return "selection rate"
    side = "below" if audit.facts.settings.unfavourable else "above"
    return f"share {side} the median {quoted(audit.facts.columns.reward)}"


def _sentence(audit: Audit, attribute: str, table: pd.DataFrame) -> str:
    by, rate = f"By {quoted(attribute)}", rate_name(audit)
    highest = table[table["highest"]].iloc[0]
    compared = table[~table["highest"] & table["ratio"].notna()]
    if not highest["rate"] > 0.0 or compared.empty:
        return f"{by} there is no impact ratio: the highest {rate} is {_percent(highest['rate'])}."
    large = compared[~compared["small"]]
    candidates = large if len(large) else compared
    if (compared["ratio"] == 1.0).all():
        return f"{by} all categories have the same {rate}, {_percent(highest['rate'])}."
    lowest = candidates.iloc[int(candidates["ratio"].argmin())]
    few = int(compared["small"].sum()) if len(large) else 0
    rest = f" ({few} with less than 2 % of the data excluded)" if few else ""
    return (
        f"{by} the lowest {rate}{rest} is that of {quoted(lowest['category'])}, "
        f"{_percent(lowest['rate'])} against {_percent(highest['rate'])} for "
        f"{quoted(highest['category'])}: an impact ratio of {lowest['ratio']:.3f}, "
        f"{100 * audit.bias.level:.6g} % interval {lowest['low']:.3f} to {lowest['high']:.3f}"
        f"{', below four fifths' if lowest['below_four_fifths'] else ''}; {_tests(audit, lowest)}."
    )


def _tests(audit: Audit, row: pd.Series[Any]) -> str:
    apart = f"{abs(row['deviations']):.1f} standard deviations"
    if pd.isna(row["fisher_p"]):
        more = "more" if row["beyond_two_deviations"] else "not more"
        which = "with weights" if audit.facts.columns.cluster is None else "that belong together"
        return (
            f"the difference is {apart}, {more} than two; there is no exact test for rows {which}"
        )
    finds = "finds" if row["fisher_p"] < 1.0 - audit.bias.level else "does not find"
    p = f"= {row['fisher_p']:.2g}" if row["fisher_p"] >= 1e-6 else "< 0.000001"
    return f"Fisher's exact test {finds} a difference (p {p}; {apart})"


def _percent(rate: float) -> str:
    return f"{100 * rate:.1f} %"


def impact_view(audit: Audit) -> dict[str, Any]:
    """What the page shows: a table per group column, and one of the cells."""
    tables: list[tuple[str, Table]] = []
    for name, table in audit.impact.groupby("attribute", sort=False):
        named = table[f"{REFERENCE}ratio"].notna().any()
        hidden = [
            "attribute",
            *([] if named else [c for c in table if str(c).startswith(REFERENCE)]),
        ]
        shown = table.drop(columns=hidden).rename(
            columns={"fisher_p": "Fisher's_p", "deviations": "standard_deviations"}
        )
        tables.append((str(name), of_frame(shown)))
    return {
        "rate": rate_name(audit),
        "level": f"{100 * audit.bias.level:.6g} %",
        "tables": tables,
        "note": NO_ADVICE,
    }
