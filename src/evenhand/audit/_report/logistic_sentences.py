"""Where straight lines and logistic models agree, and sentences for where they do not.

With chances near 0 or 1 a straight line is wrong, and where groups differ in their features its
error looks as if the gap changed with a feature. The other form has errors of its own. So a change
of the gap is claimed where both find it, in the same direction; and so is the gap itself, where
there is a logistic model of the group.
"""

from __future__ import annotations

import numpy as np

from evenhand._prose import in_digits, quoted
from evenhand.audit._report.link_tests import link_sentence
from evenhand.audit._report.logistic import LOGISTIC, Logistic, sign_of
from evenhand.bias._contrasts import few
from evenhand.bias._findings import spoken_of, unmirrored
from evenhand.bias._sentences import _amount, _percent, _reference, rounded
from evenhand.bias._terms import SecondModel

MOST_RATIOS = 5  # changes to speak of in odds
Pair = tuple[int, int]  # a group and a feature, by number


def second_model(models: Logistic, again: bool = False) -> SecondModel:
    """What the report of the straight lines must not claim by itself, and what is said instead.

    Args:
        models: the logistic models.
        again: whether another report has described the form of the rewards already.
    """
    spoken = spoken_of(models.line)
    gaps = _gap_signs(models)
    if not spoken and not gaps:
        return SecondModel()
    doubted = [g for g, (line, odds) in gaps.items() if not np.isnan(odds) and line != odds]
    agreed = [g for g, (line, odds) in gaps.items() if line != 0.0 and line == odds]
    headline = models.fits == LOGISTIC
    sentences = _gaps(models, agreed)
    return SecondModel(
        frozenset(row for row in spoken if _unlike(models, row)),
        frozenset(doubted),
        "By straight lines" if headline else "",
        (*(() if again else (link_sentence(models),)), *(sentences if headline else ())),
        (
            *(() if headline else sentences),
            *(_doubted_gap(models, g) for g in doubted),
            *(() if again else _lacking(models)),
        ),
        (*_ratios(models, spoken), *_doubted_changes(models, spoken), *_unchecked(models, spoken)),
    )


def _gap_signs(models: Logistic) -> dict[int, tuple[float, float]]:
    """By group: the sign of its gap by the straight line, and by the logistic model.

    Of two groups that mirror each other it is the one that the report mentions.
    """
    line = models.line
    if line.overall is None:
        return {}
    table = line.by_group
    ends = table[["estimate", "simultaneous_low", "simultaneous_high"]].to_numpy(dtype=float)
    other = np.full(len(ends), np.nan) if models.gaps is None else sign_of(models.gaps)
    signs = np.where((ends[:, 1] > 0.0) | (ends[:, 2] < 0.0), np.sign(ends[:, 0]), 0.0)
    return {g: (float(signs[g]), float(other[g])) for g, _ in unmirrored(line, ends[:, :1])}


def _gaps(models: Logistic, agreed: list[int]) -> list[str]:
    """The average gap of each group and its odds ratio, by the logistic models."""
    table, line = models.by_group, models.line
    largest = sorted(agreed, key=lambda g: -abs(table["gap"].iloc[g]))[:MOST_RATIOS]
    return [
        f"By logistic models the probability of {line._terms.event} is {_gap_words(models, g)} for "
        f"group {quoted(line.groups[g])}, compared with {_reference(line)}, averaged over the "
        f"features of all rows{' by their weight' if models.weighted else ''}; with all features "
        f"at their average the odds ratio is {_ratio(models, g)}."
        for g in largest
    ]


def _gap_words(models: Logistic, g: int) -> str:
    """ "0.05 lower (95 % interval 0.03 to 0.07)" """
    row = models.by_group.iloc[g]
    low, high = row["gap_simultaneous_low"], row["gap_simultaneous_high"]
    half = (high - low) / 2.0
    if low <= 0.0 <= high:
        return (
            f"not distinguishable ({_percent(models.line)} interval from {rounded(-low, half)} "
            f"lower to {rounded(high, half)} higher)"
        )
    word, near, far = ("lower", -high, -low) if high < 0.0 else ("higher", low, high)
    return (
        f"{rounded(abs(row['gap']), half)} {word} ({_percent(models.line)} interval "
        f"{rounded(near, half)} to {rounded(far, half)})"
    )


def _ratio(models: Logistic, g: int) -> str:
    row = models.by_group.iloc[g]
    if np.isnan(row["odds_ratio"]):
        return "not known"
    return _with_interval(row["odds_ratio"], row["simultaneous_low"], row["simultaneous_high"])


def _with_interval(*ratios: float) -> str:
    """A ratio and its ends, "0.8 (0.7 to 0.9)", with an exponent only if it is unreadable."""
    estimate, low, high = (
        in_digits(float(f"{ratio:.3g}")) if 1e-9 < ratio < 1e9 else f"{ratio:.3g}"
        for ratio in ratios
    )
    return f"{estimate} ({low} to {high})"


