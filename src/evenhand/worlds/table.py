"""TableWorld: real people in a table, one drawn per arm and round."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand import _checks
from evenhand._columns.buckets import AS_IS, Buckets, group_labels, is_nominal, plain
from evenhand._columns.diagnosis import group_as_feature
from evenhand._columns.features import (
    CATEGORIES,
    Encoding,
    columns_of,
    features_of,
    matrix,
    told_of_constants,
)
from evenhand._columns.file_formats import Reading
from evenhand._columns.identifiers import identifiers
from evenhand._columns.missing import DEFAULT, Choice, Missing
from evenhand._columns.missing_marks import Given, Marks
from evenhand._columns.rewards import numbers_for, rewards_of, true_rewards_of
from evenhand._columns.table_files import read_table
from evenhand._columns.words import shown
from evenhand.errors import DataError, InputError, as_given, setting
from evenhand.groups import Groups
from evenhand.worlds._arms import grouped, sensitive_label, sorted_by_arm, tell_of_few
from evenhand.worlds.base import World, receive, world_kernel

if TYPE_CHECKING:
    from evenhand.bias import BiasReport


class _TableInstance(NamedTuple):
    """The rows, sorted by arm. All replications share them."""

    contexts: NDArray[np.float64]  # (rows, features)
    rewards: NDArray[np.float64]
    true_rewards: NDArray[np.float64]  # empty where they are not known
    first: NDArray[np.int64]  # the first row of every arm and, last, the number of rows
    noise: float
    absolute: bool


@world_kernel(_TableInstance)
def _draw_round(instance, t, generator, contexts, observed, true):  # type: ignore[no-untyped-def]
    """One row per arm, drawn uniformly from the arm's rows."""
    n, d = contexts.shape
    for i in range(n):
        start, stop = instance.first[i], instance.first[i + 1]
        row = min(start + int(generator.random() * (stop - start)), stop - 1)
        for k in range(d):
            contexts[i, k] = instance.contexts[row, k]
        observed[i] = instance.rewards[row]
        true[i] = instance.true_rewards[row] if instance.true_rewards.size else np.nan


@world_kernel(_TableInstance, receive)
def _receive(instance, t, arm, mean, noise):  # type: ignore[no-untyped-def]
    return abs(mean + noise) if instance.absolute else mean + noise


