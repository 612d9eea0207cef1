"""Logistic models of rewards of 0 and 1, beside the straight lines, as tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from evenhand._prose import quoted, records, value
from evenhand.audit._inference.logistic_groups import LogisticFit
from evenhand.bias._contexts import INTERCEPT
from evenhand.bias._contrasts import Comparison, compare
from evenhand.bias.report import BiasReport
from evenhand.bias.statistics import Array

LINEAR, LOGISTIC, BOTH, NEITHER = "linear", "logistic", "both", "neither"


@dataclass(frozen=True, eq=False, repr=False)
class Logistic:
    """Logistic models of rewards of 0 and 1, one for every group, and whether their form holds.

    Attributes:
        fits: which form its link test does not reject: "linear", "logistic", "both" or "neither".
        linear_p_value: of the link test of the straight lines; None where it cannot be tested.
        logistic_p_value: the same of the logistic models.
        why: why there is no logistic model at all; empty where there is one.
        without: the groups that have none, and why.
        errors: their kind: "classical", "robust" or "cluster".
        weighted: whether rows have weights.
        steps: how many passes the solutions took.

    Example:
        >>> import numpy as np, pandas as pd, evenhand as eh
        >>> log = pd.DataFrame({"sex": ["F", "M"] * 200, "age": np.arange(400) % 41})
        >>> log["paid"] = (np.arange(400) * 37 % 100 < np.where(log["sex"] == "F", 30, 60)) * 1
        >>> models = eh.audit(log, group="sex", reward="paid", reference="M").logistic
        >>> models.by_group[["group", "gap"]].round(2).values.tolist()
        [['F', -0.3], ['M', 0.0]]
    """

    line: BiasReport = field(repr=False)  # the straight lines, in the features' own units
    odds: BiasReport | None  # the same in log-odds
    gaps: Comparison | None  # the average gaps, a row per group
    linear_p_value: float | None = None
    logistic_p_value: float | None = None
    why: str = ""
    without: dict[str, str] = field(default_factory=dict)
    errors: str = ""
    weighted: bool = False
    steps: int = 0

    @property
    def fits(self) -> str:
        """The forms that their link tests do not reject, at the level of the report."""
        linear, logistic = (
            p_value is None or p_value >= 1.0 - self.line.level
            for p_value in (self.linear_p_value, self.logistic_p_value)
        )
        logistic = logistic and self.odds is not None
        return {
            (True, True): BOTH,
            (True, False): LINEAR,
            (False, True): LOGISTIC,
            (False, False): NEITHER,
        }[linear, logistic]

    @cached_property
    def by_group(self) -> pd.DataFrame:
        """A row per group.

        `odds_ratio` is that of the group to the reference at the average context. `gap` is the mean
        over all rows of the chance of a reward of 1 if they were of this group, less that if they
        were of the reference. `simultaneous_low` and the like hold for all groups at once.
        """
        groups = self.line.groups
        odds = None if self.odds is None else self.odds.by_group
        columns: dict[str, Any] = {"group": np.array(groups, dtype=object)}
        for name, source in _RATIOS.items():
            columns[name] = np.nan if odds is None else _exp(odds[source].to_numpy(dtype=float))
        columns["p_value"] = np.nan if odds is None else odds["p_value"].to_numpy(dtype=float)
        for name, source in _GAPS.items():
            columns[name] = np.nan if self.gaps is None else getattr(self.gaps, source)
        why = [self.why] * len(groups) if odds is None else list(odds["why"])
        if self.gaps is not None:
            why = [reason or other for reason, other in zip(why, self.gaps.why, strict=True)]
        return pd.DataFrame({**columns, "why": why})

    @cached_property
    def by_feature(self) -> pd.DataFrame:
        """A row per group and feature.

        `ratio` is the factor by which the odds ratio of the group to the reference changes for
        every `unit` more of the feature. `claimed` is true where both models find a change of the
        gap, in the same direction and with intervals for all features and groups at once.
        """
        line, d = self.line, len(self.line.features)
        odds = None if self.odds is None else self.odds.to_frame()
        unit = np.tile(np.array(line.units), len(line.groups))
        columns: dict[str, Any] = {
            "group": np.repeat(line.groups, d).astype(object),
            "feature": np.tile(line.features, len(line.groups)).astype(object),
            "unit": unit,
        }
        for name, source in _RATIOS.items():
            estimate_column = "ratio" if name == "odds_ratio" else name
            columns[estimate_column] = (
                np.nan if odds is None else _exp(unit * odds[source].to_numpy(float))
            )
        for name in ("p_value", "simultaneous_p_value"):
            columns[name] = np.nan if odds is None else odds[name].to_numpy(dtype=float)
        changes = np.array([kind != INTERCEPT for kind in line._contexts.kinds])
        signs = self.signs
        columns["claimed"] = (signs[0] != 0.0) & (signs[0] == signs[1])
        columns["claimed"] &= np.tile(changes, len(line.groups))
        columns["why"] = [self.why] * len(unit) if odds is None else list(odds["why"])
        return pd.DataFrame(columns)

    @cached_property
    def signs(self) -> tuple[Array, Array]:
        """The sign of every change, by group and feature: of the straight line, and in log-odds.

        It is 0 where the interval for all at once contains zero, and NaN where nothing is known.
        """
        line = self.line._by_feature
        if self.odds is None:
            return sign_of(line), np.full(len(line.estimate), np.nan)
        return sign_of(line), sign_of(self.odds._by_feature)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data. None stands for what is not known."""
        return {
            "fits": self.fits,
            "linear_p_value": value(self.linear_p_value),
            "logistic_p_value": value(self.logistic_p_value),
            "why": self.why,
            "without": dict(self.without),
            "errors": self.errors,
            "by_group": records(self.by_group),
            "by_feature": records(self.by_feature),
        }

    def __repr__(self) -> str:
        return f"Logistic(groups={', '.join(self.line.groups)}, fits={self.fits!r})"


