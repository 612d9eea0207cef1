"""What the user may choose, checked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenhand import _checks
from evenhand.audit.marks import marks_of, numbers_for
from evenhand.bias.fitting import WEIGHTINGS

ERRORS = ("auto", "classical", "robust")
MISSING = ("error", "drop", "fill")


@dataclass(frozen=True)
class Settings:
    """Everything about an audit but the log: `evenhand.audit` says what each is."""

    columns: Mapping[str, str] = field(default_factory=dict)
    features: Sequence[str] | None = None
    nominal: Sequence[str] = ()
    leave_out: Sequence[str] = ()
    reference: str | None = None
    level: float = 0.95
    weighting: str = "auto"
    missing: str = "error"
    missing_marks: Sequence[str] = ()
    reward_values: Mapping[str, float] | None = None
    errors: str = "auto"
    weigh_by_propensity: bool = False
    windows: int | None = None
    categories: int = 20
    units: Mapping[str, float] | None = None
    title: str = "Audit"

    def __post_init__(self) -> None:
        _checks.number("level", self.level, 0.0, 1.0, open_ends=True)
        _checks.one_of("weighting", self.weighting, WEIGHTINGS)
        _checks.one_of("missing", self.missing, MISSING)
        _checks.one_of("errors", self.errors, ERRORS)
        _checks.whole("categories", self.categories, least=2)
        if self.windows is not None:
            _checks.whole("windows", self.windows, least=0)
        for name in ("features", "nominal", "leave_out"):
            given: Any = getattr(self, name)
            if isinstance(given, str):
                raise ValueError(f"{name} is {given!r}; allowed is a list of columns")
        # As words, whatever they were given as.
        object.__setattr__(self, "missing_marks", marks_of(self.missing_marks))
        object.__setattr__(self, "reward_values", numbers_for(self.reward_values))
        both = [one for one in self.missing_marks if one in (self.reward_values or ())]
        if both:
            raise ValueError(
                f"reward_values and missing_marks both have {both[0]!r}; a value is a reward or "
                "stands for a missing one: take it out of one of them"
            )
        if self.features is not None and not self.features:
            raise ValueError("features is empty; allowed is at least one column, or None for all")