class TableWorld(World):
    """A world from a table of people and outcomes: every round draws one row for each arm.

    An arm is a combination of a group with the values, or buckets, of the `arms` columns, such as
    women between 27 and 45. Its rows are drawn with replacement; the context is the row's features
    and the reward the row's reward.

    A table does not say what a row would have earned without bias, so true regret is missing in the
    results, unless `true_reward` names a column.

    Messages name rows by the frame's index. In a CSV file the column names are row 1, as in a
    spreadsheet.

    Args:
        data: a data frame (pandas, Polars, Arrow), a mapping of columns, or the path of a CSV file
            (also .gz, .zip), a Parquet, JSON (lines, or an array of objects) or Excel file.
        group: the column that says to which group a row belongs, or several for intersections.
        reward: the column with the observed reward: numbers, or True and False.
        arms: the columns that make the arms together with the group: a name, a list of names, or a
            mapping from names to how they are cut: "as is", a number of buckets of equal width,
            edges, or {"quantiles": k}.
        sensitive: the value of `group` whose feedback may be distorted; with several group columns
            a value of each, such as ("F", "black").
        others: "apart" makes every value of `group` a group; "together" makes all but the sensitive
            one a single group, as policies for two groups need.
        features: the columns of the context; by default all columns without another role, except
            identifiers and row numbers, which are left out with a warning.
        leave_out: columns that are not features.
        nominal: categories become "one-hot" features, 0 or 1, called "job=cook"; or integer
            "codes" (the paper), in their own order if they have one, otherwise as they appear.
        nominal_columns: columns of numbers that are really categories. Columns of text always are.
        categories: how many categories of a column get a one-hot feature; the rest is "other".
        scale: "none" leaves features as they are (the paper); "standardise" gives them mean 0 and
            standard deviation 1.
        intercept: whether a feature that is always 1 comes first. By default it does if features
            are standardised, because they no longer carry the mean of the reward, or if categories
            are one-hot: then the most frequent category is the baseline, and has no feature.
        missing: "error", "drop" (rows) or "fill" (features, with the mean and a column that says
            where, or with a category of their own; rows without a group or a reward are left out);
            or one of these by column, {"age": "fill", "others": "drop"}.
        missing_marks: values that mean missing, such as ("?", "NA", -9), besides None, NaN and, in
            CSV files, empty text; or lists of them by column, {"age": [-1], "*": ["?"]}, with "*"
            for every column. A column that is numeric apart from these becomes numbers.
        reward_values: numbers for a reward in words, {"paid": 1, "default": 0}.
        true_reward: the column with the true reward, if it is known. `reward_values` are used for
            it too if they cover all its values.
        noise: the standard deviation of normal noise to add to rewards.
        absolute_rewards: take the absolute value of the noisy reward, as the authors' code does.
        encoding: of a CSV file, such as "latin-1", "windows-1252" or "utf-16"; UTF-8 unless given.
        decimal: "," for a CSV file that writes 1,5 for one and a half.
        delimiter: between the columns of a CSV file; detected unless given.
        sheet: of an Excel file; without it the only one that holds anything.
        separator: an older name of `delimiter`.

    Example:
        >>> import numpy as np, pandas as pd, evenhand as eh
        >>> draw = np.random.default_rng(1)
        >>> table = pd.DataFrame({"sex": draw.choice(["F", "M"], 400), "paid": draw.random(400),
        ...                       "age": draw.integers(18, 80, 400), "debt": draw.random(400)})
        >>> world = eh.TableWorld(table, group="sex", sensitive="F", arms={"age": 2}, reward="paid")
        >>> world.n_arms, world.feature_names
        (4, ('debt',))
        >>> world.arms["arm"].tolist()[:2]
        ['(17.939, 48.5] & F', '(17.939, 48.5] & M']
        >>> arms, contexts, rewards = world.observations()
        >>> contexts.shape, world.n_rows, bool((np.bincount(arms) > 50).all())
        ((400, 1), 400, True)
        >>> round(world.bias().difference().estimate, 2)
        0.01
    """

    def __init__(
        self,
        data: Any,
        *,
        group: str | Sequence[str],
        reward: str,
        arms: str | Sequence[str] | Mapping[str, Buckets] = (),
        sensitive: object = None,
        others: str = "apart",
        features: Sequence[str] | None = None,
        leave_out: Sequence[str] = (),
        nominal: str = "one-hot",
        nominal_columns: Collection[str] = (),
        categories: int = CATEGORIES,
        scale: str = "none",
        intercept: bool | None = None,
        missing: Choice = DEFAULT,
        missing_marks: Given = (),
        reward_values: Mapping[str, float] | None = None,
        true_reward: str | None = None,
        noise: float = 0.0,
        absolute_rewards: bool = False,
        encoding: str | None = None,
        decimal: str | None = None,
        delimiter: str | None = None,
        sheet: str | None = None,
        separator: str | None = None,
    ) -> None:
        one_hot = _checks.one_of("nominal", nominal, ("codes", "one-hot")) == "one-hot"
        scaled = _checks.one_of("scale", scale, ("none", "standardise")) == "standardise"
        _checks.one_of("others", others, ("apart", "together"))
        if intercept is not None:
            _checks.yes_or_no("intercept", intercept)
        _checks.whole("categories", categories, least=2)
        self.noise = _checks.number("noise", noise, 0.0, np.inf)
        self.absolute_rewards = _checks.yes_or_no("absolute_rewards", absolute_rewards)
        numbers, marks = numbers_for(reward_values), Marks.of(missing_marks)
        group_columns = _names("group", group)
        is_cut = isinstance(arms, Mapping)
        cuts: dict[str, Buckets] = dict.fromkeys(_names("arms", [*arms] if is_cut else arms), AS_IS)
        if isinstance(arms, Mapping):
            cuts = dict(zip(cuts, arms.values(), strict=True))
        rewards = [_checks.column_name("reward", reward)]
        if true_reward is not None:
            rewards.append(_checks.column_name("true_reward", true_reward))
        parts = dict.fromkeys([*group_columns, *cuts, *rewards])
        listed = None if features is None else list(_checks.column_names("features", features))
        left = list(_checks.column_names("leave_out", leave_out))
        codes = list(_checks.column_names("nominal_columns", nominal_columns))
        needed = None if listed is None else {*parts, *listed, *left, *codes}
        if delimiter is not None and separator is not None:
            raise InputError(
                f"{setting('delimiter')} and {setting('separator')} are both given, and are two "
                f"names of one setting; leave {setting('separator')} out"
            )
        delimiter = separator if delimiter is None else delimiter
        reading = Reading(encoding, decimal, delimiter, sheet)
        spelled = [name for name in codes if name not in parts]
        frame = read_table(data, marks, needed, reading, group_columns, spelled)
        point = decimal or "."
        if listed is None:
            listed = [name for name in frame.columns if name not in {*parts, *left}]
        used = list(dict.fromkeys([*parts, *listed]))
        named = {"group": group_columns, "arms": cuts, "reward": rewards[:1]}
        named |= {"true_reward": rewards[1:], "features": listed}
        _check_columns(frame, {**named, "leave_out": left, "nominal_columns": codes}, used)
        _check_roles(rewards, group_columns, list(cuts), listed, left)
        marks.check_rewards(rewards[0], numbers)

        frame = pd.DataFrame({name: plain(frame[name]) for name in used}, copy=False)
        self.identifiers: tuple[str, ...] = ()
        """Columns that were left out because they only identify rows."""
        if features is None:
            self.identifiers = identifiers(frame, [name for name in listed if name not in codes])
            listed = [name for name in listed if name not in self.identifiers]
            used = [name for name in used if name not in self.identifiers]
            frame = frame[used]
        missing_values = Missing(frame, used, missing, unfillable=[*group_columns, *rewards])
        frame = missing_values.settle(frame)
        self.missing = missing_values.table()
        """A row per column with missing values: how many, and what was done."""
        self.dropped_rows = missing_values.dropped_rows
        """How many rows were dropped because a value is missing."""
        self.filled_rows = missing_values.filled_rows
        """How many of the remaining rows have values filled in."""

        labels = grouped(group_labels(frame, group_columns), sensitive, others, group_columns)
        order, first, table = sorted_by_arm(frame, labels, cuts)
        values = rewards_of(frame[rewards[0]], numbers, marks=marks, decimal=point)[order]
        true = true_rewards_of(frame[rewards[1]], numbers)[order] if rewards[1:] else np.empty(0)
        self.arms = table.assign(mean_reward=np.add.reduceat(values, first[:-1]) / np.diff(first))
        """A row per arm: its name, its columns, its group, its rows and its mean reward."""
        own = sensitive_label(sensitive, group_columns, labels)
        self.groups = Groups(list(table["group"]), own)
        if len(group_columns) > 1 and others == "apart":
            rows = frame.iloc[order[first[:-1]]]  # a row of every arm
            levels = {name: list(group_labels(rows, [name])) for name in group_columns}
            self.groups = Groups.of_attributes(levels, own)
        hot = one_hot and any(name in codes or is_nominal(frame[name]) for name in listed)
        constant = scaled or hot if intercept is None else bool(intercept)
        how = Encoding(one_hot, categories, constant)
        encoded = features_of(frame, listed, codes, how, marks, point)
        encoded = told_of_constants(encoded, constant, scaled)
        if not encoded and not constant:
            raise InputError(
                f"{setting('features')} are none; name at least one column, or ask for an intercept"
            )
        self.codes = {feature.name: feature.levels for feature in encoded if feature.levels}
        """The features whose numbers are codes, with their categories, numbered from 0."""
        contexts, scales = matrix(encoded, order, constant, scaled)
        self.scales = scales
        """A row per feature: the mean and standard deviation that it was standardised by."""
        self._columns = columns_of(encoded, scales)
        self.feature_names: tuple[str, ...] = tuple(self.scales["feature"])
        """The features in the order of the contexts."""
        self.n_features = len(self.feature_names)
        self._instance = _TableInstance(
            contexts, values, true, first, self.noise, self.absolute_rewards
        )
        tell_of_few(self.arms)

    @property
    def n_rows(self) -> int:
        """How many rows there are to draw from."""
        return int(self._instance.first[-1])

    def observations(
        self,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """Every row once: arms, contexts and rewards, for `policy.absorb(*world.observations())`.

        They let a policy start from all that is known.
        """
        arms = np.repeat(np.arange(self.n_arms), np.diff(self._instance.first))
        return arms, self._instance.contexts, self._instance.rewards

    def bias(
        self, reference: object = None, level: float = 0.95, weighting: str = "auto"
    ) -> BiasReport:
        """How the rewards in the table differ between the groups, feature by feature.

        Every row counts once. Features are in their own units, centred where they were
        standardised. The difference is a bias only if the true averages of the groups are equal;
        docs/explanation/reading-bias.md says how to read it. Where categories are codes, the
        sentences do not interpret a step of one code.

        Args:
            reference: the group to compare with, or "mean" for the mean of the groups. The default
                is the mean or, with two groups, the one that is not sensitive.
            level: the level of the intervals.
            weighting: "pulls" for the fit to all rows of a group, "arms" for the plain average of
                its arms' own coefficients, or "auto" for arms if every arm has enough rows.
        """
        from evenhand.bias import Statistics, bias_report

        arms, contexts, rewards = self.observations()
        labels, names = np.array(self.groups.labels), np.array(self.arms["arm"])
        sums = Statistics.from_rows(contexts, rewards, list(labels[arms]), list(names[arms]))
        return bias_report(
            sums,
            reference=self.groups.reference if reference is None else reference,
            level=level,
            weighting=weighting,
            feature_names=self.feature_names,
            scales=self.scales["deviation"],
            codes=self.codes,
            columns=self._columns,
        )

    def begin(self, generator: np.random.Generator) -> _TableInstance:
        """The same rows in every replication, without a copy."""
        return self._instance

    def fingerprint(self) -> str:
        """A hash of the rows, and the rest of the description."""
        parts = (self.feature_names, self.groups, self.noise, self.absolute_rewards)
        return f"{self._digest} {parts!r}"

    @cached_property
    def _digest(self) -> str:
        digest = hashlib.sha256()
        for array in self._instance[:4]:
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
        return digest.hexdigest()

    def __repr__(self) -> str:
        sizes = ", ".join(
            f"{name} {size}"
            for name, size in zip(self.groups.names, self.groups.sizes, strict=True)
        )
        return (
            f"TableWorld({self.n_rows:,} rows, {self.n_arms} arms ({sizes}), "
            f"{self.n_features} features)"
        )


def _names(role: str, given: Any) -> list[str]:
    """A list of column names, from one name or several."""
    names = list(_checks.column_names(role, given, alone=True))
    if role == "group" and not names:
        raise InputError(
            f"{setting(role)} is {as_given(given)}; allowed are names of columns", value=given
        )
    return names


def _check_columns(
    frame: pd.DataFrame, named: Mapping[str, Iterable[str]], used: Sequence[str]
) -> None:
    """Refuse names of columns that are not there, by the setting that has them."""
    known = list(frame.columns)
    for parameter, names in named.items():
        for name in names:
            if name not in known:
                near = get_close_matches(name, known, n=1)
                hint = f"did you mean {near[0]!r}? " if near else ""
                more = f" and {len(known) - 30} more" if len(known) > 30 else ""
                there = shown(" ".join(column.split()) for column in known[:30]) or "no columns"
                raise DataError(
                    f"column {name!r} is not in the table; {hint}it has {there}{more}",
                    parameter=parameter,
                    value=name,
                )
            if name in used and known.count(name) > 1:
                raise DataError(
                    f"column {name!r} is in the table more than once; rename or drop one",
                    parameter=parameter,
                    value=name,
                )
    if frame.empty:
        raise DataError(f"{setting('data')} has no rows; give a table with some")


def _check_roles(
    rewards: Sequence[str],
    groups: Sequence[str],
    cut: Sequence[str],
    listed: Sequence[str],
    left: Sequence[str],
) -> None:
    for name in groups:
        if name in listed:
            raise group_as_feature(name)
    if len({*rewards}) < len(rewards):
        raise DataError(
            f"column {rewards[0]!r} is the reward and the true reward; give it one role",
            parameter="true_reward",
            value=rewards[0],
        )
    for name in rewards:
        if name in listed or name in groups or name in cut:
            role = "feature" if name in listed else "part of the group or the arms"
            raise DataError(
                f"column {name!r} is a reward and a {role}; give it one role",
                parameter="reward",
                value=name,
            )
    for name in left:
        if name in listed:
            raise DataError(
                f"column {name!r} is in features and in leave_out; name it in one",
                parameter="features",
                value=name,
            )
