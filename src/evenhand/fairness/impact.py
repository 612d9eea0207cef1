"""Adverse impact tables: selection rates, impact ratios and tests, from counts per category.

They have the shape of the tables of a bias audit under New York City's Local Law 144: the impact
ratio of a category is its selection rate over the highest one. Beside it stand an interval, Fisher's
exact test and the difference in standard deviations, so that nobody takes a ratio of few people for
a finding. The tables are numbers, and no legal advice.

| what | method |
|---|---|
| interval of a ratio | of its logarithm, by the delta method (Katz and others 1978); where one of the two categories has all or none selected, with one half added to the counts (Walter 1975) |
| test of the counts | Fisher's exact test, two-sided; none with weights or counts that are not whole |
| difference in standard deviations | of two rates, pooled: the "two standard deviations" of the courts |
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import gammaln, ndtri

from evenhand import _checks
from evenhand._checks import Array, Bools, numbers
from evenhand.errors import DataError, InputError, setting

FOUR_FIFTHS = 0.8
LEAST_PART = 0.02  # of the data: what Local Law 144 lets an auditor leave out
TWO = 2.0  # standard deviations
BEYOND = 40.0  # standard deviations: tables further off add nothing
ALIKE = 1e-7  # tables as likely as this one count too, whatever their logarithms' last digits

WEIGHTED = "no exact test: rows have weights"
NOT_WHOLE = "no exact test: the counts are not whole"
NOBODY = "no ratio: nobody is selected in the category with the highest rate"
EMPTY = "no rate: nobody is in it"
HIGHEST = "the highest rate"
SMALL = "less than {part:g} % of the data: not taken for the highest rate"


def impact_table(
    counts: pd.DataFrame,
    reference: object = None,
    level: float = 0.95,
    least_part: float = LEAST_PART,
) -> pd.DataFrame:
    """Selection rates by category, each compared with the highest one.

    A row per category, in the order of `counts`: `n`, `selected`, `share` of the data, `rate`,
    `ratio` to the highest rate with `low` and `high`, `fisher_p`, `deviations` (the difference to
    the highest rate, in standard deviations), `below_four_fifths`, `beyond_two_deviations`,
    `small`, `highest`, the same against the reference in columns that begin with `reference_`, and
    `note`. Tests and intervals are those of one comparison: with many categories some are small by
    chance, the more so as the highest rate is picked from the data.

    Args:
        counts: `category`, `n` and `selected`, a row per category. Where rows have weights, `n`
            and `selected` are sums of these, and `effective` is how many rows of equal weight they
            are worth.
        reference: a category to compare with as well, such as the majority.
        level: of the intervals.
        least_part: categories with a smaller part of the data are shown, but others are not
            compared with them.

    Example:
        >>> import pandas as pd
        >>> from evenhand.fairness.impact import impact_table
        >>> sexes = pd.DataFrame({"category": ["F", "M"], "n": [400, 600], "selected": [100, 240]})
        >>> table = impact_table(sexes).set_index("category")
        >>> table[["rate", "ratio", "low", "high", "deviations"]].round(3).loc["F"].tolist()
        [0.25, 0.625, 0.514, 0.76, -4.906]
        >>> bool(table.loc["F", "below_four_fifths"]), f"{table.loc['F', 'fisher_p']:.1e}"
        (True, '8.7e-07')
    """
    level = _checks.number("level", level, 0.0, 1.0, open_ends=True)
    least_part = _checks.number("least_part", least_part, 0.0, 1.0)
    frame = _checked(counts)
    names = [str(name) for name in frame["category"]]
    if reference is not None and str(reference) not in names:
        raise InputError(
            f"{setting('reference')} is {str(reference)!r}; allowed are {', '.join(names)}",
            value=reference,
        )
    n, selected = frame["n"].to_numpy(), frame["selected"].to_numpy()
    rate = selected / np.where(n > 0.0, n, np.nan)
    share = n / n.sum()
    small: Bools = share < least_part
    highest = _highest(rate, n, small)
    whole = bool((frame[["n", "selected"]] % 1.0 == 0.0).all(axis=None))
    exact = whole and "effective" not in frame
    people = frame.get("effective", frame["n"]).to_numpy(dtype=np.float64)
    against = _against(rate, people, highest, level, exact)
    table = pd.DataFrame({"category": names, "n": n, "selected": selected, "share": share})
    table = table.assign(rate=rate, **against)
    table["below_four_fifths"] = table["ratio"] < FOUR_FIFTHS
    table["beyond_two_deviations"] = table["deviations"].abs() > TWO
    table["small"] = small
    table["highest"] = np.arange(len(n)) == highest
    if whole:
        table = table.astype({"n": np.int64, "selected": np.int64})
    named = None if reference is None else names.index(str(reference))
    for name, column in _against(rate, people, named, level, exact).items():
        table[f"reference_{name}"] = column
    inexact = "" if exact else WEIGHTED if "effective" in frame else NOT_WHOLE
    few = SMALL.format(part=100.0 * least_part)
    table["note"] = [
        _note(row, rate, highest, few if small[row] else "", inexact) for row in range(len(n))
    ]
    return table


def scoring_counts(categories: Sequence[object], scores: ArrayLike) -> pd.DataFrame:
    """Counts for `impact_table` from scores: those above the median of all count as selected.

    It is the scoring rate of Local Law 144, for tools that give a score and no decision.

    Args:
        categories: of each person.
        scores: of each person.

    Example:
        >>> from evenhand.fairness.impact import scoring_counts
        >>> scoring_counts(["F", "F", "M", "M", "M"], [1, 2, 3, 4, 5]).values.tolist()
        [['F', 2, 0], ['M', 3, 2]]
    """
    given = numbers("scores", scores, (len(categories),))
    if not given.size:
        raise InputError(f"{setting('scores')} is empty; allowed is at least one score")
    above = pd.Series((given > np.median(given)).astype(np.int64))
    names = pd.Series([str(name) for name in categories], name="category")
    table = above.groupby(names, sort=False).agg(n="size", selected="sum")
    return table.reset_index()


def _checked(counts: pd.DataFrame) -> pd.DataFrame:
    missing = [name for name in ("category", "n", "selected") if name not in counts]
    if missing:
        raise DataError(
            f"{setting('counts')} has no column {missing[0]!r}; allowed is a frame with category, "
            "n and selected"
        )
    if counts.empty or counts["category"].astype(str).duplicated().any():
        raise DataError(
            f"{setting('counts')} has no rows, or a category twice; allowed is a row per category"
        )
    columns = [name for name in ("n", "selected", "effective") if name in counts]
    checked = {name: numbers(name, counts[name].to_numpy()) for name in columns}
    frame = pd.DataFrame({"category": counts["category"].to_numpy(), **checked})
    # Sums of weights in two orders differ in their last digits.
    room = 1e-9 * (1.0 + frame["n"])
    wrong = (frame["n"] < 0.0) | (frame["selected"] < 0.0) | (frame["selected"] > frame["n"] + room)
    if wrong.any():
        row = frame[wrong].iloc[0]
        raise DataError(
            f"category {row['category']!r} has {row['selected']:g} selected of {row['n']:g}; "
            "allowed are numbers from 0 to n"
        )
    if not frame["n"].sum() > 0.0:
        raise DataError(f"{setting('counts')} has nobody in any category; allowed is at least one")
    return frame.assign(selected=frame[["selected", "n"]].min(axis=1))


def _highest(rate: Array, n: Array, small: Bools) -> int:
    """The category with the highest rate, the largest of several: small ones only if all are."""
    rates = np.nan_to_num(rate, nan=-1.0)
    known = np.where(small, -1.0, rates)
    known = known if (known >= 0.0).any() else rates
    return int(np.lexsort((n, known))[-1])


def _against(
    rate: Array, people: Array, other: int | None, level: float, exact: bool
) -> dict[str, Array]:
    """Every category compared with one of them; NaN for itself in the tests, and without one."""
    nothing = np.full(len(rate), np.nan)
    names = ("ratio", "low", "high", "fisher_p", "deviations")
    if other is None:
        return {name: nothing.copy() for name in names}
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(rate[other] > 0.0, rate / rate[other], np.nan)
    low, high = _ends(rate, people, other, level)
    known = ~np.isnan(ratio)
    apart = _deviations(rate, people, other)
    p_value = nothing.copy()
    if exact:
        p_value = _fisher(np.rint(rate * people), people, other)
    low[other] = high[other] = 1.0
    p_value[other] = apart[other] = np.nan
    columns = (
        np.where(np.arange(len(rate)) == other, np.where(known, 1.0, np.nan), ratio),
        np.where(known, low, np.nan),
        np.where(known, high, np.nan),
        p_value,
        apart,
    )
    return dict(zip(names, columns, strict=True))


def _ends(rate: Array, people: Array, other: int, level: float) -> tuple[Array, Array]:
    """The interval of each ratio, by its logarithm.

    Of a in n and b in m, the logarithm has the variance 1/a - 1/n + 1/b - 1/m.
    """
    selected = rate * people
    edge = (selected <= 0.0) | (selected >= people)
    half = np.where(edge | edge[other], 0.5, 0.0)  # of both: a half in one would move the ratio
    with np.errstate(divide="ignore", invalid="ignore"):
        own, total = selected + half, people + half
        theirs, all_theirs = selected[other] + half, people[other] + half
        middle = np.log(own / total) - np.log(theirs / all_theirs)
        variance = 1.0 / own - 1.0 / total + 1.0 / theirs - 1.0 / all_theirs
        half_width = float(ndtri(0.5 + level / 2.0)) * np.sqrt(np.maximum(variance, 0.0))
        low, high = np.exp(middle - half_width), np.exp(middle + half_width)
    return np.where(selected <= 0.0, 0.0, low), high


def _deviations(rate: Array, people: Array, other: int) -> Array:
    """The difference to one category over its standard error, with both rates pooled."""
    with np.errstate(divide="ignore", invalid="ignore"):
        pooled = (rate * people + rate[other] * people[other]) / (people + people[other])
        error = np.sqrt(pooled * (1.0 - pooled) * (1.0 / people + 1.0 / people[other]))
        size: Array = np.where(error > 0.0, (rate - rate[other]) / error, 0.0)
    return np.where(np.isnan(rate), np.nan, size)


def _fisher(selected: Array, people: Array, other: int) -> Array:
    return np.array(
        [
            fisher_exact(k, n, selected[other], people[other]) if n > 0.0 else np.nan
            for k, n in zip(np.nan_to_num(selected), people, strict=True)
        ]
    )


def fisher_exact(selected: float, n: float, others_selected: float, others: float) -> float:
    """Fisher's exact test of two rates, two-sided: the chance of tables at most as likely.

    It is `scipy.stats.fisher_exact`, without loading all of SciPy's statistics, and for large
    counts without tables that are more than 40 standard deviations away.

    Args:
        selected: how many of the first were selected.
        n: how many of the first there are.
        others_selected: how many of the others were selected.
        others: how many others there are.

    Example:
        >>> from evenhand.fairness.impact import fisher_exact
        >>> round(fisher_exact(3, 4, 1, 4), 6)  # Fisher's tea
        0.485714
    """
    every, chosen = n + others, selected + others_selected
    mean = n * chosen / every
    spread = np.sqrt(mean * (1.0 - chosen / every) * others / max(every - 1.0, 1.0))
    room = BEYOND * spread + BEYOND
    least = max(0.0, chosen - others, np.floor(min(selected, mean) - room))
    most = min(n, chosen, np.ceil(max(selected, mean) + room))
    x = np.arange(least, most + 1.0)
    logs = -(
        gammaln(x + 1.0)
        + gammaln(n - x + 1.0)
        + gammaln(chosen - x + 1.0)
        + gammaln(others - chosen + x + 1.0)
    )
    logs -= logs.max()
    observed_log_probability = logs[int(selected - least)]
    return float(
        min(np.exp(logs[logs <= observed_log_probability + ALIKE]).sum() / np.exp(logs).sum(), 1.0)
    )


def _note(row: int, rate: Array, highest: int, few: str, inexact: str) -> str:
    if np.isnan(rate[row]):
        return EMPTY
    first = HIGHEST if row == highest else few
    if not rate[highest] > 0.0:
        first = NOBODY
    rest = inexact if row != highest else ""
    return "; ".join(part for part in (first, rest) if part)