def _doubted_gap(models: Logistic, g: int) -> str:
    line = models.line
    row = line.by_group.iloc[g]
    low, high = row["simultaneous_low"], row["simultaneous_high"]
    half = (high - low) / 2.0
    ends = f"{_signed(low, half)} to {_signed(high, half)}"
    return (
        f"Whether the {line._terms.compared(quoted(line.groups[g]))} differs from "
        f"{_reference(line)} {line._terms.alike} depends on the form of the model, and is not "
        f"claimed: by straight lines the difference is {_signed(row['estimate'], half)} "
        f"({_percent(line)} interval {ends}), and by logistic models the probability of "
        f"{line._terms.event} is {_gap_words(models, g)}."
    )


def _signed(number: float, half: float) -> str:
    return f"{'-' if number < 0.0 else ''}{rounded(abs(number), half)}"


def _unlike(models: Logistic, row: Pair) -> bool:
    """Whether the models disagree on a change, or only one of them says anything."""
    line, odds = (signs[_at(models, row)] for signs in models.signs)
    return bool(line != odds if not np.isnan(odds) else line != 0.0)


def _at(models: Logistic, row: Pair) -> int:
    return row[0] * len(models.line.features) + row[1]


def _named(models: Logistic, rows: list[Pair]) -> str:
    line = models.line
    return few([f"group {quoted(line.groups[g])} with {quoted(line.features[k])}" for g, k in rows])


def _ratios(models: Logistic, spoken: list[Pair]) -> list[str]:
    """The changes that both models find, in odds."""
    table, line = models.by_feature, models.line
    rows = [row for row in spoken if table["claimed"].iloc[_at(models, row)]]
    if not rows:
        return []
    factors = []
    for g, k in rows[:MOST_RATIOS]:
        own = table.iloc[_at(models, (g, k))]
        factors.append(
            f"for group {quoted(line.groups[g])} with {_step(models, k)} by "
            + _with_interval(own["ratio"], own["simultaneous_low"], own["simultaneous_high"])
        )
    more = len(rows) - len(factors)
    return [
        "Logistic models find these changes too, in the same direction. The odds ratio is "
        f"multiplied {', '.join(factors)}{f' and {more} more in the table' if more else ''}."
    ]


def _step(models: Logistic, k: int) -> str:
    """ "every additional 10 of age", or the category, which has no steps."""
    name, unit = quoted(models.line.features[k]), models.line.units[k]
    if any(k in column.features and column.categories for column in models.line._columns):
        return name
    return f"every additional {_amount(unit)} of {name}"


def _doubted_changes(models: Logistic, spoken: list[Pair]) -> list[str]:
    """The changes that only one of the models finds, or both in opposite directions."""
    kinds: dict[str, list[Pair]] = {
        "straight lines find a change and logistic models none beyond chance": [],
        "logistic models find a change and straight lines none beyond chance": [],
        "they find changes in opposite directions": [],
    }
    only_line, only_odds, opposite = kinds.values()
    for row in spoken:
        line, odds = (signs[_at(models, row)] for signs in models.signs)
        if np.isnan(odds) or line == odds:
            continue
        (only_line if odds == 0.0 else only_odds if line == 0.0 else opposite).append(row)
    findings = [f"for {_named(models, rows)} {words}" for words, rows in kinds.items() if rows]
    if not findings:
        return []
    return [
        "Whether the gap changes depends on the form of the model here, and is not claimed: "
        f"{'; '.join(findings)}."
    ]


def _lacking(models: Logistic) -> list[str]:
    """Groups without a logistic model, where others have one."""
    if models.odds is None:
        return []
    reference, sentences = models.line.reference, []
    others = {name: why for name, why in models.without.items() if name != reference}
    if reference in models.without:
        sentences.append(
            f"Group {quoted(reference)} has no logistic model: {models.without[reference]}. What "
            "is said about gaps to it rests on straight lines alone."
        )
    if len(others) == 1:
        name, reason = next(iter(others.items()))
        sentences.append(
            f"Group {quoted(name)} has no logistic model: {reason}. What is said of its gap rests "
            "on straight lines alone."
        )
    elif others:
        named = dict[str, list[str]]()  # by reason: several groups mostly share one
        for name, reason in others.items():
            named.setdefault(reason, []).append(quoted(name))
        why = "; ".join(f"{few(names)} ({reason})" for reason, names in named.items())
        sentences.append(
            f"{len(others)} groups have no logistic model: {why}. What is said of their gaps "
            "rests on straight lines alone."
        )
    return sentences


def _unchecked(models: Logistic, spoken: list[Pair]) -> list[str]:
    """Changes that a straight line finds and no logistic model can confirm or deny."""
    line, odds = models.signs
    rows = [
        row for row in spoken if np.isnan(odds[_at(models, row)]) and line[_at(models, row)] != 0.0
    ]
    if not rows:
        return []
    return [
        f"Straight lines find that the gap changes for {_named(models, rows)}. Without logistic "
        "models that may come from their form alone, and it is not claimed."
    ]
