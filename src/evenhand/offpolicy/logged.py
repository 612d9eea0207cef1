"""Logged decisions with their propensities, the input of off-policy evaluation."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenhand._checks import Array, Bools, Whole, numbers, whole_numbers
from evenhand._columns.features import CATEGORIES
from evenhand._columns.missing import DEFAULT, Choice
from evenhand._columns.missing_marks import Given, Marks, without_marks
from evenhand._columns.rewards import numbers_for, observed_rewards
from evenhand.errors import DataError, InputError, blank, setting
from evenhand.events._decisions import parts_of_log
from evenhand.events.columns import ROLES
from evenhand.groups import Groups
from evenhand.offpolicy._features import with_contexts
from evenhand.offpolicy._seen_warning import Origin


@dataclass(frozen=True, eq=False)
class Logged:
    """A row per decision: the arm, its propensity, the reward.

    Args:
        arms: the number of the chosen arm.
        rewards: the observed reward; NaN where it is missing.
        propensities: the probability with which the logging policy chose this arm, above 0.
        groups: the group of every arm, including those never chosen.
        contexts: what the policy saw, (rows, features) or (rows, arms, features).
        shared: whether contexts of shape (rows, features) are those of the round, the same for all
            arms. False if they are those of the chosen arm only, as in a log of evenhand that keeps
            no candidates: then the rewards of other arms cannot be predicted.
        all_propensities: the probabilities of all arms, (rows, arms), if they were logged. They
            show what the logging policy could never have done.
        available: which arms could be chosen, (rows, arms); all of them unless given. The context
            of a missing arm can be anything.
        overridden: true where a human chose another arm. Such a row has no reward of its own arm,
            and is left out like one whose reward is missing.
        origin: where the rows come from, if a file was read; it shows whether a policy saw them.
        members: the number of the group of every arm's candidate in every row, (rows, arms), where
            groups came with the rounds; -1 for an arm that was not available. Then `groups` only
            says how many arms there are.
        member_names: the names of these groups.

    Example:
        >>> import evenhand as eh
        >>> eh.offpolicy.Logged([0, 1], [1.0, 0.0], [0.5, 0.5], ["F", "M"]).n
        2
    """

    arms: Whole
    rewards: Array
    propensities: Array
    groups: Groups
    contexts: Array | None = None
    shared: bool = True
    all_propensities: Array | None = None
    available: Bools | None = None
    overridden: Bools | None = None
    origin: Origin | None = None
    members: Whole | None = None
    member_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        put = object.__setattr__.__get__(self)
        groups = self.groups if isinstance(self.groups, Groups) else Groups(self.groups)
        put("groups", groups)
        put("propensities", numbers("propensities", self.propensities))
        n, k = self.propensities.size, groups.n_arms
        if n == 0 or self.propensities.ndim != 1:
            raise InputError(
                f"{setting('propensities')} has no rows; allowed is one number for each decision"
            )
        put("arms", whole_numbers("arms", self.arms, n, k))
        put("rewards", numbers("rewards", self.rewards, (n,), missing=True))
        bad = (self.propensities <= 0.0) | (self.propensities > 1.0 + 1e-6)
        if bad.any():
            raise InputError(
                f"{setting('propensities')} has {self.propensities[bad][0]:g} in row "
                f"{int(np.argmax(bad))}; allowed are numbers above 0 and up to 1: a chosen arm had "
                "a probability above 0"
            )
        if self.contexts is not None:
            put("contexts", numbers("contexts", self.contexts))
            if self.contexts.ndim not in (2, 3) or self.contexts.shape[:-1] not in ((n,), (n, k)):
                raise InputError(
                    f"{setting('contexts')} has shape {self.contexts.shape}; allowed is ({n}, "
                    f"features) or ({n}, {k}, features)"
                )
        if self.all_propensities is not None:
            put("all_propensities", numbers("all_propensities", self.all_propensities, (n, k)))
            own = self.all_propensities[np.arange(n), self.arms]
            if (np.abs(own - self.propensities) > 1e-6).any():
                row = int(np.argmax(np.abs(own - self.propensities)))
                raise InputError(
                    f"{setting('all_propensities')} has {own[row]:g} for the chosen arm of row "
                    f"{row}, where propensities has {self.propensities[row]:g}; allowed is the "
                    "same number"
                )
        if self.members is not None:
            members = numbers("members", self.members, (n, k)).astype(np.int64)
            put("members", members)
            chosen = members[np.arange(n), self.arms]
            if (chosen < 0).any() or members.max() >= len(self.member_names):
                raise InputError(
                    f"{setting('members')} has {int(chosen.min())} to {int(members.max())}; "
                    f"allowed are numbers of the {len(self.member_names)} groups in member_names, "
                    "and -1 for arms that were not available"
                )
        if self.available is not None:
            put("available", _flags("available", self.available, (n, k)))
            lost = ~self.available[np.arange(n), self.arms]
            if lost.any():
                row = int(np.argmax(lost))
                raise InputError(
                    f"{setting('available')} has no arm {self.arms[row]} in row {row}, which was "
                    "chosen there; a chosen arm was available"
                )
        if self.overridden is not None:
            put("overridden", _flags("overridden", self.overridden, (n,)))
            put("rewards", np.where(self.overridden, np.nan, self.rewards))

    @classmethod
    def from_frame(
        cls,
        log: pd.DataFrame,
        groups: Groups | Sequence[object],
        *,
        features: Sequence[str] = (),
        shared: bool = True,
        arm: str | None = None,
        reward: str | None = None,
        propensity: str | None = None,
        arm_names: Sequence[object] | None = None,
        all_propensities: Sequence[str] | None = None,
        nominal_columns: Collection[str] = (),
        categories: int = CATEGORIES,
        missing: Choice = DEFAULT,
        missing_marks: Given = (),
        reward_values: Mapping[Any, float] | None = None,
    ) -> Logged:
        """From a table. Columns with the names of the log format are recognised.

        A column `override` says where a human chose another arm: it has that arm, or nothing; or it
        is true or false. The rewards of these rows are another arm's, and are left out.

        Args:
            log: a row per decision.
            groups: the group of every arm.
            features: the columns of the context. Categories become features as in `TableWorld`, 0
                or 1 for each but the most frequent, with an intercept.
            shared: whether they are the same for all arms; False if they are the chosen arm's.
            arm: the column of the arm: item_id, arm or action unless given.
            reward: the column of the observed reward: reward or click unless given.
            propensity: the column of the propensity: propensity_score, propensity or pscore.
            arm_names: the names of the arms in the log, in order; numbers from 0 unless given.
            all_propensities: a column for each arm with its probability, if they were logged.
            nominal_columns: columns of numbers that are really categories. Columns of text always
                are.
            categories: how many categories of a column get a feature; the rest is "other".
            missing: "error", "drop" (rows) or "fill" (features, with the mean and a column that
                says where, or with a category of their own; rows without an arm or a propensity
                are left out); or one of these by column, {"age": "fill", "others": "drop"}. A
                reward may always be missing: it may still be to come, and the report counts them.
            missing_marks: marks of missing values, such as ("?", "NA", -9), in every column; or
                such lists by column, {"reward": [-1], "*": ["?"]}.
            reward_values: numbers for a reward in words, {"paid": 1, "default": 0}.

        Example:
            >>> import pandas as pd, evenhand as eh
            >>> log = pd.DataFrame({"item_id": [0, 1], "click": [1, 0], "pscore": [0.5, 0.5]})
            >>> eh.offpolicy.Logged.from_frame(log, ["F", "M"]).rewards.tolist()
            [1.0, 0.0]
        """
        known = groups if isinstance(groups, Groups) else Groups(groups)
        marks, worth = Marks.of(missing_marks), numbers_for(reward_values)
        log = without_marks(log, marks)
        roles = {"arm": _name(log, "arm", arm), "reward": _name(log, "reward", reward)}
        roles["propensity"] = _name(log, "propensity", propensity)
        needed = [roles["arm"], roles["propensity"]]
        absent = [name for name in all_propensities or () if name not in log]
        if absent:
            raise InputError(
                f"{absent[0]!r} is not a column; the log has {', '.join(map(str, log.columns))}"
            )
        log, names = with_contexts(
            log,
            needed,
            roles["reward"],
            features,
            nominal_columns,
            categories,
            missing,
            marks,
        )
        arms = log[roles["arm"]]
        if arm_names is not None:
            number = {str(name): i for i, name in enumerate(arm_names)}
            unknown = [name for name in arms if str(name) not in number]
            if unknown:
                raise InputError(
                    f"arm has {unknown[0]!r}; allowed by arm_names is {', '.join(number)}"
                )
            arms = pd.Series([number[str(name)] for name in arms])
        elif pd.to_numeric(arms, errors="coerce").isna().any():
            wrong = arms[pd.to_numeric(arms, errors="coerce").isna()].iloc[0]
            raise DataError(f"arm has {wrong!r}; allowed are numbers from 0, or give arm_names")
        columns = None if all_propensities is None else list(all_propensities)
        return cls(
            arms=whole_numbers("arm", arms, len(log), known.n_arms),
            rewards=observed_rewards(log[roles["reward"]], worth, marks),
            propensities=log[roles["propensity"]].to_numpy(dtype=np.float64),
            groups=known,
            contexts=log[names].to_numpy(dtype=np.float64) if names else None,
            shared=shared,
            all_propensities=None if columns is None else log[columns].to_numpy(dtype=np.float64),
            overridden=_overridden(log),
        )

    @classmethod
    def from_log(cls, log: str | Path | pd.DataFrame) -> Logged:
        """From a log that evenhand wrote: its decisions, with the groups in the log.

        The rewards of overridden decisions are another arm's, so they are missing here; history is
        left out. If the log keeps candidates, contexts and probabilities are those of all arms, and
        any policy can be evaluated.

        Args:
            log: the path, Parquet or CSV, of what `log_to` or `simulate_log` wrote; or the frame
                that `read_log` or `simulate_log` returned, or some of its rows.

        Example:
            >>> import evenhand as eh
            >>> world = eh.SyntheticWorld(n_arms=4, n_sensitive=2)
            >>> log = eh.simulate_log(eh.UniformRandom, world, horizon=50, candidates=True)
            >>> eh.offpolicy.Logged.from_log(log).contexts.shape
            (50, 4, 2)
        """
        return cls(**parts_of_log(log))

    @property
    def n(self) -> int:
        """The number of decisions."""
        return len(self.arms)

    @property
    def of(self) -> Whole:
        """The number of the group of each row's arm."""
        if self.members is not None:
            chosen: Whole = self.members[np.arange(self.n), self.arms]
            return chosen
        return self.groups.of[self.arms]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the groups: of the arms, or of the candidates."""
        return self.groups.names if self.members is None else self.member_names

    def inside(self, group: int | None) -> Bools:
        """Whether each arm is in a group, in every row: (rows, arms). None is all of them.

        Example:
            >>> import evenhand as eh
            >>> log = eh.offpolicy.Logged([0, 2], [1.0, 0.0], [0.5, 0.5], ["F", "F", "M"])
            >>> log.inside(0).tolist()
            [[True, True, False], [True, True, False]]
        """
        shape = self.n, self.groups.n_arms
        if group is None:
            return np.ones(shape, dtype=np.bool_)
        if self.members is not None:
            return np.asarray(self.members == group)
        return np.broadcast_to(self.groups.of == group, shape)

    @property
    def chosen_contexts(self) -> Array | None:
        """The context of the chosen arm, (rows, features)."""
        if self.contexts is None or self.contexts.ndim == 2:
            return self.contexts
        chosen: Array = self.contexts[np.arange(self.n), self.arms]
        return chosen

    def rows(self, keep: Bools) -> Logged:
        """Some of the rows.

        Example:
            >>> import numpy as np, evenhand as eh
            >>> log = eh.offpolicy.Logged([0, 2, 1], [1.0, 0.0, 1.0], [0.5] * 3, ["F", "F", "M"])
            >>> log.rows(log.rewards > 0).arms.tolist()
            [0, 1]
        """
        optional: dict[str, Any] = {
            name: None if (values := getattr(self, name)) is None else values[keep]
            for name in ("contexts", "all_propensities", "available", "overridden", "members")
        }
        return replace(
            self,
            arms=self.arms[keep],
            rewards=self.rewards[keep],
            propensities=self.propensities[keep],
            **optional,
        )


def _flags(name: str, values: object, shape: tuple[int, ...]) -> Bools:
    flags = numbers(name, values, shape)
    if not np.isin(flags, (0.0, 1.0)).all():
        wrong = flags[~np.isin(flags, (0.0, 1.0))][0]
        raise DataError(f"{setting(name)} has {wrong:g}; allowed are true and false")
    return flags.astype(np.bool_)


def _overridden(log: pd.DataFrame) -> Bools | None:
    """Where a human chose another arm, if the table has a column that says so."""
    name = ROLES["override"][0]
    if name not in log:
        return None
    column = log[name]
    there: Bools = column.notna().to_numpy(dtype=np.bool_)
    words = np.array([str(value).lower() for value in column])
    if np.isin(words[there], ("true", "false")).all():
        return np.asarray(there & (words == "true"))
    if there.all():
        raise InputError(
            f"{name} is {column.iloc[0]} in the first row, and no row is empty; allowed is the arm "
            "that a human chose instead, or nothing; or true and false: rename the column if it is "
            "about something else"
        )
    return there


def _name(log: pd.DataFrame, role: str, given: str | None) -> str:
    names = [given] if given is not None else list(ROLES[role])
    present = [name for name in names if name in log.columns]
    if not present:
        raise InputError(
            f"{setting(role)} is not a column ({', '.join(names)}); name it with "
            f"{setting(role, blank('COLUMN'))}: the log has "
            f"{', '.join(map(str, log.columns))}"
        )
    return present[0]