_RATIOS = {
    "odds_ratio": "estimate",
    "low": "low",
    "high": "high",
    "simultaneous_low": "simultaneous_low",
    "simultaneous_high": "simultaneous_high",
}
_GAPS = {
    "gap": "estimate",
    "gap_low": "low",
    "gap_high": "high",
    "gap_simultaneous_low": "all_low",
    "gap_simultaneous_high": "all_high",
    "gap_p_value": "p_value",
}


def make_logistic(
    line: BiasReport, fit: LogisticFit | str, odds: BiasReport | None, weighted: bool
) -> Logistic:
    """The result, from the models fitted about the centres.

    Args:
        line: the report of the straight lines, in the features' own units.
        fit: the logistic models, or why there are none.
        odds: the same report with their vectors in place of the straight lines'.
        weighted: whether rows have weights.
    """
    if isinstance(fit, str) or odds is None:
        return Logistic(line, None, None, why=str(fit), weighted=weighted)
    ones = np.ones((len(line.groups), 1))
    gaps = compare(fit.chances, line._weights, ones, line.level, ("chance",))
    known = fit.odds.usable.any()
    return Logistic(
        line,
        odds if known else None,
        gaps if known else None,
        fit.line,
        fit.logistic,
        "" if known else _reason(fit),
        fit.why,
        fit.kind,
        weighted,
        fit.steps,
    )


def sign_of(comparison: Comparison) -> Array:
    """1 or -1; 0 where the interval for all rows at once contains zero, NaN if it is unknown."""
    clear = (comparison.all_low > 0.0) | (comparison.all_high < 0.0)
    return np.where(np.isnan(comparison.estimate), np.nan, np.sign(comparison.estimate) * clear)


def _reason(fit: LogisticFit) -> str:
    """Why no group has a logistic model, by the example of the first."""
    reasons = [f"group {quoted(name)} has none, for {why}" for name, why in fit.why.items()]
    return reasons[0] if reasons else "no group is known at all"


def _exp(logarithm: Array) -> Array:
    with np.errstate(over="ignore"):
        power: Array = np.exp(logarithm)
    return power
