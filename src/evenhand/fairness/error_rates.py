"""Error rates per group where the truth is known: decisions of 0 and 1 beside true outcomes.

All of it is computed from four counts per group, which add up in any order. Rates are among
different people (those with a true outcome of 1, those that were chosen, ...), so each has an n of
its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from evenhand import _checks
from evenhand._checks import Array
from evenhand._prose import records
from evenhand.errors import DataError, setting
from evenhand.fairness._comparisons import divided
from evenhand.fairness._measures import Rates

COUNTS = ("true_positives", "false_positives", "false_negatives", "true_negatives")
# What is counted, and among whom: numbers of COUNTS.
RATES: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "true_positive_rate": ((0,), (0, 2)),
    "false_positive_rate": ((1,), (1, 3)),
    "precision": ((0,), (0, 1)),
    "negative_predictive_value": ((3,), (2, 3)),
    "accuracy": ((0, 3), (0, 1, 2, 3)),
    "selection_rate": ((0, 1), (0, 1, 2, 3)),
    "base_rate": ((0, 2), (0, 1, 2, 3)),
}
ODDS = ("true_positive_rate", "false_positive_rate")


@dataclass(frozen=True, eq=False)
class ErrorRates:
    """Error rates by group with intervals, and how far groups are apart, from `error_rates`.

    Attributes:
        counts: a row per group: true and false positives and negatives.
        level: of the intervals.

    Example:
        >>> import pandas as pd
        >>> from evenhand.fairness import error_rates
        >>> table = pd.DataFrame(
        ...     [["F", 30, 10, 20, 40], ["M", 40, 5, 10, 45]], columns=["group", *COUNTS]
        ... )
        >>> error_rates(table).differences.loc["precision", ["lower", "higher"]].tolist()
        ['F', 'M']
        >>> rates = error_rates(table)
        >>> print(rates.to_words()[0].split(",")[0])
        The true positive rate is 80.0 % for group M and 60.0 % for group F
        >>> list(rates.to_dict())
        ['level', 'counts', 'by_group', 'differences']
    """

    counts: pd.DataFrame
    level: float

    @cached_property
    def by_group(self) -> pd.DataFrame:
        """A row per rate and group, with Wilson's interval. A rate of nobody is NaN."""
        rows = []
        for name in RATES:
            rates = self._rates(name)
            ends = rates.ends(self.level)
            for g, group in enumerate(self.counts.index):
                known = rates.n[g] > 0.0
                numbers = [float(end[g]) if known else np.nan for end in ends]
                rows.append((name, group, *numbers, int(rates.n[g])))
        names = ["rate", "group", "estimate", "low", "high", "n"]
        return pd.DataFrame(rows, columns=names).set_index(["rate", "group"])

    @cached_property
    def differences(self) -> pd.DataFrame:
        """The two groups that are furthest apart in each rate, higher less lower.

        The interval is Newcombe's and allows for having picked the pair: it holds for all pairs.
        """
        rows: list[tuple[Any, ...]] = []
        for name in RATES:
            rates = self._rates(name)
            estimates = rates.successes / np.where(rates.n > 0.0, rates.n, np.nan)
            known = np.flatnonzero(rates.n > 0.0)
            pairs = list(combinations(known, 2))
            if not pairs:
                rows.append((name, "", "", np.nan, np.nan, np.nan))
                continue
            low = int(known[np.argmin(estimates[known])])
            high = int(known[np.argmax(estimates[known])])
            level = divided(self.level, len(pairs))
            ends = rates.difference(high, low, level)
            numbers = [float(np.squeeze(end)) for end in ends]
            groups = self.counts.index
            rows.append((name, str(groups[low]), str(groups[high]), *numbers))
        names = ["rate", "lower", "higher", "estimate", "low", "high"]
        return pd.DataFrame(rows, columns=names).set_index("rate")

    @property
    def equalized_odds_difference(self) -> float:
        """The larger of the differences in true and false positive rates, as Fairlearn has it."""
        return float(self.differences.loc[list(ODDS), "estimate"].max())

    def to_words(self) -> list[str]:
        """How far groups are apart, in sentences: only where the interval excludes zero."""
        sentences, unclear = [], []
        for name, row in zip(RATES, self.differences.to_dict(orient="records"), strict=True):
            words = name.replace("_", " ")
            if name == "base_rate" or np.isnan(row["estimate"]):
                continue
            if row["low"] <= 0.0:
                unclear.append(words)
                continue
            rates: Any = self.by_group.loc[name, "estimate"]
            sentences.append(
                f"The {words} is {100 * rates[row['higher']]:.1f} % for group {row['higher']} and "
                f"{100 * rates[row['lower']]:.1f} % for group {row['lower']}, a difference of "
                f"{100 * row['estimate']:.1f} points ({100 * self.level:.6g} % interval "
                f"{100 * row['low']:.1f} to {100 * row['high']:.1f})."
            )
        if unclear:
            sentences.append(f"No difference between groups is clear for {', '.join(unclear)}.")
        return sentences

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data; None stands for what is not known."""
        return {
            "level": self.level,
            "counts": records(self.counts.reset_index()),
            "by_group": records(self.by_group.reset_index()),
            "differences": records(self.differences.reset_index()),
        }

    def _rates(self, name: str) -> Rates:
        table: Array = self.counts[list(COUNTS)].to_numpy(dtype=np.float64)
        counted, among = RATES[name]
        return Rates(table[:, counted].sum(axis=1), table[:, among].sum(axis=1), "wilson")


def error_rates(counts: pd.DataFrame, level: float = 0.95) -> ErrorRates:
    """Error rates per group with intervals.

    Args:
        counts: a column `group`, or groups as the index, and the columns `true_positives`,
            `false_positives`, `false_negatives` and `true_negatives`.
        level: of all intervals.

    Example:
        >>> import pandas as pd
        >>> from evenhand.fairness import error_rates
        >>> counts = pd.DataFrame(
        ...     {
        ...         "group": ["F", "M"],
        ...         "true_positives": [30, 40],
        ...         "false_positives": [10, 5],
        ...         "false_negatives": [20, 10],
        ...         "true_negatives": [40, 45],
        ...     }
        ... )
        >>> rates = error_rates(counts)
        >>> rates.by_group.loc["true_positive_rate", "estimate"].to_dict()
        {'F': 0.6, 'M': 0.8}
        >>> round(rates.equalized_odds_difference, 3)
        0.2
    """
    _checks.number("level", level, 0.0, 1.0, open_ends=True)
    table = counts.set_index("group") if "group" in counts else counts
    missing = [name for name in COUNTS if name not in table]
    if missing:
        raise DataError(
            f"{setting('counts')} has no column {missing[0]!r}; needed are {', '.join(COUNTS)}"
        )
    numbers = table[list(COUNTS)].to_numpy(dtype=np.float64)
    if not np.isfinite(numbers).all() or (numbers < 0.0).any():
        raise DataError(
            f"{setting('counts')} has a number below 0 or a missing one; allowed are 0 and above"
        )
    return ErrorRates(table[list(COUNTS)].rename_axis("group"), level)
