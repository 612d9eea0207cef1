"""The settings of an audit, checked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evenhand import _checks
from evenhand._columns.features import CATEGORIES
from evenhand._columns.missing import DEFAULT, Choice, check_choice
from evenhand._columns.missing_marks import Given, Marks
from evenhand._columns.rewards import numbers_for
from evenhand.bias._fit import WEIGHTINGS
from evenhand.errors import InputError, as_given, setting

ERRORS = ("auto", "classical", "robust")
MOST_WINDOWS = 1000


@dataclass(frozen=True)
class AuditSettings:
    """Everything about an audit except the log: `evenhand.audit` describes each setting."""

    columns: Mapping[str, str] = field(default_factory=dict)
    features: Sequence[str] | None = None
    nominal_columns: Sequence[str] = ()
    leave_out: Sequence[str] = ()
    reference: str | None = None
    level: float = 0.95
    weighting: str = "auto"
    missing: Choice = DEFAULT
    missing_marks: Given | Marks = ()
    reward_values: Mapping[str, float] | None = None
    errors: str = "auto"
    weigh_by_propensity: bool = False
    windows: int | None = None
    categories: int = CATEGORIES
    unfavourable: bool = False
    units: Mapping[str, float] | None = None
    logistic: bool = True
    title: str = "Audit"
    attributes: Sequence[str] = ()  # the group columns, if there are several
    group_probability: Mapping[str, str] | None = None  # the column of every group's probability
    probability_of: str = "group"  # what the groups are called together

    def __post_init__(self) -> None:
        _checks.number("level", self.level, 0.0, 1.0, open_ends=True)
        _checks.one_of("weighting", self.weighting, WEIGHTINGS)
        check_choice(self.missing)
        _checks.one_of("errors", self.errors, ERRORS)
        _checks.whole("categories", self.categories, least=2)
        if self.windows is not None:
            _checks.whole("windows", self.windows, least=0)
            if self.windows > MOST_WINDOWS:
                raise InputError(
                    f"{setting('windows')} is {self.windows}; allowed are up to {MOST_WINDOWS}: "
                    "choose fewer",
                    value=self.windows,
                )
        for name in ("weigh_by_propensity", "unfavourable", "logistic"):
            object.__setattr__(self, name, _checks.yes_or_no(name, getattr(self, name)))
        if not isinstance(self.title, str):
            raise InputError(parameter="title", value=self.title, allowed="a string")
        for name in ("features", "nominal_columns", "leave_out"):
            given = getattr(self, name)
            if given is not None or name != "features":
                object.__setattr__(self, name, _checks.column_names(name, given))
        # As text, whatever they were given as.
        object.__setattr__(self, "missing_marks", Marks.of(self.missing_marks))
        object.__setattr__(self, "reward_values", numbers_for(self.reward_values))
        Marks(self.marks.every).check_rewards("", self.reward_values)
        if self.features is not None and not self.features:
            raise InputError(
                f"{setting('features')} is empty; allowed is at least one column: leave it out for "
                "all"
            )
        self._check_left_out()
        self._check_probabilities()

    def _check_probabilities(self) -> None:
        """Columns of probabilities: two or more, each of one group."""
        given = self.group_probability
        if given is None:
            return
        if not isinstance(given, Mapping) or len(given) < 2 or len({*given.values()}) < len(given):
            raise InputError(
                f"{setting('group_probability')} is {as_given(given)}; allowed is a column for "
                "each of two or more groups, such as "
                f"{setting('group_probability', {'black': 'p_black', 'white': 'p_white'})}",
                value=given,
            )
        object.__setattr__(self, "group_probability", {str(k): str(v) for k, v in given.items()})

    def _check_left_out(self) -> None:
        """A column that is left out cannot be used as well."""
        for name in self.leave_out:
            if name in (self.features or ()):
                raise InputError(
                    f"{setting('features')} and {setting('leave_out')} both have {name!r}; a "
                    "column is a feature or left out: take it out of one of them",
                    value=name,
                )
            for role, column in self.columns.items():
                if name == column:
                    raise InputError(
                        f"{setting('leave_out')} has {name!r}, which is also named as the {role}; "
                        "take it out of one of them",
                        value=name,
                    )

    @property
    def marks(self) -> Marks:
        """What stands for missing values, checked."""
        return Marks.of(self.missing_marks)
